//! Builds a tenant from an archive.
//!
//! ```text
//! descriptor "deleted" -> originals, segments -> one commit -> descriptor -> catalog: visible
//! ```
//! Until the last step nobody can name the collection. While it is being built, its descriptor says
//! that it is deleted: if the import is given up or the process crashes, the next start removes its
//! files.

use std::sync::Arc;

use crate::archive::ArchivedSource;
use crate::ingest::pipeline::title;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_catalog::descriptors::{self, Descriptor};
use lodestone_embed::{Embedder, Lane};
use lodestone_storage::collection::{AddedSegment, Collection, Edit, uploads};
use lodestone_storage::segment::{NewSource, VectorKind};
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{
    CollectionId, RequestContext, Sequence, SourceRecord, SubTenantId, TenantMode, Timestamp,
};

/// Rows per segment, counting a source without rows as one; a source is never split.
const SEGMENT_ROWS: usize = 8192;
/// Bytes of text, vectors and columns under construction per segment.
const SEGMENT_BYTES: usize = 32 << 20;
/// Passages embedded in one call.
const SLICE_PASSAGES: usize = 256;

/// A tenant under construction. Dropping it removes what was written, unless it was finished.
#[derive(Debug)]
pub(crate) struct NewTenant<'a> {
    ingest: &'a Ingest,
    tenant: Tenant,
    collection: Arc<Collection>,
    model: Arc<dyn Embedder>,
    reembeds: bool,
    waiting: Vec<NewSource>,
    waiting_rows: usize,
    waiting_bytes: usize,
    segments: Vec<AddedSegment>,
    is_finished: bool,
}

impl<'a> NewTenant<'a> {
    /// Begins with an empty collection.
    ///
    /// # Errors
    /// Errors of the disk.
    pub(crate) fn begin(
        ingest: &'a Ingest,
        tenant: Tenant,
        model: Arc<dyn Embedder>,
        reembeds: bool,
    ) -> Result<Self, IngestError> {
        let id = tenant.collection;
        ingest.importing.lock().insert(id);
        let began = || {
            let descriptor = Descriptor { tenant: tenant.clone(), is_deleted: true };
            descriptors::write(&*ingest.store, &descriptor)?;
            ingest.registry.get(id, || Ok::<_, IngestError>(None), |_| Ok(()))
        };
        let collection = began().inspect_err(|_| {
            ingest.importing.lock().remove(&id);
        })?;
        Ok(Self {
            ingest,
            tenant,
            collection,
            model,
            reembeds,
            waiting: Vec::new(),
            waiting_rows: 0,
            waiting_bytes: 0,
            segments: Vec::new(),
            is_finished: false,
        })
    }

    /// Adds a source.
    ///
    /// # Errors
    /// Errors of the disk or the model.
    pub(crate) fn add(&mut self, source: ArchivedSource) -> Result<(), IngestError> {
        let ArchivedSource { line, sub_tenant, id, kind, original, rows, column_bytes } = source;
        let mut raw_key = String::new();
        if let (Some(mut label), Some(content)) = (line.upload, original) {
            self.ingest.require_room_for_content()?;
            sub_tenant.as_str().clone_into(&mut label.sub_tenant);
            id.as_str().clone_into(&mut label.source);
            // The file's name holds the time of writing, not that of the first upload.
            label.uploaded_at = self.ingest.clock.now().0;
            label.after = None;
            let (store, ids) = (&*self.ingest.store, &*self.ingest.ids);
            let key = uploads::put(store, ids, self.collection.id(), &label, &content)?;
            key.as_str().clone_into(&mut raw_key);
        }
        let record = SourceRecord {
            sub_tenant,
            id,
            kind,
            title: line.title,
            description: line.description,
            filename: line.filename,
            url: line.url,
            content_type: line.content_type,
            size_bytes: line.size_bytes,
            tenant_metadata: line.tenant_metadata,
            document_metadata: line.document_metadata,
            uploaded_at: Timestamp(line.uploaded_at),
            last_updated_at: Timestamp(line.last_updated_at),
            version: line.version,
            sequence: Sequence(line.sequence),
            raw_key,
            detail: line.detail,
        };
        let mut source = self.with_words(record);
        source.rows = rows;
        if self.reembeds || self.ingest.sparse.is_some() && !self.tenant.mode.is_embeddings() {
            self.embed(&mut source)?;
        }
        let width = source.rows.first().map_or(0, |row| row.vector.len() * size_of::<f32>());
        let text: usize = source.rows.iter().map(|row| row.text.len() + width).sum();
        // A source without rows takes memory too.
        self.waiting_rows += source.rows.len().max(1);
        self.waiting_bytes += text + column_bytes as usize;
        self.waiting.push(source);
        match self.waiting_rows >= SEGMENT_ROWS || self.waiting_bytes >= SEGMENT_BYTES {
            true => self.build(),
            false => Ok(()),
        }
    }

    /// Creates a source without rows, with the words that take part in keyword search.
    fn with_words(&self, record: SourceRecord) -> NewSource {
        if self.tenant.mode.is_embeddings() {
            let (title_text, searchable) = (String::new(), String::new());
            return NewSource { record, title_text, searchable, rows: Vec::new() };
        }
        let named = title(&record.detail, &record.document_metadata, &record.filename, None);
        // A title equal to the id is only the last fallback, not a real title.
        let in_text = (record.title != record.id.as_str()).then(|| record.title.clone());
        let title_text = named.or(in_text).unwrap_or_default();
        let schema = self.tenant.schema.as_ref();
        let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
        let searchable = searchable.unwrap_or_default();
        NewSource { record, title_text, searchable, rows: Vec::new() }
    }

    /// Embeds a source's rows: with the tenant's model if the archive's vectors come from another
    /// one, and with the sparse model, whose vectors archives do not contain.
    fn embed(&self, source: &mut NewSource) -> Result<(), IngestError> {
        let (title, searchable) = (source.title_text.as_str(), source.searchable.as_str());
        let context = RequestContext::default().of_tenant(self.collection.id());
        for slice in source.rows.chunks_mut(SLICE_PASSAGES) {
            let passage_of = |row: &lodestone_storage::segment::NewRow| {
                passage(Surroundings { title, searchable, context: &row.context }, &row.text)
            };
            let texts: Vec<String> = slice.iter().map(passage_of).collect();
            let sparse = self.ingest.sparse_rows(Lane::Bulk, &context, &texts)?;
            slice.iter_mut().zip(sparse).for_each(|(row, sparse)| row.sparse = sparse);
            if !self.reembeds {
                continue;
            }
            let vectors = self.model.embed_within(Lane::Bulk, &context, texts)?;
            for (row, vector) in slice.iter_mut().zip(vectors) {
                row.vector = vector;
            }
        }
        Ok(())
    }

    /// Writes the waiting sources to a segment, which nothing refers to yet.
    fn build(&mut self) -> Result<(), IngestError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.ingest.require_room_for_content()?;
        let (dimension, kind) = match self.tenant.mode {
            TenantMode::Standard => (self.model.dimension(), VectorKind::F16),
            TenantMode::Embeddings(_) => {
                (self.tenant.dimension.unwrap_or(1) as usize, VectorKind::F32)
            }
        };
        let sources = std::mem::take(&mut self.waiting);
        let segment = self.collection.build(dimension, kind, &sources)?;
        self.segments.push(AddedSegment { segment, withheld: Vec::new() });
        (self.waiting_rows, self.waiting_bytes) = (0, 0);
        Ok(())
    }

    /// Makes the tenant visible. If it replaces the empty tenant with the collection `replaces`, it
    /// takes over the limits of that one.
    ///
    /// # Errors
    /// Errors of the disk or the catalog; another tenant of that name was created in the meantime.
    pub(crate) fn finish(
        mut self,
        sub_tenants: Vec<SubTenantId>,
        replaces: Option<CollectionId>,
    ) -> Result<(), IngestError> {
        self.build()?;
        let (ingest, collection) = (self.ingest, Arc::clone(&self.collection));
        let add = std::mem::take(&mut self.segments);
        if !add.is_empty() {
            let is_standard = self.tenant.mode == TenantMode::Standard;
            let embedding = is_standard.then(|| self.model.fingerprint().to_owned());
            let edit = Edit { add, embedding, ..Edit::default() };
            collection.writer()?.commit(&edit)?;
        }
        let changing = ingest.hold_tenants();
        if let Some(old) = replaces
            && let Some(old) = ingest.catalog.tenant_of(old)?
        {
            self.tenant.limits = old.limits;
        }
        let descriptor = Descriptor { tenant: self.tenant.clone(), is_deleted: false };
        descriptors::write(&*ingest.store, &descriptor)?;
        let head = collection.head();
        ingest.catalog.insert_built(self.tenant.clone(), head, sub_tenants, replaces)?;
        self.is_finished = true;
        if let Some(old) = replaces
            && let Err(error) = descriptors::mark_deleted(&*ingest.store, old)
        {
            tracing::warn!(collection = %old, %error, "the descriptor of a replaced tenant could \
                not be marked as deleted");
        }
        drop(changing);
        if replaces.is_some() {
            ingest.clear_deleted_tenants();
        }
        // Otherwise they would only count after the next sweep, up to an hour later.
        if let Err(error) = ingest.know_sources(&self.tenant.id, &collection) {
            tracing::warn!(collection = %collection.id(), %error, "counting imported sources \
                failed: they are counted later");
        }
        ingest.maintenance.wake_opened(&collection);
        ingest.look_after(&collection);
        Ok(())
    }
}

impl Drop for NewTenant<'_> {
    fn drop(&mut self) {
        let id = self.tenant.collection;
        let is_of_catalog = || !matches!(self.ingest.catalog.tenant_of(id), Ok(None));
        // After an error in the very last step, the tenant may or may not be in the catalog.
        if !self.is_finished && !is_of_catalog() {
            self.ingest.registry.close(id);
            let remove = || -> Result<(), IngestError> {
                descriptors::mark_deleted(&*self.ingest.store, id)?;
                self.ingest.delete_files(id)?;
                Ok(descriptors::remove(&*self.ingest.store, id)?)
            };
            if let Err(error) = remove() {
                tracing::warn!(collection = %id, %error, "removing the files of an aborted import \
                    failed: they remain until the next start");
            }
        }
        self.ingest.importing.lock().remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::SourceLine;
    use crate::tests::Rig;
    use lodestone_types::{Metadata, SourceDetail, SourceId, SourceKind, TenantId};

    /// Goal: the data waiting to be written are limited by the number of sources and by their
    /// metadata.
    #[test]
    fn segments_are_cut_by_sources_and_by_metadata() {
        let rig = Rig::new();
        let ingest = &rig.engine.ingest;
        let id = TenantId::parse("imported").unwrap();
        let tenant = ingest.catalog.fresh_tenant(id, TenantMode::Standard, None);
        let model = Arc::clone(ingest.models.chosen(None).unwrap());
        let mut building = NewTenant::begin(ingest, tenant, model, false).unwrap();
        let mut add = |number: usize, column_bytes: u64| {
            let line = SourceLine {
                sub_tenant_id: "default".to_owned(),
                file_id: number.to_string(),
                kind: "text".to_owned(),
                title: String::new(),
                description: String::new(),
                filename: String::new(),
                url: String::new(),
                content_type: String::new(),
                size_bytes: 0,
                tenant_metadata: Metadata::new(),
                document_metadata: Metadata::new(),
                uploaded_at: 0,
                last_updated_at: 0,
                version: 1,
                sequence: number as u64 + 1,
                detail: SourceDetail::default(),
                upload: None,
                original_bytes: 0,
                chunks: 0,
            };
            let source = ArchivedSource {
                id: SourceId::parse(&line.file_id).unwrap(),
                sub_tenant: SubTenantId::default_name(),
                kind: SourceKind::Text,
                original: None,
                rows: Vec::new(),
                column_bytes,
                line,
            };
            building.add(source).unwrap();
            (building.segments.len(), building.waiting.len())
        };
        let last = (0..=SEGMENT_ROWS).map(|number| add(number, 0)).last();
        assert_eq!(last, Some((1, 1)));
        let most = SEGMENT_BYTES as u64 - 1;
        assert_eq!(add(SEGMENT_ROWS + 1, most), (1, 2));
        assert_eq!(add(SEGMENT_ROWS + 2, 1), (2, 0));
    }
}
