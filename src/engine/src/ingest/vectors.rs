//! Batches of client vectors: searchable when the call returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_graph::RowGraph;
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, Writer};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, Metadata, RowId, SourceDetail, SourceId, SourceKind, SourceRecord, SubTenantId,
};

/// A stored batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedVectors {
    /// The batch's id.
    pub batch: SourceId,
    /// Rows of the batch.
    pub rows: usize,
    /// Whether a batch of this id existed.
    pub overwritten: bool,
}

impl Ingest {
    /// Stores a batch, replacing one of the same id as a whole. All vectors must be of one width,
    /// finite, and not empty: the caller has checked that.
    ///
    /// # Errors
    /// [`IngestError::DimensionMismatch`] where the tenant's width is another; a limit of the
    /// tenant; what the disk says.
    pub fn upload_vectors(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        batch: Option<SourceId>,
        vectors: Vec<Vec<f32>>,
    ) -> Result<AcceptedVectors, IngestError> {
        self.require_room_for_content()?;
        let dimension = self.fixed_dimension(tenant, &vectors[0])?;
        let now = self.clock.now();
        let batch = match batch {
            Some(batch) => batch,
            None => SourceId::parse(&self.ids.wire_id("emb_", now)).expect("generated ids parse"),
        };
        let writer = collection.writer()?;
        let snapshot = writer.base();
        let older = snapshot.record(sub_tenant, &batch)?;
        let rows = vectors.into_iter().enumerate().map(|(index, vector)| new_row(index, vector));
        let rows: Vec<NewRow> = rows.collect();
        let size_bytes = (rows.len() * dimension * size_of::<f32>()) as u64;
        let id = collection.id();
        let sequence = self.catalog.reserve_batch(id, sub_tenant, &batch, size_bytes)?;
        let record = SourceRecord {
            sub_tenant: sub_tenant.clone(),
            id: batch.clone(),
            kind: SourceKind::Embeddings,
            title: batch.as_str().to_owned(),
            description: String::new(),
            filename: String::new(),
            url: String::new(),
            content_type: String::new(),
            size_bytes,
            tenant_metadata: Metadata::new(),
            document_metadata: Metadata::new(),
            uploaded_at: now,
            last_updated_at: now,
            version: older.as_ref().map_or(1, |older| older.version + 1),
            sequence,
            raw_key: String::new(),
            detail: SourceDetail::default(),
        };
        let accepted = AcceptedVectors { batch, rows: rows.len(), overwritten: older.is_some() };
        self.publish_batch(collection, writer, dimension, record, rows)
            .map_err(|error| error.about(&accepted.batch))?;
        Ok(accepted)
    }

    fn fixed_dimension(&self, tenant: &Tenant, first: &[f32]) -> Result<usize, IngestError> {
        let expected = self.catalog.fix_dimension(tenant.collection, first.len() as u32)? as usize;
        let received = first.len();
        match expected == received {
            true => Ok(expected),
            false => Err(IngestError::DimensionMismatch { expected, received }),
        }
    }

    /// Replaces single vectors of one batch, all or none.
    ///
    /// # Errors
    /// [`IngestError::ChunksUnknown`] lists the ids that do not exist;
    /// [`IngestError::DimensionMismatch`]; what the disk says.
    pub fn update_vectors(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        batch: &SourceId,
        vectors: &BTreeMap<u32, Vec<f32>>,
    ) -> Result<(), IngestError> {
        self.require_room_for_changes()?;
        let writer = collection.writer()?;
        let snapshot = writer.base();
        snapshot.require_readable(sub_tenant, batch)?;
        let unknown = |index: &u32| format!("{batch}_{index}");
        let Some(found) = snapshot.find(sub_tenant, batch) else {
            let missing = vectors.keys().map(unknown).collect();
            return Err(IngestError::ChunksUnknown { missing });
        };
        let segment = &found.live.segment;
        let mut rows = Vec::new();
        for row in found.rows() {
            let index = segment.index(RowId(row));
            let vector = match vectors.get(&index) {
                Some(vector) => vector.clone(),
                None => segment.original_vector(RowId(row)).map_err(CollectionError::from)?,
            };
            rows.push(new_row(index as usize, vector));
        }
        let is_missing = |index: &&u32| !rows.iter().any(|row| row.index == **index);
        let missing: Vec<String> = vectors.keys().filter(is_missing).map(unknown).collect();
        if !missing.is_empty() {
            return Err(IngestError::ChunksUnknown { missing });
        }
        let expected = segment.dimension();
        if let Some(other) = vectors.values().find(|vector| vector.len() != expected) {
            return Err(IngestError::DimensionMismatch { expected, received: other.len() });
        }
        let now = self.clock.now();
        let record = found.record().map_err(CollectionError::from)?;
        let sequence = self.catalog.reserve_sequence(collection.id(), sub_tenant, batch)?;
        let version = record.version + 1;
        let record = SourceRecord { version, sequence, last_updated_at: now, ..record };
        self.publish_batch(collection, writer, expected, record, rows)
            .map_err(|error| error.about(batch))
    }

    /// Makes the rows of a batch visible.
    fn publish_batch(
        &self,
        collection: &Arc<Collection>,
        mut writer: Writer<'_>,
        dimension: usize,
        record: SourceRecord,
        rows: Vec<NewRow>,
    ) -> Result<(), IngestError> {
        let (title_text, searchable) = (String::new(), String::new());
        let source = NewSource { record, title_text, searchable, rows };
        let segment = collection.build(dimension, VectorKind::F32, &[source])?;
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        writer.commit(&Edit { add, ..Edit::default() })?;
        self.record_head(collection);
        drop(writer);
        self.look_after(collection);
        Ok(())
    }

    /// Deletes single vectors in one step. Returns, in the order of the request, which existed.
    ///
    /// # Errors
    /// Errors of the disk or the catalog.
    pub fn delete_vectors(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        chunks: &[(SourceId, u32)],
    ) -> Result<Vec<bool>, IngestError> {
        self.gauge.make_room();
        let mut by_batch: BTreeMap<&SourceId, Vec<u32>> = BTreeMap::new();
        for (batch, index) in chunks {
            by_batch.entry(batch).or_default().push(*index);
        }
        let remove_chunks = by_batch
            .iter()
            .map(|(batch, indices)| (sub_tenant.clone(), (*batch).clone(), indices.clone()))
            .collect();
        let mut writer = collection.writer()?;
        let exists = |snapshot: &lodestone_storage::collection::Snapshot,
                      (batch, index): &(SourceId, u32)| {
            snapshot.find(sub_tenant, batch).is_some_and(|found| {
                let segment = &found.live.segment;
                found.rows().iter().any(|row| segment.index(RowId(*row)) == *index)
            })
        };
        let base = writer.base();
        for (batch, _) in chunks {
            base.require_readable(sub_tenant, batch)?;
        }
        if !chunks.iter().any(|chunk| exists(&base, chunk)) {
            return Ok(vec![false; chunks.len()]);
        }
        let outcome = writer.commit(&Edit { remove_chunks, ..Edit::default() })?;
        let left = writer.base();
        let emptied: Vec<SourceId> = (by_batch.into_keys())
            .filter(|batch| left.find(sub_tenant, batch).is_none())
            .cloned()
            .collect();
        let forgotten = self.catalog.cancel_sources(collection.id(), sub_tenant, &emptied);
        forgotten.map_err(IngestError::half_done)?;
        self.record_head(collection);
        drop(writer);
        self.maintenance.wake(collection);
        Ok(chunks.iter().map(|chunk| outcome.removed_chunks.contains(chunk)).collect())
    }
}

fn new_row(index: usize, vector: Vec<f32>) -> NewRow {
    let (index, text, place) = (index as u32, String::new(), ChunkPlace::default());
    NewRow {
        boxes: Vec::new(),
        context: String::new(),
        graph: RowGraph::default(),
        index,
        text,
        place,
        vector,
    }
}
