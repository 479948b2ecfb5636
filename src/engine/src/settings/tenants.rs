//! Settings of tenants: what one that has no limits of its own may store.

use clap::Args;
use lodestone_catalog::TenantLimits;

use super::values::parse_bytes;

/// Limits of tenants that have none of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Args)]
pub struct TenantSettings {
    /// Sources that a tenant without a limit of its own may have, in every state; memories are not
    /// counted [default: no limit].
    #[arg(long, env = "LODESTONE_TENANT_MAX_SOURCES", value_name = "SOURCES")]
    pub tenant_max_sources: Option<u64>,
    /// Bytes of originals that a tenant without a limit of its own may store, for example 10GiB
    /// [default: no limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_BYTES",
        value_name = "BYTES",
        value_parser = parse_bytes
    )]
    pub tenant_max_bytes: Option<u64>,
    /// Vectors that a tenant without a limit of its own may store: client vectors, chunks of
    /// documents and of memories [default: no limit].
    #[arg(long, env = "LODESTONE_TENANT_MAX_VECTORS", value_name = "VECTORS")]
    pub tenant_max_vectors: Option<u64>,
    /// Requests in any 60 seconds that a tenant without a limit of its own may make
    /// [default: no limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_REQUESTS_PER_MINUTE",
        value_name = "REQUESTS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub tenant_max_requests_per_minute: Option<u64>,
    /// Workers that process documents of a tenant without a limit of its own at once
    /// [default: no limit].
    #[arg(
        long,
        env = "LODESTONE_TENANT_MAX_INGEST_WORKERS",
        value_name = "WORKERS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub tenant_max_ingest_workers: Option<u64>,
}

impl TenantSettings {
    /// The limits of tenants without own ones.
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
