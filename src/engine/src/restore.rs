//! Rebuilds a lost catalog from the descriptors, the manifests and the originals, and completes a
//! catalog that is older than they are.
//!
//! ```text
//! v1/t/<collection>    name, mode, schema      -> the tenant
//! v1/c/<collection>    manifest, segments      -> head, sub-tenants, dimension, highest sequence
//! v1/raw/<collection>  originals without rows  -> jobs: accepted, and not processed yet
//! ```
//! A catalog restored from a backup lacks the tenants created since then: they are taken up from
//! their descriptors in the same way.
//!
//! The rebuilt file gets its name atomically once it is complete, so a crash in between only leads
//! to another attempt. Data that only the catalog held are lost: keys, conversations, responses to
//! repeated requests, results of past jobs. Contradictions are left alone and logged.

mod originals;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use crate::{CATALOG_NAME, EngineError};
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::job::QueueLimits;
use lodestone_catalog::{Catalog, CatalogLog, CatalogOptions, RestoredTenant, Tenant};
use lodestone_io::store::{BlobStore, Key};
use lodestone_storage::collection::{Collection, CollectionError};
use lodestone_types::{Clock, CollectionId, CommitHead, IdSource, Sequence};
use originals::{Contents, resubmit};

/// Gap added to the highest sequence found when a part of a collection could not be read.
const SEQUENCE_GAP: u64 = 1 << 32;

/// Opens the catalog: from its log in `shared`, a store that others may write to, or else from the
/// file. The file is rebuilt if it is missing although tenants exist, and completed if it lacks
/// some.
///
/// # Errors
/// See [`restore_if_lost`]; damage of the file, which is then left unchanged.
pub(super) fn open_catalog(
    root: &Path,
    store: &Arc<dyn BlobStore>,
    shared: Option<Arc<dyn BlobStore>>,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
    options: CatalogOptions,
) -> Result<Catalog, EngineError> {
    let path = root.join(CATALOG_NAME);
    let log = || shared.clone().map(|shared| CatalogLog::open(shared, Arc::clone(ids))).transpose();
    // A log in the store is authoritative: nothing that only the file holds was ever acknowledged.
    let is_empty = log()?.map(|log| log.is_empty());
    if is_empty == Some(true) {
        // Left over from a first start that was interrupted.
        Catalog::remove_left_over(&path)?;
    }
    if is_empty != Some(false) {
        restore_if_lost(&path, store, clock, ids)?;
    }
    let open = |options| {
        let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
        match log()? {
            Some(log) => Catalog::open_with_log(&path, options, clock, ids, log),
            None => Catalog::open(&path, options, clock, ids),
        }
    };
    let catalog = open(options)?;
    let described = descriptors::collections(&**store)?;
    let known = catalog.collections()?;
    let mut missing = described.iter().filter(|collection| !known.contains(collection)).peekable();
    if missing.peek().is_none() {
        return Ok(catalog);
    }
    drop(catalog);
    let catalog = open(unlimited())?;
    for collection in missing {
        take_up(&catalog, store, ids, *collection, &described)?;
    }
    drop(catalog);
    Ok(open(options)?)
}

/// Options without limits, so that everything accepted earlier is accepted again.
fn unlimited() -> CatalogOptions {
    let queue = QueueLimits {
        jobs_max: u64::MAX,
        bytes_max: u64::MAX,
        collection_jobs_max: u64::MAX,
        collection_bytes_max: u64::MAX,
    };
    CatalogOptions { queue, ..CatalogOptions::default() }
}

/// Adds a tenant that has a descriptor but is not in the catalog. A tenant that cannot be added is
/// skipped, so that the others are served.
fn take_up(
    catalog: &Catalog,
    store: &Arc<dyn BlobStore>,
    ids: &Arc<dyn IdSource>,
    collection: CollectionId,
    described: &[CollectionId],
) -> Result<(), EngineError> {
    let tenant = match descriptors::read(&**store, collection) {
        Ok(Some(found)) if !found.is_deleted => found.tenant,
        Ok(_) => return Ok(()),
        Err(error) => {
            tracing::error!(%error, "a tenant that is not in catalog.sqlite was skipped");
            return Ok(());
        }
    };
    let name = tenant.id.clone();
    if let Some(other) = catalog.tenant(&name)? {
        let is_gone = described.binary_search(&other.collection).is_err()
            && !has_files(&**store, other.collection)?;
        if !is_gone {
            let other = other.collection;
            tracing::error!(%collection, %other, "two collections claim the same tenant: the \
                other, which is in catalog.sqlite, is served, and this one is left untouched");
            return Ok(());
        }
        // The tenant was deleted after the backup and then created again.
        catalog.begin_delete_tenant(&name)?;
    }
    let waiting = restore_tenant(catalog, store, ids, tenant)?;
    tracing::error!(%collection, jobs = waiting, "a tenant that is not in catalog.sqlite was \
        added: the file is older than the tenant, as after a restore; repeat the uploads of all \
        tenants that were waiting since then");
    Ok(())
}

fn has_files(store: &dyn BlobStore, collection: CollectionId) -> Result<bool, EngineError> {
    for directory in ["v1/c", "v1/raw"] {
        if !store.list(&prefix(directory, collection))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rebuilds `catalog.sqlite` if it is missing although tenants exist.
///
/// # Errors
/// [`EngineError::CatalogLost`] if tenants and files contradict each other; errors of the disk.
/// Nothing is changed in either case.
fn restore_if_lost(
    path: &Path,
    store: &Arc<dyn BlobStore>,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Result<(), EngineError> {
    if Catalog::exists(path, &**store)? {
        return Ok(());
    }
    let found = survey(&**store)?;
    if found.live.is_empty() && found.deleted.is_empty() {
        return Ok(());
    }
    tracing::error!(tenants = found.live.len(), "catalog.sqlite is missing: rebuilding it");
    Catalog::set_aside_logs(path)?;
    let fresh = path.with_file_name(format!("{CATALOG_NAME}.rebuilt"));
    Catalog::remove_left_over(&fresh)?;
    let rebuild = || {
        let catalog = Catalog::open(&fresh, unlimited(), Arc::clone(clock), Arc::clone(ids))?;
        let mut waiting = 0;
        for tenant in found.live {
            waiting += restore_tenant(&catalog, store, ids, tenant)?;
        }
        catalog.move_to(&fresh, path)?;
        Ok(waiting)
    };
    let waiting = rebuild().inspect_err(|_: &EngineError| {
        // Otherwise the partial file would take up disk space until the next start.
        let _ = Catalog::remove_left_over(&fresh);
    })?;
    for collection in found.deleted {
        store.delete_prefix(&prefix("v1/c", collection))?;
        store.delete_prefix(&prefix("v1/raw", collection))?;
        descriptors::remove(&**store, collection)?;
    }
    tracing::error!(
        jobs = waiting,
        "catalog.sqlite was rebuilt; API keys, conversations and the job history are lost"
    );
    Ok(())
}

/// Tenants to restore, and deleted collections whose remains are to be removed.
#[derive(Debug, Default)]
struct Survey {
    live: Vec<Tenant>,
    deleted: Vec<CollectionId>,
}

fn prefix(directory: &str, collection: CollectionId) -> Key {
    Key::parse(&format!("{directory}/{collection}")).expect("opaque ids make valid keys")
}

fn lost(problem: String) -> EngineError {
    EngineError::CatalogLost { problem }
}

/// The collections that have files below `directory`.
fn owners(store: &dyn BlobStore, directory: &str) -> Result<BTreeSet<CollectionId>, EngineError> {
    let keys = store.list(&Key::parse(directory).expect("a fixed name is a key"))?;
    let name = |key: &Key| key.as_str().split('/').nth(2).map(str::to_owned);
    let ids = keys.iter().filter_map(name).filter_map(|name| Uuid::try_parse(&name).ok());
    Ok(ids.map(CollectionId).collect())
}

fn survey(store: &dyn BlobStore) -> Result<Survey, EngineError> {
    let mut with_files = owners(store, "v1/c")?;
    with_files.extend(owners(store, "v1/raw")?);
    let mut survey = Survey::default();
    let mut by_name: BTreeMap<String, Tenant> = BTreeMap::new();
    let mut described = BTreeSet::new();
    for collection in descriptors::collections(store)? {
        described.insert(collection);
        let read = descriptors::read(store, collection);
        let Some(Descriptor { tenant, is_deleted }) = read.map_err(|error| {
            lost(format!("{error}; restore it, or catalog.sqlite, from a backup"))
        })?
        else {
            continue;
        };
        if is_deleted {
            survey.deleted.push(collection);
            continue;
        }
        let name = tenant.id.to_string();
        let Some(other) = by_name.remove(&name) else {
            by_name.insert(name, tenant);
            continue;
        };
        // A creation that was interrupted before its acknowledgement leaves only a descriptor.
        let (first, second) = (other.collection, tenant.collection);
        let kept = match (with_files.contains(&first), with_files.contains(&second)) {
            (true, true) => {
                let problem = format!(
                    "collections {first} and {second} both claim to be tenant {name}; restore \
                     catalog.sqlite from a backup, or move the files of one away"
                );
                return Err(lost(problem));
            }
            (true, false) => other,
            (false, _) => tenant,
        };
        by_name.insert(name, kept);
    }
    if let Some(nameless) = with_files.difference(&described).next() {
        let problem = format!(
            "collection {nameless} has files but no descriptor v1/t/{nameless}, so its tenant is \
             unknown; restore catalog.sqlite from a backup, or move v1/c/{nameless} and \
             v1/raw/{nameless} away"
        );
        return Err(lost(problem));
    }
    survey.live = by_name.into_values().collect();
    Ok(survey)
}

/// Restores one tenant; returns how many of its uploads are queued for processing.
fn restore_tenant(
    catalog: &Catalog,
    store: &Arc<dyn BlobStore>,
    ids: &Arc<dyn IdSource>,
    mut tenant: Tenant,
) -> Result<usize, EngineError> {
    let id = tenant.collection;
    let opened = match Collection::unlisted_segments(&**store, id)? {
        0 => Collection::open(id, Arc::clone(store), Arc::clone(ids), 0, None),
        segments => Err(CollectionError::Unlisted { collection: id, segments }),
    };
    let collection = match opened {
        Ok(collection) => collection,
        Err(error) => {
            // The tenant is kept and fails when it is used, without holding up the others.
            tracing::error!(collection = %id, %error, "tenant restored without its sources");
            catalog.restore_tenant(RestoredTenant {
                tenant,
                // Records that something was committed, so that its files are not taken for
                // leftovers.
                head: Some(CommitHead { version: 1, nonce: Uuid::nil() }),
                sub_tenants: Vec::new(),
                newest_sequence: Sequence(SEQUENCE_GAP),
            })?;
            return Ok(0);
        }
    };
    let snapshot = collection.snapshot();
    let contents = Contents::of(&snapshot)?;
    let segment = snapshot.segments.first();
    tenant.dimension =
        segment.filter(|_| tenant.mode.is_embeddings()).map(|live| live.segment.dimension() as u32);
    let gap = if snapshot.unknown_segments() > 0 { SEQUENCE_GAP } else { 0 };
    catalog.restore_tenant(RestoredTenant {
        tenant,
        head: collection.head(),
        sub_tenants: contents.sub_tenants.into_iter().collect(),
        newest_sequence: Sequence(snapshot.newest_sequence().0 + gap),
    })?;
    match snapshot.unknown_segments() {
        0 => resubmit(catalog, &**store, id, &contents.sources),
        _ => Ok(0),
    }
}
