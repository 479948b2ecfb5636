//! Rebuilds the sources of damaged segments from their originals.
//!
//! ```text
//! lost sources of a collection, one batch at a time
//!   -> original -> extract -> chunk -> embed, under the record that each source had
//!   -> a segment -> [writer's lock: still lost? -> commit]: visible again, and no longer lost
//! ```
//! A rebuild creates no jobs: a job would be a new operation with its own sequence, and listings
//! would show a source that nobody has uploaded. Instead the record stays as it was, including
//! later changes of metadata, with its version and its sequence. If something newer was accepted
//! since, the newer operation thus wins. Each batch is one commit that removes its sources from the
//! damaged segment, so after a restart the rebuild continues where it stopped.
//!
//! Client vectors have no original. They, and sources whose originals are damaged too, stay lost
//! until somebody uploads them again, deletes them or restores a backup; nothing is dropped.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ingest::draft::Draft;
use crate::ingest::worker::CLAIM;
use crate::ingest::{Ingest, IngestError, memory};
use lodestone_catalog::Tenant;
use lodestone_catalog::job::Outcome;
use lodestone_embed::Embedder;
use lodestone_storage::collection::{AddedSegment, Collection, Edit, Snapshot};
use lodestone_storage::segment::{NewSource, VectorKind};
use lodestone_types::{CollectionId, Sequence, SourceRecord, limits};

/// Failed attempts by source, so that hopeless sources are not retried endlessly. Kept in memory
/// only: a restart tries once more, perhaps with the original back in place.
#[derive(Debug, Default)]
pub(super) struct GivenUp(Mutex<BTreeMap<CollectionId, BTreeMap<Sequence, u32>>>);

impl GivenUp {
    fn add(&self, tenant: &Tenant, record: &SourceRecord, reason: &str) {
        let (collection, source) = (tenant.collection, &record.id);
        tracing::error!(%collection, %source, reason, "a lost source cannot be rebuilt");
        let mut all = self.0.lock();
        all.entry(collection).or_default().insert(record.sequence, limits::ATTEMPTS_MAX);
    }

    /// Counts a failed attempt whose cause may be temporary.
    fn add_fault(&self, tenant: &Tenant, record: &SourceRecord, reason: &str) {
        let attempts = {
            let mut all = self.0.lock();
            let attempts = all.entry(tenant.collection).or_default();
            let attempts = attempts.entry(record.sequence).or_default();
            *attempts += 1;
            *attempts
        };
        if attempts >= limits::ATTEMPTS_MAX {
            self.add(tenant, record, reason);
            return;
        }
        let (collection, source) = (tenant.collection, &record.id);
        tracing::warn!(%collection, %source, attempts, reason, "rebuilding a lost source failed, \
            and is tried again");
    }

    fn has(&self, collection: CollectionId, record: &SourceRecord) -> bool {
        let all = self.0.lock();
        let attempts = all.get(&collection).and_then(|tried| tried.get(&record.sequence));
        attempts.is_some_and(|attempts| *attempts >= limits::ATTEMPTS_MAX)
    }
}

/// The result of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Round {
    /// Nothing can be rebuilt.
    Idle,
    /// Some sources are visible again, or are known to stay lost.
    Progress,
    /// The model is overloaded, the disk is full, a source could not be read for now, or a reader
    /// still holds files that are to be deleted.
    Later,
}

impl Ingest {
    /// Whether a part of the collection is lost that this server cannot rebuild from what it has.
    pub fn needs_help(&self, collection: &Collection) -> bool {
        let snapshot = collection.snapshot();
        let mut lost = snapshot.lost();
        let cannot_build = |record: &SourceRecord| {
            record.raw_key.is_empty() || self.given_up.has(collection.id(), record)
        };
        let has_model = self.foreign_model(collection).is_none();
        snapshot.unknown_segments() > 0 || !has_model || lost.any(cannot_build)
    }

    /// Takes damaged segments out of service after a read has met damage, and schedules their
    /// rebuild; returns their number.
    pub fn quarantine(&self, collection: &Arc<Collection>) -> usize {
        let found = collection.quarantine_damaged();
        if found > 0 {
            Self::tell_damage(collection, found);
            self.maintenance.wake(collection);
        }
        found
    }

    /// Logs that segments of a collection are damaged.
    pub(super) fn tell_damage(collection: &Collection, segments: usize) {
        tracing::error!(collection = %collection.id(), segments, "segments quarantined: their \
            content is missing until it is rebuilt from originals");
    }

    /// Restores what is missing from a collection: fetches segments that could not be fetched
    /// before, and rebuilds the next batch of lost sources.
    pub(super) fn restore_once(&self, collection: &Arc<Collection>) -> Result<Round, IngestError> {
        let fetched = collection.fetch_away();
        let round = self.rebuild_once(collection)?;
        match fetched {
            Err(error) if round == Round::Idle => {
                tracing::warn!(collection = %collection.id(), %error, "a segment is still missing");
                Ok(Round::Later)
            }
            _ => Ok(round),
        }
    }

    /// Rebuilds the next batch of lost sources of a collection.
    fn rebuild_once(&self, collection: &Arc<Collection>) -> Result<Round, IngestError> {
        let snapshot = collection.snapshot();
        let chosen = self.choose_lost(collection.id(), &snapshot);
        let model = self.models.of(&snapshot.manifest, None).cloned();
        let Some(model) = model else { return Ok(Round::Idle) };
        if chosen.is_empty() {
            return Ok(Round::Idle);
        }
        if !self.has_room_to_work() {
            return Ok(Round::Later);
        }
        let Some(tenant) = self.catalog.tenant_of(collection.id())? else {
            return Ok(Round::Idle);
        };
        let sizes = chosen.iter().map(|record| (record.size_bytes, metadata_bytes(record)));
        let share = self.memory.share(memory::claim_bytes(sizes), &self.stopping);
        let Some(_memory) = share else { return Ok(Round::Later) };
        let (mut drafts, mut round) = (Vec::with_capacity(chosen.len()), Round::Progress);
        for record in chosen {
            match self.redraft_safely(&tenant, &*model, record) {
                Ok(draft) => drafts.push(draft),
                Err(Outcome::Released | Outcome::Published { .. }) => return Ok(Round::Later),
                Err(Outcome::Rejected { message, .. }) => {
                    self.given_up.add(&tenant, record, &message);
                }
                Err(Outcome::Failed { message, .. }) => {
                    self.given_up.add_fault(&tenant, record, &message);
                    round = Round::Later;
                }
            }
        }
        let Some(sources) = self.embed_lost(&tenant, &*model, drafts) else {
            return Ok(Round::Later);
        };
        if !sources.is_empty() {
            self.publish_rebuilt(collection, &*model, &sources)?;
        }
        Ok(round)
    }

    fn choose_lost<'a>(
        &self,
        collection: CollectionId,
        snapshot: &'a Snapshot,
    ) -> Vec<&'a SourceRecord> {
        if snapshot.unknown_segments() > 0 {
            // Nothing can be committed then, so nothing needs to be rebuilt.
            return Vec::new();
        }
        let lost = snapshot.lost();
        let can_be_tried = |record: &&SourceRecord| {
            !record.raw_key.is_empty() && !self.given_up.has(collection, record)
        };
        let mut bytes = 0;
        let mut chosen = Vec::new();
        for record in lost.filter(can_be_tried).take(CLAIM.jobs) {
            bytes += record.size_bytes;
            if !chosen.is_empty() && bytes > CLAIM.bytes {
                break;
            }
            chosen.push(record);
        }
        chosen
    }

    /// Drafts one source; a panic of the extractor becomes an error of this document.
    fn redraft_safely(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        record: &SourceRecord,
    ) -> Result<Draft, Outcome> {
        let redraft = AssertUnwindSafe(|| self.redraft(tenant, model, record));
        catch_unwind(redraft).unwrap_or_else(|_| {
            let message = "reading the original failed unexpectedly".to_owned();
            Err(Outcome::Failed { error_code: lodestone_types::JobErrorCode::Internal, message })
        })
    }

    /// Embeds all drafts together, or one by one if the model rejects the batch. `None` if it
    /// should be tried again later.
    fn embed_lost(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        drafts: Vec<Draft>,
    ) -> Option<Vec<NewSource>> {
        if drafts.is_empty() {
            return Some(Vec::new());
        }
        match self.embed(tenant, model, drafts.clone(), None) {
            Ok(sources) => return Some(sources),
            Err(Outcome::Released) => return None,
            Err(_) => {}
        }
        let mut sources = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let record = draft.record.clone();
            match self.embed(tenant, model, vec![draft], None) {
                Ok(embedded) => sources.extend(embedded),
                Err(Outcome::Released) => return None,
                Err(outcome) => self.given_up.add(tenant, &record, &format!("{outcome:?}")),
            }
        }
        Some(sources)
    }

    fn publish_rebuilt(
        &self,
        collection: &Arc<Collection>,
        model: &dyn Embedder,
        sources: &[NewSource],
    ) -> Result<(), IngestError> {
        let segment = collection.build(model.dimension(), VectorKind::F16, sources)?;
        let mut writer = collection.writer()?;
        let base = writer.base();
        // Sources that were deleted or replaced in the meantime are no longer lost, and are
        // withheld.
        let is_lost = |record: &SourceRecord| {
            let found = base.find_lost(&record.sub_tenant, &record.id);
            found.is_some_and(|found| found.sequence == record.sequence)
        };
        let (wanted, withheld): (Vec<_>, Vec<_>) =
            sources.iter().map(|source| &source.record).partition(|record| is_lost(record));
        if wanted.is_empty() {
            drop(writer);
            return Ok(collection.discard(&segment)?);
        }
        let withheld =
            withheld.iter().map(|record| (record.sub_tenant.clone(), record.id.clone())).collect();
        let edit = Edit {
            add: vec![AddedSegment { segment, withheld }],
            embedding: Some(model.fingerprint().to_owned()),
            ..Edit::default()
        };
        writer.commit(&edit)?;
        self.record_head(collection)?;
        drop(writer);
        let (id, damaged) = (collection.id(), collection.snapshot().damaged.len());
        tracing::warn!(collection = %id, sources = wanted.len(), damaged, "rebuilt lost sources");
        Ok(())
    }
}

/// Size of the metadata of a source as JSON.
fn metadata_bytes(record: &SourceRecord) -> u64 {
    let maps = [&record.tenant_metadata, &record.document_metadata];
    let bytes = |map| serde_json::to_string(map).map_or(0, |text| text.len() as u64);
    maps.into_iter().map(bytes).sum()
}
