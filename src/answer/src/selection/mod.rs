//! From passages and their scores to those of an answer.
//!
//! - `causes`: why something happened; `choose`: a whole list, the rows that are meant, up to
//!   three sentences; `conflicts`: passages that contradict each other;
//!   `decisions`: what minutes say was decided; `foreign`: passages of
//!   other languages in words of the question's; `rows`: the rows that a question means

pub(crate) mod causes;
pub(crate) mod choose;
pub(crate) mod conflicts;
pub(crate) mod decisions;
pub(crate) mod foreign;
pub(crate) mod rows;
