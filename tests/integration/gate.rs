//! An embedding model with a gate: documents are embedded only while the gate is open.
//!
//! While the gate is closed, a job stays `in_progress` at stage `embedding` for as long as the test
//! needs.

use std::sync::{Arc, Condvar, Mutex};

use lodestone_embed::{EmbedError, Embedder, EmbedderDouble, HashEmbedder, Lane};
use lodestone_types::RequestContext;

use crate::support::TestServer;

/// Opens the gate on drop, so that no server waits for a failed test.
#[derive(Debug)]
pub struct Gate(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

/// Starts a server with one worker, and its gate. The gate must be dropped before the server: bind
/// them in this order.
pub fn gated_server() -> (TestServer, Gate) {
    let gate = Gate(Arc::default());
    let embedder = Arc::new(Gated(Arc::clone(&gate.0)));
    let one_worker =
        |settings: &mut lodestone_engine::settings::Settings| settings.ingest_threads = 1;
    let server = TestServer::start_with_parts(one_worker, |parts| parts.embedder = embedder);
    (server, gate)
}

impl Gate {
    /// Makes documents wait from now on.
    pub fn close(&self) {
        self.set(true);
    }

    /// Lets documents proceed.
    pub fn open(&self) {
        self.set(false);
    }

    fn set(&self, is_closed: bool) {
        *self.0.is_closed.lock().unwrap() = is_closed;
        self.0.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

#[derive(Debug)]
struct Gated(Arc<State>);

impl EmbedderDouble for Gated {
    fn embed_within(
        &self,
        lane: Lane,
        _: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if lane == Lane::Bulk {
            let is_closed = self.0.is_closed.lock().unwrap();
            drop(self.0.changed.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        }
        HashEmbedder.embed(lane, texts)
    }
}
