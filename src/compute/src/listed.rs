//! Rows in lists, for backends that search through lists themselves.

use crate::VectorRows;
use crate::rotation::Rotation;

/// The lists of a segment, as its sections hold them.
#[derive(Debug, Clone, Copy)]
pub struct ListColumns<'a> {
    /// Components of a rotated vector.
    pub width: usize,
    /// Codes of each list's point, padded like the rows.
    pub codes: &'a [i8],
    /// Code times scale is a component of a point.
    pub scales: &'a [f32],
    /// Squared length of each point.
    pub squares: &'a [f32],
    /// Root mean square distance of each list's rows from its point.
    pub spreads: &'a [f32],
    /// First block of each list.
    pub first_blocks: &'a [u32],
    /// Rows of each list.
    pub sizes: &'a [u32],
    /// Row of each slot, `u32::MAX` where a block is only filled up.
    pub rows_of_slots: &'a [u32],
    /// T0, in blocks of 64 rows.
    pub one_bit: &'a [u8],
}

/// The rows of a segment with the lists over them.
#[derive(Debug, Clone, Copy)]
pub struct ListedRows<'a> {
    /// T1 and T2.
    pub rows: &'a VectorRows<'a>,
    /// Points, sizes, slots and T0.
    pub lists: ListColumns<'a>,
    /// The rotation of T0.
    pub rotation: &'a Rotation,
}

/// Extent of a search through lists.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Rows wanted.
    pub k: usize,
    /// Lists that each query chooses.
    pub probes: usize,
    /// Standard deviations that the bound of T0 allows.
    pub deviations: f32,
}
