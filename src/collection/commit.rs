//! The one way to change a collection.
//!
//! 1. segment files are published beforehand, under fresh names
//! 2. tombstones of changed segments, under fresh names: one fsync each and one for the directory
//! 3. manifest N + 1, created only if nobody else has: two fsyncs. **This is the commit.**
//! 4. the snapshot is swapped: the change is visible in every way at once
//! 5. the caller marks its jobs, still under the writer's lock
//!
//! A crash before 3 leaves files that nothing refers to; opening collects them. A crash after 3
//! leaves a job that the next attempt finds in `applied`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use crate::collection::edit::{Draft, Edit, Outcome};
use crate::collection::log::Commit;
use crate::collection::manifest::{Manifest, TombstoneEntry};
use crate::collection::snapshot::{LiveSegment, Snapshot};
use crate::collection::{Collection, CollectionError, Grave, WriterState, layout};
use crate::store::Key;
use crate::types::Sequence;

/// How often a commit is rebased on the head of another writer before it gives up.
const REBASES_MAX: usize = 8;

/// The right to commit, held across deciding, committing and marking.
pub struct Writer<'a> {
    collection: &'a Collection,
    state: MutexGuard<'a, WriterState>,
}

impl Collection {
    /// Waits for the writer's lock.
    ///
    /// # Errors
    /// [`CollectionError::Poisoned`] after a failed commit, [`CollectionError::Quarantined`] while
    /// a segment is damaged: a commit then could not know what it replaces.
    pub fn writer(&self) -> Result<Writer<'_>, CollectionError> {
        let state = self.writer.lock();
        let collection = self.id;
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(CollectionError::Poisoned { collection });
        }
        let damaged = self.snapshot().damaged.len();
        if damaged > 0 {
            return Err(CollectionError::Quarantined { collection, segments: damaged });
        }
        Ok(Writer { collection: self, state })
    }
}

impl Writer<'_> {
    /// The version that the next commit builds upon.
    pub fn base(&self) -> Arc<Snapshot> {
        self.collection.snapshot()
    }

    /// Makes `edit` durable and visible. Returns what it removed.
    ///
    /// # Errors
    /// `StorageFull` where the disk filled before the commit point, and whatever
    /// reading the visible sources says: nothing has changed then. After any other failure the
    /// collection is poisoned, because it is open whether the change is durable: it refuses
    /// writes, and reads go on with the version before.
    pub fn commit(&mut self, edit: &Edit) -> Result<Outcome, CollectionError> {
        let base = self.base();
        let draft = Draft::new(&base, edit)?;
        let result = self.try_commit(edit, base, draft);
        if let Err(error) = &result
            && error.leaves_doubt()
        {
            tracing::error!(collection = %self.collection.id, %error, "commit failed: poisoned");
            self.collection.poisoned.store(true, Ordering::SeqCst);
        }
        result
    }

    /// Jobs whose success is now durable in the catalog need not be remembered any longer.
    pub fn forget_applied(&mut self, marked: &[Sequence]) {
        self.state.applied.retain(|sequence| !marked.contains(sequence));
    }

    fn try_commit(
        &mut self,
        edit: &Edit,
        mut base: Arc<Snapshot>,
        mut draft: Draft,
    ) -> Result<Outcome, CollectionError> {
        let collection = self.collection;
        for _ in 0..REBASES_MAX {
            let mut next = base.manifest.next(collection.ids.uuid(), collection.epoch);
            let segments = self.write_tombstones(&draft, &mut next)?;
            next.applied = self.state.applied.iter().map(|sequence| sequence.0).collect();
            next.applied.extend(edit.applied.iter().map(|sequence| sequence.0));
            if edit.embedding.is_some() {
                next.embedding.clone_from(&edit.embedding);
            }
            match collection.log.commit(&base.manifest, &next)? {
                Commit::Done => {
                    self.state.applied.extend(&edit.applied);
                    let manifest = next;
                    let next = Snapshot { manifest, segments, damaged: Vec::new() };
                    self.publish(&base, next);
                    return Ok(draft.outcome);
                }
                Commit::Conflict(head) => {
                    base = self.rebase(*head)?;
                    draft = Draft::new(&base, edit)?;
                }
                Commit::Fenced => break,
            }
        }
        Err(CollectionError::Fenced { collection: collection.id })
    }

    /// Opens the version of another writer to build upon. It must be whole: what is missing from
    /// the draft would be missing from the next manifest.
    fn rebase(&mut self, head: Manifest) -> Result<Arc<Snapshot>, CollectionError> {
        let base = self.collection.load(head)?;
        if !base.damaged.is_empty() {
            let (collection, segments) = (self.collection.id, base.damaged.len());
            return Err(CollectionError::Quarantined { collection, segments });
        }
        let theirs = base.manifest.applied.iter().copied().map(Sequence);
        let unknown: Vec<Sequence> =
            theirs.filter(|sequence| !self.state.applied.contains(sequence)).collect();
        self.state.applied.extend(unknown);
        Ok(Arc::new(base))
    }

    fn write_tombstones(
        &self,
        draft: &Draft,
        next: &mut Manifest,
    ) -> Result<Vec<Arc<LiveSegment>>, CollectionError> {
        let collection = self.collection;
        let mut files: Vec<(Key, Vec<u8>)> = Vec::new();
        let mut segments = Vec::with_capacity(draft.segments.len());
        next.segments.clear();
        for part in &draft.segments {
            let mut entry = part.entry();
            if part.is_changed() {
                let id = collection.ids.uuid();
                let (bytes, checksum) = part.dead.encode(collection.id, part.segment.id());
                files.push((layout::tombstone(collection.id, id), bytes));
                collection.graves.lock().push(Grave::of_tombstones(collection.id, id));
                entry.tombstones =
                    Some(TombstoneEntry { id, checksum, rows: part.dead.rows.len() });
            }
            next.segments.push(entry.clone());
            segments.push(match &part.base {
                Some(base) if !part.is_changed() => Arc::clone(base),
                _ => {
                    let (segment, dead) = (Arc::clone(&part.segment), part.dead.clone());
                    Arc::new(LiveSegment::new(entry, segment, dead))
                }
            });
        }
        let files: Vec<(Key, &[u8])> =
            files.iter().map(|(key, bytes)| (key.clone(), bytes.as_slice())).collect();
        collection.store.put_many(&files)?;
        Ok(segments)
    }

    /// Swaps the snapshot and remembers the files that the new one does not refer to.
    fn publish(&self, base: &Snapshot, next: Snapshot) {
        let collection = self.collection;
        let mut graves = collection.graves.lock();
        for old in &base.segments {
            let kept = next.manifest.segments.iter().find(|entry| entry.id == old.entry.id);
            if kept.is_none() {
                graves.push(Grave::of_segment(collection.id, &old.segment));
            }
            if let Some(dead) = &old.entry.tombstones
                && kept.and_then(|entry| entry.tombstones.as_ref()) != Some(dead)
            {
                graves.push(Grave::of_tombstones(collection.id, dead.id));
            }
        }
        drop(graves);
        collection.snapshot.store(Arc::new(next));
    }
}
