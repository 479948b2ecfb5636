//! Choice of the cheapest path through the tiers.

use serde::{Deserialize, Serialize};

use crate::segment::flat::{RowFilter, Thoroughness, Tiers, passing_rows};
use lodestone_compute::ComputeBackend;

/// Most passing rows for which all of them are read from T2 at once.
///
/// The value is measured: `benches/flat_paths.rs` times both alternatives per row at d = 384. A row
/// of T2 costs about four of T1, but a scan then reads at least `RESCORE_ROWS` rows of T2 as well,
/// and goes over its estimates twice; the costs cross between 100 and 200 rows. For large k the
/// same ratio puts the crossing near 2 k, since a scan rescores k rows and a few more.
pub const GATHER_ROWS_MAX: usize = 128;

/// The path by which the rows of one segment were searched. `Gather` is always exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SearchPath {
    /// Few rows passed: all of them were scored from T2.
    Gather,
    /// The T1 codes of the passing rows were scanned.
    MaskedScan,
    /// Every row passed: T1 was scanned from end to end.
    Scan,
    /// T0 was scanned from end to end, then T1 of the rows that its bound did not rule out.
    OneBit,
    /// Like [`Self::OneBit`], over a compact copy of the rows that pass a repeated filter.
    CondensedOneBit,
    /// T0 of the lists near the query was scanned, then T1 of the rows that its bound did not rule
    /// out.
    Lists,
}

impl SearchPath {
    /// The path's name in query plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::MaskedScan => "masked_scan",
            Self::Scan => "scan",
            Self::OneBit | Self::CondensedOneBit => "one_bit_scan",
            Self::Lists => "lists",
        }
    }
}

/// Segment rows per passing row below which a scan of T0 costs less than a scan of T1 under the
/// filter: a row from memory costs 4 ns in T0 and 28 ns in T1 (1,000,000 rows, `bench vectors`).
pub(super) const ROWS_A_PASSING_ROW: usize = 8;
/// Rows of a segment from which a search may skip lists. Below, scanning all of T0 takes less than
/// a third of a millisecond and finds everything. The value is also a boundary between two tiers of
/// merging (`collection::merge`), so that a collection never has many segments just below it.
const PROBED_ROWS_MIN: usize = 65_536;
/// Passing rows from which probing lists pays off: a scan of their T1 takes .9 ms. A probe takes .1
/// to .4 ms if the passing rows are spread over the lists, and as long as that scan if nearly all
/// lists hold none of them.
pub(super) const PROBED_PASSING_MIN: usize = 32_768;

/// Chooses the cheapest path for the passing rows. A masked scan costs no more per row than a full
/// scan (same benchmark), so the mask is dropped only if every row passes. Lists are for CPUs: a
/// device that holds the rows reads all of them in less time and finds everything; one that does
/// not hold them changes nothing.
pub(super) fn choose(
    backend: &dyn ComputeBackend,
    tiers: &Tiers<'_>,
    filter: Option<&RowFilter<'_>>,
    queries: usize,
    k: usize,
    thoroughness: Thoroughness,
) -> SearchPath {
    let passing = passing_rows(&tiers.rows, filter);
    let is_condensed = || filter.is_some_and(|filter| filter.condensed().is_some());
    if passing <= GATHER_ROWS_MAX.max(2 * k) {
        return SearchPath::Gather;
    }
    let rows = tiers.rows.len();
    let is_large = rows >= PROBED_ROWS_MIN && passing >= PROBED_PASSING_MIN;
    let probing = is_large && thoroughness != Thoroughness::Exact;
    let scan = if passing < rows { SearchPath::MaskedScan } else { SearchPath::Scan };
    let Some((lists, _)) = &tiers.listed else { return scan };
    match backend.prefers_scan(&tiers.rows, passing, queries, k) {
        true => scan,
        false if probing && lists.are_telling_nearby(k) => SearchPath::Lists,
        false if passing * ROWS_A_PASSING_ROW > rows && lists.are_telling(k) => SearchPath::OneBit,
        false if is_condensed() => SearchPath::CondensedOneBit,
        false => scan,
    }
}
