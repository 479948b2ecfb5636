//! A job when submitted, when claimed by a worker, and as shown in listings.

use crate::rows::metadata_to_text;
use lodestone_types::{
    CollectionId, JobErrorCode, JobStatus, Metadata, Progress, Sequence, SourceDetail, SourceId,
    SourceKind, SubTenantId, TenantId, Timestamp,
};

/// The change that an upload makes to a stored metadata map.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataChange {
    /// Keep the stored map (a PATCH without the field).
    Keep,
    /// Replace the whole map.
    Replace(Metadata),
}

impl MetadataChange {
    /// Size of the new map as JSON; 0 if it is kept.
    pub fn bytes(&self) -> u64 {
        metadata_to_text(self).map_or(0, |text| text.len() as u64)
    }

    /// Applies the change to `stored`, the map of the visible version.
    pub fn applied_to(self, stored: &Metadata) -> Metadata {
        match self {
            Self::Keep => stored.clone(),
            Self::Replace(map) => map,
        }
    }
}

/// An upload to be accepted. Its bytes must be durable under `raw_key` before it is submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The tenant's collection.
    pub collection: CollectionId,
    /// The sub-tenant, created along with the job if needed.
    pub sub_tenant: SubTenantId,
    /// The source.
    pub source: SourceId,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Key of the stored original, unique to this upload; empty if nothing is stored.
    pub raw_key: String,
    /// Name of the uploaded file without its directory; empty if none.
    pub filename: String,
    /// URL that the source was fetched from or that was supplied with it; empty if none.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Size of the original; 0 for a web page, which is yet to be fetched.
    pub size_bytes: u64,
    /// SHA-256 of the original.
    pub content_hash: [u8; 32],
    /// Change to `tenant_metadata`.
    pub tenant_metadata: MetadataChange,
    /// Change to `document_metadata`.
    pub document_metadata: MetadataChange,
    /// Currently visible version of the source.
    pub known_version: Option<u32>,
    /// When the upload was accepted.
    pub uploaded_at: Timestamp,
    /// Time at the origin, if known.
    pub origin_at: Option<Timestamp>,
    /// Fields supplied with the upload.
    pub detail: SourceDetail,
}

/// A job claimed by a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Position in the order of acceptance.
    pub sequence: Sequence,
    /// The job's id on the wire.
    pub job_id: String,
    /// The sub-tenant.
    pub sub_tenant: SubTenantId,
    /// The source.
    pub source: SourceId,
    /// Kind of the source.
    pub kind: SourceKind,
    /// The version that the job creates.
    pub version: u32,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Key of the stored original.
    pub raw_key: String,
    /// Name of the uploaded file.
    pub filename: String,
    /// URL that the source was fetched from or that was supplied with it.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Size of the original.
    pub size_bytes: u64,
    /// SHA-256 of the original.
    pub content_hash: [u8; 32],
    /// Change to `tenant_metadata`, including those of superseded uploads.
    pub tenant_metadata: MetadataChange,
    /// Change to `document_metadata`, including those of superseded uploads.
    pub document_metadata: MetadataChange,
    /// When the upload was accepted.
    pub uploaded_at: Timestamp,
    /// Time at the origin, if known.
    pub origin_at: Option<Timestamp>,
    /// Number of metadata amendments since acceptance.
    pub revision: u32,
    /// Whether the original is stored; false for a web page yet to be fetched.
    pub is_fetched: bool,
    /// Fields supplied with the upload.
    pub detail: SourceDetail,
}

impl ClaimedJob {
    /// Size of the metadata changes as JSON.
    pub fn metadata_bytes(&self) -> u64 {
        self.tenant_metadata.bytes() + self.document_metadata.bytes()
    }
}

/// A job as shown by status requests and listings.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// The tenant's name.
    pub tenant: TenantId,
    /// The tenant's collection.
    pub collection: CollectionId,
    /// The state.
    pub status: JobStatus,
    /// Progress of a job in progress; `None` in other states.
    pub progress: Option<Progress>,
    /// Code of the error; `None` in other states.
    pub error_code: Option<JobErrorCode>,
    /// Message of the error; empty in other states.
    pub message: String,
    /// Number of chunks created, once the job succeeded.
    pub chunks: Option<u64>,
    /// Whether the source already existed when the upload was accepted.
    pub overwritten: bool,
    /// When a worker last claimed the job.
    pub started_at: Option<Timestamp>,
    /// When the job ended.
    pub finished_at: Option<Timestamp>,
    /// Time of the last state change.
    pub updated_at: Timestamp,
    /// The upload. After success the metadata maps have moved to the segment, and both changes read
    /// as `Keep`.
    pub job: ClaimedJob,
}
