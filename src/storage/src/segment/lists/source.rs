//! Input and output of building lists.

use lodestone_compute::VectorRows;
use lodestone_compute::kmeans::CodeRows;
use lodestone_compute::one_bit::{ListUnits, encode_lists};
use lodestone_compute::rotation::Rotation;

/// Input of building lists.
pub trait ListSource: CodeRows {
    /// Number of rows.
    fn row_count(&self) -> usize;
    /// Components of a row.
    fn dimension(&self) -> usize;
    /// Writes the normalised row, `dimension` values.
    fn unit(&self, row: u32, unit: &mut [f32]);
    /// Lists of an older segment that holds most of these rows, if there is one.
    fn older(&self) -> Option<&Older>;

    /// Encodes blocks of T0, like [`encode_lists`]; an implementation may use a device.
    fn encode_one_bit(&self, rotation: &Rotation, lists: &[ListUnits<'_>]) -> Vec<u8> {
        encode_lists(rotation, lists)
    }
}

impl ListSource for VectorRows<'_> {
    fn row_count(&self) -> usize {
        self.len()
    }

    fn dimension(&self) -> usize {
        VectorRows::dimension(self)
    }

    fn unit(&self, row: u32, unit: &mut [f32]) {
        VectorRows::unit(self, row as usize, unit);
    }

    fn older(&self) -> Option<&Older> {
        None
    }
}

/// Lists of an older segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Older {
    /// The points of the lists.
    pub points: Vec<Vec<f32>>,
    /// The list of each row; `None` for new rows.
    pub list_of: Vec<Option<u32>>,
}

/// The encoded sections `Lists` and `OneBit`.
#[derive(Debug)]
pub struct BuiltLists {
    /// Section `Lists`: points, sizes and slots.
    pub lists: Vec<u8>,
    /// Section `OneBit`: blocks of T0.
    pub one_bit: Vec<u8>,
}

pub(super) fn members_of(list_of: &[u32], count: usize) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); count];
    for (row, list) in list_of.iter().enumerate() {
        members[*list as usize].push(row as u32);
    }
    members
}

pub(super) const FINITE: &str = "means of finite rows are finite and as wide";

/// The trial searches to run; see `measure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::segment) enum Trials {
    /// Exhaustive searches, and searches that stop early.
    Every,
    /// Exhaustive searches only.
    OfAll,
}
