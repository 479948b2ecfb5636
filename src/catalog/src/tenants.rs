//! Tenants: creation, look-up, deletion.

use std::collections::BTreeSet;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::error::{CatalogError, Result};
use super::rows::{Cells, Statements, blob};
use super::tenant_limits::TenantLimits;
use super::{Catalog, known, sequences, sub_tenants};
use lodestone_types::{
    CollectionId, CommitHead, Sequence, SubTenantId, TenantId, TenantMode, TenantSchema, Timestamp,
};

/// The columns that [`read_columns`] reads, and their tables.
const TENANT: &str = "name, collection, mode, schema, dimension, created_at, embedding_model,
        sources, bytes, vectors, requests_per_minute, ingest_workers
    FROM tenants LEFT JOIN tenant_limits USING (collection)";

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// The tenant's name.
    pub id: TenantId,
    /// The tenant's collection.
    pub collection: CollectionId,
    /// The kind of data it holds.
    pub mode: TenantMode,
    /// The declared metadata keys.
    pub schema: Option<TenantSchema>,
    /// The dimension of its vectors, once known.
    pub dimension: Option<u32>,
    /// When the tenant was created.
    pub created_at: Timestamp,
    /// Name of the embedding model chosen for the tenant; `None` follows the server's.
    pub embedding_model: Option<String>,
    /// The tenant's own limits.
    pub limits: TenantLimits,
}

/// A tenant reconstructed from the files of its collection when a lost catalog is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredTenant {
    /// The tenant itself.
    pub tenant: Tenant,
    /// The newest manifest found.
    pub head: Option<CommitHead>,
    /// The sub-tenants found in its segments.
    pub sub_tenants: Vec<SubTenantId>,
    /// The highest sequence found in its manifests; later operations get higher ones.
    pub newest_sequence: Sequence,
}

impl Catalog {
    /// Prepares a tenant with a fresh collection, without storing it.
    pub fn fresh_tenant(
        &self,
        id: TenantId,
        mode: TenantMode,
        schema: Option<TenantSchema>,
    ) -> Tenant {
        let collection = CollectionId(self.inner.ids.uuid());
        let created_at = self.inner.clock.now();
        let (dimension, embedding_model, limits) = (None, None, TenantLimits::default());
        Tenant { id, collection, mode, schema, dimension, created_at, embedding_model, limits }
    }

    /// Stores a prepared tenant.
    ///
    /// # Errors
    /// [`CatalogError::TenantExists`], storage errors.
    pub fn insert_tenant(&self, tenant: Tenant) -> Result<Arc<Tenant>> {
        self.write(move |connection| {
            if read_tenant(connection, &tenant.id)?.is_some() {
                return Err(CatalogError::TenantExists { tenant: tenant.id });
            }
            insert(connection, &tenant)?;
            let known = "UPDATE tenants SET sources_known = 1 WHERE collection = ?1";
            connection.run(known, [blob(tenant.collection)])?;
            Ok(Arc::new(tenant))
        })
    }

    /// Creates a tenant with a fresh collection, without writing a descriptor.
    ///
    /// # Errors
    /// Those of [`Self::insert_tenant`].
    pub fn create_tenant(
        &self,
        id: TenantId,
        mode: TenantMode,
        schema: Option<TenantSchema>,
    ) -> Result<Arc<Tenant>> {
        self.insert_tenant(self.fresh_tenant(id, mode, schema))
    }

    /// Looks up a tenant by name. Cached, because every request needs it.
    pub fn tenant(&self, id: &TenantId) -> Result<Option<Arc<Tenant>>> {
        let load = || self.read(|connection| read_tenant(connection, id));
        self.inner.tenants.get_or_load(id, load)
    }

    /// Looks up the tenant that owns a collection, unless it is deleted.
    pub fn tenant_of(&self, collection: CollectionId) -> Result<Option<Tenant>> {
        self.read(|connection| {
            let sql = format!("SELECT {TENANT} WHERE collection = ?1 AND deleting = 0");
            connection.first(&sql, [blob(collection)], read_columns)
        })
    }

    /// Lists all tenants by name.
    pub fn tenants(&self) -> Result<Vec<Tenant>> {
        self.read(|connection| {
            let sql = format!("SELECT {TENANT} WHERE deleting = 0 ORDER BY name");
            connection.all(&sql, [], read_columns)
        })
    }

    /// Lists the collections of all tenants, including pending deletes.
    pub fn collections(&self) -> Result<BTreeSet<CollectionId>> {
        self.read(|connection| {
            let all =
                connection.all("SELECT collection FROM tenants", [], |cells| cells.collection())?;
            Ok(all.into_iter().collect())
        })
    }

    /// Fixes the dimension of a collection's vectors, unless it is fixed already. Returns the
    /// dimension in force, which may be that of an earlier caller.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn fix_dimension(&self, collection: CollectionId, dimension: u32) -> Result<u32> {
        self.change_tenant(collection, move |connection| {
            let sql = "UPDATE tenants SET dimension = coalesce(dimension, ?2) WHERE collection = ?1
                RETURNING dimension";
            connection.one(sql, params![blob(collection), dimension], |cells| cells.next())
        })
    }

    /// Sets a tenant's embedding model by name; `None` follows the server's.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn set_embedding_model(
        &self,
        collection: CollectionId,
        name: Option<String>,
    ) -> Result<()> {
        self.change_tenant(collection, move |connection| {
            let sql = "UPDATE tenants SET embedding_model = ?2 WHERE collection = ?1";
            connection.run(sql, params![blob(collection), name])
        })
    }

    /// Changes the row of a tenant and invalidates its cache entry.
    pub(super) fn change_tenant<T: Send + 'static>(
        &self,
        collection: CollectionId,
        change: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (id, changed) = self.write(move |connection| {
            let id = owner(connection, collection)?;
            let id = id.ok_or(CatalogError::CollectionUnknown { collection })?;
            Ok((id, change(connection)?))
        })?;
        self.inner.tenants.forget(&id);
        Ok(changed)
    }

    /// The newest manifest recorded by a settlement, to be compared with the one found when the
    /// collection is opened. Fails for deleted tenants, whose collections are not reopened.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn head(&self, collection: CollectionId) -> Result<Option<CommitHead>> {
        let sql = "SELECT head_version, head_nonce FROM tenants
            WHERE collection = ?1 AND deleting = 0";
        self.read(|connection| {
            let head = connection.first(sql, [blob(collection)], |cells| {
                let (version, nonce) =
                    (cells.optional_number()?, cells.next::<Option<[u8; 16]>>()?);
                let nonce = nonce.map(Uuid::from_bytes);
                Ok(version.zip(nonce).map(|(version, nonce)| CommitHead { version, nonce }))
            })?;
            head.ok_or(CatalogError::CollectionUnknown { collection })
        })
    }

    /// Records the newest manifest outside of a settlement (after a delete or a merge). Manifests
    /// older than the recorded one are ignored.
    pub fn record_head(&self, collection: CollectionId, head: CommitHead) -> Result<()> {
        self.write(move |connection| store_head(connection, collection, head))
    }

    /// Records the newest manifest after the commit of a batch of vectors that counted before. The
    /// caller must hold the lock of the collection's writer.
    pub fn record_batch(&self, collection: CollectionId, head: CommitHead) -> Result<()> {
        self.write(move |connection| {
            store_head(connection, collection, head)?;
            known::last_stored(connection, collection)
        })
    }

    /// Deletes a tenant: its name is free at once, scoped keys lose access, and its collection
    /// becomes a pending delete, whose rows stay until [`Self::finish_delete_collection`].
    ///
    /// # Errors
    /// [`CatalogError::TenantUnknown`], storage errors.
    pub fn begin_delete_tenant(&self, id: &TenantId) -> Result<CollectionId> {
        let name = id.clone();
        let deleted = self.write(move |connection| {
            let mark = "UPDATE tenants SET deleting = 1 WHERE name = ?1 AND deleting = 0
                RETURNING collection";
            let collection = connection.first(mark, [name.as_str()], |cells| cells.collection())?;
            let collection =
                collection.ok_or_else(|| CatalogError::TenantUnknown { tenant: name.clone() })?;
            // A tenant created later under the same name must not be accessible to the old keys,
            // nor reported to the old webhooks.
            for table in ["key_scopes", "webhook_scopes"] {
                let sql = format!("DELETE FROM {table} WHERE tenant = ?1");
                connection.run(&sql, [name.as_str()])?;
            }
            Ok(collection)
        });
        self.inner.tenants.forget(id);
        self.inner.keys.clear();
        deleted
    }

    /// Collections of deleted tenants, whose data may still exist.
    pub fn collections_pending_delete(&self) -> Result<Vec<CollectionId>> {
        let sql = "SELECT collection FROM tenants WHERE deleting = 1 ORDER BY collection";
        self.read(|connection| connection.all(sql, [], |cells| cells.collection()))
    }

    /// Removes the rows of a pending delete after its blobs have been deleted. Works in steps, so
    /// that other writes can run in between; the next call completes an interrupted deletion.
    ///
    /// # Errors
    /// [`CatalogError::CollectionInUse`] unless the collection is a pending delete; storage errors.
    pub fn finish_delete_collection(&self, collection: CollectionId) -> Result<()> {
        let tables = [
            "jobs WHERE seq IN (SELECT seq FROM jobs WHERE collection = ?1 LIMIT ?2)",
            "known_sources WHERE (source, collection, sub_tenant) IN
                (SELECT source, collection, sub_tenant FROM known_sources
                 WHERE collection = ?1 LIMIT ?2)",
            "sessions WHERE id IN (SELECT id FROM sessions WHERE collection = ?1 LIMIT ?2)",
            "files WHERE collection = ?1 AND id IN
                (SELECT id FROM files WHERE collection = ?1 LIMIT ?2)",
            "vector_stores WHERE collection = ?1 AND name IN
                (SELECT name FROM vector_stores WHERE collection = ?1 LIMIT ?2)",
            "file_batches WHERE (collection, sub_tenant, id) IN
                (SELECT collection, sub_tenant, id FROM file_batches
                 WHERE collection = ?1 LIMIT ?2)",
            "sub_tenants WHERE collection = ?1 AND name IN
                (SELECT name FROM sub_tenants WHERE collection = ?1 LIMIT ?2)",
            "deliveries WHERE id IN (SELECT id FROM deliveries WHERE collection = ?1 LIMIT ?2)",
            // Webhooks that covered this tenant only.
            "webhooks WHERE all_tenants = 0 AND ?1 IS NOT NULL AND ?2 > 0
                AND id NOT IN (SELECT webhook FROM webhook_scopes)",
            "tenant_use WHERE collection = ?1 AND ?2 > 0",
            "sub_tenant_use WHERE (collection, sub_tenant) IN
                (SELECT collection, sub_tenant FROM sub_tenant_use
                 WHERE collection = ?1 LIMIT ?2)",
            "tenant_limits WHERE collection = ?1 AND ?2 > 0",
            "tenants WHERE collection = ?1 AND ?2 > 0",
        ];
        // Deletions are never undone.
        self.read(|connection| require_pending_delete(connection, collection))?;
        let id = [Value::Blob(blob(collection).to_vec())];
        tables.iter().try_for_each(|table| self.delete_in_steps(table, &id))
    }

    /// Restores a tenant of a lost catalog from the files of its collection.
    ///
    /// # Errors
    /// [`CatalogError::TenantExists`], [`CatalogError::CollectionExists`], storage errors.
    pub fn restore_tenant(&self, restored: RestoredTenant) -> Result<()> {
        let now = self.inner.clock.now();
        self.write(move |connection| {
            let RestoredTenant { tenant, head, sub_tenants, newest_sequence } = restored;
            if read_tenant(connection, &tenant.id)?.is_some() {
                return Err(CatalogError::TenantExists { tenant: tenant.id });
            }
            if connection
                .any("SELECT 1 FROM tenants WHERE collection = ?1", [blob(tenant.collection)])?
            {
                return Err(CatalogError::CollectionExists { collection: tenant.collection });
            }
            insert(connection, &tenant).map_err(CatalogError::of_new_row)?;
            if let Some(head) = head {
                store_head(connection, tenant.collection, head)?;
            }
            for name in &sub_tenants {
                sub_tenants::ensure(connection, tenant.collection, name, now)?;
            }
            sequences::raise(connection, newest_sequence)?;
            // A catalog that lacks one tenant may also lack sources of others.
            connection
                .execute("UPDATE tenants SET sources_known = 0 WHERE sources_known <> 0", [])?;
            Ok(())
        })
    }
}

pub(super) fn insert(connection: &Connection, tenant: &Tenant) -> Result<()> {
    let Tenant { id, collection, mode, schema, dimension, created_at, embedding_model, limits } =
        tenant;
    let schema = schema.as_ref().map(|schema| {
        serde_json::to_string(schema).expect("a schema of plain fields is valid JSON")
    });
    let created_at = created_at.0 as i64;
    let mode = mode.as_str();
    connection.run(
        "INSERT INTO tenants
            (name, collection, mode, schema, dimension, created_at, embedding_model)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            id.as_str(),
            blob(*collection),
            mode,
            schema,
            dimension,
            created_at,
            embedding_model
        ],
    )?;
    match *limits == TenantLimits::default() {
        true => Ok(()),
        false => limits.store(connection, *collection),
    }
}

pub(super) fn read_tenant(connection: &Connection, id: &TenantId) -> Result<Option<Tenant>> {
    let sql = format!("SELECT {TENANT} WHERE name = ?1 AND deleting = 0");
    connection.first(&sql, [id.as_str()], read_columns)
}

fn read_columns(cells: &mut Cells<'_>) -> Result<Tenant> {
    Ok(Tenant {
        id: cells.tenant()?,
        collection: cells.collection()?,
        mode: cells.word(TenantMode::from_word)?,
        schema: match cells.next::<Option<String>>()? {
            None => None,
            Some(text) => Some(
                serde_json::from_str(&text)
                    .map_err(|error| CatalogError::corrupt(format!("tenant schema: {error}")))?,
            ),
        },
        dimension: cells.next()?,
        created_at: cells.time()?,
        embedding_model: cells.next()?,
        limits: TenantLimits::read(cells)?,
    })
}

/// The name of the tenant that owns `collection`, unless it is deleted.
pub(super) fn owner(connection: &Connection, collection: CollectionId) -> Result<Option<TenantId>> {
    let sql = "SELECT name FROM tenants WHERE collection = ?1 AND deleting = 0";
    connection.first(sql, [blob(collection)], |cells| cells.tenant())
}

/// Fails if a collection does not exist or is a pending delete.
pub(super) fn require(connection: &Connection, collection: CollectionId) -> Result<()> {
    match owner(connection, collection)? {
        Some(_) => Ok(()),
        None => Err(CatalogError::CollectionUnknown { collection }),
    }
}

fn require_pending_delete(connection: &Connection, collection: CollectionId) -> Result<()> {
    match owner(connection, collection)? {
        Some(_) => Err(CatalogError::CollectionInUse { collection }),
        None => Ok(()),
    }
}

pub(super) fn store_head(
    connection: &Connection,
    collection: CollectionId,
    head: CommitHead,
) -> Result<()> {
    connection.run(
        "UPDATE tenants SET head_version = ?2, head_nonce = ?3
         WHERE collection = ?1 AND (head_version IS NULL OR head_version < ?2)",
        params![blob(collection), head.version as i64, head.nonce.into_bytes()],
    )
}
