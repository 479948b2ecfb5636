//! Blobs in the bucket of a store of objects: a machine may be lost, and another one goes on.
//!
//! ```text
//! put    bytes -> temporary file -> bucket, whole or in parts -> copy
//! map    copy, or bucket -> temporary file, ranges side by side -> copy -> mapping
//! commit bytes -> bucket, on the condition that there is none of this name
//!
//! s3://bucket/prefix/lodestone-store   marks the prefix; the store's conditions were tried
//! s3://bucket/prefix/owner             the process that writes here, renewed while it lives
//! s3://bucket/prefix/v1/...            the blobs, under the names that a data directory gives them
//! <data>/cache/blobs/v1/...            copies of segments and originals, which never change
//! ```
//! Invariants:
//! - All that was acknowledged is in the bucket. All of the data directory may be lost.
//! - Only blobs whose contents never change have copies: a copy is never old.
//! - The one condition that is asked of a store is that a name which is taken stays taken. It is
//!   tried before anything is written ([`probe`]).
//! - Two processes that write to one prefix are a mistake that costs work and loses nothing: the
//!   creation of numbered blobs decides. [`OwnerLease`] makes the mistake unlikely.
//!
//! The client is that of backups (`lodestone_fetch::bucket`); this crate adds no foreign one, so a
//! server with a bucket is the same program, and nothing here knows whose store it is.
//!
//! - `blobs`: the blob store; `cache`: the copies; `transfer`: files to and from the bucket
//! - `probe`: trying what the store promises; `owner`: the lease of one process
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
pub use probe::{Probed, begin_copy, check_prefix, end_copy, mark_prefix, probe};
pub use transfer::send;
