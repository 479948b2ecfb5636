//! Blob store: immutable, uniquely named bytes.
//!
//! This module deals in keys. The meaning of the bytes belongs to `storage` and `catalog`.
//!
//! ```text
//! key      v1/c/<collection>/m/<version>      v1/raw/<collection>/<source>/<upload>
//!             |
//! trait    BlobStore: put, put_create, get, map, list, delete
//!             |
//! here     LocalBlobs: the key is the path below the data directory
//! ```
//! The layout is that of a bucket: another implementation of the trait can keep the same keys in
//! object storage without changes in the layers above.
//!
//! Invariants:
//! - A change that returned `Ok` survives a power cut.
//! - After any crash a blob is complete or absent; a replaced blob is the old or the new one.
//! - Of concurrent callers of `put_create` with the same key, exactly one wins.
//! - No key is a path prefix of another (`v1/a` and `v1/a/b`): a file cannot be a directory.
//!
//! Modules:
//! - `key`: the grammar of names
//! - `blob`: the trait, with the cost of each call
//! - `local`: files below the data directory
//! - `held`: wraps another store, with deletions that can be deferred
//! - `error`: errors of the store
//! - `conformance`: the test suite for all implementations; `testing`: in-memory and
//!   fault-injecting stores (tests only)

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
