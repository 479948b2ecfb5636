//! Recreates the jobs and files of a rebuilt catalog: uploads that were accepted and have no rows
//! yet, and files, which never have any.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::EngineError;
use crate::ingest::FILE_WORD;
use lodestone_catalog::job::{MetadataChange, NewJob};
use lodestone_catalog::{Catalog, StoredFile};
use lodestone_io::store::BlobStore;
use lodestone_storage::collection::uploads::{self, Upload};
use lodestone_storage::collection::{CollectionError, Snapshot};
use lodestone_types::{
    CollectionId, Metadata, Sequence, SourceId, SourceKind, SubTenantId, Timestamp,
};

/// The sub-tenants and sources of a collection.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) sub_tenants: BTreeSet<SubTenantId>,
    pub(super) sources: BTreeMap<(SubTenantId, SourceId), Visible>,
}

/// The stored version of a source.
#[derive(Debug)]
pub(super) struct Visible {
    version: u32,
    sequence: Sequence,
    raw_key: String,
}

impl Visible {
    /// Whether this version is that of the original `key`, or a later one. Originals of older
    /// releases carry no sequence, so only the upload time in their names can be compared.
    fn is_as_new_as(&self, key: &str, after: Option<u64>) -> bool {
        match after {
            Some(after) => after < self.sequence.0 || self.raw_key == key,
            None => self.raw_key.as_str() >= key,
        }
    }
}

impl Contents {
    pub(super) fn of(snapshot: &Snapshot) -> Result<Self, EngineError> {
        let mut contents = Self::default();
        let visible = snapshot.all_sources().map(|found| found.record());
        let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
        for record in visible.chain(lost.cloned().map(Ok)) {
            let record = record.map_err(CollectionError::from)?;
            contents.sub_tenants.insert(record.sub_tenant.named());
            let key = (record.sub_tenant, record.id);
            let (version, sequence) = (record.version, record.sequence);
            let raw_key = record.raw_key;
            contents.sources.insert(key, Visible { version, sequence, raw_key });
        }
        Ok(contents)
    }
}

/// Queues the uploads that were accepted and have no rows yet: for each source its newest original,
/// if that is newer than the visible version. Older originals were replaced. Files are added as
/// they are. Returns the number of queued jobs.
pub(super) fn resubmit(
    catalog: &Catalog,
    store: &dyn BlobStore,
    collection: CollectionId,
    sources: &BTreeMap<(SubTenantId, SourceId), Visible>,
) -> Result<usize, EngineError> {
    type Order = (Option<u64>, String);
    let mut newest: BTreeMap<(SubTenantId, SourceId), (Order, NewJob)> = BTreeMap::new();
    for key in store.list(&uploads::prefix(collection))? {
        let upload = match uploads::get(store, key.as_str()) {
            Ok(upload) => upload,
            Err(error) => {
                tracing::error!(%collection, %error, "an original was skipped");
                continue;
            }
        };
        if upload.label.kind == FILE_WORD {
            if let Some(file) = file_of(&upload, key.as_str()) {
                catalog.add_file(collection, file)?;
            }
            continue;
        }
        let label = upload.label;
        let names = (SubTenantId::parse(&label.sub_tenant), SourceId::parse(&label.source));
        let (Ok(sub_tenant), Ok(source)) = names else { continue };
        let Some(kind) = SourceKind::from_word(&label.kind) else { continue };
        // A memory without rows was never acknowledged, or has been deleted.
        if kind == SourceKind::Memory {
            continue;
        }
        let place = (sub_tenant.clone(), source.clone());
        let visible = sources.get(&place);
        // Keys of one collection sort by upload time.
        let order = (label.after, key.as_str().to_owned());
        let is_replaced = visible.is_some_and(|it| it.is_as_new_as(key.as_str(), label.after))
            || newest.get(&place).is_some_and(|(other, _)| *other > order);
        if is_replaced {
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
            known_version: visible.map(|visible| visible.version),
            uploaded_at: Timestamp(label.uploaded_at),
            origin_at: label.origin.changed_at,
            detail: label.origin.detail,
        };
        newest.insert(place, (order, job));
    }
    let mut jobs: Vec<(Order, NewJob)> = newest.into_values().collect();
    jobs.sort_by(|(a, _), (b, _)| a.cmp(b));
    let count = jobs.len();
    for (_, job) in jobs {
        catalog.submit(job)?;
    }
    Ok(count)
}

/// The catalog's record of a stored file, made from its original.
fn file_of(upload: &Upload, raw_key: &str) -> Option<StoredFile> {
    let label = &upload.label;
    Some(StoredFile {
        id: SourceId::parse(&label.source).ok()?,
        sub_tenant: SubTenantId::parse(&label.sub_tenant).ok()?,
        purpose: label.origin.detail.note.clone(),
        filename: label.filename.clone(),
        content_type: label.content_type.clone(),
        size_bytes: upload.content.len() as u64,
        created_at: Timestamp(label.uploaded_at),
        raw_key: raw_key.to_owned(),
    })
}
