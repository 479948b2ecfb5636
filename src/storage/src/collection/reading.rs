//! Collections that another process writes and this one only reads.
//!
//! A new version is loaded beside the previous one: segments that both list stay open. If files are
//! missing they were collected because a later version no longer needs them, so that version is
//! loaded instead. Nothing is ever written or deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::collection::commit::REBASES_MAX;
use crate::collection::manifest::Manifest;
use crate::collection::open::is_damage;
use crate::collection::{Collection, CollectionError, Snapshot, layout};
use lodestone_io::store::BlobStore;
use lodestone_types::{CollectionId, CommitHead, IdSource, SegmentId};

/// Longest time that a reader waits while another one loads a version.
const LOAD_WAIT: Duration = Duration::from_secs(1);
/// Time for which a version is kept after it was replaced: a search that another process began on
/// it usually ends sooner.
pub(super) const EARLIER: Duration = Duration::from_secs(3);
/// Most versions kept this way.
const EARLIER_MAX: usize = 8;

/// A replaced version and the time of its replacement.
type Earlier = (Instant, Arc<Snapshot>);

impl Collection {
    /// Opens the newest version for reading. `expected` is the newest commit recorded in the
    /// catalog.
    ///
    /// # Errors
    /// As [`Collection::open`].
    pub fn open_to_read(
        id: CollectionId,
        store: Arc<dyn BlobStore>,
        ids: Arc<dyn IdSource>,
        expected: Option<CommitHead>,
    ) -> Result<Self, CollectionError> {
        let mut collection = Self::unopened(id, store, ids, 0);
        collection.only_reads = true;
        collection.load_newest(expected)?;
        Ok(collection)
    }

    /// Loads the newest version if the open one is older than `wanted` or damaged.
    ///
    /// # Errors
    /// [`CollectionError::Behind`] if another thread is loading it and takes longer than a second;
    /// errors of the store, in which case the previous version stays open.
    pub fn refresh(&self, wanted: Option<CommitHead>) -> Result<(), CollectionError> {
        let is_wanted = || {
            let snapshot = self.snapshot();
            let is_new = wanted.is_none_or(|head| head.version <= snapshot.manifest.version);
            is_new && snapshot.check().is_ok()
        };
        if is_wanted() {
            return Ok(());
        }
        let loading = self.writer.try_lock_for(LOAD_WAIT);
        let _loading = loading.ok_or(CollectionError::Behind { collection: self.id })?;
        match is_wanted() {
            true => Ok(()),
            false => self.load_newest(wanted),
        }
    }

    /// The version with this number, if it is the newest one loaded or was replaced only recently.
    pub fn snapshot_at(&self, version: u64) -> Option<Arc<Snapshot>> {
        let newest = self.snapshot();
        if newest.manifest.version == version {
            return Some(newest);
        }
        let earlier = self.earlier.lock();
        let found = earlier.iter().rev().find(|(_, one)| one.manifest.version == version);
        found.map(|(_, snapshot)| Arc::clone(snapshot))
    }

    /// Drops versions that were kept long enough, together with local copies of files that no other
    /// version has.
    pub fn forget_earlier(&self) {
        let mut earlier = self.earlier.lock();
        let is_due = |(replaced, _): &(Instant, _)| replaced.elapsed() >= EARLIER;
        let (due, kept): (Vec<_>, Vec<_>) = earlier.drain(..).partition(is_due);
        *earlier = kept;
        self.give_up(&earlier, &due);
    }

    /// Drops the local copies of segments that are listed only by dropped versions.
    fn give_up(&self, kept: &[Earlier], given_up: &[Earlier]) {
        let newest = self.snapshot();
        let listed = kept.iter().map(|(_, one)| one).chain([&newest]);
        let listed = listed.flat_map(|one| one.manifest.all_segments().map(|entry| entry.id));
        let listed: BTreeSet<Uuid> = listed.collect();
        let all = given_up.iter().flat_map(|(_, one)| one.manifest.all_segments());
        for entry in all.filter(|entry| !listed.contains(&entry.id)) {
            self.store.forget_copy(&layout::segment(self.id, SegmentId(entry.id)));
        }
    }

    fn load_newest(&self, expected: Option<CommitHead>) -> Result<(), CollectionError> {
        for _ in 0..REBASES_MAX {
            let head = self.log.checked_head(self.id, expected)?;
            let loaded = match self.load_whole(head.clone()) {
                Err(error) if is_damage(&error) => match self.is_newest(&head)? {
                    true => self.load(head)?,
                    false => continue,
                },
                loaded => loaded?,
            };
            let before = self.snapshot.swap(Arc::new(loaded));
            let mut earlier = self.earlier.lock();
            earlier.push((Instant::now(), before));
            if earlier.len() > EARLIER_MAX {
                let oldest = earlier.remove(0);
                self.give_up(&earlier, &[oldest]);
            }
            return Ok(());
        }
        Err(CollectionError::Behind { collection: self.id })
    }

    fn is_newest(&self, head: &Manifest) -> Result<bool, CollectionError> {
        Ok(self.log.head(self.id)?.nonce == head.nonce)
    }
}
