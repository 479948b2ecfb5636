//! Uploaded files that are not sources: stored byte for byte until a sub-tenant ingests them.
//!
//! A file is a row here and an original in the blob store. It is not searchable, and counts against
//! the limits of its tenant like a source. It belongs to a sub-tenant: that sub-tenant's keys can
//! reach it, and it is deleted along with it. Ids begin with their creation time, so files are
//! listed in the order of ids.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::Catalog;
use super::allowance::StorageTarget;
use super::error::Result;
use super::listing::among;
use super::rows::{Cells, Statements, blob};
use super::{sub_tenants, tenants};
use lodestone_types::{CollectionId, SourceId, SubTenantId, Timestamp};

const COLUMNS: &str =
    "f.id, f.sub_tenant, f.purpose, f.filename, f.content_type, f.bytes, f.created_at, f.raw_key";

/// An uploaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The file's id.
    pub id: SourceId,
    /// The sub-tenant that the file belongs to.
    pub sub_tenant: SubTenantId,
    /// The purpose stated by the uploader.
    pub purpose: String,
    /// The file name without its directory; may be empty.
    pub filename: String,
    /// Media type stated by the uploader; may be empty.
    pub content_type: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// When the file was accepted.
    pub created_at: Timestamp,
    /// Key of the original in the blob store.
    pub raw_key: String,
}

/// Selects one page of a file listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePage {
    /// Only files of these sub-tenants; `None` for all.
    pub sub_tenants: Option<Vec<SubTenantId>>,
    /// Only files with this purpose.
    pub purpose: Option<String>,
    /// Only files after this id in listing order; the id need not exist.
    pub after: Option<SourceId>,
    /// Whether to list the oldest first.
    pub is_ascending: bool,
    /// Maximum number of files.
    pub limit: usize,
}

impl Catalog {
    /// Adds a file whose original is already stored, and its sub-tenant if needed. Durable on
    /// return.
    ///
    /// # Errors
    /// [`super::CatalogError::TenantLimit`], [`super::CatalogError::CollectionUnknown`], storage
    /// errors.
    pub fn add_file(&self, collection: CollectionId, file: StoredFile) -> Result<()> {
        let (defaults, now) = (self.inner.options.tenant_limits, self.inner.clock.now());
        self.write(move |connection| {
            tenants::require(connection, collection)?;
            let target = StorageTarget { collection, sub_tenant: &file.sub_tenant };
            target.require(connection, None, file.size_bytes, defaults)?;
            sub_tenants::ensure(connection, collection, &file.sub_tenant, now)?;
            connection.run(
                "INSERT INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    blob(collection),
                    file.id.as_str(),
                    file.sub_tenant.as_str(),
                    file.purpose,
                    file.filename,
                    file.content_type,
                    file.size_bytes as i64,
                    file.created_at.0 as i64,
                    file.raw_key,
                ],
            )
        })
    }

    /// Looks up a file.
    pub fn file(&self, collection: CollectionId, id: &SourceId) -> Result<Option<StoredFile>> {
        let sql = format!("SELECT {COLUMNS} FROM files f WHERE f.collection = ?1 AND f.id = ?2");
        self.read(|connection| {
            connection.first(&sql, params![blob(collection), id.as_str()], read_file)
        })
    }

    /// Lists files of a collection.
    pub fn files(&self, collection: CollectionId, page: &FilePage) -> Result<Vec<StoredFile>> {
        let text = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.into()));
        let mut values = vec![
            Value::Blob(blob(collection).to_vec()),
            text(page.purpose.as_deref()),
            text(page.after.as_ref().map(SourceId::as_str)),
            Value::Integer(page.limit as i64),
        ];
        let of_names = among(page.sub_tenants.as_deref(), "f", &mut values);
        let (behind, order) = if page.is_ascending { (">", "ASC") } else { ("<", "DESC") };
        let sql = format!(
            "SELECT {COLUMNS} FROM files f
             WHERE f.collection = ?1 AND (?2 IS NULL OR f.purpose = ?2)
                AND (?3 IS NULL OR f.id {behind} ?3) {of_names} ORDER BY f.id {order} LIMIT ?4"
        );
        self.read(|connection| connection.all(&sql, params_from_iter(values), read_file))
    }

    /// Removes a file; returns the key of its original, which the caller must delete.
    pub fn remove_file(&self, collection: CollectionId, id: &SourceId) -> Result<Option<String>> {
        let id = id.clone();
        self.write(move |connection| {
            let sql = "DELETE FROM files WHERE collection = ?1 AND id = ?2 RETURNING raw_key";
            connection.first(sql, params![blob(collection), id.as_str()], |cells| cells.next())
        })
    }
}

/// Removes up to `limit` files of a sub-tenant within a transaction; returns the keys of their
/// originals.
pub(super) fn remove_of_sub_tenant(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    limit: i64,
) -> Result<Vec<String>> {
    let sql = "DELETE FROM files WHERE collection = ?1 AND id IN
            (SELECT id FROM files WHERE collection = ?1 AND sub_tenant = ?2 LIMIT ?3)
        RETURNING raw_key";
    let values = params![blob(collection), sub_tenant.as_str(), limit];
    connection.all(sql, values, |cells| cells.next())
}

fn read_file(cells: &mut Cells<'_>) -> Result<StoredFile> {
    Ok(StoredFile {
        id: cells.source()?,
        sub_tenant: cells.sub_tenant()?,
        purpose: cells.next()?,
        filename: cells.next()?,
        content_type: cells.next()?,
        size_bytes: cells.number()?,
        created_at: cells.time()?,
        raw_key: cells.next()?,
    })
}
