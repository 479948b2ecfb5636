//! The mutex and condition variable of `parking_lot`. As in the original, panics do not poison.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Uncontended, PoisonError};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync as scheduled;
use shuttle::thread::{Thread, current, park, yield_now};

use crate::explore::{Timeouts, timeouts};
use crate::time::Instant;

/// Maximum number of steps of other threads between the start of a wait and its timeout.
const STEPS_MAX: usize = 8;

/// A mutex.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(scheduled::Mutex<T>);

/// The guard of a locked mutex.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `None` only while the mutex is temporarily unlocked.
    locked: Option<scheduled::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(scheduled::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let locked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex: self, locked: Some(locked) }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let locked = match self.0.try_lock() {
            Ok(locked) => locked,
            Err(std::sync::TryLockError::Poisoned(poison)) => poison.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: self, locked: Some(locked) })
    }

    /// Waits for the lock up to a time limit.
    pub fn try_lock_for(&self, time: Duration) -> Option<MutexGuard<'_, T>> {
        match timeouts() {
            Timeouts::Never => Some(self.lock()),
            Timeouts::Any => {
                let locked = self.try_lock();
                if locked.is_none() {
                    (Instant::now() + time).await_it();
                }
                locked
            }
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(locked) => f.debug_tuple("Mutex").field(&&*locked).finish(),
            None => f.write_str("Mutex(<locked>)"),
        }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Runs `work` while the mutex is temporarily unlocked.
    pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        struct Again<'g, 'a, T: ?Sized>(&'g mut MutexGuard<'a, T>);
        impl<T: ?Sized> Drop for Again<'_, '_, T> {
            fn drop(&mut self) {
                self.0.locked = self.0.mutex.lock().locked.take();
            }
        }
        drop(guard.locked.take());
        let _again = Again(guard);
        work()
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.locked.as_ref().expect("it is locked again before anybody looks")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.locked.as_mut().expect("it is locked again before anybody looks")
    }
}

/// A condition variable. Waits with a time limit may end early under [`Timeouts::Any`].
#[derive(Default)]
pub struct Condvar {
    waiters: Uncontended<Vec<Arc<Waiter>>>,
    /// Accessed wherever the scheduler may switch to another thread.
    step: scheduled::atomic::AtomicBool,
}

struct Waiter {
    thread: Thread,
    is_woken: AtomicBool,
}

/// The result of a wait with a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait ended without being notified.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable without waiters.
    pub const fn new() -> Self {
        let step = scheduled::atomic::AtomicBool::new(false);
        Self { waiters: Uncontended::new(Vec::new()), step }
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Waiter>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a random waiter; returns whether there was one.
    pub fn notify_one(&self) -> bool {
        self.step.load(Ordering::SeqCst);
        let count = self.waiters().len();
        if count == 0 {
            return false;
        }
        let chosen = if count == 1 { 0 } else { thread_rng().gen_range(0..count) };
        let waiter = self.waiters().remove(chosen);
        waiter.wake();
        true
    }

    /// Wakes all waiters; returns their number.
    pub fn notify_all(&self) -> usize {
        self.step.load(Ordering::SeqCst);
        let waiters = std::mem::take(&mut *self.waiters());
        waiters.iter().for_each(|waiter| waiter.wake());
        waiters.len()
    }

    /// Waits until notified.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_up_to(guard, None);
    }

    /// Waits until notified, or until a deadline.
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        until: Instant,
    ) -> WaitTimeoutResult {
        self.wait_up_to(guard, Some(until))
    }

    /// Waits until notified, or until a time limit.
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        time: Duration,
    ) -> WaitTimeoutResult {
        self.wait_up_to(guard, Some(Instant::now() + time))
    }

    /// Waits while a condition holds, up to a time limit.
    pub fn wait_while_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut holds: impl FnMut(&mut T) -> bool,
        time: Duration,
    ) -> WaitTimeoutResult {
        let until = Instant::now() + time;
        let mut result = WaitTimeoutResult(false);
        while !result.0 && holds(guard) {
            result = self.wait_until(guard, until);
        }
        WaitTimeoutResult(result.0 && holds(guard))
    }

    fn wait_up_to<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        until: Option<Instant>,
    ) -> WaitTimeoutResult {
        self.step.load(Ordering::SeqCst);
        let waiter = Arc::new(Waiter { thread: current(), is_woken: AtomicBool::new(false) });
        self.waiters().push(Arc::clone(&waiter));
        MutexGuard::unlocked(guard, || match until {
            Some(until) if timeouts() == Timeouts::Any => {
                // A wait whose deadline has passed ends at once.
                let steps = match Instant::now() < until {
                    true => thread_rng().gen_range(0..STEPS_MAX),
                    false => 0,
                };
                (0..steps).take_while(|_| !waiter.is_woken()).for_each(|_| yield_now());
                self.waiters().retain(|one| !Arc::ptr_eq(one, &waiter));
                if !waiter.is_woken() {
                    until.await_it();
                }
            }
            _ => {
                while !waiter.is_woken() {
                    park();
                }
            }
        });
        WaitTimeoutResult(!waiter.is_woken())
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

impl Waiter {
    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Relaxed)
    }

    fn wake(&self) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}
