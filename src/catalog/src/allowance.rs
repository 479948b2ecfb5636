//! Limits of tenants, and what each of them stores.
//!
//! Kept here are all limits; held here are those of sources and bytes. The engine holds the others,
//! which are about collections, requests and workers.
//!
//! Sources in every state count, and the bytes of their originals; memories do not. What is counted
//! is kept by triggers on `known_sources`, so a check reads a few rows, and it is made in the
//! transaction that accepts: of two uploads that would take the last free place one is refused.
//! Until a replacement is visible, the larger of both versions counts.

use rusqlite::{Connection, params};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::tenant_limits::{LIMIT_COLUMNS, TenantLimits};
use super::tenants::{self, Tenant};
use lodestone_types::{CollectionId, Sequence, SourceId, SubTenantId};

/// The amounts that a tenant stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Sources in every state.
    pub sources: u64,
    /// Bytes of their originals.
    pub bytes: u64,
}

/// The use of a tenant and its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Its use.
    pub used: TenantUse,
    /// Limits of its own.
    pub own: TenantLimits,
    /// The limits that hold: its own, else the defaults.
    pub limits: TenantLimits,
}

impl Catalog {
    /// The use of a tenant and its limits.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn allowance(&self, collection: CollectionId) -> Result<Allowance> {
        let defaults = self.inner.options.tenant_limits;
        self.read(|connection| {
            tenants::require(connection, collection)?;
            read(connection, collection, defaults)
        })
    }

    /// Replaces the limits of a tenant. What it stores beyond them stays.
    ///
    /// # Errors
    /// [`CatalogError::CollectionUnknown`], storage errors.
    pub fn set_tenant_limits(
        &self,
        collection: CollectionId,
        limits: TenantLimits,
    ) -> Result<Allowance> {
        let defaults = self.inner.options.tenant_limits;
        self.change_tenant(collection, move |connection| {
            limits.store(connection, collection)?;
            read(connection, collection, defaults)
        })
    }

    /// The limits that hold for a tenant: its own, else the defaults.
    pub fn limits_of(&self, tenant: &Tenant) -> TenantLimits {
        tenant.limits.or(self.inner.options.tenant_limits)
    }

    /// Refuses a source of `bytes` that a tenant has no room for now, before anything of it is
    /// stored. The acceptance decides.
    ///
    /// # Errors
    /// [`CatalogError::TenantLimit`], storage errors.
    pub fn require_allowed(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: Option<&SourceId>,
        bytes: u64,
    ) -> Result<()> {
        let target = StorageTarget { collection, sub_tenant };
        let defaults = self.inner.options.tenant_limits;
        self.read(|connection| target.require(connection, source, bytes, defaults))
    }
}

fn read(
    connection: &Connection,
    collection: CollectionId,
    defaults: TenantLimits,
) -> Result<Allowance> {
    let sql = "SELECT sources, bytes FROM tenant_use WHERE collection = ?1";
    let used = connection.first(sql, [blob(collection)], |cells| {
        Ok(TenantUse { sources: cells.number()?, bytes: cells.number()? })
    })?;
    let sql = format!("SELECT {LIMIT_COLUMNS} FROM tenant_limits WHERE collection = ?1");
    let own = connection.first(&sql, [blob(collection)], TenantLimits::read)?.unwrap_or_default();
    Ok(Allowance { used: used.unwrap_or_default(), own, limits: own.or(defaults) })
}

/// A sub-tenant in which a source is to be stored.
pub(super) struct StorageTarget<'a> {
    pub(super) collection: CollectionId,
    pub(super) sub_tenant: &'a SubTenantId,
}

impl StorageTarget<'_> {
    /// Refuses a source that would take more than the tenant has left. One that takes no more than
    /// it has already is never refused.
    pub(super) fn require(
        &self,
        connection: &Connection,
        source: Option<&SourceId>,
        bytes: u64,
        defaults: TenantLimits,
    ) -> Result<()> {
        let Allowance { used, limits, .. } = read(connection, self.collection, defaults)?;
        if limits == TenantLimits::default() {
            return Ok(());
        }
        let held = match source {
            Some(source) => self.held(connection, source)?,
            None => None,
        };
        let more = bytes.saturating_sub(held.unwrap_or(0));
        let asked = [
            ("sources", limits.sources, used.sources, u64::from(held.is_none())),
            ("bytes", limits.bytes, used.bytes, more),
        ];
        for (limit, max, used, more) in asked {
            let needed = used.saturating_add(more);
            if let Some(max) = max.filter(|max| more > 0 && needed > *max) {
                return Err(CatalogError::TenantLimit { limit, max, used, needed });
            }
        }
        Ok(())
    }

    /// The bytes that are counted for a source; `None` where it is not counted.
    fn held(&self, connection: &Connection, source: &SourceId) -> Result<Option<u64>> {
        let sql = "SELECT bytes FROM known_sources
            WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3";
        let key = params![source.as_str(), blob(self.collection), self.sub_tenant.as_str()];
        Ok(connection.first(sql, key, |cells| cells.optional_number())?.flatten())
    }

    /// Counts a known source with at least these bytes.
    pub(super) fn hold(
        &self,
        connection: &Connection,
        source: &SourceId,
        bytes: u64,
    ) -> Result<()> {
        let held = self.held(connection, source)?.unwrap_or(0);
        self.set(connection, source, held.max(bytes))
    }

    /// Counts a known source with these bytes.
    pub(super) fn set(&self, connection: &Connection, source: &SourceId, bytes: u64) -> Result<()> {
        let (source, name) = (source.as_str(), self.sub_tenant.as_str());
        connection.run(
            "UPDATE known_sources SET bytes = ?4
             WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3",
            params![source, blob(self.collection), name, bytes as i64],
        )
    }
}

/// A version is visible: if it is the newest of its source, its bytes alone count.
pub(super) fn published(connection: &Connection, sequence: Sequence) -> Result<()> {
    connection.run(
        "UPDATE known_sources SET bytes = j.size_bytes FROM jobs j
         WHERE j.seq = ?1 AND known_sources.source = j.source
            AND known_sources.collection = j.collection
            AND known_sources.sub_tenant = j.sub_tenant AND known_sources.seq = j.seq",
        [sequence.0 as i64],
    )
}

/// The original of a job has come: it counts, or is refused where the tenant has no room for it.
pub(super) fn fetched(
    connection: &Connection,
    sequence: Sequence,
    bytes: u64,
    defaults: TenantLimits,
) -> Result<()> {
    let sql = "SELECT collection, sub_tenant, source FROM jobs WHERE seq = ?1";
    let (collection, sub_tenant, source) = connection.one(sql, [sequence.0 as i64], |cells| {
        Ok((cells.collection()?, cells.sub_tenant()?, cells.source()?))
    })?;
    let target = StorageTarget { collection, sub_tenant: &sub_tenant };
    target.require(connection, Some(&source), bytes, defaults)?;
    target.hold(connection, &source, bytes)
}
