//! Bounds on the number of operations that run and that wait.
//!
//! ```text
//! operation -> queue of its owner (503 if full) -> permit -> handler
//! ```
//! Reads and writes have separate permits, so that uploads waiting for the disk never hold up a
//! search. An owner gets a permit only while it holds fewer than are free, so that requests that
//! wait for one collection never hold them all. Without these bounds, every additional request
//! would take a thread and memory for its response, and under overload all requests would finish
//! late instead of some on time.

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

/// Bounds of each lane: the reads and the writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// Maximum number of operations running at once, per lane.
    pub running_max: usize,
    /// Maximum number of operations waiting for a permit, per lane.
    pub waiting_max: usize,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self { running_max: 64, waiting_max: 256 }
    }
}

/// The lanes of a server, with their permits.
#[derive(Debug)]
pub struct Admission {
    reads: FairQueue<Owner>,
    writes: FairQueue<Owner>,
}

/// The party that a request is queued under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The tenant that the request concerns.
    Tenant(TenantId),
    /// The id of the API key, if the request names no tenant.
    Key(Arc<str>),
}

/// Permission to run, released when dropped. It travels with the call into the blocking work, which
/// continues even after the client has disconnected.
#[derive(Debug)]
pub struct Admitted(Mutex<Option<RunPermit<Owner>>>);

impl Admitted {
    /// Releases the permit early, for a call that will only wait from here on.
    pub fn give_back(&self) {
        self.0.lock().take();
    }
}

/// Bounded resources that all operations share.
#[derive(Debug)]
pub struct Gate {
    /// Per-key rate limits; `None` if there are none.
    pub limiter: Option<RateLimiter>,
    /// The lanes with their permits.
    pub admission: Admission,
    /// Spill files for large requests and responses.
    pub spills: Arc<Spills>,
    /// Memory budget for request inputs and responses.
    pub memory: Arc<MemoryBudget>,
    /// Limits how many requests wait for memory.
    pub memory_waits: Semaphore,
    /// Limits how many keys that are not cached are looked up at once.
    pub key_lookups: Arc<Semaphore>,
}

/// Maximum number of concurrent key look-ups: half of the connections to the catalog.
pub const KEY_LOOKUPS_MAX: usize = 2;

/// Maximum number of requests waiting for memory. Each occupies one of the 512 blocking threads
/// (tokio's default) and does not hold a permit yet.
pub const MEMORY_WAITS_MAX: usize = 64;

impl Gate {
    /// Counts one request against the key's rate limit.
    ///
    /// # Errors
    /// 429 if the key exceeds its rate.
    pub fn count(&self, key_id: &Arc<str>) -> Result<(), ApiError> {
        self.limiter.as_ref().map_or(Ok(()), |limiter| limiter.take(key_id, Instant::now()))
    }
}

impl Admission {
    /// Creates the two lanes, with all permits free.
    pub fn new(settings: AdmissionSettings) -> Self {
        let AdmissionSettings { running_max, waiting_max } = settings;
        let lane = || FairQueue::keeping_free(running_max, waiting_max);
        Self { reads: lane(), writes: lane() }
    }

    /// Waits for a permit in the lane that `role` belongs to.
    ///
    /// # Errors
    /// 503 if the queue is full and this owner has the most requests waiting.
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
