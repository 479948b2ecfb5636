//! Registration of tenants whose collections were built before the catalog knows them.

use rusqlite::Connection;

use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::tenants::{Tenant, insert, read_tenant, store_head};
use super::{Catalog, sub_tenants};
use lodestone_types::{CollectionId, CommitHead, SubTenantId};

impl Catalog {
    /// Adds a tenant, with its sub-tenants, whose collection already exists. It replaces an empty
    /// tenant of the same name if `replaces` names that one's collection. Keys keep their scopes.
    ///
    /// # Errors
    /// [`CatalogError::TenantExists`] if another tenant has the name, or the empty one has gained
    /// content; storage errors.
    pub fn insert_built(
        &self,
        tenant: Tenant,
        head: Option<CommitHead>,
        sub_tenants: Vec<SubTenantId>,
        replaces: Option<CollectionId>,
    ) -> Result<()> {
        let (now, name) = (self.inner.clock.now(), tenant.id.clone());
        let inserted = self.write(move |connection| {
            let exists = || CatalogError::TenantExists { tenant: tenant.id.clone() };
            match (read_tenant(connection, &tenant.id)?, replaces) {
                (None, None) => {}
                (Some(old), Some(collection)) if old.collection == collection => {
                    if !is_empty(connection, collection)? {
                        return Err(exists());
                    }
                    let sql = "UPDATE tenants SET deleting = 1 WHERE collection = ?1";
                    connection.run(sql, [blob(collection)])?;
                }
                _ => return Err(exists()),
            }
            insert(connection, &tenant)?;
            if let Some(head) = head {
                store_head(connection, tenant.collection, head)?;
            }
            for name in &sub_tenants {
                sub_tenants::ensure(connection, tenant.collection, name, now)?;
            }
            Ok(())
        });
        self.inner.tenants.forget(&name);
        inserted
    }

    /// Whether a collection is empty: nothing was ever accepted for it, or all of it was deleted.
    pub fn is_empty(&self, collection: CollectionId) -> Result<bool> {
        self.read(|connection| is_empty(connection, collection))
    }
}

fn is_empty(connection: &Connection, collection: CollectionId) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM jobs WHERE collection = ?1)
        OR EXISTS (SELECT 1 FROM known_sources WHERE collection = ?1)
        OR EXISTS (SELECT 1 FROM files WHERE collection = ?1)
        OR EXISTS (SELECT 1 FROM vector_stores WHERE collection = ?1)
        OR EXISTS (SELECT 1 FROM tenants WHERE collection = ?1 AND sources_known = 0)";
    Ok(!connection.one(sql, [blob(collection)], |cells| cells.next::<bool>())?)
}
