//! Changes of a commit as operations, which can be applied again to another head.

use std::sync::Arc;

use crate::collection::snapshot::LiveSegment;
use crate::segment::Segment;
use lodestone_types::{Sequence, SourceId, SubTenantId};

/// A published segment file that is to become visible.
#[derive(Debug, Clone)]
pub struct AddedSegment {
    /// The file, open.
    pub segment: Arc<Segment>,
    /// Sources in it that must not become visible: their jobs were cancelled meanwhile.
    pub withheld: Vec<(SubTenantId, SourceId)>,
}

/// A merged segment that takes the place of its inputs.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The inputs as the merge has read them, in its order.
    pub inputs: Vec<Arc<LiveSegment>>,
    /// The output: the living sources and rows of each input, in the order that they have there.
    pub segment: Arc<Segment>,
}

/// A set of changes that become visible in one step.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// New segments. A source in one replaces the visible source of the same name, unless that
    /// one has a higher sequence.
    pub add: Vec<AddedSegment>,
    /// Sources to remove.
    pub remove_sources: Vec<(SubTenantId, SourceId)>,
    /// Chunks to remove, by source and index; a source without chunks left is removed.
    pub remove_chunks: Vec<(SubTenantId, SourceId, Vec<u32>)>,
    /// A sub-tenant to empty, with the memories that belong to it.
    pub remove_sub_tenant: Option<SubTenantId>,
    /// A merge to publish.
    pub replace: Option<Replacement>,
    /// Jobs whose rows are in `add`.
    pub applied: Vec<Sequence>,
    /// Fingerprint of the model behind the vectors of `add`.
    pub embedding: Option<String>,
}

impl Edit {
    /// The highest sequence of the sources that it adds; 0 where it adds none.
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
    /// Keys of uploads that no visible source refers to any more.
    pub orphaned_uploads: Vec<String>,
    /// Sources that were visible and are not.
    pub removed: Vec<(SubTenantId, SourceId)>,
    /// Added sources that lost against a later operation.
    pub outdated: Vec<Sequence>,
    /// Chunks that were removed by index.
    pub removed_chunks: Vec<(SourceId, u32)>,
}

impl Outcome {
    /// Client vectors have no upload.
    pub(super) fn orphan(&mut self, raw_key: String) {
        if !raw_key.is_empty() {
            self.orphaned_uploads.push(raw_key);
        }
    }
}
