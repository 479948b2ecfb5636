//! Bounds on the operations that run at once and that wait for their turn.
//!
//! ```text
//! operation -> queue permit (running + waiting, else 503) -> run permit -> handler
//! ```
//! Reads and writes have permits of their own: uploads that wait for the disk never keep a search
//! waiting. Without the bound every further request would take a thread and the memory of its
//! answer, and all would end late instead of some at once.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, Condition};
use crate::rate::RateLimiter;
use lodestone_engine::Spills;
use lodestone_engine::ingest::MemoryBudget;
use lodestone_types::Role;

/// Seconds after which a refused client should try again; a queue of this length is done by then.
const RETRY_SECONDS: u32 = 1;

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
    reads: Lane,
    writes: Lane,
}

#[derive(Debug)]
struct Lane {
    queue: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

/// The right to run; returns its permits when dropped. It travels with the call into the
/// blocking work, which goes on when the client has left.
#[derive(Debug)]
pub struct Admitted(Mutex<Option<Permits>>);

#[derive(Debug)]
struct Permits {
    _run: OwnedSemaphorePermit,
    _queue: OwnedSemaphorePermit,
}

impl Admitted {
    /// Returns the permits early, for a call that only waits from here on.
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
}

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
        let lane = || Lane {
            queue: Arc::new(Semaphore::new(running_max + waiting_max)),
            running: Arc::new(Semaphore::new(running_max)),
        };
        Self { reads: lane(), writes: lane() }
    }

    /// Waits for a run permit in the lane of `role`.
    ///
    /// # Errors
    /// 503 where the queue is full.
    pub async fn enter(&self, role: Role) -> Result<Admitted, ApiError> {
        let lane = if role == Role::Read { &self.reads } else { &self.writes };
        let queue = Arc::clone(&lane.queue).try_acquire_owned().map_err(|_| {
            let message = "too many requests are running and waiting";
            ApiError::new(Condition::Unavailable, "overloaded", message)
                .with_retry_after(RETRY_SECONDS)
        })?;
        let run = Arc::clone(&lane.running).acquire_owned().await;
        let run = run.expect("the semaphore is never closed");
        Ok(Admitted(Mutex::new(Some(Permits { _run: run, _queue: queue }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn one_runs_one_waits_one_is_refused() {
        let settings = AdmissionSettings { running_max: 1, waiting_max: 1 };
        let admission = Admission::new(settings);
        let running = admission.enter(Role::Read).await.unwrap();
        let mut waiting = Box::pin(admission.enter(Role::Read));
        assert!((&mut waiting).now_or_never().is_none());
        let refused = admission.enter(Role::Read).await.unwrap_err().into_response("r");
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &http::HeaderValue::from_static("1"))
        );
        drop(admission.enter(Role::Write).await.unwrap());
        drop(running);
        drop(waiting.await.unwrap());
        drop(admission.enter(Role::Read).await.unwrap());
    }

    #[tokio::test]
    async fn one_that_gives_up_leaves_its_place() {
        let settings = AdmissionSettings { running_max: 1, waiting_max: 1 };
        let admission = Admission::new(settings);
        let running = admission.enter(Role::Admin).await.unwrap();
        let mut waiting = Box::pin(admission.enter(Role::Write));
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        let mut next = Box::pin(admission.enter(Role::Write));
        assert!((&mut next).now_or_never().is_none(), "waits, and is not refused");
        drop(running);
        drop(next.await.unwrap());
    }
}
