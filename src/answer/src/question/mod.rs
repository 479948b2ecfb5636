//! The analysis of a question, from its words alone.
//!
//! - `bounds`: conditions that the question sets to values; `condition`: one such condition
//! - `corrections`: misspelt words; `openers`: polite words around the question
//! - `definitions`: questions for the meaning of a word; `exclusions`: things left out
//! - `extremes`: which of several values is asked for; `qualities`: what it measures, and the
//!   columns that hold it; `measures`: the kind of value asked for; `scales`: units of one kind
//! - `named`: words that name something; `phrase`: noun phrases; `phrases`: phrases that show what
//!   is asked for
//! - `parts`: several questions in one
//! - `relative`: days relative to today; `several`: questions for several things; `sides`: the two
//!   sides of a comparison
//! - `session`: follow-up questions; `pointers`: words that refer back; `referents`: what they
//!   refer to; `proforms`: "the last one"; `ellipsis`: questions without a predicate; `subject`:
//!   questions that repeat the previous one for another subject
//! - `troubles`: statements that something does not work
//! - `values`: days and numbers
//! - `wish`: all of this together

pub(crate) mod bounds;
pub(crate) mod condition;
pub(crate) mod corrections;
pub(crate) mod definitions;
pub(crate) mod ellipsis;
pub(crate) mod exclusions;
pub(crate) mod extremes;
pub(crate) mod measures;
pub(crate) mod named;
pub(crate) mod openers;
pub(crate) mod parts;
pub(crate) mod phrase;
pub(crate) mod phrases;
pub(crate) mod pointers;
pub(crate) mod proforms;
pub(crate) mod qualities;
pub(crate) mod referents;
pub(crate) mod relative;
pub(crate) mod scales;
pub(crate) mod session;
pub(crate) mod several;
pub(crate) mod sides;
pub(crate) mod subject;
pub(crate) mod troubles;
pub(crate) mod values;
pub(crate) mod wish;
