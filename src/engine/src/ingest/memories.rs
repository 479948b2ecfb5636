//! Personal memories: durable and visible when the call returns.
//!
//! ```text
//! chunk -> embed (lane of answers) -> originals on disk -> [writer's lock: sequences -> segment
//!     -> commit]: visible, and only now acknowledged
//! ```
//! A client waits for each memory, so there are no jobs. A crash or an error before the commit
//! leaves originals that nothing refers to, and the sweep deletes them; the call has then not been
//! answered, or not with success. A call costs seven fsyncs, plus three for each memory (its
//! original and its sequence).
//!
//! Statements that a generator has condensed from a text are stored in its original and searched
//! with it: they expire with it, and survive the rebuilding of a segment. Without a generator only
//! the text is kept: rules would merely store it a second time with less content. A caller who
//! wants statements instead of a text uses generation.
//!
//! - `generated`: memories generated from a message

mod generated;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ingest::draft::Draft;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_catalog::job::Outcome;
use lodestone_embed::{Embedder, Lane};
use lodestone_extract::Format;
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, Snapshot};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{
    Memory, Metadata, Origin, RequestContext, Sequence, SourceDetail, SourceId, SourceKind,
    SourceRecord, SubTenantId, Timestamp,
};

const MILLIS_PER_SECOND: u64 = 1000;

/// A memory to be added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewMemory {
    /// The id to use, replacing a memory with that id; `None` generates one.
    pub id: Option<SourceId>,
    /// The text: not blank, at most [`lodestone_types::limits::MEMORY_BYTES_MAX`] bytes.
    pub content: String,
    /// Seconds until the memory expires; `None` means never.
    pub life_seconds: Option<u64>,
    /// Sentences that condense the text, searched along with it.
    pub condensed: Vec<String>,
    /// Everything that the client sent, kept in the original.
    pub sent: Metadata,
}

/// A memory that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMemory {
    /// The memory.
    pub memory: Memory,
    /// Number of its chunks.
    pub chunks: usize,
}

/// The original of a memory, stored as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Original {
    content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    condensed: Vec<String>,
    sent: Metadata,
}

/// The text of an original followed by its condensed statements, separated by blank lines.
pub(super) fn text_of(original: &[u8]) -> serde_json::Result<String> {
    let Original { content, condensed, .. } = serde_json::from_slice(original)?;
    let parts: Vec<String> = std::iter::once(content).chain(condensed).collect();
    Ok(parts.join("\n\n"))
}

/// A memory with its vectors and its encoded original.
struct Prepared {
    source: NewSource,
    original: Vec<u8>,
}

impl Ingest {
    /// Adds memories to a sub-tenant atomically.
    ///
    /// # Errors
    /// [`IngestError::MemoryText`] for a text without words; [`IngestError::DiskFull`];
    /// [`IngestError::ModelMismatch`]; a limit of the tenant; errors of the model and the disk.
    /// Nothing is stored in any of these cases; [`IngestError::OutcomeUnknown`] if something may
    /// have been stored.
    pub fn add_memories(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        added: Vec<NewMemory>,
    ) -> Result<Vec<AddedMemory>, IngestError> {
        self.add_unless_known(tenant, collection, sub_tenant, added, None)
    }

    /// Like [`Self::add_memories`], but skips memories whose words were stored since the snapshot
    /// `seen`.
    fn add_unless_known(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        added: Vec<NewMemory>,
        seen: Option<&Arc<Snapshot>>,
    ) -> Result<Vec<AddedMemory>, IngestError> {
        self.require_room_for_content()?;
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let (model, now) = (self.model_of(tenant, collection)?, self.clock.now());
        let scope = sub_tenant.of_memories();
        for memory in &added {
            self.require_room_for_a_vector(tenant, collection, &scope, memory.id.as_ref())?;
        }
        let prepare = |memory| self.prepare_memory(tenant, &*model, &scope, memory, now);
        let mut prepared: Vec<Prepared> =
            added.into_iter().map(prepare).collect::<Result<_, IngestError>>()?;
        let kept = self.keep_originals(collection, sub_tenant, &mut prepared, now);
        let mut sources: Vec<NewSource> = prepared.into_iter().map(|one| one.source).collect();
        let published =
            kept.and_then(|()| self.publish_with(tenant, collection, model, &mut sources, seen));
        match published {
            Ok(()) => {}
            // The originals may be referred to.
            Err(error @ IngestError::OutcomeUnknown { .. }) => return Err(error),
            Err(error) => {
                self.forget_refused(collection, &sources);
                let raw_keys: Vec<String> =
                    sources.into_iter().map(|source| source.record.raw_key).collect();
                self.delete_originals(&raw_keys);
                return Err(error);
            }
        }
        let stored = |source: &NewSource| {
            let memory = Memory::of(&source.record).expect("made of a memory");
            AddedMemory { memory, chunks: source.rows.len() }
        };
        Ok(sources.iter().map(stored).collect())
    }

    /// Forgets memories that got a sequence but were not stored, unless an earlier version of them
    /// is: otherwise their tenant would not count as empty.
    fn forget_refused(&self, collection: &Collection, sources: &[NewSource]) {
        let (id, snapshot) = (collection.id(), collection.snapshot());
        for NewSource { record, .. } in sources.iter().filter(|one| one.record.sequence.0 > 0) {
            let SourceRecord { sub_tenant, id: memory, sequence, .. } = record;
            if !matches!(snapshot.record(sub_tenant, memory), Ok(None)) {
                continue;
            }
            let released = self.catalog.release_batch(id, sub_tenant, memory, *sequence, None);
            if let Err(error) = released {
                tracing::warn!(%error, "a memory that was not stored is still known");
            }
        }
    }

    fn prepare_memory(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        scope: &SubTenantId,
        added: NewMemory,
        now: Timestamp,
    ) -> Result<Prepared, IngestError> {
        let NewMemory { id, content, life_seconds, condensed, sent } = added;
        let id = match id {
            Some(id) => id,
            None => SourceId::parse(&self.ids.wire_id("mem_", now)).expect("generated ids parse"),
        };
        let life_millis = life_seconds.map(|seconds| seconds.saturating_mul(MILLIS_PER_SECOND));
        let expires_at = life_millis.map(|millis| now.plus_millis(millis));
        let (document_metadata, meta) = Memory::maps(&content, expires_at);
        let original = Original { content, condensed, sent };
        let original = serde_json::to_vec(&original).expect("plain data always prints");
        let record = SourceRecord {
            content_type: Format::Json.media_type().to_owned(),
            size_bytes: original.len() as u64,
            document_metadata,
            detail: SourceDetail { meta: Some(meta), ..SourceDetail::default() },
            // Sequence and key are assigned when it is stored.
            ..SourceRecord::new(scope.clone(), id, SourceKind::Memory, Sequence(0), now)
        };
        let draft = self.draft_memory(tenant, model, record, &original).map_err(|outcome| {
            let problem = match outcome {
                Outcome::Rejected { message, .. } | Outcome::Failed { message, .. } => message,
                outcome => format!("{outcome:?}"),
            };
            IngestError::MemoryText { problem }
        })?;
        Ok(Prepared { source: self.embed_memory(tenant, model, draft)?, original })
    }

    fn embed_memory(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        draft: Draft,
    ) -> Result<NewSource, IngestError> {
        let context = RequestContext::default().of_tenant(tenant.collection);
        let passages: Vec<String> = draft.passages().collect();
        let sparse = self.sparse_rows(Lane::Answer, &context, &passages)?;
        let vectors = model.embed_within(Lane::Answer, &context, passages)?;
        Ok(draft.into_source(vectors, sparse))
    }

    fn embed_again(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        sources: &mut [NewSource],
    ) -> Result<(), IngestError> {
        let context = RequestContext::default().of_tenant(tenant.collection);
        for NewSource { title_text: title, searchable, rows, .. } in sources {
            let text = |row: &NewRow| {
                let around = Surroundings { title, searchable, context: &row.context };
                passage(around, &row.text)
            };
            let texts = rows.iter().map(text).collect();
            let vectors = model.embed_within(Lane::Answer, &context, texts)?;
            rows.iter_mut().zip(vectors).for_each(|(row, vector)| row.vector = vector);
        }
        Ok(())
    }

    /// Stores originals. Durable on return; nothing refers to them yet.
    fn keep_originals(
        &self,
        collection: &Collection,
        sub_tenant: &SubTenantId,
        prepared: &mut [Prepared],
        now: Timestamp,
    ) -> Result<(), IngestError> {
        for Prepared { source, original } in prepared {
            let record = &mut source.record;
            let label = UploadLabel {
                sub_tenant: sub_tenant.as_str().to_owned(),
                source: record.id.as_str().to_owned(),
                kind: record.kind.as_str().to_owned(),
                filename: String::new(),
                content_type: record.content_type.clone(),
                uploaded_at: now.0,
                tenant_metadata: None,
                document_metadata: Some(record.document_metadata.clone()),
                origin: Origin { detail: record.detail.clone(), ..Origin::default() },
                after: None,
            };
            let key = uploads::put(&*self.store, &*self.ids, collection.id(), &label, original)?;
            record.raw_key = key.as_str().to_owned();
        }
        Ok(())
    }

    /// Publishes memories, embedding them again if the tenant was switched to another model
    /// meanwhile.
    fn publish_with(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        mut model: Arc<dyn Embedder>,
        sources: &mut Vec<NewSource>,
        seen: Option<&Arc<Snapshot>>,
    ) -> Result<(), IngestError> {
        while let Err(error) = self.publish_memories(tenant, collection, &*model, sources, seen) {
            let IngestError::Collection(CollectionError::OtherModel { .. }) = error else {
                return Err(error);
            };
            model = self.model_of(tenant, collection)?;
            self.embed_again(tenant, &*model, sources)?;
        }
        Ok(())
    }

    fn publish_memories(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        model: &dyn Embedder,
        sources: &mut Vec<NewSource>,
        seen: Option<&Arc<Snapshot>>,
    ) -> Result<(), IngestError> {
        let mut writer = collection.writer()?;
        let snapshot = writer.base();
        if seen.is_some_and(|seen| !Arc::ptr_eq(seen, &snapshot)) {
            self.leave_out_known(&snapshot, sources)?;
            if sources.is_empty() {
                return Ok(());
            }
        }
        let mut allowance = self.vector_allowance(tenant, &snapshot)?;
        for NewSource { record, rows, .. } in sources.iter() {
            allowance.take(&snapshot, &record.sub_tenant, &record.id, rows.len())?;
        }
        for source in sources.iter_mut() {
            let record = &mut source.record;
            let older = snapshot.record(&record.sub_tenant, &record.id)?;
            record.version = older.map_or(1, |older| older.version + 1);
            // This creates the sub-tenant that the client named, if it does not exist.
            let (id, scope) = (collection.id(), &record.sub_tenant);
            record.sequence = self.catalog.reserve_sequence(id, scope, &record.id, None)?;
        }
        let segment = collection.build(model.dimension(), VectorKind::F16, sources)?;
        let edit = Edit {
            add: vec![AddedSegment { segment, withheld: Vec::new() }],
            embedding: Some(model.fingerprint().to_owned()),
            ..Edit::default()
        };
        let outcome =
            writer.commit(&edit).map_err(|e| IngestError::from(e).about(&sources[0].record.id))?;
        self.record_head(collection)?;
        drop(writer);
        self.delete_originals(&outcome.orphaned_uploads);
        self.look_after(collection);
        Ok(())
    }

    /// Deletes a memory. No read sees it once this returns.
    ///
    /// # Errors
    /// [`IngestError::MemoryUnknown`], also for an expired memory; errors of the disk or the
    /// catalog.
    pub fn delete_memory(
        &self,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        id: &SourceId,
    ) -> Result<(), IngestError> {
        let scope = sub_tenant.of_memories();
        let stored = collection.snapshot().record(&scope, id)?;
        let now = self.clock.now();
        let ended = |record: &SourceRecord| Memory::of(record).is_some_and(|it| it.is_expired(now));
        let was_expired = stored.as_ref().is_some_and(ended);
        let deleted = self.delete_sources(collection, &scope, std::slice::from_ref(id))?;
        match was_expired || deleted.deleted.is_empty() {
            true => Err(IngestError::MemoryUnknown { memory_id: id.clone() }),
            false => Ok(()),
        }
    }
}
