//! Copies of blobs that another process has deleted. A cache removes copies only to make room, and
//! whoever finds the disk would find deleted documents.

use std::collections::{BTreeSet, HashSet};

use uuid::Uuid;

use crate::ingest::IngestError;
use lodestone_catalog::{Catalog, CatalogError};
use lodestone_io::store::BlobStore;
use lodestone_storage::collection::{Collection, CollectionError, layout, uploads};
use lodestone_types::CollectionId;

/// Forgets the copies of all blobs of a collection.
pub(crate) fn forget(store: &dyn BlobStore, id: CollectionId) {
    for prefix in [layout::collection_prefix(id), uploads::prefix(id)] {
        for key in store.copies_below(&prefix) {
            store.forget_copy(&key);
        }
    }
}

/// Forgets the copies of originals that nothing refers to any more: another process has deleted
/// them.
///
/// # Errors
/// Errors of the catalog; damage.
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

/// The originals to which a visible source, a job or a file refers; `None` where not all sources
/// are known.
///
/// # Errors
/// Errors of the catalog; damage.
pub(crate) fn referred_originals(
    catalog: &Catalog,
    collection: &Collection,
) -> Result<Option<HashSet<String>>, IngestError> {
    // Jobs first: one that leaves the queue meanwhile is in the snapshot that is read after it.
    let mut referred = catalog.raw_keys(collection.id())?;
    let snapshot = collection.snapshot();
    if snapshot.unknown_segments() > 0 {
        return Ok(None);
    }
    let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
    referred.extend(lost.map(|record| record.raw_key.clone()));
    for found in snapshot.all_sources() {
        referred.insert(found.record().map_err(CollectionError::from)?.raw_key);
    }
    Ok(Some(referred))
}

/// Forgets the copies of collections that neither the catalog has nor `others`: another process has
/// deleted them, or a request fetched a blob while its tenant was deleted.
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
        tracing::info!(collection = %id, "copies of a deleted tenant are removed");
        forget(store, id);
    }
    Ok(())
}
