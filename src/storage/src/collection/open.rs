//! Opens a collection: reads the newest manifest, opens its segments, and deletes files that
//! nothing refers to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::collection::manifest::{Manifest, SegmentEntry};
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::{
    Collection, CollectionError, CommitLog, QuarantinedSegment, WriterState, layout,
};
use crate::segment::{Segment, SegmentError, TombstoneSet};
use lodestone_compute::SimdBackend;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{CollectionId, CommitHead, ErrorKind, IdSource, SegmentId, Sequence};

impl Collection {
    /// Opens the newest version. `expected` is the newest commit recorded in the catalog; a disk
    /// that has lost it is refused. A damaged segment is quarantined: the others serve, and the
    /// snapshot lists it.
    ///
    /// # Errors
    /// [`CollectionError::HeadMissing`] and [`CollectionError::BadManifest`] if the newest manifest
    /// is missing or damaged; nothing is deleted in that case. Errors of the store.
    pub fn open(
        id: CollectionId,
        store: Arc<dyn BlobStore>,
        ids: Arc<dyn IdSource>,
        epoch: u64,
        expected: Option<CommitHead>,
    ) -> Result<Self, CollectionError> {
        // Listed before the newest manifest is read. Nothing that a later epoch builds is in the
        // list, because its first opening commits a manifest, which fences this one.
        let files = store.list(&layout::collection_prefix(id))?;
        let is_shared = store.is_shared();
        let mut collection = Self::unopened(id, store, ids, epoch);
        let head = collection.log.head(id)?;
        check_head(id, &head, expected)?;
        let applied = unmarked(&head, expected);
        collection.writer.get_mut().applied.clone_from(&applied);
        let takes_over = is_shared && head.epoch < epoch;
        let head = match takes_over {
            true => collection.take_number(head, applied)?,
            false => head,
        };
        let snapshot = collection.load(head)?;
        // On a shared store, a file that no manifest lists may belong to another writer that is not
        // fenced yet. When this epoch first takes a number, all writers of earlier epochs are
        // fenced; those that open the collection later are not, so nothing is deleted when this
        // epoch opens it again.
        if snapshot.damaged.is_empty() && (takes_over || !is_shared) {
            collection.collect_orphans(&snapshot.manifest, &files);
        }
        collection.snapshot.store(Arc::new(snapshot));
        Ok(collection)
    }

    /// Constructs an empty collection, before any version is loaded.
    pub(super) fn unopened(
        id: CollectionId,
        store: Arc<dyn BlobStore>,
        ids: Arc<dyn IdSource>,
        epoch: u64,
    ) -> Self {
        let manifest = Manifest::empty(id);
        let empty = Snapshot { manifest, segments: Vec::new(), damaged: Vec::new() };
        Self {
            id,
            epoch,
            log: CommitLog::new(Arc::clone(&store)),
            store,
            ids,
            backend: Arc::new(SimdBackend),
            snapshot: ArcSwap::from_pointee(empty),
            earlier: Mutex::default(),
            writer: Mutex::new(WriterState { applied: Vec::new() }),
            pending_deletes: Mutex::default(),
            merging: Mutex::default(),
            scrubbing: Mutex::new(None),
            only_reads: false,
            poisoned: AtomicBool::new(false),
            in_doubt: AtomicBool::new(false),
        }
    }

    /// Counts the segments of a collection that has no manifest to tell which are live. A crash
    /// before the first commit leaves such segments, and so does the loss of the manifests.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn unlisted_segments(
        store: &dyn BlobStore,
        id: CollectionId,
    ) -> Result<usize, CollectionError> {
        match store.list(&layout::manifests(id))?.is_empty() {
            true => Ok(store.list(&layout::segments(id))?.len()),
            false => Ok(0),
        }
    }

    /// Opens the segments that a manifest lists and quarantines damaged ones.
    pub(super) fn load(&self, manifest: Manifest) -> Result<Snapshot, CollectionError> {
        self.load_with(manifest, |entry, error| {
            tracing::error!(collection = %self.id, %error, "segment quarantined");
            Ok(self.quarantine(entry, None))
        })
    }

    /// Opens all segments that a manifest lists, or fails.
    pub(super) fn load_whole(&self, manifest: Manifest) -> Result<Snapshot, CollectionError> {
        self.load_with(manifest, |_, error| Err(error))
    }

    fn load_with(
        &self,
        manifest: Manifest,
        on_damage: impl Fn(
            &SegmentEntry,
            CollectionError,
        ) -> Result<QuarantinedSegment, CollectionError>,
    ) -> Result<Snapshot, CollectionError> {
        let mut segments = Vec::with_capacity(manifest.segments.len());
        let mut damaged = Vec::new();
        let known = self.snapshot();
        let is_closed = |entry: &&SegmentEntry| find_open(&known, entry).is_none();
        let key = |entry: &SegmentEntry| layout::segment(self.id, SegmentId(entry.id));
        let missing: Vec<_> = manifest.segments.iter().filter(is_closed).map(key).collect();
        let _kept_until_opened = self.store.prefetch(&missing);
        for entry in &manifest.segments {
            match self.reuse_segment(entry, &known) {
                Ok(live) => segments.push(live),
                Err(error) if is_damage(&error) => {
                    damaged.push(Arc::new(on_damage(entry, error)?));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Snapshot { manifest, segments, damaged })
    }

    /// Reuses a segment that is open and intact in `known`, or opens its file.
    fn reuse_segment(
        &self,
        entry: &SegmentEntry,
        known: &Snapshot,
    ) -> Result<Arc<LiveSegment>, CollectionError> {
        match find_open(known, entry).filter(|live| live.segment.check().is_ok()) {
            None => Ok(Arc::new(self.load_segment(entry)?)),
            Some(live) if live.entry == *entry => Ok(Arc::clone(live)),
            Some(live) => {
                let (segment, dead) = (Arc::clone(&live.segment), self.read_dead(entry)?);
                Ok(Arc::new(LiveSegment::new(entry.clone(), segment, dead)))
            }
        }
    }

    /// Opens a segment with its tombstones, fetching it again if only a local copy is damaged.
    pub(super) fn load_segment(
        &self,
        entry: &SegmentEntry,
    ) -> Result<LiveSegment, CollectionError> {
        let key = layout::segment(self.id, SegmentId(entry.id));
        let segment = match self.open_segment(&entry.meta()) {
            // The damage may be limited to the local copy.
            Err(error) if is_damage(&error) && self.store.forget_copy(&key) => {
                tracing::warn!(collection = %self.id, %error, "a damaged cached copy is downloaded \
                    again");
                self.open_segment(&entry.meta())?
            }
            opened => opened?,
        };
        Ok(LiveSegment::new(entry.clone(), segment, self.read_dead(entry)?))
    }

    /// Reads and checks the tombstones of a segment.
    pub(super) fn read_dead(&self, entry: &SegmentEntry) -> Result<TombstoneSet, CollectionError> {
        let id = SegmentId(entry.id);
        let dead = match &entry.tombstones {
            None => TombstoneSet::default(),
            Some(file) => {
                let bytes = self.store.get(&layout::tombstone(self.id, file.id))?;
                TombstoneSet::decode(&bytes, self.id, id, file.checksum)?
            }
        };
        let counted = entry.tombstones.as_ref().map_or(0, |file| file.rows);
        let beyond = dead.rows.len() != counted
            || dead.rows.max() >= Some(entry.rows)
            || dead.sources.max() >= Some(entry.sources);
        if beyond {
            let problem = "tombstones name rows that are not there".to_owned();
            return Err(SegmentError::Damaged { segment: id.to_string(), problem }.into());
        }
        Ok(dead)
    }

    /// Opens a published segment file of this collection.
    ///
    /// # Errors
    /// As [`Segment::open`].
    pub fn open_segment(
        &self,
        meta: &crate::segment::SegmentMeta,
    ) -> Result<Arc<Segment>, CollectionError> {
        let key = layout::segment(self.id, meta.id);
        Ok(Arc::new(Segment::open(&*self.store, &key, self.id, meta)?))
    }

    /// Deletes old manifests, and those of `files` that a crash left behind. Only on opening, when
    /// no segment is being built. Files that cannot be deleted, for instance on a failed disk, stay
    /// until the next opening.
    fn collect_orphans(&self, manifest: &Manifest, files: &[Key]) {
        if let Err(error) = self.try_collect_orphans(manifest, files) {
            tracing::warn!(collection = %self.id, %error, "deleting left-over files failed");
        }
    }

    fn try_collect_orphans(
        &self,
        manifest: &Manifest,
        files: &[Key],
    ) -> Result<(), CollectionError> {
        self.log.collect(self.id, manifest.version)?;
        let listed: BTreeSet<Key> = manifest.files().into_iter().collect();
        let places = [layout::segments, layout::source_lists, layout::tombstones];
        let places = places.map(|place| format!("{}/", place(self.id)));
        let is_orphan = |key: &&Key| {
            !listed.contains(*key) && places.iter().any(|place| key.as_str().starts_with(place))
        };
        let orphans: Vec<Key> = files.iter().filter(is_orphan).cloned().collect();
        Ok(self.store.delete_many(&orphans)?)
    }
}

/// Finds the segment of an entry in a snapshot where it is open.
fn find_open<'a>(known: &'a Snapshot, entry: &SegmentEntry) -> Option<&'a Arc<LiveSegment>> {
    known.segments.iter().find(|live| live.entry.id == entry.id)
}

/// Jobs that the catalog may not have marked yet. There are none if the catalog knows the head,
/// because it records a head together with the head's jobs. Without this rule each opening would
/// carry the last batch into every later manifest.
fn unmarked(head: &Manifest, expected: Option<CommitHead>) -> Vec<Sequence> {
    let is_known = expected == Some(CommitHead { version: head.version, nonce: head.nonce });
    match is_known {
        true => Vec::new(),
        false => head.applied.iter().copied().map(Sequence).collect(),
    }
}

pub(super) fn is_damage(error: &CollectionError) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound)
}

pub(super) fn check_head(
    collection: CollectionId,
    head: &Manifest,
    expected: Option<CommitHead>,
) -> Result<(), CollectionError> {
    let Some(expected) = expected else { return Ok(()) };
    if head.version < expected.version {
        let (found, expected) = (head.version, expected.version);
        return Err(CollectionError::HeadMissing { collection, found, expected });
    }
    let found = match head.version - expected.version {
        0 => Some(&head.nonce),
        later => usize::try_from(later - 1).ok().and_then(|at| head.recent.get(at)),
    };
    // For a collection found without manifests, the catalog knows only that there was one.
    if !expected.nonce.is_nil() && found.is_some_and(|nonce| *nonce != expected.nonce) {
        let problem = "it does not descend from the committed one".to_owned();
        return Err(CollectionError::BadManifest { collection, version: head.version, problem });
    }
    Ok(())
}
