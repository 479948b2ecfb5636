//! One tenant's segments under a numbered manifest: commits, snapshots, merging and garbage
//! collection.
//!
//! A collection knows nothing of tenant names, jobs or queries. It holds the searchable rows,
//! changes them in atomic steps, and never loses an acknowledged step.
//!
//! ```text
//!            edit: segments to add, sources to remove, a merge        readers
//!                          |                                             |
//!   writer's lock -> draft (pure) -> tombstones -> manifest N+1 -> snapshot (ArcSwap)
//!                                     durable        durable: the commit   |
//!                                                                   keeps its files mapped
//!   v1/c/<collection>/m/<version>   manifests, create-only
//!   v1/c/<collection>/s/<id>.seg    segments             v1/c/<collection>/d/<id>   tombstones
//!   v1/c/<collection>/r/<id>        sources of a segment, for when it is damaged; those of a small
//!                                   segment in a bucket are in the manifest instead
//! ```
//! Invariants:
//! - A query uses exactly one [`Snapshot`]; all its files stay mapped until it is dropped.
//! - All live rows of a source are in one segment, so a source is visible whole or not at all.
//! - A damaged segment keeps its place in the manifest until each of its live sources is rebuilt,
//!   replaced or deleted. Until then every snapshot lists it.
//! - Of two operations on one source, the one with the higher sequence wins, whatever the order in
//!   which workers finish.
//! - A file is deleted only after the manifest that refers to it and after its last reader. Old
//!   manifests are deleted in ascending order; only the newest is kept, because readers pin files
//!   rather than manifests, and a deleted document should leave the disk soon.
//! - After a failed commit nothing is acknowledged until it is known whether the commit happened.
//!   On a disk that takes a restart, since a failed fsync must not be retried; a bucket is asked by
//!   the next writer (`takeover`).
//!
//! Modules:
//! - `manifest`, `log`: the format, and the commit as creation of a numbered file
//! - `edit`: operations; `draft`: applies them to a version without touching the disk; `commit`:
//!   writes the result
//! - `open`: recovery; `takeover`: claims the next number against other writers; `reading`: follows
//!   another process that writes
//! - `snapshot`: an open version; `by_time`: its sources in listing order; `kept`: cache of the
//!   rows that pass repeated filters
//! - `plan`: merge policy; `merge`, `gc`: background work
//! - `reembedding`: the same rows with vectors of another model, and the switch between the two
//! - `quarantine`: damaged segments; `source_list`: the list of sources beside each segment;
//!   `scrub`: reads everything to find damage; `verify`: does so for a collection that is not open
//! - `files`: the files of a version
//! - `registry`: open collections; `openings`: their openings beside the requests that wait for
//!   them; `uploads`: upload blobs; `layout`: keys of all files

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
mod openings;
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
pub use openings::Openings;
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

/// An open collection: one tenant's searchable data.
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
    /// Recently replaced versions: if another process is the writer, other nodes may still search
    /// them.
    earlier: Mutex<Vec<(Instant, Arc<Snapshot>)>>,
    writer: Mutex<WriterState>,
    /// Files that the newest manifest may not list. If both are locked, `writer` is locked first.
    pending_deletes: Mutex<Vec<PendingDelete>>,
    /// Inputs of merges in progress.
    merging: Mutex<Vec<SegmentId>>,
    /// Locked while all blocks are read; holds the version of which all blocks were intact.
    scrubbing: Mutex<Option<u64>>,
    /// Whether another process is the writer.
    only_reads: bool,
    poisoned: AtomicBool,
    /// Whether a commit that failed may nevertheless have created the newest manifest.
    in_doubt: AtomicBool,
}

/// State guarded by the writer's lock.
#[derive(Debug)]
struct WriterState {
    /// Jobs that are in the newest manifest and may not be marked in the catalog yet.
    applied: Vec<Sequence>,
}

impl Collection {
    /// Replaces the backend used for merges, by default the CPU.
    #[must_use]
    pub fn with_backend(self, backend: Arc<dyn ComputeBackend>) -> Self {
        Self { backend, ..self }
    }

    /// The collection's id.
    pub fn id(&self) -> CollectionId {
        self.id
    }

    /// The newest version. Costs one atomic load.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The newest commit, for the catalog's cross-check; `None` before the first.
    pub fn head(&self) -> Option<CommitHead> {
        let manifest = &self.snapshot().manifest;
        let head = CommitHead { version: manifest.version, nonce: manifest.nonce };
        (manifest.version > 0).then_some(head)
    }

    /// Closes the collection. Its files stay mapped until the returned versions are dropped.
    fn close(self) -> impl Iterator<Item = Arc<Snapshot>> {
        let earlier = self.earlier.into_inner().into_iter().map(|(_, snapshot)| snapshot);
        earlier.chain([self.snapshot.into_inner()])
    }

    /// Whether writes are refused because a commit failed.
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::SeqCst)
    }

    /// Whether the snapshot is known to be that of the newest manifest: not after a commit with an
    /// unknown outcome.
    pub fn knows_head(&self) -> bool {
        !self.is_poisoned() && !self.in_doubt.load(Ordering::SeqCst)
    }

    /// Writes fresh sources to a segment file that nothing refers to yet. Needs no lock. If no
    /// commit adds the file, it becomes garbage when the returned value is dropped. Costs four
    /// fsyncs: the segment, its source list, and the directory of each.
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

    /// Writes the live rows of a visible source, with a new record, to a segment file that nothing
    /// refers to yet. The caller holds the writer's lock, so that the rows stay live.
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

    /// Opens a segment file that was just written, writes its source list unless the segment's
    /// entry will contain it, and queues the files for deletion unless a commit lists the segment.
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

    /// Deletes a built segment file that will not be committed, without waiting for
    /// [`Self::collect_garbage`].
    ///
    /// # Errors
    /// Errors of the store; garbage collection or the next opening then deletes the file.
    pub fn discard(&self, segment: &Segment) -> Result<(), CollectionError> {
        Ok(self.store.delete_many(&self.files_of(segment.id()))?)
    }
}

#[cfg(test)]
mod tests;
