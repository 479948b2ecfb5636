//! A test model behind a gate: documents are embedded when the test permits, queries always.

use parking_lot::{Condvar, Mutex};

use lodestone_embed::{EmbedError, Embedder, EmbedderDouble, HashEmbedder, Lane};
use lodestone_types::RequestContext;

/// An embedder whose document batches pass only as the test permits.
#[derive(Debug)]
pub(super) struct GatedEmbedder {
    fingerprint: &'static str,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Submissions that may still pass.
    passes: u64,
    /// Submissions that are waiting at the gate.
    waiting: u64,
    /// Number of document passages embedded so far.
    embedded: u64,
    is_closed: bool,
}

impl Default for GatedEmbedder {
    /// Creates an open gate.
    fn default() -> Self {
        Self::with_passes(u64::MAX)
    }
}

impl GatedEmbedder {
    /// Lets `passes` submissions of documents pass, then none.
    pub(super) fn with_passes(passes: u64) -> Self {
        let state = State { passes, waiting: 0, embedded: 0, is_closed: false };
        let fingerprint = "hashing-test-double-1";
        Self { fingerprint, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Creates an open gate in front of a model with another fingerprint.
    pub(super) fn another() -> Self {
        Self { fingerprint: "hashing-test-double-2", ..Self::default() }
    }

    /// Lets everything pass.
    pub(super) fn open(&self) {
        self.state.lock().passes = u64::MAX;
        self.changed.notify_all();
    }

    /// Lets `passes` more submissions pass.
    pub(super) fn let_pass(&self, passes: u64) {
        self.state.lock().passes += passes;
        self.changed.notify_all();
    }

    /// Number of document passages embedded so far.
    pub(super) fn embedded(&self) -> u64 {
        self.state.lock().embedded
    }

    /// Number of submissions waiting at the gate.
    pub(super) fn waiting(&self) -> u64 {
        self.state.lock().waiting
    }

    /// Whether any submission is waiting at the gate.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting() > 0
    }
}

impl EmbedderDouble for GatedEmbedder {
    fn fingerprint(&self) -> &str {
        self.fingerprint
    }

    fn embed_within(
        &self,
        lane: Lane,
        _: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if lane == Lane::Bulk {
            let mut state = self.state.lock();
            state.waiting += 1;
            while state.passes == 0 && !state.is_closed {
                self.changed.wait(&mut state);
            }
            state.waiting -= 1;
            if state.is_closed {
                return Err(EmbedError::Closed);
            }
            state.passes -= 1;
            state.embedded += texts.len() as u64;
        }
        HashEmbedder.embed(lane, texts)
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}
