//! Answers as event streams, and conversation sessions.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::contract::check_error;
use crate::corpus::{ids_of, list, server_and_clock, timeless, with};
use crate::support::{KEY, Reply, TestServer};

const QUESTION: &str = "Who designed the Eiffel Tower?";
/// On its own this question finds the bridge; after [`QUESTION`] it finds the tower.
const FOLLOW_UP: &str = "When was it built?";

fn items() -> [Value; 2] {
    [
        json!({"file_id": "tower", "content": "The Eiffel Tower was designed by Gustave Eiffel. \
            The Eiffel Tower was built in 1889."}),
        json!({"file_id": "bridge", "content": "Built it was, built again, and built in 1890."}),
    ]
}

fn with_texts() -> TestServer {
    let server = TestServer::start();
    server.index_items("acme", "default", &items());
    server
}

/// Builds a question whose answer is to be streamed.
fn streamed(changes: &Value) -> Value {
    let body = json!({"question": QUESTION, "tenant_id": "acme", "stream": true});
    with(body, changes)
}

/// An event of a stream.
pub struct Event {
    pub name: String,
    pub data: Value,
}

/// Parses a complete stream and checks that its event ids increase.
pub fn events(reply: &Reply) -> Vec<Event> {
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert!(!reply.headers.contains_key("content-encoding"), "streams are never compressed");
    let text = std::str::from_utf8(&reply.bytes).expect("UTF-8");
    assert!(text.ends_with("\n\n"), "the last event is whole");
    let mut last = 0;
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let parse = |block: &str| {
        let mut fields = block.lines().map(|line| line.split_once(": ").expect("a field"));
        let mut field = |name: &str| {
            let (found, value) = fields.next().expect("three fields");
            assert_eq!(found, name);
            value.to_owned()
        };
        let id: u64 = field("id").parse().expect("a number");
        assert!(id > last, "ids increase");
        last = id;
        let (name, data) = (field("event"), field("data"));
        Event { name, data: serde_json::from_str(&data).expect("one JSON object") }
    };
    blocks.map(parse).collect()
}

/// The names of events.
pub fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// Goal: a stream is `start`, `sources`, tokens and `done`, and `done` equals the unstreamed
/// answer.
#[test]
fn a_stream_tells_the_answer_in_order() {
    let server = with_texts();
    for changes in [json!({}), json!({"highlight_chunks": false}), json!({"graph_context": true})] {
        let reply = server.post("/search/qna", streamed(&changes));
        let told = events(&reply);
        let names = names(&told);
        let tokens = &told[2..told.len() - 1];
        assert_eq!((names[0], names[1], names[names.len() - 1]), ("start", "sources", "done"));
        assert!(!tokens.is_empty() && tokens.iter().all(|event| event.name == "token"));
        let done = &told[told.len() - 1].data;
        let joined: String =
            tokens.iter().map(|event| event.data["delta"].as_str().expect("a text")).collect();
        assert_eq!(done["answer"], joined);
        assert!(joined.contains("Gustave Eiffel"), "{joined}");
        let request_id = reply.headers["x-request-id"].to_str().unwrap();
        let start = json!({"request_id": request_id, "session_id": null,
            "model": done["model_used"]});
        assert_eq!(told[0].data, start);
        for name in ["sources", "chunks", "graph_relations"] {
            assert_eq!(told[1].data[name], done[name], "{name}");
        }
        assert_eq!(told[1].data.as_object().unwrap().len(), 3);
        let plain = server.post("/search/qna", streamed(&with(changes, &json!({"stream": false}))));
        let plain = plain.ok();
        let members =
            |body: &Value| -> Vec<String> { body.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(members(done), members(&plain));
        assert_eq!(timeless(done.clone()), timeless(plain));
    }
}

/// Goal: a stream without generation has no tokens.
#[test]
fn a_stream_without_generation_has_no_tokens() {
    let server = with_texts();
    let changes = json!({"ai_generation": false});
    let told = events(&server.post("/search/qna", streamed(&changes)));
    assert_eq!(names(&told), ["start", "sources", "done"]);
    assert_eq!((&told[0].data["model"], &told[2].data["answer"]), (&Value::Null, &json!("")));
    assert!(!list(&told[2].data, "chunks").is_empty());
}

/// Goal: a stream is not compressed even for a client that accepts compression.
#[test]
fn a_stream_is_never_compressed() {
    let server = with_texts();
    let ask = |stream: bool| {
        let request = Request::post("/search/qna")
            .header("authorization", format!("Bearer {KEY}"))
            .header("accept-encoding", "gzip, br, zstd");
        let body = streamed(&json!({"stream": stream})).to_string();
        server.send(request.body(Body::from(body)).unwrap())
    };
    assert!(ask(false).headers.contains_key("content-encoding"), "a whole answer is");
    let reply = ask(true);
    assert_eq!(events(&reply).last().unwrap().name, "done");
    assert_eq!(reply.headers["cache-control"], "no-store");
}

/// Goal: errors before the first event are ordinary HTTP error responses.
#[test]
fn faults_of_a_streamed_question_are_plain_statuses() {
    let server = with_texts();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    for (changes, status, reason) in [
        (json!({"question": null}), 400, "missing_field"),
        (json!({"top_n": 0}), 400, "invalid_value"),
        (json!({"stream": "yes"}), 400, "invalid_value"),
        (json!({"metadata": {"$nor": []}}), 400, "invalid_filter"),
        (json!({"tenant_id": "nowhere"}), 404, "tenant_not_found"),
        (json!({"tenant_id": "vectors"}), 409, "tenant_mode_mismatch"),
    ] {
        let reply = server.post("/search/qna", streamed(&changes));
        check_error(&reply, &changes.to_string());
        reply.error(status, reason);
        assert_eq!(reply.headers["content-type"], "application/json", "{changes}");
    }
}

/// Returns the first source of an answer to `question`, found by keyword search alone.
fn first_source(server: &TestServer, question: &str, changes: &Value) -> String {
    let words = json!({"search_alpha": 0, "top_n": 1, "ai_generation": false});
    let found = server.qna(question, &with(words, changes));
    ids_of(&list(&found, "sources")).concat()
}

/// Asks the first question of a session.
fn begin(server: &TestServer, place: &Value) {
    let found = server.qna(QUESTION, place);
    assert_eq!(found["session_id"], place["session_id"]);
}

/// Goal: a follow-up is understood from the preceding turn, in its own session only.
#[test]
fn a_follow_up_is_understood_in_its_own_session_alone() {
    let server = with_texts();
    server.index_items("acme", "north", &items());
    server.index_items("other", "default", &items());
    assert_eq!(first_source(&server, FOLLOW_UP, &json!({})), "bridge");
    let place = json!({"session_id": "talk"});
    begin(&server, &place);
    for elsewhere in [
        json!({}),
        json!({"session_id": null}),
        json!({"session_id": ""}),
        json!({"session_id": "Talk"}),
        json!({"session_id": "another"}),
        json!({"session_id": "talk", "sub_tenant_id": "north"}),
        json!({"session_id": "talk", "tenant_id": "other"}),
    ] {
        assert_eq!(first_source(&server, FOLLOW_UP, &elsewhere), "bridge", "{elsewhere}");
    }
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
    let default = json!({"session_id": "talk", "sub_tenant_id": "default"});
    assert_eq!(first_source(&server, FOLLOW_UP, &default), "tower", "default is its name");
}

/// Goal: without a `session_id` nothing is remembered, and the answer's `session_id` is null.
#[test]
fn without_a_session_nothing_is_kept() {
    let server = with_texts();
    for session in [json!(null), json!("")] {
        let found = server.qna(QUESTION, &json!({"session_id": session}));
        assert_eq!(found["session_id"], Value::Null);
        assert_eq!(first_source(&server, FOLLOW_UP, &json!({"session_id": session})), "bridge");
    }
}

/// Goal: a question asked without generation is no turn: the last answer stays the last turn.
#[test]
fn a_question_without_an_answer_is_no_turn() {
    let server = with_texts();
    let place = json!({"session_id": "talk"});
    begin(&server, &place);
    for n in 0..11 {
        first_source(&server, &format!("Which number comes behind {n}?"), &place);
    }
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
}

/// Goal: filters do not carry over to the next turn, and a rejected question is no turn.
#[test]
fn a_session_hands_on_questions_and_no_filters() {
    let server = with_texts();
    let place = json!({"session_id": "talk"});
    let wrong = with(place.clone(), &json!({"metadata": {"$nor": []}}));
    server.ask("qna", QUESTION, &wrong).error(400, "invalid_filter");
    let other = json!({"session_id": "refused"});
    assert_eq!(first_source(&server, FOLLOW_UP, &other), "bridge");
    // The filter of the first turn excludes the tower; the second turn finds it.
    begin(&server, &with(place.clone(), &json!({"context_list": ["bridge"]})));
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
}

/// Goal: a session expires after its idle time, and activity keeps it alive.
#[test]
fn an_idle_session_is_over_after_a_day() {
    const HOUR: u64 = 3_600_000;
    let (server, clock) = server_and_clock();
    server.index_items("acme", "default", &items());
    let place = json!({"session_id": "talk"});
    begin(&server, &place);
    clock.advance_millis(23 * HOUR);
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
    clock.advance_millis(23 * HOUR);
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower", "the last turn kept it");
    clock.advance_millis(24 * HOUR);
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "bridge");
}

/// Goal: with an idle time of 0 hours a session never expires.
#[test]
fn a_session_may_be_kept_for_good() {
    let (_, clock) = server_and_clock();
    let parts = Arc::clone(&clock);
    let server = TestServer::start_with_parts(
        |settings| settings.session_idle_hours = 0,
        |components| components.clock = parts,
    );
    server.index_items("acme", "default", &items());
    let place = json!({"session_id": "talk"});
    begin(&server, &place);
    clock.advance_millis(10 * 365 * 24 * 3_600_000);
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
}

/// Goal: a session survives a restart and is deleted with its sub-tenant.
#[test]
fn a_session_outlives_a_restart_and_ends_with_its_sub_tenant() {
    let server = TestServer::start();
    server.index_items("acme", "north", &items());
    let place = json!({"session_id": "talk", "sub_tenant_id": "north"});
    begin(&server, &place);
    let server = server.restart();
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
    let path = "/tenant/delete_sub_tenant?tenant_id=acme&sub_tenant_id=north";
    server.call("DELETE", path, Value::Null).ok();
    server.index_items("acme", "north", &items());
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "bridge");
}

/// A router on a runtime of its own, which shows when all tasks have ended.
pub struct Wire {
    router: Router,
    pub runtime: Runtime,
}

impl Wire {
    /// Builds a router on the server's engine.
    pub fn new(server: &TestServer) -> Self {
        let router = lodestone_server::product_router(
            Arc::clone(&server.engine),
            lodestone_server::never_stops(),
        );
        Self { router, runtime: Runtime::new().expect("a runtime") }
    }

    /// Asks a question; returns the response with its body still unread.
    pub fn ask(&self, body: &Value) -> Response {
        let request = Request::post("/search/qna").header("authorization", format!("Bearer {KEY}"));
        let request = request.body(Body::from(body.to_string())).unwrap();
        let router = self.router.clone();
        self.runtime.block_on(router.oneshot(request)).expect("the router always answers")
    }

    /// Waits until all tasks, and with them all streams, have ended.
    pub fn settle(&self) {
        while self.runtime.metrics().num_alive_tasks() > 0 {
            std::thread::yield_now();
        }
    }
}

/// Goal: a client that disconnects early adds no turn to the session, however much of the stream it
/// read; one that reads to the end adds one.
#[test]
fn a_stream_that_is_not_read_to_its_end_is_no_turn() {
    let server = with_texts();
    let wire = Wire::new(&server);
    let whole = events(&server.post("/search/qna", streamed(&json!({})))).len();
    assert!(whole > 3);
    for taken in 0..whole - 1 {
        let place = json!({"session_id": format!("left-after-{taken}")});
        let mut body = wire.ask(&streamed(&place)).into_body();
        for _ in 0..taken {
            wire.runtime.block_on(body.frame()).expect("a frame").expect("no error");
        }
        drop(body);
        wire.settle();
        assert_eq!(first_source(&server, FOLLOW_UP, &place), "bridge", "{place}");
    }
    let place = json!({"session_id": "stayed"});
    let body = wire.ask(&streamed(&place)).into_body();
    wire.runtime.block_on(body.collect()).expect("a body");
    wire.settle();
    assert_eq!(first_source(&server, FOLLOW_UP, &place), "tower");
}
