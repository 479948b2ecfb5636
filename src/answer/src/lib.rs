//! Answers with citations, built from retrieved chunks.
//!
//! An extractive answer consists of sentences copied word for word from the chunks. A generated
//! answer, available when a language model is configured, is the model's text checked against the
//! chunks (`generate`). Out of scope: retrieving the chunks (`engine`), storing sessions
//! (`catalog`) and the events of a response stream (`server`).
//!
//! ```text
//! question, past turns -> contextualise -> (query retrieves chunks, best first, and reads
//!                         their neighbours)
//! chunks -> editions: those in force; if they do not answer, the doubtful ones
//!        -> document: neighbours joined -> blocks: sections, lists, tables, records
//!        -> candidates: each sentence, item, row, record, setting; whole lists and tables
//!        -> score: share of the question's terms, fitting form, chunk; for the best 24 also the
//!           cosine with the question, for the best eight the verdict of a reader, if there is one
//!        -> choose: confident enough? a whole list, the rows meant, the row with the largest
//!           value, up to three sentences : abstain
//!        -> compose: "A sentence. [1] Another. [2]", citations, sources
//!        -> stream: deltas
//! ```
//!
//! Invariants of an extractive answer:
//! - Every `[n]` in an answer is a citation of `sources[n - 1]`. Bracketed numbers that come from
//!   documents are shown in parentheses; footnote marks and quote marks before lines are dropped.
//! - Every passage of an answer occurs in the source it cites, at the position it names, apart from
//!   white space and those marks. It also occurs in the chunk it cites; if a chunk boundary cuts
//!   the passage, that chunk holds the larger part. Text of documents is copied, never obeyed.
//! - A table row is shown value by value, each prefixed with its column name; if the header that
//!   holds these names was read, the citation also names it. The fields of a record are shown on
//!   one line, a setting after the name of the section it belongs to. An item follows the heading
//!   without which it says something else ("Forbidden"), and the version it belongs to.
//! - Every retrieved chunk has its source in `sources`, and each source appears once. Text read
//!   around the retrieved chunks belongs to these sources.
//! - The same question and chunks always give the same answer.
//!
//! Layers; each uses only those above it (enforced by `tests/tidy.rs`):
//! - `text`: the words of questions and documents; `translation`: a lexicon of four languages
//! - `passages`: splitting documents into passages that make sense on their own
//! - `question`: the analysis of what a question asks for, and follow-up questions
//! - `rows`: evaluation of table rows under the conditions of a question
//! - `versions`: the choice among several versions of a document
//! - `relevance`: scores of how well a passage answers
//! - `selection`: the choice of the passages of an answer
//! - `sources`: chunks grouped by source; `compose`: answers from passages; `extract`: the pipeline
//!   above; `stream`: an answer as deltas; `error`: errors of extractive answers
//! - `generate`: answers written by a language model
//!
//! `testing` makes chunks for tests (feature `testing`).

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
pub use question::parts::questions_of;
pub use question::session::contextualise;
pub use selection::foreign::Strength;
pub use sources::{AnswerSource, sources_only};
pub use stream::{DELTAS_MAX, deltas};
pub use text::sentences::{SENTENCE_CHARS_MAX, Sentence, Shape, sentences};
pub use text::shown::ABSTENTION;
pub use text::snippet::{highlight, snippet};
pub use text::terms::question_terms;
pub use versions::namesakes::{EditionInForce, editions_in_force, names_of_editions};
