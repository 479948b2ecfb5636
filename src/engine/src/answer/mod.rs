//! Answers with citations, out of chunks that were found.
//!
//! Extractive: an answer is made of sentences that stand in the chunks, word for word. Generated,
//! where a language model is configured: its text, held to the chunks (`generate`). Not here:
//! finding the chunks (`query`), keeping sessions (`catalog`), the events of a stream (`server`).
//!
//! ```text
//! question, past turns -> session::contextualise -> (query finds chunks, best first)
//! chunks -> candidates: sentences of the best chunks, each once
//!        -> score: cosine with the question, share of its terms, kind of answer, chunk
//!        -> extract: enough confidence? up to four that say different things : abstain
//!        -> compose: "A sentence. [1] Another. [2]", citations, sources
//!        -> stream: deltas
//! ```
//!
//! Invariants of an extractive answer:
//! - Every `[n]` of an answer is a citation of `sources[n - 1]`; brackets with numbers that come
//!   out of documents are shown as parentheses, marks of footnotes not at all.
//! - Every sentence of an answer stands in the chunk that it cites, at the place that it names,
//!   but for white space and those marks. Text of documents is copied, never obeyed.
//! - A row of a table is shown value by value behind the names of the columns, which stand in the
//!   header that its citation names too; the fields of a record stand in one line.
//! - All chunks given have their source in `sources`, each source once.
//! - The same question and chunks give the same answer.
//!
//! - `sentences`: text to sentences; `stops`: full stops that end none; `notes`: marks of
//!   footnotes; `tables`: rows under their header
//! - `words`: the words that give a question its form
//! - `candidates`, `score`, `extract`, `compose`: the steps above; `vectors`: those of passages
//!   that were compared before
//! - `sources`: chunks grouped by source; `snippet`: the part of a text that shows why it was found
//! - `generate`: answers that a model writes
//! - `session`: follow-up questions; `pointers`: words that refer back
//! - `stream`: an answer in deltas
//! - `error`: errors of extractive answers

mod candidates;
mod compose;
mod error;
mod extract;
pub mod generate;
mod notes;
mod pointers;
mod score;
mod sentences;
mod session;
mod snippet;
mod sources;
mod stops;
mod stream;
mod tables;
#[cfg(test)]
pub(crate) mod tests;
mod vectors;
mod words;

pub use compose::{Answer, Citation, SourceOrder};
pub use error::AnswerError;
pub use extract::{ABSTENTION, Answerer};
pub use sentences::{SENTENCE_CHARS_MAX, Sentence, Shape, sentences};
pub use session::contextualise;
pub use snippet::{highlight, snippet};
pub use sources::{AnswerSource, question_terms, sources_only};
pub use stream::{DELTAS_MAX, deltas};
