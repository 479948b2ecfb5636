//! Tenants whose embedding model is being changed, and those that were changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::ingest::Stopping;
use crate::ingest::maintenance::ROUND;
use lodestone_catalog::Tenant;
use lodestone_storage::collection::{Collection, OtherVectors};
use lodestone_types::{CollectionId, JobStatus, Timestamp};

/// The change of the model of one tenant. What must survive a restart is in the tenant's manifest:
/// the model, the finished pieces, and whether they are kept or wanted.
#[derive(Debug, Clone)]
pub struct ReembedRun {
    /// The tenant.
    pub tenant: Arc<Tenant>,
    /// Its id on the wire.
    pub job: Uuid,
    /// Fingerprint of the new model.
    pub to: String,
    /// `queued`, `in_progress`, `success` or `errored`.
    pub status: JobStatus,
    /// Chunks that have their new vector.
    pub chunks_done: u64,
    /// Chunks in all.
    pub chunks: u64,
    /// Reason of `errored`, or for which it waits.
    pub message: String,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// When it was first worked on since the start of the server.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Held while there is work, so that it stays open.
    collection: Option<Arc<Collection>>,
}

#[derive(Debug, Default)]
struct State {
    runs: BTreeMap<CollectionId, ReembedRun>,
    /// Collection that is re-embedded now.
    working: Option<CollectionId>,
    /// Collection that was worked on last: others come first.
    last: Option<CollectionId>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct ReembedRuns {
    state: Mutex<State>,
    woken: Condvar,
}

impl ReembedRuns {
    /// Notes what the manifest of a collection says.
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

    /// The next collection with work, and its tenant; tenants take turns. `None` after a while
    /// without any. [`Self::end`] follows.
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

    /// Changes what is told of a collection.
    pub(super) fn update(&self, id: CollectionId, change: impl FnOnce(&mut ReembedRun)) {
        if let Some(run) = self.state.lock().runs.get_mut(&id) {
            change(run);
            if run.status.is_settled() {
                run.collection = None;
            }
        }
    }

    /// Forgets a collection. Returns whether nobody works on it.
    pub(super) fn forget(&self, id: CollectionId) -> bool {
        let mut state = self.state.lock();
        state.runs.remove(&id);
        state.working != Some(id)
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<ReembedRun> {
        self.state.lock().runs.values().cloned().collect()
    }

    /// Ends the wait of the thread.
    pub(super) fn interrupt(&self) {
        let _state = self.state.lock();
        self.woken.notify_all();
    }
}
