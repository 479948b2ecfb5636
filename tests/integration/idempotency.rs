//! Repeated requests, with and without an `Idempotency-Key`.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{KEY, Reply, TestServer};

const TEXT: &str = "/upload/upload_text?tenant_id=acme";

fn send(server: &TestServer, key: &str, path: &str, once: &str, body: &Value) -> Reply {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("idempotency-key", once)
        .body(Body::from(body.to_string()))
        .unwrap();
    server.send(request)
}

#[test]
fn a_repeated_key_replays_the_first_answer() {
    let server = TestServer::start();
    let body = json!({"content": "apples"});
    let first = send(&server, KEY, TEXT, "k-1", &body);
    assert!(!first.headers.contains_key("idempotency-replayed"));
    for _ in 0..3 {
        let again = send(&server, KEY, TEXT, "k-1", &body);
        assert_eq!(again.ok(), first.ok());
        assert_eq!(again.headers["idempotency-replayed"], "true");
        assert_ne!(again.headers["x-request-id"], first.headers["x-request-id"]);
    }
    let other = send(&server, KEY, TEXT, "k-2", &body).ok();
    assert_ne!(other["file_id"], first.ok()["file_id"]);
    assert_eq!(server.sources("acme", "default").len(), 2);
    // Without a key, or with an empty one, every call creates a source.
    server.post(TEXT, body.clone()).ok();
    send(&server, KEY, TEXT, "", &body).ok();
    send(&server, KEY, TEXT, "", &body).ok();
    assert_eq!(server.sources("acme", "default").len(), 5);
}

#[test]
fn a_key_with_another_body_is_409() {
    let server = TestServer::start();
    send(&server, KEY, TEXT, "k", &json!({"content": "apples"})).ok();
    let body = send(&server, KEY, TEXT, "k", &json!({"content": "pears"}));
    let body = body.error(409, "idempotency_conflict");
    assert_eq!((&body["error"], &body["error_code"]), (&json!("Conflict"), &json!("CONFLICT")));
    let elsewhere = "/upload/upload_text?tenant_id=other";
    let body = send(&server, KEY, elsewhere, "k", &json!({"content": "apples"}));
    body.error(409, "idempotency_conflict");
    assert_eq!(server.sources("acme", "default").len(), 1);
}

#[test]
fn a_key_belongs_to_one_api_key_and_one_path() {
    let server = TestServer::start();
    let second = server.make_key("write", Value::Null);
    let body = json!({"content": "apples", "items": [{"content": "apples"}]});
    let first = send(&server, KEY, TEXT, "k", &body).ok();
    let other_key = send(&server, &second, TEXT, "k", &body).ok();
    assert_ne!(first["file_id"], other_key["file_id"]);
    let batch = "/upload/batch_upload_text?tenant_id=acme";
    let made = send(&server, KEY, batch, "k", &body).ok();
    assert_eq!(send(&server, KEY, batch, "k", &body).ok(), made);
    assert_eq!(server.sources("acme", "default").len(), 3);
}

#[test]
fn a_wrong_request_does_not_use_its_key_up() {
    let server = TestServer::start();
    let schema = json!([{"key": "year", "type": "number"}]);
    let path = "/user/create_tenant?tenant_id=acme";
    server.post(path, json!({"tenant_metadata_schema": schema})).ok();
    for wrong in [
        json!({"content": " "}),
        json!({"content": 7}),
        json!({"content": "x", "tenant_metadata": {"year": "2024"}}),
        json!({"content": "x", "file_id": "a/b"}),
    ] {
        assert_eq!(send(&server, KEY, TEXT, "k", &wrong).status, 400, "{wrong}");
    }
    send(&server, KEY, TEXT, "k", &json!({"content": "right"})).ok();
    let long = "k".repeat(256);
    let body = json!({"content": "x"});
    send(&server, KEY, TEXT, &long, &body).error(400, "invalid_value");
    send(&server, KEY, TEXT, &long[1..], &body).ok();
    assert_eq!(server.sources("acme", "default").len(), 2);
}

#[test]
fn a_key_outlives_a_restart() {
    let server = TestServer::start();
    let body = json!({"content": "apples"});
    let first = send(&server, KEY, TEXT, "k", &body).ok();
    let server = server.restart();
    assert_eq!(send(&server, KEY, TEXT, "k", &body).ok(), first);
    assert_eq!(server.sources("acme", "default").len(), 1);
}

#[test]
fn a_key_used_by_many_at_once_makes_one_source() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let body = json!({"content": "apples"});
    let ids: Vec<Option<String>> = std::thread::scope(|scope| {
        let ask = || {
            let reply = send(&server, KEY, TEXT, "k", &body);
            match reply.status {
                200 => Some(reply.json()["file_id"].as_str().unwrap().to_owned()),
                _ => {
                    reply.error(503, "idempotency_in_flight");
                    assert_eq!(reply.headers["retry-after"], "1");
                    None
                }
            }
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let made: std::collections::BTreeSet<String> = ids.into_iter().flatten().collect();
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(server.sources("acme", "default").len(), 1);
}

#[test]
fn a_document_and_a_batch_are_replayed_too() {
    let server = TestServer::start();
    let boundary = "B";
    let ask = |path: &str, name: &str, content: &str| {
        let body = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"; \
             filename=\"a.txt\"\r\n\r\n{content}\r\n--{boundary}--\r\n"
        );
        let request = Request::builder()
            .method("POST")
            .uri(format!("{path}?tenant_id=acme"))
            .header("authorization", format!("Bearer {KEY}"))
            .header("content-type", format!("multipart/form-data; boundary={boundary}"))
            .header("idempotency-key", "k")
            .body(Body::from(body))
            .unwrap();
        server.send(request)
    };
    for (path, name) in [("/upload/upload_document", "file"), ("/upload/batch_upload", "files")] {
        let first = ask(path, name, "apples").ok();
        assert_eq!(ask(path, name, "apples").ok(), first);
        ask(path, name, "pears").error(409, "idempotency_conflict");
    }
    assert_eq!(server.sources("acme", "default").len(), 2);
}

#[test]
fn updates_and_deletions_may_be_repeated() {
    let server = TestServer::start();
    let update = || {
        let path = "/upload/update_text?tenant_id=acme&source_id=a";
        server
            .call("PATCH", path, json!({"content": "apples", "document_metadata": {"x": 1}}))
            .ok();
        server.settled("acme", "default", "a");
        let source = server.source("acme", "default", "a");
        (source["document_metadata"].clone(), source["description"].clone())
    };
    assert_eq!(update(), update());
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
    for _ in 0..2 {
        let body = json!({"tenant_id": "acme", "source_ids": ["a"]});
        server.call("DELETE", "/delete_source", body).ok();
        assert!(server.sources("acme", "default").is_empty());
    }
}
