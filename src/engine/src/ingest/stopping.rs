//! The end of background threads.

use std::fmt;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

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
