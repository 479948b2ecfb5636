//! Answering questions in one language from texts in another, with a lexicon and word-by-word
//! glosses.
//!
//! ```text
//! question -> Gloss: its language, its words, the concepts that they stand for
//!          -> (query finds chunks that hold their translations, one search a language)
//! passage of another language -> the same passage in words of the question's language
//!          -> (answer judges it as any passage)
//! ```
//! All translations of a word count as one term (Pirkola's structured queries, 1998): a passage
//! holds a word of the question if it holds any of its translations, and the search counts them
//! together. English is the pivot of the lexicon; every row has all four languages.
//!
//! Invariants:
//! - The lexicon is parsed once, when a question first needs it.
//! - A document is never shown in translation.
//!
//! - `language`: the languages, and words and stems in each; `lexicon`: concepts, their words, and
//!   the language of a text
//! - `gloss`: a question's words in texts of other languages

mod gloss;
mod language;
mod lexicon;

pub use gloss::{Gloss, Wanted};
pub use language::Language;
pub use lexicon::{Concept, Lexicon};
