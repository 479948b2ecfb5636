//! The query batcher: answers queries of concurrent requests over the same rows in one run.
//!
//! ```text
//! no run in progress   -> run at once: a lone request never waits
//! a run in progress    -> open a batch and wait until no run is in progress, the batch is full, or
//!                         its deadline passes; then run all of it
//! a batch is open      -> join it and wait for the answer
//! ```
//! A run over many queries takes hardly longer than one over few, as long as reading the rows
//! dominates. The request that opened a batch runs it on its own thread; a panic there becomes an
//! error for all requests that joined.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::cuda::DeviceError;

/// A query in the form that the device takes. It owns its data, so that another thread can run it.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceQuery {
    /// Codes, padded like the rows.
    pub codes: Vec<i8>,
    /// Code times scale is a component of the normalised query.
    pub scale: f32,
    /// Error bound of a row without residual.
    pub bound_constant: f32,
    /// Growth of the bound per unit of residual.
    pub bound_per_residual: f32,
}

/// A row that may be among the best of a query.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Candidate {
    /// The row.
    pub row: u32,
    /// Its estimate, equal to that of a scan.
    pub estimate: f32,
    /// Its residual, included because reading it on the host would be a random access.
    pub residual: f32,
}

/// Rows that may be among the best of one query, unordered; `None` if there are more than the
/// device has memory to return.
pub type DeviceCandidates = Option<Vec<Candidate>>;

/// Limits of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Maximum time that a request waits before its batch runs.
    pub wait_max: Duration,
    /// Maximum number of queries per run.
    pub queries_max: usize,
}

impl Default for BatchLimits {
    /// An estimate: 200 microseconds are about the time of two runs over 1,000,000 rows.
    fn default() -> Self {
        Self { wait_max: Duration::from_micros(200), queries_max: 1024 }
    }
}

/// A clock with waiting, which tests replace.
pub trait Timer: fmt::Debug + Send + Sync {
    /// Returns the time since an arbitrary moment.
    fn now(&self) -> Duration;

    /// Returns the time to sleep until `until` unless woken earlier; `None` sleeps until woken.
    fn sleep(&self, until: Duration) -> Option<Duration>;
}

/// The machine's monotonic clock.
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

/// Batches queries `Q` under a key `K`: the rows, and whatever else the queries of a run share.
#[derive(Debug)]
pub struct QueryBatcher<K, Q> {
    limits: BatchLimits,
    timer: Arc<dyn Timer>,
    groups: Mutex<Groups<K, Q>>,
}

/// Open and running batches by key.
type Groups<K, Q> = BTreeMap<K, Group<Q>>;

#[derive(Debug)]
struct Group<Q> {
    running: usize,
    open: Option<Arc<PendingBatch<Q>>>,
}

impl<Q> Default for Group<Q> {
    fn default() -> Self {
        Self { running: 0, open: None }
    }
}

/// A batch, and the requests that wait for it.
#[derive(Debug)]
struct PendingBatch<Q> {
    /// Locked only while the groups are locked.
    state: Mutex<BatchState<Q>>,
    /// Wakes the request that opened the batch: another has joined, or no run is in progress.
    opener: Condvar,
    /// Wakes the requests that joined: the outcome is available.
    joined: Condvar,
}

/// Queries that run together.
#[derive(Debug)]
struct BatchState<Q> {
    queries: Vec<Q>,
    k: usize,
    requests: usize,
    outcome: Option<Result<Vec<DeviceCandidates>, DeviceError>>,
}

/// Queries of one run, and the number of requests that they come from.
#[derive(Debug)]
pub struct QueryBatch<Q> {
    /// The queries of all requests.
    pub queries: Vec<Q>,
    /// The largest k of any request.
    pub k: usize,
    /// Number of requests.
    pub requests: usize,
}

impl<K: Clone + Ord, Q> QueryBatcher<K, Q> {
    /// Creates a batcher without batches.
    pub fn new(limits: BatchLimits, timer: Arc<dyn Timer>) -> Self {
        Self { limits, timer, groups: Mutex::default() }
    }

    /// Finds the candidates of `queries` with `search`, in one run with other queries under `key`
    /// if there are any. `search` must answer every query that it receives, in order, for at least
    /// the `k` that it receives; the search of another request may run instead.
    ///
    /// # Errors
    /// The error of the search.
    pub fn run(
        &self,
        key: K,
        queries: Vec<Q>,
        k: usize,
        search: impl FnOnce(QueryBatch<Q>) -> Result<Vec<DeviceCandidates>, DeviceError>,
    ) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let mut groups = self.groups.lock();
        let group = groups.entry(key.clone()).or_default();
        let count = queries.len();
        if let Some(batch) = group.open.clone() {
            let mut joined = batch.state.lock();
            if joined.queries.len() + count <= self.limits.queries_max {
                let first = joined.queries.len();
                joined.queries.extend(queries);
                joined.k = joined.k.max(k);
                joined.requests += 1;
                drop(joined);
                batch.opener.notify_one();
                return answer_of(groups, &batch, first, count);
            }
        }
        let is_busy = group.running > 0;
        let state = Mutex::new(BatchState { queries, k, requests: 1, outcome: None });
        let (opener, joined) = (Condvar::new(), Condvar::new());
        let batch = Arc::new(PendingBatch { state, opener, joined });
        if is_busy && count < self.limits.queries_max && group.open.is_none() {
            group.open = Some(Arc::clone(&batch));
            self.collect(&mut groups, &key, &batch);
        }
        groups.entry(key.clone()).or_default().running += 1;
        let mut begun = batch.state.lock();
        let queries = std::mem::take(&mut begun.queries);
        let query_batch = QueryBatch { queries, k: begun.k, requests: begun.requests };
        drop(begun);
        drop(groups);
        let mut guard = RunGuard { batcher: self, key, batch: &batch, outcome: None };
        let found = search(query_batch);
        guard.outcome = Some(found);
        drop(guard);
        answer_of(self.groups.lock(), &batch, 0, count)
    }

    /// Waits until an open batch should run, and closes it.
    fn collect(&self, groups: &mut MutexGuard<'_, Groups<K, Q>>, key: &K, batch: &PendingBatch<Q>) {
        let until = self.timer.now() + self.limits.wait_max;
        loop {
            let is_free = groups.get(key).is_none_or(|group| group.running == 0);
            let is_full = batch.state.lock().queries.len() >= self.limits.queries_max;
            if is_free || is_full || self.timer.now() >= until {
                break;
            }
            match self.timer.sleep(until) {
                Some(time) => _ = batch.opener.wait_for(groups, time),
                None => batch.opener.wait(groups),
            }
        }
        if let Some(group) = groups.get_mut(key) {
            group.open = None;
        }
    }
}

/// Waits for the outcome of a batch and takes the part of one request.
fn answer_of<K, Q>(
    mut groups: MutexGuard<'_, Groups<K, Q>>,
    batch: &PendingBatch<Q>,
    first: usize,
    count: usize,
) -> Result<Vec<DeviceCandidates>, DeviceError> {
    loop {
        let mut state = batch.state.lock();
        match &mut state.outcome {
            Some(Ok(found)) => {
                let own = &mut found[first..first + count];
                return Ok(own.iter_mut().map(std::mem::take).collect());
            }
            Some(Err(error)) => return Err(error.clone()),
            None => drop(state),
        }
        batch.joined.wait(&mut groups);
    }
}

/// Guard of a run: when dropped, passes the outcome to all waiting requests, or an error after a
/// panic.
struct RunGuard<'a, K: Ord, Q> {
    batcher: &'a QueryBatcher<K, Q>,
    key: K,
    batch: &'a PendingBatch<Q>,
    outcome: Option<Result<Vec<DeviceCandidates>, DeviceError>>,
}

impl<K: Ord, Q> Drop for RunGuard<'_, K, Q> {
    fn drop(&mut self) {
        let action = "answer";
        let reason = "the run of these queries panicked".to_owned();
        let outcome = self.outcome.take();
        let outcome = outcome.unwrap_or(Err(DeviceError::Refused { action, reason }));
        let mut groups = self.batcher.groups.lock();
        if let Some(group) = groups.get_mut(&self.key) {
            group.running -= 1;
            match &group.open {
                Some(open) if group.running == 0 => _ = open.opener.notify_one(),
                None if group.running == 0 => _ = groups.remove(&self.key),
                _ => {}
            }
        }
        self.batch.state.lock().outcome = Some(outcome);
        self.batch.joined.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::{Scope, ScopedJoinHandle};

    use super::*;

    /// A clock that tests advance manually. It counts sleeps: the opener of a batch sleeps, and
    /// again each time that a request joins.
    #[derive(Debug, Default)]
    struct Still {
        now: Mutex<Duration>,
        sleeps: Mutex<usize>,
        slept: Condvar,
    }

    impl Timer for Still {
        fn now(&self) -> Duration {
            *self.now.lock()
        }

        fn sleep(&self, _: Duration) -> Option<Duration> {
            *self.sleeps.lock() += 1;
            self.slept.notify_all();
            None
        }
    }

    fn query(scale: f32) -> DeviceQuery {
        DeviceQuery { codes: vec![], scale, bound_constant: 0.0, bound_per_residual: 0.0 }
    }

    fn row(row: u32, estimate: f32) -> DeviceCandidates {
        Some(vec![Candidate { row, estimate, residual: 0.0 }])
    }

    /// Answers each query with one row, its scale; the estimate is the number of queries of the
    /// run.
    fn echo(run: &QueryBatch<DeviceQuery>) -> Result<Vec<DeviceCandidates>, DeviceError> {
        let count = run.queries.len() as f32;
        Ok(run.queries.iter().map(|query| row(query.scale as u32, count)).collect())
    }

    type Answer = Result<Vec<DeviceCandidates>, DeviceError>;
    type Scans = QueryBatcher<u128, DeviceQuery>;

    struct Fixture<'a> {
        batcher: &'a Scans,
        still: &'a Still,
        begun: Sender<usize>,
    }

    impl<'a> Fixture<'a> {
        /// Starts a request whose run reports its start and ends on command.
        fn held<'s>(
            &self,
            scope: &'s Scope<'s, 'a>,
            scales: &[f32],
        ) -> (ScopedJoinHandle<'s, Answer>, Sender<()>) {
            let (end, ended) = channel();
            (self.request(scope, scales, ended), end)
        }

        /// Starts a request whose run ends at once. The command is sent in advance: a request that
        /// joins a batch may be answered, and have dropped its receiver, before anything else
        /// happens here.
        fn quick<'s>(
            &self,
            scope: &'s Scope<'s, 'a>,
            scales: &[f32],
        ) -> ScopedJoinHandle<'s, Answer> {
            let (end, ended) = channel();
            end.send(()).unwrap();
            self.request(scope, scales, ended)
        }

        fn request<'s>(
            &self,
            scope: &'s Scope<'s, 'a>,
            scales: &[f32],
            ended: Receiver<()>,
        ) -> ScopedJoinHandle<'s, Answer> {
            let (batcher, begun) = (self.batcher, self.begun.clone());
            let queries: Vec<_> = scales.iter().copied().map(query).collect();
            scope.spawn(move || {
                batcher.run(1, queries, 3, |run| {
                    begun.send(run.queries.len()).unwrap();
                    ended.recv().unwrap();
                    echo(&run)
                })
            })
        }

        /// Waits until the open batch has at least `requests` requests.
        fn until_waiting(&self, requests: usize) {
            loop {
                let seen = *self.still.sleeps.lock();
                let open = self.open();
                if open.is_some_and(|open| open.state.lock().requests >= requests) {
                    return;
                }
                let mut sleeps = self.still.sleeps.lock();
                while *sleeps == seen {
                    self.still.slept.wait(&mut sleeps);
                }
            }
        }

        fn open(&self) -> Option<Arc<PendingBatch<DeviceQuery>>> {
            self.batcher.groups.lock().get(&1).and_then(|group| group.open.clone())
        }
    }

    fn with_batcher(queries_max: usize, test: impl FnOnce(&Scans, &Still)) {
        let limits = BatchLimits { wait_max: Duration::from_micros(200), queries_max };
        let still = Arc::new(Still::default());
        let batcher = QueryBatcher::new(limits, Arc::clone(&still) as Arc<dyn Timer>);
        test(&batcher, &still);
        assert!(batcher.groups.lock().is_empty(), "nothing is left behind");
    }

    #[test]
    fn a_single_request_never_waits() {
        with_batcher(8, |batcher, _| {
            for _ in 0..3 {
                let found = batcher.run(1, vec![query(5.0)], 3, |run| echo(&run));
                assert_eq!(found, Ok(vec![row(5, 1.0)]));
            }
        });
    }

    #[test]
    fn requests_during_a_run_go_together_when_it_ends() {
        with_batcher(8, |batcher, still| {
            let (begun, begins) = channel();
            let fixture = Fixture { batcher, still, begun };
            std::thread::scope(|scope| {
                let (first, end) = fixture.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                let second = fixture.quick(scope, &[2.0, 3.0]);
                fixture.until_waiting(1);
                let third = fixture.quick(scope, &[4.0]);
                fixture.until_waiting(2);
                end.send(()).unwrap();
                assert_eq!(first.join().unwrap(), Ok(vec![row(1, 1.0)]));
                assert_eq!(second.join().unwrap(), Ok(vec![row(2, 3.0), row(3, 3.0)]));
                assert_eq!(third.join().unwrap(), Ok(vec![row(4, 3.0)]));
            });
        });
    }

    #[test]
    fn a_batch_runs_when_its_time_is_over_or_when_it_is_full() {
        with_batcher(3, |batcher, still| {
            let (begun, begins) = channel();
            let fixture = Fixture { batcher, still, begun };
            std::thread::scope(|scope| {
                let (first, end) = fixture.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                // The deadline passes.
                let late = fixture.quick(scope, &[2.0]);
                fixture.until_waiting(1);
                *still.now.lock() = Duration::from_micros(200);
                fixture.open().unwrap().opener.notify_one();
                assert_eq!(late.join().unwrap(), Ok(vec![row(2, 1.0)]));
                // The batch is full.
                let second = fixture.quick(scope, &[3.0, 4.0]);
                fixture.until_waiting(1);
                let third = fixture.quick(scope, &[5.0]);
                assert_eq!(second.join().unwrap(), Ok(vec![row(3, 3.0), row(4, 3.0)]));
                assert_eq!(third.join().unwrap(), Ok(vec![row(5, 3.0)]));
                // A request that does not fit into the open batch runs on its own.
                let waiting = fixture.quick(scope, &[6.0]);
                fixture.until_waiting(1);
                let large = fixture.quick(scope, &[7.0, 8.0, 9.0]);
                assert_eq!(large.join().unwrap().unwrap()[2], row(9, 3.0));
                end.send(()).unwrap();
                assert!(first.join().unwrap().is_ok() && waiting.join().unwrap().is_ok());
            });
        });
    }

    #[test]
    fn an_error_and_a_panic_reach_all_joined_requests() {
        with_batcher(8, |batcher, still| {
            let (begun, begins) = channel();
            let fixture = Fixture { batcher, still, begun };
            std::thread::scope(|scope| {
                let (first, end) = fixture.held(scope, &[1.0]);
                assert_eq!(begins.recv(), Ok(1));
                let opener = scope.spawn(|| {
                    batcher.run(1, vec![query(2.0)], 3, |_| panic!("on purpose: part of a test"))
                });
                fixture.until_waiting(1);
                let joined = fixture.quick(scope, &[3.0]);
                fixture.until_waiting(2);
                end.send(()).unwrap();
                assert!(first.join().unwrap().is_ok());
                assert!(opener.join().is_err());
                assert!(matches!(joined.join().unwrap(), Err(DeviceError::Refused { .. })));
            });
            let lost = DeviceError::Lost { reason: "test".to_owned() };
            let failed = batcher.run(1, vec![query(2.0)], 3, |_| Err(lost.clone()));
            assert_eq!(failed, Err(lost));
        });
    }
}
