//! Counts metadata values over the matching chunks.

use std::cmp::Reverse;

use roaring::RoaringBitmap;

use crate::query::QueryError;
use crate::query::legs::SegmentScope;
use crate::query::request::Facet;
use lodestone_storage::filter::ValueCounts;
use lodestone_storage::segment::SegmentError;
use lodestone_types::RequestContext;

/// Maximum number of values of a key in the result.
const SHOWN_MAX: usize = 100;
/// Maximum number of distinct values of a key that are counted, over all segments: a key with a
/// different value for every source is no facet. Bounds memory with [`BYTES_MAX`] (13 MB per key).
const COUNTED_MAX: usize = 50_000;
/// Maximum bytes of a value; longer ones are texts, and left out.
const BYTES_MAX: usize = 256;

/// Counts the matching rows of each segment by the values of `key`.
pub(super) fn count(
    context: &RequestContext,
    segments: &[SegmentScope],
    matching: &[RoaringBitmap],
    key: &str,
) -> Result<Facet, QueryError> {
    let mut found = ValueCounts::new(COUNTED_MAX, BYTES_MAX);
    for (segment, rows) in segments.iter().zip(matching) {
        context.check()?;
        let columns = segment.live.segment.columns();
        columns.count_values(key, rows, &mut found).map_err(SegmentError::from)?;
    }
    let mut values: Vec<(String, u64)> = found.counts.into_iter().collect();
    values.sort_by(|(a, a_count), (b, b_count)| (Reverse(a_count), a).cmp(&(Reverse(b_count), b)));
    let left_out = (values.len().saturating_sub(SHOWN_MAX) + found.unread) as u64;
    values.truncate(SHOWN_MAX);
    Ok(Facet { key: key.to_owned(), values, left_out })
}
