//! Searches, answers and client vectors over a real engine whose model counts words.

use crate::listen::never_stops;
use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

use crate::app::App;
use crate::frame::{Frame, HttpSettings, router};
use crate::routes::table;
use lodestone_answer::generate::Sampling;
use lodestone_embed::HashEmbedder;
use lodestone_engine::qna::{Conversation, QnaRequest};
use lodestone_engine::query::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_engine::settings::Settings;
use lodestone_engine::{Components, Engine};
use lodestone_types::id::SessionId;
use lodestone_types::{
    Filter, JobStatus, RandomIds, RequestContext, Scope, SourceId, SubTenantId, SystemClock,
    TenantId,
};

const KEY: &str = "a-key-of-the-operator-for-the-tests-01";
const TOWER: &str = "The Eiffel Tower was designed by Gustave Eiffel for the world fair in Paris.";
const BRIDGE: &str = "The Golden Gate Bridge crosses the strait between San Francisco and Marin.";

struct Rig {
    engine: Arc<Engine>,
    router: Router,
    runtime: Runtime,
    _directory: TempDir,
}

impl Rig {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::new(directory.path().join("data"), "unused".into());
        settings.admin_key = Some(KEY.to_owned());
        let engine = Engine::start(settings, Components::real(Arc::new(HashEmbedder))).unwrap();
        let app = App::new(Arc::clone(&engine), never_stops());
        let frame = Frame {
            keys: Arc::new(app.clone()),
            app,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            spills: Arc::clone(engine.spills()),
            memory: Arc::clone(engine.memory()),
            meters: crate::watch::HttpMeters::default(),
            writer: None,
            peers: None,
            settings: HttpSettings::default(),
        };
        let router = router(table(), Router::new(), frame);
        Self { engine, router, runtime: Runtime::new().unwrap(), _directory: directory }
    }

    /// Creates a server with a text about a tower and one about a bridge in tenant `t`.
    fn with_texts() -> Self {
        let rig = Self::new();
        for (id, text, year) in [("tower", TOWER, 1889), ("bridge", BRIDGE, 1937)] {
            let body = json!({"content": text, "file_id": id, "document_metadata": {"year": year}});
            rig.ok("POST", "/upload/upload_text?tenant_id=t", body);
        }
        let grant = rig.engine.authenticate(KEY).unwrap();
        let (tenant, sub_tenant) = rig.scope();
        for id in ["tower", "bridge"] {
            let id = SourceId::parse(id).unwrap();
            let status = || {
                let (tenant, sub_tenant) = (Some(&tenant), Some(&sub_tenant));
                rig.engine.status(&grant, tenant, sub_tenant, &id).unwrap().view.unwrap().status
            };
            while status() != JobStatus::Success {
                assert_ne!(status(), JobStatus::Errored);
                std::thread::yield_now();
            }
        }
        rig
    }

    fn with_vectors() -> Self {
        let rig = Self::new();
        rig.ok("POST", "/embeddings/create_tenant?tenant_id=v", Value::Null);
        let rows = json!({"embeddings": [[1, 0], [0, 1], [0.5, 0.5]], "file_id": "a_b"});
        let stored = rig.ok("POST", "/upload/upload_embeddings?tenant_id=v", rows);
        assert_eq!(stored["chunk_ids"], json!(["a_b_0", "a_b_1", "a_b_2"]));
        assert_eq!((&stored["batch_id"], &stored["status"]), (&json!("a_b"), &json!("success")));
        rig
    }

    fn scope(&self) -> (TenantId, SubTenantId) {
        (TenantId::parse("t").unwrap(), SubTenantId::default_name())
    }

    fn response(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {KEY}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        let request = request.body(body).unwrap();
        self.runtime.block_on(self.router.clone().oneshot(request)).unwrap()
    }

    fn text_of(&self, response: Response) -> String {
        let bytes = self.runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let response = self.response(method, path, &body, &[]);
        let status = response.status();
        let text = self.text_of(response);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn search(&self, path: &str, body: Value) -> Value {
        self.ok("POST", path, in_tenant(body))
    }

    #[track_caller]
    fn refused(&self, path: &str, body: Value, status: u16, reason: &str) -> Value {
        let method = if path.contains("update") { "PATCH" } else { "POST" };
        let response = self.response(method, path, &body, &[]);
        assert_eq!(response.status(), status);
        let body: Value = serde_json::from_str(&self.text_of(response)).unwrap();
        assert_eq!(body["reason"], reason, "{body}");
        body
    }

    /// Returns the question as completed by a session; unchanged if the session has no turns.
    fn in_session(&self, session: &str, question: &str) -> String {
        let grant = self.engine.authenticate(KEY).unwrap();
        let (tenant, sub_tenant) = self.scope();
        let access = self.engine.open(&grant, &Scope { tenant, sub_tenant }, None).unwrap();
        let search = RetrieveRequest {
            query: question.to_owned(),
            extra_context: None,
            max_chunks: 1,
            mode: Mode::Fast,
            recall: Recall::Usual,
            alpha: Alpha::Fixed(0.5),
            recency_bias: 0.0,
            is_personalised: false,
            graph_context: GraphContext::Off,
            per_source_max: None,
            join: Join::Never,
            min_confidence: 0.0,
            filter: Filter::All.into(),
        };
        let request = QnaRequest {
            search,
            conversation: Conversation::Session(SessionId::parse(session).unwrap()),
            ai_generation: false,
            may_split: false,
            user_name: String::new(),
            user_instructions: String::new(),
            sampling: Sampling::default(),
            tools: None,
        };
        let mut turn = |_: &RequestContext| ControlFlow::Continue(Box::new(()) as Box<dyn Any>);
        let answer = self.engine.qna(&access, &request, None, &mut turn);
        answer.unwrap().grounds.question
    }

    /// Waits until every task, and thus every stream, has ended.
    fn settle(&self) {
        while self.runtime.metrics().num_alive_tasks() > 0 {
            std::thread::yield_now();
        }
    }
}

fn in_tenant(mut body: Value) -> Value {
    body["tenant_id"] = json!("t");
    body
}

/// Returns name and data of each event, after checking that the ids count from 1.
fn events(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    let parsed = blocks.enumerate().map(|(n, block)| {
        let mut lines = block.lines();
        assert_eq!(lines.next(), Some(format!("id: {}", n + 1).as_str()));
        let name = lines.next().unwrap().strip_prefix("event: ").unwrap();
        let data = lines.next().unwrap().strip_prefix("data: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    });
    parsed.collect()
}

#[test]
fn retrieve_gives_scored_chunks_and_says_how() {
    let rig = Rig::with_texts();
    let found = rig.search("/search/retrieve", json!({"query": "Eiffel Tower Paris"}));
    let chunk = &found["chunks"][0];
    assert_eq!(chunk["source_id"], "tower");
    assert_eq!(chunk["chunk_content"], TOWER);
    assert_eq!((&chunk["source_type"], &chunk["version"]), (&json!("text"), &json!("v1")));
    assert_eq!(chunk["document_metadata"], json!({"year": 1889}));
    assert_eq!((&chunk["extra_context"], &chunk["graph_triplet_ids"]), (&Value::Null, &json!([])));
    assert!(chunk["source_upload_time"].as_str().unwrap().parse::<f64>().unwrap() > 1e9);
    let layout: Value = serde_json::from_str(chunk["layout"].as_str().unwrap()).unwrap();
    assert_eq!(layout["offsets"]["document_level_start_index"], 0);
    let score = |chunk: &Value| chunk["relevancy_score"].as_f64().unwrap();
    let scores: Vec<f64> = found["chunks"].as_array().unwrap().iter().map(score).collect();
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let metadata = &found["metadata"];
    assert_eq!(metadata["returned"], scores.len());
    assert_eq!((&metadata["mode"], &metadata["alpha_mode"]), (&json!("fast"), &json!("fixed")));
    assert_eq!((&metadata["degraded"], &metadata["filtered"]), (&json!([]), &json!(false)));
    assert_eq!(found["graph_relations"], Value::Null);

    let asked = json!({"query": "Eiffel", "mode": "accurate", "alpha": "auto",
        "graph_context": true, "document_metadata": {"year": {"$gt": 1900}}});
    let found = rig.search("/search/retrieve", asked);
    assert_eq!(found["chunks"][0]["source_id"], "bridge");
    let relations = &found["graph_relations"];
    assert!(relations["chunk_triplets"].is_object(), "{relations}");
    assert_eq!(found["extra_graph_context"], relations["entity_paths"]);
    assert!(!relations.to_string().contains("Eiffel"), "the filter hides the tower: {relations}");
    let metadata = &found["metadata"];
    assert_eq!(metadata["degraded"], json!(["reranker_unavailable"]));
    assert_eq!((&metadata["alpha_mode"], &metadata["filtered"]), (&json!("auto"), &json!(true)));
    assert!((0.0..=1.0).contains(&metadata["alpha"].as_f64().unwrap()));
}

#[test]
fn faults_of_a_search_come_in_the_order_of_checks() {
    let rig = Rig::with_texts();
    let unknown = json!({"query": "x", "tenant_id": "nobody"});
    for path in ["/search/retrieve", "/search/full-text-search"] {
        let mut wrong = unknown.clone();
        wrong["document_metadata"] = json!({"year": {"$around": 3}});
        rig.refused(path, wrong, 400, "invalid_filter");
        let body = rig.refused(path, unknown.clone(), 404, "tenant_not_found");
        assert_eq!(body["error"], "Tenant not found");
    }
    rig.ok("POST", "/embeddings/create_tenant?tenant_id=v", Value::Null);
    let wrong_mode = json!({"query": "x", "question": "x", "tenant_id": "v"});
    for path in ["/search/retrieve", "/search/full-text-search", "/search/qna"] {
        rig.refused(path, wrong_mode.clone(), 409, "tenant_mode_mismatch");
    }
    let elsewhere = json!({"query": "Eiffel", "sub_tenant_id": "nowhere"});
    assert_eq!(rig.search("/search/retrieve", elsewhere)["chunks"], json!([]));
}

#[test]
fn full_text_search_is_a_bare_array_of_chunks_with_the_words() {
    let rig = Rig::with_texts();
    let ids = |body: Value| -> Vec<String> {
        let found = rig.search("/search/full-text-search", body);
        let id = |chunk: &Value| chunk["source_id"].as_str().unwrap().to_owned();
        found.as_array().unwrap().iter().map(id).collect()
    };
    let mut either = ids(json!({"query": "EIFFEL strait"}));
    either.sort();
    assert_eq!(either, ["bridge", "tower"]);
    assert_eq!(ids(json!({"query": "golden strait", "operator": "AND"})), ["bridge"]);
    assert!(ids(json!({"query": "eiffel strait", "operator": "and"})).is_empty());
    assert!(ids(json!({"query": "?!"})).is_empty());
}

#[test]
fn an_answer_rests_on_its_sources() {
    let rig = Rig::with_texts();
    let asked = json!({"question": "Who designed the Eiffel Tower?", "search_modes": ["x"]});
    let found = rig.search("/search/qna", asked.clone());
    let answer = found["answer"].as_str().unwrap();
    assert!(answer.contains("Gustave Eiffel") && answer.contains("[1]"), "{answer}");
    assert_eq!(found["sources"][0]["source_id"], "tower");
    assert_eq!(found["model_used"], "extractive");
    assert_eq!(found["session_id"], Value::Null);
    assert_eq!(found["metadata"]["generation"]["fallback"], true);
    assert_eq!(found["metadata"]["ignored_parameters"], json!(["search_modes"]));
    for chunk in found["chunks"].as_array().unwrap() {
        let source = &found["sources"][chunk["source_index"].as_u64().unwrap() as usize];
        assert_eq!(source["source_id"], chunk["source_id"]);
        assert!(source["chunk_uuids"].as_array().unwrap().contains(&chunk["chunk_uuid"]));
        assert_eq!(chunk["bounding_box"], Value::Null);
        assert!(!chunk["snippet"].as_str().unwrap().is_empty());
    }

    let mut plain = asked.clone();
    plain["highlight_chunks"] = json!(false);
    let found = rig.search("/search/qna", plain.clone());
    assert_eq!(found["chunks"], json!([]));
    assert_eq!(found["sources"][0]["source_id"], "tower");
    plain["ai_generation"] = json!(false);
    let found = rig.search("/search/qna", plain);
    assert_eq!((&found["answer"], &found["model_used"]), (&json!(""), &Value::Null));
    assert!(!found["chunks"].as_array().unwrap().is_empty());

    let mut nothing = asked;
    nothing["context_list"] = json!(["unknown"]);
    let found = rig.search("/search/qna", nothing);
    assert!(found["answer"].as_str().unwrap().contains("Nothing"), "{found}");
    assert_eq!((&found["sources"], &found["chunks"]), (&json!([]), &json!([])));
}

#[test]
fn a_stream_tells_everything_in_order_and_is_remembered() {
    let rig = Rig::with_texts();
    let question = "Who designed the Eiffel Tower?";
    let asked = in_tenant(json!({"question": question, "stream": true, "session_id": "s"}));
    let response = rig.response("POST", "/search/qna", &asked, &[]);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let told = events(&rig.text_of(response));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["start", "sources", "token"]);
    assert_eq!(names.last(), Some(&"done"));
    assert!(names[2..names.len() - 1].iter().all(|name| *name == "token"));
    let done = &told.last().unwrap().1;
    let delta = |(_, data): &(String, Value)| data["delta"].as_str().unwrap().to_owned();
    let joined: String = told[2..told.len() - 1].iter().map(delta).collect();
    assert_eq!(done["answer"], joined);
    assert_eq!((&told[0].1["session_id"], &done["session_id"]), (&json!("s"), &json!("s")));
    assert_eq!((&told[1].1["sources"], &told[1].1["chunks"]), (&done["sources"], &done["chunks"]));
    let follow_up = "When was it built?";
    assert_eq!(rig.in_session("s", follow_up), "When was the Eiffel Tower built?");
    assert_eq!(rig.in_session("another", follow_up), follow_up);

    let mut context = asked.clone();
    context["ai_generation"] = json!(false);
    let response = rig.response("POST", "/search/qna", &context, &[]);
    let told = events(&rig.text_of(response));
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "sources", "done"]);
    let mut wrong = asked;
    wrong["metadata"] = json!({"$nor": []});
    rig.refused("/search/qna", wrong, 400, "invalid_filter");
}

#[test]
fn a_client_that_leaves_adds_nothing_to_its_session() {
    let rig = Rig::with_texts();
    let asked = json!({"question": "Who designed the Eiffel Tower?", "stream": true,
        "session_id": "s"});
    let response = rig.response("POST", "/search/qna", &in_tenant(asked.clone()), &[]);
    let mut body = response.into_body();
    let first = rig.runtime.block_on(body.frame()).unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"id: 1\nevent: start\n"));
    drop(body);
    rig.settle();
    let follow_up = "When was it built?";
    assert_eq!(rig.in_session("s", follow_up), follow_up);
    let mut whole = asked;
    whole["stream"] = json!(false);
    rig.search("/search/qna", whole);
    assert_ne!(rig.in_session("s", follow_up), follow_up);
}

#[test]
fn vectors_are_found_by_nearness_and_by_id() {
    let rig = Rig::with_vectors();
    let nearest = |queries: Value, max: usize| {
        let body = json!({"tenant_id": "v", "embeddings": queries, "max_chunks": max});
        rig.ok("POST", "/embeddings/search", body)
    };
    let (one, same) = (nearest(json!([0, 2]), 2), nearest(json!([[0, 2]]), 2));
    assert_eq!(one["chunk_ids"], json!(["a_b_1", "a_b_2"]));
    assert!((one["scores"][0].as_f64().unwrap() - 1.0).abs() < 1e-5);
    assert_eq!((&one["chunk_ids"], &one["scores"]), (&same["chunk_ids"], &same["scores"]));
    let both = nearest(json!([[1, 0], [0, 1]]), 3);
    assert_eq!(both["chunk_ids"], json!(["a_b_0", "a_b_1", "a_b_2"]));
    assert_eq!(both["results"].as_array().unwrap().len(), 2);
    assert_eq!(both["results"][1][0]["chunk_id"], "a_b_1");

    let ids = json!({"tenant_id": "v", "chunk_ids": ["a_b_2", "none", "a_b_9", "/_0", "a_b_02"]});
    let by_id = rig.ok("POST", "/embeddings/retrieve_by_ids", ids);
    assert_eq!(by_id["embeddings"], json!({"a_b_2": [0.5, 0.5]}));
    assert_eq!(by_id["not_found_chunk_ids"], json!(["none", "a_b_9", "/_0", "a_b_02"]));

    let wide = json!({"tenant_id": "v", "sub_tenant_id": "empty", "embeddings": [1, 2, 3]});
    rig.refused("/embeddings/search", wide, 400, "dimension_mismatch");
    let empty = json!({"tenant_id": "v", "sub_tenant_id": "empty", "embeddings": [1, 2]});
    assert_eq!(rig.ok("POST", "/embeddings/search", empty)["chunk_ids"], json!([]));
    let many = json!({"tenant_id": "v", "embeddings": [1, 2], "max_chunks": 201});
    rig.refused("/embeddings/search", many, 400, "invalid_value");
}

#[test]
fn vectors_are_replaced_all_or_none_and_deleted_one_by_one() {
    let rig = Rig::with_vectors();
    let path = "/upload/update_embeddings?tenant_id=v";
    let update = |rows: Value| json!({ "embeddings": rows });
    let told = rig.refused(
        path,
        update(json!({"a_b_0": [9, 9], "a_b_7": [9, 9]})),
        404,
        "embeddings_not_found",
    );
    assert_eq!(told["error"], "Embeddings not found");
    assert_eq!(told["not_found"], json!(["a_b_7"]));
    rig.refused(path, update(json!({"a_b_0": [9, 9], "a_0": [9, 9]})), 400, "invalid_value");
    rig.refused(path, update(json!({"a_b_0": [9, 9, 9]})), 400, "dimension_mismatch");
    let stored = || {
        let ids = json!({"tenant_id": "v", "chunk_ids": ["a_b_0", "a_b_1"]});
        rig.ok("POST", "/embeddings/retrieve_by_ids", ids)["embeddings"].clone()
    };
    assert_eq!(stored()["a_b_0"], json!([1.0, 0.0]));
    let done = rig.ok("PATCH", path, update(json!({"a_b_0": [3, 4]})));
    assert_eq!((&done["updated_count"], &done["batch_id"]), (&json!(1), &json!("a_b")));
    assert_eq!(stored(), json!({"a_b_0": [3.0, 4.0], "a_b_1": [0.0, 1.0]}));

    let ids = json!({"tenant_id": "v", "chunk_ids": ["a_b_1", "a_b_1", "nothing", "a_b_8"]});
    let deleted = rig.ok("DELETE", "/embeddings/delete", ids.clone());
    assert_eq!(deleted["total_deleted"], 1);
    assert_eq!(deleted["status"], json!({"a_b_1": true, "a_b_8": false, "nothing": false}));
    assert_eq!(stored(), json!({"a_b_0": [3.0, 4.0]}));
    assert_eq!(rig.ok("DELETE", "/embeddings/delete", ids)["total_deleted"], 0);
}

#[test]
fn a_repeated_upload_of_vectors_is_one_batch() {
    let rig = Rig::with_vectors();
    let upload = || {
        let rows = json!({"embeddings": [[1, 1]]});
        let path = "/upload/upload_embeddings?tenant_id=v";
        let response = rig.response("POST", path, &rows, &[("idempotency-key", "k")]);
        assert_eq!(response.status(), 200);
        serde_json::from_str::<Value>(&rig.text_of(response)).unwrap()
    };
    let (first, second) = (upload(), upload());
    assert!(first["file_id"].as_str().unwrap().starts_with("emb_"));
    assert_eq!(first, second);
    let wide = json!({"embeddings": [[1, 2, 3]]});
    let path = "/upload/upload_embeddings?tenant_id=v";
    rig.refused(path, wide, 400, "dimension_mismatch");
    let documents = json!({"embeddings": [[1, 2]]});
    rig.refused("/upload/upload_embeddings?tenant_id=no", documents, 404, "tenant_not_found");
}
