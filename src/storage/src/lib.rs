//! Storage of one tenant's data: immutable segment files, their filter columns, and the numbered
//! versions of a collection.
//!
//! ```text
//! write   rows -> segment::writer -> <uuid>.seg -> collection::commit -> manifest N+1: visible
//! read    collection::Snapshot -> segment::reader -> filter columns (bitmaps), tiers of vectors
//!
//! v1/c/<collection>/m/<version>   manifests          v1/c/<collection>/s/<id>.seg   segments
//! v1/c/<collection>/d/<id>        tombstones         v1/c/<collection>/r/<id>       source lists
//! v1/raw/<collection>/<id>-<hash> upload blobs
//! ```
//! Invariants:
//! - A published file never changes; creating the next numbered manifest is the commit.
//! - A query reads one snapshot, whose files stay mapped until it is dropped.
//! - All live rows of a source are in one segment.
//! - Row ids are positions: the same number in every column, vector tier and full-text index.
//!
//! Modules:
//! - [`segment`]: one immutable file of rows with everything about them
//! - [`filter`]: metadata filters, and the columns that answer them as bitmaps over rows
//! - [`collection`]: manifests, commits, snapshots, merges and garbage collection
#![forbid(unsafe_code)]

pub mod collection;
pub mod filter;
pub mod segment;
