//! Divides the memory of an engine: the budget that work reserves from, and what is held beside it.

use std::sync::Arc;

use crate::Models;
use crate::follower::Follower;
use crate::ingest::MemoryBudget;
use crate::query::Query;
use crate::settings::Settings;
use lodestone_compute::ComputeBackend;
use lodestone_embed::SparseModel;
use lodestone_io::{ProcessMemory, memory_of_machine};
use lodestone_rank::Reranker;

/// Bytes a connection may hold without reserving them: buffers for both directions, a 64 KiB body,
/// and a response small enough to stay in memory.
const CONNECTION_BYTES: u64 = 192 << 10;
/// Divisor of the memory limit that gives the size of the cache of filter results.
const KEPT_FILTERS_SHARE: u64 = 32;
/// Maximum size of that cache in bytes: a thousand filters over a million rows.
const KEPT_FILTERS_BYTES_MAX: u64 = 256 << 20;

/// Bytes for the cache of rows that pass filters which searches repeat.
fn kept_filters_bytes(limit_bytes: Option<u64>) -> u64 {
    limit_bytes
        .map_or(KEPT_FILTERS_BYTES_MAX, |limit| limit / KEPT_FILTERS_SHARE)
        .min(KEPT_FILTERS_BYTES_MAX)
}

/// Builds the search pipeline with all available models, and the nodes that share searches.
pub(crate) fn searches(
    backend: &Arc<dyn ComputeBackend>,
    models: &Models,
    reranker: &Option<Arc<dyn Reranker>>,
    sparse: &Option<Arc<SparseModel>>,
    memory: &MemoryBudget,
    follower: &Option<Arc<Follower>>,
) -> Query {
    Query::new(Arc::clone(backend), models.clone())
        .with_reranker(reranker.clone())
        .with_sparse(sparse.clone())
        .with_kept_filters(kept_filters_bytes(memory.limit_bytes()))
        .with_nodes(follower.as_ref().and_then(|follower| follower.sharing_nodes()))
}

/// The budget that work reserves from: the limit of the settings, or else three quarters of the
/// memory available to this process. The rest is left for mapped files.
pub(crate) fn budget_of(settings: &Settings) -> Arc<MemoryBudget> {
    let of_machine = || memory_of_machine().map(|bytes| bytes / 4 * 3);
    let limit_bytes = settings.memory_limit.or_else(of_machine);
    let connection_bytes = settings.connections as u64 * CONNECTION_BYTES;
    let held_bytes = connection_bytes + kept_filters_bytes(limit_bytes);
    Arc::new(MemoryBudget::new(Box::new(ProcessMemory), limit_bytes, held_bytes))
}
