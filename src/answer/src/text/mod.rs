//! The words of questions and documents: what they are, before anybody asks what for.
//!
//! - `abbreviations`: those that a text defines; `amounts`: totals as cells are written; `clock`:
//!   times of day; `currencies`: their names; `dates`: days in text, and of which kind; `notes`:
//!   marks of footnotes; `opposites`: words that deny each other; `sentences`: text to sentences;
//!   `shown`: passages as answers show them; `snippet`: the part of a text that shows why it was
//!   found; `stops`: full stops that end no sentence; `terms`: analysed words; `values`: days,
//!   numbers; `words`: the words that give a question its form

pub(crate) mod abbreviations;
pub(crate) mod amounts;
pub(crate) mod clock;
pub(crate) mod currencies;
pub(crate) mod dates;
pub(crate) mod notes;
pub(crate) mod opposites;
pub(crate) mod sentences;
pub(crate) mod shown;
pub(crate) mod snippet;
pub(crate) mod stops;
pub(crate) mod terms;
pub(crate) mod values;
pub(crate) mod words;
