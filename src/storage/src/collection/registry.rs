//! Registry of open collections. Opens them on first use and closes idle ones when too many are
//! open.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::collection::{Collection, CollectionError, Snapshot};
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_io::store::BlobStore;
use lodestone_types::{CollectionId, CommitHead, ErrorKind, IdSource};

/// Longest time that a listing of the open collections waits for the lock of one: longer than a
/// look-up holds it, shorter than an opening may take.
const SLOT_TIMEOUT: Duration = Duration::from_millis(10);
/// Time from the start of an opening for which other callers wait for it, on a shared store.
/// Fetching the files may take minutes, and each waiting caller blocks a thread.
pub(super) const OPEN_WAIT: Duration = Duration::from_secs(1);

/// Opens collections and keeps those in use.
#[derive(Debug)]
pub struct Registry {
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    backend: Arc<dyn ComputeBackend>,
    /// `None` if another process is the writer.
    epoch: Option<u64>,
    open_max: usize,
    slots: Mutex<Slots>,
    /// Collections that were damaged at the last attempt to open them.
    unopenable: Mutex<BTreeSet<CollectionId>>,
    /// Collections whose newest version was written by a later release, when last looked at.
    too_new: Mutex<BTreeSet<CollectionId>>,
}

#[derive(Debug, Default)]
struct Slots {
    by_id: BTreeMap<CollectionId, Slot>,
    uses: u64,
}

/// Place of one collection. Its inner lock lets one caller open the collection while only callers
/// of the same collection wait.
#[derive(Debug, Clone, Default)]
struct Slot {
    collection: Arc<Mutex<Option<Arc<Collection>>>>,
    /// Start of the opening in progress.
    opening: Arc<Mutex<Option<Instant>>>,
    last_use: u64,
}

impl Slot {
    /// Waits until the collection is open or the caller may open it; `None` if another caller is
    /// opening it and takes longer than `wait`.
    fn lock(&self, wait: Option<Duration>) -> Option<MutexGuard<'_, Option<Arc<Collection>>>> {
        let Some(wait) = wait else { return Some(self.collection.lock()) };
        let opening = self.opening.lock().map_or(Duration::ZERO, |begun| begun.elapsed());
        self.collection.try_lock_for(wait.saturating_sub(opening))
    }
}

impl Registry {
    /// Creates a registry over `store` that keeps about `open_max` collections open. `epoch` must
    /// be higher than that of every earlier process on the same data; without an epoch, collections
    /// are opened read-only, while another process writes to them.
    pub fn new(
        store: Arc<dyn BlobStore>,
        ids: Arc<dyn IdSource>,
        epoch: impl Into<Option<u64>>,
        open_max: usize,
    ) -> Self {
        let backend = Arc::new(SimdBackend);
        let (slots, unopenable, too_new) = Default::default();
        let epoch = epoch.into();
        Self { store, ids, backend, epoch, open_max, slots, unopenable, too_new }
    }

    /// Replaces the backend used for merges, by default the CPU.
    #[must_use]
    pub fn with_backend(self, backend: Arc<dyn ComputeBackend>) -> Self {
        Self { backend, ..self }
    }

    /// Returns the collection, opening it if needed. Only then are `expected`, for the newest
    /// commit in the catalog, and `opened` called; the latter before any other caller gets the
    /// collection.
    ///
    /// # Errors
    /// As [`Collection::open`], and whatever `expected` and `opened` return. The next call tries
    /// again. [`CollectionError::Behind`] if another caller is fetching it and takes longer than a
    /// second.
    pub fn get<E: From<CollectionError>>(
        &self,
        id: CollectionId,
        expected: impl FnOnce() -> Result<Option<CommitHead>, E>,
        opened: impl FnOnce(&Collection) -> Result<(), E>,
    ) -> Result<Arc<Collection>, E> {
        let slot = self.slot(id);
        let wait = self.store.is_shared().then_some(OPEN_WAIT);
        let mut held = slot.lock(wait).ok_or(CollectionError::Behind { collection: id })?;
        if let Some(collection) = &*held {
            return Ok(Arc::clone(collection));
        }
        *slot.opening.lock() = Some(Instant::now());
        let collection = self.open(id, expected, opened);
        *slot.opening.lock() = None;
        Ok(Arc::clone(held.insert(collection?)))
    }

    fn open<E: From<CollectionError>>(
        &self,
        id: CollectionId,
        expected: impl FnOnce() -> Result<Option<CommitHead>, E>,
        opened: impl FnOnce(&Collection) -> Result<(), E>,
    ) -> Result<Arc<Collection>, E> {
        let (store, ids) = (Arc::clone(&self.store), Arc::clone(&self.ids));
        let found = match self.epoch {
            Some(epoch) => Collection::open(id, store, ids, epoch, expected()?),
            None => Collection::open_to_read(id, store, ids, expected()?),
        };
        match &found {
            Err(error) if error.kind() == ErrorKind::Corrupt => self.unopenable.lock().insert(id),
            _ => self.unopenable.lock().remove(&id),
        };
        self.note_format(id, found.as_ref().err());
        let collection = Arc::new(found?.with_backend(Arc::clone(&self.backend)));
        opened(&collection)?;
        Ok(collection)
    }

    /// Whether files are fetched from another machine, so that opening a collection may take long.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Number of open collections from which idle ones are closed.
    pub fn open_max(&self) -> usize {
        self.open_max
    }

    /// Number of collections that were damaged at the last attempt to open them.
    pub fn unopenable(&self) -> usize {
        self.unopenable.lock().len()
    }

    /// Records whether the newest version of a collection could be read, and logs once if it was
    /// written by a later release.
    pub fn note_format(&self, id: CollectionId, error: Option<&CollectionError>) {
        match error {
            Some(error) if error.is_too_new() => {
                if self.too_new.lock().insert(id) {
                    tracing::error!(collection = %id, %error, "a collection is of a later release: \
                        upgrade");
                }
            }
            Some(_) => {}
            None => drop(self.too_new.lock().remove(&id)),
        }
    }

    /// Number of collections whose newest version was written by a later release.
    pub fn too_new(&self) -> usize {
        self.too_new.lock().len()
    }

    fn slot(&self, id: CollectionId) -> Slot {
        let mut slots = self.slots.lock();
        slots.uses += 1;
        let now = slots.uses;
        let mut closed = Vec::new();
        if slots.by_id.len() >= self.open_max && !slots.by_id.contains_key(&id) {
            closed = slots.close_idle(self.open_max / 2);
        }
        let slot = slots.by_id.entry(id).or_default();
        slot.last_use = now;
        let slot = slot.clone();
        drop(slots);
        // Their files are unmapped here, without the lock that all callers need.
        drop(closed);
        slot
    }

    /// Removes the collection of a deleted tenant for good, waiting for an opening in progress.
    /// Callers that still hold it continue and may write files, as long as the returned reference
    /// can be upgraded. Opening the collection again meanwhile could mistake those files for
    /// leftovers.
    pub fn close(&self, id: CollectionId) -> Weak<Collection> {
        let slot = self.slots.lock().by_id.remove(&id);
        let held = slot.and_then(|slot| slot.collection.lock().take());
        self.unopenable.lock().remove(&id);
        self.too_new.lock().remove(&id);
        held.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// The collection, if it is open and not locked by another caller.
    pub fn find(&self, id: CollectionId) -> Option<Arc<Collection>> {
        let slot = Arc::clone(&self.slots.lock().by_id.get(&id)?.collection);
        slot.try_lock()?.clone()
    }

    /// The open collections in the order of their ids, without those that are being opened.
    pub fn open_collections(&self) -> Vec<Arc<Collection>> {
        let slots: Vec<_> =
            self.slots.lock().by_id.values().map(|slot| Arc::clone(&slot.collection)).collect();
        let held = slots.iter().filter_map(|slot| slot.try_lock_for(SLOT_TIMEOUT));
        held.filter_map(|held| held.clone()).collect()
    }
}

/// Closes a collection that has no other holder; returns whether none is open now. Its versions go
/// to `closed`.
///
/// Counting the holders would not be enough: background work keeps weak references, and one
/// upgraded after the count would work on files that the next opening takes for leftovers. An
/// unwrapped collection cannot be upgraded.
fn close_if_idle(held: &mut Option<Arc<Collection>>, closed: &mut Vec<Arc<Snapshot>>) -> bool {
    if held.as_ref().is_some_and(|collection| !collection.may_close()) {
        return false;
    }
    let Some(collection) = held.take() else { return true };
    match Arc::try_unwrap(collection) {
        Ok(collection) => {
            closed.extend(collection.close());
            true
        }
        Err(shared) => {
            *held = Some(shared);
            false
        }
    }
}

impl Slots {
    /// Closes idle collections, least recently used first, until `keep` are left. Returns their
    /// versions, which keep files mapped until they are dropped.
    fn close_idle(&mut self, keep: usize) -> Vec<Arc<Snapshot>> {
        let mut closed = Vec::new();
        let mut by_age: Vec<(u64, CollectionId)> =
            self.by_id.iter().map(|(id, slot)| (slot.last_use, *id)).collect();
        by_age.sort_unstable();
        for (_, id) in by_age {
            if self.by_id.len() <= keep {
                break;
            }
            let slot = &self.by_id[&id].collection;
            let is_idle = Arc::strong_count(slot) == 1
                && slot.try_lock().is_some_and(|mut held| close_if_idle(&mut held, &mut closed));
            if is_idle {
                self.by_id.remove(&id);
            }
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_io::store::testing::MemoryBlobs;
    use lodestone_types::SeededIds;
    use uuid::Uuid;

    /// Goal: nobody waits for the lock of all collections while files are unmapped.
    #[test]
    fn versions_outlive_the_lock_under_which_they_are_closed() {
        let store = Arc::<MemoryBlobs>::default();
        let registry = Registry::new(store, Arc::new(SeededIds::new(1)), 1, 4);
        let id = CollectionId(Uuid::from_u128(7));
        let opened = registry.get(id, || Ok::<_, CollectionError>(None), |_| Ok(())).unwrap();
        let version = Arc::downgrade(&opened.snapshot());
        let collection = Arc::downgrade(&opened);
        drop(opened);
        let closed = registry.slots.lock().close_idle(0);
        assert!(registry.find(id).is_none() && collection.upgrade().is_none());
        assert!(version.upgrade().is_some());
        drop(closed);
        assert!(version.upgrade().is_none());
    }
}
