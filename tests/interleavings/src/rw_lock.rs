//! `parking_lot`'s lock for many readers or one writer.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use shuttle::sync as scheduled;

/// The lock.
#[derive(Default)]
pub struct RwLock<T: ?Sized>(scheduled::RwLock<T>);

/// The lock of a reader.
pub struct RwLockReadGuard<'a, T: ?Sized>(scheduled::RwLockReadGuard<'a, T>);

/// The lock of a writer.
pub struct RwLockWriteGuard<'a, T: ?Sized>(scheduled::RwLockWriteGuard<'a, T>);

impl<T> RwLock<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> Self {
        Self(scheduled::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until nobody reads or writes.
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
