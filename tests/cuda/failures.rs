//! After any failure of the device the CPU answers and a counter increases.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lodestone_compute::cuda::manager::ManagerLimits;
use lodestone_compute::cuda::{
    Buffer, CudaBackend, CudaLimits, CudaParts, Device, DeviceError, DeviceSource, Release, gather,
};
use lodestone_compute::{ComputeBackend, SimdBackend};
use lodestone_types::{ManualClock, Timestamp};

use crate::cases::{Asked, Case, Chosen, Data};
use crate::recording::{Faults, Faulty};
use crate::skip;
use crate::{emulated, oracle};

const CASE: Case = Case {
    dimension: 24,
    rows: 700,
    queries: 2,
    k: 4,
    data: Data::Clustered,
    chosen: Chosen::All,
    is_certain: false,
};

struct Fixture {
    backend: CudaBackend,
    faults: Arc<Faults>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    fn new(test: &str, budget_bytes: u64) -> Option<Self> {
        let Some(inner) = emulated::device() else {
            skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
            return None;
        };
        Some(Self::over(inner, budget_bytes))
    }

    fn over(inner: Arc<dyn Device>, budget_bytes: u64) -> Self {
        let faults = Arc::new(Faults::default());
        faults.calls_left.store(usize::MAX, Ordering::SeqCst);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let source = Arc::new(Faulty { inner, faults: Arc::clone(&faults) });
        let source = source as Arc<dyn DeviceSource>;
        let parts = CudaParts::new(source, Arc::new(SimdBackend), Arc::clone(&clock) as Arc<_>);
        let parts = CudaParts { check: |_| Ok(()), ..parts };
        let budget_bytes = Some(budget_bytes);
        let manager = ManagerLimits { budget_bytes, ..ManagerLimits::default() };
        let limits = CudaLimits { work_min: 0, manager, ..CudaLimits::default() };
        Self { backend: CudaBackend::open(parts, limits).unwrap(), faults, clock }
    }

    fn ask(&self, identity: u128) -> bool {
        ask(&self.backend, identity)
    }

    fn count(&self, name: &str) -> u64 {
        self.backend.counters().get(name)
    }
}

/// Searches, checks the result, and returns whether the device answered.
fn ask(backend: &CudaBackend, identity: u128) -> bool {
    let asked = Asked::new(&CASE, 11);
    let rows = asked.columns.view().with_identity(identity);
    let queries = asked.bounded(&rows);
    let before = backend.counters().get("gpu_queries");
    let got = backend.candidates(&rows, &queries, asked.selection(), CASE.k).unwrap();
    let wanted = SimdBackend.candidates(&rows, &queries, asked.selection(), CASE.k).unwrap();
    assert_eq!(got, wanted);
    backend.counters().get("gpu_queries") > before
}

/// Size of the case's rows on the device in bytes.
const ROWS_BYTES: u64 = 700 * (64 + 8);

/// Goal: whichever device call is refused, the CPU answers and the next search succeeds on the
/// device.
#[test]
fn every_call_may_be_refused() {
    let Some(fixture) = Fixture::new("every_call_may_be_refused", 1 << 20) else { return };
    assert!(fixture.ask(1));
    let mut refused = 0;
    for call in 0..200 {
        fixture.faults.calls_left.store(call, Ordering::SeqCst);
        // Rows that are not on the device yet, so that uploads fail too.
        let by_device = fixture.ask(100 + call as u128);
        let left = fixture.faults.calls_left.swap(usize::MAX, Ordering::SeqCst);
        if left != usize::MAX {
            assert!(by_device, "nothing failed at call {call}");
            break;
        }
        assert!(!by_device, "call {call} failed and the CPU answered");
        refused += 1;
        assert_eq!(fixture.count("gpu_fallbacks_refused"), refused);
        assert!(fixture.ask(100 + call as u128), "the next question goes well");
    }
    assert!((10..200).contains(&refused), "{refused} calls make up an answer");
    assert_eq!(fixture.count("gpu_losses"), 0);
}

#[test]
fn a_full_device_is_a_fallback() {
    let Some(fixture) = Fixture::new("a_full_device_is_a_fallback", 1 << 20) else { return };
    fixture.faults.is_full.store(true, Ordering::SeqCst);
    assert!(!fixture.ask(1) && !fixture.ask(1));
    assert_eq!(fixture.count("gpu_fallbacks_out_of_memory"), 2);
    fixture.faults.is_full.store(false, Ordering::SeqCst);
    assert!(!fixture.ask(1), "it would fit, but nobody asks for the memory");
    fixture.clock.advance_millis(30_000);
    assert!(fixture.ask(1));
}

#[test]
fn what_does_not_fit_the_budget_is_a_fallback() {
    let test = "what_does_not_fit_the_budget_is_a_fallback";
    let Some(fixture) = Fixture::new(test, ROWS_BYTES - 1) else { return };
    assert!(!fixture.ask(1));
    assert_eq!(fixture.count("gpu_fallbacks_out_of_memory"), 1);
    let Some(fixture) = Fixture::new(test, 2 * ROWS_BYTES) else { return };
    assert!(fixture.ask(1) && fixture.ask(2) && !fixture.ask(3));
    assert!(fixture.ask(1) && fixture.ask(2), "rows in use stay");
    assert_eq!(fixture.count("gpu_uploads"), 2);
    // Rows that are requested for long enough replace rows that are no longer used.
    assert!((0..50).all(|_| !fixture.ask(3)));
    fixture.clock.advance_millis(10_000);
    assert!(!fixture.ask(3), "the others were asked for since");
    fixture.clock.advance_millis(10_000);
    assert!(fixture.ask(3));
    assert_eq!((fixture.count("gpu_uploads"), fixture.count("gpu_evictions")), (3, 1));
}

/// Goal: a device that is lost at any call is not tried again until its pause is over, and is then
/// used again.
#[test]
fn a_lost_device_is_left_alone_for_a_while() {
    let Some(fixture) = Fixture::new("a_lost_device_is_left_alone_for_a_while", 1 << 20) else {
        return;
    };
    assert!(fixture.ask(1));
    fixture.faults.is_loss.store(true, Ordering::SeqCst);
    for (losses, call) in [0, 3, 5].into_iter().enumerate() {
        fixture.faults.calls_left.store(call, Ordering::SeqCst);
        let opened = fixture.faults.opened.load(Ordering::SeqCst);
        assert!(!fixture.ask(1), "lost at call {call}");
        assert_eq!(fixture.count("gpu_losses"), losses as u64 + 1);
        fixture.faults.calls_left.store(usize::MAX, Ordering::SeqCst);
        // The device would work again, but is not tried.
        let before = fixture.count("gpu_fallbacks_lost");
        assert!(!fixture.ask(1) && !fixture.ask(1));
        assert_eq!(fixture.count("gpu_fallbacks_lost"), before + 2);
        assert_eq!(fixture.faults.opened.load(Ordering::SeqCst), opened);
        // The pause is over and the device is still gone, so that the next pause is longer.
        fixture.faults.is_gone.store(true, Ordering::SeqCst);
        fixture.clock.advance_millis(10_000);
        assert!(!fixture.ask(1));
        fixture.faults.is_gone.store(false, Ordering::SeqCst);
        fixture.clock.advance_millis(10_000);
        assert!(!fixture.ask(1));
        fixture.clock.advance_millis(10_000);
        assert!(fixture.ask(1), "opened again");
        assert_eq!(fixture.faults.opened.load(Ordering::SeqCst), opened + 1);
    }
}

#[test]
fn a_panic_while_a_device_is_opened_is_a_fallback() {
    let test = "a_panic_while_a_device_is_opened_is_a_fallback";
    let Some(fixture) = Fixture::new(test, 1 << 20) else { return };
    fixture.faults.is_loss.store(true, Ordering::SeqCst);
    fixture.faults.calls_left.store(0, Ordering::SeqCst);
    assert!(!fixture.ask(1));
    fixture.faults.calls_left.store(usize::MAX, Ordering::SeqCst);
    fixture.faults.is_panicking.store(true, Ordering::SeqCst);
    fixture.clock.advance_millis(10_000);
    assert!(!fixture.ask(1));
    fixture.faults.is_panicking.store(false, Ordering::SeqCst);
    fixture.clock.advance_millis(20_000);
    assert!(fixture.ask(1), "opened again");
}

#[test]
fn rows_without_identity_stay_with_the_cpu() {
    let Some(fixture) = Fixture::new("rows_without_identity_stay_with_the_cpu", 1 << 20) else {
        return;
    };
    let asked = Asked::new(&CASE, 11);
    let rows = asked.columns.view();
    let queries = asked.bounded(&rows);
    let got = fixture.backend.candidates(&rows, &queries, asked.selection(), CASE.k).unwrap();
    let wanted = SimdBackend.candidates(&rows, &queries, asked.selection(), CASE.k).unwrap();
    assert_eq!((got, fixture.count("gpu_queries")), (wanted, 0));
    assert!(!fixture.backend.prefers_scan(&rows, 700, 1, 4));
    let known = rows.with_identity(5);
    assert!(fixture.backend.prefers_scan(&known, 700, 1, 4));
    assert_eq!(fixture.count("gpu_uploads"), 1, "the question brought the rows");
}

#[derive(Debug)]
struct Nobody;

impl Release for Nobody {
    fn release(&self, _: u64, _: usize) {}
}

/// Goal: a kernel with an invalid memory access disables a real card for this process: from then on
/// the CPU answers, however often the card is retried. (Driver 580 cannot create a new context
/// after such an error, neither after releasing the old one nor after a reset.) Must run in a
/// process of its own, because the tests of a process share a context.
#[test]
fn a_trap_leaves_the_cpu_answering() {
    let Some(source) = oracle::real_source("a_trap_leaves_the_cpu_answering") else { return };
    let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
    let parts = CudaParts::new(source, Arc::new(SimdBackend), Arc::clone(&clock) as Arc<_>);
    let limits = CudaLimits { work_min: 0, ..CudaLimits::default() };
    let backend = CudaBackend::open(parts, limits).unwrap();
    assert!(ask(&backend, 1));
    let trapped = backend.manager().run(|device| {
        device.with_workspace(|workspace| {
            let nowhere = Buffer::new(1 << 20, 1 << 30, Arc::new(Nobody));
            let counts = workspace.slot("run counts", 1 << 20)?;
            gather::list_mask(workspace, (&nowhere, 1 << 20), &counts, (&nowhere, 1000))?;
            workspace.queue.synchronise()
        })
    });
    assert!(matches!(trapped, Err(DeviceError::Lost { .. })), "{trapped:?}");
    assert_eq!(backend.counters().get("gpu_losses"), 1);
    for _ in 0..3 {
        ask(&backend, 1);
        clock.advance_millis(20_000);
        // A driver that does create a new context is fine.
        if let Err(error) = backend.manager().active() {
            println!("after a trap: {error}");
        }
    }
    ask(&backend, 1);
}
