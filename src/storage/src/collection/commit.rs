//! Commits: the only way to change a collection.
//!
//! 1. Segment files are published beforehand, under fresh names.
//! 2. The tombstones of changed segments are written under fresh names: one fsync each and one for
//!    the directory.
//! 3. Manifest N + 1 is created, unless another writer has created it: two fsyncs.
//!    **This is the commit.**
//! 4. The snapshot is swapped: the change becomes visible in all respects at once.
//! 5. The caller marks its jobs in the catalog as done, still holding the writer's lock.
//!
//! A crash before step 3 leaves files that nothing refers to; the next opening removes them. A
//! crash after step 3 leaves a job that the next attempt finds in the manifest's `applied`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use crate::collection::draft::{Draft, DraftSegment, NextSegment};
use crate::collection::edit::{Edit, Outcome};
use crate::collection::gc::dropped;
use crate::collection::log::Commit;
use crate::collection::manifest::{Manifest, SegmentEntry, TombstoneEntry};
use crate::collection::snapshot::Snapshot;
use crate::collection::{Collection, CollectionError, PendingDelete, WriterState, layout};
use lodestone_io::store::Key;
use lodestone_types::{SegmentId, Sequence};

/// Times that a commit is rebased on the head of another writer before it fails.
pub(super) const REBASES_MAX: usize = 8;

/// The writer's lock of a collection, held while a change is decided on, committed and marked in
/// the catalog.
pub struct Writer<'a> {
    pub(super) collection: &'a Collection,
    pub(super) state: MutexGuard<'a, WriterState>,
}

impl Collection {
    /// Waits for the writer's lock. Segments found damaged in the meantime are quarantined first,
    /// so that no decision relies on their content.
    ///
    /// # Errors
    /// [`CollectionError::ReadOnly`] if another process is the writer,
    /// [`CollectionError::Poisoned`] after a failed commit, [`CollectionError::Quarantined`] while
    /// the contents of a damaged segment are unknown, because a commit could not tell what it
    /// replaces. Errors of finding out whether a commit in doubt has happened.
    pub fn writer(&self) -> Result<Writer<'_>, CollectionError> {
        let state = self.writer.lock();
        let collection = self.id;
        if self.only_reads {
            return Err(CollectionError::ReadOnly { collection });
        }
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(CollectionError::Poisoned { collection });
        }
        let mut writer = Writer { collection: self, state };
        if self.in_doubt.load(Ordering::SeqCst) {
            writer.settle_doubt()?;
        }
        self.quarantine_noticed(&writer.state);
        self.require_known()?;
        Ok(writer)
    }

    /// Refuses changes while it is unknown which sources a damaged segment held.
    ///
    /// # Errors
    /// [`CollectionError::Quarantined`].
    pub fn require_known(&self) -> Result<(), CollectionError> {
        match self.snapshot().unknown_segments() {
            0 => Ok(()),
            segments => Err(CollectionError::Quarantined { collection: self.id, segments }),
        }
    }
}

impl Writer<'_> {
    /// The version that the next commit builds on.
    pub fn base(&self) -> Arc<Snapshot> {
        self.collection.snapshot()
    }

    /// Makes `edit` durable and visible. Returns its effects.
    ///
    /// # Errors
    /// [`CollectionError::OtherModel`] if the vectors come from a different model than the visible
    /// ones. Nothing has changed after this error, after disk errors before the commit point
    /// (except failed syncs), after errors of reading the visible sources, and after damage of a
    /// segment that the edit was derived from. Any other error poisons the collection: it refuses
    /// writes, and reads continue on the previous version. The exception is a bucket that did not
    /// answer: the next writer first finds out whether the commit happened. After
    /// [`CollectionError::InDoubt`] the change may be durable.
    pub fn commit(&mut self, edit: &Edit) -> Result<Outcome, CollectionError> {
        let base = self.base();
        if edit
            .embedding
            .as_ref()
            .is_some_and(|made_by| base.manifest.foreign_model(made_by).is_some())
        {
            return Err(CollectionError::OtherModel { collection: self.collection.id });
        }
        let draft = Draft::new(&base, edit)?;
        check_read(&base, edit)?;
        let result = self.try_commit(edit, base, draft);
        // If the doubt can be settled, `doubted` has already recorded it.
        if let Err(error) = &result
            && error.leaves_doubt()
            && !error.can_be_settled()
            && self.collection.knows_head()
        {
            tracing::error!(collection = %self.collection.id, %error, "commit failed: poisoned");
            self.poison();
        }
        result
    }

    /// Converts the error of a commit for its caller and, if the outcome is in doubt, records that
    /// the newest manifest is unknown.
    pub(super) fn doubted(&mut self, error: CollectionError) -> CollectionError {
        if !error.leaves_doubt() {
            return error;
        }
        let remedy = match error.can_be_settled() {
            true => {
                self.collection.in_doubt.store(true, Ordering::SeqCst);
                "the next write will show"
            }
            false => "restart the server",
        };
        let (collection, cause) = (self.collection.id, error.to_string());
        CollectionError::InDoubt { collection, cause, remedy }
    }

    /// Drops jobs from `applied` once their success is durable in the catalog.
    pub fn forget_applied(&mut self, marked: &[Sequence]) {
        self.state.applied.retain(|sequence| !marked.contains(sequence));
    }

    /// Starts the manifest that follows `base`, with the same contents.
    pub(super) fn next_of(&self, base: &Snapshot) -> Manifest {
        let mut next = base.manifest.next(self.collection.ids.uuid(), self.collection.epoch);
        next.applied = self.state.applied.iter().map(|sequence| sequence.0).collect();
        next
    }

    /// Makes the collection refuse all further commits.
    pub(super) fn poison(&self) {
        self.collection.poisoned.store(true, Ordering::SeqCst);
    }

    fn try_commit(
        &mut self,
        edit: &Edit,
        mut base: Arc<Snapshot>,
        mut draft: Draft,
    ) -> Result<Outcome, CollectionError> {
        let collection = self.collection;
        for _ in 0..REBASES_MAX {
            let mut next = self.next_of(&base);
            next.segments = self.write_tombstones(&draft.segments)?;
            next.applied.extend(edit.applied.iter().map(|sequence| sequence.0));
            if edit.embedding.is_some() {
                next.embedding.clone_from(&edit.embedding);
            }
            next.min_reader = next.reader_needed();
            next.newest_sequence = Some(edit.newest_sequence().max(base.newest_sequence()).0);
            // Nothing written before this point is referred to by a manifest.
            let committed = collection.log.commit(&base.manifest, &next);
            match committed.map_err(|error| self.doubted(error))? {
                Commit::Done => {
                    self.state.applied.extend(&edit.applied);
                    self.publish(&base, next_snapshot(next, draft.segments));
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

    /// Opens another writer's version to build on. It must be complete: a segment missing from the
    /// draft would be missing from the next manifest.
    fn rebase(&mut self, head: Manifest) -> Result<Arc<Snapshot>, CollectionError> {
        let base = self.collection.load(head)?;
        let segments = base.unknown_segments();
        if segments > 0 {
            let collection = self.collection.id;
            return Err(CollectionError::Quarantined { collection, segments });
        }
        let theirs = base.manifest.applied.iter().copied().map(Sequence);
        let unknown: Vec<Sequence> =
            theirs.filter(|sequence| !self.state.applied.contains(sequence)).collect();
        self.state.applied.extend(unknown);
        Ok(Arc::new(base))
    }

    /// Writes the tombstones that changed and returns the entries of the next manifest.
    pub(super) fn write_tombstones(
        &self,
        segments: &[DraftSegment],
    ) -> Result<Vec<SegmentEntry>, CollectionError> {
        let collection = self.collection;
        let mut files: Vec<(Key, Vec<u8>)> = Vec::new();
        let mut entries = Vec::with_capacity(segments.len());
        for part in segments {
            let mut entry = part.entry(collection)?;
            if part.is_changed() {
                let id = collection.ids.uuid();
                let (bytes, checksum) = part.dead.encode(collection.id, part.id());
                files.push((layout::tombstone(collection.id, id), bytes));
                collection
                    .pending_deletes
                    .lock()
                    .push(PendingDelete::of_tombstones(collection.id, id));
                entry.tombstones =
                    Some(TombstoneEntry { id, checksum, rows: part.dead.rows.len() });
            }
            entries.push(entry);
        }
        let files: Vec<(Key, &[u8])> =
            files.iter().map(|(key, bytes)| (key.clone(), bytes.as_slice())).collect();
        collection.store.put_many(&files)?;
        Ok(entries)
    }

    /// Swaps the snapshot and queues files that the new one does not refer to for deletion.
    pub(super) fn publish(&self, base: &Snapshot, next: Snapshot) {
        let collection = self.collection;
        let live = base.segments.iter().map(|old| (&old.entry, Some(&old.segment)));
        let lost = base.damaged.iter().map(|old| (&old.entry, None));
        let mut pending_deletes = collection.pending_deletes.lock();
        pending_deletes.extend(dropped(&base.manifest, &next.manifest));
        for (old, segment) in live.chain(lost) {
            let kept = next.manifest.segments.iter().find(|entry| entry.id == old.id);
            match segment {
                _ if kept.is_some() => {}
                Some(segment) => {
                    pending_deletes.push(PendingDelete::of_segment(collection.id, segment))
                }
                None => pending_deletes
                    .push(PendingDelete::of_lost_segment(collection.id, SegmentId(old.id))),
            }
            if let Some(dead) = &old.tombstones
                && kept.and_then(|entry| entry.tombstones.as_ref()) != Some(dead)
            {
                pending_deletes.push(PendingDelete::of_tombstones(collection.id, dead.id));
            }
        }
        drop(pending_deletes);
        collection.snapshot.store(Arc::new(next));
    }
}

/// Refuses an edit that may derive from unreadable bytes: damage noticed since the lock was taken,
/// in a segment of the base or in an input of a merge.
fn check_read(base: &Snapshot, edit: &Edit) -> Result<(), CollectionError> {
    base.check()?;
    let mut inputs = edit.replace.iter().flat_map(|replacement| &replacement.inputs);
    Ok(inputs.try_for_each(|live| live.segment.check())?)
}

/// Builds the snapshot of a manifest that was just committed.
pub(super) fn next_snapshot(manifest: Manifest, segments: Vec<DraftSegment>) -> Snapshot {
    let (mut live, mut damaged) = (Vec::with_capacity(segments.len()), Vec::new());
    for (part, entry) in segments.into_iter().zip(&manifest.segments) {
        match part.into_next(entry.clone()) {
            NextSegment::Live(segment) => live.push(segment),
            NextSegment::Lost(segment) => damaged.push(segment),
        }
    }
    Snapshot { manifest, segments: live, damaged }
}
