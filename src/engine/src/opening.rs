//! Opens the catalog and the collections, either to write or to follow the process that writes.

use std::sync::Arc;

use crate::settings::Settings;
use crate::{CATALOG_NAME, EngineError, MILLIS_PER_HOUR, blobs, restore};
use lodestone_catalog::job::QueueLimits;
use lodestone_catalog::{Catalog, CatalogLog, CatalogOptions, KeyText};
use lodestone_compute::ComputeBackend;
use lodestone_fetch::Authorities;
use lodestone_io::store::{BlobStore, HeldBlobs};
use lodestone_io::{DataDir, SpaceGauge};
use lodestone_storage::collection::{Openings, Registry};
use lodestone_types::{Clock, IdSource};

fn catalog_options(settings: &Settings) -> CatalogOptions {
    CatalogOptions {
        queue: QueueLimits::default(),
        session_idle_millis: settings.session_idle_hours * MILLIS_PER_HOUR,
        tenant_limits: settings.tenants.limits(),
        has_followers: settings.store.nodes.with_query_nodes,
    }
}

/// The parts of an engine that hold its data.
pub(super) struct Opened {
    pub(super) blobs: Arc<HeldBlobs>,
    /// `blobs` as a trait object.
    pub(super) store: Arc<dyn BlobStore>,
    pub(super) bucket: Option<blobs::OpenBucket>,
    pub(super) catalog: Catalog,
    /// The admin key created now because none existed.
    pub(super) first_key: Option<KeyText>,
    pub(super) registry: Arc<Registry>,
    pub(super) openings: Arc<Openings>,
    pub(super) gauge: Arc<SpaceGauge>,
}

impl Opened {
    /// Opens all of them at the location that the settings name.
    ///
    /// # Errors
    /// See [`blobs::open`] and [`restore::open_catalog`].
    pub(super) fn of(
        settings: &Settings,
        authorities: &Authorities,
        data: &Arc<DataDir>,
        clock: &Arc<dyn Clock>,
        ids: &Arc<dyn IdSource>,
        backend: &Arc<dyn ComputeBackend>,
    ) -> Result<Self, EngineError> {
        let opened = blobs::open(settings, authorities, data, ids, clock)?;
        let (catalog, first_key) = open_catalog(settings, data, &opened, clock, ids)?;
        let registry = open_registry(settings, &opened, &catalog, &**clock, ids, backend);
        let blobs::OpenBlobs { blobs, bucket } = opened;
        let store = Arc::clone(&blobs) as _;
        let openings = Openings::new(&registry);
        let gauge = Arc::new(SpaceGauge::new(Arc::clone(data), Arc::clone(clock)));
        Ok(Self { blobs, store, bucket, catalog, first_key, registry, openings, gauge })
    }
}

/// Opens the catalog with the admin key of the settings. If they name none, the second value is the
/// first key, should one be created now.
fn open_catalog(
    settings: &Settings,
    data: &DataDir,
    opened: &blobs::OpenBlobs,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Result<(Catalog, Option<KeyText>), EngineError> {
    let (options, store) = (catalog_options(settings), Arc::clone(&opened.blobs) as _);
    let catalog = match (&opened.bucket, opened.shared()) {
        (Some(bucket), Some(shared)) if settings.store.nodes.only_reads() => {
            let log = CatalogLog::open(shared, Arc::clone(ids))?;
            if log.is_empty() {
                return Err(blobs::no_data(bucket.blobs.bucket()).into());
            }
            let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
            Catalog::follow(&data.root().join(CATALOG_NAME), options, clock, ids, &log)?
        }
        (_, shared) => restore::open_catalog(data.root(), &store, shared, clock, ids, options)?,
    };
    let own = opened.bucket.as_ref();
    if let Some(check) = own.and_then(|one| one.lease_check(settings.store.nodes.standby)) {
        catalog.set_lease_check(check);
    }
    Ok(match &settings.admin_key {
        Some(key) => (catalog.with_operator_key(key)?, None),
        None if settings.store.nodes.only_reads() => (catalog, None),
        None => {
            let first_key = catalog.bootstrap_key()?;
            (catalog, first_key)
        }
    })
}

fn open_registry(
    settings: &Settings,
    opened: &blobs::OpenBlobs,
    catalog: &Catalog,
    clock: &dyn Clock,
    ids: &Arc<dyn IdSource>,
    backend: &Arc<dyn ComputeBackend>,
) -> Arc<Registry> {
    let store = Arc::clone(&opened.blobs) as _;
    let epoch = (!settings.store.nodes.only_reads()).then(|| blobs::epoch(opened, catalog, clock));
    let registry = Registry::new(store, Arc::clone(ids), epoch, settings.open_collections);
    Arc::new(registry.with_backend(Arc::clone(backend)))
}
