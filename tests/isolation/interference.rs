//! Non-interference: actions of other tenants change no byte of a response.
//!
//! The test performs the same operations in one scope on two fresh servers: once alone, and once
//! among uploads, searches and deletions in all other scopes, including sibling sub-tenants. The
//! clock shows the same time at each step of both runs. The comparison ignores request ids and
//! measured times. Chunk ids contain a counter of the server; they are compared by the order of
//! their first appearance.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::canary::{Codes, Seeded};
use crate::model::WORDS;
use crate::server::{Ask, OPERATOR, TestServer};

const STEPS: usize = 24;
const STEP_MILLIS: u64 = 60_000;

fn text(seeded: &mut Seeded, mark: &str) -> String {
    let sentences = 1 + seeded.below(30);
    let mut text = String::new();
    for _ in 0..sentences {
        for _ in 0..8 {
            text.push_str(seeded.word(&WORDS));
            text.push(' ');
        }
        text.push_str(&format!("of {mark}. "));
    }
    text
}

struct Run {
    server: TestServer,
    names: BTreeMap<String, String>,
}

impl Run {
    fn new() -> Self {
        let run = Self { server: TestServer::start(), names: BTreeMap::new() };
        run.ask(&Ask::new("POST", "/user/create_tenant").with("tenant_id", "mine"));
        run.ask(&Ask::new("POST", "/embeddings/create_tenant").with("tenant_id", "mine-vectors"));
        run
    }

    fn ask(&self, ask: &Ask) -> Value {
        let reply = self.server.send(Some(OPERATOR), ask);
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.bytes));
        reply.json()
    }

    fn upload(&self, tenant: &str, sub_tenant: &str, id: &str, content: &str) {
        let body = json!({"content": content, "file_id": id});
        self.ask(&Ask::new("POST", "/upload/upload_text").of(tenant, sub_tenant).json(body));
    }

    fn wait(&self, tenant: &str, sub_tenant: &str, id: &str) {
        let ask = Ask::new("POST", "/upload/verify_processing").of(tenant, sub_tenant);
        let ask = ask.with("file_id", id);
        while self.ask(&ask)["status"] != "success" {
            std::thread::yield_now();
        }
    }

    fn vectors(&self, tenant: &str, sub_tenant: &str, id: &str, seeded: &mut Seeded) {
        let rows: Vec<Vec<f32>> = (0..3).map(|_| vector(seeded)).collect();
        let body = json!({"embeddings": rows, "file_id": id});
        self.ask(&Ask::new("POST", "/upload/upload_embeddings").of(tenant, sub_tenant).json(body));
    }

    /// The body without what may differ: request id, timings, and what merging changes.
    fn plain(&mut self, mut body: Value) -> String {
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("request_id");
            metadata.remove("timings_ms");
            metadata.remove("vector_paths");
        }
        self.rename(&mut body);
        body.to_string()
    }

    fn rename(&mut self, value: &mut Value) {
        match value {
            Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => {
                let number = self.names.len();
                let name = self.names.entry(text.clone()).or_insert(format!("chunk {number}"));
                *text = name.clone();
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.rename(value)),
            Value::Object(members) => members.values_mut().for_each(|value| self.rename(value)),
            _ => {}
        }
    }

    /// Requests everything that a reader of the scope can request.
    fn answers(&mut self, seeded: &mut Seeded, mark: &str) -> Vec<String> {
        let query = format!("{} {} {mark}", seeded.word(&WORDS), seeded.word(&WORDS));
        let mut asks = Vec::new();
        let body = |name: &str, text: &str, more: Value| {
            let mut body = json!({"tenant_id": "mine", "sub_tenant_id": "default", name: text});
            for (name, value) in more.as_object().expect("members") {
                body[name] = value.clone();
            }
            body
        };
        for more in [
            json!({"alpha": 0, "max_chunks": 3}),
            json!({"alpha": 0.8}),
            json!({"alpha": 1, "max_chunks": 1001}),
            json!({"alpha": "auto", "mode": "accurate", "recency_bias": 0.5}),
        ] {
            let body = body("query", &query, more);
            asks.push(Ask::new("POST", "/search/retrieve").json(body));
        }
        for operator in ["and", "or"] {
            let body = body("query", &query, json!({"operator": operator}));
            asks.push(Ask::new("POST", "/search/full-text-search").json(body));
        }
        let question = body("question", &query, json!({"session_id": "talk"}));
        asks.push(Ask::new("POST", "/search/qna").json(question));
        asks.push(Ask::new("GET", "/list/sources").of("mine", "default"));
        asks.push(Ask::new("GET", "/list/sources").of("mine-vectors", "default"));
        let near = json!({
            "tenant_id": "mine-vectors", "embeddings": [vector(seeded), vector(seeded)],
        });
        asks.push(Ask::new("POST", "/embeddings/search").json(near));
        let mut answers = Vec::new();
        for ask in asks {
            let body = self.ask(&ask);
            answers.push(format!("{} {}", ask.path, self.plain(body)));
        }
        answers
    }
}

fn vector(seeded: &mut Seeded) -> Vec<f32> {
    (0..6).map(|_| (seeded.below(401) as f32 - 200.5) / 8.0).collect()
}

/// One step of everybody else: the same words, ids and sessions in other scopes.
fn disturb(run: &Run, seeded: &mut Seeded, codes: &mut Codes) {
    let scopes = [("mine", "east"), ("mine", "west"), ("other", "default"), ("third", "default")];
    for _ in 0..4 {
        let (tenant, sub_tenant) = *seeded.pick(&scopes);
        let id = format!("s{}", seeded.below(6));
        let mark = codes.stray();
        let content = text(seeded, &mark);
        run.upload(tenant, sub_tenant, &id, &content);
        if seeded.chance(50) {
            run.wait(tenant, sub_tenant, &id);
        }
        let body = json!({
            "tenant_id": tenant, "sub_tenant_id": sub_tenant, "session_id": "talk",
            "question": format!("{} {mark}", seeded.word(&WORDS)),
        });
        run.ask(&Ask::new("POST", "/search/qna").json(body));
        if seeded.chance(25) {
            let body =
                json!({"tenant_id": tenant, "sub_tenant_id": sub_tenant, "source_ids": [id]});
            run.ask(&Ask::new("DELETE", "/delete_source").json(body));
        }
    }
    run.vectors("mine-vectors", seeded.word(&["east", "west"]), "s1", seeded);
    run.vectors("other-vectors", "default", "s1", seeded);
}

fn run(seed: u64, is_disturbed: bool) -> Vec<Vec<String>> {
    let mut run = Run::new();
    let mut seeded = Seeded::new(seed);
    let (mut others, mut codes) = (Seeded::new(seed + 1), Codes::new(seed + 2));
    let begun = run.server.now();
    if is_disturbed {
        let ask = Ask::new("POST", "/embeddings/create_tenant");
        run.ask(&ask.with("tenant_id", "other-vectors"));
    }
    let mut answers = Vec::new();
    let mut marks = Vec::new();
    let mut own = Codes::new(seed);
    for step in 0..STEPS {
        if is_disturbed {
            run.server.advance_millis(7);
            disturb(&run, &mut others, &mut codes);
        }
        let at = begun + (step as u64 + 1) * STEP_MILLIS;
        run.server.advance_millis(at - run.server.now());
        let id = format!("s{}", seeded.below(6));
        marks.push(own.stray());
        let content = text(&mut seeded, &marks[step]);
        run.upload("mine", "default", &id, &content);
        run.wait("mine", "default", &id);
        run.vectors("mine-vectors", "default", &id, &mut seeded);
        if seeded.chance(20) {
            let id = format!("s{}", seeded.below(6));
            let body = json!({"tenant_id": "mine", "source_ids": [id]});
            run.ask(&Ask::new("DELETE", "/delete_source").json(body));
        }
        let mark = seeded.pick(&marks).clone();
        answers.push(run.answers(&mut seeded, &mark));
    }
    answers
}

#[test]
fn what_others_do_changes_no_byte_of_an_answer() {
    let seed = crate::seed();
    println!("LODESTONE_ISOLATION_SEED={seed}");
    let (alone, among) = (run(seed, false), run(seed, true));
    for (step, (alone, among)) in alone.iter().zip(&among).enumerate() {
        for (alone, among) in alone.iter().zip(among) {
            assert_eq!(alone, among, "step {step}");
        }
    }
    let compared: usize = alone.iter().map(Vec::len).sum();
    assert_eq!(compared, STEPS * 10);
}
