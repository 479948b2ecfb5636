//! Properties of a document that its uploader provides: title, URL, date and language.

use serde_json::{Value, json};

use crate::gate::gated_server;
use crate::support::{Part, TestServer};

const DATE: &str = "2021-03-04T05:06:07Z";
const SECONDS: &str = "1614834367.000";

fn shown(server: &TestServer, id: &str) -> [Value; 4] {
    let source = server.source("acme", "default", id);
    ["title", "url", "source_time", "language"].map(|name| source[name].clone())
}

fn update(server: &TestServer, id: &str, body: Value) {
    let path = format!("/upload/update_text?tenant_id=acme&source_id={id}");
    server.call("PATCH", &path, body).ok();
}

#[test]
fn a_text_carries_what_was_said_of_it() {
    let server = TestServer::start();
    let body = json!({
        "content": "# Heading\n\nApples fall from the tree.", "file_id": "a",
        "title": " The apples ", "url": "https://example.com/apples", "source_time": DATE,
        "language": "en-gb", "document_metadata": {"title": "of the map"},
    });
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
    let status = server.settled("acme", "default", "a");
    assert_eq!((&status["source_time"], &status["language"]), (&json!(SECONDS), &json!("en-GB")));
    let expected = ["The apples", "https://example.com/apples", SECONDS, "en-GB"];
    assert_eq!(shown(&server, "a"), expected.map(|text| json!(text)));
    let chunk = &server.retrieve("acme", "default", "apples")[0];
    assert_eq!(chunk["source_title"], "The apples");
    assert_eq!(chunk["source_url"], "https://example.com/apples");
    assert_eq!(chunk["source_last_updated_time"], SECONDS);
    assert_ne!(chunk["source_upload_time"], SECONDS);
    let question = json!({"tenant_id": "acme", "question": "Where do apples fall from?"});
    let answer = server.post("/search/qna", question).ok();
    assert_eq!(answer["sources"][0]["source_last_updated_time"], SECONDS);

    server.index("acme", "default", "plain", "Pears ripen on the sill.");
    assert_eq!(shown(&server, "plain"), [json!("plain"), json!(""), Value::Null, Value::Null]);

    let server = server.restart();
    assert_eq!(shown(&server, "a"), expected.map(|text| json!(text)), "it outlives a restart");
    let updated = server.source("acme", "default", "a")["updated_at"].clone();
    assert_ne!(updated, SECONDS, "the date of a document is not when it changed here");
}

#[test]
fn an_update_keeps_what_it_leaves_out() {
    let (server, gate) = gated_server();
    let upload = |body: Value| server.post("/upload/upload_text?tenant_id=acme", body).ok();
    upload(json!({"content": "one", "file_id": "a", "title": "T", "url": "s:1", "language": "de",
        "source_time": 5}));
    server.settled("acme", "default", "a");
    let first = [json!("T"), json!("s:1"), json!("5.000"), json!("de")];
    update(&server, "a", json!({"content": "two"}));
    server.settled("acme", "default", "a");
    assert_eq!(shown(&server, "a"), first);

    // Updates that replace each other in the queue keep the fields that the last one omits.
    gate.close();
    upload(json!({"content": "in the way", "file_id": "other"}));
    update(&server, "a", json!({"content": "three", "title": "U"}));
    update(&server, "a", json!({"content": "four", "language": "fr", "source_time": null}));
    gate.open();
    server.settled("acme", "default", "a");
    let second = [json!("U"), json!("s:1"), json!("5.000"), json!("fr")];
    assert_eq!(shown(&server, "a"), second);

    upload(json!({"content": "five", "file_id": "a"}));
    server.settled("acme", "default", "a");
    assert_eq!(shown(&server, "a"), [json!("a"), json!(""), Value::Null, Value::Null]);
}

#[test]
fn each_file_of_a_batch_has_its_own() {
    let server = TestServer::start();
    let parts: &[Part<'_>] = &[
        ("files", Some("a.txt"), b"apples"),
        ("files", Some("b.txt"), b"pears"),
        ("file_ids", None, br#"["a", "b"]"#),
        ("title", None, br#"["Apples", null]"#),
        ("source_time", None, br#"["2021-03-04T05:06:07Z", 7]"#),
        ("language", None, b"en"),
    ];
    server.form("POST", "/upload/batch_upload?tenant_id=acme", parts).ok();
    for (id, title, time) in [("a", "Apples", SECONDS), ("b", "b.txt", "7.000")] {
        server.settled("acme", "default", id);
        assert_eq!(shown(&server, id), [json!(title), json!(""), json!(time), json!("en")]);
    }
    let parts: &[Part<'_>] = &[
        ("files", Some("a.txt"), b"apples 2"),
        ("files", Some("b.txt"), b"pears 2"),
        ("source_ids", None, br#"["a", "b"]"#),
        ("url", None, br#"["not absolute", "https://example.com/b"]"#),
    ];
    let answer = server.form("PATCH", "/upload/batch_update?tenant_id=acme", parts).ok();
    let expected = (&json!(1), &json!(0), &json!("invalid_value"));
    let failed = &answer["failed"][0];
    assert_eq!((&answer["uploaded_count"], &failed["index"], &failed["reason"]), expected);
    assert!(failed["message"].as_str().unwrap().starts_with("url must be an absolute URI"));
    server.settled("acme", "default", "b");
    let kept = [json!("b.txt"), json!("https://example.com/b"), json!("7.000"), json!("en")];
    assert_eq!(shown(&server, "b"), kept);

    let short: &[Part<'_>] = &[
        ("files", Some("c.txt"), b"x"),
        ("files", Some("d.txt"), b"y"),
        ("title", None, br#"["C"]"#),
    ];
    server.form("POST", "/upload/batch_upload?tenant_id=acme", short).error(400, "count_mismatch");

    let items = json!({"items": [
        {"file_id": "e", "content": "plums", "title": "Plums", "language": "nl"},
        {"file_id": "f", "content": "figs", "language": "no such language"},
    ]});
    let answer = server.post("/upload/batch_upload_text?tenant_id=acme", items).ok();
    assert_eq!((&answer["uploaded_count"], &answer["failed"][0]["index"]), (&json!(1), &json!(1)));
    server.settled("acme", "default", "e");
    assert_eq!(shown(&server, "e"), [json!("Plums"), json!(""), Value::Null, json!("nl")]);
}

#[test]
fn a_document_takes_them_as_parts_and_what_is_wrong_is_named() {
    let server = TestServer::start();
    let upload = |name: &str, value: &str| {
        let parts: &[Part<'_>] = &[
            ("tenant_id", None, b"acme"),
            ("file_id", None, b"a"),
            ("file", Some("a.txt"), b"apples"),
            (name, None, value.as_bytes()),
        ];
        server.form("POST", "/upload/upload_document", parts)
    };
    let long = "x".repeat(2_049);
    for (name, value, problem) in [
        ("title", long.as_str(), "title is longer than 2048 characters"),
        ("url", "example.com/a", "url must be an absolute URI"),
        ("url", "https://exa mple.com", "url must be an absolute URI"),
        ("source_time", "yesterday", "source_time must be epoch seconds or an RFC 3339 time"),
        ("source_time", "-1", "source_time must be"),
        ("source_time", "2021-03-04", "source_time must be"),
        ("language", "en_US", "language must be a language tag (BCP 47)"),
        ("language", "a-language-tag-that-is-far-too-long-x", "language is longer than 35"),
    ] {
        let error = upload(name, value).error(400, "invalid_value");
        assert!(error["message"].as_str().unwrap().starts_with(problem), "{error}");
        assert_eq!(error["detail"]["errors"][0]["field"], name, "{error}");
    }
    let wrong = json!({"content": "x", "title": 7});
    server.post("/upload/upload_text?tenant_id=acme", wrong).error(400, "invalid_value");
    upload("title", "Apples").ok();
    server.settled("acme", "default", "a");
    assert_eq!(shown(&server, "a")[0], "Apples");
}
