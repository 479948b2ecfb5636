//! Changes a source's metadata without processing the source again.
//!
//! The source's rows are copied, vectors included, into a small segment with the new record.
//! Waiting jobs of the same source are amended too, because the change came after they were
//! accepted. If such a job fails, `failure` makes the changed words of the visible version
//! searchable.

use std::sync::Arc;

use crate::ingest::submit::check_metadata;
use crate::ingest::{Ingest, IngestError, Submission, pipeline};
use lodestone_catalog::Tenant;
use lodestone_catalog::job::{MetadataChange, NewJob};
use lodestone_io::store::Key;
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, uploads};
use lodestone_types::{Metadata, Origin, SourceId, SourceRecord, SubTenantId};

/// Maximum attempts at one change. Every attempt after the second means that the same source was
/// uploaded or published again in between.
const ROUNDS_MAX: usize = 16;

/// New metadata maps; `None` keeps the stored map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amendment {
    /// The tenant-defined metadata.
    pub tenant_metadata: Option<Metadata>,
    /// The metadata of the document.
    pub document_metadata: Option<Metadata>,
}

impl Ingest {
    /// Replaces metadata maps. Filters and listings use the new ones once this returns. If words
    /// that searches use have changed, the original is first accepted for processing once more,
    /// with the new maps, and only then are the maps made visible: after an error in between, the
    /// job applies the whole change, and nothing else does.
    ///
    /// # Errors
    /// [`IngestError::SourceUnknown`]; maps that violate limits or the schema; a full queue; errors
    /// of the disk.
    pub fn amend(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        amendment: Amendment,
    ) -> Result<(), IngestError> {
        let Amendment { tenant_metadata, document_metadata } = &amendment;
        check_metadata(tenant, tenant_metadata.as_ref(), document_metadata.as_ref())?;
        self.require_room_for_changes()?;
        let mut again: Option<(SourceRecord, NewJob)> = None;
        for _ in 0..ROUNDS_MAX {
            let mut writer = collection.writer()?;
            let snapshot = writer.base();
            snapshot.require_readable(sub_tenant, source)?;
            let visible = snapshot.find(sub_tenant, source);
            let before = visible.map(|found| found.record()).transpose();
            let before = before.map_err(CollectionError::from)?;
            let has_new_words = |before: &SourceRecord| {
                words(tenant, before) != words(tenant, &amended(before, &amendment))
            };
            if before.as_ref().is_some_and(has_new_words) {
                self.model_of(tenant, collection)?;
            }
            let reached = self.catalog.amend(
                collection.id(),
                sub_tenant,
                source,
                tenant_metadata.as_ref(),
                document_metadata.as_ref(),
            );
            let reached = reached.map_err(|error| IngestError::from(error).about(source))?;
            let Some((found, before)) = visible.zip(before) else {
                drop(writer);
                self.drop_unused(again);
                return match reached.waits || reached.is_errored {
                    true => Ok(()),
                    false => Err(IngestError::SourceUnknown { source_id: source.clone() }),
                };
            };
            let after = amended(&before, &amendment);
            if !reached.waits && words(tenant, &before) != words(tenant, &after) {
                match again.take() {
                    Some((record, job)) if record == after => {
                        if !self.accept_again(&job, reached.newest)? {
                            // Uploads do not wait for the writer: one was accepted since the
                            // catalog was amended, and must get the new maps too.
                            again = Some((record, job));
                            continue;
                        }
                    }
                    outdated => {
                        // Storing a large original takes time, so it is not done under the writer's
                        // lock.
                        drop(writer);
                        self.drop_unused(outdated);
                        let job = self.stored_again(collection, &after)?;
                        again = Some((after, job));
                        continue;
                    }
                }
            }
            let segment = collection.build_amended(&found, after)?;
            let add = vec![AddedSegment { segment, withheld: Vec::new() }];
            let committed = writer.commit(&Edit { add, ..Edit::default() });
            committed.map_err(|error| IngestError::from(error).about(source))?;
            self.record_head(collection)?;
            drop(writer);
            self.drop_unused(again);
            self.maintenance.wake(collection);
            return Ok(());
        }
        self.drop_unused(again);
        let (collection, look_ups) = (collection.id(), ROUNDS_MAX);
        Err(CollectionError::Unsettled { collection, look_ups }.into())
    }

    /// Stores the original of a visible source once more, for a job that keeps the time of its
    /// first upload. The file is memory-mapped, so that it takes no memory of the process, however
    /// large it is.
    fn stored_again(
        &self,
        collection: &Collection,
        record: &SourceRecord,
    ) -> Result<NewJob, IngestError> {
        let raw_key = &record.raw_key;
        let damaged = || {
            let problem = "it cannot be read completely".to_owned();
            IngestError::from(CollectionError::BadUpload { key: raw_key.clone(), problem })
        };
        let stored = uploads::open_verified(&*self.store, raw_key)?;
        let key = Key::parse(raw_key).expect("it was opened by this name");
        let file = self.store.map(&key).map_err(CollectionError::from)?;
        let content_at = file.len().checked_sub(stored.content().len() as usize);
        let content = file.bytes(content_at.ok_or_else(damaged)?..file.len());
        let (url, detail) = (record.url.clone(), record.detail.clone());
        let submission = Submission {
            source: Some(record.id.clone()),
            kind: record.kind,
            content,
            filename: record.filename.clone(),
            content_type: Some(record.content_type.clone()),
            tenant_metadata: MetadataChange::Replace(record.tenant_metadata.clone()),
            document_metadata: MetadataChange::Replace(record.document_metadata.clone()),
            origin: Origin { url, detail, ..stored.label.origin },
        };
        let job =
            self.store_original(collection, &record.sub_tenant, submission, record.uploaded_at)?;
        if file.has_faulted() || !file.is_whole() {
            // Pages that could not be read were copied as zeros.
            self.delete_originals(&[job.raw_key]);
            return Err(damaged());
        }
        Ok(job)
    }

    fn drop_unused(&self, stored: Option<(SourceRecord, NewJob)>) {
        if let Some((_, job)) = stored {
            self.delete_originals(&[job.raw_key]);
        }
    }
}

fn amended(before: &SourceRecord, amendment: &Amendment) -> SourceRecord {
    let mut after = before.clone();
    if let Some(map) = &amendment.tenant_metadata {
        after.tenant_metadata = map.clone();
    }
    if let Some(map) = &amendment.document_metadata {
        after.document_metadata = map.clone();
        if before.document_metadata.get("title") != map.get("title") {
            let named = pipeline::title(&before.detail, map, &before.filename, None);
            after.title = named.unwrap_or_else(|| before.id.as_str().to_owned());
        }
    }
    after
}

/// The metadata text that searches read: the title and the searchable values.
fn words(tenant: &Tenant, record: &SourceRecord) -> (String, String) {
    let schema = tenant.schema.as_ref();
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    (record.title.clone(), searchable.unwrap_or_default())
}
