//! Uploads of single texts and documents: upload, update, status.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::dto::given::{
    self, LANGUAGE_BODY, LANGUAGE_FORM, SOURCE_TIME_BODY, SOURCE_TIME_FORM, TITLE_BODY, TITLE_FORM,
    URL_BODY, URL_FORM,
};
use crate::dto::inputs::{
    CONTENT, DOCUMENT_METADATA, DOCUMENT_METADATA_FORM, FILE_ID_BODY, FILE_ID_FORM,
    OTHER_THAN_FILE_ID, OTHER_THAN_SOURCE_ID, SOURCE_ID_QUERY, SUB_TENANT_BODY, SUB_TENANT_FORM,
    SUB_TENANT_QUERY, TENANT_BODY, TENANT_FORM, TENANT_METADATA, TENANT_METADATA_FORM,
    TENANT_OPTIONAL, TENANT_QUERY, body_scope, chosen_id, query_scope, required_source_id,
    source_id, tenant,
};
use crate::error::{ApiError, Location};
use crate::request::fields::missing;
use crate::request::{Field, Fields, Kind, Request, UploadedFile};
use lodestone_types::{
    JobStatus, Metadata, Origin, Scope, SourceId, SourceRecord, SubTenantId, TenantId, limits,
};

static FILE: Field = Field::form("file", Kind::File, "Document file, at most 100 MiB.").required();
static WAIT: Field = Field::query(
    "wait",
    Kind::Integer { min: 0, max: limits::WAIT_SECONDS_MAX, default: Some(0) },
    "Maximum seconds to wait for processing to finish before responding.",
);
static FILE_ID_QUERY: Field =
    Field::query("file_id", Kind::Identifier, "Source id.").or(OTHER_THAN_FILE_ID).required();
static SOURCE_ID_BODY: Field =
    Field::body("source_id", Kind::Identifier, "Source id.").or(OTHER_THAN_SOURCE_ID).required();

/// Input of `POST /upload/upload_text`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadText {
    /// Destination scope.
    pub scope: Scope,
    /// The text.
    pub content: String,
    /// Id of the source; generated when `None`.
    pub file_id: Option<SourceId>,
    /// Values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// Metadata of the document.
    pub document_metadata: Option<Metadata>,
    /// Title, address, date and language.
    pub origin: Origin,
}

impl Request for UploadText {
    const FIELDS: &'static [&'static Field] = &[
        &TENANT_QUERY, &SUB_TENANT_QUERY, &CONTENT, &FILE_ID_BODY, &TENANT_METADATA,
        &DOCUMENT_METADATA, &TITLE_BODY, &URL_BODY, &SOURCE_TIME_BODY, &LANGUAGE_BODY,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let content = fields.required_text(&CONTENT)?;
        let file_id = source_id(fields, &FILE_ID_BODY)?;
        let tenant_metadata = fields.metadata(&TENANT_METADATA)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA)?;
        let file_id = chosen_id(file_id, document_metadata.as_ref(), Location::Body)?;
        let origin = given::origin(fields, &given::BODY)?;
        Ok(Self { scope, content, file_id, tenant_metadata, document_metadata, origin })
    }
}

/// Input of `PATCH /upload/update_text`. Metadata of `None` keeps the stored map.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateText {
    /// Scope addressed.
    pub scope: Scope,
    /// The source to replace; created if unknown.
    pub source_id: SourceId,
    /// The new text.
    pub content: String,
    /// New values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// New metadata of the document.
    pub document_metadata: Option<Metadata>,
    /// Title, address, date and language; absent ones keep their stored values.
    pub origin: Origin,
}

impl Request for UpdateText {
    const FIELDS: &'static [&'static Field] = &[
        &SOURCE_ID_QUERY, &TENANT_QUERY, &SUB_TENANT_QUERY, &CONTENT, &TENANT_METADATA,
        &DOCUMENT_METADATA, &TITLE_BODY, &URL_BODY, &SOURCE_TIME_BODY, &LANGUAGE_BODY,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let id = required_source_id(fields, &SOURCE_ID_QUERY)?;
        let content = fields.required_text(&CONTENT)?;
        let tenant_metadata = fields.metadata(&TENANT_METADATA)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA)?;
        let origin = given::origin_of_update(fields, &given::BODY)?;
        Ok(Self { scope, source_id: id, content, tenant_metadata, document_metadata, origin })
    }
}

/// Input of `POST /upload/upload_document`.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadDocument {
    /// Destination scope.
    pub scope: Scope,
    /// The document; never empty.
    pub file: UploadedFile,
    /// Id of the source; generated when `None`.
    pub file_id: Option<SourceId>,
    /// Values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// Metadata of the document.
    pub document_metadata: Option<Metadata>,
    /// Title, address, date and language.
    pub origin: Origin,
}

impl Request for UploadDocument {
    const FIELDS: &'static [&'static Field] = &[
        &FILE, &TENANT_FORM, &SUB_TENANT_FORM, &FILE_ID_FORM, &TENANT_METADATA_FORM,
        &DOCUMENT_METADATA_FORM, &TITLE_FORM, &URL_FORM, &SOURCE_TIME_FORM, &LANGUAGE_FORM,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = fields.scope(&TENANT_FORM, &SUB_TENANT_FORM)?;
        let file_id = source_id(fields, &FILE_ID_FORM)?;
        let tenant_metadata = fields.metadata(&TENANT_METADATA_FORM)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA_FORM)?;
        let file_id = chosen_id(file_id, document_metadata.as_ref(), Location::Form)?;
        let origin = given::origin(fields, &given::FORM)?;
        let file = one_file(fields)?;
        Ok(Self { scope, file, file_id, tenant_metadata, document_metadata, origin })
    }
}

fn one_file(fields: &mut Fields) -> Result<UploadedFile, ApiError> {
    let file = fields.files(&FILE)?.pop().ok_or_else(|| missing(&FILE))?;
    if file.bytes.is_empty() {
        return Err(ApiError::field("empty_file", Location::Form, "file", "is empty"));
    }
    Ok(file)
}

/// Input of `PATCH /upload/update_document`. Metadata of `None` keeps the stored map.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateDocument {
    /// Scope addressed.
    pub scope: Scope,
    /// The source to replace; created if unknown.
    pub source_id: SourceId,
    /// The new document; never empty.
    pub file: UploadedFile,
    /// New values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// New metadata of the document.
    pub document_metadata: Option<Metadata>,
    /// Title, address, date and language; absent ones keep their stored values.
    pub origin: Origin,
}

impl Request for UpdateDocument {
    const FIELDS: &'static [&'static Field] = &[
        &SOURCE_ID_QUERY, &TENANT_QUERY, &SUB_TENANT_QUERY, &FILE, &TENANT_METADATA_FORM,
        &DOCUMENT_METADATA_FORM, &TITLE_FORM, &URL_FORM, &SOURCE_TIME_FORM, &LANGUAGE_FORM,
    ];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = query_scope(fields)?;
        let id = required_source_id(fields, &SOURCE_ID_QUERY)?;
        let tenant_metadata = fields.metadata(&TENANT_METADATA_FORM)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA_FORM)?;
        let origin = given::origin_of_update(fields, &given::FORM)?;
        let file = one_file(fields)?;
        Ok(Self { scope, source_id: id, file, tenant_metadata, document_metadata, origin })
    }
}

/// Input of `PATCH /upload/update_metadata`. A map of `None` keeps the stored one.
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateMetadata {
    /// Scope addressed.
    pub scope: Scope,
    /// The source.
    pub source_id: SourceId,
    /// New values of the tenant's schema.
    pub tenant_metadata: Option<Metadata>,
    /// New metadata of the document.
    pub document_metadata: Option<Metadata>,
}

impl Request for UpdateMetadata {
    const FIELDS: &'static [&'static Field] =
        &[&TENANT_BODY, &SUB_TENANT_BODY, &SOURCE_ID_BODY, &TENANT_METADATA, &DOCUMENT_METADATA];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let scope = body_scope(fields)?;
        let source_id = required_source_id(fields, &SOURCE_ID_BODY)?;
        let tenant_metadata = fields.metadata(&TENANT_METADATA)?;
        let document_metadata = fields.metadata(&DOCUMENT_METADATA)?;
        Ok(Self { scope, source_id, tenant_metadata, document_metadata })
    }
}

/// Input of `POST` and `GET /upload/verify_processing`.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyProcessing {
    /// The tenant; `None` searches all tenants that the key may read.
    pub tenant: Option<TenantId>,
    /// The sub-tenant; `None` searches `default` first, then the others.
    pub sub_tenant: Option<SubTenantId>,
    /// The source.
    pub file_id: SourceId,
    /// Maximum time to wait for the end of processing.
    pub wait: Duration,
}

impl Request for VerifyProcessing {
    const FIELDS: &'static [&'static Field] =
        &[&FILE_ID_QUERY, &TENANT_OPTIONAL, &SUB_TENANT_QUERY, &WAIT];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let file_id = required_source_id(fields, &FILE_ID_QUERY)?;
        let tenant = tenant(fields, &TENANT_OPTIONAL)?;
        let sub_tenant = fields.id(&SUB_TENANT_QUERY, SubTenantId::parse_field)?;
        let wait = Duration::from_secs(fields.integer(&WAIT)?.unwrap_or_default());
        Ok(Self { tenant, sub_tenant, file_id, wait })
    }
}

/// Processing state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Accepted and stored durably.
    Queued,
    /// Being processed.
    InProgress,
    /// Searchable.
    Success,
    /// Failed, with a reason.
    Errored,
}

impl Status {
    /// Whether processing has ended, successfully or not.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Success | Self::Errored)
    }
}

impl From<JobStatus> for Status {
    fn from(status: JobStatus) -> Self {
        match status {
            JobStatus::Queued => Self::Queued,
            JobStatus::InProgress => Self::InProgress,
            JobStatus::Success => Self::Success,
            JobStatus::Errored => Self::Errored,
        }
    }
}

/// Response to the upload or update of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Accepted {
    /// Source id.
    pub file_id: String,
    /// Human-readable message that says whether content was overwritten.
    pub message: String,
    /// Always `true`.
    pub success: bool,
    /// Processing state.
    pub status: Status,
    /// Whether an existing source is replaced.
    pub overwritten: bool,
}

/// Response of `verify_processing`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProcessingStatus {
    /// Source id.
    pub file_id: String,
    /// Processing state.
    pub status: Status,
    /// Always equal to `status`.
    pub indexing_status: Status,
    /// `true` whenever the lookup succeeded.
    pub success: bool,
    /// Reason for the state `errored`.
    pub message: String,
    /// Processing error code, or empty.
    pub error_code: String,
    /// Tenant that contains the source.
    pub tenant_id: String,
    /// Sub-tenant that contains the source.
    pub sub_tenant_id: String,
    /// Time of the last change in epoch seconds.
    pub updated_at: String,
    /// Version that this status refers to: `v1`, `v2` and so on.
    pub version: String,
    /// Processing stage, while in progress.
    pub stage: Option<String>,
    /// Share of chunks that have been embedded, 0 to 1, while known.
    pub progress: Option<f64>,
    /// Whether any version is currently searchable.
    pub searchable: bool,
    /// Number of chunks of the visible version.
    pub chunk_count: Option<u64>,
    /// Date of the document in epoch seconds; null if none was given.
    pub source_time: Option<String>,
    /// Language tag of the document; null if none was given.
    pub language: Option<String>,
    /// Parts of the document that could not be read; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Warning about a part of a document that could not be read, although the rest was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// `unreadable_pages`, `pages_without_text`, `cut_off`, `read_as_text`,
    /// `attachment_not_read` or `formulas_without_values`.
    pub code: String,
    /// Human-readable message.
    pub message: String,
    /// Affected pages, at most 100; absent if the warning is not about pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<u32>,
}

impl Warning {
    /// Returns the warnings recorded for a version of a source.
    pub fn of(record: &SourceRecord) -> Vec<Self> {
        let shown = |warning: lodestone_types::Warning| {
            let lodestone_types::Warning { code, message, pages } = warning;
            Self { code, message, pages }
        };
        record.detail.warnings.iter().cloned().map(shown).collect()
    }
}

/// Formats a version number as it appears in responses.
pub fn version_name(version: u32) -> String {
    format!("v{version}")
}
