//! A query for scans of T0: tables of sums over groups of four components.

use crate::rotation::Rotation;

/// Components of a group; a table has one entry for each pattern of their signs.
const GROUP: usize = 4;
/// Entries of a table.
pub(super) const TABLE: usize = 1 << GROUP;

/// A rotated query.
#[derive(Debug, Clone, PartialEq)]
pub struct OneBitQuery {
    rotated: Vec<f32>,
    tables: Vec<u8>,
    step: f32,
    bias: f32,
}

impl OneBitQuery {
    /// Rotates `unit`, the normalised query, and builds its tables.
    pub fn new(rotation: &Rotation, unit: &[f32]) -> Self {
        let mut rotated = vec![0.0; rotation.width()];
        rotation.apply(unit, &mut rotated);
        let (mut bias, mut range) = (0.0, 0.0_f32);
        for group in rotated.as_chunks::<GROUP>().0 {
            let reach: f32 = group.iter().map(|value| value.abs()).sum();
            bias -= reach;
            range = range.max(2.0 * reach);
        }
        let step = if range > 0.0 { range / 255.0 } else { 1.0 };
        let mut tables = vec![0; rotated.len() / GROUP * TABLE];
        // Compiled for the widest registers of the machine.
        pulp::Arch::new().dispatch(|| fill_tables(&rotated, 1.0 / step, &mut tables));
        Self { rotated, tables, step, bias }
    }

    /// The rotated query.
    pub fn rotated(&self) -> &[f32] {
        &self.rotated
    }

    /// `width / 4` tables of 16 sums.
    pub fn tables(&self) -> &[u8] {
        &self.tables
    }

    /// A sum of entries times this, plus [`Self::bias`], is `signs . rotated query`.
    pub fn step(&self) -> f32 {
        self.step
    }

    /// See [`Self::step`].
    pub fn bias(&self) -> f32 {
        self.bias
    }

    /// Upper bound of the tables' rounding error: half a step a group.
    pub fn lost(&self) -> f32 {
        self.step * 0.5 * (self.rotated.len() / GROUP) as f32
    }
}

/// Entry p of a group's table: the sum of its components with the signs of p, less the least such
/// sum, in units of `1 / inverse`, rounded half up. A component v adds 2 |v| to the least sum where
/// its sign is the one of v, otherwise nothing.
#[inline(always)]
fn fill_tables(rotated: &[f32], inverse: f32, tables: &mut [u8]) {
    let tables = tables.as_chunks_mut::<TABLE>().0;
    for (group, table) in rotated.as_chunks::<GROUP>().0.iter().zip(tables) {
        let [[n0, p0], [n1, p1], [n2, p2], [n3, p3]] =
            group.map(|value| [-2.0 * value.min(0.0) * inverse, 2.0 * value.max(0.0) * inverse]);
        let low = [n0 + n1, p0 + n1, n0 + p1, p0 + p1];
        let high = [n2 + n3, p2 + n3, n2 + p3, p2 + p3];
        let (quarters, _) = table.as_chunks_mut::<4>();
        for (quarter, high) in quarters.iter_mut().zip(high) {
            for (entry, low) in quarter.iter_mut().zip(low) {
                *entry = (low + high + 0.5) as i32 as u8;
            }
        }
    }
}
