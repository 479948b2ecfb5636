//! Current numbers of the catalog, for operators.

use super::Catalog;
use super::error::Result;
use lodestone_metrics::Registry;

/// Numbers of the catalog at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogGauges {
    /// Total bytes of the originals waiting for a worker.
    pub queued_bytes: u64,
    /// Tenants that are not deleted.
    pub tenants: u64,
    /// Deleted tenants whose files have not all been removed yet.
    pub deleting: u64,
    /// Events waiting for delivery to webhooks.
    pub webhook_backlog: u64,
    /// Webhooks disabled after days of failures.
    pub webhooks_disabled: u64,
}

impl Catalog {
    /// Reads the current numbers; that of waiting jobs goes into the job meters. Counting tenants
    /// scans an index of all of them.
    pub fn gauges(&self) -> Result<CatalogGauges> {
        let (queued_jobs, gauges) = self.read(|connection| {
            let sql = "SELECT jobs, bytes,
                (SELECT count(*) FROM tenants WHERE deleting = 0),
                (SELECT count(*) FROM tenants WHERE deleting = 1),
                (SELECT coalesce(sum(pending), 0) FROM webhooks),
                (SELECT count(*) FROM webhooks WHERE state = 'disabled') FROM queue_total";
            let mut read = connection.prepare_cached(sql)?;
            let numbers = read.query_row([], |row| {
                let number = |at| row.get::<_, i64>(at).map(|number| number.max(0) as u64);
                let gauges = CatalogGauges {
                    queued_bytes: number(1)?,
                    tenants: number(2)?,
                    deleting: number(3)?,
                    webhook_backlog: number(4)?,
                    webhooks_disabled: number(5)?,
                };
                Ok((number(0)?, gauges))
            })?;
            Ok(numbers)
        })?;
        self.inner.stages.meters.queued(queued_jobs);
        Ok(gauges)
    }

    /// Registers the meters of jobs and caches.
    pub fn enter_meters(&self, registry: &mut Registry) {
        self.inner.stages.meters.enter(registry);
        let help = "Lookups of API keys, by hits and misses of the in-memory cache";
        registry.enter("key_cache_requests_total", help, &self.inner.keys.requests);
        let help = "Lookups of tenants, by hits and misses of the in-memory cache";
        registry.enter("tenant_cache_requests_total", help, &self.inner.tenants.requests);
    }
}
