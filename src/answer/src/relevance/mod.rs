//! Scores of passages by how well they answer.
//!
//! - `declining`: what speaks against an answer; `evidence`: whether it is enough; `form`: what
//!   speaks for a passage beside its words; `score`: all of it together; `siblings`: passages
//!   about another thing of the same kind; `synonyms`: other words for those of a question;
//!   `weights`: how much each term of a question tells

pub(crate) mod declining;
pub(crate) mod evidence;
pub(crate) mod form;
pub(crate) mod score;
pub(crate) mod siblings;
pub(crate) mod synonyms;
pub(crate) mod weights;
