//! Batches of client vectors, which are searchable when the call returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ingest::vector_limit::{held_bytes, vector_bytes};
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::{CatalogError, Tenant};
use lodestone_storage::collection::{
    AddedSegment, Collection, CollectionError, Edit, Snapshot, Writer,
};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    Metadata, RowId, RowPayload, SourceId, SourceKind, SourceRecord, SubTenantId, derived_chunk_id,
    metadata, split_chunk_id,
};

/// A stored batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedVectors {
    /// Id of the batch.
    pub batch: SourceId,
    /// Number of its rows.
    pub rows: usize,
    /// Whether a batch with this id existed already.
    pub overwritten: bool,
}

/// The vectors of one upload, with their ids and metadata.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewVectors {
    /// The vectors: of equal dimension, finite, and at least one.
    pub rows: Vec<Vec<f32>>,
    /// A unique chunk id for each row; `None` derives them from the batch.
    pub ids: Option<Vec<SourceId>>,
    /// Metadata for each row; `None` if there are none.
    pub metadata: Option<Vec<Option<Metadata>>>,
}

impl From<Vec<Vec<f32>>> for NewVectors {
    fn from(rows: Vec<Vec<f32>>) -> Self {
        Self { rows, ..Self::default() }
    }
}

impl NewVectors {
    /// Converts the vectors to rows of a segment, with their payloads.
    fn into_rows(self) -> Result<Vec<NewRow>, IngestError> {
        let mut ids = self.ids.map(Vec::into_iter);
        let mut maps = self.metadata.map(Vec::into_iter);
        let row = |(index, vector)| {
            let id = ids.as_mut().and_then(Iterator::next).map(|id| id.as_str().to_owned());
            let metadata = maps.as_mut().and_then(Iterator::next).flatten();
            if let Some(map) = &metadata {
                let field = "metadata";
                metadata::check(map).map_err(|problem| IngestError::Metadata { field, problem })?;
            }
            Ok(new_row(index, vector, RowPayload { id, metadata }.to_text()))
        };
        self.rows.into_iter().enumerate().map(|(at, row)| (at as u32, row)).map(row).collect()
    }
}

impl Ingest {
    /// Stores a batch, replacing a batch with the same id entirely. The caller has checked that
    /// there are vectors, that they are finite and of equal dimension, and that ids and metadata
    /// match them in number.
    ///
    /// # Errors
    /// [`IngestError::DimensionMismatch`] if the tenant's dimension differs;
    /// [`IngestError::ChunkIdTaken`] for an id used in another batch of the sub-tenant; a limit of
    /// the tenant; errors of the disk.
    pub fn upload_vectors(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        batch: Option<SourceId>,
        vectors: NewVectors,
    ) -> Result<AcceptedVectors, IngestError> {
        self.require_room_for_content()?;
        let now = self.clock.now();
        let batch = match batch {
            Some(batch) => batch,
            None => SourceId::parse(&self.ids.wire_id("emb_", now)).expect("generated ids parse"),
        };
        let writer = collection.writer()?;
        let snapshot = writer.base();
        let dimension = vectors.rows[0].len();
        let is_first = self.require_width(tenant, &snapshot, dimension)?;
        let older = snapshot.record(sub_tenant, &batch)?;
        require_free_ids(collection, &snapshot, sub_tenant, &batch, &vectors)?;
        let rows = vectors.into_rows()?;
        self.vector_allowance(tenant, &snapshot)?.take(
            &snapshot,
            sub_tenant,
            &batch,
            rows.len(),
        )?;
        let size_bytes = (rows.len() * dimension * size_of::<f32>()) as u64;
        let id = collection.id();
        let sequence = self.catalog.reserve_sequence(id, sub_tenant, &batch, Some(size_bytes))?;
        let record = SourceRecord {
            title: batch.as_str().to_owned(),
            size_bytes,
            version: older.as_ref().map_or(1, |older| older.version + 1),
            ..SourceRecord::new(
                sub_tenant.clone(),
                batch.clone(),
                SourceKind::Embeddings,
                sequence,
                now,
            )
        };
        let held = held_bytes(&snapshot, sub_tenant, &batch, older.as_ref());
        let accepted = AcceptedVectors { batch, rows: rows.len(), overwritten: older.is_some() };
        let batch = &accepted.batch;
        let stored = self.publish_batch(collection, writer, dimension, record, rows, is_first);
        match stored.map_err(|error| error.about(batch)) {
            Ok(()) => Ok(accepted),
            Err(error @ IngestError::OutcomeUnknown { .. }) => Err(error),
            Err(error) => {
                let released = self.catalog.release_batch(id, sub_tenant, batch, sequence, held);
                if let Err(error) = released {
                    tracing::warn!(%error, "a batch that was not stored is still counted");
                }
                Err(error)
            }
        }
    }

    /// Rejects vectors whose dimension differs from the tenant's; returns whether the catalog has
    /// none yet. The caller must hold the writer's lock.
    fn require_width(
        &self,
        tenant: &Tenant,
        base: &Snapshot,
        received: usize,
    ) -> Result<bool, IngestError> {
        let collection = tenant.collection;
        let now = self.catalog.tenant_of(collection)?;
        let now = now.ok_or(CatalogError::CollectionUnknown { collection })?;
        let known = now.dimension.map(|width| width as usize);
        // The catalog has none if it failed after the commit of the first upload.
        let stored = || base.segments.first().map(|live| live.segment.dimension());
        match known.or_else(stored) {
            Some(expected) if expected != received => {
                Err(IngestError::DimensionMismatch { expected, received })
            }
            _ => Ok(known.is_none()),
        }
    }

    /// Atomically replaces individual vectors of one batch by chunk id, keeping their ids and
    /// metadata; returns the batch.
    ///
    /// # Errors
    /// [`IngestError::ChunkIdMalformed`] for an id that is neither given nor derived;
    /// [`IngestError::SeveralBatches`]; [`IngestError::ChunksUnknown`], which lists the missing
    /// ids; [`IngestError::DimensionMismatch`]; errors of the disk.
    pub fn update_vectors(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        vectors: &[(String, Vec<f32>)],
    ) -> Result<SourceId, IngestError> {
        self.require_room_for_changes()?;
        let writer = collection.writer()?;
        let snapshot = writer.base();
        let (batch, indices) = places_of_batch(collection, &snapshot, sub_tenant, vectors)?;
        snapshot.require_readable(sub_tenant, &batch)?;
        let Some(found) = snapshot.find(sub_tenant, &batch) else {
            let missing = vectors.iter().map(|(name, _)| name.clone()).collect();
            return Err(IngestError::ChunksUnknown { missing });
        };
        let by_index: BTreeMap<u32, &(String, Vec<f32>)> =
            indices.into_iter().zip(vectors).filter_map(|(at, row)| Some((at?, row))).collect();
        let segment = &found.live.segment;
        let mut rows = Vec::new();
        for row in found.rows() {
            let index = segment.index(RowId(row));
            let vector = match by_index.get(&index) {
                Some((_, vector)) => vector.clone(),
                None => segment.original_vector(RowId(row)).map_err(CollectionError::from)?,
            };
            let payload = segment.text(RowId(row)).map_err(CollectionError::from)?;
            rows.push(new_row(index, vector, payload));
        }
        let expected = segment.dimension();
        if let Some((_, other)) = vectors.iter().find(|(_, vector)| vector.len() != expected) {
            return Err(IngestError::DimensionMismatch { expected, received: other.len() });
        }
        let now = self.clock.now();
        let record = found.record().map_err(CollectionError::from)?;
        let (version, size_bytes) = (record.version + 1, vector_bytes(&found));
        // It counts as before. Another batch may still count without being stored.
        let (of, bytes) = (collection.id(), Some(size_bytes));
        let sequence = self.catalog.reserve_sequence(of, sub_tenant, &batch, bytes)?;
        let record = SourceRecord { version, size_bytes, sequence, last_updated_at: now, ..record };
        self.publish_batch(collection, writer, expected, record, rows, false)
            .map_err(|error| error.about(&batch))?;
        Ok(batch)
    }

    /// Makes the rows of a batch visible. The first batch of a tenant fixes its dimension, after
    /// the commit, so that an upload that fails fixes none.
    fn publish_batch(
        &self,
        collection: &Arc<Collection>,
        mut writer: Writer<'_>,
        dimension: usize,
        record: SourceRecord,
        rows: Vec<NewRow>,
        is_first: bool,
    ) -> Result<(), IngestError> {
        let (title_text, searchable) = (String::new(), String::new());
        let source = NewSource { record, title_text, searchable, rows };
        let segment = collection.build(dimension, VectorKind::F32, &[source])?;
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        writer.commit(&Edit { add, ..Edit::default() })?;
        if is_first {
            let fixed = self.catalog.fix_dimension(collection.id(), dimension as u32);
            fixed.map_err(IngestError::half_done)?;
        }
        self.record_batch(collection)?;
        drop(writer);
        self.look_after(collection);
        Ok(())
    }

    /// Atomically deletes individual vectors by distinct chunk ids; returns for each, in the order
    /// of the request, whether it existed.
    ///
    /// # Errors
    /// Errors of the disk or the catalog.
    pub fn delete_vectors(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        chunks: &[String],
    ) -> Result<Vec<bool>, IngestError> {
        self.gauge.make_room();
        let mut writer = collection.writer()?;
        let base = writer.base();
        let mut by_batch: BTreeMap<SourceId, Vec<u32>> = BTreeMap::new();
        let mut existed = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let place = place_of(collection, &base, sub_tenant, chunk)?;
            existed.push(place.is_some());
            if let Some((batch, index)) = place {
                by_batch.entry(batch).or_default().push(index);
            }
        }
        if by_batch.is_empty() {
            return Ok(existed);
        }
        let remove_chunks = by_batch
            .iter()
            .map(|(batch, indices)| (sub_tenant.clone(), batch.clone(), indices.clone()))
            .collect();
        writer.commit(&Edit { remove_chunks, ..Edit::default() })?;
        self.free_bytes(collection, &writer.base(), sub_tenant, by_batch.into_keys())?;
        self.record_head(collection)?;
        drop(writer);
        self.maintenance.wake(collection);
        Ok(existed)
    }

    /// Counts what is left of batches after a deletion; those of which nothing is left are
    /// forgotten.
    fn free_bytes(
        &self,
        collection: &Collection,
        left: &Snapshot,
        sub_tenant: &SubTenantId,
        batches: impl Iterator<Item = SourceId>,
    ) -> Result<(), IngestError> {
        let (mut emptied, mut reduced) = (Vec::new(), Vec::new());
        for batch in batches {
            match left.find(sub_tenant, &batch) {
                Some(found) => reduced.push((sub_tenant.clone(), batch, vector_bytes(&found))),
                None => emptied.push(batch),
            }
        }
        let id = collection.id();
        if !emptied.is_empty() {
            let forgotten = self.catalog.cancel_sources(id, sub_tenant, &emptied);
            forgotten.map_err(IngestError::half_done)?;
        }
        match reduced.is_empty() {
            true => Ok(()),
            false => self.catalog.set_bytes(id, reduced).map_err(IngestError::half_done),
        }
    }
}

/// The batch and index of a chunk; `None` if it does not exist.
fn place_of(
    collection: &Collection,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    chunk_id: &str,
) -> Result<Option<(SourceId, u32)>, IngestError> {
    let found = snapshot.find_chunk(sub_tenant, chunk_id).map_err(CollectionError::from)?;
    if let Some(chunk) = found {
        let (batch, index) = chunk.place();
        let batch = SourceId::parse(batch).expect("stored ids are valid");
        return Ok(Some((batch, index)));
    }
    match split_chunk_id(chunk_id) {
        Some((batch, _)) => snapshot.require_readable(sub_tenant, &batch)?,
        None => require_whole(collection, snapshot)?,
    }
    Ok(None)
}

/// Fails while a part of the collection is unreadable, since the id in question may be in it.
fn require_whole(collection: &Collection, snapshot: &Snapshot) -> Result<(), IngestError> {
    match snapshot.damaged.len() {
        0 => Ok(()),
        segments => {
            let collection = collection.id();
            Err(CollectionError::Quarantined { collection, segments }.into())
        }
    }
}

/// The common batch of all chunks, and the index of each.
fn places_of_batch(
    collection: &Collection,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    vectors: &[(String, Vec<f32>)],
) -> Result<(SourceId, Vec<Option<u32>>), IngestError> {
    let mut of_batch: Option<SourceId> = None;
    let (mut indices, mut missing) = (Vec::with_capacity(vectors.len()), Vec::new());
    for (name, _) in vectors {
        let place = place_of(collection, snapshot, sub_tenant, name)?;
        if place.is_none() {
            missing.push(name.clone());
        }
        let derived = || split_chunk_id(name).map(|(batch, _)| batch);
        let batch = place.as_ref().map(|(batch, _)| batch.clone()).or_else(derived);
        let Some(batch) = batch else {
            return Err(IngestError::ChunkIdMalformed { chunk_id: name.clone() });
        };
        if of_batch.as_ref().is_some_and(|earlier| *earlier != batch) {
            return Err(IngestError::SeveralBatches);
        }
        of_batch = Some(batch);
        indices.push(place.map(|(_, index)| index));
    }
    match of_batch {
        Some(batch) if missing.is_empty() => Ok((batch, indices)),
        _ => Err(IngestError::ChunksUnknown { missing }),
    }
}

/// Rejects ids, given or derived, that already name vectors of another batch.
fn require_free_ids(
    collection: &Collection,
    snapshot: &Snapshot,
    sub_tenant: &SubTenantId,
    batch: &SourceId,
    vectors: &NewVectors,
) -> Result<(), IngestError> {
    let check = |id: &str| -> Result<(), IngestError> {
        let found = snapshot.find_chunk(sub_tenant, id).map_err(CollectionError::from)?;
        match found.filter(|chunk| chunk.place().0 != batch.as_str()) {
            Some(_) => Err(IngestError::ChunkIdTaken { chunk_id: id.to_owned() }),
            None => Ok(()),
        }
    };
    match &vectors.ids {
        Some(ids) => {
            let others = snapshot.damaged.iter().flat_map(|segment| segment.lost());
            let is_other =
                |lost: &SourceRecord| lost.sub_tenant == *sub_tenant && lost.id != *batch;
            if others.into_iter().any(is_other) {
                require_whole(collection, snapshot)?;
            }
            ids.iter().try_for_each(|id| check(id.as_str()))
        }
        // Derived ids differ between batches; they can only collide with given ones.
        None if snapshot.segments.iter().any(|live| live.segment.has_chunk_ids()) => {
            (0..vectors.rows.len() as u32)
                .try_for_each(|index| check(&derived_chunk_id(batch.as_str(), index)))
        }
        None => Ok(()),
    }
}

fn new_row(index: u32, vector: Vec<f32>, text: String) -> NewRow {
    NewRow { index, text, vector, ..NewRow::default() }
}
