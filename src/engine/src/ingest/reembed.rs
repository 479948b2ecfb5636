//! Changes the embedding model of a tenant while it is searched and modified.
//!
//! ```text
//! requested   commit: the manifest names the new model, without pieces yet; survives a restart
//! pieces      rows of visible sources that no piece has -> model, lane of documents -> a segment
//!             that copies all but the vectors -> commit: the manifest lists it; nobody reads it
//! the rest    few rows are missing -> [writer's lock: what came meanwhile -> piece -> switch]
//!             commit: the pieces are searched, the previous segments are kept
//! the end     after the configured time, or on request: commit without them; files are removed
//! ```
//! Each step compares the pieces with the newest version, so uploads, deletions and metadata
//! changes in the meantime need no bookkeeping. A crash only loses the piece in progress. Going
//! back is the same work towards the model of the kept segments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::ingest::error::NOT_LOADED;
use crate::ingest::stored_passages::passages_of;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_embed::{Embedder, Lane};
use lodestone_io::{Fullness, run_in_background};
use lodestone_storage::collection::{
    Collection, CollectionError, FoundSource, LiveSegment, OtherVectors, Snapshot, Writer,
};
use lodestone_storage::segment::Segment;
use lodestone_types::{ErrorKind, JobStatus, RequestContext};

/// Minimum rows per piece; a crash loses at most one piece of work.
const PIECE_ROWS_MIN: u64 = 1024;
/// Maximum rows per piece, which limits the memory for its vectors.
const PIECE_ROWS_MAX: u64 = 32_768;
/// Number of pieces that a tenant is divided into, within the limits above.
const PIECES: u64 = 64;
/// Number of missing rows at which the switch is attempted: they are embedded under the writer's
/// lock.
const LAST_ROWS: u64 = 256;
/// Number of missing rows beyond which the lock is released once more.
const LAST_ROWS_MAX: u64 = 4 * LAST_ROWS;
/// Time limit for embedding under the lock, while deletions and uploads of the tenant wait.
const LAST_TIME: Duration = Duration::from_secs(10);
/// Passages per call of the model.
const SLICE_PASSAGES: usize = 256;

/// The result of one step.
enum Step {
    /// More work remains.
    Again,
    /// The tenant was switched.
    Switched,
    /// The change was canceled in the meantime.
    Canceled,
    /// The step has to wait, for this reason.
    Later(&'static str),
    /// The change cannot continue.
    Failed(String),
}

impl Ingest {
    /// Runs until shutdown.
    pub(super) fn reembed(&self) {
        run_in_background();
        while !self.stopping.is_set() {
            let Some((tenant, collection)) = self.reembeds.take(&self.stopping) else { continue };
            let begun = self.clock.now();
            self.reembeds.update(collection.id(), |run| {
                run.status = JobStatus::InProgress;
                run.started_at.get_or_insert(begun);
            });
            let step = || self.reembed_step(&tenant, &collection);
            let step = catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
                self.quarantine(&collection);
                Ok(Step::Later("a step failed unexpectedly: see the server's log"))
            });
            self.after_step(&collection, step);
            self.reembeds.end();
            drop(collection);
            self.clear_deleted_if_any();
        }
    }

    fn clear_deleted_if_any(&self) {
        // The deletion of a tenant may have been waiting for this step.
        if self.catalog.collections_pending_delete().is_ok_and(|found| !found.is_empty()) {
            self.clear_deleted_tenants();
        }
    }

    fn after_step(&self, collection: &Arc<Collection>, step: Result<Step, IngestError>) {
        let (id, now) = (collection.id(), self.clock.now());
        let later = |reason: String| {
            self.reembeds.update(id, |run| run.message = reason);
            self.stopping.wait(super::maintenance::ROUND);
        };
        match step {
            Ok(Step::Again) => {}
            Ok(Step::Switched) => {
                tracing::info!(collection = %id, "a tenant was switched to the vectors of another \
                    model");
                self.reembeds.update(id, |run| {
                    run.status = JobStatus::Success;
                    run.chunks_done = run.chunks;
                    run.ended_at = Some(now);
                    run.message.clear();
                });
                self.look_after(collection);
            }
            Ok(Step::Canceled) => {
                self.reembeds.forget(id);
            }
            Ok(Step::Later(reason)) => later(reason.to_owned()),
            Ok(Step::Failed(reason)) => {
                tracing::error!(collection = %id, reason, "re-embedding cannot continue");
                self.reembeds.update(id, |run| {
                    run.status = JobStatus::Errored;
                    run.ended_at = Some(now);
                    run.message = reason;
                });
            }
            Err(error) => {
                tracing::warn!(collection = %id, %error, "a re-embedding step failed, and is \
                    tried again");
                if error.kind() == ErrorKind::Corrupt {
                    self.quarantine(collection);
                }
                later(error.to_string());
            }
        }
    }

    fn reembed_step(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
    ) -> Result<Step, IngestError> {
        let base = collection.snapshot();
        let Some(other) = wanted(&base) else { return Ok(Step::Canceled) };
        let Some(model) = self.models.with(&other.embedding) else {
            let reason = "the model of the new vectors is not loaded: start the server with it, or \
                discard the vectors";
            return Ok(Step::Failed(reason.to_owned()));
        };
        if !base.damaged.is_empty() {
            return Ok(Step::Later("waiting for a damaged segment to be rebuilt"));
        }
        if self.gauge.level() >= Fullness::Full {
            return Ok(Step::Later("the disk is full"));
        }
        let open = collection.open_other(&base.manifest)?;
        let compared = base.compare(&open).map_err(CollectionError::from)?;
        let (rows, missing) = (base.rows(), compared.missing_rows);
        self.reembeds.update(collection.id(), |run| {
            (run.chunks, run.chunks_done) = (rows, rows - missing);
            run.message.clear();
        });
        if missing <= LAST_ROWS
            && let Some(step) = self.switch(tenant, collection, &**model, other, open.clone())?
        {
            return Ok(step);
        }
        let piece =
            first_piece(&compared.missing, (rows / PIECES).clamp(PIECE_ROWS_MIN, PIECE_ROWS_MAX));
        let piece = self.build_piece(tenant, collection, &**model, None, &piece, rows - missing)?;
        let Some(piece) = piece else { return Ok(Step::Again) };
        let mut writer = collection.writer()?;
        let newest = writer.base();
        let Some(noted) = wanted(&newest).filter(|noted| noted.job == other.job) else {
            return Ok(Step::Canceled);
        };
        let mut noted = noted.clone();
        // Segments that could not be opened are dropped: their rows count as missing.
        noted.segments.retain(|entry| open.iter().any(|live| live.entry.id == entry.id));
        noted.segments.push(collection.fresh_entry(&piece)?);
        writer.set_other(Some(noted))?;
        self.record_head(collection)?;
        drop(writer);
        self.maintenance.wake(collection);
        Ok(Step::Again)
    }

    /// Embeds the missing rows and switches, under the writer's lock. `None` if the model does not
    /// finish within [`LAST_TIME`]: the rows are then embedded without the lock first.
    fn switch(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        model: &dyn Embedder,
        other: &OtherVectors,
        mut open: Vec<Arc<LiveSegment>>,
    ) -> Result<Option<Step>, IngestError> {
        let mut writer = collection.writer()?;
        let base = writer.base();
        if wanted(&base).is_none_or(|noted| noted.job != other.job) {
            return Ok(Some(Step::Canceled));
        }
        let context = RequestContext::with_limit(LAST_TIME);
        loop {
            let compared = base.compare(&open).map_err(CollectionError::from)?;
            if compared.missing.is_empty() {
                break;
            }
            if compared.missing_rows > LAST_ROWS_MAX {
                return Ok(Some(Step::Again));
            }
            let piece = first_piece(&compared.missing, u64::MAX);
            let piece = self.build_piece(tenant, collection, model, Some(&context), &piece, 0);
            let piece = match piece {
                Err(IngestError::Embed(error)) => {
                    tracing::debug!(%error, "embedding the last chunks without the lock");
                    return Ok(None);
                }
                piece => piece?,
            };
            let Some(piece) = piece else { return Ok(Some(Step::Again)) };
            let entry = collection.fresh_entry(&piece)?;
            open.push(Arc::new(LiveSegment::new(entry, piece, Default::default())));
        }
        writer.switch(&open, self.clock.now())?;
        self.record_head(collection)?;
        Ok(Some(Step::Switched))
    }

    /// Embeds sources of one segment and writes them with their new vectors; `None` if the server
    /// stops. `last` limits the time of work under the writer's lock. That work takes precedence
    /// over documents, because writers of the tenant wait for it.
    fn build_piece(
        &self,
        tenant: &Tenant,
        collection: &Collection,
        model: &dyn Embedder,
        last: Option<&RequestContext>,
        piece: &[FoundSource<'_>],
        done_before: u64,
    ) -> Result<Option<Arc<Segment>>, IngestError> {
        let Some(first) = piece.first() else { return Ok(None) };
        let mut passages = Vec::new();
        for found in piece {
            passages.extend(passages_of(tenant, found).map_err(CollectionError::from)?);
        }
        let lane = if last.is_some() { Lane::Answer } else { Lane::Bulk };
        let context = last.cloned().unwrap_or_default().of_tenant(collection.id());
        let mut vectors = Vec::with_capacity(passages.len());
        let mut sparse = Vec::new();
        for slice in passages.chunks(SLICE_PASSAGES) {
            if self.stopping.is_set() {
                return Ok(None);
            }
            vectors.extend(self.embed_passages(model, lane, &context, slice.to_vec())?);
            sparse.extend(self.sparse_rows(lane, &context, slice)?.into_iter().flatten());
            if lane == Lane::Bulk {
                self.reembed_counts.add(slice.len() as u64);
                let done = done_before + vectors.len() as u64;
                self.reembeds.update(collection.id(), |run| run.chunks_done = done.min(run.chunks));
            }
        }
        drop(passages);
        let sources: Vec<u32> = piece.iter().map(|found| found.source).collect();
        let bytes = first.live.segment.merge_memory_bytes();
        let _memory = self.memory.take_for_merge(bytes);
        let (live, width) = (first.live, model.dimension());
        let built = collection.build_with_vectors(live, &sources, width, (&vectors, &sparse))?;
        first.live.segment.check().map_err(CollectionError::from)?;
        Ok(Some(built))
    }

    /// Starts making the vectors of a tenant with the model `to` or, without one, completes and
    /// takes back the previous vectors. Durable on return; the work happens in the background. A
    /// tenant that has no vectors, or already those of `to`, keeps to that model from now on: a
    /// change to another one ends, and there is work only if it lacks vectors of the sparse model.
    /// Returns whether there is work.
    ///
    /// # Errors
    /// [`IngestError::ReembedRefused`] if the previous vectors or their model are missing.
    pub fn begin_reembed(
        &self,
        tenant: &Arc<Tenant>,
        collection: &Arc<Collection>,
        to: Option<&dyn Embedder>,
    ) -> Result<bool, IngestError> {
        let mut writer = collection.writer()?;
        let base = writer.base();
        let noted = base.manifest.other.as_ref();
        let refused = |problem: &str| IngestError::ReembedRefused { problem: problem.into() };
        let target = match to {
            Some(model) => model.fingerprint().to_owned(),
            None => {
                let kept = noted.filter(|other| !other.is_wanted);
                let kept = kept.ok_or_else(|| refused("no previous vectors are kept"))?;
                if self.models.with(&kept.embedding).is_none() {
                    return Err(refused(NOT_LOADED));
                }
                kept.embedding.clone()
            }
        };
        self.note_choice(tenant, to, &target)?;
        let is_same = base.manifest.model().is_none_or(|model| model == target);
        if is_same && !(to.is_some() && self.lacks_sparse(&base)?) {
            if noted.is_some_and(|other| other.is_wanted && other.embedding != target) {
                self.drop_other(collection, writer)?;
            }
            return Ok(false);
        }
        if let Some(running) = noted.filter(|other| other.is_wanted && other.embedding == target) {
            self.reembeds.note(tenant, collection, running);
            return Ok(true);
        }
        // If only sparse vectors are missing, the previous segments lack them too and cannot be
        // reused.
        let own = noted.filter(|other| other.embedding == target && !is_same);
        let other = OtherVectors {
            embedding: target,
            segments: own.map(|other| other.segments.clone()).unwrap_or_default(),
            is_wanted: true,
            since: self.clock.now().0,
            job: self.ids.uuid(),
        };
        writer.set_other(Some(other.clone()))?;
        self.record_head(collection)?;
        drop(writer);
        self.reembeds.note(tenant, collection, &other);
        Ok(true)
    }

    /// Discards the vectors that are not searched: the previous ones, or those being made. Returns
    /// whether there were any.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn discard_other(&self, collection: &Arc<Collection>) -> Result<bool, IngestError> {
        let writer = collection.writer()?;
        let base = writer.base();
        let Some(other) = &base.manifest.other else { return Ok(false) };
        if other.is_wanted {
            self.take_back_choice(collection, &base)?;
        }
        self.drop_other(collection, writer)?;
        Ok(true)
    }

    fn drop_other(
        &self,
        collection: &Arc<Collection>,
        mut writer: Writer<'_>,
    ) -> Result<(), IngestError> {
        writer.set_other(None)?;
        self.record_head(collection)?;
        // Under the lock, or it would forget a change that was requested since.
        self.reembeds.forget(collection.id());
        drop(writer);
        self.maintenance.wake(collection);
        Ok(())
    }

    /// Discards previous vectors whose retention time is over, unless they are wanted again.
    pub(crate) fn expire_other(&self, collection: &Arc<Collection>) -> Result<(), IngestError> {
        let age = |other: &OtherVectors| self.clock.now().0.saturating_sub(other.since);
        let is_over = |snapshot: &Snapshot| {
            let kept = snapshot.manifest.other.as_ref().filter(|other| !other.is_wanted);
            kept.is_some_and(|other| age(other) >= self.keep_other_millis)
        };
        if !is_over(&collection.snapshot()) {
            return Ok(());
        }
        let writer = collection.writer()?;
        if is_over(&writer.base()) {
            self.drop_other(collection, writer)?;
            tracing::info!(collection = %collection.id(), "deleted the previous vectors");
        }
        Ok(())
    }
}

/// The vectors that are being made, if any.
fn wanted(snapshot: &Snapshot) -> Option<&OtherVectors> {
    snapshot.manifest.other.as_ref().filter(|other| other.is_wanted)
}

/// The first of the missing sources, all from one segment, with about `rows_max` rows at most.
fn first_piece<'a>(missing: &[FoundSource<'a>], rows_max: u64) -> Vec<FoundSource<'a>> {
    let mut piece: Vec<FoundSource<'a>> = Vec::new();
    let mut rows = 0;
    for found in missing {
        let is_other = |first: &FoundSource<'_>| !Arc::ptr_eq(first.live, found.live);
        rows += found.rows().len() as u64;
        if piece.first().is_some_and(|first| is_other(first) || rows > rows_max) {
            break;
        }
        piece.push(*found);
    }
    piece
}
