//! Long deletions split into transactions of limited size, so that other writes can run in between.
//!
//! A deletion interrupted between two steps is completed by the next call of the same kind.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::Catalog;
use super::error::Result;
use super::outbox::Teller;
use super::rows::Statements;

/// Maximum number of rows per step.
pub(super) const ROWS_PER_STEP: i64 = 1000;
/// The value of `LIMIT` that means no limit.
pub(super) const ALL_ROWS: i64 = -1;

impl Catalog {
    /// Runs `step` in transactions until it handles fewer than [`ROWS_PER_STEP`] rows. `step`
    /// returns their number and a value, which is passed to `done` after the commit.
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

    /// Deletes rows in steps: `from` is a table and its condition, whose parameters are `values`
    /// followed by the row limit.
    pub(super) fn delete_in_steps(&self, from: &str, values: &[Value]) -> Result<()> {
        let sql = format!("DELETE FROM {from}");
        let values = [values, &[Value::Integer(ROWS_PER_STEP)]].concat();
        let step = move |connection: &Connection, _: &mut Teller| {
            Ok((connection.changed(&sql, params_from_iter(&values))?, ()))
        };
        self.in_steps(step, |()| {})
    }
}
