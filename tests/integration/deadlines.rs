//! Searches stop when their client disconnects or their time is up, whatever stage they are in.

use std::sync::Arc;
use std::time::Duration;

use lodestone_embed::{EmbedError, Embedder, EmbedderDouble, HashEmbedder, Lane};
use lodestone_types::{RequestContext, Stopped};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use crate::patience::Patience;
use crate::support::TestServer;

/// A model that never finishes texts of one lane: it blocks until the request is over.
#[derive(Debug, Default)]
struct Endless {
    lane: Mutex<Option<Lane>>,
    state: Arc<(Mutex<Calls>, Condvar)>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Calls {
    waiting: usize,
    stopped: Vec<Stopped>,
}

impl EmbedderDouble for Endless {
    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if *self.lane.lock() != Some(lane) {
            return HashEmbedder.embed(lane, texts);
        }
        let state = Arc::clone(&self.state);
        context.cancel().on_cancel(move || {
            drop(state.0.lock());
            state.1.notify_all();
        });
        let (calls, changed) = &*self.state;
        let mut calls = calls.lock();
        calls.waiting += 1;
        let stopped = loop {
            match context.check() {
                Err(stopped) => break stopped,
                Ok(()) => {
                    let until = context.deadline().expect("a search has a deadline");
                    changed.wait_until(&mut calls, until);
                }
            }
        };
        calls.waiting -= 1;
        calls.stopped.push(stopped);
        Err(stopped.into())
    }
}

fn server(timeout: Duration) -> (TestServer, Arc<Endless>) {
    let model = Arc::new(Endless::default());
    let part = Arc::clone(&model);
    let server = TestServer::start_with_parts(
        |settings| settings.query_timeout = timeout,
        |parts| parts.embedder = part,
    );
    server.index("acme", "default", "tower", "The tower is high. The tower was built of iron.");
    let memory = json!({"tenant_id": "acme", "user_memory": "I like the tower."});
    server.post("/user_memory/add_user_memory", memory).ok();
    (server, model)
}

/// Each lane in which a search or an answer can wait, with a request that does so.
fn requests() -> [(Lane, &'static str, Value); 4] {
    let asked = json!({"tenant_id": "acme", "query": "the tower", "question": "How high is it?"});
    let mut streamed = asked.clone();
    streamed["stream"] = json!(true);
    // A different question, because the vector of the previous one may be cached.
    streamed["question"] = json!("Of what was it built?");
    [
        (Lane::Query, "/search/retrieve", asked.clone()),
        (Lane::Query, "/user_memory/retrieve_user_memory", asked.clone()),
        (Lane::Answer, "/search/qna", asked),
        (Lane::Query, "/search/qna", streamed),
    ]
}

#[test]
fn a_search_ends_with_its_client() {
    let (server, model) = server(Duration::from_secs(3600));
    for (n, (lane, path, body)) in requests().into_iter().enumerate() {
        *model.lane.lock() = Some(lane);
        let calls = || model.state.0.lock().clone();
        server.leave(path, &body, || calls().waiting == 1);
        let mut patience = Patience::new();
        while calls().waiting > 0 {
            assert!(!patience.is_over(calls()), "{path} goes on without its client");
        }
        assert_eq!(calls().stopped, vec![Stopped::ClientGone; n + 1], "{path}");
    }
    *model.lane.lock() = None;
    assert_eq!(server.retrieve("acme", "default", "the tower").len(), 1);
}

#[test]
fn a_search_ends_at_its_deadline() {
    let limit = Duration::from_millis(500);
    let (server, model) = server(limit);
    for (lane, path, body) in requests() {
        *model.lane.lock() = Some(lane);
        let reply = server.post(path, body);
        let told = reply.error(503, "deadline_exceeded");
        assert!(told["message"].as_str().unwrap().contains("0.5 s"), "{path}: {told}");
        assert!(reply.headers.contains_key("retry-after"), "{path}");
    }
    // On a busy machine the time may be up before a search reaches the model.
    let stopped = &model.state.0.lock().stopped;
    let is_expected = |stopped: &Stopped| *stopped == Stopped::DeadlineExceeded { limit };
    assert!(!stopped.is_empty() && stopped.iter().all(is_expected), "{stopped:?}");
}

/// Goal: with a time limit of practically zero every search is rejected, and nothing else is.
#[test]
fn without_time_every_search_is_refused_and_nothing_else() {
    let (server, _) = server(Duration::from_nanos(1));
    server.post("/embeddings/create_tenant?tenant_id=v", Value::Null).ok();
    let rows = json!({"embeddings": [[1, 0], [0, 1]], "file_id": "batch"});
    server.post("/upload/upload_embeddings?tenant_id=v", rows).ok();
    let near = json!({"tenant_id": "v", "embeddings": [1, 0], "max_chunks": 1});
    let mut refused: Vec<_> = requests().into_iter().map(|(_, path, body)| (path, body)).collect();
    refused.push(("/search/full-text-search", refused[0].1.clone()));
    refused.push(("/embeddings/search", near));
    for (path, body) in refused {
        server.post(path, body).error(503, "deadline_exceeded");
    }
    server.index("acme", "default", "bridge", "The bridge is long.");
    assert_eq!(server.get("/list/sources?tenant_id=acme").ok()["success"], true);
}
