//! Inverted lists: rows grouped around points, with a 1-bit tier (T0) in list order, so that a
//! search of many rows reads few bytes.
//!
//! ```text
//! query -> dot with every list's point (by T0 of the points, then exactly)
//!       -> lists by the expected score of their best rows, until so many lists in a row brought no
//!          better row
//!       -> T0 of a list: rows whose bound reaches the k-th best so far
//!       -> T1 of those -> (`search`) T2 of what is left
//! ```
//! A segment below 16,384 rows has one list, round the mean. The order of rows in the segment is
//! untouched; lists hold row ids.
//!
//! Section `Lists`, little-endian, one array after the other
//! ```text
//!   u32 lists (n)    u32 rotated width     u32 slots (64 a block)
//!   2 x f32          patience: lists in a row without a better row before a search ends with 99 of
//!                    100 neighbours, for 10 and for 100 of them
//!   2 x f32          share of rows that T0 cannot rule out, likewise
//!   2 x f32          the same with that patience
//!   2 x f32          patience for 97 of 100, likewise; 0 where it was not measured
//!   f32              steepness, by which a list in vain counts for more; 0 in older segments
//!                    zeros to byte 64
//!   n x stride i8    codes of the points         n x f32  their scales   n x f32 squared lengths
//!   n x f32 spread   root mean square distance of rows from the point
//!   n x u32 first block                          n x u32 rows
//!   ceil(n / 64) blocks of T0 of the points, round zero; scales and offsets are such that it
//!                    estimates what a list promises, in older segments the product with its point
//!   slots x u32      row of each slot of section OneBit; 2^32 - 1 where a block is filled up
//! ```
//! Section `OneBit`: blocks of T0 as `compute::one_bit` draws them, round each list's point.
//!
//! - `source`: the rows of a new segment, and the sections made of them
//! - `build`: rows to lists, from nothing or from the lists of an older segment
//! - `encode`: lists to sections; `measure`: cost and recall of trial searches
//! - `view`: the sections, checked
//! - `nearest`: the lists near a query; `probe`: the search through them and T0; `side_by_side`:
//!   several in one pass; `effort`: how far it goes

pub mod build;
mod effort;
mod encode;
mod measure;
mod near_rows;
mod nearest;
pub mod probe;
mod side_by_side;
mod source;
pub mod view;

pub use build::build;
pub use effort::{Effort, Recall};
pub(in crate::segment) use encode::encode;
pub use near_rows::NearRows;
pub use probe::{Probed, probe, probe_together};
pub use side_by_side::probe_side_by_side;
pub(in crate::segment) use source::Trials;
pub use source::{BuiltLists, ListSource, Older};
pub use view::Lists;

/// Rows from which a segment has T0 at all: a scan of T1 over fewer costs less than rotating the
/// query and looking again.
pub const ONE_BIT_ROWS_MIN: usize = 4096;
/// Share of the rows that T0 may fail to rule out and still be worth reading: a row that passes
/// costs about 30 times what a row of T0 does, a row of a scan of T1 about ten times. Vectors
/// without structure defeat one bit a component; their T1 is scanned instead.
const SHARE_MAX: f32 = 0.25;
/// Neighbours up to which the share measured for 10 speaks, and beyond which that for 100.
const FEW_NEIGHBOURS: usize = 32;
/// Steepness of new segments. Over questions to 1,000,000 real passages the same recall of .95, .97
/// and .99 took 18, 28 and 72 lists instead of 35, 68 and 160 with 0; 12 takes up to a tenth fewer,
/// but moved rows then tell less of what questions need (`measure`).
const STEEPNESS: f32 = 8.0;
/// No row.
const NO_ROW: u32 = u32::MAX;

/// Rows from which a new segment gets more than one list.
pub const LISTED_ROWS_MIN: usize = 16_384;

/// When rows get lists, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPolicy {
    /// Rows from which a segment gets more than one list; one that has lists keeps them when rows
    /// are removed. Around its list's point a row differs from others by fewer bits than around the
    /// mean of all: where rows have topics, T0 of one list rules out too little.
    pub listed_rows_min: usize,
    /// Rows of a list, on average: four blocks. Fewer lists read more rows, more lists more points.
    pub list_rows: usize,
}

impl Default for ListPolicy {
    fn default() -> Self {
        Self { listed_rows_min: LISTED_ROWS_MIN, list_rows: 256 }
    }
}
