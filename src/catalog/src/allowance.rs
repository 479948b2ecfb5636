//! Limits of tenants, and the amounts that count against them.
//!
//! All limits are stored here, but only those on sources and bytes are enforced here. The engine
//! enforces the others, which concern collections, requests and workers.
//!
//! Sources in every state count, with the bytes of their originals; memories do not. Triggers on
//! `known_sources` maintain the totals, so a check reads only a few rows. The check is part of the
//! accepting transaction: of two uploads competing for the last free slot, one is refused. Until a
//! replacement is visible, the largest of the visible version and the uploads that still have their
//! originals counts.

use rusqlite::{Connection, params};

use super::Catalog;
use super::error::{CatalogError, Result};
use super::rows::{Statements, blob};
use super::tenant_limits::{LIMIT_COLUMNS, TenantLimits};
use super::tenants::{self, Tenant};
use lodestone_types::{CollectionId, Sequence, SourceId, SubTenantId};

/// The most bytes that a source has left: of its visible version (?4) and of the originals of its
/// jobs (source ?1, collection ?2, sub-tenant ?3).
const BYTES_LEFT: &str = "max(?4, (SELECT coalesce(max(j.size_bytes), 0) FROM jobs j
    WHERE j.source = ?1 AND j.collection = ?2 AND j.sub_tenant = ?3 AND j.raw_key <> ''))";

/// The amounts that a tenant has stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TenantUse {
    /// Sources in every state.
    pub sources: u64,
    /// Bytes of their originals.
    pub bytes: u64,
}

/// A tenant's usage and its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The tenant's usage.
    pub used: TenantUse,
    /// Limits set for this tenant.
    pub own: TenantLimits,
    /// The limits in force: the tenant's own, else the defaults.
    pub limits: TenantLimits,
}

impl Catalog {
    /// Returns a tenant's usage and its limits.
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

    /// Replaces the limits of a tenant. Content beyond the new limits stays.
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

    /// Counts known sources with exactly these bytes, after a part of each was deleted.
    pub fn set_bytes(
        &self,
        collection: CollectionId,
        sources: Vec<(SubTenantId, SourceId, u64)>,
    ) -> Result<()> {
        self.write(move |connection| {
            for (sub_tenant, source, bytes) in &sources {
                StorageTarget { collection, sub_tenant }.set(connection, source, *bytes)?;
            }
            Ok(())
        })
    }

    /// Stops counting originals of a source that were released; `visible` are the bytes of its
    /// visible version. Costs one read if the source counts no more than what is left.
    pub fn recount(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        visible: u64,
    ) -> Result<()> {
        let condition =
            format!("source = ?1 AND collection = ?2 AND sub_tenant = ?3 AND bytes > {BYTES_LEFT}");
        let (source, sub_tenant) = (source.clone(), sub_tenant.clone());
        let run = move |connection: &Connection, sql: &str| {
            let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
            let values = params![source, blob(collection), sub_tenant, visible as i64];
            connection.all(sql, values, |cells| cells.number())
        };
        let sql = format!("SELECT bytes FROM known_sources WHERE {condition}");
        if self.read(|connection| run(connection, &sql))?.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "UPDATE known_sources SET bytes = {BYTES_LEFT} WHERE {condition} RETURNING bytes"
        );
        self.write(move |connection| run(connection, &sql).map(drop))
    }

    /// The limits in force for a tenant: its own, else the defaults.
    pub fn limits_of(&self, tenant: &Tenant) -> TenantLimits {
        tenant.limits.or(self.inner.options.tenant_limits)
    }

    /// Refuses early, before anything is stored, a source of `bytes` that does not currently fit.
    /// The binding check happens on acceptance.
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

/// A sub-tenant in which a source is about to be stored.
pub(super) struct StorageTarget<'a> {
    pub(super) collection: CollectionId,
    pub(super) sub_tenant: &'a SubTenantId,
}

impl StorageTarget<'_> {
    /// Refuses a source that would exceed what the tenant has left. One that needs no more than it
    /// already occupies is never refused.
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

    /// The bytes counted for a source; `None` if it is not counted.
    fn held(&self, connection: &Connection, source: &SourceId) -> Result<Option<u64>> {
        let sql = "SELECT bytes FROM known_sources
            WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3";
        let key = params![source.as_str(), blob(self.collection), self.sub_tenant.as_str()];
        Ok(connection.first(sql, key, |cells| cells.optional_number())?.flatten())
    }

    /// Counts a known source with at least this many bytes.
    pub(super) fn hold(
        &self,
        connection: &Connection,
        source: &SourceId,
        bytes: u64,
    ) -> Result<()> {
        let held = self.held(connection, source)?.unwrap_or(0);
        self.set(connection, source, held.max(bytes))
    }

    /// Counts a known source with exactly this many bytes.
    pub(super) fn set(&self, connection: &Connection, source: &SourceId, bytes: u64) -> Result<()> {
        let (source, name) = (source.as_str(), self.sub_tenant.as_str());
        connection.run(
            "UPDATE known_sources SET bytes = ?4
             WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3",
            params![source, blob(self.collection), name, bytes as i64],
        )
    }
}

/// Accounts for a version that became visible: if it is the newest of its source, only its bytes
/// count.
pub(super) fn published(connection: &Connection, sequence: Sequence) -> Result<()> {
    connection.run(
        "UPDATE known_sources SET bytes = j.size_bytes FROM jobs j
         WHERE j.seq = ?1 AND known_sources.source = j.source
            AND known_sources.collection = j.collection
            AND known_sources.sub_tenant = j.sub_tenant AND known_sources.seq = j.seq",
        [sequence.0 as i64],
    )
}

/// Accounts for the fetched original of a job, or refuses it if it does not fit within the limits.
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
