//! Stand-ins for the standard library, `parking_lot` and parts of `tokio` under the names that the
//! product uses, whose locks, threads, channels and atomics are controlled by a [`shuttle`]
//! scheduler.
//!
//! ```text
//! checks/NAME.rs   extern crate interleavings as std, as parking_lot, as tokio
//!    | #[path]     src/.../queue.rs of the product, unchanged
//!    v
//! explore          each check many times, each time in another order of steps
//! ```
//! A check includes the source that it checks, and substitutes the rest of the crate around it. One
//! thread runs at a time, and another may take over at every lock, atomic and channel; the results
//! thus hold for sequentially consistent memory. The product uses weaker orderings only for
//! counters, and for flags that publish nothing else.
//!
//! - `explore`: runs checks; `locks`, `rw_lock`: `parking_lot`; `time`: a clock advanced by
//!   timeouts
//! - `sync`, `thread`, `once_lock`: the standard library; `oneshot`: `tokio`

mod explore;
mod locks;
mod once_lock;
pub mod oneshot;
mod rw_lock;
pub mod thread;
pub mod time;

pub use ::std::*;
pub use explore::{Check, Timeouts, explore, is_chosen};
pub use locks::{Condvar, Mutex, MutexGuard, WaitTimeoutResult};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The synchronization primitives of the standard library, and those of `tokio`.
pub mod sync {
    pub use crate::once_lock::OnceLock;
    pub use crate::oneshot;
    pub use shuttle::sync::{atomic, mpsc};
    pub use std::sync::{Arc, LazyLock, Weak};
}
