//! Concurrent searches: the same results as alone, in fewer runs.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use lodestone_compute::cuda::batcher::{MachineTimer, Timer};
use lodestone_compute::cuda::{
    Buffer, CudaBackend, CudaLimits, Device, DeviceError, DeviceMemory, DeviceTraits, Launch, Queue,
};
use lodestone_compute::{ComputeBackend, RowMask, Selection, SimdBackend};
use lodestone_types::Hit;

use crate::cases::{Asked, Data};
use crate::families::{asked, devices};
use crate::recording::{Faults, backend_timed};

const DIMENSION: usize = 64;
const ROWS: usize = 500;

/// A clock that stands still, and counts the sleeps on it.
#[derive(Debug, Default)]
struct Still {
    sleeps: Mutex<usize>,
    changed: Condvar,
}

impl Still {
    fn until(&self, sleeps: usize) {
        let held = self.sleeps.lock().unwrap();
        drop(self.changed.wait_while(held, |held| *held < sleeps).unwrap());
    }
}

impl Timer for Still {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Option<Duration> {
        *self.sleeps.lock().unwrap() += 1;
        self.changed.notify_all();
        None
    }
}

/// Wraps a device, counts passes over rows, and can hold the next launch.
#[derive(Debug, Default)]
struct Gate {
    scans: AtomicUsize,
    next: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Gate {
    /// Holds the next launch: the receiver reports its arrival, the sender releases it.
    fn shut(&self) -> (Receiver<()>, Sender<()>) {
        let ((begun, begins), (end, ends)) = (channel(), channel());
        *self.next.lock().unwrap() = Some((begun, ends));
        (begins, end)
    }
}

#[derive(Debug)]
struct Gated<T> {
    inner: T,
    gate: Arc<Gate>,
}

impl Device for Gated<Arc<dyn Device>> {
    fn traits(&self) -> &DeviceTraits {
        self.inner.traits()
    }

    fn memory(&self) -> Result<DeviceMemory, DeviceError> {
        self.inner.memory()
    }

    fn allocate(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        self.inner.allocate(bytes)
    }

    fn queue(&self) -> Result<Box<dyn Queue>, DeviceError> {
        Ok(Box::new(Gated { inner: self.inner.queue()?, gate: Arc::clone(&self.gate) }))
    }
}

impl Queue for Gated<Box<dyn Queue>> {
    fn upload(&mut self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.inner.upload(buffer, offset, bytes)
    }

    fn download(
        &mut self,
        buffer: &Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        self.inner.download(buffer, offset, bytes)
    }

    fn fill(&mut self, buffer: &Buffer, range: Range<usize>, byte: u8) -> Result<(), DeviceError> {
        self.inner.fill(buffer, range, byte)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let held = self.gate.next.lock().unwrap().take();
        if let Some((begun, ends)) = held {
            begun.send(()).unwrap();
            ends.recv().unwrap();
        }
        let is_scan = launch.kernel().starts_with("scan_collect");
        self.gate.scans.fetch_add(usize::from(is_scan), Ordering::SeqCst);
        self.inner.launch(launch)
    }

    fn synchronise(&mut self) -> Result<(), DeviceError> {
        self.inner.synchronise()
    }

    fn is_page_locked(&self) -> bool {
        self.inner.is_page_locked()
    }
}

/// A segment, a backend that searches it, and its planned failures.
struct Fixture {
    asked: Asked,
    backend: CudaBackend,
    faults: Arc<Faults>,
    gate: Arc<Gate>,
}

type Answer = Vec<Hit>;

impl Fixture {
    fn new(inner: Arc<dyn Device>, timer: Arc<dyn Timer>) -> Self {
        let asked = asked(DIMENSION, ROWS, 5, Data::Clustered);
        let gate = Arc::new(Gate::default());
        let inner = Arc::new(Gated { inner, gate: Arc::clone(&gate) });
        let limits = CudaLimits { work_min: 0, ..CudaLimits::default() };
        let (backend, faults) = backend_timed(inner, limits, timer);
        Self { asked, backend, faults, gate }
    }

    /// The result for the caller of one query; each caller wants a different number of rows.
    fn ask(&self, query: usize) -> Answer {
        self.ask_filtered(query, Selection::All)
    }

    fn ask_filtered(&self, query: usize, selection: Selection<'_>) -> Answer {
        answer(&self.backend, &self.asked, query, selection)
    }

    fn count(&self, name: &str) -> u64 {
        self.backend.counters().get(name)
    }

    /// Holds query 0 on the device while queries 1, 2 and 3 arrive one after the other, calls
    /// `before` and releases it. Returns all results.
    fn together(
        &self,
        still: &Still,
        ask: impl Fn(usize) -> Answer + Sync,
        before: impl FnOnce(),
    ) -> Vec<Answer> {
        let (begins, end) = self.gate.shut();
        let (sleeps, ask) = (*still.sleeps.lock().unwrap(), &ask);
        thread::scope(|scope| {
            let first = scope.spawn(move || ask(0));
            begins.recv().unwrap();
            let mut callers = vec![first];
            for query in 1..4 {
                callers.push(scope.spawn(move || ask(query)));
                // The first of these sleeps; each caller that joins wakes it up to look again.
                still.until(sleeps + query);
            }
            before();
            end.send(()).unwrap();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect()
        })
    }
}

fn answer(
    backend: &dyn ComputeBackend,
    asked: &Asked,
    query: usize,
    selection: Selection<'_>,
) -> Answer {
    let plain = asked.columns.view();
    let rows = plain.with_identity(9);
    let queries = &asked.bounded(&rows)[query..=query];
    backend.candidates(&rows, queries, selection, 4 + query).unwrap().remove(0)
}

#[test]
fn concurrent_callers_share_a_run_and_get_what_they_get_alone() {
    for device in devices("concurrent_callers_share_a_run_and_get_what_they_get_alone") {
        let still = Arc::new(Still::default());
        let fixture = Fixture::new(device, Arc::clone(&still) as Arc<dyn Timer>);
        let alone: Vec<Answer> = (0..4).map(|query| fixture.ask(query)).collect();
        assert_eq!((fixture.count("gpu_runs"), fixture.gate.scans.load(Ordering::SeqCst)), (4, 4));
        assert_eq!(*still.sleeps.lock().unwrap(), 0, "who is alone never waits");
        assert_eq!(fixture.together(&still, |query| fixture.ask(query), || ()), alone);
        assert_eq!((fixture.count("gpu_runs"), fixture.gate.scans.load(Ordering::SeqCst)), (6, 6));
        assert_eq!(fixture.count("gpu_requests_run_together"), 3);
        assert_eq!(fixture.count("gpu_queries"), 8);
    }
}

/// Goal: callers with the same mask share a run, and others do not.
#[test]
fn concurrent_callers_share_a_run_under_the_same_filter() {
    let mask = |step: u32| {
        let bitmap = (0..ROWS as u32).filter(|row| row % step != 0).collect();
        RowMask::from_bitmap(ROWS, &bitmap)
    };
    let (mask, other_mask) = (mask(3), mask(5));
    for device in devices("concurrent_callers_share_a_run_under_the_same_filter") {
        let still = Arc::new(Still::default());
        let fixture = Fixture::new(device, Arc::clone(&still) as Arc<dyn Timer>);
        let ask = |query| fixture.ask_filtered(query, Selection::Masked(&mask));
        let ask_other = || fixture.ask_filtered(1, Selection::Masked(&other_mask));
        let alone: Vec<Answer> = (0..4).map(ask).collect();
        let other = ask_other();
        assert_ne!(other, alone[1]);
        let runs = fixture.count("gpu_runs");
        let beside = || assert_eq!(ask_other(), other, "while the rest waits");
        assert_eq!(fixture.together(&still, ask, beside), alone);
        assert_eq!(fixture.count("gpu_runs"), runs + 3);
        assert_eq!(fixture.count("gpu_requests_run_together"), 3);
    }
}

/// Goal: however long the previous run takes, a caller alone in its batch does not wait for it.
#[test]
fn no_caller_waits_beyond_its_deadline() {
    for device in devices("no_caller_waits_beyond_its_deadline") {
        let fixture = Fixture::new(device, Arc::new(MachineTimer::default()));
        let alone = fixture.ask(1);
        let (begins, end) = fixture.gate.shut();
        thread::scope(|scope| {
            let first = scope.spawn(|| fixture.ask(0));
            begins.recv().unwrap();
            assert_eq!(fixture.ask(1), alone, "while the first is still held");
            end.send(()).unwrap();
            assert!(!first.join().unwrap().is_empty());
        });
    }
}

#[test]
fn a_device_that_fails_sends_each_caller_to_the_cpu() {
    for device in devices("a_device_that_fails_sends_each_caller_to_the_cpu") {
        let still = Arc::new(Still::default());
        let fixture = Fixture::new(device, Arc::clone(&still) as Arc<dyn Timer>);
        assert!(!fixture.ask(0).is_empty());
        fixture.faults.is_loss.store(true, Ordering::SeqCst);
        let lose = || fixture.faults.calls_left.store(0, Ordering::SeqCst);
        let answers = fixture.together(&still, |query| fixture.ask(query), lose);
        let by_cpu = |query| answer(&SimdBackend, &fixture.asked, query, Selection::All);
        assert_eq!(answers, (0..4).map(by_cpu).collect::<Vec<_>>());
        assert_eq!((fixture.count("gpu_fallbacks_lost"), fixture.count("gpu_losses")), (4, 1));
        assert_eq!(fixture.count("gpu_queries"), 1);
    }
}
