//! Changes as operations, so that a commit can reapply them to another writer's head.

use std::sync::Arc;

use crate::collection::snapshot::LiveSegment;
use crate::segment::Segment;
use lodestone_types::{Sequence, SourceId, SubTenantId};

/// A published segment file that should become visible.
#[derive(Debug, Clone)]
pub struct AddedSegment {
    /// The open file.
    pub segment: Arc<Segment>,
    /// Sources in it that must not become visible, because their jobs were cancelled in the
    /// meantime.
    pub withheld: Vec<(SubTenantId, SourceId)>,
}

/// A merged segment that replaces its inputs.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The inputs as the merge read them, in the order of the output.
    pub inputs: Vec<Arc<LiveSegment>>,
    /// The output: the live sources and rows of each input, in their order there.
    pub segment: Arc<Segment>,
}

/// A set of changes that become visible in one step.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// New segments. A source in one replaces the visible source of the same name, unless that one
    /// has a higher sequence.
    pub add: Vec<AddedSegment>,
    /// Sources to remove.
    pub remove_sources: Vec<(SubTenantId, SourceId)>,
    /// Chunks to remove, by source and index; a source left without chunks is removed.
    pub remove_chunks: Vec<(SubTenantId, SourceId, Vec<u32>)>,
    /// A sub-tenant to empty, including the memories that belong to it.
    pub remove_sub_tenant: Option<SubTenantId>,
    /// A merge to publish.
    pub replace: Option<Replacement>,
    /// Jobs whose rows are in `add`.
    pub applied: Vec<Sequence>,
    /// Fingerprint of the model that made the vectors of `add`.
    pub embedding: Option<String>,
}

impl Edit {
    /// The highest sequence among the sources it adds; 0 if it adds none.
    pub(super) fn newest_sequence(&self) -> Sequence {
        let segments = self.add.iter().map(|added| &added.segment);
        let sequences = segments
            .flat_map(|segment| (0..segment.source_count()).map(|source| segment.sequence(source)));
        sequences.max().unwrap_or(Sequence(0))
    }
}

/// Effects of an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Keys of uploads that no visible source refers to any longer.
    pub orphaned_uploads: Vec<String>,
    /// Sources that were visible and no longer are.
    pub removed: Vec<(SubTenantId, SourceId)>,
    /// Sequences of added sources that lost to a later operation.
    pub outdated: Vec<Sequence>,
    /// Chunks that were removed by index.
    pub removed_chunks: Vec<(SourceId, u32)>,
}

impl Outcome {
    /// Records an upload as orphaned; client vectors have none and an empty key.
    pub(super) fn orphan(&mut self, raw_key: String) {
        if !raw_key.is_empty() {
            self.orphaned_uploads.push(raw_key);
        }
    }
}
