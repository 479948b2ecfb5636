//! A tenant's data on disk: immutable segments, their filter columns, and the versions of a
//! collection.
//!
//! ```text
//! write   rows -> segment::writer -> <uuid>.seg -> collection::commit -> manifest N+1: visible
//! read    collection::Snapshot -> segment::reader -> filter columns (bitmaps), tiers of vectors
//! ```
//!
//! - [`segment`]: one immutable file of rows with everything about them
//! - [`filter`]: bitmaps and sorted columns over the rows of one segment
//! - [`collection`]: manifests, commits, snapshots, merges and garbage collection

pub mod collection;
pub mod filter;
pub mod segment;
