//! Sources as listings show them: the visible version, and the newest accepted one.

use std::sync::Arc;

use crate::query::QueryError;
use lodestone_catalog::job::{JobRow, MetadataChange};
use lodestone_storage::collection::FoundSource;
use lodestone_types::{JobErrorCode, JobStatus, Metadata, Progress, SourceRecord, Timestamp};

/// A source in any state.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceView {
    /// The visible version; where there is none yet, the accepted one.
    pub record: Arc<SourceRecord>,
    /// State of the newest accepted version.
    pub status: JobStatus,
    /// Progress of a running job.
    pub progress: Option<Progress>,
    /// Why the newest version is errored.
    pub error_code: Option<JobErrorCode>,
    /// The error in words, and the older version that is still searchable; empty otherwise.
    pub message: String,
    /// The newest accepted version.
    pub version: u32,
    /// Whether some version can be found by searches now.
    pub is_searchable: bool,
    /// Chunks of the visible version.
    pub chunks: Option<u64>,
    /// The last change.
    pub updated_at: Timestamp,
}

impl SourceView {
    /// Joins the visible version and the newest job; `None` where there is neither.
    ///
    /// # Errors
    /// Malformed stored bytes.
    pub fn join(
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
                // The date of a document says nothing of when it changed here.
                updated_at: match record.detail.source_time {
                    Some(_) => record.uploaded_at,
                    None => record.last_updated_at.max(record.uploaded_at),
                },
                record: Arc::new(record),
            });
            return Ok(settled);
        };
        // The job of a source without rows has succeeded: the source was deleted since.
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

/// The reason why a replacement failed, and that it has replaced nothing.
fn still_searchable(message: &str, version: u32) -> String {
    let why = if message.is_empty() { "processing failed" } else { message };
    format!("{why}; the version before it, v{version}, is still searchable")
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
