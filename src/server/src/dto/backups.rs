//! Backups, which are reserved to operators.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_engine::backup::Location;
use lodestone_types::TenantId;

static TO: Field = Field::body(
    "to",
    Kind::Text { chars_max: 4096, is_filled: true },
    "Folder or bucket of the setting backup-to, or a folder in it; that of the setting if absent.",
);
static TENANT: Field =
    Field::body("tenant_id", Kind::Identifier, "Only this tenant; all tenants if absent.");
static WITH_KEYS: Field = Field::body(
    "with_keys",
    Kind::Boolean { default: false },
    "Whether to include the names, scopes and hashes of API keys; not allowed with tenant_id.",
);
static FULL: Field = Field::body(
    "full",
    Kind::Boolean { default: false },
    "Whether to copy every file, even those in earlier backups.",
);

static OF: Field = Field::body(
    "data_directory",
    Kind::Text { chars_max: 64, is_filled: true },
    "Device and inode of the expected data directory, as `DEVICE:INODE`; a server with another \
     one refuses.",
);

/// Input of `POST /admin/backups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginBackup {
    /// Destination of the backup.
    pub to: Option<Location>,
    /// Device and inode of the data directory that the caller expects the server to use.
    pub of: Option<String>,
    /// Restricts the backup to this tenant.
    pub tenant: Option<TenantId>,
    /// Whether API keys are included.
    pub with_keys: bool,
    /// Whether to copy everything again instead of only what is new.
    pub full: bool,
}

impl Request for BeginBackup {
    const FIELDS: &'static [&'static Field] = &[&TO, &OF, &TENANT, &WITH_KEYS, &FULL];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        Ok(Self {
            to: fields.text(&TO)?.map(|to| read_location(&to)).transpose()?,
            of: fields.text(&OF)?,
            tenant: fields.tenant(&TENANT)?,
            with_keys: fields.boolean(&WITH_KEYS)?,
            full: fields.boolean(&FULL)?,
        })
    }
}

fn read_location(text: &str) -> Result<Location, ApiError> {
    Location::parse(text).map_err(|problem| {
        ApiError::invalid("invalid_value", problem).at(crate::error::Location::Body, "to")
    })
}

/// Tenant that is missing in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingTenant {
    /// Tenant id.
    pub tenant_id: String,
    /// Reason why it is missing.
    pub reason: String,
}

/// Backup in a location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupView {
    /// Backup id.
    pub backup_id: String,
    /// `complete`, `one_tenant`, `incomplete`, `cut_off` or `damaged`.
    pub state: String,
    /// Ids of its tenants.
    pub tenant_ids: Vec<String>,
    /// Tenants that could not be backed up.
    pub left_out: Vec<MissingTenant>,
    /// Number of originals that are in no backup, for each tenant that lost any.
    pub missing_originals: BTreeMap<String, u64>,
    /// Number of visible sources.
    pub sources: u64,
    /// Number of searchable rows.
    pub chunks: u64,
    /// Size of its files in bytes.
    pub bytes: u64,
    /// Bytes that it added to the location.
    pub new_bytes: u64,
    /// Number of files that it added to the location.
    pub new_files: u64,
    /// Whether it contains API keys.
    pub has_keys: bool,
    /// Damage found in earlier backups while it was made, one line each; the files that it needs
    /// were written again.
    pub damage: Vec<String>,
}

/// Last backup since the server was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastBackup {
    /// Time in epoch seconds.
    pub ended_at: String,
    /// The backup; null if it failed.
    pub backup: Option<BackupView>,
    /// Reason for the failure, or empty.
    pub error: String,
}

/// State of the backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupStatus {
    /// Whether a backup is running.
    pub running: bool,
    /// Start time in epoch seconds; null if none is running.
    pub running_since: Option<String>,
    /// Bytes copied so far.
    pub copied_bytes: u64,
    /// Last backup since the server was started; null if there is none.
    pub last: Option<LastBackup>,
    /// Time of the next scheduled backup in epoch seconds; null without a schedule.
    pub next_at: Option<String>,
    /// Backups in the configured location, oldest first.
    pub backups: Vec<BackupView>,
    /// Always `true`.
    pub success: bool,
    /// Human-readable message.
    pub message: String,
}
