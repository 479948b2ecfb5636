//! The read-write lock of `parking_lot`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use shuttle::sync as scheduled;

/// A read-write lock.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(scheduled::RwLock<T>);

/// The guard of a reader.
pub struct RwLockReadGuard<'a, T: ?Sized>(scheduled::RwLockReadGuard<'a, T>);

/// The guard of a writer.
pub struct RwLockWriteGuard<'a, T: ?Sized>(scheduled::RwLockWriteGuard<'a, T>);

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(scheduled::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until there are no readers and no writer.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: ?Sized> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock")
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
