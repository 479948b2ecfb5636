//! Long deletions in steps of their own, so that others write in between.
//!
//! A deletion that is cut off between two steps is taken up by the next one of the same.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::Catalog;
use super::error::Result;
use super::outbox::Teller;
use super::rows::Statements;

/// Rows of one step.
pub(super) const ROWS_PER_STEP: i64 = 1000;
/// The limit of a statement that has none.
pub(super) const ALL_ROWS: i64 = -1;

impl Catalog {
    /// Runs a step in transactions until it finds fewer than [`ROWS_PER_STEP`] rows. It returns
    /// their number and what `done` is called with after the commit.
    pub(super) fn in_steps<T: Send + 'static>(
        &self,
        step: impl Fn(&Connection, &mut Teller) -> Result<(usize, T)> + Clone + Send + 'static,
        mut done: impl FnMut(T),
    ) -> Result<()> {
        loop {
            let step = step.clone();
            let (rows, value) =
                self.write_telling(move |connection, teller| step(connection, teller))?;
            done(value);
            if (rows as i64) < ROWS_PER_STEP {
                return Ok(());
            }
        }
    }

    /// Deletes rows: `from` is a table with its condition, of which the parameters are `values` and
    /// then the rows of a step.
    pub(super) fn delete_in_steps(&self, from: &str, values: &[Value]) -> Result<()> {
        let sql = format!("DELETE FROM {from}");
        let values = [values, &[Value::Integer(ROWS_PER_STEP)]].concat();
        let step = move |connection: &Connection, _: &mut Teller| {
            Ok((connection.changed(&sql, params_from_iter(&values))?, ()))
        };
        self.in_steps(step, |()| {})
    }
}
