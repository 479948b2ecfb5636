//! Watchers of individual jobs. A watcher is woken only by changes of its own job: of the state,
//! after its commit, and of the stage, which is in memory only.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Catalog;
use super::error::Result;
use super::listing::select;
use crate::job::JobRow;
use lodestone_types::Sequence;

/// Callback for each change; must not block.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// The watchers registered in a catalog.
#[derive(Default)]
pub(super) struct JobWatchers(Mutex<HashMap<Sequence, Vec<Wake>>>);

impl JobWatchers {
    /// Wakes the watchers of these jobs. Without watchers this costs one uncontended lock.
    pub(super) fn wake<'a>(&self, sequences: impl IntoIterator<Item = &'a Sequence>) {
        let watched = self.0.lock();
        if watched.is_empty() {
            return;
        }
        for sequence in sequences {
            watched.get(sequence).into_iter().flatten().for_each(|wake| wake());
        }
    }
}

/// A registered watcher; dropping it unregisters it.
pub struct JobWatch {
    catalog: Catalog,
    sequence: Sequence,
    wake: Wake,
}

impl Catalog {
    /// Looks up a job by id, in any state.
    pub fn job(&self, job_id: &str) -> Result<Option<JobRow>> {
        let rest = "WHERE j.job_id = ?1 AND t.deleting = 0";
        let found = self.read(|connection| select(connection, rest, [job_id]))?.pop();
        Ok(found.map(|row| self.staged(row)))
    }

    /// Calls `wake` on every change of a job from now on: claimed, new stage, new chunk counts,
    /// ended, requeued, removed.
    pub fn watch_job(&self, sequence: Sequence, wake: Wake) -> JobWatch {
        let mut watched = self.inner.job_watchers.0.lock();
        watched.entry(sequence).or_default().push(Arc::clone(&wake));
        drop(watched);
        JobWatch { catalog: self.clone(), sequence, wake }
    }
}

impl Drop for JobWatch {
    fn drop(&mut self) {
        let mut watched = self.catalog.inner.job_watchers.0.lock();
        if let Some(wakes) = watched.get_mut(&self.sequence) {
            wakes.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
            if wakes.is_empty() {
                watched.remove(&self.sequence);
            }
        }
    }
}

impl fmt::Debug for JobWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobWatch").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
