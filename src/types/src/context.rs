//! The bounds of one request, for code that blocks: whose it is, until when its answer is worth
//! making, and whether anybody still waits for it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::CollectionId;

/// The tenant, the deadline and the cancellation of one request. Clones share the cancellation.
///
/// Code that does much work for a request looks at it between the steps ([`Self::check`]); code
/// that waits does so until [`Self::deadline`] at most.
#[derive(Debug, Clone, Default)]
pub struct RequestContext {
    tenant: Option<CollectionId>,
    limit: Option<(Duration, Instant)>,
    cancel: CancellationToken,
}

/// Why the work for a request ends before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// Nobody waits for the answer.
    #[error("the client has gone")]
    ClientGone,
    /// The time for the request is over.
    #[error("the request was not done after {} s, the most that it may take", limit.as_secs_f64())]
    DeadlineExceeded {
        /// Time that it had.
        limit: Duration,
    },
}

impl RequestContext {
    /// A request that may take `limit` from now on.
    pub fn with_limit(limit: Duration) -> Self {
        Self::default().limited(limit)
    }

    fn limited(self, limit: Duration) -> Self {
        Self { limit: Instant::now().checked_add(limit).map(|until| (limit, until)), ..self }
    }

    /// A copy of the request, known to be of the tenant with this collection.
    #[must_use]
    pub fn of_tenant(&self, collection: CollectionId) -> Self {
        Self { tenant: Some(collection), ..self.clone() }
    }

    /// A copy of the request whose time limit begins anew: after a wait for another party, which
    /// has limits of its own.
    #[must_use]
    pub fn restarted(&self) -> Self {
        match self.limit {
            Some((limit, _)) => self.clone().limited(limit),
            None => self.clone(),
        }
    }

    /// The tenant; `None` for work of the server's own.
    pub fn tenant(&self) -> Option<CollectionId> {
        self.tenant
    }

    /// The moment at which its time is over.
    pub fn deadline(&self) -> Option<Instant> {
        self.limit.map(|(_, until)| until)
    }

    /// The moment at which one of `parts` of the time that is left is over; `None` without a limit.
    pub fn part_of_rest(&self, parts: u32) -> Option<Instant> {
        let now = Instant::now();
        self.deadline().map(|until| now + until.saturating_duration_since(now) / parts)
    }

    /// Its cancellation.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Stopped`] once nobody waits any more, or the time is over.
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

/// A cancellation token: cancelled at most once, for good. Clones share it.
#[derive(Clone, Default)]
pub struct CancellationToken(Arc<Shared>);

/// Cancels its token when it is dropped: held as long as the client listens.
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
    /// Cancels; every registered hook runs now.
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

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.state.lock().is_cancelled
    }

    /// Runs `hook` at the cancellation, at once if that has happened.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        if state.is_cancelled {
            drop(state);
            hook();
        } else {
            state.hooks.push(Box::new(hook));
        }
    }

    /// Sleeps for `time`, or until it is cancelled; returns whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        while !state.is_cancelled && !self.0.changed.wait_until(&mut state, until).timed_out() {}
        state.is_cancelled
    }

    /// A guard that cancels when it is dropped.
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
