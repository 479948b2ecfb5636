//! Files that a sub-tenant took in together, as a client asks for them later.

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
    /// Its id.
    pub id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether a client has canceled it.
    pub is_canceled: bool,
    /// Its files, in the order of the request.
    pub files: Vec<BatchFile>,
}

/// A file of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchFile {
    /// Its id.
    pub id: String,
    /// The reason why it was not taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<FileProblem>,
}

/// The reason why a file was not taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileProblem {
    /// The stable word of the error.
    pub code: String,
    /// The error in words.
    pub message: String,
}

impl Catalog {
    /// Keeps a batch, and of its tenant only the newest [`limits::FILE_BATCHES_KEPT`]: batches are
    /// not counted against limits.
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

    /// A batch.
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

    /// Notes that a batch is canceled.
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
