//! HTTP semantics: the order of checks, HEAD, preflights, compression and media types.

use axum::body::Body;
use http::request::Builder;
use http::{HeaderMap, Request};
use serde_json::{Value, json};

use crate::contract::{check_error, operations};
use crate::corpus::timeless;
use crate::support::{KEY, Reply, TestServer};

fn plain(method: &str, path: &str, key: &str) -> Builder {
    let request = Request::builder().method(method).uri(path);
    match key {
        "" => request,
        key => request.header("authorization", format!("Bearer {key}")),
    }
}

fn send(server: &TestServer, request: Builder, body: &str) -> Reply {
    server.send(request.body(Body::from(body.to_owned())).unwrap())
}

/// Goal: of several errors the earliest check reports first, and fixing it reveals the next.
#[test]
fn checks_come_in_their_order() {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let read = server.make_key("read", Value::Null);
    let scoped = server.make_key("write", json!([{"tenant_id": "vectors"}]));
    let too_long = (100_usize << 30).to_string();
    let faulty = |method: &str, path: &str, key: &str, content_type: &str, length: &str| {
        let request = plain(method, path, key).header("content-type", content_type);
        let request = match length {
            "" => request,
            length => request.header("content-length", length),
        };
        send(&server, request, "{broken")
    };
    let text = "/upload/upload_text?tenant_id=nowhere&tenant_id=other";
    for (reply, status, reason) in [
        (faulty("PUT", "/nowhere", "wrong", "text/xml", &too_long), 401, "invalid_api_key"),
        (faulty("PUT", "/nowhere", "", "text/xml", &too_long), 401, "missing_api_key"),
        (faulty("PUT", "/nowhere", &read, "text/xml", &too_long), 404, "route_not_found"),
        (faulty("PUT", text, &read, "text/xml", &too_long), 405, "method_not_allowed"),
        (faulty("POST", text, &read, "text/xml", &too_long), 403, "insufficient_role"),
        (faulty("POST", text, &scoped, "text/xml", &too_long), 415, "unsupported_media_type"),
        (faulty("POST", text, &scoped, "application/json", &too_long), 413, "body_too_large"),
        (faulty("POST", text, &scoped, "application/json", ""), 400, "malformed_body"),
    ] {
        check_error(&reply, reason);
        reply.error(status, reason);
    }
    let upload = |query: &str, body: Value| {
        let path = format!("/upload/upload_text?tenant_id={query}");
        server.call_as(&scoped, "POST", &path, &body)
    };
    upload("nowhere&tenant_id=other", json!({"content": "x"})).error(400, "conflicting_values");
    upload("nowhere", json!({"content": 7})).error(400, "invalid_value");
    upload("nowhere", json!({"content": "x"})).error(404, "tenant_not_found");
    upload("vectors", json!({"content": "x"})).error(409, "tenant_mode_mismatch");
}

/// Goal: HEAD is served wherever GET is, with the same headers and no body.
#[test]
fn head_answers_wherever_get_does() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    let mut seen = 0;
    for operation in operations(&server) {
        let sample = operation.sample("acme", None);
        let request = operation.request(Some(KEY), &sample);
        if operation.method != "GET" {
            continue;
        }
        let uri = request.uri().to_string();
        let got = server.send(request);
        let head = send(&server, plain("HEAD", &uri, KEY), "");
        assert_eq!((head.status, head.bytes.len()), (got.status, 0), "HEAD {uri}");
        // Reading the metrics changes them, and so their length.
        let is_fixed =
            |name: &&str| !operation.path.starts_with("/metrics") || *name != "content-length";
        for name in ["content-type", "content-length"].into_iter().filter(is_fixed) {
            assert_eq!(head.headers.get(name), got.headers.get(name), "{name} of HEAD {uri}");
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen} operations answer GET");
    assert_eq!(send(&server, plain("HEAD", "/search/retrieve", KEY), "").status, 405);
}

/// Goal: OPTIONS answers preflight requests of configured origins only.
#[test]
fn options_answers_preflights_of_configured_origins_only() {
    const ORIGIN: &str = "https://app.example";
    let server = TestServer::start_with(|settings| settings.cors_origins = vec![ORIGIN.to_owned()]);
    let preflight = |origin: &str, key: &str| {
        let request = plain("OPTIONS", "/search/retrieve", key).header("origin", origin);
        send(&server, request.header("access-control-request-method", "POST"), "")
    };
    let good = preflight(ORIGIN, "");
    assert_eq!(good.status, 200);
    assert_eq!(good.headers["access-control-allow-origin"], ORIGIN);
    let names = |headers: &HeaderMap, list: &str| -> Vec<String> {
        headers[list].to_str().unwrap().split(", ").map(str::to_owned).collect()
    };
    let allowed = names(&good.headers, "access-control-allow-headers");
    for name in ["authorization", "content-type", "mcp-protocol-version", "x-lodestone-tenant"] {
        assert!(allowed.contains(&name.to_owned()), "{name}: {allowed:?}");
    }
    let exposed = names(&good.headers, "access-control-expose-headers");
    for name in ["x-lodestone-warnings", "x-ignored-parameters", "x-page-width"] {
        assert!(exposed.contains(&name.to_owned()), "{name}: {exposed:?}");
    }
    for origin in ["https://app.example.evil", "http://app.example", "null", "*"] {
        let bad = preflight(origin, KEY);
        check_error(&bad, origin);
        assert_eq!(bad.status, 405, "{origin}");
        assert!(!bad.headers.contains_key("access-control-allow-origin"), "{origin}");
    }
    let bare =
        send(&server, plain("OPTIONS", "/search/retrieve", KEY).header("origin", ORIGIN), "");
    assert_eq!(bare.status, 405, "no preflight");
    // Pages of the configured origin may read responses and errors; others may not.
    for (origin, expected) in [(ORIGIN, Some(ORIGIN)), ("https://b.example", None)] {
        for path in ["/tenant/list", "/nowhere"] {
            let reply = send(&server, plain("GET", path, KEY).header("origin", origin), "");
            let given = reply.headers.get("access-control-allow-origin");
            assert_eq!(given.map(|value| value.to_str().unwrap()), expected, "{path}");
            assert!(reply.headers.get_all("vary").iter().any(|value| value == "origin"), "{path}");
        }
    }
}

/// Goal: responses are compressed on request, with unchanged content.
#[test]
fn answers_are_compressed_when_asked() {
    let server = TestServer::start();
    server.index("acme", "default", "s", &"apples fall. ".repeat(100));
    let body = json!({"tenant_id": "acme", "query": "apples"}).to_string();
    let ask = |coding: &str| {
        let request = plain("POST", "/search/retrieve", KEY).header("accept-encoding", coding);
        send(&server, request, &body)
    };
    let whole = ask("identity");
    assert!(!whole.headers.contains_key("content-encoding"));
    for coding in ["gzip", "br", "zstd"] {
        let packed = ask(coding);
        assert_eq!(packed.headers["content-encoding"], coding);
        assert!(packed.bytes.len() < whole.bytes.len(), "{coding}");
        assert!(packed.headers.get_all("vary").iter().any(|value| value == "accept-encoding"));
    }
    let unpacked = zstd::decode_all(ask("zstd").bytes.as_slice()).expect("a zstd stream");
    let unpacked: Value = serde_json::from_slice(&unpacked).expect("JSON");
    assert_eq!(timeless(unpacked), timeless(whole.ok()));
    let packed = plain("POST", "/search/retrieve", KEY).header("content-encoding", "gzip");
    send(&server, packed, &body).error(415, "unsupported_media_type");
}

/// Goal: a schema violation fails only the item that contains it.
#[test]
fn a_schema_violation_fails_its_item_alone() {
    let server = TestServer::start();
    let schema = json!({"tenant_metadata_schema": [{"key": "year", "type": "number"}]});
    server.post("/user/create_tenant?tenant_id=acme", schema).ok();
    let item = |id: &str, year: Value| {
        let metadata = json!({ "year": year });
        json!({"file_id": id, "content": "apples", "tenant_metadata": metadata})
    };
    let items = [item("a", json!(2024)), item("b", json!("2024")), item("c", json!(2025))];
    let path = "/upload/batch_upload_text?tenant_id=acme";
    let told = server.post(path, json!({ "items": items })).ok();
    assert_eq!((&told["success"], &told["uploaded_count"]), (&json!(false), &json!(2)));
    assert_eq!((&told["failed"][0]["index"], &told["failed_count"]), (&json!(1), &json!(1)));
    assert_eq!(told["failed"][0]["reason"], "schema_violation");
    for id in ["a", "c"] {
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
    }
    assert_eq!(server.sources("acme", "default").len(), 2);
    let all_bad = json!({"items": [item("x", json!("1")), item("y", json!(true))]});
    let reply = server.post(path, all_bad);
    check_error(&reply, "a batch of violations");
    assert_eq!((reply.status, reply.json()["failed"].as_array().unwrap().len()), (400, 2));
    assert_eq!(server.sources("acme", "default").len(), 2);
}

/// Goal: if a batch as a whole is invalid, none of it is stored.
#[test]
fn an_id_given_twice_in_a_batch_is_400() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let items = ["a", "b", "a"].map(|id| json!({"file_id": id, "content": "apples"}));
    let path = "/upload/batch_upload_text?tenant_id=acme";
    let reply = server.post(path, json!({ "items": items }));
    check_error(&reply, "an id twice");
    assert_eq!(reply.status, 400);
    // Two Unicode encodings of one text are the same id.
    let items = ["café", "cafe\u{301}"].map(|id| json!({"file_id": id, "content": "x"}));
    assert_eq!(server.post(path, json!({ "items": items })).status, 400);
    assert!(server.sources("acme", "default").is_empty());
}

/// Goal: deleting, like reading, does not create a sub-tenant.
#[test]
fn deleting_makes_no_sub_tenant() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples");
    let body = json!({"tenant_id": "acme", "sub_tenant_id": "north", "source_ids": ["a"]});
    let told = server.call("DELETE", "/upload/delete_source", body).ok();
    assert_eq!((&told["deleted"], &told["not_found"]), (&json!([]), &json!(["a"])));
    let known = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(known["sub_tenant_ids"], json!(["default"]));
    assert_eq!(server.sources("acme", "default").len(), 1);
}

/// Goal: lists of sources enforce their limits.
#[test]
fn lists_of_sources_keep_to_their_limits() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples");
    let ids = |count: usize| (0..count).map(|n| format!("s{n}")).collect::<Vec<_>>();
    let ask = |method: &str, path: &str, count: usize| {
        server.call(method, path, json!({"tenant_id": "acme", "source_ids": ids(count)}))
    };
    for (method, path) in [
        ("DELETE", "/upload/delete_source"),
        ("DELETE", "/delete_source"),
        ("POST", "/list/sources_by_id"),
    ] {
        ask(method, path, 1000).ok();
        ask(method, path, 1001).error(400, "too_many_items");
    }
    assert_eq!(ask("DELETE", "/delete_source", 0).status, 400);
    assert_eq!(ask("POST", "/list/sources_by_id", 0).ok()["sources"], json!([]));
    for limit in [0, 1001] {
        let path = format!("/list/sources?tenant_id=acme&limit={limit}");
        server.get(&path).error(400, "invalid_value");
    }
    assert_eq!(server.sources("acme", "default").len(), 1);
}

/// Goal: jobs cancelled by a deletion disappear from `/jobs` and its counts.
#[test]
fn cancelled_jobs_leave_the_listing() {
    let (server, gate) = crate::gate::gated_server();
    gate.close();
    for id in ["a", "b", "c"] {
        let body = json!({"content": "apples", "file_id": id});
        server.post("/upload/upload_text?tenant_id=acme", body).ok();
    }
    let files = || {
        let jobs = server.get("/jobs?tenant_id=acme").ok();
        let counts = &jobs["counts"];
        let waiting = ["queued", "in_progress"].map(|name| counts[name].as_u64().unwrap());
        let mut files: Vec<String> = jobs["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| job["file_id"].as_str().unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(waiting.iter().sum::<u64>() as usize, files.len(), "{counts}");
        files
    };
    assert_eq!(files(), ["a", "b", "c"]);
    let body = json!({"tenant_id": "acme", "source_ids": ["a", "c"]});
    server.call("DELETE", "/delete_source", body).ok();
    assert_eq!(files(), ["b"]);
    gate.open();
    assert_eq!(server.settled("acme", "default", "b")["status"], "success");
    let jobs = server.get("/jobs?tenant_id=acme").ok();
    assert_eq!(jobs["counts"]["success"], 1);
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1);
}
