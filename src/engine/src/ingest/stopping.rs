//! The waits of background threads: for their end, and for times.

use std::fmt;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use lodestone_types::Timestamp;

/// Whether work is due that comes after so many milliseconds each time. A time that is further off
/// than that was set by a clock that was ahead.
pub(crate) fn is_due(due_at: Timestamp, now: Timestamp, every_millis: u64) -> bool {
    due_at <= now || due_at > now.plus_millis(every_millis)
}

/// A flag that ends waits.
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

    /// Waits for `time`, or less if the flag is set meanwhile; returns whether it is.
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
