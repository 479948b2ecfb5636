//! Versions of documents and of their parts, and the one that holds.
//!
//! - `amendments`: parts of an edition that are changed; `dated`: documents that a question names
//!   by their time; `editions`: which of several editions holds; `head`: the first sentences of a
//!   text; `notices`: what sources say of themselves

pub(crate) mod amendments;
pub(crate) mod dated;
pub(crate) mod editions;
mod head;
pub(crate) mod notices;
