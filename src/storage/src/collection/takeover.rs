//! Keeping other writers from the next number of a collection.
//!
//! Another machine may write, because it was taken for lost and has only slept; and an own commit
//! that got no answer may happen yet. Either can take the next number at any time. A manifest with
//! the same contents takes it first: whoever tries to then finds it taken, and a later epoch in it.
//! After that, files that were there before and that it does not list are nobody's.

use std::sync::atomic::Ordering;

use crate::collection::commit::REBASES_MAX;
use crate::collection::log::Commit;
use crate::collection::manifest::Manifest;
use crate::collection::{Collection, CollectionError, Writer};
use lodestone_types::Sequence;

impl Collection {
    /// Commits the contents of the newest version, which is `head` or a later one, under the next
    /// number and our epoch. `applied` are the jobs of `head` that may not be marked yet.
    ///
    /// # Errors
    /// [`CollectionError::Fenced`] by a later epoch; errors of the store.
    pub(super) fn take_number(
        &self,
        mut head: Manifest,
        applied: Vec<Sequence>,
    ) -> Result<Manifest, CollectionError> {
        head.applied = applied.iter().map(|sequence| sequence.0).collect();
        for _ in 0..REBASES_MAX {
            let next = head.next(self.ids.uuid(), self.epoch);
            match self.log.commit(&head, &next)? {
                Commit::Done => return Ok(next),
                Commit::Conflict(later) => head = *later,
                Commit::Fenced => break,
            }
        }
        Err(CollectionError::Fenced { collection: self.id })
    }
}

impl Writer<'_> {
    /// Finds out whether a commit without an answer has happened, and builds on it if it has.
    ///
    /// # Errors
    /// Errors of the store, after which the next writer tries again.
    pub(super) fn settle_doubt(&mut self) -> Result<(), CollectionError> {
        let (collection, base) = (self.collection, self.base());
        let known = self.state.applied.clone();
        let newest = collection.take_number(base.manifest.clone(), known)?;
        self.state.applied = newest.applied.iter().copied().map(Sequence).collect();
        let next = collection.load(newest)?;
        self.publish(&base, next);
        collection.in_doubt.store(false, Ordering::SeqCst);
        tracing::info!(collection = %collection.id, "a commit without an answer is settled");
        Ok(())
    }
}
