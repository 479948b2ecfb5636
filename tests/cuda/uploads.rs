//! Segments are uploaded to the device in the background; until then the CPU answers, and nobody
//! waits.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, atomic::Ordering};

use lodestone_compute::cuda::{CudaBackend, CudaLimits};
use lodestone_compute::{
    ComputeBackend, RowsOwner, Selection, SimdBackend, VectorColumns, VectorRows,
};

use crate::cases::{Asked, Data};
use crate::families::{asked, devices};
use crate::recording::backend_over;

const LIMITS: fn() -> CudaLimits = || CudaLimits { work_min: 0, ..CudaLimits::default() };
const K: usize = 4;

/// Rows whose first upload reports that it has begun, and waits until told to continue.
#[derive(Debug)]
struct Held {
    columns: VectorColumns,
    is_sound: bool,
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl RowsOwner for Held {
    fn rows(&self) -> Option<VectorRows<'_>> {
        let gate = self.gate.lock().unwrap().take();
        if let Some((begun, go_on)) = gate {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
        }
        self.is_sound.then(|| self.columns.view())
    }
}

/// A segment, and the channels that control its first upload.
struct Segment {
    identity: u128,
    asked: Asked,
    owner: Arc<Held>,
    begins: Receiver<()>,
    go_on: Sender<()>,
}

impl Segment {
    fn new(identity: u128, is_sound: bool) -> Self {
        let asked = || asked(64, 500 + identity as usize, 3, Data::Clustered);
        let ((begun, begins), (go_on, goes_on)) = (channel(), channel());
        let gate = Mutex::new(Some((begun, goes_on)));
        let owner = Arc::new(Held { columns: asked().columns, is_sound, gate });
        Self { identity, asked: asked(), owner, begins, go_on }
    }

    /// Searches, checks the result, and returns whether the device answered.
    fn ask(&self, backend: &CudaBackend) -> bool {
        let rows = self.owner.columns.view().with_owner(self.identity, &self.owner);
        let queries = self.asked.bounded(&rows);
        let before = backend.counters().get("gpu_queries");
        let is_held = backend.prefers_scan(&rows, rows.len(), queries.len(), K);
        let got = backend.candidates(&rows, &queries, Selection::All, K).unwrap();
        assert_eq!(got, SimdBackend.candidates(&rows, &queries, Selection::All, K).unwrap());
        let by_device = backend.counters().get("gpu_queries") > before;
        assert_eq!(by_device, is_held, "a search knows whether a scan is the device's");
        by_device
    }

    fn until_begun(&self) {
        self.begins.recv().unwrap();
    }

    /// Lets the upload continue and waits for its end, which is when the upload of `next`,
    /// requested in the meantime, begins.
    fn until_ended(&self, next: &Self) {
        self.go_on.send(()).unwrap();
        next.until_begun();
    }
}

#[test]
fn the_cpu_answers_until_rows_are_on_the_device() {
    for device in devices("the_cpu_answers_until_rows_are_on_the_device") {
        let (backend, _) = backend_over(device, LIMITS());
        let [first, second, third] = [1, 2, 3].map(|identity| Segment::new(identity, true));
        assert!(!first.ask(&backend));
        first.until_begun();
        assert!(!first.ask(&backend) && !second.ask(&backend));
        assert!(second.begins.try_recv().is_err(), "one at a time");
        assert_eq!(backend.counters().get("gpu_fallbacks_uploading"), 3);
        first.until_ended(&second);
        assert!(first.ask(&backend) && !second.ask(&backend) && !third.ask(&backend));
        second.until_ended(&third);
        assert!(first.ask(&backend) && second.ask(&backend));
        assert_eq!(backend.counters().get("gpu_uploads"), 2);
        third.go_on.send(()).unwrap();
    }
}

#[test]
fn damaged_rows_never_come_to_the_device() {
    for device in devices("damaged_rows_never_come_to_the_device") {
        let (backend, _) = backend_over(device, LIMITS());
        let (damaged, next) = (Segment::new(1, false), Segment::new(2, true));
        assert!(!damaged.ask(&backend) && !next.ask(&backend));
        damaged.until_begun();
        damaged.until_ended(&next);
        assert!(!damaged.ask(&backend));
        assert_eq!(backend.counters().get("gpu_uploads"), 0);
        next.go_on.send(()).unwrap();
    }
}

/// Goal: if a device is lost during an upload, the next search gives it up, which the uploading
/// thread cannot.
#[test]
fn a_device_lost_in_an_upload_is_given_up() {
    for device in devices("a_device_lost_in_an_upload_is_given_up") {
        let (backend, faults) = backend_over(device, LIMITS());
        let (segment, next) = (Segment::new(1, true), Segment::new(2, true));
        assert!(!segment.ask(&backend) && !next.ask(&backend));
        segment.until_begun();
        faults.is_loss.store(true, Ordering::SeqCst);
        faults.calls_left.store(0, Ordering::SeqCst);
        segment.until_ended(&next);
        assert!(!segment.ask(&backend));
        assert_eq!(backend.counters().get("gpu_losses"), 1);
        next.go_on.send(()).unwrap();
    }
}
