//! The wish that work for a client ends, from whoever notices that the client has gone.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// A wish to stop that is made at most once and never taken back. Clones share it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

/// Wishes to stop when it is dropped: held by whatever lives as long as the client listens.
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

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

impl Cancel {
    /// Makes the wish; everything that was registered for it runs now.
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

    /// Whether the wish was made.
    pub fn is_cancelled(&self) -> bool {
        self.0.state.lock().is_cancelled
    }

    /// Runs `hook` when the wish is made, at once if it was.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        if state.is_cancelled {
            drop(state);
            hook();
        } else {
            state.hooks.push(Box::new(hook));
        }
    }

    /// Waits for as long, less if the wish is made; says whether it was.
    pub fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.0.state.lock();
        while !state.is_cancelled && !self.0.changed.wait_until(&mut state, until).timed_out() {}
        state.is_cancelled
    }

    /// What makes the wish when it is dropped.
    pub fn on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
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
        let cancel = Cancel::default();
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
