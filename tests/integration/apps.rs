//! Application records.

use serde_json::{Value, json};

use crate::support::TestServer;

const PATH: &str = "/upload/upload_app_sources?tenant_id=acme";

fn listed(server: &TestServer, id: &str) -> Value {
    let body = json!({"tenant_id": "acme", "source_ids": [id]});
    server.post("/list/sources_by_id", body).ok()["sources"][0].clone()
}

#[test]
fn a_record_is_found_by_its_text_and_shows_what_it_said() {
    let server = TestServer::start();
    let record = json!([{
        "id": "mail-1", "title": "Budget review", "type": "gmail", "url": "https://mail.example/1",
        "description": "What was decided", "note": "starred", "timestamp": "2024-05-01T10:00:00Z",
        "content": {"markdown": "# Minutes\n\nThe *zebra* budget was approved.",
                    "csv_base64": "aXRlbSxjb3N0CmxhbXAsNDIK"},
        "collections": ["finance", "2024"], "meta": {"thread": {"id": 7}},
        "document_metadata": {"team": "red"},
        "attachments": [{"id": "a", "title": "Notes", "content": "The giraffe was mentioned.",
                         "content_url": "http://127.0.0.1:1/never-fetched"}],
    }]);
    let reply = server.post(PATH, record).ok();
    assert_eq!(reply["uploaded"][0]["file_id"], "mail-1");
    assert_eq!(reply["uploaded"][0]["filename"], "Budget review");
    assert_eq!((&reply["success"], &reply["failed_count"]), (&json!(true), &json!(0)));
    let waiting = listed(&server, "mail-1");
    assert_eq!((&waiting["title"], &waiting["type"]), (&json!("Budget review"), &json!("gmail")));
    assert_eq!(server.settled("acme", "default", "mail-1")["status"], "success");

    let source = listed(&server, "mail-1");
    for (member, expected) in [
        ("title", json!("Budget review")),
        ("type", json!("gmail")),
        ("description", json!("What was decided")),
        ("note", json!("starred")),
        ("url", json!("https://mail.example/1")),
        ("source_collection", json!(["finance", "2024"])),
        ("meta", json!({"thread": {"id": 7}})),
        ("document_metadata", json!({"team": "red"})),
        ("content_type", json!("application/json")),
    ] {
        assert_eq!(source[member], expected, "{member}");
    }
    for word in ["zebra", "giraffe", "lamp", "notes"] {
        let found = server.full_text("acme", "default", word);
        assert_eq!(found.len(), 1, "{word}");
        assert_eq!(found[0]["source_type"], "gmail");
        assert_eq!(found[0]["source_collection"], json!(["finance", "2024"]));
        assert_eq!(found[0]["source_url"], "https://mail.example/1");
        assert_eq!(found[0]["source_last_updated_time"], "1714557600.000");
    }
    let filtered = |filter: Value| {
        let body = json!({"query": "zebra", "tenant_id": "acme", "metadata": filter});
        let found: Value = server.post("/search/full-text-search", body).ok();
        found.as_array().unwrap().len()
    };
    for (filter, count) in [
        (json!({"source_type": "gmail"}), 1),
        (json!({"source_type": "app"}), 0),
        (json!({"source_collection": "finance"}), 1),
        (json!({"source_collection": ["2023", "2024"]}), 1),
        (json!({"source_collection": "other"}), 0),
        (json!({"source_url": "https://mail.example/1"}), 1),
    ] {
        assert_eq!(filtered(filter.clone()), count, "{filter}");
    }
    let body = json!({"tenant_id": "acme", "file_id": "mail-1"});
    let original = server.post("/fetch/fetch_content", body).ok();
    let original: Value = serde_json::from_str(original["file_content"].as_str().unwrap()).unwrap();
    assert_eq!(original["meta"], json!({"thread": {"id": 7}}), "the record is the original");

    // The fields of a record survive a metadata change, a restart and the next version.
    let change = json!({"tenant_id": "acme", "source_id": "mail-1",
        "document_metadata": {"title": "Not this one"}});
    server.call("PATCH", "/upload/update_metadata", change).ok();
    let server = server.restart();
    let source = listed(&server, "mail-1");
    assert_eq!((&source["title"], &source["note"]), (&json!("Budget review"), &json!("starred")));
    let again = json!([{"id": "mail-1", "content": {"text": "A quokka instead."}}]);
    assert_eq!(server.post(PATH, again).ok()["uploaded"][0]["overwritten"], true);
    assert_eq!(server.settled("acme", "default", "mail-1")["status"], "success");
    let source = listed(&server, "mail-1");
    assert_eq!((&source["type"], &source["note"]), (&json!("app"), &json!("")));
    assert_eq!((&source["title"], &source["source_collection"]), (&json!("mail-1"), &json!([])));
    assert!(server.full_text("acme", "default", "zebra").is_empty());
}

#[test]
fn a_bad_record_fails_alone() {
    let server = TestServer::start();
    let good = json!({"id": "good", "content": {"text": "kept"}});
    let bad = [
        json!({"title": "nothing"}),
        json!({"id": "b", "content": {"html_base64": "*"}}),
        json!({"id": "c", "content": {"text": "x"}, "title": 7}),
        json!({"id": "d", "content": {"text": "x"}, "timestamp": "yesterday"}),
        json!({"id": "e", "content": {"text": "x"}, "collections": ["y".repeat(300)]}),
    ];
    let mut records = vec![good];
    records.extend(bad.clone());
    let reply = server.post(PATH, Value::from(records)).ok();
    assert_eq!((&reply["success"], &reply["uploaded_count"]), (&json!(false), &json!(1)));
    let failed: Vec<u64> = reply["failed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            assert_eq!(item["reason"], "invalid_value", "{item}");
            item["index"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(failed, [1, 2, 3, 4, 5]);
    server.post(PATH, Value::from(bad.to_vec())).error(400, "batch_failed");
}

#[test]
fn a_bad_request_changes_nothing() {
    let server = TestServer::start();
    let record = |id: &str| json!({"id": id, "content": {"text": "x"}});
    let many: Vec<Value> = (0..101).map(|n| record(&format!("r{n}"))).collect();
    for (body, reason) in [
        (json!([]), "invalid_value"),
        (Value::from(many), "too_many_items"),
        (json!([record("a"), record("a")]), "duplicate_id"),
        (json!([record("a/b")]), "batch_failed"),
        (json!({"sources": [record("a")]}), "malformed_body"),
        (json!(["text"]), "batch_failed"),
        (json!([{"id": "a", "content": {"text": "x"}, "document_metadata": 7}]), "invalid_value"),
    ] {
        server.post(PATH, body).error(400, reason);
    }
    server.get("/list/sources?tenant_id=acme").error(404, "tenant_not_found");
}
