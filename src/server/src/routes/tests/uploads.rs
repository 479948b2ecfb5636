use serde_json::json;

use super::{START, Server};

const TEXT: &str = "/upload/upload_text?tenant_id=acme";

#[tokio::test]
async fn a_text_is_accepted_processed_and_shown() {
    let server = Server::start();
    let body = json!({"content": "# Apples\n\nRed apples fall.", "tenant_metadata": {"year": 1}});
    let accepted = server.post(TEXT, body).await.ok();
    let id = accepted["file_id"].as_str().unwrap();
    assert!(id.starts_with("doc_"), "{accepted}");
    assert_eq!(accepted["status"], "queued");
    assert_eq!(accepted["overwritten"], false);
    let status = server.settled("tenant_id=acme", id).await;
    assert_eq!(status["status"], status["indexing_status"]);
    assert_eq!((&status["success"], &status["searchable"]), (&json!(true), &json!(true)));
    assert_eq!((&status["version"], &status["chunk_count"]), (&json!("v1"), &json!(1)));
    assert_eq!(status["sub_tenant_id"], "default");
    assert_eq!(status["updated_at"], START.to_string());
    let path = format!("/upload/verify_processing?file_id={id}");
    assert_eq!(server.get(path).await.ok()["tenant_id"], "acme");
}

#[tokio::test]
async fn what_is_wrong_with_a_text_is_named() {
    let server = Server::start();
    server.post(TEXT, json!({"content": "  \n"})).await.fails(400, "invalid_value");
    server.post(TEXT, json!({})).await.fails(400, "missing_field");
    let long = "x".repeat((10 << 20) + 1);
    server.post(TEXT, json!({ "content": long })).await.fails(413, "content_too_large");
    let bad_id = json!({"content": "x", "file_id": "a/b"});
    server.post(TEXT, bad_id).await.fails(400, "invalid_identifier");
    server.get("/list/sources?tenant_id=acme").await.fails(404, "tenant_not_found");
}

#[tokio::test]
async fn the_id_of_the_body_goes_first() {
    let server = Server::start();
    let both = json!({"content": "x", "file_id": "a", "document_metadata": {"file_id": "b"}});
    assert_eq!(server.post(TEXT, both).await.ok()["file_id"], "a");
    let one = json!({"content": "x", "file_id": "", "document_metadata": {"file_id": "b"}});
    assert_eq!(server.post(TEXT, one).await.ok()["file_id"], "b");
}

#[tokio::test]
async fn post_replaces_metadata_and_patch_keeps_it() {
    let server = Server::start();
    let scope = "tenant_id=acme";
    let metadata = || async {
        let body = json!({"tenant_id": "acme", "source_ids": ["a"]});
        let found = server.post("/list/sources_by_id", body).await.ok();
        let source = &found["sources"][0];
        (source["tenant_metadata"].clone(), source["document_metadata"].clone())
    };
    let first = json!({"content": "one", "file_id": "a", "tenant_metadata": {"t": 1},
        "document_metadata": {"d": 1}});
    server.post(TEXT, first).await.ok();
    server.settled(scope, "a").await;

    let update = json!({"content": "two", "document_metadata": {"d": 2}});
    let path = "/upload/update_text?tenant_id=acme&source_id=a";
    let updated = server.send("PATCH", path).json(update).answer().await.ok();
    assert_eq!(updated["overwritten"], true);
    assert!(updated["message"].as_str().unwrap().contains("existing content was overwritten"));
    assert_eq!(server.settled(scope, "a").await["version"], "v2");
    assert_eq!(metadata().await, (json!({"t": 1}), json!({"d": 2})));

    server.post(TEXT, json!({"content": "three", "file_id": "a"})).await.ok();
    assert_eq!(server.settled(scope, "a").await["version"], "v3");
    assert_eq!(metadata().await, (json!({}), json!({})));

    let other = json!({"content": "x", "file_id": "b"});
    let conflict = server.send("PATCH", path).json(other).answer().await;
    conflict.fails(400, "conflicting_values");
}

#[tokio::test]
async fn an_update_creates_what_is_unknown() {
    let server = Server::start();
    let path = "/upload/update_text?tenant_id=acme&source_id=new";
    let made = server.send("PATCH", path).json(json!({"content": "x"})).answer().await.ok();
    assert_eq!((&made["file_id"], &made["overwritten"]), (&json!("new"), &json!(false)));
}

#[tokio::test]
async fn documents_are_accepted_by_their_content() {
    let server = Server::start();
    let texts = [("tenant_id", "acme"), ("file_id", "d"), ("document_metadata", r#"{"a": 1}"#)];
    let files: [(&str, &str, &[u8]); 1] = [("file", "../dir/notes.txt", b"pears and plums")];
    let path = "/upload/upload_document";
    server.send("POST", path).form(&texts, &files).answer().await.ok();
    assert_eq!(server.settled("tenant_id=acme", "d").await["status"], "success");
    let list = server.get("/list/sources?tenant_id=acme").await.ok();
    assert_eq!(list["sources"][0]["title"], "notes.txt");
    assert_eq!(list["sources"][0]["type"], "file");

    let path = "/upload/update_document?tenant_id=acme&source_id=d";
    let files: [(&str, &str, &[u8]); 1] = [("file", "new.md", b"# Quinces\n\nyellow")];
    server.send("PATCH", path).form(&[], &files).answer().await.ok();
    assert_eq!(server.settled("tenant_id=acme", "d").await["version"], "v2");
    let list = server.get("/list/sources?tenant_id=acme").await.ok();
    assert_eq!(list["sources"][0]["document_metadata"], json!({"a": 1}));

    for (name, bytes, reason) in [
        ("a.png", &b"\x89PNG\r\n\x1A\n\0\0"[..], "unsupported_file_format"),
        ("a.txt", &b""[..], "empty_file"),
    ] {
        let files = [("file", name, bytes)];
        let path = "/upload/upload_document?tenant_id=acme";
        let refused = server.send("POST", path).form(&[], &files).answer().await;
        let message = refused.fails(400, reason)["message"].as_str().unwrap().to_owned();
        assert_eq!(message.starts_with("Unsupported file format"), name == "a.png", "{message}");
        assert_eq!(message.contains("supported are pdf, docx"), name == "a.png", "{message}");
    }
    assert_eq!(server.get("/list/sources?tenant_id=acme").await.ok()["total"], 1);
}

#[tokio::test]
async fn metadata_changes_are_seen_at_once() {
    let server = Server::start();
    server.text("tenant_id=acme", "a", "apples").await;
    let path = "/upload/update_metadata";
    let change = |id| json!({"tenant_id": "acme", "source_id": id, "tenant_metadata": {"n": 2}});
    let changed = server.send("PATCH", path).json(change("a")).answer().await.ok();
    assert_eq!(changed["status"], "success");
    let list = server.get("/list/sources?tenant_id=acme").await.ok();
    assert_eq!(list["sources"][0]["tenant_metadata"], json!({"n": 2}));
    let unknown = server.send("PATCH", path).json(change("b")).answer().await;
    unknown.fails(404, "source_not_found");
    let nothing = json!({"tenant_id": "acme", "source_id": "a"});
    server.send("PATCH", path).json(nothing).answer().await.ok();
}

#[tokio::test]
async fn status_of_what_is_unknown_or_gone_is_404() {
    let server = Server::start();
    let path = "/upload/verify_processing?file_id=a";
    server.send("POST", path).answer().await.fails(404, "source_not_found");
    server.text("tenant_id=acme&sub_tenant_id=s", "a", "apples").await;
    assert_eq!(server.get(path).await.ok()["sub_tenant_id"], "s");
    assert_eq!(server.get(format!("{path}&tenant_id=acme")).await.ok()["sub_tenant_id"], "s");
    let default = format!("{path}&tenant_id=acme&sub_tenant_id=default");
    server.get(default).await.fails(404, "source_not_found");
    server.get(format!("{path}&tenant_id=other")).await.fails(404, "tenant_not_found");
    let body = json!({"tenant_id": "acme", "sub_tenant_id": "s", "source_ids": ["a"]});
    server.send("DELETE", "/delete_source").json(body).answer().await.ok();
    server.get(path).await.fails(404, "source_not_found");
}

#[tokio::test]
async fn a_file_without_text_ends_errored() {
    let server = Server::start();
    let files: [(&str, &str, &[u8]); 1] = [("file", "blank.txt", b" \n ")];
    let path = "/upload/upload_document?tenant_id=acme&file_id=d";
    server.send("POST", path).form(&[], &files).answer().await.ok();
    let status = server.settled("tenant_id=acme", "d").await;
    assert_eq!((&status["status"], &status["success"]), (&json!("errored"), &json!(true)));
    assert_eq!((&status["error_code"], &status["searchable"]), (&json!("NO_TEXT"), &json!(false)));
    assert!(!status["message"].as_str().unwrap().is_empty());
}

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer() {
    let server = Server::start();
    let upload = |key: &'static str, content: &str| {
        let sent = server.send("POST", TEXT).json(json!({ "content": content }));
        sent.with_header("idempotency-key", key).answer()
    };
    let first = upload("k1", "apples").await;
    let again = upload("k1", "apples").await;
    assert_eq!(first.ok(), again.ok());
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_ne!(first.ok()["file_id"], upload("k2", "apples").await.ok()["file_id"]);
    upload("k1", "pears").await.fails(409, "idempotency_conflict");
    // A refused request does not consume its key.
    upload("k3", " ").await.fails(400, "invalid_value");
    upload("k3", "plums").await.ok();
    assert_eq!(server.get("/list/sources?tenant_id=acme").await.ok()["total"], 3);
    server.clock.advance_millis(24 * 3_600_000);
    assert_ne!(first.ok()["file_id"], upload("k1", "apples").await.ok()["file_id"]);
}

#[tokio::test]
async fn embeddings_tenants_take_no_text() {
    let server = Server::start();
    server.send("POST", "/embeddings/create_tenant?tenant_id=vec").answer().await.ok();
    let text = server.post("/upload/upload_text?tenant_id=vec", json!({"content": "x"})).await;
    text.fails(409, "tenant_mode_mismatch");
}
