//! Uploads of segments, one after the other in a thread of their own: no search waits for one.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

/// Uploads that wait at most; one more is dropped, and the next search asks for it again.
const WAITING_MAX: usize = 64;

/// An upload. It gives back what it has reserved when dropped.
pub(super) type Upload = Box<dyn FnOnce() + Send>;

/// The uploads of one device. There is a thread while there are any.
#[derive(Default)]
pub(super) struct Uploads(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Upload>,
    is_running: bool,
}

impl Uploads {
    /// Runs `upload` after those that wait, unless they are too many.
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
                // What panicked has given back what it reserved.
                let _ = catch_unwind(AssertUnwindSafe(upload));
            }
        });
        state.is_running = started.is_ok();
        if let Err(error) = started {
            tracing::warn!(%error, "no thread brings segments to the GPU");
            state.waiting.clear();
        }
    }
}

/// The next upload; without one the thread ends.
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
