//! Sources as shown in listings: the visible version combined with the newest accepted one.

use std::sync::Arc;

use crate::query::QueryError;
use lodestone_catalog::job::{JobRow, MetadataChange};
use lodestone_storage::collection::FoundSource;
use lodestone_types::{
    JobErrorCode, JobStatus, Metadata, Progress, RequestContext, SourceRecord, Timestamp,
};

/// A source in any state.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceView {
    /// The visible version or, if there is none yet, the accepted one.
    pub record: Arc<SourceRecord>,
    /// State of the newest accepted version.
    pub status: JobStatus,
    /// Progress of the job, if it is running.
    pub progress: Option<Progress>,
    /// Error code, if the newest version has failed.
    pub error_code: Option<JobErrorCode>,
    /// The error in words, including the older version that is still searchable; empty without an
    /// error.
    pub message: String,
    /// The newest accepted version.
    pub version: u32,
    /// Whether some version can currently be found by searches.
    pub is_searchable: bool,
    /// Number of chunks of the visible version.
    pub chunks: Option<u64>,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl SourceView {
    /// Combines the visible version and the newest job; `None` if there is neither. Its memory is
    /// reserved for the request.
    ///
    /// # Errors
    /// Malformed stored data; [`QueryError::Stopped`] without memory.
    pub fn join(
        context: &RequestContext,
        visible: Option<FoundSource<'_>>,
        job: Option<JobRow>,
    ) -> Result<Option<Self>, QueryError> {
        let view = Self::joined(visible, job)?;
        if let Some(view) = &view {
            let size = view.record.size();
            // The response is held twice while it is written.
            context.reserve(size.memory + 2 * size.json)?;
        }
        Ok(view)
    }

    fn joined(
        visible: Option<FoundSource<'_>>,
        job: Option<JobRow>,
    ) -> Result<Option<Self>, QueryError> {
        let shown = match visible {
            Some(found) => Some((found.record()?, found.rows().len() as u64)),
            None => None,
        };
        let Some(job) = job else {
            let settled = shown.map(|(record, rows)| Self {
                status: JobStatus::Success,
                progress: None,
                error_code: None,
                message: String::new(),
                version: record.version,
                is_searchable: true,
                chunks: Some(rows),
                // The date of a document does not say when it changed on this server.
                updated_at: match record.detail.source_time {
                    Some(_) => record.uploaded_at,
                    None => record.last_updated_at.max(record.uploaded_at),
                },
                record: Arc::new(record),
            });
            return Ok(settled);
        };
        // A successful job without rows means that the source has been deleted since.
        if shown.is_none() && job.status == JobStatus::Success {
            return Ok(None);
        }
        let is_searchable = shown.is_some();
        let message = match (&shown, job.status) {
            (Some((record, _)), JobStatus::Errored) => {
                still_searchable(&job.message, record.version)
            }
            _ => job.message.clone(),
        };
        let (record, rows) = match shown {
            Some((record, rows)) => (record, Some(rows)),
            None => (accepted(&job), None),
        };
        Ok(Some(Self {
            record: Arc::new(record),
            status: job.status,
            progress: job.progress,
            error_code: job.error_code,
            message,
            version: job.job.version,
            is_searchable,
            chunks: rows,
            updated_at: job.updated_at,
        }))
    }
}

/// Explains why a replacement failed, and that the previous version remains.
fn still_searchable(message: &str, version: u32) -> String {
    let why = if message.is_empty() { "processing failed" } else { message };
    format!("{why}; the previous version, v{version}, is still searchable")
}

/// The record of a source before its first version is visible.
fn accepted(row: &JobRow) -> SourceRecord {
    let map = |change: &MetadataChange| match change {
        MetadataChange::Replace(map) => map.clone(),
        MetadataChange::Keep => Metadata::new(),
    };
    let job = &row.job;
    let document_metadata = map(&job.document_metadata);
    let given = document_metadata.get("title").and_then(|title| title.as_str());
    let own = Some(job.detail.title.as_str());
    let title = [own, given, Some(job.filename.as_str()), Some(job.source.as_str())];
    let title = title.into_iter().flatten().find(|title| !title.trim().is_empty());
    SourceRecord {
        sub_tenant: job.sub_tenant.clone(),
        id: job.source.clone(),
        kind: job.kind,
        title: title.unwrap_or_default().to_owned(),
        description: job.detail.description.clone(),
        filename: job.filename.clone(),
        url: job.url.clone(),
        content_type: job.content_type.clone(),
        size_bytes: job.size_bytes,
        tenant_metadata: map(&job.tenant_metadata),
        document_metadata,
        uploaded_at: job.uploaded_at,
        last_updated_at: job.detail.source_time.or(job.origin_at).unwrap_or(job.uploaded_at),
        version: job.version,
        sequence: job.sequence,
        raw_key: job.raw_key.clone(),
        detail: job.detail.clone(),
    }
}
