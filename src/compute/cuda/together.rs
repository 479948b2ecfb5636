//! Queries of concurrent requests over the same rows, answered in one run.
//!
//! ```text
//! nobody runs          -> run at once: a single asker never waits
//! somebody runs        -> open a batch and wait until the rows are free, the batch is full, or
//!                         its deadline is over; then run all of it
//! a batch is open      -> join it, wait for the answer
//! ```
//! A run over many queries takes hardly longer than one over few, as long as reading the rows is
//! what takes the time. The one who opened a batch runs it in its own thread; a panic there
//! becomes an error for all who joined.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::compute::cuda::DeviceError;

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

    /// Waits until `changed` is notified or `until` has come.
    fn wait(&self, changed: &Condvar, lanes: &mut MutexGuard<'_, Lanes>, until: Duration);
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

    fn wait(&self, changed: &Condvar, lanes: &mut MutexGuard<'_, Lanes>, until: Duration) {
        changed.wait_for(lanes, until.saturating_sub(self.now()));
    }
}

/// Collects queries over the same rows.
#[derive(Debug)]
pub struct Together {
    limits: TogetherLimits,
    timer: Arc<dyn Timer>,
    lanes: Mutex<Lanes>,
    changed: Condvar,
}

/// What goes on, by rows.
#[derive(Debug, Default)]
pub struct Lanes(BTreeMap<u128, Lane>);

#[derive(Debug, Default)]
struct Lane {
    running: usize,
    open: Option<Arc<Mutex<Batch>>>,
}

/// Queries that run together. Locked only while the lanes are.
#[derive(Debug)]
struct Batch {
    queries: Vec<DeviceQuery>,
    k: usize,
    askers: usize,
    outcome: Option<Result<Vec<Found>, DeviceError>>,
}

/// Queries of one run, and how many requests they come from.
#[derive(Debug)]
pub struct Run {
    /// The queries of all requests.
    pub queries: Vec<DeviceQuery>,
    /// The largest k of any of them.
    pub k: usize,
    /// Requests.
    pub askers: usize,
}

impl Together {
    /// Nothing collected yet.
    pub fn new(limits: TogetherLimits, timer: Arc<dyn Timer>) -> Self {
        Self { limits, timer, lanes: Mutex::default(), changed: Condvar::new() }
    }

    /// What `run` finds for `queries` over the rows `key`, perhaps together with the queries of
    /// others. `run` answers every query it is given, in order, for at least the `k` it is given;
    /// it may be another caller's.
    ///
    /// # Errors
    /// What `run` returned.
    pub fn ask(
        &self,
        key: u128,
        queries: Vec<DeviceQuery>,
        k: usize,
        run: impl FnOnce(Run) -> Result<Vec<Found>, DeviceError>,
    ) -> Result<Vec<Found>, DeviceError> {
        let mut lanes = self.lanes.lock();
        let lane = lanes.0.entry(key).or_default();
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
            self.collect(&mut lanes, key, &batch);
        }
        lanes.0.entry(key).or_default().running += 1;
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
    fn collect(&self, lanes: &mut MutexGuard<'_, Lanes>, key: u128, batch: &Arc<Mutex<Batch>>) {
        let until = self.timer.now() + self.limits.wait_max;
        loop {
            let is_free = lanes.0.get(&key).is_none_or(|lane| lane.running == 0);
            let is_full = batch.lock().queries.len() >= self.limits.queries_max;
            if is_free || is_full || self.timer.now() >= until {
                break;
            }
            self.timer.wait(&self.changed, lanes, until);
        }
        if let Some(lane) = lanes.0.get_mut(&key) {
            lane.open = None;
        }
    }

    /// Waits for the outcome of a batch and takes the part of one asker.
    fn answer_of(
        &self,
        mut lanes: MutexGuard<'_, Lanes>,
        batch: &Mutex<Batch>,
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

    /// Requests that run or wait over the rows `key`: running batches, and askers of an open one.
    pub fn present(&self, key: u128) -> (usize, usize) {
        let lanes = self.lanes.lock();
        let lane = lanes.0.get(&key);
        lane.map_or((0, 0), |lane| {
            (lane.running, lane.open.as_ref().map_or(0, |open| open.lock().askers))
        })
    }

    /// Lets those who wait look at the time again.
    pub fn look_again(&self) {
        let _lanes = self.lanes.lock();
        self.changed.notify_all();
    }
}

/// A run under way. However it ends, those who wait for it hear of it.
struct Running<'a> {
    together: &'a Together,
    key: u128,
    batch: &'a Mutex<Batch>,
    outcome: Option<Result<Vec<Found>, DeviceError>>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let action = "answer";
        let reason = "the run of these queries panicked".to_owned();
        let outcome = self.outcome.take();
        let outcome = outcome.unwrap_or(Err(DeviceError::Refused { action, reason }));
        let mut lanes = self.together.lanes.lock();
        if let Some(lane) = lanes.0.get_mut(&self.key) {
            lane.running -= 1;
            if lane.running == 0 && lane.open.is_none() {
                lanes.0.remove(&self.key);
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

        fn wait(&self, changed: &Condvar, lanes: &mut MutexGuard<'_, Lanes>, _: Duration) {
            changed.wait(lanes);
        }
    }

    fn query(scale: f32) -> DeviceQuery {
        DeviceQuery { codes: vec![], scale, bound_constant: 0.0, bound_per_residual: 0.0 }
    }

    fn row(row: u32, count: f32) -> Found {
        Some(vec![(row, count)])
    }

    /// Each query finds one row: its own scale. The estimate says how many ran together.
    fn echo(run: &Run) -> Result<Vec<Found>, DeviceError> {
        let count = run.queries.len() as f32;
        Ok(run.queries.iter().map(|query| Some(vec![(query.scale as u32, count)])).collect())
    }

    type Answer = Result<Vec<Found>, DeviceError>;

    struct Bench<'a> {
        together: &'a Together,
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
            let waiting = |lanes: &Lanes| {
                let open = lanes.0.get(&1).and_then(|lane| lane.open.as_ref());
                open.map_or(0, |open| open.lock().askers)
            };
            while waiting(&lanes) < askers {
                self.together.changed.wait(&mut lanes);
            }
        }
    }

    fn with_bench(queries_max: usize, test: impl FnOnce(&Together, &Still)) {
        let limits = TogetherLimits { wait_max: Duration::from_micros(200), queries_max };
        let still = Arc::new(Still::default());
        let together = Together::new(limits, Arc::clone(&still) as Arc<dyn Timer>);
        test(&together, &still);
        assert!(together.lanes.lock().0.is_empty(), "nothing is left behind");
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
                together.look_again();
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
