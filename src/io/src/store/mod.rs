//! Blob store: immutable, uniquely named bytes.
//!
//! It knows keys. The meaning of the bytes belongs to `storage` and `catalog`.
//!
//! ```text
//! key      v1/c/<collection>/m/<version>      v1/raw/<collection>/<source>/<upload>
//!             |
//! trait    BlobStore: put, put_create, get, map, list, delete
//!             |
//! here     LocalBlobs: the key is the path below the data directory
//! ```
//! The layout is that of a bucket: another implementation of the trait may keep the same keys in
//! object storage without a change above.
//!
//! Invariants:
//! - A call that returned `Ok` survives a power cut.
//! - A blob is whole or absent after any crash; a replaced one is old or new.
//! - Of many callers of `put_create` with one key exactly one wins.
//! - No key is a leading part of another (`v1/a` and `v1/a/b`): a file is not a directory.
//!
//! Modules:
//! - `key`: the grammar of names
//! - `blob`: the trait, with the cost of each call
//! - `local`: files below the data directory
//! - `held`: another store with deletions that can be put off
//! - `error`: its errors
//! - `conformance`: the test suite of every implementation; `testing`: stores in memory and with
//!   faults (tests only)

mod blob;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod error;
mod held;
mod key;
mod local;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use crate::Created;
pub use blob::{BlobStore, WriteBlob};
pub use error::StoreError;
pub use held::{DeletionHold, HeldBlobs};
pub use key::Key;
pub use local::LocalBlobs;
