//! Answers with citations, out of chunks that were found.
//!
//! Extractive: an answer is made of sentences that stand in the chunks, word for word. Generated,
//! where a language model is configured: its text, held to the chunks (`generate`). Not here:
//! finding the chunks (`query`), keeping sessions (`catalog`), the events of a stream (`server`).
//!
//! ```text
//! question, past turns -> session::contextualise -> (query finds chunks, best first, and reads
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
//! - `sentences`: text to sentences; `stops`: full stops that end none; `notes`: marks of
//!   footnotes; `tables`: rows under their header; `keyed`: lines `name: value`
//! - `words`: the words that give a question its form; `question`: what it wants; `several`:
//!   whether that is several things; `sides`: the two that it compares
//! - `values`: days, numbers; `clock`: times of day; `ranges`: those that hold them; `extremes`:
//!   which of several is asked for; `evaluate`: the row that has it, totals; `amounts`: totals as
//!   cells are written; `bounds`: those that a question sets to values; `conditions`: the values
//!   that meet them; `exclusions`: what it leaves out; `states`: rows that are not finished;
//!   `marks`: rows that say yes or no, are closed on a day, or lack a value; `hours`: those days
//! - `document`, `blocks`, `candidates`, `score`, `choose`, `extract`, `compose`: the steps above;
//!   `form`: what speaks for a passage beside its words; `terms`: those of a question and a text,
//!   and their weights; `synonyms`: other words for them; `abbreviations`: those that a text
//!   defines; `evidence`: whether a passage answers
//! - `foreign`: passages of other languages in words of the question's
//! - `editions`: which of several editions holds; `amendments`: parts of one that are changed;
//!   `conflicts`: passages that contradict each other; `registers`: entries that others end;
//!   `notices`: what sources say of themselves; `dates`: days in text
//! - `rows`: the rows that a question means; `qualities`: the columns that hold what it measures;
//!   `keys`: values and terms by which it means a row
//! - `definitions`: what a word means; `causes`: why something happened; `decisions`: what minutes
//!   say was decided
//! - `declining`, `opposites`, `siblings`: what speaks against an answer; `named`: words of a
//!   question that name something; `corrections`: misspelt words of a question
//! - `sources`: chunks grouped by source; `snippet`: the part of a text that shows why it was found
//! - `generate`: answers that a model writes
//! - `session`: follow-up questions; `openers`: polite words around them; `subject`: the same asked
//!   of another subject; `pointers`: words that refer back
//! - `stream`: an answer in deltas
//! - `error`: errors of extractive answers

mod abbreviations;
mod amendments;
mod amounts;
mod blocks;
mod bounds;
mod candidates;
mod causes;
mod choose;
mod clock;
mod compose;
mod conditions;
mod conflicts;
mod corrections;
mod dates;
mod decisions;
mod declining;
mod definitions;
mod document;
mod editions;
mod error;
mod evaluate;
mod evidence;
mod exclusions;
mod extract;
mod extremes;
mod foreign;
mod form;
pub mod generate;
mod hours;
mod keyed;
mod keys;
mod marks;
mod measures;
mod named;
mod notes;
mod notices;
mod openers;
mod opposites;
mod pointers;
mod qualities;
mod question;
mod ranges;
mod registers;
mod rows;
mod score;
mod sentences;
mod session;
mod several;
mod siblings;
mod sides;
mod snippet;
mod sources;
mod states;
mod stops;
mod stream;
mod subject;
mod synonyms;
mod tables;
mod terms;
#[cfg(test)]
pub(crate) mod tests;
mod values;
mod words;

pub use compose::{Answer, Citation, SourceOrder};
pub use corrections::Correction;
pub(crate) use corrections::{Vocabulary, corrected, corrections};
pub(crate) use document::{BYTES_AROUND_MAX, CHUNKS_A_SOURCE_MAX};
pub use error::AnswerError;
pub use extract::{ABSTENTION, Answerer};
pub use sentences::{SENTENCE_CHARS_MAX, Sentence, Shape, sentences};
pub use session::contextualise;
pub use snippet::{highlight, snippet};
pub use sources::{AnswerSource, question_terms, sources_only};
pub use stream::{DELTAS_MAX, deltas};
pub(crate) use terms::is_common;
pub(crate) use words::is_interrogative;
