//! Deleting what no version and no reader needs any more.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use uuid::Uuid;

use crate::collection::{Collection, CollectionError, Manifest, layout};
use crate::segment::Segment;
use lodestone_io::store::Key;
use lodestone_types::{CollectionId, SegmentId};

/// A file that the newest version may not refer to: it was written for a commit that has not come
/// yet, perhaps never will, or a commit has dropped it.
#[derive(Debug)]
pub(super) struct Grave {
    key: Key,
    /// The list beside a segment, which goes with it.
    list: Option<Key>,
    /// The open segment, if the file is one: builders and readers of older snapshots may hold it.
    holder: Option<Weak<Segment>>,
}

impl Grave {
    pub(super) fn of_segment(collection: CollectionId, segment: &Arc<Segment>) -> Self {
        let holder = Some(Arc::downgrade(segment));
        Self { holder, ..Self::of_lost_segment(collection, segment.id()) }
    }

    /// A segment that could not be opened, or is not held by anybody who needs its name.
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
    /// Deletes old manifests in ascending order, then the files that the newest does not refer to
    /// and that no reader holds, those of commits that failed included. Returns how many went; a
    /// segment counts together with its list.
    /// What is still held goes at a later call. After a failed commit nothing is deleted: it is
    /// open which manifest is the newest.
    ///
    /// # Errors
    /// What the store says; nothing that is needed is ever deleted, and a later call goes on.
    pub fn collect_garbage(&self) -> Result<usize, CollectionError> {
        // No commit is under way while this is held: what it has written is listed, or is garbage.
        let _no_commit = self.writer.lock();
        if self.is_poisoned() {
            return Ok(0);
        }
        let snapshot = self.snapshot();
        let old_manifests = self.log.collect(self.id, snapshot.manifest.version)?;
        let listed = self.listed(&snapshot.manifest);
        let mut graves = self.graves.lock();
        graves.retain(|grave| !listed.contains(&grave.key));
        let is_free = |grave: &&Grave| grave.is_free();
        let free: BTreeSet<Key> =
            graves.iter().filter(is_free).map(|grave| grave.key.clone()).collect();
        let lists: BTreeSet<Key> =
            graves.iter().filter(is_free).filter_map(|grave| grave.list.clone()).collect();
        let files: Vec<Key> = free.iter().chain(&lists).cloned().collect();
        self.store.delete_many(&files)?;
        graves.retain(|grave| !free.contains(&grave.key));
        Ok(old_manifests + free.len())
    }

    fn listed(&self, manifest: &Manifest) -> BTreeSet<Key> {
        let segments = manifest.segments.iter();
        let files = segments.clone().map(|entry| layout::segment(self.id, SegmentId(entry.id)));
        let dead = segments.filter_map(|entry| entry.tombstones.as_ref());
        files.chain(dead.map(|file| layout::tombstone(self.id, file.id))).collect()
    }
}
