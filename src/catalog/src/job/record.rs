//! A job on its way in, in a worker's hands, and as listings show it.

use crate::rows::metadata_to_text;
use lodestone_types::{
    CollectionId, JobErrorCode, JobStatus, Metadata, Progress, Sequence, SourceDetail, SourceId,
    SourceKind, SubTenantId, TenantId, Timestamp,
};

/// Change that an upload makes to one stored metadata map.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataChange {
    /// The map stays as it is stored (a PATCH without the field).
    Keep,
    /// The map is replaced as a whole.
    Replace(Metadata),
}

impl MetadataChange {
    /// Bytes of the new map as JSON; 0 where it stays.
    pub fn bytes(&self) -> u64 {
        metadata_to_text(self).map_or(0, |text| text.len() as u64)
    }

    /// The map after the change, where `stored` is the one of the visible version.
    pub fn applied_to(self, stored: &Metadata) -> Metadata {
        match self {
            Self::Keep => stored.clone(),
            Self::Replace(map) => map,
        }
    }
}

/// One accepted upload. Its bytes are durable under `raw_key` before it is submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// The collection of the tenant.
    pub collection: CollectionId,
    /// The sub-tenant, which is created with the job.
    pub sub_tenant: SubTenantId,
    /// The source.
    pub source: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// Key of the stored original; two uploads never share one. Empty where none is stored.
    pub raw_key: String,
    /// Name of the uploaded file, without path parts; empty when none.
    pub filename: String,
    /// Address from which it was fetched, or that was given with it; empty when none.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Bytes of the original; a page of the web without any is fetched first.
    pub size_bytes: u64,
    /// SHA-256 of the original.
    pub content_hash: [u8; 32],
    /// Change of the tenant's map.
    pub tenant_metadata: MetadataChange,
    /// Change of the document's map.
    pub document_metadata: MetadataChange,
    /// Version of the source that is visible now.
    pub known_version: Option<u32>,
    /// When the upload was accepted.
    pub uploaded_at: Timestamp,
    /// Origin time, where the source has one.
    pub origin_at: Option<Timestamp>,
    /// Fields given with the upload.
    pub detail: SourceDetail,
}

/// A job in the hands of a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimedJob {
    /// Its position in the order of acceptance.
    pub sequence: Sequence,
    /// Its name on the wire.
    pub job_id: String,
    /// The sub-tenant.
    pub sub_tenant: SubTenantId,
    /// The source.
    pub source: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// The version that it makes.
    pub version: u32,
    /// Failed attempts so far.
    pub attempts: u32,
    /// Key of the stored original.
    pub raw_key: String,
    /// Name of the uploaded file.
    pub filename: String,
    /// Address from which it was fetched.
    pub url: String,
    /// Media type of the original.
    pub content_type: String,
    /// Bytes of the original.
    pub size_bytes: u64,
    /// SHA-256 of the original.
    pub content_hash: [u8; 32],
    /// Change of the tenant's map, with the changes of superseded uploads.
    pub tenant_metadata: MetadataChange,
    /// Change of the document's map, with the changes of superseded uploads.
    pub document_metadata: MetadataChange,
    /// When the upload was accepted.
    pub uploaded_at: Timestamp,
    /// Origin time, where the source has one.
    pub origin_at: Option<Timestamp>,
    /// Number of changes of its metadata since it was accepted.
    pub revision: u32,
    /// False for a page of the web that has yet to be fetched.
    pub is_fetched: bool,
    /// Fields given with the upload.
    pub detail: SourceDetail,
}

impl ClaimedJob {
    /// Bytes of its metadata as JSON.
    pub fn metadata_bytes(&self) -> u64 {
        self.tenant_metadata.bytes() + self.document_metadata.bytes()
    }
}

/// A job as status and listings show it.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// The tenant's name.
    pub tenant: TenantId,
    /// The collection of the tenant.
    pub collection: CollectionId,
    /// The state.
    pub status: JobStatus,
    /// Progress of a running job; `None` in any other state.
    pub progress: Option<Progress>,
    /// Code of its error; `None` in any other state.
    pub error_code: Option<JobErrorCode>,
    /// The reason in words; empty in any other state.
    pub message: String,
    /// Chunks made, once it succeeded.
    pub chunks: Option<u64>,
    /// Whether the source existed when the upload was accepted.
    pub overwritten: bool,
    /// When a worker last took it.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The last change of its state.
    pub updated_at: Timestamp,
    /// The upload. A job that succeeded has handed its metadata maps to the segment:
    /// both read as `Keep`.
    pub job: ClaimedJob,
}
