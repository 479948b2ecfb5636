//! Metadata filters: from JSON to a syntax tree, from a tree to exact bitmaps over the
//! rows of one segment.
//!
//! Access is not checked here. The answer ranges over all rows of the segment, and negations are
//! complements within them; the caller intersects it with its scope ([`Columns::sub_tenant`]) and
//! with the rows that are alive.
//!
//! ```text
//! request maps -- parse --> Filter --+
//!                                    +-- Columns::matching --> bitmap of rows
//! SourceRecord + its rows -- ColumnsBuilder --> bytes -- Columns::open
//! ```
//!
//! # Stored data
//! Per source there are three maps (`tenant_metadata`, `document_metadata`, the system fields) and
//! its sub-tenant. Metadata of single client vectors stands in `document_metadata` of their rows.
//! A map is a tree of keys; each key path is a **column**. A column holds sorted **entries**, each
//! a typed value and the rows whose source carries it:
//!
//! - A scalar stands under its path. An array stands for its elements, however nested: scalars
//!   under the path itself, objects as if each stood there alone.
//! - A dot in a stored key means nesting: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same.
//! - The entry `present` lists the rows that have any value but null at the path, maps and empty
//!   arrays included. The entry `null` lists those with a null there. Together they are the rows
//!   that *hold* the key.
//!
//! # File format, version 1
//! All numbers are little-endian; nothing is aligned; there is no checksum of its own, because the
//! segment's blocks have one.
//!
//! ```text
//! header         24 B  magic "LDFC" | version u32 | rows u32
//!                      | columns C u32 | entries E u32 | bitmaps B u32
//! columns  (C+1)x16 B  name offset u64 | first entry u32 | parent u32
//! entries  (E+1)x16 B  key offset u64  | a u32 | b u32
//! bitmaps   (B+1)x8 B  offset u64
//! names                parts of paths, UTF-8, end to end
//! keys                 values, end to end
//! bitmap bytes         portable roaring format, end to end
//! ```
//! - Each table ends with one row more: the end offset of its names, keys or bitmaps, and for
//!   columns also E; the other fields of that row are 0. An item ends where the next one begins.
//! - A column is one part of a path. Its parent is 0 to 3 for a map (tenant, document, system,
//!   scope), otherwise 4 + the number of the column above it. Columns are sorted by
//!   (parent, name), so that one binary search finds one part. Storing parts and not whole paths
//!   bounds the size of deep maps by the size of their JSON.
//! - The scope map has the column `sub_tenant`, whose values are sub-tenants, and, where clients
//!   gave their vectors ids, `chunk_id` with those.
//! - A key begins with a tag: 0 present, 1 null, 2 boolean (one byte, 0 or 1), 3 number (10 bytes,
//!   see `key`), 4 text (UTF-8). Bytewise order is the order of values.
//! - `b` > 0: the rows a to a + b, exclusive. This keeps columns with one value per source small.
//!   `b` = 0: the rows are bitmap number a; bitmaps are numbered in the order of entries.
//!
//! A reader rejects: another magic or version; a length other than that of the parts; offsets
//! that do not begin at 0 or descend; columns or keys not strictly ascending; a parent that does
//! not come first; a malformed key; rows beyond the segment's; bitmap numbers out of turn; a scope
//! column that holds anything but valid names. A bitmap is decoded and checked when it is used.
//!
//! # Modules
//! - `parse`: request JSON to [`lodestone_types::Filter`], limits and operators
//! - `key`: values as bytes whose order is theirs; exact numbers
//! - `source`: the columns and values of a source
//! - `format`: the tables above; `writer`: makes them; `reader`: checks them and looks up
//! - `facets`: counts of the values of a key; `mismatch`: values of another type than the stored
//! - `matching`: evaluates a filter; `canonical`: its key; `error`: errors

mod canonical;
mod error;
mod facets;
mod format;
mod key;
mod matching;
mod mismatch;
mod parse;
mod reader;
mod source;
#[cfg(test)]
mod tests;
mod writer;

pub use canonical::canonical;
pub use error::FilterError;
pub use facets::ValueCounts;
pub use mismatch::{TypeMismatch, ValueType, mismatches};
pub use parse::{RequestFilter, parse, parse_for_vectors, sources};
pub use reader::Columns;
pub use writer::ColumnsBuilder;
