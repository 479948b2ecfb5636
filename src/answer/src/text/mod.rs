//! The words of questions and documents, independent of what is asked.
//!
//! - `abbreviations`: abbreviations defined in a text; `notes`: footnote marks
//! - `amounts`: computed amounts in the style of a column; `currencies`: names of currencies
//! - `clock`: times of day; `dates`: days with a year, and their precision; `values`: days and
//!   numbers
//! - `numbers`: numbers written as words
//! - `opposites`: words with opposite meanings; `terms`: analysed words; `words`: words that give a
//!   question its form
//! - `places`: places taken from the sentence before
//! - `quotes`: quote marks before lines
//! - `sentences`: splitting text into sentences; `stops`: full stops that end no sentence
//! - `shown`: passages as answers show them; `snippet`: the part of a text that shows why it was
//!   found

pub(crate) mod abbreviations;
pub(crate) mod amounts;
pub(crate) mod clock;
pub(crate) mod currencies;
pub(crate) mod dates;
pub(crate) mod notes;
pub(crate) mod numbers;
pub(crate) mod opposites;
pub(crate) mod places;
pub(crate) mod quotes;
pub(crate) mod sentences;
pub(crate) mod shown;
pub(crate) mod snippet;
pub(crate) mod stops;
pub(crate) mod terms;
pub(crate) mod values;
pub(crate) mod words;
