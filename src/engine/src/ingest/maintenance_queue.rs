//! The queue of collections for the background threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::ingest::Stopping;
use crate::ingest::maintenance::ROUND;
use lodestone_storage::collection::Collection;
use lodestone_types::CollectionId;

/// Scheduled work on one collection.
#[derive(Debug)]
struct Task {
    collection: Weak<Collection>,
    /// Whether the collection was just opened.
    is_first: bool,
    /// Earliest time of the work; `None` means at once.
    due_at: Option<Instant>,
}

/// Collections that may have something to merge or to delete.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    waiting: Mutex<BTreeMap<CollectionId, Task>>,
    pub(super) has_deleted_tenants: AtomicBool,
    /// Collections of deleted tenants that were still in use when they were closed.
    held: Mutex<BTreeMap<CollectionId, Weak<Collection>>>,
    woken: Condvar,
    /// Collections with a large merge.
    pub(super) large: ThreadQueue,
    /// Collections with lost sources to rebuild.
    pub(super) lost: ThreadQueue,
    /// Bytes of disk that running merges may still take.
    pub(super) promised_bytes: Mutex<u64>,
}

/// Collections handed to a thread of their own, which works on one at a time.
#[derive(Debug, Default)]
pub(super) struct ThreadQueue {
    state: Mutex<Handed>,
    woken: Condvar,
}

#[derive(Debug, Default)]
struct Handed {
    waiting: BTreeMap<CollectionId, Weak<Collection>>,
    /// The collection that the thread is working on.
    running: Option<CollectionId>,
}

impl Maintenance {
    /// Schedules a collection for soon.
    pub(super) fn wake(&self, collection: &Arc<Collection>) {
        self.add(collection, false, None);
    }

    /// Schedules a collection that was just opened.
    pub(super) fn wake_opened(&self, collection: &Arc<Collection>) {
        self.add(collection, true, None);
    }

    /// Schedules a collection again after [`ROUND`].
    pub(super) fn postpone(&self, collection: &Arc<Collection>) {
        self.add(collection, false, Some(Instant::now() + ROUND));
    }

    fn add(&self, collection: &Arc<Collection>, is_first: bool, due_at: Option<Instant>) {
        let mut waiting = self.waiting.lock();
        let fresh = Task { collection: Weak::new(), is_first, due_at };
        let task = waiting.entry(collection.id()).or_insert(fresh);
        task.collection = Arc::downgrade(collection);
        task.is_first |= is_first;
        // `None`, which means at once, is the minimum.
        task.due_at = task.due_at.min(due_at);
        self.woken.notify_one();
    }

    /// Waits up to [`ROUND`] for collections that are due; returns each with whether it was just
    /// opened.
    pub(super) fn take(&self, stopping: &Stopping) -> Vec<(Arc<Collection>, bool)> {
        let mut waiting = self.waiting.lock();
        let has_deleted_tenants = self.has_deleted_tenants.load(Ordering::SeqCst);
        let is_due = |task: &Task| task.due_at.is_none_or(|due_at| due_at <= Instant::now());
        if !waiting.values().any(is_due) && !has_deleted_tenants && !stopping.is_set() {
            self.woken.wait_for(&mut waiting, ROUND);
        }
        if !self.held.lock().is_empty() {
            self.has_deleted_tenants.store(true, Ordering::SeqCst);
        }
        let (due, later) =
            std::mem::take(&mut *waiting).into_iter().partition(|(_, task)| is_due(task));
        *waiting = later;
        let due: BTreeMap<CollectionId, Task> = due;
        let open = |task: Task| Some((task.collection.upgrade()?, task.is_first));
        due.into_values().filter_map(open).collect()
    }

    /// Whether the collection of a deleted tenant, which the registry has closed, is still in use.
    /// If so, [`Self::take`] has deleted tenants checked again.
    pub(super) fn is_held(&self, id: CollectionId, closed: Weak<Collection>) -> bool {
        let mut held = self.held.lock();
        if closed.strong_count() > 0 {
            held.insert(id, closed);
        }
        let is_held = held.get(&id).is_some_and(|collection| collection.strong_count() > 0);
        if !is_held {
            held.remove(&id);
        }
        is_held
    }

    /// Wakes all waiting threads.
    pub(super) fn interrupt(&self) {
        // Taken so that no thread is between its check of the flag and its wait.
        let _waiting = self.waiting.lock();
        self.woken.notify_all();
        self.large.interrupt();
        self.lost.interrupt();
    }
}

impl ThreadQueue {
    /// Hands a collection to the thread.
    pub(super) fn wake(&self, collection: &Arc<Collection>) {
        self.state.lock().waiting.insert(collection.id(), Arc::downgrade(collection));
        self.woken.notify_one();
    }

    /// Waits for a collection; `None` when the server stops. The caller must call [`Self::end`]
    /// afterwards.
    pub(super) fn take(&self, stopping: &Stopping) -> Option<Arc<Collection>> {
        let mut state = self.state.lock();
        while !stopping.is_set() {
            match state.waiting.pop_first() {
                Some((id, collection)) => {
                    if let Some(open) = collection.upgrade() {
                        state.running = Some(id);
                        return Some(open);
                    }
                }
                None => self.woken.wait(&mut state),
            }
        }
        None
    }

    /// Reports that the work taken by [`Self::take`] has ended.
    pub(super) fn end(&self) {
        self.state.lock().running = None;
    }

    /// Cancels pending work on a collection; returns whether none is running.
    pub(super) fn give_up(&self, id: CollectionId) -> bool {
        let mut state = self.state.lock();
        state.waiting.remove(&id);
        state.running != Some(id)
    }

    fn interrupt(&self) {
        let _state = self.state.lock();
        self.woken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_io::store::LocalBlobs;
    use lodestone_io::{DataDir, RealDisk};
    use lodestone_types::SeededIds;
    use uuid::Uuid;

    fn collection(root: &std::path::Path) -> Arc<Collection> {
        let data = DataDir::open(root, Arc::new(RealDisk)).unwrap();
        let (id, ids) = (CollectionId(Uuid::from_u128(7)), Arc::new(SeededIds::new(1)));
        let store = Arc::new(LocalBlobs::new(Arc::new(data)));
        Arc::new(Collection::open(id, store, ids, 1, None).unwrap())
    }

    /// Goal: files of a deleted tenant are deleted after the last merge has written, not before.
    #[test]
    fn a_large_merge_is_waited_for_or_given_up() {
        let root = tempfile::tempdir().unwrap();
        let (queue, stopping) = (Maintenance::default(), Stopping::default());
        let open = collection(root.path());
        queue.large.wake(&open);
        let taken = queue.large.take(&stopping).unwrap();
        assert!(!queue.large.give_up(taken.id()), "it is under way");
        queue.large.end();
        queue.large.wake(&open);
        assert!(queue.large.give_up(taken.id()));
        stopping.set();
        assert!(queue.large.take(&stopping).is_none(), "it was given up");
    }

    #[test]
    fn what_was_postponed_comes_later_and_what_was_woken_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (queue, stopping) = (Maintenance::default(), Stopping::default());
        let open = collection(root.path());
        // Set so that `take` does not block.
        stopping.set();
        queue.postpone(&open);
        assert!(queue.take(&stopping).is_empty());
        queue.wake(&open);
        queue.postpone(&open);
        assert_eq!(queue.take(&stopping).len(), 1);
        assert!(queue.take(&stopping).is_empty());
    }
}
