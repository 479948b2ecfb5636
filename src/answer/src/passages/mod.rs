//! Chunks to passages: what of a document can be told by itself.
//!
//! - `blocks`: sections, lists, tables, records of a document; `candidates`: each sentence, item,
//!   row, record, setting; whole lists and tables; `document`: neighbouring chunks put together;
//!   `keyed`: lines `name: value`; `registers`: entries of a register that others end; `tables`:
//!   rows under their header

pub(crate) mod blocks;
pub(crate) mod candidates;
pub(crate) mod document;
pub(crate) mod keyed;
pub(crate) mod registers;
pub(crate) mod tables;
