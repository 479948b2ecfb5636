//! Sequences: numbers that order everything that was accepted. They rise, and none is given twice.

use rusqlite::Connection;

use super::Catalog;
use super::error::Result;
use super::rows::Statements;
use lodestone_types::Sequence;

impl Catalog {
    /// The newest sequence that was given; 0 before the first.
    pub fn newest_sequence(&self) -> Result<Sequence> {
        self.read(|connection| {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'";
            connection.one(sql, [], |cells| cells.number()).map(Sequence)
        })
    }

    /// Makes every later sequence higher than `least`; returns whether one that is not higher would
    /// have been given: then no tenant's sources count as known. Costs one read otherwise.
    pub fn raise_sequence(&self, least: Sequence) -> Result<bool> {
        if self.newest_sequence()? >= least {
            return Ok(false);
        }
        self.write(move |connection| {
            raise(connection, least)?;
            // Of a file that is older than its tenants' segments, any may have more.
            connection.execute("UPDATE tenants SET sources_known = 0", [])?;
            Ok(())
        })?;
        Ok(true)
    }

    /// Makes every later sequence higher than `least`, which a tenant from elsewhere brings along.
    pub fn make_room_for(&self, least: Sequence) -> Result<()> {
        self.write(move |connection| raise(connection, least))
    }
}

/// Makes every later sequence higher than `least`.
pub(super) fn raise(connection: &Connection, least: Sequence) -> Result<()> {
    let least = least.0 as i64;
    let raised = connection
        .changed("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'jobs'", [least])?;
    if raised == 0 {
        connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?1)", [least])?;
    }
    Ok(())
}

/// Takes the next sequence for an operation that is no job.
pub(super) fn take(connection: &Connection) -> Result<Sequence> {
    raise(connection, Sequence(0))?;
    let sql = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'jobs' RETURNING seq";
    connection.one(sql, [], |cells| cells.number()).map(Sequence)
}
