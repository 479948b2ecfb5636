//! Limits of tenants over HTTP: reached, told, freed.

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
    // Removed limits do not hold; another tenant never had them.
    let removed = limit(&server, "acme", Value::Null, Value::Null);
    assert_eq!(removed["limits"], json!({"max_sources": null, "max_bytes": null}));
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
    assert_eq!(before["limits"], json!({"max_sources": 1, "max_bytes": DEFAULT_BYTES}));
    assert_eq!(before["own_limits"], json!({"max_sources": 1, "max_bytes": null}));
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
