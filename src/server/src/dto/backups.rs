//! Backups, which are reserved to operators.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;
use crate::request::{Field, Fields, Kind, Request};
use lodestone_engine::backup::Location;
use lodestone_types::TenantId;

static TO: Field = Field::body(
    "to",
    Kind::Text { chars_max: 4096, is_filled: true },
    "The folder or bucket of the setting backup-to, or one in it; absent: that of the setting.",
);
static TENANT: Field =
    Field::body("tenant_id", Kind::Identifier, "This tenant alone; absent: every tenant.");
static WITH_KEYS: Field = Field::body(
    "with_keys",
    Kind::Boolean { default: false },
    "Names, scopes and hashes of API keys too; not together with tenant_id.",
);
static FULL: Field = Field::body(
    "full",
    Kind::Boolean { default: false },
    "Copy every file, also those that earlier backups have.",
);

static OF: Field = Field::body(
    "data_directory",
    Kind::Text { chars_max: 64, is_filled: true },
    "Device and inode of the data directory that is meant, as `DEVICE:INODE`; a server with \
     another one refuses.",
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

/// A tenant that a backup lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingTenant {
    /// The tenant.
    pub tenant_id: String,
    /// The reason.
    pub reason: String,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupView {
    /// Its id.
    pub backup_id: String,
    /// `complete`, `one_tenant`, `incomplete`, `cut_off` or `damaged`.
    pub state: String,
    /// Its tenants.
    pub tenant_ids: Vec<String>,
    /// Tenants that could not be taken.
    pub left_out: Vec<MissingTenant>,
    /// Visible sources.
    pub sources: u64,
    /// Searchable rows.
    pub chunks: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Bytes that it added to the location.
    pub new_bytes: u64,
    /// Files that it added to the location.
    pub new_files: u64,
    /// Whether it holds API keys.
    pub has_keys: bool,
    /// Damage of earlier backups that was found while it was made, a line each; files that it needs
    /// were written anew.
    pub damage: Vec<String>,
}

/// The end of the last backup since the start of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LastBackup {
    /// Time in epoch seconds.
    pub ended_at: String,
    /// The backup; null where it failed.
    pub backup: Option<BackupView>,
    /// The reason of the failure, or empty.
    pub error: String,
}

/// State of the backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BackupStatus {
    /// Whether one is under way.
    pub running: bool,
    /// When it began, epoch seconds; null without one.
    pub running_since: Option<String>,
    /// Bytes that it has copied.
    pub copied_bytes: u64,
    /// The last one since the start of the server; null before it.
    pub last: Option<LastBackup>,
    /// When the next one is due, epoch seconds; null without a schedule.
    pub next_at: Option<String>,
    /// Backups in the location of the settings, oldest first.
    pub backups: Vec<BackupView>,
    /// Always true.
    pub success: bool,
    /// Text for people.
    pub message: String,
}
