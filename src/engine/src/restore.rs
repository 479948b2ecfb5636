//! Rebuilding a lost catalog from the descriptors, the manifests and the originals.
//!
//! ```text
//! v1/t/<collection>    name, mode, schema      -> the tenant
//! v1/c/<collection>    manifest, segments      -> head, sub-tenants, width, highest sequence
//! v1/raw/<collection>  originals without rows  -> jobs: accepted, and not processed yet
//! ```
//! The new file gets its name in one step, after everything is in it, so a crash in between is
//! followed by another attempt. Data that only the catalog held is lost: keys, conversations,
//! answers to repeated requests, results of past jobs. Contradictions are left alone and logged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{CATALOG_NAME, EngineError};
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_catalog::job::{MetadataChange, NewJob, QueueLimits};
use lodestone_catalog::{Catalog, CatalogOptions, RestoredTenant, Tenant};
use lodestone_io::store::{BlobStore, Key};
use lodestone_storage::collection::{Collection, Snapshot, uploads};
use lodestone_types::{
    Clock, CollectionId, IdSource, Metadata, Sequence, SourceId, SourceKind, SubTenantId,
    TenantMode, Timestamp,
};

/// Distance to the highest sequence found where a part of a collection could not be read.
const SEQUENCE_GAP: u64 = 1 << 32;

/// Rebuilds `catalog.sqlite` if it is missing although there are tenants.
///
/// # Errors
/// [`EngineError::CatalogLost`] where tenants and files contradict each other; errors of the disk.
/// Nothing is changed then.
pub(super) fn restore_if_lost(
    root: &Path,
    store: &Arc<dyn BlobStore>,
    clock: &Arc<dyn Clock>,
    ids: &Arc<dyn IdSource>,
) -> Result<(), EngineError> {
    let path = root.join(CATALOG_NAME);
    if Catalog::exists(&path) {
        return Ok(());
    }
    let found = survey(&**store)?;
    if found.live.is_empty() && found.deleted.is_empty() {
        return Ok(());
    }
    tracing::error!(tenants = found.live.len(), "catalog.sqlite is missing: it is rebuilt");
    Catalog::set_aside_logs(&path)?;
    let fresh = root.join(format!("{CATALOG_NAME}.rebuilt"));
    Catalog::remove_left_over(&fresh)?;
    let queue = QueueLimits {
        jobs_max: u64::MAX,
        bytes_max: u64::MAX,
        collection_jobs_max: u64::MAX,
        collection_bytes_max: u64::MAX,
    };
    let options = CatalogOptions { queue, ..CatalogOptions::default() };
    let catalog = Catalog::open(&fresh, options, Arc::clone(clock), Arc::clone(ids))?;
    let mut waiting = 0;
    for tenant in found.live {
        waiting += restore_tenant(&catalog, store, ids, tenant)?;
    }
    catalog.move_to(&fresh, &path)?;
    for collection in found.deleted {
        store.delete_prefix(&prefix("v1/c", collection))?;
        store.delete_prefix(&prefix("v1/raw", collection))?;
        descriptors::remove(&**store, collection)?;
    }
    tracing::error!(
        jobs = waiting,
        "catalog.sqlite is rebuilt; API keys, conversations and the history of jobs are lost"
    );
    Ok(())
}

/// Tenants that are to be restored, and collections whose remains go.
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

/// Collections that have files below `directory`.
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
        // A creation that was interrupted before its acknowledgement leaves a descriptor alone.
        let (first, second) = (other.collection, tenant.collection);
        let kept = match (with_files.contains(&first), with_files.contains(&second)) {
            (true, true) => {
                let problem = format!(
                    "collections {first} and {second} both say that they are tenant {name}; \
                     restore catalog.sqlite from a backup, or move the files of one away"
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
            "collection {nameless} has files and no descriptor v1/t/{nameless}, so it is not \
             known whose it is; restore catalog.sqlite from a backup, or move v1/c/{nameless} and \
             v1/raw/{nameless} away"
        );
        return Err(lost(problem));
    }
    survey.live = by_name.into_values().collect();
    Ok(survey)
}

/// Restores one tenant; returns how many of its uploads wait to be processed.
fn restore_tenant(
    catalog: &Catalog,
    store: &Arc<dyn BlobStore>,
    ids: &Arc<dyn IdSource>,
    mut tenant: Tenant,
) -> Result<usize, EngineError> {
    let id = tenant.collection;
    let opened = Collection::open(id, Arc::clone(store), Arc::clone(ids), 0, None);
    let collection = match opened {
        Ok(collection) => collection,
        Err(error) => {
            // The tenant is kept and says so when it is used; the others are not held up.
            tracing::error!(tenant = %tenant.id, %error, "restored without its sources");
            catalog.restore_tenant(RestoredTenant {
                tenant,
                head: None,
                sub_tenants: Vec::new(),
                newest_sequence: Sequence(SEQUENCE_GAP),
            })?;
            return Ok(0);
        }
    };
    let snapshot = collection.snapshot();
    let contents = Contents::of(&snapshot)?;
    let segment = snapshot.segments.first();
    tenant.dimension = segment
        .filter(|_| tenant.mode == TenantMode::Embeddings)
        .map(|live| live.segment.dimension() as u32);
    let gap = if snapshot.unknown_segments() > 0 { SEQUENCE_GAP } else { 0 };
    catalog.restore_tenant(RestoredTenant {
        tenant,
        head: collection.head(),
        sub_tenants: contents.sub_tenants.into_iter().collect(),
        newest_sequence: Sequence(contents.newest_sequence + gap),
    })?;
    match snapshot.unknown_segments() {
        0 => resubmit(catalog, &**store, id, &contents.sources),
        _ => Ok(0),
    }
}

/// The sources of a collection.
#[derive(Debug, Default)]
struct Contents {
    sub_tenants: BTreeSet<SubTenantId>,
    newest_sequence: u64,
    /// Version and original of each source.
    sources: BTreeMap<(SubTenantId, SourceId), (u32, String)>,
}

impl Contents {
    fn of(snapshot: &Snapshot) -> Result<Self, EngineError> {
        let mut contents = Self::default();
        let applied = snapshot.manifest.applied.iter().copied().max();
        contents.newest_sequence = applied.unwrap_or(0);
        let visible = snapshot.all_sources().map(|found| found.record());
        let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
        for record in visible.chain(lost.cloned().map(Ok)) {
            let record = record.map_err(lodestone_storage::collection::CollectionError::from)?;
            contents.sub_tenants.insert(record.sub_tenant.named());
            contents.newest_sequence = contents.newest_sequence.max(record.sequence.0);
            let key = (record.sub_tenant, record.id);
            contents.sources.insert(key, (record.version, record.raw_key));
        }
        Ok(contents)
    }
}

/// Makes jobs of the uploads that were accepted and have no rows yet: of each source the newest
/// original, if it is newer than that of the visible version. Older ones were replaced.
fn resubmit(
    catalog: &Catalog,
    store: &dyn BlobStore,
    collection: CollectionId,
    sources: &BTreeMap<(SubTenantId, SourceId), (u32, String)>,
) -> Result<usize, EngineError> {
    let mut newest: BTreeMap<(SubTenantId, SourceId), NewJob> = BTreeMap::new();
    // Keys of one collection sort by the time of their uploads.
    for key in store.list(&uploads::prefix(collection))? {
        let upload = match uploads::get(store, key.as_str()) {
            Ok(upload) => upload,
            Err(error) => {
                tracing::error!(%collection, %error, "an original is left out");
                continue;
            }
        };
        let label = upload.label;
        let names = (SubTenantId::parse(&label.sub_tenant), SourceId::parse(&label.source));
        let (Ok(sub_tenant), Ok(source)) = names else { continue };
        let Some(kind) = SourceKind::from_word(&label.kind) else { continue };
        // A memory without rows was never acknowledged, or is deleted.
        if kind == SourceKind::Memory {
            continue;
        }
        let place = (sub_tenant.clone(), source.clone());
        let visible = sources.get(&place);
        if visible.is_some_and(|(_, raw_key)| raw_key.as_str() >= key.as_str()) {
            newest.remove(&place);
            continue;
        }
        let change =
            |map: Option<Metadata>| map.map_or(MetadataChange::Keep, MetadataChange::Replace);
        let job = NewJob {
            collection,
            sub_tenant,
            source,
            kind,
            raw_key: key.as_str().to_owned(),
            filename: label.filename,
            url: label.origin.url,
            content_type: label.content_type,
            size_bytes: upload.content.len() as u64,
            content_hash: Sha256::digest(&upload.content).into(),
            tenant_metadata: change(label.tenant_metadata),
            document_metadata: change(label.document_metadata),
            known_version: visible.map(|(version, _)| *version),
            uploaded_at: Timestamp(label.uploaded_at),
            origin_at: label.origin.changed_at,
            detail: label.origin.detail,
        };
        newest.insert(place, job);
    }
    let mut jobs: Vec<NewJob> = newest.into_values().collect();
    jobs.sort_by(|a, b| a.raw_key.cmp(&b.raw_key));
    let count = jobs.len();
    for job in jobs {
        catalog.submit(job)?;
    }
    Ok(count)
}
