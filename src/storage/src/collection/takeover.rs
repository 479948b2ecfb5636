//! Taking over a collection: claims the next manifest number against other writers.
//!
//! A process presumed lost may only have been suspended and write again, and a commit of this
//! process that got no answer may still happen. Either could take the next number at any time. This
//! process therefore takes it first, with a manifest of unchanged contents: a later attempt finds
//! the number taken, by a later epoch. From then on, no other writer can need files that existed
//! before and that the manifest does not list.

use std::sync::atomic::Ordering;

use crate::collection::commit::REBASES_MAX;
use crate::collection::log::Commit;
use crate::collection::manifest::Manifest;
use crate::collection::{Collection, CollectionError, Writer};
use lodestone_types::Sequence;

impl Collection {
    /// Commits the contents of the newest version, which is `head` or a later one, under the next
    /// number and the epoch of this process. `applied` are the jobs of `head` that may not be
    /// marked in the catalog yet.
    ///
    /// # Errors
    /// [`CollectionError::Fenced`] if a later epoch has taken over; errors of the store.
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
    /// Finds out whether a commit that got no answer has happened, and builds on it if so.
    ///
    /// # Errors
    /// Errors of the store; the next writer then tries again.
    pub(super) fn settle_doubt(&mut self) -> Result<(), CollectionError> {
        let (collection, base) = (self.collection, self.base());
        let known = self.state.applied.clone();
        let newest = collection.take_number(base.manifest.clone(), known)?;
        self.state.applied = newest.applied.iter().copied().map(Sequence).collect();
        let next = collection.load(newest)?;
        self.publish(&base, next);
        collection.in_doubt.store(false, Ordering::SeqCst);
        tracing::info!(collection = %collection.id, "resolved a commit with an unknown outcome");
        Ok(())
    }
}
