//! One tenant's segments under a numbered manifest: commits, snapshots, merging, garbage.
//!
//! A collection knows nothing of tenants' names, of jobs, or of queries. It holds the searchable
//! rows, changes them in single steps, and never loses an acknowledged step.
//!
//! ```text
//!            edit: segments to add, sources to remove, a merge        readers
//!                          |                                             |
//!   writer's lock -> draft (pure) -> tombstones -> manifest N+1 -> snapshot (ArcSwap)
//!                                     durable        durable: the commit   |
//!                                                                   keeps its files mapped
//!   v1/c/<collection>/m/<version>   manifests, create-only
//!   v1/c/<collection>/s/<id>.seg    segments             v1/c/<collection>/d/<id>   tombstones
//!   v1/c/<collection>/r/<id>        sources of a segment, for when it is damaged; of a small one
//!                                   in a bucket they are in the manifest
//! ```
//! Invariants:
//! - A query uses exactly one [`Snapshot`]; all its files stay mapped until it is dropped.
//! - All live rows of a source are in one segment, so a source is visible whole or not at all.
//! - A segment that is damaged keeps its place in the manifest until each of its live sources was
//!   built anew, replaced or deleted. Until then every snapshot names it.
//! - Of two operations on one source the one with the higher sequence wins, whatever the order in
//!   which workers finish.
//! - A file is deleted after the manifest that refers to it and after its last reader. Old
//!   manifests are deleted in ascending order; only the newest is kept, because readers pin files,
//!   not manifests, and a deleted document should leave the disk soon.
//! - After a failed commit nothing is acknowledged until it is known whether it has happened. On a
//!   disk that is after a new start, since an fsync that failed must not be repeated; a bucket is
//!   asked by the next writer (`takeover`).
//!
//! - `manifest`, `log`: the format, and the commit as creation of a numbered file
//! - `edit`: operations; `draft`: applies them to a version without touching the disk; `commit`:
//!   writes the result
//! - `open`: recovery; `takeover`: keeping other writers from the next number; `reading`: following
//!   another writer
//! - `snapshot`: an open version; `by_time`: its sources in the order of listings; `kept`: rows
//!   that pass filters which are repeated
//! - `plan`: which segments are merged; `merge`, `gc`: background work
//! - `other`: the same rows with vectors of another model, and the switch between both
//! - `quarantine`: damaged segments; `source_list`: the list of sources beside each segment;
//!   `scrub`: everything read once more; `verify`: the same of a collection that is not open
//! - `files`: what a version consists of
//! - `registry`: open collections; `uploads`: upload blobs; `layout`: keys of all files

mod by_time;
mod commit;
mod draft;
mod edit;
mod error;
mod files;
mod gc;
mod kept;
pub mod layout;
mod log;
mod manifest;
mod merge;
mod open;
mod plan;
mod quarantine;
mod reading;
mod reembedding;
mod registry;
mod scrub;
mod snapshot;
mod source_list;
mod takeover;
pub mod uploads;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

pub use commit::Writer;
pub use edit::{AddedSegment, Edit, Outcome};
pub use error::CollectionError;
pub use kept::KeptFilters;
pub use log::{Commit, CommitLog};
pub use manifest::{Manifest, SegmentEntry, TombstoneEntry, count_foreign_models};
pub use merge::PlannedMerge;
pub use plan::MergeBudget;
pub use quarantine::QuarantinedSegment;
pub use reembedding::{Comparison, OtherVectors};
pub use registry::Registry;
pub use scrub::Scrubbed;
pub use snapshot::{FoundChunk, FoundSource, LiveSegment, ScopeRows, Snapshot};
pub use verify::{CollectionCensus, VerifiedCollection, VerifyEvent};

use crate::segment::{self, NewSource, Segment, SegmentMeta, SegmentShape, VectorKind};
use gc::PendingDelete;
use lodestone_compute::ComputeBackend;
use lodestone_io::store::BlobStore;
use lodestone_types::{CollectionId, CommitHead, IdSource, SegmentId, Sequence, SourceRecord};

/// One tenant's data.
#[derive(Debug)]
pub struct Collection {
    id: CollectionId,
    epoch: u64,
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    /// Builds vector lists in merges.
    backend: Arc<dyn ComputeBackend>,
    log: CommitLog,
    snapshot: ArcSwap<Snapshot>,
    /// Versions before that one, of late: where another process writes, others may search them yet.
    earlier: Mutex<Vec<(Instant, Arc<Snapshot>)>>,
    writer: Mutex<WriterState>,
    /// Files that the newest manifest may not list. Locked after `writer`, where both are.
    pending_deletes: Mutex<Vec<PendingDelete>>,
    /// Inputs of the merges that are under way.
    merging: Mutex<Vec<SegmentId>>,
    /// Held while all blocks are read; the version of which all were sound.
    scrubbing: Mutex<Option<u64>>,
    /// Whether another process writes.
    only_reads: bool,
    poisoned: AtomicBool,
    /// Whether the newest manifest may be one whose commit has failed.
    in_doubt: AtomicBool,
}

/// State guarded by the writer's lock.
#[derive(Debug)]
struct WriterState {
    /// Jobs that are in the newest manifest and may not be marked in the catalog yet.
    applied: Vec<Sequence>,
}

impl Collection {
    /// The collection, with another backend for its merges than the processor.
    #[must_use]
    pub fn with_backend(self, backend: Arc<dyn ComputeBackend>) -> Self {
        Self { backend, ..self }
    }

    /// The collection's id.
    pub fn id(&self) -> CollectionId {
        self.id
    }

    /// The newest version. Costs one atomic read.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The newest commit, for the catalog's cross-check; none before the first.
    pub fn head(&self) -> Option<CommitHead> {
        let manifest = &self.snapshot().manifest;
        let head = CommitHead { version: manifest.version, nonce: manifest.nonce };
        (manifest.version > 0).then_some(head)
    }

    /// Whether writes are refused after a failed commit.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    /// Whether the snapshot is of the newest manifest.
    fn knows_head(&self) -> bool {
        !self.is_poisoned() && !self.in_doubt.load(Ordering::SeqCst)
    }

    /// Writes fresh sources to a segment file that nothing refers to yet. Needs no lock. A file
    /// that no commit adds is garbage when the returned value is dropped. Four fsyncs: the segment,
    /// the list of its sources, and the directory of each.
    ///
    /// # Errors
    /// Errors of building or of the disk; no file is left behind.
    pub fn build(
        &self,
        dimension: usize,
        vector_kind: VectorKind,
        sources: &[NewSource],
    ) -> Result<Arc<Segment>, CollectionError> {
        let id = SegmentId(self.ids.uuid());
        let shape = SegmentShape { collection: self.id, segment: id, dimension, vector_kind };
        let key = layout::segment(self.id, id);
        let meta = segment::write(&*self.store, &key, shape, sources)?;
        self.adopt(&meta)
    }

    /// Writes the live rows of a visible source, under another record, to a segment file that
    /// nothing refers to yet. The caller holds the writer's lock, so that the rows stay alive.
    ///
    /// # Errors
    /// Errors of reading, building or of the disk; no file is left behind.
    pub fn build_amended(
        &self,
        found: &FoundSource<'_>,
        record: SourceRecord,
    ) -> Result<Arc<Segment>, CollectionError> {
        let id = SegmentId(self.ids.uuid());
        let input = (&*found.live.segment, &found.live.dead);
        let shape = SegmentShape {
            collection: self.id,
            segment: id,
            dimension: input.0.dimension(),
            vector_kind: input.0.vector_kind(),
        };
        let key = layout::segment(self.id, id);
        let meta = segment::write_amended(&*self.store, &key, shape, input, found.source, record)?;
        self.adopt(&meta)
    }

    /// Opens a file that was just written, writes the list of its sources unless its entry will
    /// have that, and remembers both until a commit lists the segment.
    fn adopt(&self, meta: &SegmentMeta) -> Result<Arc<Segment>, CollectionError> {
        let opened = self.open_segment(meta).and_then(|segment| {
            if self.fresh_entry(&segment)?.list.is_none() {
                self.write_list(&segment)?;
            }
            Ok(segment)
        });
        match &opened {
            Ok(segment) => {
                self.pending_deletes.lock().push(PendingDelete::of_segment(self.id, segment))
            }
            Err(_) => self.store.delete_many(&self.files_of(meta.id))?,
        }
        opened
    }

    /// Deletes a segment file that was built and will not be committed, without waiting for
    /// [`Self::collect_garbage`].
    ///
    /// # Errors
    /// Errors of the store; garbage collection or the next opening deletes the file then.
    pub fn discard(&self, segment: &Segment) -> Result<(), CollectionError> {
        Ok(self.store.delete_many(&self.files_of(segment.id()))?)
    }
}

#[cfg(test)]
mod tests;
