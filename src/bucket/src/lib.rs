//! A blob store in an object-store bucket, so that another machine can take over after a loss.
//!
//! ```text
//! put    bytes -> temporary file -> bucket, whole or in parts -> local copy
//! map    local copy, or bucket -> temporary file (parallel ranges) -> local copy -> mapping
//! commit bytes -> bucket, on condition that no object of this name exists
//!
//! s3://bucket/prefix/lodestone-store   marks the prefix as a store that passed the probe
//! s3://bucket/prefix/owner             names the process that writes here; renewed regularly
//! s3://bucket/prefix/v1/...            the blobs, named as in a data directory
//! <data>/cache/blobs/v1/...            local copies of segments and originals, which never change
//! ```
//! Invariants:
//! - All acknowledged data is in the bucket. The whole data directory may be lost.
//! - Only blobs whose contents never change have local copies, so no copy is stale.
//! - The only conditional operation required of a store is creation of an object that does not
//!   exist. It is tested before anything is written ([`probe`]).
//! - Two processes that write to one prefix waste work but lose nothing, because the creation of
//!   numbered blobs decides commits. [`OwnerLease`] makes the mistake unlikely.
//!
//! The client is the one that backups use (`lodestone_fetch::bucket`), and works with the stores of
//! all providers; this crate adds no third-party client.
//!
//! - `blobs`: the blob store; `cache`: the local copies; `transfer`: files to and from the bucket
//! - `probe`: tests of the store's guarantees; `owner`: the lease of the writing process
#![forbid(unsafe_code)]

mod blobs;
mod cache;
mod error;
mod owner;
mod probe;
mod transfer;

pub use blobs::{BucketBlobs, CACHE_FOLDER};
pub use cache::CacheCounts;
pub use error::SharedStoreError;
pub use owner::{LeaseState, LeaseView, OwnerLease};
pub use probe::{Probed, begin_copy, check_prefix, end_copy, is_copy_of, mark_prefix, probe};
pub use transfer::send;
