use serde_json::{Value, json};

use super::Server;

const UPLOAD: &str = "/upload/batch_upload?tenant_id=acme";
const PICTURE: &[u8] = b"\x89PNG\r\n\x1A\n\0\0";

fn names(body: &Value, list: &str, member: &str) -> Vec<Value> {
    body[list].as_array().unwrap().iter().map(|item| item[member].clone()).collect()
}

#[tokio::test]
async fn one_bad_file_fails_alone() {
    let server = Server::start();
    let files =
        [("files", "a.txt", &b"apples"[..]), ("files", "b.png", PICTURE), ("files", "c.md", b"c")];
    let texts = [("file_ids", r#"["a", "b", null]"#), ("tenant_metadata", r#"{"n": 1}"#)];
    let body = server.send("POST", UPLOAD).form(&texts, &files).answer().await.ok();
    assert_eq!(body["success"], false);
    assert_eq!(names(&body, "uploaded", "filename"), ["a.txt", "c.md"]);
    assert_eq!(body["uploaded"][0]["file_id"], "a");
    assert_eq!(names(&body, "failed", "index"), [1]);
    assert_eq!(names(&body, "failed", "reason"), ["unsupported_file_format"]);
    assert_eq!((&body["uploaded_count"], &body["failed_count"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn a_batch_without_a_good_item_is_400() {
    let server = Server::start();
    let files = [("files", "b.png", PICTURE), ("files", "e.txt", &b""[..])];
    let refused = server.send("POST", UPLOAD).form(&[], &files).answer().await;
    let body = refused.fails(400, "batch_failed");
    assert_eq!(names(&body, "failed", "filename"), ["b.png", "e.txt"]);
    assert_eq!(names(&body, "failed", "reason"), ["unsupported_file_format", "empty_file"]);
    let keyed = server.send("POST", UPLOAD).form(&[], &files);
    keyed.with_header("idempotency-key", "k").answer().await.fails(400, "batch_failed");
}

#[tokio::test]
async fn faults_of_the_request_store_nothing() {
    let server = Server::start();
    server.send("POST", "/user/create_tenant?tenant_id=acme").answer().await.ok();
    let files = [("files", "a.txt", &b"a"[..]), ("files", "b.txt", b"b")];
    for (texts, reason) in [
        ([("file_ids", r#"["a"]"#)], "count_mismatch"),
        ([("file_ids", r#"["a", "a"]"#)], "duplicate_id"),
        ([("tenant_metadata", "[{}]")], "count_mismatch"),
        ([("tenant_metadata", "{")], "invalid_value"),
    ] {
        let refused = server.send("POST", UPLOAD).form(&texts, &files).answer().await;
        refused.fails(400, reason);
    }
    let update = server.send("PATCH", "/upload/batch_update?tenant_id=acme");
    let texts = [("source_ids", r#"["a"]"#)];
    update.form(&texts, &files).answer().await.fails(400, "count_mismatch");
    assert_eq!(server.get("/list/sources?tenant_id=acme").await.ok()["total"], 0);
}

#[tokio::test]
async fn updates_create_and_keep_metadata() {
    let server = Server::start();
    let body = json!({"content": "x", "file_id": "a", "tenant_metadata": {"n": 1}});
    server.post("/upload/upload_text?tenant_id=acme", body).await.ok();
    server.settled("tenant_id=acme", "a").await;
    let files = [("files", "a.txt", &b"a"[..]), ("files", "b.txt", b"b")];
    let texts = [("source_ids[0]", "a"), ("source_ids[1]", "b")];
    let path = "/upload/batch_update?tenant_id=acme";
    let body = server.send("PATCH", path).form(&texts, &files).answer().await.ok();
    assert_eq!(names(&body, "uploaded", "overwritten"), [true, false]);
    server.settled("tenant_id=acme", "a").await;
    let body = json!({"tenant_id": "acme", "source_ids": ["a"]});
    let found = server.post("/list/sources_by_id", body).await.ok();
    assert_eq!(found["sources"][0]["tenant_metadata"], json!({"n": 1}));
}

#[tokio::test]
async fn texts_stand_alone_too() {
    let server = Server::start();
    let schema = json!({"tenant_metadata_schema": [{"key": "year", "type": "number"}]});
    server.post("/user/create_tenant?tenant_id=acme", schema).await.ok();
    let items = json!({"items": [
        {"content": "apples", "file_id": "a"},
        {"content": " "},
        {"content": "pears", "tenant_metadata": {"year": "old"}},
        {"content": "plums", "tenant_metadata": {"year": 2020}},
    ]});
    let path = "/upload/batch_upload_text?tenant_id=acme";
    let send = || {
        let sent = server.send("POST", path).json(items.clone());
        sent.with_header("idempotency-key", "k").answer()
    };
    let body = send().await.ok();
    assert_eq!(names(&body, "failed", "index"), [1, 2]);
    assert_eq!(names(&body, "failed", "reason"), ["invalid_value", "schema_violation"]);
    assert_eq!(names(&body, "uploaded", "filename")[0], "a");
    assert_eq!(send().await.ok(), body);
    let none = json!({"items": []});
    server.post(path, none).await.fails(400, "invalid_value");
}

#[tokio::test]
async fn a_record_tells_of_names_that_nobody_reads() {
    let server = Server::start();
    let path = "/upload/upload_app_sources?tenant_id=acme";
    let records = json!([
        {"content": {"text": "kept", "colour": 1}, "shape": 2,
         "attachments": [{"content": "x", "misc": {"colour": 3}, "weight": 4}]},
        {"content": {"text": "x"}, "timestmp": 1_577_836_800},
        {"content": {"text": "x"}, "tenant_foo": 1},
        {"content": {"text": "x", "markdwn": "y"}},
        {"content": {"text": "x"}, "attachments": [{}, {"contnt": "y"}]},
        {"content": "x"},
        {"content": {"text": 7}},
        {"attachments": [{"content": ["x"]}]},
    ]);
    let sent = server.send("POST", path).json(records.clone()).answer().await;
    let names = ["attachments.weight", "content.colour", "shape"];
    assert_eq!(sent.header("x-ignored-parameters"), names.join(", "));
    let body = sent.ok();
    assert_eq!(body["ignored_parameters"], json!(names));
    assert_eq!(body["uploaded_count"], 1);
    let failed = body["failed"].as_array().unwrap();
    let expected = [
        ("unknown_parameter", "timestmp"),
        ("unknown_parameter", "tenant_foo"),
        ("unknown_parameter", "content.markdwn"),
        ("unknown_parameter", "attachments[1].contnt"),
        ("invalid_value", "content must be a JSON object"),
        ("invalid_value", "content.text must be a string"),
        ("invalid_value", "attachments[0].content must be a string"),
    ];
    assert_eq!(failed.len(), expected.len());
    for (item, (reason, begins)) in failed.iter().zip(expected) {
        assert_eq!(item["reason"], reason, "{item}");
        assert!(item["message"].as_str().unwrap().starts_with(begins), "{item}");
    }
    let strict = server.send("POST", path).json(records).with_header("prefer", "handling=strict");
    let body = strict.answer().await.fails(400, "batch_failed");
    assert_eq!(body["failed"].as_array().unwrap().len(), 8);
}
