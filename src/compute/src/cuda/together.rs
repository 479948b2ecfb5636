//! Queries of concurrent requests over the same rows, answered in one run.
//!
//! ```text
//! nobody runs          -> run at once: a single asker never waits
//! somebody runs        -> open a batch and wait until the rows are free, the batch is full, or
//!                         its deadline is over; then run all of it
//! a batch is open      -> join it, wait for the answer
//! ```
//! A run over many queries takes hardly longer than one over few, as long as reading the rows is
//! what takes the time. So it is for searches through lists too: a list that several queries chose
//! is read once. The one who opened a batch runs it in its own thread; a panic there becomes an
//! error for all who joined.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::cuda::DeviceError;

/// A query in the form that the device takes; owned, so that it can travel to another thread.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceQuery {
    /// Codes, padded like the rows.
    pub codes: Vec<i8>,
    /// Code times scale is a component of the normalised query.
    pub scale: f32,
    /// The bound of a row without residual.
    pub bound_constant: f32,
    /// What one unit of residual adds to the bound.
    pub bound_per_residual: f32,
}

/// Rows that may be among the best of one query, with their estimates, in no order; `None` if they
/// are more than the device has room to name.
pub type Found = Option<Vec<(u32, f32)>>;

/// How long and how much to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TogetherLimits {
    /// The longest that an asker waits before its batch runs.
    pub wait_max: Duration,
    /// Queries of one run.
    pub queries_max: usize,
}

impl Default for TogetherLimits {
    /// An estimate: 200 microseconds are about what two runs over 1,000,000 rows take.
    fn default() -> Self {
        Self { wait_max: Duration::from_micros(200), queries_max: 1024 }
    }
}

/// Time and waiting; a test stands in for it.
pub trait Timer: fmt::Debug + Send + Sync {
    /// Time since some moment.
    fn now(&self) -> Duration;

    /// How long to sleep, unless woken, so that it is `until`; `None` sleeps until woken.
    fn sleep(&self, until: Duration) -> Option<Duration>;
}

/// The machine's own time.
#[derive(Debug)]
pub struct MachineTimer(Instant);

impl Default for MachineTimer {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Timer for MachineTimer {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, until: Duration) -> Option<Duration> {
        Some(until.saturating_sub(self.now()))
    }
}

/// Collects queries `Q` that agree in a `K`: rows, and whatever else one run has in common.
#[derive(Debug)]
pub struct Together<K, Q> {
    limits: TogetherLimits,
    timer: Arc<dyn Timer>,
    lanes: Mutex<Lanes<K, Q>>,
    changed: Condvar,
}

/// What goes on.
type Lanes<K, Q> = BTreeMap<K, Lane<Q>>;

#[derive(Debug)]
struct Lane<Q> {
    running: usize,
    open: Option<Arc<Mutex<Batch<Q>>>>,
}

impl<Q> Default for Lane<Q> {
    fn default() -> Self {
        Self { running: 0, open: None }
    }
}

/// Queries that run together. Locked only while the lanes are.
#[derive(Debug)]
struct Batch<Q> {
    queries: Vec<Q>,
    k: usize,
    askers: usize,
    outcome: Option<Result<Vec<Found>, DeviceError>>,
}

/// Queries of one run, and how many requests they come from.
#[derive(Debug)]
pub struct Run<Q> {
    /// The queries of all requests.
    pub queries: Vec<Q>,
    /// The largest k of any of them.
    pub k: usize,
    /// Requests.
    pub askers: usize,
}

impl<K: Clone + Ord, Q> Together<K, Q> {
    /// Nothing collected yet.
    pub fn new(limits: TogetherLimits, timer: Arc<dyn Timer>) -> Self {
        Self { limits, timer, lanes: Mutex::default(), changed: Condvar::new() }
    }

    /// What `run` finds for `queries` of the kind `key`, perhaps together with the queries of
    /// others. `run` answers every query it is given, in order, for at least the `k` it is given;
    /// it may be another caller's.
    ///
    /// # Errors
    /// What `run` returned.
    pub fn ask(
        &self,
        key: K,
        queries: Vec<Q>,
        k: usize,
        run: impl FnOnce(Run<Q>) -> Result<Vec<Found>, DeviceError>,
    ) -> Result<Vec<Found>, DeviceError> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.entry(key.clone()).or_default();
        let count = queries.len();
        if let Some(batch) = lane.open.clone() {
            let mut joined = batch.lock();
            if joined.queries.len() + count <= self.limits.queries_max {
                let first = joined.queries.len();
                joined.queries.extend(queries);
                joined.k = joined.k.max(k);
                joined.askers += 1;
                drop(joined);
                self.changed.notify_all();
                return self.answer_of(lanes, &batch, first, count);
            }
        }
        let is_busy = lane.running > 0;
        let batch = Batch { queries, k, askers: 1, outcome: None };
        let batch = Arc::new(Mutex::new(batch));
        if is_busy && count < self.limits.queries_max && lane.open.is_none() {
            lane.open = Some(Arc::clone(&batch));
            // Somebody may be watching for batches to open.
            self.changed.notify_all();
            self.collect(&mut lanes, &key, &batch);
        }
        lanes.entry(key.clone()).or_default().running += 1;
        let mut begun = batch.lock();
        let queries = std::mem::take(&mut begun.queries);
        let asked = Run { queries, k: begun.k, askers: begun.askers };
        drop(begun);
        drop(lanes);
        let mut running = Running { together: self, key, batch: &batch, outcome: None };
        let found = run(asked);
        running.outcome = Some(found);
        drop(running);
        self.answer_of(self.lanes.lock(), &batch, 0, count)
    }

    /// Waits until an open batch should run, and closes it.
    fn collect(
        &self,
        lanes: &mut MutexGuard<'_, Lanes<K, Q>>,
        key: &K,
        batch: &Arc<Mutex<Batch<Q>>>,
    ) {
        let until = self.timer.now() + self.limits.wait_max;
        loop {
            let is_free = lanes.get(key).is_none_or(|lane| lane.running == 0);
            let is_full = batch.lock().queries.len() >= self.limits.queries_max;
            if is_free || is_full || self.timer.now() >= until {
                break;
            }
            match self.timer.sleep(until) {
                Some(time) => _ = self.changed.wait_for(lanes, time),
                None => self.changed.wait(lanes),
            }
        }
        if let Some(lane) = lanes.get_mut(key) {
            lane.open = None;
        }
    }

    /// Waits for the outcome of a batch and takes the part of one asker.
    fn answer_of(
        &self,
        mut lanes: MutexGuard<'_, Lanes<K, Q>>,
        batch: &Mutex<Batch<Q>>,
        first: usize,
        count: usize,
    ) -> Result<Vec<Found>, DeviceError> {
        loop {
            let mut batch = batch.lock();
            match &mut batch.outcome {
                Some(Ok(found)) => {
                    let own = &mut found[first..first + count];
                    return Ok(own.iter_mut().map(std::mem::take).collect());
                }
                Some(Err(error)) => return Err(error.clone()),
                None => drop(batch),
            }
            self.changed.wait(&mut lanes);
        }
    }
}

/// A run under way. However it ends, those who wait for it hear of it.
struct Running<'a, K: Ord, Q> {
    together: &'a Together<K, Q>,
    key: K,
    batch: &'a Mutex<Batch<Q>>,
    outcome: Option<Result<Vec<Found>, DeviceError>>,
}

impl<K: Ord, Q> Drop for Running<'_, K, Q> {
    fn drop(&mut self) {
        let action = "answer";
        let reason = "the run of these queries panicked".to_owned();
        let outcome = self.outcome.take();
        let outcome = outcome.unwrap_or(Err(DeviceError::Refused { action, reason }));
        let mut lanes = self.together.lanes.lock();
        if let Some(lane) = lanes.get_mut(&self.key) {
            lane.running -= 1;
            if lane.running == 0 && lane.open.is_none() {
                lanes.remove(&self.key);
            }
        }
        self.batch.lock().outcome = Some(outcome);
        self.together.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::{Scope, ScopedJoinHandle};

    use super::*;

    /// Time that stands still until it is told to move.
    #[derive(Debug, Default)]
    struct Still(Mutex<Duration>);

    impl Timer for Still {
        fn now(&self) -> Duration {
            *self.0.lock()
        }

        fn sleep(&self, _: Duration) -> Option<Duration> {
            None
        }
    }

    fn query(scale: f32) -> DeviceQuery {
        DeviceQuery { codes: vec![], scale, bound_constant: 0.0, bound_per_residual: 0.0 }
    }

    fn row(row: u32, count: f32) -> Found {
        Some(vec![(row, count)])
    }

    /// Each query finds one row: its own scale. The estimate says how many ran together.
    fn echo(run: &Run<DeviceQuery>) -> Result<Vec<Found>, DeviceError> {
        let count = run.queries.len() as f32;
        Ok(run.queries.iter().map(|query| Some(vec![(query.scale as u32, count)])).collect())
    }

    type Answer = Result<Vec<Found>, DeviceError>;
    type Scans = Together<u128, DeviceQuery>;

    struct Bench<'a> {
        together: &'a Scans,
        begun: Sender<usize>,
    }

    impl<'a> Bench<'a> {
        /// An asker whose run tells that it began and ends when told to.
        fn held<'s>(
            &self,
            scope: &'s Scope<'s, 'a>,
            scales: &[f32],
        ) -> (ScopedJoinHandle<'s, Answer>, Sender<()>) {
            let (end, ended): (_, Receiver<()>) = channel();
            let (together, begun) = (self.together, self.begun.clone());
            let queries: Vec<_> = scales.iter().copied().map(query).collect();
            let asker = scope.spawn(move || {
                together.ask(1, queries, 3, |run| {
                    begun.send(run.queries.len()).unwrap();
                    ended.recv().unwrap();
                    echo(&run)
                })
            });
            (asker, end)
        }

        /// An asker whose run ends at once.
        fn quick<'s>(
            &self,
            scope: &'s Scope<'s, 'a>,
            scales: &[f32],
        ) -> ScopedJoinHandle<'s, Answer> {
            let (asker, end) = self.held(scope, scales);
            end.send(()).unwrap();
            asker
        }

        /// Waits until so many askers stand in the open batch.
        fn until_waiting(&self, askers: usize) {
            let mut lanes = self.together.lanes.lock();
            let waiting = |lanes: &Lanes<u128, DeviceQuery>| {
                let open = lanes.get(&1).and_then(|lane| lane.open.as_ref());
                open.map_or(0, |open| open.lock().askers)
            };
            while waiting(&lanes) < askers {
                self.together.changed.wait(&mut lanes);
            }
        }
    }

    fn with_bench(queries_max: usize, test: impl FnOnce(&Scans, &Still)) {
        let limits = TogetherLimits { wait_max: Duration::from_micros(200), queries_max };
        let still = Arc::new(Still::default());
        let together = Together::new(limits, Arc::clone(&still) as Arc<dyn Timer>);
        test(&together, &still);
        assert!(together.lanes.lock().is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_single_asker_never_waits() {
        with_bench(8, |together, _| {
            for _ in 0..3 {
                let found = together.ask(1, vec![query(5.0)], 3, |run| echo(&run));
                assert_eq!(found, Ok(vec![row(5, 1.0)]));
            }
        });
    }

    #[test]
    fn those_who_come_during_a_run_go_together_when_it_ends() {
        with_bench(8, |together, _| {
            let (begun, begins) = channel();
            let bench = Bench { together, begun };
            std::thread::scope(|scope| {
                let (first, end) = bench.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                let second = bench.quick(scope, &[2.0, 3.0]);
                bench.until_waiting(1);
                let third = bench.quick(scope, &[4.0]);
                bench.until_waiting(2);
                end.send(()).unwrap();
                assert_eq!(first.join().unwrap(), Ok(vec![row(1, 1.0)]));
                assert_eq!(second.join().unwrap(), Ok(vec![row(2, 3.0), row(3, 3.0)]));
                assert_eq!(third.join().unwrap(), Ok(vec![row(4, 3.0)]));
            });
        });
    }

    #[test]
    fn a_batch_runs_when_its_time_is_over_or_when_it_is_full() {
        with_bench(3, |together, still| {
            let (begun, begins) = channel();
            let bench = Bench { together, begun };
            std::thread::scope(|scope| {
                let (first, end) = bench.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                // Time is over.
                let late = bench.quick(scope, &[2.0]);
                bench.until_waiting(1);
                *still.0.lock() = Duration::from_micros(200);
                drop(together.lanes.lock());
                together.changed.notify_all();
                assert_eq!(late.join().unwrap(), Ok(vec![row(2, 1.0)]));
                // Full.
                let second = bench.quick(scope, &[3.0, 4.0]);
                bench.until_waiting(1);
                let third = bench.quick(scope, &[5.0]);
                assert_eq!(second.join().unwrap(), Ok(vec![row(3, 3.0), row(4, 3.0)]));
                assert_eq!(third.join().unwrap(), Ok(vec![row(5, 3.0)]));
                // One that has no room in an open batch runs beside it.
                let waiting = bench.quick(scope, &[6.0]);
                bench.until_waiting(1);
                let large = bench.quick(scope, &[7.0, 8.0, 9.0]);
                assert_eq!(large.join().unwrap().unwrap()[2], row(9, 3.0));
                end.send(()).unwrap();
                assert!(first.join().unwrap().is_ok() && waiting.join().unwrap().is_ok());
            });
        });
    }

    #[test]
    fn an_error_and_a_panic_reach_all_who_joined() {
        with_bench(8, |together, _| {
            let (begun, begins) = channel();
            let bench = Bench { together, begun };
            std::thread::scope(|scope| {
                let (first, end) = bench.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                let opener = scope.spawn(|| {
                    together.ask(1, vec![query(2.0)], 3, |_| panic!("on purpose: part of a test"))
                });
                bench.until_waiting(1);
                let joined = bench.quick(scope, &[3.0]);
                bench.until_waiting(2);
                end.send(()).unwrap();
                assert!(first.join().unwrap().is_ok());
                assert!(opener.join().is_err());
                assert!(matches!(joined.join().unwrap(), Err(DeviceError::Refused { .. })));
            });
            let lost = DeviceError::Lost { reason: "test".to_owned() };
            let failed = together.ask(1, vec![query(2.0)], 3, |_| Err(lost.clone()));
            assert_eq!(failed, Err(lost));
        });
    }
}
