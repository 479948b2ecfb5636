//! Size-tiered merging, which keeps the number of segments logarithmic and drops dead rows.

use std::collections::BTreeMap;

use crate::collection::edit::{Edit, Replacement};
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::{Collection, CollectionError, layout};
use crate::segment::{self, SegmentShape};
use lodestone_types::SegmentId;

/// Segments of one tier that are merged together. Each row is then rewritten once per tier, about
/// log8(rows) times in all, and a query visits at most seven segments per tier.
pub(super) const FAN_IN: usize = 8;
/// Rows of the smallest tier.
const TIER_ROWS: u64 = 1024;
/// Rows that a merged segment holds at most.
const MERGED_ROWS_MAX: u64 = 2_000_000;
/// A segment with a larger share of dead rows is rewritten (VECTORS 4).
const DEAD_SHARE_MAX: f64 = 0.20;

fn tier(live: &LiveSegment) -> u32 {
    let mut tier = 0;
    let mut bound = TIER_ROWS;
    while live.live_rows() >= bound {
        bound *= FAN_IN as u64;
        tier += 1;
    }
    tier
}

/// The segments that should be merged next, if any: a full tier, or one segment with many dead.
pub(super) fn plan(snapshot: &Snapshot) -> Option<Vec<usize>> {
    // Lowest tier first. Vectors of another shape cannot be in the same file.
    let mut groups: BTreeMap<(u32, usize, usize), Vec<usize>> = BTreeMap::new();
    for (at, live) in snapshot.segments.iter().enumerate() {
        let component_bytes = live.segment.vector_kind().component_bytes();
        let group = (tier(live), live.segment.dimension(), component_bytes);
        groups.entry(group).or_default().push(at);
    }
    for group in groups.into_values() {
        let mut rows = 0;
        let fitting = group.into_iter().take_while(|at| {
            rows += snapshot.segments[*at].live_rows();
            rows <= MERGED_ROWS_MAX
        });
        let chosen: Vec<usize> = fitting.collect();
        if chosen.len() >= FAN_IN {
            return Some(chosen);
        }
    }
    let is_worn = |live: &LiveSegment| {
        live.dead.rows.len() as f64 > DEAD_SHARE_MAX * f64::from(live.segment.row_count())
    };
    snapshot.segments.iter().position(|live| is_worn(live)).map(|at| vec![at])
}

impl Collection {
    /// Merges once if there is something to merge. Readers and writers continue meanwhile: the
    /// inputs are pinned, and rows that die in them before the commit are dead in the output too.
    /// Returns whether a merge was made, so that the caller can call again for the next.
    ///
    /// A merge waits while twice its largest input does not fit into `free_bytes`: inputs stay
    /// until their last reader is done, and other tenants write meanwhile.
    ///
    /// # Errors
    /// Errors of reading, writing or the commit. Without a commit nothing has changed.
    pub fn merge_once(&self, free_bytes: u64) -> Result<bool, CollectionError> {
        let Some(_only_one) = self.merging.try_lock() else { return Ok(false) };
        let base = self.snapshot();
        if base.unknown_segments() > 0 {
            return Ok(false);
        }
        let Some(chosen) = plan(&base) else { return Ok(false) };
        let inputs: Vec<&LiveSegment> = chosen.iter().map(|at| &*base.segments[*at]).collect();
        let largest = inputs.iter().map(|live| live.entry.bytes).max().unwrap_or(0);
        if largest.saturating_mul(2) > free_bytes {
            return Ok(false);
        }
        let first = &inputs[0].segment;
        let shape = SegmentShape {
            collection: self.id,
            segment: SegmentId(self.ids.uuid()),
            dimension: first.dimension(),
            vector_kind: first.vector_kind(),
        };
        let key = layout::segment(self.id, shape.segment);
        let pinned = inputs.iter().map(|live| (&*live.segment, &live.dead)).collect();
        let merged = segment::write_merged(&*self.store, &key, shape, pinned, &*self.backend)?;
        let segment = self.adopt(&merged.meta)?;
        // Here rather than in the first search after the commit.
        segment.prepare_vectors()?;
        let inputs = inputs.iter().map(|live| live.segment.id()).collect();
        let replace = Some(Replacement { inputs, segment, origins: merged.origins });
        // If this fails the output must stay for now: the manifest that lists it may be durable.
        // Garbage collection or the next opening decides.
        self.writer()?.commit(&Edit { replace, ..Edit::default() })?;
        Ok(true)
    }
}
