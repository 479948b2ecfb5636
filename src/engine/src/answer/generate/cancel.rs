//! Cancellation of work for a client that has gone, for code that blocks.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

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
}
