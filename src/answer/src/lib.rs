//! Answers with citations, out of chunks that were found.
//!
//! Extractive: an answer is made of sentences that stand in the chunks, word for word. Generated,
//! where a language model is configured: its text, held to the chunks (`generate`). Not here:
//! finding the chunks (`engine`), keeping sessions (`catalog`), the events of a stream (`server`).
//!
//! ```text
//! question, past turns -> contextualise -> (query finds chunks, best first, and reads
//!                         those around them)
//! chunks -> editions: those that hold; where they do not answer, those in doubt
//!        -> document: neighbours put together -> blocks: sections, lists, tables, records
//!        -> candidates: each sentence, item, row, record, setting; whole lists and tables
//!        -> score: share of the question's terms, form that it wants, chunk; of the best 24 also
//!           the cosine with the question, of the best eight the verdict of a reader, if there is
//!           one
//!        -> choose: enough confidence? a whole list, the rows that are meant, the row with the
//!           largest value, up to three sentences : abstain
//!        -> compose: "A sentence. [1] Another. [2]", citations, sources
//!        -> stream: deltas
//! ```
//!
//! Invariants of an extractive answer:
//! - Every `[n]` of an answer is a citation of `sources[n - 1]`; brackets with numbers that come
//!   out of documents are shown as parentheses, marks of footnotes not at all.
//! - Every passage of an answer stands in the source that it cites, at the place that it names, but
//!   for white space and those marks, and in the chunk that it cites, unless a border of chunks
//!   cuts it: then the larger part does. Text of documents is copied, never obeyed.
//! - A row of a table is shown value by value behind the names of the columns, which stand in the
//!   header that its citation names too; the fields of a record stand in one line, a setting behind
//!   the name of the part that it belongs to.
//! - All chunks found have their source in `sources`, each source once. What is read around them is
//!   of those sources.
//! - The same question and chunks give the same answer.
//!
//! Layers; each uses only those above it (held by `tests/tidy.rs`):
//! - `text`: the words of questions and documents; `translation`: a lexicon of four languages
//! - `passages`: what of a document can be told by itself
//! - `question`: what is asked for, and follow-up questions
//! - `rows`: rows of tables under the conditions of a question
//! - `versions`: which of several versions holds
//! - `relevance`: how well a passage answers
//! - `selection`: the passages of an answer
//! - `sources`: chunks grouped by source; `compose`: passages to an answer; `extract`: the steps
//!   above in their order; `stream`: an answer in deltas; `error`: errors of extractive answers
//! - `generate`: answers that a model writes
//!
//! `testing`: chunks for tests (feature `testing`).

mod compose;
mod error;
mod extract;
pub mod generate;
mod passages;
mod question;
mod relevance;
mod rows;
mod selection;
mod sources;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
pub mod translation;
mod versions;

pub use compose::{Answer, Citation, SourceOrder};
pub use error::AnswerError;
pub use extract::Answerer;
pub use passages::document::{BYTES_AROUND_MAX, CHUNKS_A_SOURCE_MAX};
pub use question::corrections::{Correction, Vocabulary, corrected, corrections};
pub use question::session::contextualise;
pub use selection::foreign::Strength;
pub use sources::{AnswerSource, sources_only};
pub use stream::{DELTAS_MAX, deltas};
pub use text::sentences::{SENTENCE_CHARS_MAX, Sentence, Shape, sentences};
pub use text::shown::ABSTENTION;
pub use text::snippet::{highlight, snippet};
pub use text::terms::question_terms;
