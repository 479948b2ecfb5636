//! Registry of open collections. They are opened on first use, and idle ones are closed when there
//! are too many.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::collection::{Collection, CollectionError};
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_io::store::BlobStore;
use lodestone_types::{CollectionId, CommitHead, ErrorKind, IdSource};

/// Time for which a listing of the open collections waits for the lock of one: longer than a
/// look-up holds it, shorter than an opening may take.
const SLOT_TIMEOUT: Duration = Duration::from_millis(10);
/// Time after the begin of an opening for which others wait for it, where the files come from
/// another machine: it may take minutes, and each that waits holds a thread.
const OPEN_WAIT: Duration = Duration::from_secs(1);

/// Opens collections and keeps the ones in use.
#[derive(Debug)]
pub struct Registry {
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    backend: Arc<dyn ComputeBackend>,
    /// None where another process writes.
    epoch: Option<u64>,
    open_max: usize,
    slots: Mutex<Slots>,
    /// Collections that were damaged when they were last to be opened.
    unopenable: Mutex<BTreeSet<CollectionId>>,
    /// Collections of which a later release had written the newest version, when that was last
    /// asked for.
    too_new: Mutex<BTreeSet<CollectionId>>,
}

#[derive(Debug, Default)]
struct Slots {
    by_id: BTreeMap<CollectionId, Slot>,
    uses: u64,
}

/// The lock inside lets one caller open a collection while others wait for that one only.
#[derive(Debug, Clone, Default)]
struct Slot {
    collection: Arc<Mutex<Option<Arc<Collection>>>>,
    /// Begin of the opening that is under way.
    opening: Arc<Mutex<Option<Instant>>>,
    last_use: u64,
}

impl Slot {
    /// Waits until the collection is open, or the caller is to open it; `None` where others open it
    /// and need longer than `wait`.
    fn lock(&self, wait: Option<Duration>) -> Option<MutexGuard<'_, Option<Arc<Collection>>>> {
        let Some(wait) = wait else { return Some(self.collection.lock()) };
        let opening = self.opening.lock().map_or(Duration::ZERO, |begun| begun.elapsed());
        self.collection.try_lock_for(wait.saturating_sub(opening))
    }
}

impl Registry {
    /// A registry over `store` that keeps at most about `open_max` idle collections open. `epoch`
    /// must be higher than that of every earlier process on the same data; without one collections
    /// are opened to read, while another process writes to them.
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

    /// The registry, with another backend for merges than the processor.
    #[must_use]
    pub fn with_backend(self, backend: Arc<dyn ComputeBackend>) -> Self {
        Self { backend, ..self }
    }

    /// The open collection; opens it if need be, and calls `expected` only then, and `opened` with
    /// it before anybody else gets it.
    ///
    /// # Errors
    /// As [`Collection::open`], and what `expected` and `opened` return. The next call tries again.
    /// [`CollectionError::Behind`] where others have fetched it for a second, and need longer.
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

    /// Collections that are kept open at most, once they are idle.
    pub fn open_max(&self) -> usize {
        self.open_max
    }

    /// Number of collections that could not be opened for damage when they were last asked for.
    pub fn unopenable(&self) -> usize {
        self.unopenable.lock().len()
    }

    /// Notes whether the newest version of a collection could be read, and tells once of one that
    /// a later release has written.
    pub fn note_format(&self, id: CollectionId, error: Option<&CollectionError>) {
        match error {
            Some(error) if error.is_too_new() => {
                if self.too_new.lock().insert(id) {
                    tracing::error!(collection = %id, %error, "of a later release: upgrade");
                }
            }
            Some(_) => {}
            None => drop(self.too_new.lock().remove(&id)),
        }
    }

    /// Number of collections of which a later release has written the newest version.
    pub fn too_new(&self) -> usize {
        self.too_new.lock().len()
    }

    fn slot(&self, id: CollectionId) -> Slot {
        let mut slots = self.slots.lock();
        slots.uses += 1;
        let now = slots.uses;
        if slots.by_id.len() >= self.open_max && !slots.by_id.contains_key(&id) {
            slots.close_idle(self.open_max / 2);
        }
        let slot = slots.by_id.entry(id).or_default();
        slot.last_use = now;
        slot.clone()
    }

    /// Forgets the collection of a deleted tenant for good; waits for whoever opens it now. Callers
    /// that still hold it continue and may write files, as long as what is returned can be
    /// upgraded. Opening it anew could mistake those for left-over ones.
    pub fn close(&self, id: CollectionId) -> Weak<Collection> {
        let slot = self.slots.lock().by_id.remove(&id);
        let held = slot.and_then(|slot| slot.collection.lock().take());
        self.unopenable.lock().remove(&id);
        self.too_new.lock().remove(&id);
        held.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// A collection, where it is open and not just being opened.
    pub fn find(&self, id: CollectionId) -> Option<Arc<Collection>> {
        let slot = Arc::clone(&self.slots.lock().by_id.get(&id)?.collection);
        slot.try_lock()?.clone()
    }

    /// Collections that are open now, in the order of their ids, without those that are being
    /// opened.
    pub fn open_collections(&self) -> Vec<Arc<Collection>> {
        let slots: Vec<_> =
            self.slots.lock().by_id.values().map(|slot| Arc::clone(&slot.collection)).collect();
        let held = slots.iter().filter_map(|slot| slot.try_lock_for(SLOT_TIMEOUT));
        held.filter_map(|held| held.clone()).collect()
    }
}

/// Closes a collection that has no other holder; returns whether none is open now.
///
/// Counting the holders would not be enough: background work keeps weak references, and one that is
/// upgraded after the count would work on files that the next opening takes for left-over ones. An
/// unwrapped collection cannot be upgraded. After a failed commit a collection stays open, so that
/// it knows that it does not know its newest manifest.
fn close_if_idle(held: &mut Option<Arc<Collection>>) -> bool {
    if held.as_ref().is_some_and(|collection| !collection.knows_head()) {
        return false;
    }
    let Some(collection) = held.take() else { return true };
    match Arc::try_unwrap(collection) {
        Ok(_closed) => true,
        Err(shared) => {
            *held = Some(shared);
            false
        }
    }
}

impl Slots {
    /// Closes idle collections, least recently used first, until `keep` are left.
    fn close_idle(&mut self, keep: usize) {
        let mut by_age: Vec<(u64, CollectionId)> =
            self.by_id.iter().map(|(id, slot)| (slot.last_use, *id)).collect();
        by_age.sort_unstable();
        for (_, id) in by_age {
            if self.by_id.len() <= keep {
                break;
            }
            let slot = &self.by_id[&id].collection;
            let is_idle = Arc::strong_count(slot) == 1
                && slot.try_lock().is_some_and(|mut held| close_if_idle(&mut held));
            if is_idle {
                self.by_id.remove(&id);
            }
        }
    }
}
