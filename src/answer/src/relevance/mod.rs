//! Scores passages by how well they answer.
//!
//! - `absences`: things asked for that are mentioned nowhere
//! - `agents`: columns named after a doer
//! - `causes`: words that state a cause
//! - `counts`: things counted, and their number
//! - `declining`: reasons against an answer
//! - `denials`: lists of what is not so or not allowed
//! - `evidence`: whether the evidence for an answer suffices
//! - `form`: signs for and against a passage besides its words
//! - `inflections`: irregular verbs
//! - `outcomes`: winners and means that are not told
//! - `owners`: passages that state the fact asked for of another thing
//! - `priced`: the thing whose price is asked for
//! - `score`: all of these combined
//! - `siblings`: passages about another thing of the same kind
//! - `stated`: lists whose items state what is asked for
//! - `stocks`: rows that tell how many there are of a thing
//! - `suppositions`: sentences that suppose what is asked for
//! - `synonyms`: other words for those of a question
//! - `weights`: the weight of each term of a question

pub(crate) mod absences;
mod agents;
pub(crate) mod causes;
mod counts;
pub(crate) mod declining;
pub(crate) mod denials;
pub(crate) mod evidence;
pub(crate) mod form;
mod inflections;
mod outcomes;
pub(crate) mod owners;
mod priced;
pub(crate) mod score;
pub(crate) mod siblings;
pub(crate) mod stated;
mod stocks;
pub(crate) mod suppositions;
pub(crate) mod synonyms;
pub(crate) mod weights;
