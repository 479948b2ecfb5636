//! Conversion between columns and values.

use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Row};
use uuid::Uuid;

use super::error::{CatalogError, Result};
use crate::job::{ClaimedJob, JobRow, MetadataChange};
use lodestone_types::id::InvalidIdentifier;
use lodestone_types::{
    CollectionId, JobErrorCode, JobState, JobStatus, Metadata, Sequence, SourceDetail, SourceId,
    SourceKind, SubTenantId, TenantId, Timestamp,
};

/// The columns of a job, in the order expected by [`read_job`]; the table alias is `j`.
pub(super) const JOB_COLUMNS: &str = "j.seq, j.job_id, j.sub_tenant, j.source, j.kind, j.version,
    j.attempts, j.raw_key, j.filename, j.url, j.content_type, j.size_bytes, j.content_hash,
    j.tenant_metadata, j.document_metadata, j.uploaded_at, j.origin_at,
    j.revision, j.fetch, j.detail";

/// The columns read by [`read_job_row`] after [`JOB_COLUMNS`]; the tenant's table alias is `t`.
pub(super) const STATE_COLUMNS: &str = "t.name, j.collection, j.status, j.fault, j.message,
    j.chunks, j.overwritten, j.started_at, j.finished_at, j.updated_at";

/// The columns of a row, read from left to right.
pub(super) struct Cells<'a> {
    row: &'a Row<'a>,
    position: usize,
}

/// Executes single statements, which stay prepared.
pub(super) trait Statements {
    fn connection(&self) -> &Connection;

    /// Runs a statement that returns no rows; returns the number of rows changed.
    fn changed(&self, sql: &str, parameters: impl Params) -> Result<usize> {
        Ok(self.connection().prepare_cached(sql)?.execute(parameters)?)
    }

    /// Runs a statement that returns no rows.
    fn run(&self, sql: &str, parameters: impl Params) -> Result<()> {
        self.changed(sql, parameters).map(|_rows| ())
    }

    /// Whether a query returns any row.
    fn any(&self, sql: &str, parameters: impl Params) -> Result<bool> {
        Ok(self.connection().prepare_cached(sql)?.exists(parameters)?)
    }

    /// Calls `each` on the rows of a query until it returns false.
    fn each_while(
        &self,
        sql: &str,
        parameters: impl Params,
        mut each: impl FnMut(&mut Cells<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut statement = self.connection().prepare_cached(sql)?;
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()?
            && each(&mut Cells { row, position: 0 })?
        {}
        Ok(())
    }

    /// Calls `each` on every row of a query.
    fn each(
        &self,
        sql: &str,
        parameters: impl Params,
        mut each: impl FnMut(&mut Cells<'_>) -> Result<()>,
    ) -> Result<()> {
        self.each_while(sql, parameters, |cells| each(cells).map(|()| true))
    }

    /// Collects all rows of a query.
    fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.each(sql, parameters, |cells| read(cells).map(|value| values.push(value)))?;
        Ok(values)
    }

    /// Returns the first row of a query, if any, without fetching others.
    fn first<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.each_while(sql, parameters, |cells| {
            first = Some(read(cells)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// Returns the only row of a query; an error if there is none.
    fn one<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        read: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<T> {
        let row = self.first(sql, parameters, read)?;
        row.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
    }
}

impl Statements for Connection {
    fn connection(&self) -> &Connection {
        self
    }
}

impl Cells<'_> {
    pub(super) fn next<T: FromSql>(&mut self) -> Result<T> {
        let value = self.row.get(self.position)?;
        self.position += 1;
        Ok(value)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        Ok(self.next::<i64>()? as u64)
    }

    pub(super) fn optional_number(&mut self) -> Result<Option<u64>> {
        Ok(self.next::<Option<i64>>()?.map(|value| value as u64))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp> {
        self.number().map(Timestamp)
    }

    pub(super) fn optional_time(&mut self) -> Result<Option<Timestamp>> {
        Ok(self.optional_number()?.map(Timestamp))
    }

    pub(super) fn collection(&mut self) -> Result<CollectionId> {
        Ok(CollectionId(Uuid::from_bytes(self.next()?)))
    }

    pub(super) fn tenant(&mut self) -> Result<TenantId> {
        self.name(TenantId::parse)
    }

    pub(super) fn sub_tenant(&mut self) -> Result<SubTenantId> {
        self.name(SubTenantId::parse)
    }

    pub(super) fn source(&mut self) -> Result<SourceId> {
        self.name(SourceId::parse)
    }

    fn name<T>(
        &mut self,
        parse: fn(&str) -> std::result::Result<T, InvalidIdentifier>,
    ) -> Result<T> {
        let text: String = self.next()?;
        parse(&text).map_err(|error| CatalogError::corrupt(error.to_string()))
    }

    /// Reads a column that holds one of a fixed set of words.
    pub(super) fn word<T>(&mut self, parse: fn(&str) -> Option<T>) -> Result<T> {
        let text: String = self.next()?;
        parse(&text).ok_or_else(|| CatalogError::corrupt(format!("unknown word {text:?}")))
    }

    pub(super) fn detail(&mut self) -> Result<SourceDetail> {
        match self.next::<String>()?.as_str() {
            "" => Ok(SourceDetail::default()),
            text => serde_json::from_str(text)
                .map_err(|error| CatalogError::corrupt(format!("detail: {error}"))),
        }
    }

    fn metadata(&mut self) -> Result<MetadataChange> {
        match self.next::<Option<String>>()? {
            None => Ok(MetadataChange::Keep),
            Some(text) => Ok(MetadataChange::Replace(metadata_from_text(&text)?)),
        }
    }
}

/// Serialises a detail for storage; empty if there is none.
pub(super) fn detail_to_text(detail: &SourceDetail) -> String {
    match detail.is_empty() {
        true => String::new(),
        false => serde_json::to_string(detail).expect("plain data always prints"),
    }
}

/// The stored form of a collection id.
pub(super) fn blob(collection: CollectionId) -> [u8; 16] {
    *collection.0.as_bytes()
}

/// The stored form of a change to a metadata map; `None` keeps the map.
pub(super) fn metadata_to_text(change: &MetadataChange) -> Option<String> {
    match change {
        MetadataChange::Keep => None,
        MetadataChange::Replace(map) => {
            Some(serde_json::to_string(map).expect("a map of JSON values is valid JSON"))
        }
    }
}

fn metadata_from_text(text: &str) -> Result<Metadata> {
    serde_json::from_str(text).map_err(|error| CatalogError::corrupt(format!("metadata: {error}")))
}

/// Reads [`JOB_COLUMNS`].
pub(super) fn read_job(cells: &mut Cells<'_>) -> Result<ClaimedJob> {
    Ok(ClaimedJob {
        sequence: Sequence(cells.number()?),
        job_id: cells.next()?,
        sub_tenant: cells.sub_tenant()?,
        source: cells.source()?,
        kind: cells.word(SourceKind::from_word)?,
        version: cells.next()?,
        attempts: cells.next()?,
        raw_key: cells.next()?,
        filename: cells.next()?,
        url: cells.next()?,
        content_type: cells.next()?,
        size_bytes: cells.number()?,
        content_hash: cells.next()?,
        tenant_metadata: cells.metadata()?,
        document_metadata: cells.metadata()?,
        uploaded_at: cells.time()?,
        origin_at: cells.optional_time()?,
        revision: cells.next()?,
        is_fetched: !cells.next::<bool>()?,
        detail: cells.detail()?,
    })
}

/// Reads [`JOB_COLUMNS`] and [`STATE_COLUMNS`]; the progress is known in memory only.
pub(super) fn read_job_row(cells: &mut Cells<'_>) -> Result<JobRow> {
    let job = read_job(cells)?;
    Ok(JobRow {
        tenant: cells.tenant()?,
        collection: cells.collection()?,
        status: cells.word(JobStatus::from_word)?,
        progress: None,
        // An unknown word of a later release reads as an internal error.
        error_code: cells
            .next::<Option<String>>()?
            .map(|word| JobErrorCode::from_word(&word).unwrap_or(JobErrorCode::Internal)),
        message: cells.next()?,
        chunks: cells.optional_number()?,
        overwritten: cells.next()?,
        started_at: cells.optional_time()?,
        finished_at: cells.optional_time()?,
        updated_at: cells.time()?,
        job,
    })
}

/// Reads `status, attempts, interruptions`.
pub(super) fn read_state(cells: &mut Cells<'_>) -> Result<JobState> {
    Ok(JobState {
        status: cells.word(JobStatus::from_word)?,
        attempts: cells.next()?,
        interruptions: cells.next()?,
    })
}
