//! Weights that are loaded on first use and unloaded when idle.
//!
//! The queue and its workers stay. A batch that finds no weights loads them on its worker while the
//! others wait. To a caller this looks like a slow batch; it waits until its request is over.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::forward::{BatchPolicy, DeviceCounts, Forward};
use crate::{EmbedError, Engine};

/// Loads the weights.
pub(super) type Load = dyn Fn() -> Result<Arc<dyn Forward>, EmbedError> + Send + Sync;

/// A forward pass whose weights may be unloaded.
pub(super) struct OnDemand {
    load: Box<Load>,
    /// Time to wait after a failed load before trying again.
    again: Duration,
    state: Mutex<State>,
    /// Serialises loading.
    loading: Mutex<()>,
}

struct State {
    forward: Option<Arc<dyn Forward>>,
    /// Batches in progress.
    batches: usize,
    last_use: Instant,
    /// Time and cause of the last failed load.
    failed: Option<(Instant, EmbedError)>,
    /// Counters of weights that have been unloaded.
    before: DeviceCounts,
}

impl fmt::Debug for OnDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand").field("is_loaded", &self.idle_for().is_some()).finish()
    }
}

/// Guard of one batch in progress.
struct Batch<'a>(&'a OnDemand);

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.batches -= 1;
        state.last_use = Instant::now();
    }
}

impl OnDemand {
    /// Creates it without weights; the first batch loads them. For `again` after a failure, every
    /// batch gets that error, because each attempt reads whole files.
    pub fn new(load: Box<Load>, again: Duration) -> Self {
        let (forward, failed, before) = Default::default();
        let state = State { forward, batches: 0, last_use: Instant::now(), failed, before };
        Self { load, again, state: Mutex::new(state), loading: Mutex::default() }
    }

    /// Returns the time since the last batch, 0 during one; `None` if the weights are not loaded.
    pub fn idle_for(&self) -> Option<Duration> {
        let state = self.state.lock();
        state.forward.as_ref()?;
        Some(if state.batches > 0 { Duration::ZERO } else { state.last_use.elapsed() })
    }

    /// Drops the weights if no batch used them for `idle`. Returns whether it dropped any.
    pub fn unload(&self, idle: Duration) -> bool {
        let mut state = self.state.lock();
        if state.batches > 0 || state.last_use.elapsed() < idle {
            return false;
        }
        let Some(forward) = state.forward.take() else { return false };
        let DeviceCounts { batches, fallbacks } = forward.device_counts();
        state.before.batches += batches;
        state.before.fallbacks += fallbacks;
        true
    }

    /// Returns the weights for one batch, loading them if necessary.
    fn enter(&self) -> Result<(Arc<dyn Forward>, Batch<'_>), EmbedError> {
        if let Some(entered) = self.present() {
            return Ok(entered);
        }
        let _one_at_a_time = self.loading.lock();
        if let Some(entered) = self.present() {
            return Ok(entered);
        }
        if let Some((at, error)) = &self.state.lock().failed
            && at.elapsed() < self.again
        {
            return Err(error.clone());
        }
        let loaded = on_own_thread(&*self.load);
        let mut state = self.state.lock();
        state.failed = loaded.as_ref().err().map(|error| (Instant::now(), error.clone()));
        let loaded = loaded?;
        state.forward = Some(Arc::clone(&loaded));
        state.batches += 1;
        Ok((loaded, Batch(self)))
    }

    fn present(&self) -> Option<(Arc<dyn Forward>, Batch<'_>)> {
        let mut state = self.state.lock();
        let forward = state.forward.clone()?;
        state.batches += 1;
        Some((forward, Batch(self)))
    }

    fn loaded(&self) -> Option<Arc<dyn Forward>> {
        self.state.lock().forward.clone()
    }
}

/// Loads weights on a temporary thread. Allocators retain memory that one thread allocated and
/// another freed until the first allocates again, which an idle worker does not do: mimalloc
/// retained 15 MiB of an unloaded model.
fn on_own_thread(load: &Load) -> Result<Arc<dyn Forward>, EmbedError> {
    let loaded = thread::scope(|scope| scope.spawn(load).join());
    loaded.unwrap_or_else(|panic| resume_unwind(panic))
}

impl Forward for OnDemand {
    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (forward, _batch) = self.enter()?;
        forward.forward(batch, pause)
    }

    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        self.loaded().map_or(usual, |forward| forward.policy(usual))
    }

    fn engine(&self) -> Engine {
        self.loaded().map_or(Engine::Cpu, |forward| forward.engine())
    }

    fn device_counts(&self) -> DeviceCounts {
        let state = self.state.lock();
        let now = state.forward.as_ref().map(|forward| forward.device_counts());
        let (now, before) = (now.unwrap_or_default(), state.before);
        DeviceCounts {
            batches: before.batches + now.batches,
            fallbacks: before.fallbacks + now.fallbacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn weights_that_cannot_be_read_are_not_read_for_every_batch() {
        let tries = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&tries);
        let load = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let file = "model.safetensors".to_owned();
            Err(EmbedError::Malformed { file, problem: "another one".to_owned() })
        };
        let again = Duration::from_secs(600);
        let on_demand = OnDemand::new(Box::new(load), again);
        for _ in 0..9 {
            let error = on_demand.forward(&[&[1]], &mut || {}).unwrap_err();
            assert!(error.to_string().contains("another one"), "{error}");
        }
        assert_eq!(tries.load(Ordering::SeqCst), 1);
        let long_ago = Instant::now().checked_sub(again).unwrap();
        on_demand.state.lock().failed.as_mut().unwrap().0 = long_ago;
        assert!(on_demand.forward(&[&[1]], &mut || {}).is_err());
        assert_eq!(tries.load(Ordering::SeqCst), 2);
    }
}
