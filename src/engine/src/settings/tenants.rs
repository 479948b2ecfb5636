//! Settings of tenants: what one that has no limits of its own may store.

use clap::Args;
use lodestone_catalog::TenantLimits;

use super::values::parse_bytes;

/// Limits of tenants that have none of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct TenantSettings {
    /// Default limit on sources per tenant, in any state; memories do not count [default: no
    /// limit].
    #[arg(long, env = "LODESTONE_TENANT_MAX_SOURCES", value_name = "SOURCES")]
    pub tenant_max_sources: Option<u64>,
    /// Default limit on stored originals per tenant in bytes, for example 10GiB [default: no
    /// limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_BYTES",
        value_name = "BYTES",
        value_parser = parse_bytes
    )]
    pub tenant_max_bytes: Option<u64>,
    /// Default limit on vectors per tenant: client vectors and chunks of documents and memories
    /// [default: no limit].
    #[arg(long, env = "LODESTONE_TENANT_MAX_VECTORS", value_name = "VECTORS")]
    pub tenant_max_vectors: Option<u64>,
    /// Default limit on requests per tenant in any 60 seconds [default: no limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_REQUESTS_PER_MINUTE",
        value_name = "REQUESTS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub tenant_max_requests_per_minute: Option<u64>,
    /// Default limit on workers that process documents of one tenant at the same time [default: no
    /// limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_INGEST_WORKERS",
        value_name = "WORKERS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub tenant_max_ingest_workers: Option<u64>,
}

impl TenantSettings {
    /// Returns the limits of tenants that have none of their own.
    pub fn limits(self) -> TenantLimits {
        TenantLimits {
            sources: self.tenant_max_sources,
            bytes: self.tenant_max_bytes,
            vectors: self.tenant_max_vectors,
            requests_per_minute: self.tenant_max_requests_per_minute,
            ingest_workers: self.tenant_max_ingest_workers,
        }
    }
}
