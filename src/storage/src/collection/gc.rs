//! Garbage collection: deletes files that no version and no reader needs any longer.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use uuid::Uuid;

use crate::collection::manifest::Manifest;
use crate::collection::{Collection, CollectionError, layout};
use crate::segment::Segment;
use lodestone_io::store::Key;
use lodestone_types::{CollectionId, SegmentId};

/// A file that the newest version may not refer to: it was written for a commit that may never
/// happen, or a commit has dropped it.
#[derive(Debug)]
pub(super) struct PendingDelete {
    key: Key,
    /// The segment's source list, deleted together with it.
    list: Option<Key>,
    /// The open segment, if the file is one: builders and readers of older snapshots may still hold
    /// it.
    holder: Option<Weak<Segment>>,
}

impl PendingDelete {
    pub(super) fn of_segment(collection: CollectionId, segment: &Arc<Segment>) -> Self {
        let holder = Some(Arc::downgrade(segment));
        Self { holder, ..Self::of_lost_segment(collection, segment.id()) }
    }

    /// The files of a segment that could not be opened, or that nobody holds open.
    pub(super) fn of_lost_segment(collection: CollectionId, segment: SegmentId) -> Self {
        let key = layout::segment(collection, segment);
        Self { key, list: Some(layout::source_list(collection, segment)), holder: None }
    }

    pub(super) fn of_tombstones(collection: CollectionId, id: Uuid) -> Self {
        Self { key: layout::tombstone(collection, id), list: None, holder: None }
    }

    fn is_free(&self) -> bool {
        self.holder.as_ref().is_none_or(|segment| segment.strong_count() == 0)
    }
}

impl Collection {
    /// Deletes old manifests in ascending order, then the files that the newest one does not refer
    /// to and no reader holds, including those of failed commits. Returns the number of deleted
    /// files; a segment and its list count as one. Files still held are deleted by a later call.
    /// After a failed commit nothing is deleted, because the newest manifest is unknown. Writers do
    /// not wait while files are deleted.
    ///
    /// # Errors
    /// Errors of the store. Needed files are never deleted, and a later call continues.
    pub fn collect_garbage(&self) -> Result<usize, CollectionError> {
        let Some((version, free)) = self.take_garbage() else { return Ok(0) };
        // No later commit can list these files: names are never reused, and a writer about to list
        // a file that was never listed still holds it.
        let keys: BTreeSet<Key> = free.iter().map(|pending| pending.key.clone()).collect();
        let lists: BTreeSet<Key> = free.iter().filter_map(|pending| pending.list.clone()).collect();
        let files: Vec<Key> = keys.iter().chain(&lists).cloned().collect();
        let delete = || -> Result<usize, CollectionError> {
            let old_manifests = self.log.collect(self.id, version)?;
            self.store.delete_many(&files)?;
            Ok(old_manifests + keys.len())
        };
        let deleted = delete();
        if deleted.is_err() {
            self.pending_deletes.lock().extend(free);
        }
        deleted
    }

    /// Returns the newest version and removes from the queue the files that it does not list and
    /// nobody holds; the caller must delete them.
    fn take_garbage(&self) -> Option<(u64, Vec<PendingDelete>)> {
        // While the lock is held no commit is under way: every file is either listed or garbage.
        let _no_commit = self.writer.lock();
        if !self.knows_head() {
            return None;
        }
        let snapshot = self.snapshot();
        let listed = snapshot.manifest.files();
        let mut pending_deletes = self.pending_deletes.lock();
        pending_deletes.retain(|pending| listed.binary_search(&pending.key).is_err());
        let (free, held) = pending_deletes.drain(..).partition(PendingDelete::is_free);
        *pending_deletes = held;
        Some((snapshot.manifest.version, free))
    }

    /// Whether files wait for a later [`Self::collect_garbage`]: they are still held, or could not
    /// be deleted. False while the newest manifest is unknown, because nothing is deleted then.
    pub fn has_garbage(&self) -> bool {
        self.knows_head() && !self.pending_deletes.lock().is_empty()
    }

    /// Whether the collection can be closed without forgetting anything. After a failed commit it
    /// has to remember that its newest manifest is unknown. On a shared store, it has to remember
    /// its garbage, since only the first opening of an epoch looks for leftovers.
    pub(super) fn may_close(&self) -> bool {
        self.knows_head() && !(self.store.is_shared() && self.has_garbage())
    }
}

/// Files with vectors of another model that `base` lists and `next` does not.
pub(super) fn dropped(base: &Manifest, next: &Manifest) -> Vec<PendingDelete> {
    let id = CollectionId(base.collection);
    let mut pending = Vec::new();
    for old in base.other.iter().flat_map(|other| &other.segments) {
        let kept = next.all_segments().find(|entry| entry.id == old.id);
        if kept.is_none() {
            pending.push(PendingDelete::of_lost_segment(id, SegmentId(old.id)));
        }
        if let Some(dead) = &old.tombstones
            && kept.and_then(|entry| entry.tombstones.as_ref()) != Some(dead)
        {
            pending.push(PendingDelete::of_tombstones(id, dead.id));
        }
    }
    pending
}
