//! Splits chunks into passages that make sense on their own.
//!
//! - `blocks`: sections, lists, tables and records of a document
//! - `candidates`: single sentences, items, rows, records and settings, and whole lists and tables
//! - `document`: neighbouring chunks joined together
//! - `keyed`: lines of the form `name: value`
//! - `offsets`: positions in a text, in characters
//! - `registers`: register entries that are ended by others
//! - `tables`: rows with their header

pub(crate) mod blocks;
pub(crate) mod candidates;
pub(crate) mod document;
pub(crate) mod keyed;
pub(crate) mod offsets;
pub(crate) mod registers;
pub(crate) mod tables;
