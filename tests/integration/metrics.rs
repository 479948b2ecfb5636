//! Metrics: the meaning of each, the keys that may read them, and the contents of their labels.

use std::sync::{Arc, Mutex};

use lodestone_io::StandInDisk;
use serde_json::{Value, json};

use crate::exposition::Scrape;
use crate::patience::Patience;
use crate::support::{KEY, TestServer};

fn scrape(server: &TestServer) -> Scrape {
    let reply = server.get("/metrics");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scrape::read(std::str::from_utf8(&reply.bytes).expect("UTF-8"))
}

/// Returns the first scrape that satisfies a condition; a job is counted slightly after its status
/// is visible.
fn scrape_when(server: &TestServer, is_wanted: impl Fn(&Scrape) -> bool) -> Scrape {
    let mut patience = Patience::new();
    loop {
        let now = scrape(server);
        if is_wanted(&now) {
            return now;
        }
        let jobs = now.series.iter().filter(|(series, _)| series.contains("_ingest_"));
        let jobs: Vec<(String, f64)> = jobs.map(|(series, n)| (series.clone(), *n)).collect();
        assert!(!patience.is_over(jobs.clone()), "{jobs:?}");
    }
}

/// Goal: each metric changes with the events that it counts, and with nothing else.
#[test]
fn each_counter_moves_by_what_happened() {
    let server = TestServer::start();
    let before = scrape(&server);
    assert_eq!(before.get("tenants{state=\"open\"}"), 0.0);
    for n in 0..3 {
        server.index("acme", "default", &format!("s{n}"), "Granite is an igneous rock.");
    }
    let broken = [
        ("tenant_id", None, b"acme".as_slice()),
        ("file_id", None, b"broken"),
        ("file", Some("broken.html"), b"<html><body><!-- nothing --></body></html>"),
    ];
    server.form("POST", "/upload/upload_document", &broken).ok();
    assert_eq!(server.settled("acme", "default", "broken")["status"], "errored");
    let query = json!({"tenant_id": "acme", "query": "igneous rock"});
    for _ in 0..5 {
        server.post("/search/retrieve", query.clone()).ok();
    }
    server.post("/search/full-text-search", query.clone()).ok();
    server.post("/search/qna", json!({"tenant_id": "acme", "question": "what is granite?"})).ok();
    server.post("/search/retrieve", json!({"tenant_id": "nobody", "query": "x"}));
    let after = scrape_when(&server, |now| {
        let ended = ["success", "errored"]
            .map(|end| now.get(&format!("ingest_jobs_total{{outcome=\"{end}\"}}")));
        ended == [3.0, 1.0] && now.get("ingest_queue_depth{stage=\"indexing\"}") == 0.0
    });
    let moved = |series: &str| after.get(series) - before.get(series);
    let requests = |method: &str, route: &str, status: &str| {
        let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
        moved(&format!("http_requests_total{{{labels}}}"))
    };
    assert_eq!(requests("POST", "/search/retrieve", "2xx"), 5.0);
    assert_eq!(requests("POST", "/search/retrieve", "4xx"), 1.0);
    assert_eq!(requests("POST", "/upload/upload_text", "2xx"), 3.0);
    assert!(requests("GET", "/metrics", "2xx") >= 1.0, "the scrape before this one");
    let of_retrieve = "method=\"POST\",route=\"/search/retrieve\"";
    let seconds = format!("http_request_duration_seconds_count{{{of_retrieve}}}");
    assert_eq!(moved(&seconds), 6.0);
    for (leg, count) in [
        ("retrieve", 6.0),
        ("embed", 6.0),
        ("semantic", 6.0),
        ("keyword", 6.0),
        ("full_text", 1.0),
        ("answer", 1.0),
        ("vectors", 0.0),
        ("rerank", 0.0),
    ] {
        assert_eq!(moved(&format!("search_seconds_count{{leg=\"{leg}\"}}")), count, "{leg}");
    }
    assert_eq!(moved("ingest_jobs_total{outcome=\"success\"}"), 3.0);
    assert_eq!(moved("ingest_jobs_total{outcome=\"errored\"}"), 1.0);
    assert_eq!(moved("ingest_vectors_total{origin=\"model\"}"), 3.0);
    for stage in ["validating", "parsing", "chunking", "embedding", "graph", "indexing"] {
        let spent = moved(&format!("ingest_stage_seconds_count{{stage=\"{stage}\"}}"));
        assert!((3.0..=4.0).contains(&spent), "{stage}: {spent}");
        assert_eq!(after.get(&format!("ingest_queue_depth{{stage=\"{stage}\"}}")), 0.0);
    }
    assert_eq!(after.get("ingest_queue_depth{stage=\"queued\"}"), 0.0);
    assert_eq!(after.get("tenants{state=\"open\"}"), 1.0);
    assert!(moved("tenant_cache_requests_total{outcome=\"hit\"}") > 5.0);
    assert!(after.get("memory_own_bytes") > 0.0 && after.get("memory_limit_bytes") > 0.0);
    assert!(after.get("disk_free_bytes") > 0.0);
}

/// Goal: bytes of deleted rows are reported until a merge reclaims them, and tenants are counted by
/// state.
#[test]
fn deleted_rows_and_tenants_are_told() {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let rows: Vec<[f32; 2]> = (0..100).map(|n| [n as f32, 1.0]).collect();
    let batch = json!({"file_id": "batch", "embeddings": rows});
    server.post("/upload/upload_embeddings?tenant_id=vectors", batch).ok();
    let before = scrape(&server);
    assert_eq!(before.get("deleted_pending_bytes"), 0.0);
    assert_eq!(before.get("tenants{state=\"open\"}"), 1.0);
    let delete = json!({"tenant_id": "vectors", "chunk_ids": ["batch_7"]});
    server.call("DELETE", "/embeddings/delete", delete).ok();
    let deleted = scrape(&server).get("deleted_pending_bytes");
    assert!(deleted > 8.0 && deleted < 10_000.0, "about a hundredth of a segment: {deleted}");
    server.call("DELETE", "/tenant/delete?tenant_id=vectors&confirm=vectors", Value::Null).ok();
    let gone = scrape_when(&server, |now| now.get("tenants{state=\"deleting\"}") == 0.0);
    let alive = ["open", "idle"].map(|state| gone.get(&format!("tenants{{state=\"{state}\"}}")));
    assert_eq!(alive, [0.0, 0.0]);
}

/// Goal: a passage that is unchanged in the next version of its source is not counted as embedded.
#[test]
fn unchanged_passages_are_told_from_embedded_ones() {
    let server = TestServer::start();
    for _ in 0..2 {
        server.index("acme", "default", "s", "Granite is an igneous rock.");
    }
    let now = scrape(&server);
    let of = |origin: &str| now.get(&format!("ingest_vectors_total{{origin=\"{origin}\"}}"));
    assert_eq!(["model", "unchanged", "kept"].map(of), [1.0, 1.0, 0.0]);
}

/// Goal: labels contain only words of the program, whatever callers send, and all requests to
/// unknown paths form one series.
#[test]
fn labels_hold_nothing_that_a_caller_wrote() {
    let server = TestServer::start();
    server.index("tenantsecret", "subsecret", "sourcesecret", "The contentsecret of a text.");
    let made = server.make_key("read", json!([{"tenant_id": "tenantsecret"}]));
    server.call_as(&made, "GET", "/list/sources?tenant_id=tenantsecret", &Value::Null).ok();
    let query = json!({"tenant_id": "tenantsecret", "query": "querysecret"});
    server.post("/search/retrieve", query).ok();
    let first = scrape(&server);
    for n in 0..20 {
        server.get(&format!("/pathsecret{n}?tenant_id=tenantsecret"));
        server.call_as("badkeysecret-badkeysecret-badkeysecret", "GET", "/jobs", &Value::Null);
        server.call("BREW", "/jobs", Value::Null);
        server.call("DELETE", &format!("/admin/api_keys/key_secret{n}"), Value::Null);
    }
    let second = scrape(&server);
    for value in &second.label_values {
        let is_told = value.contains("secret") || value.contains(&made) || value.contains(KEY);
        assert!(!is_told, "{value}");
    }
    // One status class each for: unknown route, invalid key, unknown method, unknown key id.
    let grown = second.series.len() - first.series.len();
    assert!(grown < 100, "{grown} series more");
    let labels = "method=\"other\",route=\"/jobs\",status=\"4xx\"";
    assert_eq!(second.get(&format!("http_requests_total{{{labels}}}")), 20.0);
    let labels = "method=\"GET\",route=\"-\",status=\"4xx\"";
    assert_eq!(second.get(&format!("http_requests_total{{{labels}}}")), 20.0);
}

/// Goal: metrics cover all tenants, and so a key for all tenants may read them, whatever its role.
#[test]
fn a_key_for_all_tenants_reads_metrics() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "A text.");
    server.call_as("", "GET", "/metrics", &Value::Null).error(401, "missing_api_key");
    for role in ["read", "write", "admin"] {
        let scoped = server.make_key(role, json!([{"tenant_id": "acme"}]));
        let reply = server.call_as(&scoped, "GET", "/metrics", &Value::Null);
        reply.error(403, "insufficient_scope");
    }
    let body = json!({"name": "prometheus", "role": "read"});
    let reader = server.post("/admin/api_keys", body).ok()["api_key"].clone();
    let reader = reader.as_str().expect("a key");
    assert_eq!(server.call_as(reader, "GET", "/metrics", &Value::Null).status, 200);
}

/// Goal: scrapes are answered while the disk hangs, and the gauges advance again once the disk
/// does.
#[test]
fn a_scrape_waits_for_no_disk() {
    let disk = Arc::new(StandInDisk::default());
    let parts = Arc::clone(&disk);
    let server = TestServer::start_with_parts(|_| {}, move |components| components.disk = parts);
    server.index("acme", "default", "s", "A text.");
    let gate = Arc::new(Mutex::new(()));
    let hanging = gate.lock().expect("nobody panics with it");
    let (asked, at_gate) = std::sync::mpsc::channel();
    let wait = Arc::clone(&gate);
    disk.before_space(move |_| {
        let _ = asked.send(());
        drop(wait.lock());
    });
    for _ in 0..3 {
        assert!(scrape(&server).get("tenants{state=\"open\"}") >= 1.0);
    }
    at_gate.recv().expect("the disk was asked");
    drop(hanging);
    scrape_when(&server, |now| now.get("disk_free_bytes") > 0.0);
}

/// Goal: a page opened now shows the hour before, to keys for all tenants.
#[test]
fn the_last_hour_counts_from_the_start() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "A wall of granite.");
    server.retrieve("acme", "default", "granite");
    let told = server.get("/metrics/hour").ok();
    let minutes = told["minutes"].as_array().unwrap();
    let running = minutes.last().unwrap();
    assert_eq!((&running["processed"], &running["errored"]), (&json!(1), &json!(0)), "{told}");
    assert!(running["requests"].as_u64().unwrap() > 1, "{told}");
    assert_eq!((&running["searches"]["count"], &running["answers"]), (&json!(1), &Value::Null));
    let [median, most] =
        ["median_ms", "p95_ms"].map(|of| running["searches"][of].as_f64().unwrap());
    assert!(0.0 < median && median <= most, "{median} {most}");
    let scoped = server.make_key("admin", json!([{"tenant_id": "acme"}]));
    server.call_as(&scoped, "GET", "/metrics/hour", &Value::Null).error(403, "insufficient_scope");
}
