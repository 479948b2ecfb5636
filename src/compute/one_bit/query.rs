//! A query as a scan of T0 needs it: tables of sums over groups of four components.

use crate::compute::rotation::Rotation;

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
        let mut sums = Vec::with_capacity(rotated.len() / GROUP * TABLE);
        let mut bias = 0.0;
        let mut range = 0.0_f32;
        for group in rotated.as_chunks::<GROUP>().0 {
            let reach: f32 = group.iter().map(|value| value.abs()).sum();
            for pattern in 0..TABLE {
                let signed = |bit: usize| match pattern >> bit & 1 {
                    1 => group[bit],
                    _ => -group[bit],
                };
                sums.push((0..GROUP).map(signed).sum::<f32>() + reach);
            }
            bias -= reach;
            range = range.max(2.0 * reach);
        }
        let step = if range > 0.0 { range / 255.0 } else { 1.0 };
        // Half up, which needs no call: sums are never negative.
        let inverse = 1.0 / step;
        let tables = sums.iter().map(|sum| (sum * inverse + 0.5) as u8).collect();
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

    /// Upper bound of what the tables lose: half a step a group.
    pub fn lost(&self) -> f32 {
        self.step * 0.5 * (self.rotated.len() / GROUP) as f32
    }
}
