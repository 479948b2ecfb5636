//! Versions of documents and of their parts, and the choice of the one in force.
//!
//! - `amendments`: parts of an edition that were changed
//! - `asked`: years that a question names, and editions named by them
//! - `dated`: documents that a question names by their time
//! - `editions`: the edition in force among several
//! - `head`: the first sentences of a text
//! - `namesakes`: editions in force of documents found, among sources of similar names
//! - `notices`: statements of sources about themselves
//! - `withdrawals`: statements of sources about others that no longer hold

pub(crate) mod amendments;
mod asked;
pub(crate) mod dated;
pub(crate) mod editions;
pub(crate) mod head;
pub(crate) mod namesakes;
pub(crate) mod notices;
mod withdrawals;
