//! Changing a source's metadata without processing it again.
//!
//! The source's rows are copied, vectors and all, into a small segment with the new record. Waiting
//! jobs of the same source are amended too: the change came after they were accepted.
//! If that job fails, `failure` makes the changed words of the visible version searchable.

use std::sync::Arc;

use crate::ingest::submit::check_metadata;
use crate::ingest::{Ingest, IngestError, Submission, pipeline};
use lodestone_catalog::Tenant;
use lodestone_catalog::job::MetadataChange;
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, uploads};
use lodestone_types::{Metadata, Origin, SourceId, SourceRecord, SubTenantId};

/// New maps; `None` keeps what is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Amendment {
    /// The tenant's map.
    pub tenant_metadata: Option<Metadata>,
    /// The document's map.
    pub document_metadata: Option<Metadata>,
}

impl Ingest {
    /// Replaces metadata maps. Filters and listings use them when this returns. Where words that
    /// searches use have changed, the original is accepted for processing once more.
    ///
    /// # Errors
    /// [`IngestError::SourceUnknown`]; maps against limits or schema; what the disk says.
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
        let mut writer = collection.writer()?;
        let snapshot = writer.base();
        snapshot.require_readable(sub_tenant, source)?;
        let mut reprocess = None;
        let is_visible = match snapshot.find(sub_tenant, source) {
            None => false,
            Some(found) => {
                let before = found.record().map_err(CollectionError::from)?;
                let after = amended(&before, &amendment);
                if words(tenant, &before) != words(tenant, &after) {
                    reprocess = Some(after.clone());
                }
                let segment = collection.build_amended(&found, after)?;
                let add = vec![AddedSegment { segment, withheld: Vec::new() }];
                writer.commit(&Edit { add, ..Edit::default() })?;
                true
            }
        };
        let reached = self.catalog.amend(
            collection.id(),
            sub_tenant,
            source,
            tenant_metadata.as_ref(),
            document_metadata.as_ref(),
        )?;
        self.record_head(collection)?;
        drop(writer);
        self.maintenance.wake(collection);
        if !is_visible && !reached.waits && !reached.is_errored {
            return Err(IngestError::SourceUnknown { source_id: source.clone() });
        }
        match reprocess {
            Some(record) if !reached.waits => self.resubmit(tenant, collection, &record),
            _ => Ok(()),
        }
    }
}

impl Ingest {
    /// Accepts the original of a visible source once more, as of when it was first accepted.
    fn resubmit(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        record: &SourceRecord,
    ) -> Result<(), IngestError> {
        let upload = uploads::get(&*self.store, &record.raw_key)?;
        let (url, detail) = (record.url.clone(), record.detail.clone());
        let submission = Submission {
            source: Some(record.id.clone()),
            kind: record.kind,
            content: upload.content.into(),
            filename: record.filename.clone(),
            content_type: Some(record.content_type.clone()),
            tenant_metadata: MetadataChange::Keep,
            document_metadata: MetadataChange::Keep,
            origin: Origin { url, detail, ..upload.label.origin },
        };
        let at = record.uploaded_at;
        self.submit_at(tenant, collection, &record.sub_tenant, submission, at)?;
        Ok(())
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

/// The metadata that searches by words and meaning read: title and searchable values.
fn words(tenant: &Tenant, record: &SourceRecord) -> (String, String) {
    let schema = tenant.schema.as_ref();
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    (record.title.clone(), searchable.unwrap_or_default())
}
