//! A knowledge graph extracted from text by rule: the things a chunk names, the relations its
//! sentences state, and the stored section that keeps both alongside the rows of a segment.
//!
//! Uses no language model, no I/O and no threads: the same texts yield the same graph. Not part of
//! this crate: which rows are live or visible (storage), and how the graph affects a search
//! (engine).
//!
//! ```text
//! ingest  title, text -> lines -> tokens, sentences -> names -> kinds, entities
//!                                 -> relations, records, code -> RowGraph
//!         RowGraph of each row -> GraphWriter -> bytes of the section
//! query   bytes -> GraphIndex::open -> entities, triplets, rows
//!         question -> keys_in -> keys -> GraphIndex: find, called, titles
//! ```
//! Invariants: nothing is stated without the sentence that supports it; every count is bounded;
//! time is linear in the length of any text. Precision takes priority over recall, since readers
//! follow the paths: a statement that no rule covers is left out rather than guessed from two names
//! that are near each other.
//!
//! # Quality of the rules
//! Measured by `gold_tests` on 73 hand-labelled passages (prose, abstracts, code, forms; three
//! languages). Each held-out part was labelled before the rules were run on it. A triplet counts as
//! correct if both ends and the predicate are right. A "first run" was blind; general faults that
//! it revealed were then fixed. Of the messy held-out part only the totals were ever looked at.
//! Messy passages are bibliographies, captions, table cells and chats from real files; they state
//! little.
//!
//! | passages | entities P / R | kinds | triplets P / R |
//! |---|---|---|---|
//! | 35 seen | .929 / .938 | .823 | .967 / .532 |
//! | 18 held out, first run | .777 / .827 | .739 | .737 / .359 |
//! | 18 held out, after repairs | .862 / .876 | .759 | .795 / .449 |
//! | 10 messy, first run | .505 / .714 | .509 | 7 of 8 / 7 of 20 |
//! | 10 messy, after repairs | .619 / .844 | .631 | 9 of 10 / 9 of 20 |
//! | 10 messy held out, first run | .454 / .529 | .611 | 3 of 3 / 3 of 14 |
//! | 10 messy held out, after repairs | .487 / .559 | .614 | 3 of 3 / 3 of 14 |
//!
//! # Modules
//! - `key`: the key of a name, and the keys in a question
//! - `row`: the graph of one chunk as plain data
//! - `extract`: from the text of a chunk to its graph
//! - `titles`: the main entity of a chunk, from its title
//! - `lines`: paragraphs, headings, fields, table rows, code
//! - `tokens`, `sentences`: words and punctuation of a paragraph, and its sentences
//! - `words`: word lists; `nouns`: senses of words as written in a text
//! - `names`: names in a sentence; `runs`: their extent; `authors`, `dates`: two special forms
//! - `kinds`: the kind of a name
//! - `entities`: the entities of a chunk, merging several names of one thing
//! - `relations`: reads a sentence phrase by phrase; `patterns`: the table of phrases
//! - `ends`: subject and objects of a phrase; `links`: conditions on the words in between
//! - `clauses`: classes, owners, places and verbs, which have no phrase in the table
//! - `records`: statements of fields and tables; `code`: declarations in source code
//! - `claims`: additions by a language model, checked against the text
//! - `format`: the stored section; `writer`: writes it; `check`, `index`: check and read it

#![forbid(unsafe_code)]

mod authors;
mod check;
pub mod claims;
mod clauses;
mod code;
mod dates;
mod ends;
mod entities;
mod extract;
mod format;
#[cfg(test)]
mod gold_tests;
mod index;
mod key;
mod kinds;
mod lines;
mod links;
mod names;
mod nouns;
mod patterns;
mod records;
mod relations;
mod row;
mod runs;
mod sentences;
#[cfg(test)]
mod statement_tests;
mod strings;
#[cfg(test)]
mod tests;
mod titles;
mod tokens;
mod words;
mod writer;

pub use extract::extract;
pub use index::{EntityId, GraphIndex, TripletId, TripletView};
pub use key::{Key, key, keys_in};
pub use row::{
    ENTITY_ALIASES_MAX, EntityKind, NAME_BYTES_MAX, Predicate, ROW_ENTITIES_MAX, ROW_TRIPLETS_MAX,
    RowEntity, RowGraph, RowTriplet,
};
pub use strings::Titles;
pub use writer::GraphWriter;
