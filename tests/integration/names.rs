//! Parameter names in requests: unknown ones, aliases, and one parameter with two values; batch
//! items that fail individually.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{KEY, Reply, TestServer};

/// Sends a body unchanged.
fn send(server: &TestServer, path: &str, body: &'static str, header: (&str, &str)) -> Reply {
    let request = Request::builder().method("POST").uri(path).header(header.0, header.1);
    let request = request.header("authorization", format!("Bearer {KEY}"));
    server.send(request.body(Body::from(body)).expect("a request"))
}

fn ignored(reply: &Reply) -> Option<&str> {
    reply.headers.get("x-ignored-parameters").map(|names| names.to_str().expect("ASCII"))
}

#[test]
fn every_answer_names_what_it_ignored() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    let body = |name: &str| json!({"tenant_id": "acme", name: "apples", "colour": "red"});
    for (path, name) in [("/search/retrieve", "query"), ("/search/qna", "question")] {
        let reply = server.post(path, body(name));
        assert_eq!(reply.ok()["metadata"]["ignored_parameters"], json!(["colour"]), "{path}");
        assert!(reply.json().get("ignored_parameters").is_none(), "{path}");
        assert_eq!(ignored(&reply), Some("colour"), "{path}");
    }
    let list = server.post("/search/full-text-search", body("query"));
    assert_eq!((list.ok().as_array().map(Vec::len), ignored(&list)), (Some(1), Some("colour")));
    let top = server.get("/list/sources?tenant_id=acme&colour=red");
    assert_eq!(top.ok()["ignored_parameters"], json!(["colour"]));
    let plain = server.get("/list/sources?tenant_id=acme");
    assert_eq!((plain.ok().get("ignored_parameters"), ignored(&plain)), (None, None));
    let nowhere = server.get("/list/sources?tenant_id=nowhere&colour=red");
    assert_eq!(nowhere.error(404, "tenant_not_found")["ignored_parameters"], json!(["colour"]));
    let text = r#"{"content": "x", "colour": "red"}"#;
    for _ in 0..2 {
        let path = "/upload/upload_text?tenant_id=acme";
        let reply = send(&server, path, text, ("idempotency-key", "k"));
        assert_eq!(reply.ok()["ignored_parameters"], json!(["colour"]));
    }
}

#[test]
fn a_mistyped_name_changes_nothing() {
    let server = TestServer::start();
    for (path, body) in [
        ("/upload/upload_text?tenant_id=acme", json!({"content": "x", "fileid": "a"})),
        ("/upload/upload_text?tenant_id=acme&sub_tenant=b", json!({"content": "x"})),
        ("/upload/upload_text?tenant_id=acme", json!({"content": "x", "document_metdata": {}})),
        ("/upload/upload_text?tenant_id=acme&content=y", json!({"content": "x"})),
    ] {
        server.post(path, body).error(400, "unknown_parameter");
    }
    let body = r#"{"content": "x", "sub_tenant": "b"}"#;
    let path = "/upload/upload_text?tenant_id=acme";
    send(&server, path, body, ("prefer", "handling=strict")).error(400, "unknown_parameter");
    server.get("/list/sources?tenant_id=acme").error(404, "tenant_not_found");
    send(&server, path, body, ("prefer", "handling=lenient")).ok();
}

#[test]
fn one_name_has_one_value() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    for body in [
        r#"{"tenant_id": "acme", "query": "x", "query": "y"}"#,
        r#"{"tenant_id": "acme", "query": "x", "metadata": {"a": 1, "a": 2}}"#,
        r#"{"tenant_id": "acme", "query": "x", "source_ids": ["a"], "ids": ["b"]}"#,
    ] {
        let reply = send(&server, "/search/retrieve", body, ("accept", "*/*"));
        reply.error(400, "conflicting_values");
    }
    let same = "\u{feff}{\"tenant_id\": \"acme\", \"query\": \"apples\", \"query\": \"apples\"}";
    send(&server, "/search/retrieve", same, ("accept", "*/*")).ok();
    let query = "tenant_id=acme&source_id=s&id=s&file_id=s";
    server.get(&format!("/upload/verify_processing?{query}")).ok();
    let other = "/upload/verify_processing?tenant_id=acme&source_id=s&id=t";
    server.get(other).error(400, "conflicting_values");
}

fn failures(reply: &Value) -> Vec<(u64, String)> {
    let failed = reply["failed"].as_array().expect("a list");
    let entry = |entry: &Value| {
        (entry["index"].as_u64().unwrap(), entry["reason"].as_str().unwrap().to_owned())
    };
    failed.iter().map(entry).collect()
}

#[test]
fn an_item_of_the_wrong_type_or_with_a_bad_id_fails_alone() {
    let server = TestServer::start();
    let expected = [
        (1, "invalid_value".to_owned()),
        (2, "invalid_value".to_owned()),
        (3, "invalid_identifier".to_owned()),
    ];
    for (path, item, is_list) in [
        ("/upload/batch_upload_text", json!({"content": "x"}), false),
        ("/upload/batch_scrape_webpage", json!({"web_url": "http://127.0.0.1:9/"}), false),
        ("/upload/upload_app_sources", json!({"content": {"text": "x"}}), true),
    ] {
        let mut bad = item.clone();
        bad["file_id"] = json!("a/b");
        let items = json!([item, null, "x", bad]);
        let body = if is_list { items } else { json!({ "items": items }) };
        let reply = server.post(&format!("{path}?tenant_id=acme"), body).ok();
        assert_eq!(
            (reply["success"].as_bool(), failures(&reply)),
            (Some(false), expected.to_vec())
        );
        assert_eq!(reply["uploaded_count"], 1, "{path}");
    }
    let file = ("files", Some("a.txt"), &b"text"[..]);
    let ids = ("file_ids", None, &br#"[null, 7, ["x"], "a/b"]"#[..]);
    let reply =
        server.form("POST", "/upload/batch_upload?tenant_id=acme", &[file, file, file, file, ids]);
    let reply = reply.ok();
    assert_eq!((failures(&reply), &reply["uploaded_count"]), (expected.to_vec(), &json!(1)));
}
