//! The standard library, `parking_lot` and parts of `tokio`, as the product names them, with a
//! scheduler of [`shuttle`] behind locks, threads, channels and atomics.
//!
//! ```text
//! checks/NAME.rs   extern crate interleavings as std, as parking_lot, as tokio
//!    | #[path]     src/.../queue.rs of the product, unchanged
//!    v
//! explore          each check many times, each time in another order of steps
//! ```
//! A check includes the source of what it checks and stands in for the rest of the crate around it.
//! One thread runs at a time, and another one may go on at every lock, atomic and channel: what a
//! check proves holds for sequentially consistent memory. In the product weaker orders are for
//! counters and for flags that publish nothing else.
//!
//! - `explore`: runs checks; `locks`, `rw_lock`: `parking_lot`; `time`: a clock that timeouts move
//! - `sync`, `thread`, `once_lock`: the standard library's; `oneshot`: `tokio`'s

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

/// The synchronisation of the standard library, and that of `tokio`.
pub mod sync {
    pub use crate::once_lock::OnceLock;
    pub use crate::oneshot;
    pub use shuttle::sync::{atomic, mpsc};
    pub use std::sync::{Arc, LazyLock, Weak};
}
