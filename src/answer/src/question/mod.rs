//! The wish of a question, by its words alone.
//!
//! - `bounds`: the conditions that it sets to values; `condition`: such a condition;
//!   `corrections`: misspelt words; `definitions`: whether it asks what a word means;
//!   `exclusions`: what it leaves out; `extremes`: which of several it asks for; `measures`: what
//!   it wants to be measured; `named`: words that name something; `openers`: polite words around
//!   it; `phrases`: words that tell it; `pointers`: words that refer back; `qualities`: what it
//!   measures, and the columns that hold it; `scales`: units of one kind; `session`: follow-up
//!   questions; `several`: whether it asks for several things; `sides`: the two that it compares;
//!   `subject`: the same asked of another subject; `wish`: all of this together

pub(crate) mod bounds;
pub(crate) mod condition;
pub(crate) mod corrections;
pub(crate) mod definitions;
pub(crate) mod exclusions;
pub(crate) mod extremes;
pub(crate) mod measures;
pub(crate) mod named;
pub(crate) mod openers;
pub(crate) mod phrases;
pub(crate) mod pointers;
pub(crate) mod qualities;
pub(crate) mod scales;
pub(crate) mod session;
pub(crate) mod several;
pub(crate) mod sides;
pub(crate) mod subject;
pub(crate) mod wish;
