//! Merges: several segments become one, which keeps their number small and drops dead rows.

use std::sync::Arc;

use crate::collection::edit::{Edit, Replacement};
use crate::collection::plan::{MergeBudget, Piece, plan};
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::{Collection, CollectionError, layout};
use crate::segment::{self, SegmentShape};
use lodestone_types::SegmentId;

/// A merge that was decided on. While it exists, no other merge takes its inputs.
#[derive(Debug)]
pub struct PlannedMerge<'a> {
    collection: &'a Collection,
    inputs: Vec<Arc<LiveSegment>>,
    pieces: Vec<Piece>,
}

/// The segments as the merge policy sees them.
fn pieces(snapshot: &Snapshot, taken: &[SegmentId]) -> Vec<Piece> {
    let piece = |live: &Arc<LiveSegment>| {
        let segment = &live.segment;
        let all = u64::from(segment.row_count()).max(1);
        let of_living = |bytes: u64| {
            let share = u128::from(bytes) * u128::from(live.live_rows()) / u128::from(all);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        Piece {
            rows: live.live_rows(),
            dead: live.dead.rows.len(),
            disk_bytes: of_living(live.entry.bytes).saturating_add(segment.merge_growth_bytes()),
            // Dead rows are skipped, but their terms and names are still read.
            memory_bytes: segment.merge_memory_bytes(),
            shape: (segment.dimension(), segment.vector_kind().component_bytes()),
            is_taken: taken.contains(&segment.id()),
        }
    };
    snapshot.segments.iter().map(piece).collect()
}

impl Collection {
    /// Plans the next merge within the budget; `None` if there is nothing to merge, or while the
    /// contents of a damaged segment are unknown. Several merges of one collection may run at once,
    /// on disjoint segments.
    pub fn plan_merge(&self, budget: MergeBudget) -> Option<PlannedMerge<'_>> {
        let mut taken = self.merging.lock();
        // Taken under the lock, so that it no longer contains inputs that a finished merge has
        // replaced.
        let base = self.snapshot();
        if base.unknown_segments() > 0 {
            return None;
        }
        let all = pieces(&base, &taken);
        let chosen = plan(&all, budget)?;
        let inputs: Vec<_> = chosen.iter().map(|at| Arc::clone(&base.segments[*at])).collect();
        taken.extend(inputs.iter().map(|live| live.segment.id()));
        let pieces = chosen.iter().map(|at| all[*at]).collect();
        Some(PlannedMerge { collection: self, inputs, pieces })
    }

    /// Runs one merge if there is something to merge. Returns whether it did.
    ///
    /// # Errors
    /// As [`PlannedMerge::run`].
    pub fn merge_once(&self, budget: MergeBudget) -> Result<bool, CollectionError> {
        self.plan_merge(budget).map_or(Ok(false), |merge| merge.run().map(|()| true))
    }
}

impl PlannedMerge<'_> {
    /// Number of rows in the output.
    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.rows).sum()
    }

    /// Upper bound on the bytes of disk that the merge takes, until its inputs are deleted.
    pub fn disk_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.disk_bytes).sum()
    }

    /// Upper bound on the bytes of memory that the merge takes.
    pub fn memory_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.memory_bytes).sum()
    }

    /// Runs the merge. Readers and writers continue meanwhile: the inputs are pinned, and rows that
    /// die in them before the commit are dead in the output too.
    ///
    /// # Errors
    /// Errors of reading, writing or the commit. If the commit did not happen, nothing has changed.
    pub fn run(self) -> Result<(), CollectionError> {
        let Self { collection, inputs, .. } = &self;
        let first = &inputs[0].segment;
        let shape = SegmentShape {
            collection: collection.id,
            segment: SegmentId(collection.ids.uuid()),
            dimension: first.dimension(),
            vector_kind: first.vector_kind(),
        };
        let key = layout::segment(collection.id, shape.segment);
        let pinned = inputs.iter().map(|live| (&*live.segment, &live.dead)).collect();
        let (store, backend) = (&*collection.store, &*collection.backend);
        let meta = segment::write_merged(store, &key, shape, pinned, backend)?;
        let segment = collection.adopt(&meta)?;
        // Done here rather than in the first search after the commit.
        segment.prepare_vectors()?;
        let replace = Some(Replacement { inputs: inputs.clone(), segment });
        // If this fails the output must stay for now, because the manifest that lists it may be
        // durable. Garbage collection or the next opening decides.
        collection.writer()?.commit(&Edit { replace, ..Edit::default() })?;
        Ok(())
    }
}

impl Drop for PlannedMerge<'_> {
    fn drop(&mut self) {
        let is_ours = |id: &SegmentId| self.inputs.iter().any(|live| live.segment.id() == *id);
        self.collection.merging.lock().retain(|id| !is_ours(id));
    }
}
