//! Limits and hostile input: rejected in time, without changing anything.

use axum::body::Body;
use http::Request;
use lodestone_engine::settings::RateLimit;
use serde_json::{Value, json};

use crate::contract::{Operation, check_error, guarded, operations};
use crate::support::{KEY, Part, TestServer};

const MIB: usize = 1 << 20;

#[test]
fn a_rate_above_the_limit_is_429_with_the_seconds_to_wait() {
    let limit = RateLimit { per_second: 0.01, burst: 3.0 };
    let server = TestServer::start_with(|settings| settings.rate_limit = Some(limit));
    for _ in 0..3 {
        server.get("/tenant/list").ok();
    }
    let refused = server.get("/tenant/list");
    check_error(&refused, "above the rate");
    let body = refused.error(429, "rate_limited");
    assert_eq!(body["error"], "Too many requests");
    assert_eq!(body["error_code"], "RATE_LIMITED");
    let seconds: u32 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=100).contains(&seconds), "{seconds}");
    server.get("/nowhere").error(429, "rate_limited");
    // Requests that need no key are not rate-limited, and a wrong key costs nobody else's quota.
    for path in ["/healthz", "/openapi.json"] {
        let bare = Request::builder().uri(path).body(Body::empty()).unwrap();
        assert_eq!(server.send(bare).status, 200);
    }
    assert_eq!(server.call_as("wrong", "GET", "/tenant/list", &Value::Null).status, 401);
}

#[test]
fn each_key_has_its_own_rate() {
    let limit = RateLimit { per_second: 0.01, burst: 2.0 };
    let server = TestServer::start_with(|settings| settings.rate_limit = Some(limit));
    let second = server.make_key("read", Value::Null);
    server.get("/jobs").ok();
    server.get("/jobs").error(429, "rate_limited");
    assert_eq!(server.call_as(&second, "GET", "/jobs", &Value::Null).status, 200);
}

#[test]
fn health_and_the_document_need_no_key() {
    let server = TestServer::start();
    let get = |path: &str| server.send(Request::builder().uri(path).body(Body::empty()).unwrap());
    assert_eq!(get("/healthz").ok(), json!({"status": "ok"}));
    assert_eq!(get("/readyz").ok()["status"], "ok");
    let document = get("/openapi.json").ok();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let page = get("/docs");
    assert_eq!(page.status, 200);
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/html"));
    let head = Request::builder().method("HEAD").uri("/healthz").body(Body::empty()).unwrap();
    let head = server.send(head);
    assert_eq!((head.status, head.bytes.len()), (200, 0));
}

const CONTRACT: &[&str] = &[
    "POST /upload/scrape_webpage", "POST /upload/upload_app_sources",
    "POST /upload/upload_document", "POST /upload/verify_processing", "POST /upload/batch_upload",
    "POST /upload/upload_text", "PATCH /upload/update_text", "PATCH /upload/update_document",
    "PATCH /upload/batch_update", "POST /upload/upload_embeddings",
    "PATCH /upload/update_embeddings", "DELETE /upload/delete_source", "DELETE /delete_source",
    "DELETE /embeddings/delete", "GET /list/sources", "POST /list/sources_by_id",
    "GET /tenant/sub_tenant_ids", "GET /tenant/stats", "DELETE /tenant/delete_sub_tenant",
    "POST /user/create_tenant", "POST /embeddings/create_tenant", "POST /embeddings/search",
    "POST /embeddings/retrieve_by_ids", "POST /search/qna", "POST /search/retrieve",
    "POST /search/full-text-search", "POST /fetch/fetch_content",
    "POST /user_memory/add_user_memory", "GET /user_memory/list_user_memories",
    "DELETE /user_memory/delete_user_memory", "POST /user_memory/retrieve_user_memory",
    "POST /user_memory/generate_user_memory",
];

#[test]
fn the_document_names_every_operation_of_the_contract() {
    let server = TestServer::start();
    let served: Vec<String> = operations(&server).iter().map(Operation::name).collect();
    for name in CONTRACT {
        assert!(served.iter().any(|served| served == name), "{name} is missing");
    }
    assert_eq!(CONTRACT.len(), 31 + 1, "2.1 counts both paths of #12 once");
}

/// A request that announces `bytes` and sends almost none of them.
fn announced(operation: &Operation, bytes: usize) -> Request<Body> {
    let content_type = match operation.is_multipart() {
        true => "multipart/form-data; boundary=B",
        false if operation.path == "/tenant/import" => "application/x-ndjson",
        false => "application/json",
    };
    Request::builder()
        .method(operation.method.as_str())
        .uri(operation.filled_path())
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", content_type)
        .header("content-length", bytes.to_string())
        .body(Body::from("{}"))
        .unwrap()
}

#[test]
fn a_body_announced_too_large_is_refused_unread_everywhere() {
    let server = TestServer::start();
    for operation in guarded(&server) {
        let over = if operation.path == "/tenant/import" { 4097 } else { 600 };
        let reply = server.send(announced(&operation, over * MIB));
        check_error(&reply, &operation.name());
        let body = reply.error(413, "body_too_large");
        if !operation.path.starts_with("/v1/") {
            assert_eq!(body["error"], "Payload too large", "{}", operation.name());
            assert_eq!(body["error_code"], "PAYLOAD_TOO_LARGE");
        }
        let limit = match operation.path.as_str() {
            path if operation.is_multipart() && path.contains("batch") => 512,
            _ if operation.is_multipart() => 100,
            path if path.ends_with("_text") => 64,
            "/embeddings/search" => 16,
            "/v1/embeddings" | "/v1/rerank" | "/v1/chat/completions" => 8,
            path if path.contains("embeddings") && operation.takes("embeddings") => 256,
            "/upload/upload_app_sources" => 256,
            "/tenant/import" => 4096,
            _ => 16,
        };
        let within = server.send(announced(&operation, limit * MIB));
        assert_ne!(within.status, 413, "{} within {limit} MiB", operation.name());
    }
}

#[test]
fn a_body_that_grows_too_large_is_cut_off() {
    let server = TestServer::start();
    let body = format!("{{\"tenant_id\": \"acme\", \"query\": \"{}\"}}", "x".repeat(16 * MIB));
    let request = Request::builder()
        .method("POST")
        .uri("/search/retrieve")
        .header("authorization", format!("Bearer {KEY}"))
        .body(Body::from(body))
        .unwrap();
    server.send(request).error(413, "body_too_large");
}

/// Goal: a request that respects every documented limit also fits into the body limit.
#[test]
fn the_longest_ids_fit_however_they_are_written() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let id = |number: usize| format!("\"{number:04}{}\"", "\\u6f22".repeat(252));
    let ids: Vec<String> = (0..1000).map(id).collect();
    let ids = ids.join(",");
    let body = format!(r#"{{"tenant_id": "acme", "query": "x", "context_list": [{ids}]}}"#);
    let request = Request::builder()
        .method("POST")
        .uri("/search/retrieve")
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    assert_eq!(server.send(request).ok()["chunks"], json!([]));
}

#[test]
fn a_text_or_file_above_its_limit_is_413_and_nothing_is_stored() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let text = "x".repeat(10 * MIB + 1);
    let body = json!({"content": text, "file_id": "a"});
    server.post("/upload/upload_text?tenant_id=acme", body).error(413, "content_too_large");
    let file = vec![b'x'; 100 * MIB + 1];
    let parts: [Part<'_>; 1] = [("file", Some("a.txt"), &file)];
    let path = "/upload/upload_document?tenant_id=acme";
    server.form("POST", path, &parts).error(413, "file_too_large");
    assert!(server.sources("acme", "default").is_empty());
}

#[test]
fn metadata_keeps_to_its_limits() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let upload = |name: &str, map: Value| {
        let mut body = json!({"content": "x", "file_id": "a"});
        body[name] = map;
        server.post("/upload/upload_text?tenant_id=acme", body)
    };
    let deep = |levels: usize| (1..levels).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
    let key = |chars: usize| {
        let key = "é".repeat(chars);
        json!({ key: 1 })
    };
    for name in ["tenant_metadata", "document_metadata"] {
        upload(name, json!({"a": "x".repeat(64 * 1024)})).error(413, "content_too_large");
        upload(name, deep(9)).error(400, "invalid_value");
        upload(name, key(129)).error(400, "invalid_value");
        upload(name, json!({"": 1})).error(400, "invalid_value");
        for map in [json!([]), json!("x"), json!(7), json!(true)] {
            upload(name, map).error(400, "invalid_value");
        }
        assert!(server.sources("acme", "default").is_empty());
    }
    for map in [deep(8), key(128), json!({"a": "x".repeat(60 * 1024)})] {
        upload("document_metadata", map.clone()).ok();
        assert_eq!(server.settled("acme", "default", "a")["status"], "success");
        assert_eq!(server.source("acme", "default", "a")["document_metadata"], map);
    }
}

/// Parameters that are accepted with any value.
const WITHOUT_EFFECT: &[&str] = &["auto_agent_routing", "search_modes", "file_type"];

/// Values that a field with this schema must reject.
fn mistyped(schema: &Value) -> Vec<Value> {
    match schema["type"].as_str() {
        Some("string") => vec![json!(7), json!({}), json!(["x"]), json!(true)],
        Some("integer") => {
            let mut values =
                vec![json!("x"), json!(1.5), json!(-1), json!(1e30), json!([1]), json!({})];
            values.extend(schema["maximum"].as_u64().map(|max| json!(max + 1)));
            values
        }
        Some("number") => {
            let beyond = schema["maximum"].as_f64().unwrap_or(1.0) + 0.01;
            vec![json!("x"), json!(beyond), json!(-0.01), json!([]), json!({})]
        }
        Some("boolean") => vec![json!("maybe"), json!({}), json!([true])],
        Some("array") => {
            let mut values = vec![json!(7), json!({}), json!([7]), json!([[[]]])];
            let takes_null = schema["items"]["type"][1] == "null";
            values.extend((!takes_null).then(|| json!([null])));
            values
        }
        Some("object") => vec![json!(7), json!("x"), json!([]), json!([{}])],
        _ => Vec::new(),
    }
}

#[test]
fn a_mistyped_value_of_any_field_is_refused_and_changes_nothing() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    let before = server.state("acme");
    let mut tried = 0;
    for operation in guarded(&server) {
        if operation.is_multipart() {
            continue;
        }
        for (name, schema) in operation.members() {
            if WITHOUT_EFFECT.contains(&name.as_str()) {
                continue;
            }
            for wrong in mistyped(&schema) {
                let mut sample = operation.sample("acme", None);
                sample.members.insert(name.clone(), wrong.clone());
                let reply = operation.send(&server, KEY, &sample);
                let what = format!("{} with {name} {wrong}", operation.name());
                assert_eq!(reply.status, 400, "{what}: {}", reply.json());
                check_error(&reply, &what);
                tried += 1;
            }
        }
        for (name, schema) in operation.parameters() {
            let words: &[&str] = match schema["type"].as_str() {
                Some("integer") => &["x", "-1", "1.5", "99999999999999999999", "0x10", " 1"],
                Some("boolean") => &["maybe", "TRUE", "2"],
                Some("string") if schema["enum"].is_array() => &["nonsense", "SUCCESS"],
                _ => &[],
            };
            for word in words {
                let mut sample = operation.sample("acme", None);
                sample.query.retain(|(other, _)| *other != name);
                sample.query.push((name.clone(), (*word).to_owned()));
                let reply = operation.send(&server, KEY, &sample);
                let what = format!("{} with {name}={word}", operation.name());
                assert_eq!(reply.status, 400, "{what}: {}", reply.json());
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried} values were tried");
    assert_eq!(server.state("acme"), before);
}

#[test]
fn a_missing_field_is_named_and_nothing_changes() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    let before = server.state("acme");
    for operation in guarded(&server) {
        let whole = operation.sample("acme", None);
        let required: Vec<String> = whole
            .members
            .keys()
            .chain(whole.query.iter().map(|(name, _)| name))
            .filter(|name| operation.is_required(name))
            .cloned()
            .collect();
        for name in required {
            let mut sample = whole.clone();
            sample.members.shift_remove(&name);
            sample.query.retain(|(other, _)| *other != name);
            let reply = operation.send(&server, KEY, &sample);
            let what = format!("{} without {name}", operation.name());
            let body = reply.error(400, "missing_field");
            let told = match body["error"].is_object() {
                true => &body["error"]["param"],
                false => &body["detail"]["errors"][0]["field"],
            };
            assert_eq!(told, name.as_str(), "{what}");
        }
    }
    assert_eq!(server.state("acme"), before);
}

#[test]
fn hostile_text_is_stored_as_text_or_refused() {
    let server = TestServer::start();
    let nested = format!("{}x", "> ".repeat(5000));
    let brackets = "[".repeat(50_000);
    let tags = "<div>".repeat(20_000);
    let emphasis = "*_`".repeat(20_000);
    let combining = format!("a{}", "\u{301}".repeat(20_000));
    let long = "x".repeat(200_000);
    let texts = [
        "'; DROP TABLE jobs; --", "../../etc/passwd", "{{7*7}} ${7*7}", "\u{202e}reversed",
        "\u{fffe}\u{ffff}\u{0}\u{1}", &nested, &brackets, &tags, &emphasis, &combining, &long,
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let id = format!("t{n}");
        let body = json!({"content": text, "file_id": id});
        server.post("/upload/upload_text?tenant_id=acme", body).ok();
        let status = server.settled("acme", "default", &id);
        assert!(["success", "errored"].iter().any(|state| status["status"] == *state), "{n}");
        let fetch = json!({"tenant_id": "acme", "file_id": id});
        assert_eq!(server.post("/fetch/fetch_content", fetch).ok()["file_content"], text, "{n}");
        let short: String = text.chars().take(16_000).collect();
        server.retrieve("acme", "default", &short);
        server.full_text("acme", "default", &short);
    }
    assert_eq!(server.get("/readyz").ok()["status"], "ok");
}

#[test]
fn broken_documents_end_with_a_reason_and_leave_the_server_well() {
    let server = TestServer::start();
    let deep = "[".repeat(100_000);
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\">\
        <!ENTITY b \"&a;&a;&a;&a;\">]><a>&b;</a>";
    let unclosed = "<html><table><tr><td>".repeat(5_000);
    let files: [(&str, &[u8]); 7] = [
        ("deep.json", deep.as_bytes()),
        ("bomb.xml", bomb.as_bytes()),
        ("broken.json", b"{\"a\": "),
        ("unclosed.html", unclosed.as_bytes()),
        ("ragged.csv", b"a,b\n\"1,2,3\n4"),
        ("odd.txt", b"\xff\xfe\x00\xd8\x00"),
        ("wide.txt", b"\xff\xfeh\0i\0"),
    ];
    for (name, bytes) in files {
        let parts: [Part<'_>; 2] =
            [("file", Some(name), bytes), ("file_id", None, name.as_bytes())];
        let reply = server.form("POST", "/upload/upload_document?tenant_id=acme", &parts);
        if reply.status != 200 {
            check_error(&reply, name);
            continue;
        }
        let status = server.settled("acme", "default", name);
        let is_told = !status["error_code"].as_str().unwrap().is_empty();
        assert_eq!(is_told, status["status"] == "errored", "{name}: {status}");
        assert_ne!(status["error_code"], "INTERNAL", "{name}: {status}");
    }
    server.index("acme", "default", "after", "apples fall");
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
}
