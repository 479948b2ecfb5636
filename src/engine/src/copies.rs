//! Removes cached copies of blobs that another process has deleted. The cache itself evicts only to
//! make room, so deleted documents would otherwise stay readable on the local disk.

use std::collections::{BTreeSet, HashSet};

use uuid::Uuid;

use crate::ingest::IngestError;
use lodestone_catalog::{Catalog, CatalogError};
use lodestone_io::store::BlobStore;
use lodestone_storage::collection::{Collection, CollectionError, layout, uploads};
use lodestone_types::CollectionId;

/// Drops the cached copies of all blobs of a collection.
pub(crate) fn forget(store: &dyn BlobStore, id: CollectionId) {
    for prefix in [layout::collection_prefix(id), uploads::prefix(id)] {
        for key in store.copies_below(&prefix) {
            store.forget_copy(&key);
        }
    }
}

/// Drops the cached copies of originals that nothing refers to any more, because another process
/// has deleted them.
///
/// # Errors
/// Errors of the catalog; damaged data.
pub(crate) fn forget_originals(
    store: &dyn BlobStore,
    catalog: &Catalog,
    collection: &Collection,
) -> Result<(), IngestError> {
    let copied = store.copies_below(&uploads::prefix(collection.id()));
    if copied.is_empty() {
        return Ok(());
    }
    let Some(referred) = referred_originals(catalog, collection)? else { return Ok(()) };
    for key in copied.iter().filter(|key| !referred.contains(key.as_str())) {
        store.forget_copy(key);
    }
    Ok(())
}

/// The keys of the originals that a visible source, a job or a file refers to; `None` if not all
/// sources are known: some segments cannot be read, or the outcome of a commit is unknown.
///
/// # Errors
/// Errors of the catalog; damaged data.
pub(crate) fn referred_originals(
    catalog: &Catalog,
    collection: &Collection,
) -> Result<Option<HashSet<String>>, IngestError> {
    // Jobs are read before the snapshot: a job that leaves the queue in between is in the snapshot.
    let mut referred = catalog.raw_keys(collection.id())?;
    let knows_head = collection.knows_head();
    let snapshot = collection.snapshot();
    if snapshot.unknown_segments() > 0 || !knows_head {
        return Ok(None);
    }
    let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
    referred.extend(lost.map(|record| record.raw_key.clone()));
    for found in snapshot.all_sources() {
        referred.insert(found.record().map_err(CollectionError::from)?.raw_key);
    }
    Ok(Some(referred))
}

/// Drops the cached copies of collections that are neither in the catalog nor in `others`: another
/// process has deleted them, or a request fetched a blob while its tenant was being deleted.
///
/// # Errors
/// Errors of the catalog.
pub(crate) fn forget_deleted(
    store: &dyn BlobStore,
    catalog: &Catalog,
    others: &BTreeSet<CollectionId>,
) -> Result<(), CatalogError> {
    let copied = store.copied_prefixes();
    let ids = copied.iter().filter_map(|prefix| Uuid::try_parse(prefix.last()).ok());
    let ids: BTreeSet<CollectionId> = ids.map(CollectionId).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let known = catalog.collections()?;
    for id in ids.into_iter().filter(|id| !known.contains(id) && !others.contains(id)) {
        tracing::info!(collection = %id, "removed cached blobs of a deleted tenant");
        forget(store, id);
    }
    Ok(())
}
