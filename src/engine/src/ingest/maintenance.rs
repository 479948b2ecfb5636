//! Background work on collections: merging, garbage, rebuilding damaged segments, originals that
//! nothing refers to.
//!
//! One thread does it all but large merges, which take minutes and have a thread of their own:
//! segments of others, and new ones of the same collection, are merged meanwhile.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::copies;
use crate::ingest::rebuild::Round;
use crate::ingest::stopping::is_due;
use crate::ingest::{Ingest, IngestError};
use lodestone_embed::Embedder;
use lodestone_io::{Fullness, run_in_background};
use lodestone_storage::collection::{Collection, CollectionError, MergeBudget, uploads};
use lodestone_types::{ErrorKind, SourceKind, SourceRecord, TenantId, Timestamp};

/// Time between two looks at collections for which something has to wait.
pub(super) const ROUND: Duration = Duration::from_secs(5);
/// Time without use after which a model may leave the memory while work waits for some.
const PRESSURE_IDLE: Duration = Duration::from_secs(10);
/// Rows of a merge, from which on it is large.
const LARGE_MERGE_ROWS: u64 = 50_000;
/// Segments of a collection from which on whoever adds one merges first: twice as many as the
/// policy leaves, so only where they come faster than the background merges them.
const SEGMENTS_MANY: usize = 100;
/// An original without a job is deleted when it is this old: until then its job may be on its way.
const ORPHAN_MILLIS: u64 = 3_600_000;

/// Time between two searches for such originals at the same tenant.
const SWEEP_MILLIS: u64 = 3_600_000;
/// Time between two tenants, so that idle ones are not all opened at once.
const SWEEP_PAUSE_MILLIS: u64 = 1000;
/// Sources that the catalog is told of in one step.
pub(super) const KNOWN_PER_STEP: usize = 1000;

/// The tenants that are still to be swept in this round.
#[derive(Debug, Default)]
struct Sweep {
    waiting: VecDeque<TenantId>,
    round_due_at: Timestamp,
    next_due_at: Timestamp,
}

impl Ingest {
    /// Runs until shutdown.
    pub(super) fn maintain(&self) {
        run_in_background();
        // The last process may have stopped in the middle of it.
        self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
        if let Err(error) = self.complete_descriptors() {
            tracing::warn!(%error, "some tenants have no descriptor yet");
        }
        let mut sweep = Sweep::default();
        while !self.stopping.is_set() {
            if let Err(error) = self.sweep_next(&mut sweep) {
                tracing::warn!(%error, "originals of a tenant could not be looked through");
            }
            if self.maintenance.has_deleted_tenants.swap(false, Ordering::SeqCst)
                && let Err(error) = self.finish_deleted_tenants()
            {
                tracing::warn!(%error, "remains of deleted tenants could not be cleared");
                self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
                self.stopping.wait(ROUND);
            }
            self.unload_models();
            if let Err(error) = self.gauge.keep_reserve() {
                tracing::warn!(%error, "there is no reserve for deletions on a full disk");
            }
            for (collection, is_first) in self.maintenance.take(&self.stopping) {
                self.guarded(&collection, || self.maintain_one(&collection, is_first));
            }
        }
    }

    /// Has models leave the memory that are not used: each after its time, and while work waits for
    /// memory the one that was used least lately. Never the current one.
    fn unload_models(&self) {
        let others = self.models.others();
        let mut unloaded: Vec<_> =
            others.iter().filter(|model| model.unload(self.model_idle)).collect();
        if self.memory.is_waiting() {
            let idle = |model: &&Arc<dyn Embedder>| model.idle_for();
            let least = others.iter().filter(|model| idle(model).is_some()).max_by_key(idle);
            unloaded.extend(least.filter(|model| model.unload(PRESSURE_IDLE)));
        }
        for model in unloaded {
            tracing::info!(model = model.name(), "an embedding model has left the memory");
        }
    }

    /// Makes large merges until shutdown.
    pub(super) fn merge_large(&self) {
        run_in_background();
        while let Some(collection) = self.maintenance.take_large(&self.stopping) {
            self.guarded(&collection, || {
                let merged = self.merge_next(&collection, u64::MAX);
                self.after_work(&collection, merged.map(|_| Round::Progress));
            });
            self.maintenance.end_large();
            // The deletion of its tenant may have waited for this merge.
            self.clear_deleted_tenants();
        }
    }

    /// Works on a collection. A panic, as of bytes that changed after they were verified, does not
    /// end the thread: damage is looked for.
    fn guarded(&self, collection: &Arc<Collection>, work: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            tracing::error!(collection = %collection.id(), "work in the background failed");
            self.quarantine(collection);
        }
    }

    /// Has a changed collection looked after. Where merging has fallen far behind, the caller
    /// merges: however fast segments come, their number stays bounded.
    pub(super) fn look_after(&self, collection: &Arc<Collection>) {
        self.maintenance.wake(collection);
        // An error is met in the background too, and said there.
        while collection.snapshot().segments.len() > SEGMENTS_MANY
            && self.merge_next(collection, LARGE_MERGE_ROWS).unwrap_or(false)
        {}
    }

    /// Makes the next merge, if there is one of so many rows at most that fits into the space and
    /// the memory that are left. One that is larger goes to the other thread, one that does not fit
    /// waits. Returns whether one was made.
    fn merge_next(&self, collection: &Arc<Collection>, rows_max: u64) -> Result<bool, IngestError> {
        if self.stopping.is_set() || self.gauge.level() >= Fullness::Tight {
            return Ok(false);
        }
        let disk_bytes = self.gauge.free_bytes();
        let memory_bytes = self.memory.room_for_merge();
        let budget = MergeBudget { disk_bytes, memory_bytes, ..MergeBudget::MOST };
        let Some(merge) = collection.plan_merge(budget) else {
            if collection.plan_merge(MergeBudget::MOST).is_some() {
                self.maintenance.postpone(collection);
            }
            return Ok(false);
        };
        if merge.rows() > rows_max {
            self.maintenance.wake_for_large(collection);
            return Ok(false);
        }
        let _memory = self.memory.take_for_merge(merge.memory_bytes());
        merge.run()?;
        self.record_head(collection)?;
        Ok(true)
    }

    fn maintain_one(&self, collection: &Arc<Collection>, is_first: bool) {
        let result = (|| -> Result<Round, IngestError> {
            if is_first {
                collection.repair_source_lists()?;
            }
            self.remove_expired_memories(collection)?;
            self.expire_other(collection)?;
            while self.merge_next(collection, LARGE_MERGE_ROWS)? {}
            let round = self.rebuild_once(collection)?;
            collection.collect_garbage()?;
            Ok(round)
        })();
        self.after_work(collection, result);
    }

    /// Decides whether a collection is looked at again.
    fn after_work(&self, collection: &Arc<Collection>, result: Result<Round, IngestError>) {
        match result {
            Ok(Round::Idle) => {}
            // Not at once: other collections come in between.
            Ok(Round::Progress) => self.maintenance.wake(collection),
            Ok(Round::Later) => self.maintenance.postpone(collection),
            Err(error) => {
                tracing::warn!(collection = %collection.id(), %error, "maintenance stopped early");
                let has_found =
                    error.kind() == ErrorKind::Corrupt && self.quarantine(collection) > 0;
                if !has_found {
                    self.stopping.wait(ROUND);
                }
                if !collection.is_poisoned() && !collection.snapshot().damaged.is_empty() {
                    self.maintenance.wake(collection);
                }
            }
        }
    }

    /// Looks through the originals of the next tenant, if it is time: at the start, and then once
    /// an hour.
    fn sweep_next(&self, sweep: &mut Sweep) -> Result<(), IngestError> {
        let now = self.clock.now();
        if sweep.waiting.is_empty() && is_due(sweep.round_due_at, now, SWEEP_MILLIS) {
            sweep.round_due_at = now.plus_millis(SWEEP_MILLIS);
            sweep.waiting = self.tenants_to_sweep()?;
            // Asked in this order: one that is imported is in the catalog when it is so no more.
            let imported = self.importing.lock().clone();
            copies::forget_deleted(&*self.store, &self.catalog, &imported)?;
        }
        if !is_due(sweep.next_due_at, now, SWEEP_PAUSE_MILLIS) {
            return Ok(());
        }
        let Some(name) = sweep.waiting.pop_front() else { return Ok(()) };
        sweep.next_due_at = now.plus_millis(SWEEP_PAUSE_MILLIS);
        let Some(tenant) = self.catalog.tenant(&name)? else { return Ok(()) };
        let collection = self.open(&tenant)?;
        self.know_sources(&name, &collection)?;
        let expired = self.remove_expired_memories(&collection)?;
        if expired > 0 {
            tracing::info!(tenant = %name, expired, "expired memories removed");
            self.maintenance.wake(&collection);
        }
        self.expire_other(&collection)?;
        let deleted = self.sweep_originals(&collection)?;
        copies::forget_originals(&*self.store, &self.catalog, &collection)?;
        if deleted > 0 {
            tracing::info!(tenant = %name, deleted, "originals without a source deleted");
        }
        Ok(())
    }

    /// All tenants; of those in a bucket the open ones, since opening one fetches it whole, and
    /// those whose sources the catalog does not know yet.
    fn tenants_to_sweep(&self) -> Result<VecDeque<TenantId>, IngestError> {
        let mut tenants = self.catalog.tenants()?;
        if self.store.is_shared() {
            let not_known = self.catalog.tenants_not_known()?;
            tenants.retain(|tenant| {
                self.registry.find(tenant.collection).is_some() || not_known.contains(&tenant.id)
            });
        }
        Ok(tenants.into_iter().map(|tenant| tenant.id).collect())
    }

    /// Tells the catalog of the sources of a tenant that was imported, is of an earlier release, or
    /// of a rebuilt catalog.
    pub(super) fn know_sources(
        &self,
        name: &TenantId,
        collection: &Collection,
    ) -> Result<(), IngestError> {
        if !self.catalog.tenants_not_known()?.contains(name) {
            return Ok(());
        }
        let snapshot = collection.snapshot();
        let lost = snapshot.damaged.iter().flat_map(|segment| segment.lost());
        let entry = |record: &SourceRecord| {
            let bytes = (record.kind != SourceKind::Memory).then_some(record.size_bytes);
            (record.sub_tenant.clone(), record.id.clone(), record.sequence, bytes)
        };
        let mut known: Vec<_> = lost.map(entry).collect();
        for found in snapshot.all_sources() {
            let record = found.record().map_err(CollectionError::from)?;
            known.push(entry(&record));
        }
        for part in known.chunks(KNOWN_PER_STEP) {
            self.catalog.add_known(collection.id(), part.to_vec())?;
        }
        match snapshot.unknown_segments() {
            0 => Ok(self.catalog.all_known(collection.id())?),
            _ => Ok(()),
        }
    }

    /// Deletes originals that neither a visible source nor a job refers to: a crash between storing
    /// one and writing its job leaves such. Returns their number. A process that was succeeded
    /// knows nothing of its successor's uploads, and deletes nothing.
    ///
    /// # Errors
    /// Errors of the disk or the catalog.
    pub fn sweep_originals(&self, collection: &Collection) -> Result<usize, IngestError> {
        let store = &*self.store;
        let found = store.list(&uploads::prefix(collection.id())).map_err(CollectionError::from)?;
        let horizon = self.clock.now().0.saturating_sub(ORPHAN_MILLIS);
        let is_old = |key: &lodestone_io::store::Key| {
            uploads::uploaded_at(key).is_some_and(|time| time.0 < horizon)
        };
        let old: Vec<_> = found.into_iter().filter(is_old).collect();
        if old.is_empty() {
            return Ok(0);
        }
        let referred = copies::referred_originals(&self.catalog, collection)?;
        let Some(referred) = referred else { return Ok(0) };
        let orphans: Vec<_> = old.iter().filter(|key| !referred.contains(key.as_str())).collect();
        // Asked after the listing: all that is in it was put before any successor came.
        if orphans.is_empty() || self.catalog.check_fence()? {
            return Ok(0);
        }
        let mut deleted = 0;
        for orphan in orphans {
            if self.stopping.is_set() {
                break;
            }
            store.delete(orphan).map_err(CollectionError::from)?;
            deleted += 1;
        }
        Ok(deleted)
    }

    /// Has the files of deleted tenants removed in the background.
    pub fn clear_deleted_tenants(&self) {
        self.maintenance.has_deleted_tenants.store(true, Ordering::SeqCst);
        self.maintenance.interrupt();
    }
}
