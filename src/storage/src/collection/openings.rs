//! Openings on threads of their own, on a shared store. Fetching the files of a collection may take
//! minutes, and a request that waited for all of them would hold one of the places that the
//! requests of every tenant share.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc::{SendError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::collection::registry::OPEN_WAIT;
use crate::collection::{Collection, CollectionError, Registry};
use lodestone_types::CollectionId;

/// Most openings at once. Each is a thread that mostly waits for the store.
const OPENINGS_MAX: usize = 256;

/// Openings in progress, at most one per collection.
#[derive(Debug)]
pub struct Openings {
    registry: Arc<Registry>,
    /// Whether opening a collection may take long.
    is_shared: bool,
    /// The start of each.
    begun: Mutex<BTreeMap<CollectionId, Instant>>,
    ended: Condvar,
}

/// Ends an opening when dropped, also after a panic.
struct Ending {
    openings: Arc<Openings>,
    id: CollectionId,
}

impl Openings {
    /// Creates the state for the collections of a registry.
    pub fn new(registry: &Arc<Registry>) -> Arc<Self> {
        let (registry, is_shared) = (Arc::clone(registry), registry.is_shared());
        let (begun, ended) = Default::default();
        Arc::new(Self { registry, is_shared, begun, ended })
    }

    /// Runs `open`, which gets a collection from the registry: here if that does not take long,
    /// otherwise on another thread, for which the caller waits at most a second from the start of
    /// the opening.
    ///
    /// # Errors
    /// Those of `open`. [`CollectionError::Behind`] if it takes longer, or if too many collections
    /// are being opened.
    pub fn open<E: From<CollectionError> + Display + Send + 'static>(
        self: &Arc<Self>,
        id: CollectionId,
        open: impl FnOnce() -> Result<Arc<Collection>, E> + Send + 'static,
    ) -> Result<Arc<Collection>, E> {
        self.open_within(id, OPEN_WAIT, open)
    }

    /// Like [`Self::open`], with another time to wait.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within<E: From<CollectionError> + Display + Send + 'static>(
        self: &Arc<Self>,
        id: CollectionId,
        wait: Duration,
        open: impl FnOnce() -> Result<Arc<Collection>, E> + Send + 'static,
    ) -> Result<Arc<Collection>, E> {
        if !self.is_shared {
            return open();
        }
        let behind = || E::from(CollectionError::Behind { collection: id });
        let until = Instant::now() + wait;
        let mut begun = self.begun.lock();
        loop {
            if self.registry.find(id).is_some() {
                drop(begun);
                return open();
            }
            let until = match begun.get(&id) {
                None if begun.len() < OPENINGS_MAX => break,
                None => until,
                Some(at) => until.min(*at + wait),
            };
            if self.ended.wait_until(&mut begun, until).timed_out() {
                return Err(behind());
            }
        }
        begun.insert(id, Instant::now());
        drop(begun);
        let ending = Ending { openings: Arc::clone(self), id };
        let (tell, told) = sync_channel(1);
        let run = move || {
            let opened = open();
            drop(ending);
            // The caller may have stopped waiting.
            if let Err(SendError(Err(error))) = tell.send(opened) {
                tracing::warn!(collection = %id, %error, "a collection was not opened");
            }
        };
        // Without a thread, `run` is dropped, and so is the sender.
        let _is_begun = Builder::new().name("open".to_owned()).spawn(run);
        told.recv_timeout(until.saturating_duration_since(Instant::now()))
            .unwrap_or_else(|_| Err(behind()))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.openings.begun.lock().remove(&self.id);
        self.openings.ended.notify_all();
    }
}
