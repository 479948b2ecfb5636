//! Limits of tenants over HTTP: reached, reported and released.

use std::sync::Barrier;

use lodestone_engine::settings::Settings;
use serde_json::{Value, json};

use crate::contract::check_error;
use crate::support::{Reply, TestServer};

const DEFAULT_BYTES: u64 = 1 << 20;

fn with_default(settings: &mut Settings) {
    settings.tenants.tenant_max_bytes = Some(DEFAULT_BYTES);
}

fn limit(server: &TestServer, tenant: &str, sources: Value, bytes: Value) -> Value {
    let body = json!({"tenant_id": tenant, "max_sources": sources, "max_bytes": bytes});
    server.post("/admin/tenant_limits", body).ok()
}

/// The limits as reported: null except for the given ones.
fn limits(set: &[(&str, u64)]) -> Value {
    let mut limits = json!({"max_sources": null, "max_bytes": null, "max_vectors": null,
        "max_requests_per_minute": null, "max_ingest_workers": null});
    set.iter().for_each(|(name, limit)| limits[name] = json!(limit));
    limits
}

fn usage(server: &TestServer, tenant: &str) -> Value {
    server.get(&format!("/tenant/usage?tenant_id={tenant}")).ok()
}

fn used(server: &TestServer, tenant: &str) -> (u64, u64) {
    let usage = usage(server, tenant);
    (usage["sources"].as_u64().unwrap(), usage["bytes"].as_u64().unwrap())
}

fn upload(server: &TestServer, id: &str, content: &str) -> Reply {
    let body = json!({"content": content, "file_id": id});
    server.post("/upload/upload_text?tenant_id=acme", body)
}

fn delete(server: &TestServer, id: &str) {
    server
        .call("DELETE", &format!("/delete_source?tenant_id=acme&source_ids={id}"), Value::Null)
        .ok();
}

fn refused(reply: &Reply, told: &str) {
    check_error(reply, told);
    let body = reply.error(507, "limit_reached");
    assert_eq!(body["error_code"], "LIMIT_REACHED");
    assert!(body["message"].as_str().unwrap().contains(told), "{body}");
}

#[test]
fn a_limit_is_reached_told_and_freed_at_once() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    server.index("acme", "north", "b", "pears fall too");
    assert_eq!(used(&server, "acme"), (2, 11 + 14));
    limit(&server, "acme", json!(3), json!(40));
    upload(&server, "c", "plums").ok();
    refused(&upload(&server, "d", "figs"), "limit of 3 sources is reached: it has 3");
    server.settled("acme", "default", "c");
    let long = "a text that has more than the fifteen bytes which are left";
    refused(&upload(&server, "c", long), "limit of 40 bytes is reached: it has 30");
    upload(&server, "c", "dates").ok();
    server.settled("acme", "default", "c");
    delete(&server, "c");
    assert_eq!(used(&server, "acme"), (2, 25));
    upload(&server, "d", "figs").ok();
    server.settled("acme", "default", "d");
    // Limits that were removed no longer apply, and never applied to other tenants.
    let removed = limit(&server, "acme", Value::Null, Value::Null);
    assert_eq!(removed["limits"], limits(&[]));
    upload(&server, "e", long).ok();
    server.settled("acme", "default", "e");
}

#[test]
fn of_a_batch_only_what_does_not_fit_fails() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    limit(&server, "acme", json!(3), Value::Null);
    let item = |id: &str| json!({"file_id": id, "content": "pears"});
    let items: Vec<Value> = ["b", "a", "c", "d", "e"].map(item).into();
    let path = "/upload/batch_upload_text?tenant_id=acme";
    let answer = server.post(path, json!({"items": items})).json();
    let failed = answer["failed"].as_array().expect("a list");
    let indices: Vec<_> = failed.iter().map(|one| one["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, [3, 4], "{answer}");
    assert_eq!(used(&server, "acme").0, 3);
}

#[test]
fn batches_of_vectors_count_and_memories_do_not() {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=v", Value::Null).ok();
    limit(&server, "v", json!(1), json!(24));
    let path = "/upload/upload_embeddings?tenant_id=v";
    let two = json!({"file_id": "s", "embeddings": [[1.0, 0.0], [0.0, 1.0]]});
    server.post(path, two.clone()).ok();
    assert_eq!(used(&server, "v"), (1, 16));
    server.post(path, two).ok();
    let one = json!({"file_id": "t", "embeddings": [[1.0, 0.0]]});
    refused(&server.post(path, one.clone()), "limit of 1 sources");
    let chunks = json!({"tenant_id": "v", "chunk_ids": ["s_0", "s_1"]});
    server.call("DELETE", "/embeddings/delete", chunks).ok();
    assert_eq!(used(&server, "v"), (0, 0), "a batch without vectors is gone");
    server.post(path, one).ok();

    server.index("acme", "default", "a", "apples fall");
    limit(&server, "acme", json!(1), json!(11));
    let memory = json!({"raw_text": "Ana lives in Porto"});
    server.post("/user_memory/add_user_memory?tenant_id=acme", memory).ok();
    assert_eq!(used(&server, "acme"), (1, 11));
}

#[test]
fn limits_and_use_survive_a_restart_and_defaults_hold_for_the_others() {
    let server = TestServer::start_with(with_default);
    server.index("acme", "default", "a", "apples fall");
    server.index("beta", "default", "a", "apples fall");
    limit(&server, "acme", json!(1), Value::Null);
    let before = usage(&server, "acme");
    let both = [("max_sources", 1), ("max_bytes", DEFAULT_BYTES)];
    assert_eq!((&before["limits"], &before["own_limits"]), (&limits(&both), &limits(&both[..1])));
    let server = server.restart_with(with_default);
    assert_eq!(usage(&server, "acme"), before);
    assert_eq!(usage(&server, "beta")["limits"]["max_sources"], Value::Null);
    refused(&upload(&server, "b", "pears"), "limit of 1 sources");
    let too_long = "x ".repeat(DEFAULT_BYTES as usize / 2) + "x";
    refused(&upload(&server, "a", &too_long), "limit of 1048576 bytes");
}

#[test]
fn the_use_is_told_to_keys_of_the_whole_tenant_and_limits_are_set_by_those_of_all() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    let whole = server.make_key("admin", json!([{"tenant_id": "acme"}]));
    let part = json!([{"tenant_id": "acme", "sub_tenant_ids": ["default"]}]);
    let part = server.make_key("read", part);
    let ask = |key: &str, tenant: &str| {
        let path = format!("/tenant/usage?tenant_id={tenant}");
        server.call_as(key, "GET", &path, &Value::Null)
    };
    assert_eq!(ask(&whole, "acme").ok()["sources"], 1);
    ask(&whole, "beta").error(404, "tenant_not_found");
    ask(&part, "acme").error(403, "insufficient_scope");
    ask(&part, "beta").error(404, "tenant_not_found");
    let body = json!({"tenant_id": "acme", "max_sources": 9});
    let set = server.call_as(&whole, "POST", "/admin/tenant_limits", &body);
    set.error(403, "insufficient_scope");
    let body = json!({"tenant_id": "acme", "max_sources": -1});
    server.post("/admin/tenant_limits", body).error(400, "invalid_value");
    let body = json!({"tenant_id": "nobody", "max_sources": 1});
    server.post("/admin/tenant_limits", body).error(404, "tenant_not_found");
}

/// Sends `times` requests at the same moment and returns their replies.
fn at_once(times: usize, ask: impl Fn(usize) -> Reply + Sync) -> Vec<Reply> {
    let start = Barrier::new(times);
    std::thread::scope(|scope| {
        let one = |n| {
            let (start, ask) = (&start, &ask);
            scope.spawn(move || {
                start.wait();
                ask(n)
            })
        };
        let threads: Vec<_> = (0..times).map(one).collect();
        threads.into_iter().map(|thread| thread.join().expect("a reply")).collect()
    })
}

fn with_status(replies: &[Reply], status: u16) -> usize {
    replies.iter().filter(|reply| reply.status == status).count()
}

#[test]
fn vectors_are_stored_up_to_the_limit_however_many_arrive_at_once() {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=v", json!({"max_vectors": 10})).ok();
    let put = |id: &str, rows: usize| {
        let body = json!({"file_id": id, "embeddings": vec![[1.0, 0.5]; rows]});
        server.post("/upload/upload_embeddings?tenant_id=v", body)
    };
    let replies = at_once(12, |n| put(&format!("b{n}"), 2));
    assert_eq!((with_status(&replies, 200), with_status(&replies, 507)), (5, 7));
    let full = "limit of 10 vectors is reached: it has 10, and this would make it 12";
    replies.iter().filter(|reply| reply.status != 200).for_each(|reply| refused(reply, full));
    assert_eq!(usage(&server, "v")["vectors"], 10);
    assert_eq!(usage(&server, "v")["own_limits"], limits(&[("max_vectors", 10)]));

    let stored = (0..12).find(|n| replies[*n].status == 200).expect("five are stored");
    put(&format!("b{stored}"), 2).ok();
    refused(&put(&format!("b{stored}"), 3), "this would make it 11");
    put(&format!("b{stored}"), 1).ok();
    put("one", 1).ok();
    refused(&put("two", 1), "limit of 10 vectors");
    let chunks = json!({"tenant_id": "v", "chunk_ids": ["one_0"]});
    server.call("DELETE", "/embeddings/delete", chunks).ok();
    put("two", 1).ok();
    assert_eq!(usage(&server, "v")["vectors"], 10);
}

#[test]
fn chunks_beyond_the_limit_end_their_jobs_and_older_versions_stay() {
    let server = TestServer::start_with(|settings| settings.ingest_threads = 4);
    server.post("/user/create_tenant", json!({"tenant_id": "acme", "max_vectors": 3})).ok();
    let accepted = at_once(8, |n| upload(&server, &format!("d{n}"), "apples fall"));
    let accepted: Vec<usize> = (0..8).filter(|n| accepted[*n].status == 200).collect();
    let ends: Vec<Value> =
        accepted.iter().map(|n| server.settled("acme", "default", &format!("d{n}"))).collect();
    let stored = ends.iter().filter(|end| end["status"] == "success").count();
    assert_eq!((stored, &usage(&server, "acme")["vectors"]), (3, &json!(3)));
    for end in ends.iter().filter(|end| end["status"] != "success") {
        let told = end.to_string();
        assert!(told.contains("TENANT_LIMIT") && told.contains("limit of 3 vectors"), "{told}");
    }
    refused(&upload(&server, "more", "pears"), "limit of 3 vectors is reached: it has 3");
    let memory = json!({"raw_text": "Ana lives in Porto"});
    let memories = "/user_memory/add_user_memory?tenant_id=acme";
    refused(&server.post(memories, memory.clone()), "limit of 3 vectors");

    let kept = accepted.iter().zip(&ends).find(|(_, end)| end["status"] == "success");
    let kept = format!("d{}", kept.expect("three are stored").0);
    let long = "Plums are ripe in the south. ".repeat(400);
    upload(&server, &kept, &long).ok();
    assert_eq!(server.settled("acme", "default", &kept)["status"], "errored");
    assert_eq!(usage(&server, "acme")["vectors"], 3, "the version of before is still there");
    upload(&server, &kept, "pears fall").ok();
    assert_eq!(server.settled("acme", "default", &kept)["status"], "success");
    delete(&server, &kept);
    server.post(memories, memory).ok();
    assert_eq!(usage(&server, "acme")["vectors"], 3, "a memory's chunk counts");
}

#[test]
fn requests_of_a_minute_are_counted_exactly_and_refused_with_the_time_to_wait() {
    let server = TestServer::start();
    server.index("calm", "default", "a", "apples fall");
    let body = json!({"tenant_id": "acme", "max_requests_per_minute": 7});
    server.post("/user/create_tenant", body).ok();
    let ask = || server.get("/tenant/stats?tenant_id=acme");
    let replies = at_once(30, |_| ask());
    assert_eq!((with_status(&replies, 200), with_status(&replies, 429)), (7, 23));
    let told = "limit of 7 requests per minute is reached (7 made)";
    for reply in replies.iter().filter(|reply| reply.status == 429) {
        check_error(reply, told);
        let body = reply.error(429, "tenant_rate_limited");
        assert!(body["message"].as_str().expect("a text").contains(told), "{body}");
        let wait = reply.headers["retry-after"].to_str().expect("a number").parse::<u64>();
        assert!((1..=61).contains(&wait.expect("a number")));
    }
    // Requests of every kind count; administration, the usage report and other tenants are exempt.
    let search = json!({"tenant_id": "acme", "query": "apples"});
    for reply in [
        server.post("/search/retrieve", search.clone()),
        server.post("/search/qna", json!({"tenant_id": "acme", "question": "apples?"})),
        upload(&server, "a", "apples"),
        server.get("/list/sources?tenant_id=acme"),
        server.post("/user_memory/add_user_memory?tenant_id=acme", json!({"raw_text": "x y"})),
    ] {
        assert_eq!(reply.status, 429, "{}", reply.json());
    }
    assert_eq!(usage(&server, "acme")["requests_last_minute"], 7);
    assert_eq!(usage(&server, "calm")["requests_last_minute"], Value::Null);
    server.get("/tenant/stats?tenant_id=calm").ok();
    server.get("/tenant/list").ok();

    let more = |requests: u64| {
        let body = json!({"tenant_id": "acme", "max_requests_per_minute": requests});
        server.post("/admin/tenant_limits", body).ok();
    };
    more(9);
    let item = |n: u64| json!({"file_id": format!("b{n}"), "content": "pears"});
    let items: Vec<Value> = (0..5).map(item).collect();
    let batch = json!({"items": items});
    server.post("/upload/batch_upload_text?tenant_id=acme", batch).ok();
    assert_eq!(usage(&server, "acme")["requests_last_minute"], 8, "a batch is one request");
    server.post("/search/retrieve", search).ok();
    ask().error(429, "tenant_rate_limited");
    let body = json!({"tenant_id": "acme", "max_requests_per_minute": 0});
    server.post("/admin/tenant_limits", body).error(400, "invalid_value");
    // Counts are per process and start anew.
    let server = server.restart();
    server.get("/tenant/stats?tenant_id=acme").ok();
    assert_eq!(usage(&server, "acme")["requests_last_minute"], 1);
}
