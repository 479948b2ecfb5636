//! Interruptible waits of background threads, and due times.

use std::fmt;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use lodestone_types::Timestamp;

/// Whether work that recurs every `every_millis` is due. A due time further ahead than that was set
/// while the clock was wrong, and counts as due.
pub(crate) fn is_due(due_at: Timestamp, now: Timestamp, every_millis: u64) -> bool {
    due_at <= now || due_at > now.plus_millis(every_millis)
}

/// A flag that ends waits when it is set.
#[derive(Default)]
pub(crate) struct Stopping {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stopping {
    pub(crate) fn is_set(&self) -> bool {
        *self.is_set.lock()
    }

    pub(crate) fn set(&self) {
        *self.is_set.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for `time`, or until the flag is set; returns whether it is set.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let mut is_set = self.is_set.lock();
        self.changed.wait_while_for(&mut is_set, |is_set| !*is_set, time);
        *is_set
    }
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stopping").field(&self.is_set()).finish()
    }
}
