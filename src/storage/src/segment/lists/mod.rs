//! Inverted lists: rows grouped around points, with a 1-bit tier (T0) in list order, so that a
//! search over many rows reads few bytes.
//!
//! ```text
//! query -> dot product with every list's point (T0 of the points, then exact)
//!       -> lists by the expected score of their best rows, until enough consecutive lists brought
//!          no better row
//!       -> T0 of a list: rows whose bound reaches the k-th best so far
//!       -> T1 of those -> (`search`) T2 of the rest
//! ```
//! A segment below 16,384 rows has one list, around the mean. Lists hold row ids; the order of rows
//! in the segment does not change.
//!
//! Section `Lists`, little-endian, one array after the other:
//! ```text
//!   u32 lists (n)    u32 rotated width     u32 slots (64 per block)
//!   2 x f32          patience: consecutive lists without a better row at which a search stops, to
//!                    find 99 of 100 neighbours; for 10 and for 100 neighbours
//!   2 x f32          share of rows that T0 cannot rule out in an exact search, likewise
//!   2 x f32          the share in a search with that patience, likewise
//!   2 x f32          patience to find 97 of 100, likewise; 0 if it was not measured
//!   f32              steepness, by which a list in vain counts for more; 0 in older segments
//!                    zeros to byte 64
//!   n x stride i8    codes of the points         n x f32  their scales   n x f32 squared lengths
//!   n x f32 spread   root mean square distance of rows from the point
//!   n x u32 first block                          n x u32 rows
//!   ceil(n / 64) blocks of T0 of the points, around zero; with scales and offsets such that it
//!                    estimates a list's promise, in older segments the product with its point
//!   slots x u32      row of each slot of section OneBit; 2^32 - 1 in slots that pad a block
//! ```
//! Section `OneBit`: blocks of T0 as drawn in `compute::one_bit`, around each list's point.
//!
//! - `source`: input and output of building lists
//! - `build`: assigns rows to lists, from scratch or from the lists of an older segment
//! - `encode`: encodes lists into sections; `measure`: cost and recall of trial searches
//! - `view`: checked views of the sections
//! - `nearest`: the lists near a query; `probe`: the search through them and T0; `exact`: that
//!   through all of them; `side_by_side`: several searches in one pass; `effort`: limits on the
//!   work of a search

pub mod build;
mod effort;
mod encode;
mod exact;
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
pub use exact::probe_together;
pub use near_rows::NearRows;
pub use probe::{Probed, probe};
pub use side_by_side::probe_side_by_side;
pub(in crate::segment) use source::Trials;
pub use source::{BuiltLists, ListSource, Older};
pub use view::Lists;

/// Rows from which a segment has T0 at all: over fewer rows, a scan of T1 costs less than rotating
/// the query and looking at rows twice.
pub const ONE_BIT_ROWS_MIN: usize = 4096;
/// Largest share of rows that T0 may fail to rule out and still be worth reading: a row that T0
/// lets through costs about 30 times as much as a row of T0, a row in a scan of T1 about ten times.
/// Unstructured vectors defeat one bit per component; their T1 is scanned instead.
const SHARE_MAX: f32 = 0.25;
/// Most neighbours for which the share measured for 10 is used; beyond, the share for 100.
const FEW_NEIGHBOURS: usize = 32;
/// Steepness of new segments. Over questions to 1,000,000 real passages, recalls of .95, .97 and
/// .99 took 18, 28 and 72 lists, instead of 35, 68 and 160 with steepness 0. A value of 12 takes up
/// to a tenth fewer, but then moved rows predict the needs of questions less well (`measure`).
const STEEPNESS: f32 = 8.0;
/// Marks a slot without a row.
const NO_ROW: u32 = u32::MAX;

/// Rows from which a new segment gets more than one list.
pub const LISTED_ROWS_MIN: usize = 16_384;

/// Decides when rows get lists, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPolicy {
    /// Rows from which a segment gets more than one list; a segment that has lists keeps them when
    /// rows are removed. Around its list's point, a row differs from others in fewer bits than
    /// around the mean of all rows: if rows have topics, T0 with a single list rules out too
    /// little.
    pub listed_rows_min: usize,
    /// Average number of rows per list: four blocks. Fewer lists read more rows, more lists read
    /// more points.
    pub list_rows: usize,
}

impl Default for ListPolicy {
    fn default() -> Self {
        Self { listed_rows_min: LISTED_ROWS_MIN, list_rows: 256 }
    }
}
