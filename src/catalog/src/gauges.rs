//! Numbers of the catalog as they are now, for operators.

use super::Catalog;
use super::error::Result;
use lodestone_metrics::Registry;

/// Numbers of the catalog at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CatalogGauges {
    /// Bytes of the originals that wait for a worker.
    pub queued_bytes: u64,
    /// Tenants that are not deleted.
    pub tenants: u64,
    /// Deleted tenants whose files are not gone yet.
    pub deleting: u64,
    /// Events that wait for their webhooks.
    pub webhook_backlog: u64,
    /// Webhooks that failed for days.
    pub webhooks_disabled: u64,
}

impl Catalog {
    /// The numbers now; that of waiting jobs goes to the measurements of jobs. Counting tenants
    /// looks at each of them, in an index.
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

    /// Enters the measurements of jobs and caches into a registry.
    pub fn enter_meters(&self, registry: &mut Registry) {
        self.inner.stages.meters.enter(registry);
        let help = "Look-ups of API keys, by whether the cache in memory knew the answer";
        registry.enter("key_cache_requests_total", help, &self.inner.keys.requests);
        let help = "Look-ups of tenants, by whether the cache in memory knew the answer";
        registry.enter("tenant_cache_requests_total", help, &self.inner.tenants.requests);
    }
}
