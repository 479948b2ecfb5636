//! Sub-tenants, created by the first write that names them. `default` always exists and is not
//! stored.

use rusqlite::{Connection, params};

use super::Catalog;
use super::allowance::StorageTarget;
use super::cancel::{self, Canceled};
use super::error::{CatalogError, Result};
use super::outbox::Teller;
use super::rows::{Statements, blob};
use super::steps::{ALL_ROWS, ROWS_PER_STEP};
use super::{files, known, sequences, tenants};
use lodestone_types::{CollectionId, Sequence, SourceId, SubTenantId, Timestamp};

impl Catalog {
    /// Issues a sequence to a source created without a job (vectors, memories), and creates its
    /// sub-tenant if needed. Durable on return, so that no later operation gets the same sequence.
    /// A memory is known in the scope of memories, since a document may have the same id. The
    /// `bytes` of a vector batch count against the tenant's limits.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`]; if `bytes` is given, [`CatalogError::TenantLimit`];
    /// storage errors.
    pub fn reserve_sequence(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        bytes: Option<u64>,
    ) -> Result<Sequence> {
        let (name, now) = (sub_tenant.clone(), self.inner.clock.now());
        let (source, defaults) = (source.clone(), self.inner.options.tenant_limits);
        self.write(move |connection| {
            tenants::require(connection, collection)?;
            let target = StorageTarget { collection, sub_tenant: &name };
            if let Some(bytes) = bytes {
                target.require(connection, Some(&source), bytes, defaults)?;
            }
            ensure(connection, collection, &name.named(), now)?;
            let sequence = sequences::take(connection)?;
            known::add(connection, collection, &name, &source, sequence)?;
            if let Some(bytes) = bytes {
                target.set(connection, &source, bytes)?;
                known::note_unstored(connection, collection)?;
            }
            Ok(sequence)
        })
    }

    /// Reverts the accounting of [`Self::reserve_sequence`] for a batch that was not stored, unless
    /// the batch has been accepted anew since. The bytes `held` by a version that stays count
    /// again.
    pub fn release_batch(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        sequence: Sequence,
        held: Option<u64>,
    ) -> Result<()> {
        let (name, source) = (sub_tenant.clone(), source.clone());
        self.write(move |connection| {
            if known::newest(connection, collection, &name, &source)? != Some(sequence) {
                return Ok(());
            }
            match held {
                None => known::forget(connection, collection, &name, &source).map(drop),
                Some(bytes) => {
                    StorageTarget { collection, sub_tenant: &name }.set(connection, &source, bytes)
                }
            }
        })
    }

    /// Lists the sub-tenants of a collection: `default` first, then in ascending order.
    pub fn sub_tenants(&self, collection: CollectionId) -> Result<Vec<SubTenantId>> {
        let sql = "SELECT name FROM sub_tenants WHERE collection = ?1 ORDER BY name";
        self.read_long(collection, |connection| {
            let stored = connection.all(sql, [blob(collection)], |cells| cells.sub_tenant())?;
            Ok(std::iter::once(SubTenantId::default_name()).chain(stored).collect())
        })
    }

    /// Whether the sub-tenant exists.
    pub fn sub_tenant_exists(&self, collection: CollectionId, name: &SubTenantId) -> Result<bool> {
        self.read(|connection| exists(connection, collection, name))
    }

    /// Deletes a sub-tenant with its jobs, files and conversations, in steps so that other writes
    /// can run in between; the sub-tenant itself goes last, with anything that was added meanwhile.
    /// The caller must have removed its rows from the collection and hold the collection's lock, so
    /// that a crash in between leaves a sub-tenant that can be deleted again, never data without a
    /// sub-tenant.
    ///
    /// # Errors
    /// [`CatalogError::SubTenantProtected`], [`CatalogError::SubTenantUnknown`], storage errors.
    pub fn delete_sub_tenant(
        &self,
        collection: CollectionId,
        name: &SubTenantId,
    ) -> Result<Canceled> {
        if name.is_default() {
            return Err(CatalogError::SubTenantProtected);
        }
        let mut canceled = self.remove_sub_tenant_jobs(collection, name)?;
        self.forget_sub_tenant(collection, name)?;
        self.forget_sub_tenant(collection, &name.of_memories())?;
        let own = name.clone();
        let files = move |connection: &Connection, _: &mut Teller| {
            let removed = files::remove_of_sub_tenant(connection, collection, &own, ROWS_PER_STEP)?;
            Ok((removed.len(), removed))
        };
        self.in_steps(files, |removed| canceled.raw_keys.extend(removed))?;
        let name = name.clone();
        let rest = self.write_telling(move |connection, teller| {
            if !exists(connection, collection, &name)? {
                return Err(CatalogError::SubTenantUnknown { sub_tenant: name });
            }
            let states = "'queued', 'in_progress', 'success', 'errored'";
            let mut canceled =
                cancel::remove_in_sub_tenant(connection, collection, &name, states, ALL_ROWS)?;
            let files = files::remove_of_sub_tenant(connection, collection, &name, ALL_ROWS)?;
            canceled.raw_keys.extend(files);
            let tables = [
                "sessions WHERE sub_tenant", "known_sources WHERE sub_tenant",
                "file_batches WHERE sub_tenant", "vector_stores WHERE name",
                "deliveries WHERE sub_tenant", "sub_tenants WHERE name",
            ];
            for table in tables {
                let sql = format!("DELETE FROM {table} = ?2 AND collection = ?1");
                connection.run(&sql, params![blob(collection), name.as_str()])?;
            }
            if canceled.had_open {
                teller.tell_drained(connection, collection)?;
            }
            Ok(canceled)
        })?;
        self.end_canceled(&rest);
        canceled.add(rest);
        Ok(canceled)
    }
}

/// Whether a sub-tenant exists; `default` always does.
pub(super) fn exists(
    connection: &Connection,
    collection: CollectionId,
    name: &SubTenantId,
) -> Result<bool> {
    if name.is_default() {
        return Ok(true);
    }
    let sql = "SELECT 1 FROM sub_tenants WHERE collection = ?1 AND name = ?2";
    connection.any(sql, params![blob(collection), name.as_str()])
}

/// Creates a sub-tenant within a transaction, if it does not exist.
pub(super) fn ensure(
    connection: &Connection,
    collection: CollectionId,
    name: &SubTenantId,
    now: Timestamp,
) -> Result<()> {
    if name.is_default() {
        return Ok(());
    }
    connection.run(
        "INSERT INTO sub_tenants (collection, name, created_at) VALUES (?1, ?2, ?3)
         ON CONFLICT DO NOTHING",
        params![blob(collection), name.as_str(), now.0 as i64],
    )
}
