//! A cell that is initialized once, by one of the threads that request its value.

use std::fmt;
use std::sync::OnceLock as Cell;

use crate::locks::Mutex;

/// `std::sync::OnceLock`, reimplemented because the original would block the OS thread on which all
/// tasks run.
pub struct OnceLock<T> {
    cell: Cell<T>,
    setting: Mutex<()>,
}

impl<T> OnceLock<T> {
    /// Creates an empty cell.
    pub const fn new() -> Self {
        Self { cell: Cell::new(), setting: Mutex::new(()) }
    }

    /// Returns the value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.cell.get()
    }

    /// Returns the value, initializing it with `make` if there is none.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let _one_at_a_time = self.setting.lock();
        if self.cell.get().is_none() {
            let made = make();
            return self.cell.get_or_init(|| made);
        }
        self.cell.get_or_init(|| unreachable!("it has a value"))
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cell.fmt(f)
    }
}
