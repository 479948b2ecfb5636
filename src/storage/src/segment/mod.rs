//! Immutable segment files, the unit of storage and of search. A segment holds rows with everything
//! derived from them.
//!
//! A segment knows nothing of manifests or queries. A published file never changes: deletions live
//! beside it as a [`TombstoneSet`], and a merge writes a new file.
//!
//! ```text
//! offset 0     header, one page of 4 KiB
//!        0       magic "LODESEG1"          8   u32 version (5, 6)     12  u32 min_reader (2, 3)
//!        16      collection, 16 bytes      32  segment, 16 bytes
//!        48      u32 rows                  52  u32 sources
//!        56      u32 dimension             60  u32 vector kind (1 f16, 2 f32)
//!        64      u64 XXH3-64 of bytes 0..64; zeros to the end of the page
//! 4096         sections, each on a 4 KiB boundary, zeros between them:
//!                rows, texts, sources, columns, codes (T1), factors (T1), originals (T2), norms,
//!                text index; from 4,096 rows also lists and one-bit codes (T0); if any row or
//!                source has them: details (application records), boxes and lines (documents with
//!                fixed pages), contexts (headings above chunks), graph (entities in texts);
//!                vectors of a sparse model if all rows have them
//! footer       on a 4 KiB boundary
//!        0       u32 sections (n), u32 blocks (m)
//!        8       n x { u32 section, u32 zero, u64 offset, u64 bytes }
//!                m x u64 XXH3-64 of each 64 KiB block of everything before the footer
//! trailer      the last 40 bytes
//!        0       u64 footer offset         8   u64 footer bytes     16  u64 XXH3-64 of the footer
//!        24      u64 bytes of the file     32  magic "LODEEND1"
//! ```
//! All integers are little-endian. The hash of the footer covers all checksums and thus binds the
//! whole file; the manifest stores it. A reader rejects a wrong magic or hash, a `min_reader` above
//! its own, a collection or segment id other than the one requested, a file length that differs
//! from the trailer's, sections out of order, and any block that does not match its checksum.
//!
//! Row ids are positions: the same number identifies a row in every column, in the vectors and as
//! the tantivy document, so one roaring mask filters both legs of a search. All live rows of a
//! source are in one segment, contiguous and ascending by chunk index.
//!
//! - `format`: header, section table, trailer
//! - `row_table`, `text_store`, `source_table`, `boxes`, `lines`, `contexts`: sections whose
//!   formats are defined in this module
//! - `row_feed`, `feed_rows`, `writer`: write fresh sources, or the live rows of older segments, to
//!   a file; `spool`: buffers bytes until their position in the file is known; `merge_cost`: memory
//!   and disk estimates for a merge
//! - `merged`: the live rows of older segments as input of a new one; `revectored`: the live rows
//!   of one segment with new vectors; `sparse`: vectors of a sparse model
//! - `reader`: an open file; `section`: a section that is verified as it is read; `tiers`: the
//!   vectors, read through `tier_blocks`; `flat`: vector search; `lists`: inverted lists and T0,
//!   which that search uses
//! - `tombstones`: dead rows; `verify`: a full walk that checks every invariant of the format

mod boxes;
mod contexts;
mod error;
mod feed_rows;
pub mod flat;
pub mod format;
mod lines;
pub mod lists;
mod merge_cost;
mod merged;
mod reader;
mod revectored;
mod row_feed;
mod row_table;
mod section;
mod source_table;
mod sparse;
mod spool;
mod text_store;
mod tier_blocks;
mod tiers;
mod tombstones;
mod verify;
mod writer;

pub use error::SegmentError;
pub use format::VectorKind;
pub use reader::Segment;
pub use row_feed::{NewRow, NewSource};
pub use sparse::SparseRow;
pub use text_store::TextReader;
pub use tombstones::TombstoneSet;
pub use verify::{SegmentCensus, verify};
pub use writer::{
    SegmentMeta, SegmentShape, write, write_amended, write_merged, write_with_vectors,
};

#[cfg(test)]
mod tests;
