//! Sequences: increasing numbers, never reused, that order all accepted operations.

use rusqlite::Connection;

use super::Catalog;
use super::error::Result;
use super::rows::Statements;
use lodestone_types::Sequence;

impl Catalog {
    /// The newest sequence issued; 0 before the first.
    pub fn newest_sequence(&self) -> Result<Sequence> {
        self.read(|connection| {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'";
            connection.one(sql, [], |cells| cells.number()).map(Sequence)
        })
    }

    /// Ensures that later sequences are higher than `least`. Returns whether the counter had to be
    /// raised, in which case no tenant's sources count as known any more. Otherwise costs one read.
    pub fn raise_sequence(&self, least: Sequence) -> Result<bool> {
        if self.newest_sequence()? >= least {
            return Ok(false);
        }
        self.write(move |connection| {
            raise(connection, least)?;
            // The file is older than its tenants' segments, so any tenant may have more sources.
            connection.execute("UPDATE tenants SET sources_known = 0", [])?;
            Ok(())
        })?;
        Ok(true)
    }

    /// Ensures that later sequences are higher than `least`, which comes with an imported tenant.
    pub fn make_room_for(&self, least: Sequence) -> Result<()> {
        self.write(move |connection| raise(connection, least))
    }
}

/// Ensures that later sequences are higher than `least`.
pub(super) fn raise(connection: &Connection, least: Sequence) -> Result<()> {
    let least = least.0 as i64;
    let raised = connection
        .changed("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'jobs'", [least])?;
    if raised == 0 {
        connection.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?1)", [least])?;
    }
    Ok(())
}

/// Issues the next sequence to an operation that is not a job.
pub(super) fn take(connection: &Connection) -> Result<Sequence> {
    raise(connection, Sequence(0))?;
    let sql = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'jobs' RETURNING seq";
    connection.one(sql, [], |cells| cells.number()).map(Sequence)
}
