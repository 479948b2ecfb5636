//! Metadata filters: parsed from JSON into a syntax tree, and evaluated to exact bitmaps over the
//! rows of one segment.
//!
//! This module does not check access. Results range over all rows of the segment, and negations are
//! complements within them; the caller intersects them with its scope ([`Columns::sub_tenant`]) and
//! with the live rows.
//!
//! ```text
//! request maps -- parse --> Filter --+
//!                                    +-- Columns::matching --> bitmap of rows
//! SourceRecord + its rows -- ColumnsBuilder --> bytes -- Columns::open
//! ```
//!
//! # Stored data
//! Each source has three maps (`tenant_metadata`, `document_metadata` and the system fields) and
//! its sub-tenant. Metadata of individual client vectors is part of the `document_metadata` of
//! their rows. A map is a tree of keys; each key path is a **column**. A column holds sorted
//! **entries**, each a typed value and the rows whose source has that value:
//!
//! - A scalar is stored under its path. An array is stored as its elements, however nested: scalars
//!   under the path itself, objects as if each were there alone.
//! - A dot in a stored key means nesting: `{"a.b": 1}` and `{"a": {"b": 1}}` are equivalent.
//! - The entry `present` lists the rows that have any value except null at the path, including maps
//!   and empty arrays. The entry `null` lists those with a null there. Together they are the rows
//!   that *hold* the key.
//!
//! # File format, version 1
//! All numbers are little-endian and unaligned. The file has no checksum of its own, because the
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
//! - Each table has one more row at its end, with the end offset of its names, keys or bitmaps, and
//!   for columns also E; the other fields of that row are 0. An item ends where the next one
//!   begins.
//! - A column is one part of a path. Its parent is 0 to 3 for a map (tenant, document, system,
//!   scope), otherwise 4 + the number of the column above it. Columns are sorted by (parent, name),
//!   so that one binary search finds one part. Storing parts rather than whole paths bounds the
//!   size of deep maps by the size of their JSON.
//! - The scope map has the column `sub_tenant`, whose values are sub-tenants, and, if clients gave
//!   their vectors ids, the column `chunk_id` with these ids.
//! - A key begins with a tag: 0 present, 1 null, 2 boolean (one byte, 0 or 1), 3 number (10 bytes,
//!   see `key`), 4 string (UTF-8). Its bytewise order is the order of values.
//! - `b` > 0: the rows from a up to but excluding a + b. This keeps columns with one value per
//!   source small. `b` = 0: the rows of bitmap number a; bitmaps are numbered in the order of
//!   entries.
//!
//! A reader rejects a wrong magic or version; a length that differs from that of the parts; offsets
//! that do not start at 0 or that descend; columns or keys that do not strictly ascend; a parent
//! that does not come first; a malformed key; rows beyond the segment's; bitmap numbers out of
//! sequence; and names of sub-tenants that are invalid. A bitmap is decoded and checked when it is
//! used.
//!
//! # Modules
//! - `parse`: request JSON to [`lodestone_types::Filter`], limits and operators
//! - `key`: order-preserving encoding of values, with exact numbers
//! - `source`: the columns and values of a source
//! - `format`: the tables above; `writer`: writes them; `reader`: checks and searches them
//! - `facets`: counts of the values of a key; `mismatch`: conditions on values of a type that is
//!   not stored
//! - `matching`: evaluates a filter; `canonical`: encodes it as a cache key; `error`: errors

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
