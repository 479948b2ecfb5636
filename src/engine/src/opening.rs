//! Opening the catalog and the collections: to write, or to follow the process that does.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::ingest::Ingest;
use crate::settings::Settings;
use crate::{CATALOG_NAME, EngineError, MILLIS_PER_HOUR, blobs, restore};
use lodestone_catalog::job::QueueLimits;
use lodestone_catalog::{Catalog, CatalogLog, CatalogOptions, JobScope, KeyText};
use lodestone_compute::ComputeBackend;
use lodestone_io::DataDir;
use lodestone_storage::collection::Registry;
use lodestone_types::{Clock, IdSource};

fn catalog_options(settings: &Settings) -> CatalogOptions {
    CatalogOptions {
        queue: QueueLimits::default(),
        session_idle_millis: settings.session_idle_hours * MILLIS_PER_HOUR,
        tenant_limits: settings.tenants.limits(),
        has_followers: settings.nodes.with_query_nodes,
    }
}

/// The catalog with the admin key of the settings; without one, with the first key if it is made
/// now.
pub(super) fn open_catalog(
    settings: &Settings,
    data: &DataDir,
    opened: &blobs::OpenBlobs,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Result<(Catalog, Option<KeyText>), EngineError> {
    let (options, store) = (catalog_options(settings), Arc::clone(&opened.blobs) as _);
    let shared = opened.shared();
    let catalog = match shared {
        Some(shared) if settings.nodes.only_reads() => {
            let log = CatalogLog::open(shared, Arc::clone(ids))?;
            let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
            Catalog::follow(&data.root().join(CATALOG_NAME), options, clock, ids, &log)?
        }
        shared => restore::open_catalog(data.root(), &store, shared, clock, ids, options)?,
    };
    Ok(match &settings.admin_key {
        Some(key) => (catalog.with_operator_key(key)?, None),
        None if settings.nodes.only_reads() => (catalog, None),
        None => {
            let first_key = catalog.bootstrap_key()?;
            (catalog, first_key)
        }
    })
}

pub(super) fn open_registry(
    settings: &Settings,
    opened: &blobs::OpenBlobs,
    catalog: &Catalog,
    clock: &dyn Clock,
    ids: &Arc<dyn IdSource>,
    backend: &Arc<dyn ComputeBackend>,
) -> Arc<Registry> {
    let store = Arc::clone(&opened.blobs) as _;
    let epoch = (!settings.nodes.only_reads()).then(|| blobs::epoch(opened, catalog, clock));
    let registry = Registry::new(store, Arc::clone(ids), epoch, settings.open_collections);
    Arc::new(registry.with_backend(Arc::clone(backend)))
}

/// Starts the workers, which go on with the jobs of the last run.
pub(super) fn resume(
    ingest: &Arc<Ingest>,
    catalog: &Catalog,
) -> Result<Vec<JoinHandle<()>>, EngineError> {
    let interrupted = ingest.recover()?;
    let waiting = catalog.job_counts(&JobScope::Everywhere)?.queued;
    if waiting > 0 {
        tracing::info!(jobs = waiting, interrupted, "jobs of the last run go on");
    }
    Ok(ingest.start())
}
