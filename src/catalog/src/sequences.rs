//! Sequences: numbers that order everything that was accepted. They rise, and none is given twice.

use rusqlite::Connection;

use super::Catalog;
use super::error::Result;
use lodestone_types::Sequence;

impl Catalog {
    /// The newest sequence that was given; 0 before the first.
    ///
    /// # Errors
    /// Storage errors.
    pub fn newest_sequence(&self) -> Result<Sequence> {
        self.read(|connection| {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'";
            let newest = connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0));
            Ok(Sequence(newest? as u64))
        })
    }

    /// Makes every later sequence higher than `least`; returns whether one that is not higher would
    /// have been given: then no tenant's sources count as known. Costs one read otherwise.
    ///
    /// # Errors
    /// Storage errors.
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
    ///
    /// # Errors
    /// Storage errors.
    pub fn make_room_for(&self, least: Sequence) -> Result<()> {
        self.write(move |connection| raise(connection, least))
    }
}

/// Makes every later sequence higher than `least`.
pub(super) fn raise(connection: &Connection, least: Sequence) -> Result<()> {
    let least = least.0 as i64;
    let raised = connection
        .prepare_cached("UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'jobs'")?
        .execute([least])?;
    if raised == 0 {
        connection
            .prepare_cached("INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?1)")?
            .execute([least])?;
    }
    Ok(())
}

/// Takes the next sequence for an operation that is no job.
pub(super) fn take(connection: &Connection) -> Result<Sequence> {
    raise(connection, Sequence(0))?;
    let mut next = connection.prepare_cached(
        "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'jobs' RETURNING seq",
    )?;
    Ok(Sequence(next.query_row([], |row| row.get::<_, i64>(0))? as u64))
}
