//! The tenants whose embedding model is being changed or was changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::ingest::maintenance::ROUND;
use crate::ingest::{Ingest, Stopping};
use lodestone_catalog::Tenant;
use lodestone_storage::collection::{Collection, OtherVectors};
use lodestone_types::{CollectionId, JobStatus, Timestamp};

/// The change of model of one tenant. Whatever must survive a restart is in the tenant's manifest:
/// the model, the finished pieces, and whether these are wanted or kept.
#[derive(Debug, Clone)]
pub struct ReembedRun {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// Id of the change, shown as a job.
    pub job: Uuid,
    /// Fingerprint of the new model.
    pub to: String,
    /// Queued, in progress, successful or failed.
    pub status: JobStatus,
    /// Number of chunks that have their new vector.
    pub chunks_done: u64,
    /// Number of chunks in total.
    pub chunks: u64,
    /// The reason for a failure or for waiting.
    pub message: String,
    /// When the change was requested.
    pub asked_at: Timestamp,
    /// When work on it first began since the start of the server.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Held while there is work, so that the collection stays open.
    collection: Option<Arc<Collection>>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<CollectionId, ReembedRun>,
    /// The collection being re-embedded.
    working: Option<CollectionId>,
    /// The collection that had the last turn; others come first.
    last: Option<CollectionId>,
}

/// All changes of model that this process knows.
#[derive(Debug, Default)]
pub(super) struct ReembedRuns {
    state: Mutex<State>,
    woken: Condvar,
}

impl ReembedRuns {
    /// Registers the change that a collection's manifest describes, replacing an earlier entry.
    pub(super) fn note(
        &self,
        tenant: &Arc<Tenant>,
        collection: &Arc<Collection>,
        other: &OtherVectors,
    ) {
        let snapshot = collection.snapshot();
        let mut run = ReembedRun {
            tenant: Arc::clone(tenant),
            job: other.job,
            to: other.embedding.clone(),
            status: JobStatus::Queued,
            chunks_done: 0,
            chunks: snapshot.rows(),
            message: String::new(),
            asked_at: Timestamp(other.since),
            started_at: None,
            ended_at: None,
            collection: Some(Arc::clone(collection)),
        };
        if !other.is_wanted {
            run.status = JobStatus::Success;
            run.to = snapshot.manifest.model().unwrap_or_default().to_owned();
            (run.chunks_done, run.ended_at) = (run.chunks, Some(run.asked_at));
            run.collection = None;
        }
        self.state.lock().runs.insert(tenant.collection, run);
        self.woken.notify_all();
    }

    /// Waits up to [`ROUND`] for a collection with work, and returns it with its tenant. Tenants
    /// take turns. The caller must call [`Self::end`] afterwards.
    pub(super) fn take(&self, stopping: &Stopping) -> Option<(Arc<Tenant>, Arc<Collection>)> {
        let mut state = self.state.lock();
        let State { runs, last, .. } = &*state;
        let open = |run: &ReembedRun| run.collection.is_some() && !run.status.is_settled();
        let after = |id: &CollectionId| last.is_none_or(|last| *id > last);
        let waiting = || runs.iter().filter(|(_, run)| open(run)).map(|(id, _)| *id);
        let Some(id) = waiting().find(after).or_else(|| waiting().next()) else {
            if !stopping.is_set() {
                self.woken.wait_for(&mut state, ROUND);
            }
            return None;
        };
        (state.working, state.last) = (Some(id), Some(id));
        let run = state.runs.get_mut(&id)?;
        Some((Arc::clone(&run.tenant), run.collection.clone()?))
    }

    /// Ends the turn that [`Self::take`] began.
    pub(super) fn end(&self) {
        self.state.lock().working = None;
    }

    /// Updates the entry of a collection, if there is one.
    pub(super) fn update(&self, id: CollectionId, change: impl FnOnce(&mut ReembedRun)) {
        if let Some(run) = self.state.lock().runs.get_mut(&id) {
            change(run);
            if run.status.is_settled() {
                run.collection = None;
            }
        }
    }

    /// Drops the entry of a collection; returns whether no step is in progress on it.
    pub(super) fn forget(&self, id: CollectionId) -> bool {
        let mut state = self.state.lock();
        state.runs.remove(&id);
        state.working != Some(id)
    }

    /// All entries.
    pub(super) fn all(&self) -> Vec<ReembedRun> {
        self.state.lock().runs.values().cloned().collect()
    }

    /// Wakes the waiting thread.
    pub(super) fn interrupt(&self) {
        let _state = self.state.lock();
        self.woken.notify_all();
    }
}

impl Ingest {
    /// Registers the metrics of changes of model.
    pub fn enter_reembed_meters(&self, registry: &mut lodestone_metrics::Registry) {
        let help = "Chunks re-embedded to change the model of their tenants";
        registry.enter("reembedded_chunks_total", help, &self.reembed_counts);
    }

    /// Registers the change that a collection's manifest describes, unless it is registered
    /// already.
    pub fn note_reembed(&self, tenant: &Arc<Tenant>, collection: &Arc<Collection>) {
        let is_noted = |run: &ReembedRun| run.tenant.collection == collection.id();
        if let Some(other) = &collection.snapshot().manifest.other
            && !self.reembeds.all().iter().any(is_noted)
        {
            self.reembeds.note(tenant, collection, other);
        }
    }

    /// The changes of model since the start, and the unfinished ones from before.
    pub fn reembed_runs(&self) -> Vec<ReembedRun> {
        self.reembeds.all()
    }
}
