//! Bounds on the operations that run at once and on those that wait.
//!
//! ```text
//! operation -> queue of its owner (503 where it is full) -> permit -> handler
//! ```
//! Reads and writes have permits of their own: uploads that wait for the disk never keep a search
//! waiting. Without the bound every further request would take a thread and the memory of its
//! answer, and all would end late instead of some at once.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::fair_queue::{FairQueue, RunPermit};
use crate::rate::RateLimiter;
use lodestone_engine::Spills;
use lodestone_engine::ingest::MemoryBudget;
use lodestone_types::{RequestContext, Role, TenantId};

/// Bounds of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// Operations that run at once, in each lane.
    pub running_max: usize,
    /// Operations that wait for a run permit, in each lane.
    pub waiting_max: usize,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self { running_max: 64, waiting_max: 256 }
    }
}

/// The permits of a server.
#[derive(Debug)]
pub struct Admission {
    reads: FairQueue<Owner>,
    writes: FairQueue<Owner>,
}

/// The owner of a request in the fair queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The tenant that it is about.
    Tenant(TenantId),
    /// The key, by its id, where no tenant is named.
    Key(Arc<str>),
}

/// The right to run; ends when dropped. It travels with the call into the blocking work, which
/// goes on when the client has left.
#[derive(Debug)]
pub struct Admitted(Mutex<Option<RunPermit<Owner>>>);

impl Admitted {
    /// Returns the permit early, for a call that only waits from here on.
    pub fn give_back(&self) {
        self.0.lock().take();
    }
}

/// The resources that operations share, with their bounds.
#[derive(Debug)]
pub struct Gate {
    /// Rates of keys; `None` where there is no limit.
    pub limiter: Option<RateLimiter>,
    /// Permits to run.
    pub admission: Admission,
    /// Files of large requests and answers.
    pub spills: Arc<Spills>,
    /// The memory that inputs and answers draw from.
    pub memory: Arc<MemoryBudget>,
    /// Places to wait for memory.
    pub memory_waits: Semaphore,
    /// Places to look a key up that is not in memory.
    pub key_lookups: Arc<Semaphore>,
}

/// Keys that are looked up at once: half of the connections to the catalog.
pub const KEY_LOOKUPS_MAX: usize = 2;

/// Requests that wait for memory at once. Each holds one of the 512 threads (tokio's default) on
/// which all work is done, and has no slot yet.
pub const MEMORY_WAITS_MAX: usize = 64;

impl Gate {
    /// Counts one request of a key.
    ///
    /// # Errors
    /// 429 where the key is above its rate.
    pub fn count(&self, key_id: &Arc<str>) -> Result<(), ApiError> {
        self.limiter.as_ref().map_or(Ok(()), |limiter| limiter.take(key_id, Instant::now()))
    }
}

impl Admission {
    /// Empty lanes.
    pub fn new(settings: AdmissionSettings) -> Self {
        let AdmissionSettings { running_max, waiting_max } = settings;
        let lane = || FairQueue::new(running_max, waiting_max);
        Self { reads: lane(), writes: lane() }
    }

    /// Waits for a permit in the lane of `role`.
    ///
    /// # Errors
    /// 503 where the queue is full, and no other owner has more that wait.
    pub async fn enter(&self, role: Role, owner: Owner) -> Result<Admitted, ApiError> {
        let lane = if role == Role::Read { &self.reads } else { &self.writes };
        let permit = lane.enter(&RequestContext::default(), owner).await?;
        Ok(Admitted(Mutex::new(Some(permit))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn key(id: &str) -> Owner {
        Owner::Key(id.into())
    }

    #[tokio::test]
    async fn one_runs_one_waits_one_is_refused() {
        let settings = AdmissionSettings { running_max: 1, waiting_max: 1 };
        let admission = Admission::new(settings);
        let running = admission.enter(Role::Read, key("a")).await.unwrap();
        let mut waiting = Box::pin(admission.enter(Role::Read, key("a")));
        assert!((&mut waiting).now_or_never().is_none());
        let refused = admission.enter(Role::Read, key("a")).await.unwrap_err().into_response("r");
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &http::HeaderValue::from_static("1"))
        );
        drop(admission.enter(Role::Write, key("a")).await.unwrap());
        drop(running);
        drop(waiting.await.unwrap());
        drop(admission.enter(Role::Read, key("a")).await.unwrap());
    }

    #[tokio::test]
    async fn a_flood_of_one_owner_takes_no_place_of_another() {
        let settings = AdmissionSettings { running_max: 1, waiting_max: 2 };
        let admission = Admission::new(settings);
        let running = admission.enter(Role::Read, key("a")).await.unwrap();
        let mut flood = [(); 2].map(|()| Box::pin(admission.enter(Role::Read, key("a"))));
        for one in &mut flood {
            assert!(one.now_or_never().is_none());
        }
        let mut other = Box::pin(admission.enter(Role::Read, key("b")));
        assert!((&mut other).now_or_never().is_none(), "waits, and is not refused");
        let [first, last] = flood;
        assert!(last.now_or_never().is_some_and(|refused| refused.is_err()));
        drop(running);
        drop(first.await.unwrap());
        drop(other.await.unwrap());
    }
}
