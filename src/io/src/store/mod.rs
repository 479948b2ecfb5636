//! Blob store: immutable, uniquely named bytes.
//!
//! It knows keys and durability. It does not know what the bytes mean (segments, manifests and
//! uploads belong to other rooms), nor how files become durable (that is `io`).
//!
//! ```text
//! key      v1/c/<collection>/m/<version>      v1/raw/<collection>/<source>/<upload>
//!             |
//! trait    BlobStore: put, put_create, get, map, list, delete
//!             |
//! here     LocalBlobs: the key is the path below the data directory
//! ```
//! The layout is a bucket's on purpose: another implementation of the trait may keep the same keys
//! in object storage, and nothing above would know.
//!
//! Invariants:
//! - A call that returned `Ok` survives a power cut.
//! - A blob is whole or absent, whatever is killed in between; a replaced one is old or new.
//! - Of many callers of `put_create` with one key exactly one wins.
//! - No key is a leading part of another (`v1/a` and `v1/a/b`): a file is not a directory.
//!
//! Children:
//! - `key`: the grammar of names
//! - `blob`: the trait, with the cost of each call
//! - `local`: files below the data directory
//! - `error`: what goes wrong
//! - `conformance`: what every implementation must pass (tests only)

mod blob;
#[cfg(test)]
mod conformance;
mod error;
mod key;
mod local;

pub use crate::Created;
pub use blob::{BlobStore, WriteBlob};
pub use error::StoreError;
pub use key::Key;
pub use local::LocalBlobs;
