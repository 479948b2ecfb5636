//! Evaluation of table rows under the conditions of a question.
//!
//! - `conditions`: rows whose values meet bounds
//! - `evaluate`: totals and means, and the column of an extreme
//! - `extreme`: rows with an extreme value
//! - `hours`: the days on which something is open
//! - `keys`: values and terms by which a question identifies a row
//! - `marks`: rows that say yes or no, are closed on a day, or lack a value
//! - `ranges`: rows whose range contains a value
//! - `states`: rows that are unfinished
//! - `steps`: rows whose first values are bounds, and the one that a number means
//! - `stock`: rows of things of which none are left

pub(crate) mod conditions;
pub(crate) mod evaluate;
pub(crate) mod extreme;
pub(crate) mod hours;
pub(crate) mod keys;
pub(crate) mod marks;
pub(crate) mod ranges;
pub(crate) mod states;
pub(crate) mod steps;
pub(crate) mod stock;
