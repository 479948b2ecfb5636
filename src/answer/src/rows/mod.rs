//! Rows of tables under the conditions of a question.
//!
//! - `conditions`: rows whose values meet them; `evaluate`: the row that has the largest value,
//!   totals; `hours`: days on which something is open; `keys`: values and terms by which a
//!   question means a row; `marks`: rows that say yes or no, are closed on a day, or lack a
//!   value; `ranges`: rows whose range holds a value; `states`: rows that are not finished

pub(crate) mod conditions;
pub(crate) mod evaluate;
pub(crate) mod hours;
pub(crate) mod keys;
pub(crate) mod marks;
pub(crate) mod ranges;
pub(crate) mod states;
