//! Batches of files that a sub-tenant ingested together, for clients to query later.

use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::tenants;
use lodestone_types::{CollectionId, SubTenantId, Timestamp, limits};

/// A batch of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBatch {
    /// The batch's id.
    pub id: String,
    /// When the batch was created.
    pub created_at: Timestamp,
    /// Whether a client has cancelled the batch.
    pub is_canceled: bool,
    /// The files of the batch, in request order.
    pub files: Vec<BatchFile>,
}

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFile {
    /// The file's id.
    pub id: String,
    /// The reason why it was not ingested; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<FileProblem>,
}

/// The reason why a file was not ingested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProblem {
    /// Stable error code.
    pub code: String,
    /// Error message.
    pub message: String,
}

impl Catalog {
    /// Stores a batch and drops all but the tenant's newest [`limits::FILE_BATCHES_KEPT`]; batches
    /// do not count against limits.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn add_file_batch(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        batch: FileBatch,
    ) -> Result<()> {
        let name = sub_tenant.clone();
        self.write(move |connection| {
            tenants::require(connection, collection)?;
            let files = serde_json::to_string(&batch.files).expect("plain data always prints");
            let (scope, canceled) = ((blob(collection), name.as_str()), batch.is_canceled);
            connection.run(
                "INSERT INTO file_batches VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![scope.0, scope.1, batch.id, batch.created_at.0 as i64, canceled, files],
            )?;
            connection.run(
                "DELETE FROM file_batches WHERE (collection, sub_tenant, id) IN
                    (SELECT collection, sub_tenant, id FROM file_batches
                     WHERE collection = ?1 ORDER BY id DESC LIMIT -1 OFFSET ?2)",
                params![scope.0, limits::FILE_BATCHES_KEPT as i64],
            )
        })
    }

    /// Looks up a batch.
    pub fn file_batch(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        id: &str,
    ) -> Result<Option<FileBatch>> {
        let sql = "SELECT created_at, is_canceled, files FROM file_batches
            WHERE collection = ?1 AND sub_tenant = ?2 AND id = ?3";
        let found = self.read(|connection| {
            let key = params![blob(collection), sub_tenant.as_str(), id];
            connection.first(sql, key, |cells| {
                Ok((cells.time()?, cells.next::<bool>()?, cells.next::<String>()?))
            })
        })?;
        let Some((created_at, is_canceled, files)) = found else { return Ok(None) };
        let files = serde_json::from_str(&files)
            .map_err(|error| CatalogError::corrupt(format!("a batch of files: {error}")))?;
        Ok(Some(FileBatch { id: id.to_owned(), created_at, is_canceled, files }))
    }

    /// Marks a batch as cancelled.
    pub fn cancel_file_batch(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        id: &str,
    ) -> Result<()> {
        let (name, id) = (sub_tenant.clone(), id.to_owned());
        self.write(move |connection| {
            let sql = "UPDATE file_batches SET is_canceled = 1
                WHERE collection = ?1 AND sub_tenant = ?2 AND id = ?3";
            connection.run(sql, params![blob(collection), name.as_str(), id])
        })
    }
}
