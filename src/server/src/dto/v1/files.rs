//! Uploaded files.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::pages::{AFTER, ORDER};
use super::{FILE_ID, SUB_TENANT_HEADER, TENANT_HEADER};
use crate::error::{ApiError, Location};
use crate::request::fields::{missing, wrong};
use crate::request::{Field, Fields, Kind, Request, UploadedFile};
use lodestone_types::{SubTenantId, TenantId, limits};

const PURPOSES: &[&str] = &["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];
const PURPOSE_DOC: &str = "Purpose as defined by OpenAI; stored and returned, but without effect.";

static FILE: Field = Field::form("file", Kind::File, "File to upload, at most 100 MiB.").required();
static PURPOSE: Field = Field::form(
    "purpose",
    Kind::Choice { words: PURPOSES, default: None, is_exact: true },
    PURPOSE_DOC,
)
.required();
static EXPIRES_AFTER: Field = Field::form(
    "expires_after",
    Kind::Any { schema: || json!({"type": "object"}) },
    "Refused, because files are kept until they are deleted.",
);
static OF_PURPOSE: Field = Field::query(
    "purpose",
    Kind::Text { chars_max: limits::ID_CHARS_MAX, is_filled: false },
    "Only list files with this purpose.",
);
static LIMIT: Field = Field::query(
    "limit",
    Kind::Integer {
        min: 1,
        max: limits::FILES_PAGE_MAX as u64,
        default: Some(limits::FILES_PAGE_MAX as u64),
    },
    "Maximum number of files per page.",
);

/// Input of `POST /v1/files`.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFile {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// The sub-tenant that the file will belong to, if named.
    pub sub_tenant: Option<SubTenantId>,
    /// The file.
    pub file: UploadedFile,
    /// The purpose of the file.
    pub purpose: String,
}

impl Request for CreateFile {
    const FIELDS: &'static [&'static Field] =
        &[&FILE, &PURPOSE, &EXPIRES_AFTER, &TENANT_HEADER, &SUB_TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let file = fields.files(&FILE)?.pop().ok_or_else(|| missing(&FILE))?;
        let purpose = fields.choice(&PURPOSE)?.ok_or_else(|| missing(&PURPOSE))?.to_owned();
        // Its members are sent as separate parts, such as `expires_after[anchor]`.
        let base = |name: &str| name.split('[').next() == Some(EXPIRES_AFTER.name);
        if fields.form.texts.iter().any(|(name, _)| base(name)) {
            let (code, place) = ("unsupported_parameter", Location::Form);
            let problem = "is not supported: files are kept until they are deleted";
            return Err(ApiError::field(code, place, EXPIRES_AFTER.name, problem));
        }
        if file.bytes.is_empty() {
            return Err(wrong(&FILE, Location::Form, "is empty"));
        }
        let tenant = fields.tenant(&TENANT_HEADER)?;
        let sub_tenant = fields.id(&SUB_TENANT_HEADER, SubTenantId::parse_field)?;
        Ok(Self { tenant, sub_tenant, file, purpose })
    }
}

/// Input of `GET /v1/files`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFiles {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// Restricts the list to files with this purpose.
    pub purpose: Option<String>,
    /// Id of the file after which the page begins.
    pub after: Option<String>,
    /// Whether to list the oldest files first.
    pub is_ascending: bool,
    /// Maximum number of files.
    pub limit: usize,
}

impl Request for ListFiles {
    const FIELDS: &'static [&'static Field] =
        &[&OF_PURPOSE, &AFTER, &ORDER, &LIMIT, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            purpose: fields.text(&OF_PURPOSE)?.filter(|text| !text.is_empty()),
            after: fields.text(&AFTER)?.filter(|text| !text.is_empty()),
            is_ascending: fields.choice(&ORDER)? == Some("asc"),
            limit: fields.integer(&LIMIT)?.unwrap_or_default() as usize,
            tenant: fields.tenant(&TENANT_HEADER)?,
        })
    }
}

/// Input of `GET` and `DELETE /v1/files/{file_id}`, `GET /v1/files/{file_id}/content`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneFile {
    /// The tenant, if named.
    pub tenant: Option<TenantId>,
    /// Id of the file as sent, not validated.
    pub id: String,
}

impl Request for OneFile {
    const FIELDS: &'static [&'static Field] = &[&FILE_ID, &TENANT_HEADER];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        let id = fields.required_text(&FILE_ID)?;
        Ok(Self { tenant: fields.tenant(&TENANT_HEADER)?, id })
    }
}

/// Uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileView {
    /// File id.
    pub id: String,
    /// Always `file`.
    pub object: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Upload time in epoch seconds.
    pub created_at: u64,
    /// Always null, because files are kept until they are deleted.
    pub expires_at: Option<u64>,
    /// File name, or the id if it has none.
    pub filename: String,
    /// Purpose given on upload.
    pub purpose: String,
    /// Always `processed`, because a file is stored before the upload returns.
    pub status: &'static str,
    /// Always null.
    pub status_details: Option<String>,
}
