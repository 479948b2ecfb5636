//! Accepts uploads: once a call returns, the bytes and the job are on disk.
//!
//! An acknowledgement costs two fsyncs for the original, and one for the job, which is shared by
//! all jobs waiting for the catalog's writer.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::ingest::{Ingest, IngestError, app};
use lodestone_catalog::job::{ClaimedJob, MetadataChange, NewJob};
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_io::store::Key;
use lodestone_storage::collection::Collection;
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_types::{
    Metadata, Origin, Sequence, SourceId, SourceKind, SourceRecord, SubTenantId, Timestamp,
    metadata,
};

/// An upload of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// The requested id; `None` generates one.
    pub source: Option<SourceId>,
    /// The kind of the source.
    pub kind: SourceKind,
    /// The content.
    pub content: Bytes,
    /// The file name without directories; empty for text.
    pub filename: String,
    /// The media type stated by the client.
    pub content_type: Option<String>,
    /// Change of the tenant-defined metadata.
    pub tenant_metadata: MetadataChange,
    /// Change of the document's metadata.
    pub document_metadata: MetadataChange,
    /// The origin of the source.
    pub origin: Origin,
}

/// An accepted upload, which survives a crash and a power cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Id of the source.
    pub source: SourceId,
    /// Id of the job.
    pub job_id: String,
    /// The version that will become visible.
    pub version: u32,
    /// Whether an accepted upload with this id existed already.
    pub overwritten: bool,
}

impl Ingest {
    /// Rejects an upload that no tenant could process.
    ///
    /// # Errors
    /// An unsupported or empty file, a record without text, a metadata map beyond a limit.
    pub fn check_content(&self, submission: &Submission) -> Result<(), IngestError> {
        if submission.kind == SourceKind::File {
            let media_type = submission.content_type.as_deref();
            lodestone_extract::detect(&submission.filename, media_type, &submission.content)?;
        }
        if submission.kind == SourceKind::App {
            app::parts(&submission.content)?;
        }
        check_maps(replaced(&submission.tenant_metadata), replaced(&submission.document_metadata))
    }

    /// Rejects an upload that cannot be processed, before anything is stored.
    ///
    /// # Errors
    /// See [`Self::check_content`]; a value that violates the schema.
    pub fn check(&self, tenant: &Tenant, submission: &Submission) -> Result<(), IngestError> {
        self.check_content(submission)?;
        check_schema(tenant, replaced(&submission.tenant_metadata))
    }

    /// Stores the original and the job. Durable on return; processed in the background.
    ///
    /// # Errors
    /// See [`Self::check`]; [`IngestError::ModelMismatch`]; a full queue;
    /// [`IngestError::DiskFull`]; errors of the disk. Nothing is stored then.
    /// [`IngestError::OutcomeUnknown`] if it may have been stored.
    pub fn submit(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        submission: Submission,
    ) -> Result<Accepted, IngestError> {
        self.require_room_for_content()?;
        self.check(tenant, &submission)?;
        self.model_of(tenant, collection)?;
        // Such an upload could not be processed before an operator repairs the tenant.
        collection.require_known()?;
        let (source, bytes) = (submission.source.as_ref(), submission.content.len() as u64);
        self.catalog.require_allowed(collection.id(), sub_tenant, source, bytes)?;
        self.require_room_for_a_vector(tenant, collection, sub_tenant, source)?;
        let job = self.store_original(collection, sub_tenant, submission, self.clock.now())?;
        self.accept(collection, job)
    }

    /// Stores the original of a job that is not accepted yet.
    pub(super) fn store_original(
        &self,
        collection: &Collection,
        sub_tenant: &SubTenantId,
        submission: Submission,
        uploaded_at: Timestamp,
    ) -> Result<NewJob, IngestError> {
        let now = self.clock.now();
        let source = match &submission.source {
            Some(source) => source.clone(),
            None => SourceId::parse(&self.ids.wire_id("doc_", now)).expect("generated ids parse"),
        };
        let stored = collection.snapshot().record(sub_tenant, &source)?;
        let known_version = stored.map(|record| record.version);
        let content_type = submission.content_type.clone().unwrap_or_default();
        let label = UploadLabel {
            sub_tenant: sub_tenant.as_str().to_owned(),
            source: source.as_str().to_owned(),
            kind: submission.kind.as_str().to_owned(),
            filename: submission.filename.clone(),
            content_type: content_type.clone(),
            uploaded_at: now.0,
            tenant_metadata: replaced(&submission.tenant_metadata).cloned(),
            document_metadata: replaced(&submission.document_metadata).cloned(),
            origin: submission.origin.clone(),
            after: Some(self.catalog.newest_sequence()?.0),
        };
        // A page that has yet to be fetched has an empty original, because its label is needed to
        // rebuild a lost catalog.
        let raw_key =
            uploads::put(&*self.store, &*self.ids, collection.id(), &label, &submission.content)?;
        Ok(NewJob {
            collection: collection.id(),
            sub_tenant: sub_tenant.clone(),
            source,
            kind: submission.kind,
            raw_key: raw_key.as_str().to_owned(),
            filename: submission.filename,
            url: submission.origin.url,
            content_type,
            size_bytes: submission.content.len() as u64,
            content_hash: Sha256::digest(&submission.content).into(),
            tenant_metadata: submission.tenant_metadata,
            document_metadata: submission.document_metadata,
            known_version,
            uploaded_at,
            origin_at: submission.origin.changed_at,
            detail: submission.origin.detail,
        })
    }

    /// Accepts a job whose original is stored. If it is refused, the original is deleted.
    fn accept(&self, collection: &Collection, job: NewJob) -> Result<Accepted, IngestError> {
        let submitted = self.catalog.submit(job.clone());
        let submitted = submitted.map_err(|error| self.refused(&job, error))?;
        self.delete_superseded(collection, &job, &submitted.obsolete_raw_keys);
        let (source, job_id, version) = (job.source, submitted.job_id, submitted.version);
        Ok(Accepted { source, job_id, version, overwritten: submitted.overwritten })
    }

    /// Accepts a job that processes a visible version once more, unless the source was changed
    /// since its newest acceptance was `seen`; returns whether it was accepted. The original is
    /// deleted only after an error.
    pub(super) fn accept_again(
        &self,
        job: &NewJob,
        seen: Option<Sequence>,
    ) -> Result<bool, IngestError> {
        let submitted = self.catalog.submit_again(job.clone(), seen);
        Ok(submitted.map_err(|error| self.refused(job, error))?.is_some())
    }

    /// Deletes the original of a job that the catalog has refused.
    fn refused(&self, job: &NewJob, error: CatalogError) -> IngestError {
        match error {
            // The job may be durable, and then it needs its original.
            CatalogError::InDoubt { .. } => IngestError::from(error).about(&job.source),
            error => {
                self.delete_originals(std::slice::from_ref(&job.raw_key));
                error.into()
            }
        }
    }

    /// Deletes the originals of uploads that a job supersedes, except that of the visible version:
    /// an upload whose end could not be recorded after its commit waits although it is visible. Its
    /// original is deleted when it is replaced. Others that are left are found by the next sweep.
    /// Deleted originals no longer count against the limits of the tenant.
    fn delete_superseded(&self, collection: &Collection, job: &NewJob, raw_keys: &[String]) {
        if raw_keys.is_empty() || !collection.knows_head() {
            return;
        }
        let visible = collection.snapshot().record(&job.sub_tenant, &job.source);
        let Ok(visible) = visible else { return };
        let visible_key = visible.as_ref().map(|record| &record.raw_key);
        let is_unused = |key: &&String| Some(*key) != visible_key;
        let unused: Vec<String> = raw_keys.iter().filter(is_unused).cloned().collect();
        self.delete_originals(&unused);
        self.recount(collection, &job.sub_tenant, &job.source, visible.as_ref());
    }

    /// Deletes originals that the end of `jobs` released, except those of visible versions: a job
    /// whose end could not be recorded after its commit runs again, and if its metadata is changed
    /// meanwhile, it gives way to a newer upload although its version is still visible.
    pub(super) fn delete_released(
        &self,
        collection: &Collection,
        jobs: &[ClaimedJob],
        mut raw_keys: Vec<String>,
    ) {
        if raw_keys.is_empty() {
            return;
        }
        let snapshot = collection.snapshot();
        for job in jobs {
            // What stays because of damage is found by the next sweep.
            let Ok(visible) = snapshot.record(&job.sub_tenant, &job.source) else { return };
            let Some(visible) = visible else { continue };
            raw_keys.retain(|key| *key != visible.raw_key);
        }
        self.delete_originals(&raw_keys);
    }

    /// Stops counting originals of a source that were released. After an error they count until an
    /// upload of the source becomes visible.
    pub(super) fn recount(
        &self,
        collection: &Collection,
        sub_tenant: &SubTenantId,
        source: &SourceId,
        visible: Option<&SourceRecord>,
    ) {
        let visible = visible.map_or(0, |record| record.size_bytes);
        if let Err(error) = self.catalog.recount(collection.id(), sub_tenant, source, visible) {
            tracing::warn!(%source, %error, "an original that was released still counts");
        }
    }

    /// Deletes originals that nothing refers to. A failure costs disk space until the next sweep.
    pub(super) fn delete_originals(&self, raw_keys: &[String]) {
        for raw_key in raw_keys.iter().filter(|key| !key.is_empty()) {
            let Ok(key) = Key::parse(raw_key) else { continue };
            if let Err(error) = self.store.delete(&key) {
                tracing::warn!(%error, "deleting an unused original failed");
            }
        }
    }
}

pub(super) fn replaced(change: &MetadataChange) -> Option<&Metadata> {
    match change {
        MetadataChange::Keep => None,
        MetadataChange::Replace(map) => Some(map),
    }
}

/// Checks maps against their limits and the tenant's schema.
///
/// # Errors
/// [`IngestError::Metadata`] or [`IngestError::Schema`].
pub(super) fn check_metadata(
    tenant: &Tenant,
    tenant_metadata: Option<&Metadata>,
    document_metadata: Option<&Metadata>,
) -> Result<(), IngestError> {
    check_maps(tenant_metadata, document_metadata)?;
    check_schema(tenant, tenant_metadata)
}

fn check_maps(
    tenant_metadata: Option<&Metadata>,
    document_metadata: Option<&Metadata>,
) -> Result<(), IngestError> {
    let maps = [("tenant_metadata", tenant_metadata), ("document_metadata", document_metadata)];
    for (field, map) in maps {
        let Some(map) = map else { continue };
        metadata::check(map).map_err(|problem| IngestError::Metadata { field, problem })?;
    }
    Ok(())
}

fn check_schema(tenant: &Tenant, map: Option<&Metadata>) -> Result<(), IngestError> {
    match (&tenant.schema, map) {
        (Some(schema), Some(map)) => Ok(schema.check_values(map)?),
        _ => Ok(()),
    }
}
