//! Vector stores: sub-tenants with names and metadata given by clients.
//!
//! Every sub-tenant is a vector store, including `default`, but only those given a name or metadata
//! have a row here. The sub-tenants that a key is restricted to appear to it as existing even
//! before they hold anything, consistent with its right to upload to them.

use rusqlite::types::Value;
use rusqlite::{params, params_from_iter};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::{sub_tenants, tenants};
use lodestone_types::{CollectionId, Metadata, SubTenantId, Timestamp, limits};

/// A sub-tenant as a vector store.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorStore {
    /// The sub-tenant.
    pub name: SubTenantId,
    /// When it was created.
    pub created_at: Timestamp,
    /// The name given by a client; may be empty.
    pub title: String,
    /// Metadata given by a client.
    pub metadata: Metadata,
}

/// Selects one page of a listing of vector stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePage {
    /// The sub-tenants that the key is restricted to; `None` if it can reach all of them.
    pub reached: Option<Vec<SubTenantId>>,
    /// Only this sub-tenant.
    pub only: Option<SubTenantId>,
    /// Only stores after this position.
    pub after: Option<(Timestamp, SubTenantId)>,
    /// Whether to list the oldest first.
    pub is_ascending: bool,
    /// Maximum number of stores.
    pub limit: usize,
}

impl Catalog {
    /// Lists vector stores of a collection, ordered by creation time and name.
    pub fn vector_stores(
        &self,
        collection: CollectionId,
        page: &StorePage,
    ) -> Result<Vec<VectorStore>> {
        let text = |name: &SubTenantId| Value::Text(name.as_str().into());
        let (at, name) = match &page.after {
            Some((at, name)) => (Value::Integer(at.0 as i64), text(name)),
            None => (Value::Null, Value::Null),
        };
        let mut values = vec![
            Value::Blob(blob(collection).to_vec()),
            page.only.as_ref().map_or(Value::Null, text),
            at,
            name,
            Value::Integer(page.limit as i64),
        ];
        let known = match &page.reached {
            None => "SELECT name, created_at FROM sub_tenants WHERE collection = ?1 UNION ALL
                SELECT 'default', created_at FROM tenants WHERE collection = ?1"
                .to_owned(),
            Some(names) => {
                let places: Vec<String> =
                    (1..=names.len()).map(|at| format!("(?{})", values.len() + at)).collect();
                values.extend(names.iter().map(text));
                let places = if places.is_empty() { "(NULL)".into() } else { places.join(", ") };
                format!(
                    "SELECT k.column1 AS name, coalesce(s.created_at, t.created_at) AS created_at
                     FROM (VALUES {places}) k JOIN tenants t ON t.collection = ?1
                     LEFT JOIN sub_tenants s ON s.collection = ?1 AND s.name = k.column1
                     WHERE k.column1 IS NOT NULL"
                )
            }
        };
        let (behind, order) = if page.is_ascending { (">", "ASC") } else { ("<", "DESC") };
        let sql = format!(
            "SELECT s.name, s.created_at, coalesce(v.title, ''), coalesce(v.metadata, '{{}}')
             FROM (SELECT name, created_at FROM ({known})
                WHERE (?2 IS NULL OR name = ?2)
                    AND (?3 IS NULL OR (created_at, name) {behind} (?3, ?4))
                ORDER BY created_at {order}, name {order} LIMIT ?5) s
             LEFT JOIN vector_stores v ON v.collection = ?1 AND v.name = s.name
             ORDER BY s.created_at {order}, s.name {order}"
        );
        self.read_long(collection, |connection| {
            connection.all(&sql, params_from_iter(values), |cells| {
                let (name, created_at, title) = (cells.sub_tenant()?, cells.time()?, cells.next()?);
                let metadata = serde_json::from_str(&cells.next::<String>()?)
                    .map_err(|error| CatalogError::corrupt(format!("a vector store: {error}")))?;
                Ok(VectorStore { name, created_at, title, metadata })
            })
        })
    }

    /// Names a sub-tenant, creating it if needed; arguments that are `None` keep their stored
    /// value.
    ///
    /// # Errors
    /// [`CatalogError::TenantLimit`] if the tenant already has [`limits::VECTOR_STORES_MAX`] named
    /// ones; [`CatalogError::CollectionUnknown`]; storage errors.
    pub fn set_vector_store(
        &self,
        collection: CollectionId,
        name: &SubTenantId,
        title: Option<String>,
        metadata: Option<Metadata>,
    ) -> Result<()> {
        let (name, now) = (name.clone(), self.inner.clock.now());
        let metadata = metadata
            .map(|map| serde_json::to_string(&map).expect("a map of JSON values is valid JSON"));
        self.write(move |connection| {
            tenants::require(connection, collection)?;
            let others = "SELECT count(*) FROM vector_stores WHERE collection = ?1 AND name <> ?2";
            let key = params![blob(collection), name.as_str()];
            let used = connection.one(others, key, |cells| cells.number())?;
            let max = limits::VECTOR_STORES_MAX as u64;
            if used >= max {
                let limit = "vector stores";
                return Err(CatalogError::TenantLimit { limit, max, used, needed: used + 1 });
            }
            sub_tenants::ensure(connection, collection, &name, now)?;
            connection.run(
                "INSERT INTO vector_stores VALUES (?1, ?2, coalesce(?3, ''), coalesce(?4, '{}'))
                 ON CONFLICT DO UPDATE SET title = coalesce(?3, title),
                    metadata = coalesce(?4, metadata)",
                params![blob(collection), name.as_str(), title, metadata],
            )
        })
    }

    /// Total bytes of the originals of a sub-tenant's sources.
    pub fn stored_bytes(&self, collection: CollectionId, sub_tenant: &SubTenantId) -> Result<u64> {
        let sql = "SELECT bytes FROM sub_tenant_use WHERE collection = ?1 AND sub_tenant = ?2";
        let bytes = self.read(|connection| {
            let key = params![blob(collection), sub_tenant.as_str()];
            connection.first(sql, key, |cells| cells.number())
        })?;
        Ok(bytes.unwrap_or(0))
    }
}
