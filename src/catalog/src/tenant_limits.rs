//! Limits of a tenant, as a struct and as a row.

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::error::Result;
use super::rows::{Cells, Statements, blob};
use lodestone_types::CollectionId;

/// The columns of `tenant_limits` after the collection.
pub(super) const LIMIT_COLUMNS: &str =
    "sources, bytes, vectors, requests_per_minute, ingest_workers";

/// Limits of a tenant; `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantLimits {
    /// Number of sources, in any state.
    pub sources: Option<u64>,
    /// Total bytes of their originals.
    pub bytes: Option<u64>,
    /// Stored vectors: client vectors, and chunks of documents and memories.
    pub vectors: Option<u64>,
    /// Requests in any period of 60 seconds.
    pub requests_per_minute: Option<u64>,
    /// Concurrent workers that process documents, and as many again that fetch web pages.
    pub ingest_workers: Option<u64>,
}

impl TenantLimits {
    /// Fills in missing limits from `defaults`.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        Self {
            sources: self.sources.or(defaults.sources),
            bytes: self.bytes.or(defaults.bytes),
            vectors: self.vectors.or(defaults.vectors),
            requests_per_minute: self.requests_per_minute.or(defaults.requests_per_minute),
            ingest_workers: self.ingest_workers.or(defaults.ingest_workers),
        }
    }

    /// Reads [`LIMIT_COLUMNS`], which are all NULL for a tenant without limits of its own.
    pub(super) fn read(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            sources: cells.optional_number()?,
            bytes: cells.optional_number()?,
            vectors: cells.optional_number()?,
            requests_per_minute: cells.optional_number()?,
            ingest_workers: cells.optional_number()?,
        })
    }

    /// Replaces the stored limits of a collection.
    pub(super) fn store(self, connection: &Connection, collection: CollectionId) -> Result<()> {
        let stored = |limit: Option<u64>| limit.map(|limit| limit as i64);
        let sql = format!(
            "INSERT OR REPLACE INTO tenant_limits (collection, {LIMIT_COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        );
        connection.run(
            &sql,
            params![
                blob(collection),
                stored(self.sources),
                stored(self.bytes),
                stored(self.vectors),
                stored(self.requests_per_minute),
                stored(self.ingest_workers),
            ],
        )
    }
}
