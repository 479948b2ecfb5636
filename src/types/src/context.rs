//! Limits of one request for blocking code: which tenant it belongs to, until when its answer is
//! useful, and whether anybody still waits for it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::CollectionId;

/// The memory that the result of one request may take.
pub trait ResultMemory: fmt::Debug + Send + Sync {
    /// Reserves more bytes for the result; returns whether they are available.
    fn reserve(&self, bytes: u64) -> bool;
}

/// Tenant, deadline, cancellation and memory of one request. Clones share the cancellation and the
/// memory.
///
/// Code that does a lot of work for a request calls [`Self::check`] between steps; code that blocks
/// waits no longer than [`Self::deadline`].
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    tenant: Option<CollectionId>,
    limit: Option<(Duration, Instant)>,
    cancel: CancellationToken,
    memory: Option<Arc<dyn ResultMemory>>,
}

/// The reason why work on a request stops before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Nobody waits for the answer any more.
    #[error("the client disconnected")]
    ClientGone,
    /// The request ran out of time.
    #[error("the request exceeded its time limit of {} s", limit.as_secs_f64())]
    DeadlineExceeded {
        /// The time limit of the request.
        limit: Duration,
    },
    /// The memory limit is in use by other requests.
    #[error("the server's memory-limit is in use by other large requests")]
    OutOfMemory,
}

impl RequestContext {
    /// Creates a request that may take `limit`, starting now.
    pub fn with_limit(limit: Duration) -> Self {
        Self::default().limited(limit)
    }

    fn limited(self, limit: Duration) -> Self {
        Self { limit: Instant::now().checked_add(limit).map(|until| (limit, until)), ..self }
    }

    /// Returns a copy of the request attributed to the tenant with this collection.
    #[must_use]
    pub fn of_tenant(&self, collection: CollectionId) -> Self {
        Self { tenant: Some(collection), ..self.clone() }
    }

    /// Returns a copy of the request with a fresh time limit, for use after waiting on a party that
    /// has limits of its own.
    #[must_use]
    pub fn restarted(&self) -> Self {
        match self.limit {
            Some((limit, _)) => self.clone().limited(limit),
            None => self.clone(),
        }
    }

    /// Draws the memory of the result on `memory`; without this it is not limited.
    #[must_use]
    pub fn with_memory(self, memory: Arc<dyn ResultMemory>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Reserves memory for a part of the result, until the request is over.
    ///
    /// # Errors
    /// [`Stopped::OutOfMemory`] if it is not available.
    pub fn reserve(&self, bytes: u64) -> Result<(), Stopped> {
        match self.memory.as_ref().is_none_or(|memory| memory.reserve(bytes)) {
            true => Ok(()),
            false => Err(Stopped::OutOfMemory),
        }
    }

    /// The tenant; `None` for the server's own work.
    pub fn tenant(&self) -> Option<CollectionId> {
        self.tenant
    }

    /// The moment at which the time limit expires; `None` without a limit.
    pub fn deadline(&self) -> Option<Instant> {
        self.limit.map(|(_, until)| until)
    }

    /// The moment at which `1 / parts` of the remaining time has passed; `None` without a limit.
    pub fn part_of_rest(&self, parts: u32) -> Option<Instant> {
        let now = Instant::now();
        self.deadline().map(|until| now + until.saturating_duration_since(now) / parts)
    }

    /// The cancellation token of the request.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Checks whether the work should continue.
    ///
    /// # Errors
    /// [`Stopped`] once nobody waits any more or the deadline has passed.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.cancel.is_cancelled() {
            return Err(Stopped::ClientGone);
        }
        match self.limit {
            Some((limit, until)) if Instant::now() >= until => {
                Err(Stopped::DeadlineExceeded { limit })
            }
            _ => Ok(()),
        }
    }
}

/// A one-shot cancellation token. Cancellation is permanent; clones share it.
#[derive(Clone, Default)]
pub struct CancellationToken(Arc<Shared>);

/// Cancels its token on drop; held for as long as the client listens.
#[derive(Debug)]
pub struct CancellationGuard(CancellationToken);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    hooks: Vec<Box<dyn FnOnce() + Send>>,
}

impl CancellationToken {
    /// Cancels the token and runs every registered hook on the calling thread.
    pub fn cancel(&self) {
        let hooks = {
            let mut state = self.0.state.lock();
            state.is_cancelled = true;
            std::mem::take(&mut state.hooks)
        };
        self.0.changed.notify_all();
        for hook in hooks {
            hook();
        }
    }

    /// Whether the token has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.state.lock().is_cancelled
    }

    /// Runs `hook` on cancellation, or immediately if the token is already cancelled.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        if state.is_cancelled {
            drop(state);
            hook();
        } else {
            state.hooks.push(Box::new(hook));
        }
    }

    /// Blocks for `time` or until cancellation; returns whether the token is cancelled.
    pub fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        while !state.is_cancelled && !self.0.changed.wait_until(&mut state, until).timed_out() {}
        state.is_cancelled
    }

    /// Returns a guard that cancels this token on drop.
    pub fn on_drop(&self) -> CancellationGuard {
        CancellationGuard(self.clone())
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancellationToken").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn hooks_run_once_whenever_they_come() {
        let runs = Arc::new(AtomicUsize::new(0));
        let hook = || {
            let runs = Arc::clone(&runs);
            move || {
                runs.fetch_add(1, Ordering::SeqCst);
            }
        };
        let cancel = CancellationToken::default();
        cancel.on_cancel(hook());
        assert!(!cancel.wait(Duration::from_millis(1)));
        assert_eq!(runs.load(Ordering::SeqCst), 0);
        drop(cancel.on_drop());
        cancel.cancel();
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        cancel.clone().on_cancel(hook());
        assert_eq!(runs.load(Ordering::SeqCst), 2);
        assert!(cancel.is_cancelled() && cancel.wait(Duration::from_secs(60)));
    }

    #[test]
    fn a_request_ends_with_its_client_or_its_time() {
        let hour = RequestContext::with_limit(Duration::from_secs(3600));
        assert_eq!(hour.check(), Ok(()));
        let over = RequestContext::with_limit(Duration::ZERO);
        let exceeded = Stopped::DeadlineExceeded { limit: Duration::ZERO };
        assert_eq!(over.check(), Err(exceeded));
        assert_eq!(over.restarted().check(), Err(exceeded), "its time is none at all");
        let endless = RequestContext::with_limit(Duration::MAX);
        assert_eq!((endless.check(), endless.deadline()), (Ok(()), None));
        assert_eq!(endless.part_of_rest(4), None);
        let quarter = hour.part_of_rest(4).unwrap().saturating_duration_since(Instant::now());
        assert!((800..=900).contains(&quarter.as_secs()), "{quarter:?}");
        assert!(over.part_of_rest(4).unwrap() <= Instant::now(), "there is no rest");
        let tenant = CollectionId(uuid::Uuid::from_u128(7));
        let same = hour.of_tenant(tenant);
        assert_eq!((same.tenant(), hour.tenant()), (Some(tenant), None));
        drop(hour.cancel().on_drop());
        assert_eq!(same.restarted().check(), Err(Stopped::ClientGone));
    }
}
