//! From passages and their scores to those of an answer.
//!
//! - `causes`: why something happened; `choose`: a whole list, the rows that are meant, up to
//!   three sentences; `computed`: rows that are computed with; `conflicts`: passages that
//!   contradict each other; `decisions`: what minutes say was decided; `foreign`: passages of other
//!   languages in words of the question's; `kinds`: the table of the things that are meant; `rows`:
//!   the rows that a question means; `sure`: the first passage where it is sure

pub(crate) mod causes;
pub(crate) mod choose;
pub(crate) mod computed;
pub(crate) mod conflicts;
pub(crate) mod decisions;
pub(crate) mod foreign;
pub(crate) mod kinds;
pub(crate) mod rows;
pub(crate) mod sure;
