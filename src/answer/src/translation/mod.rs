//! Questions in one language, answered from texts in another: a lexicon, and words for words.
//!
//! ```text
//! question -> Gloss: its language, its words, the concepts that they stand for
//!          -> (query finds chunks that hold their translations, one search a language)
//! passage of another language -> the same passage in words of the question's language
//!          -> (answer judges it as any passage)
//! ```
//! All translations of one word count as one term (Pirkola's structured queries, 1998): a passage
//! holds a word of the question where it holds any of its translations, and the search counts them
//! together. English is the pivot of the lexicon, whose rows have all four languages.
//!
//! Invariants:
//! - The lexicon is read once, when a question first needs it.
//! - A document is never shown in translation.
//!
//! - `language`: the languages, and the one of a text; `lexicon`: concepts and their words
//! - `gloss`: a question's words in texts of other languages

mod gloss;
mod language;
mod lexicon;

pub use gloss::{Gloss, Wanted};
pub use language::Language;
pub use lexicon::{Concept, Lexicon};
