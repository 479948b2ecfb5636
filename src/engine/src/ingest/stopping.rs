//! The end of the threads of the pipeline.

use std::fmt;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A flag that ends waits.
#[derive(Default)]
pub(super) struct Stopping {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stopping {
    pub(super) fn is_set(&self) -> bool {
        *self.is_set.lock()
    }

    pub(super) fn set(&self) {
        *self.is_set.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for `time`, or less if the flag is set meanwhile.
    pub(super) fn wait(&self, time: Duration) {
        let mut is_set = self.is_set.lock();
        if !*is_set {
            self.changed.wait_for(&mut is_set, time);
        }
    }
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stopping").field(&self.is_set()).finish()
    }
}
