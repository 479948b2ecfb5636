//! Uploads segments one at a time on a background thread, so that no search waits for an upload.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

/// Maximum number of waiting uploads; more are dropped, and the next search requests them again.
const WAITING_MAX: usize = 64;

/// An upload. When dropped, it releases its reservation.
pub(super) type Upload = Box<dyn FnOnce() + Send>;

/// The uploads of one device. The thread exists only while there are any.
#[derive(Default)]
pub(super) struct Uploads(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Upload>,
    is_running: bool,
}

impl Uploads {
    /// Queues `upload`, unless too many are waiting.
    pub(super) fn start(&self, upload: Upload) {
        let mut state = self.0.lock();
        if state.waiting.len() >= WAITING_MAX {
            return;
        }
        state.waiting.push_back(upload);
        if state.is_running {
            return;
        }
        let shared = Arc::clone(&self.0);
        let started = thread::Builder::new().name("gpu-uploads".to_owned()).spawn(move || {
            while let Some(upload) = next(&shared) {
                // An upload that panicked has released its reservation.
                let _ = catch_unwind(AssertUnwindSafe(upload));
            }
        });
        state.is_running = started.is_ok();
        if let Err(error) = started {
            tracing::warn!(%error, "starting the thread that uploads segments to the GPU failed");
            state.waiting.clear();
        }
    }
}

/// Returns the next upload; without one the thread ends.
fn next(state: &Mutex<State>) -> Option<Upload> {
    let mut state = state.lock();
    let upload = state.waiting.pop_front();
    state.is_running = upload.is_some();
    upload
}

impl fmt::Debug for Uploads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uploads({} waiting)", self.0.lock().waiting.len())
    }
}
