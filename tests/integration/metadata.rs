//! Metadata of sources: changed on its own, kept or replaced by updates, and the titles taken from
//! it.

use serde_json::{Value, json};

use crate::gate::gated_server;
use crate::support::{Part, TestServer};

fn upload(server: &TestServer, body: Value) {
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
}

fn amend(server: &TestServer, changes: Value) -> crate::support::Reply {
    let mut body = json!({"tenant_id": "acme", "source_id": "a"});
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    server.call("PATCH", "/upload/update_metadata", body)
}

fn matching(server: &TestServer, place: &str, filter: Value) -> usize {
    let mut body = json!({"tenant_id": "acme", "query": "apples", "alpha": 1});
    body[place] = filter;
    let retrieved = server.post("/search/retrieve", body.clone()).ok()["chunks"].clone();
    let by_words = server.post("/search/full-text-search", body).ok();
    let count = |found: Value| found.as_array().unwrap().len();
    let (retrieved, by_words) = (count(retrieved), count(by_words));
    assert_eq!(retrieved, by_words, "both searches filter alike");
    retrieved
}

#[test]
fn update_metadata_is_effective_when_it_returns() {
    let server = TestServer::start();
    let body = json!({
        "content": "apples fall", "file_id": "a", "tenant_metadata": {"t": 1},
        "document_metadata": {"colour": "red"},
    });
    upload(&server, body);
    server.settled("acme", "default", "a");
    for n in 0..20 {
        let colour = format!("colour{n}");
        let changed = amend(&server, json!({"document_metadata": {"colour": colour, "n": n}})).ok();
        assert_eq!((&changed["file_id"], &changed["success"]), (&json!("a"), &json!(true)));
        assert_eq!(matching(&server, "document_metadata", json!({"colour": colour})), 1);
        assert_eq!(matching(&server, "document_metadata", json!({"n": n})), 1);
        assert_eq!(matching(&server, "document_metadata", json!({"n": n - 1})), 0);
        let source = server.source("acme", "default", "a");
        assert_eq!(source["document_metadata"], json!({"colour": colour, "n": n}));
        assert_eq!(source["tenant_metadata"], json!({"t": 1}), "the other map stays");
    }
    let source = server.source("acme", "default", "a");
    assert_eq!((&source["status"], &source["version"]), (&json!("success"), &json!("v1")));
    assert_eq!(source["chunk_count"], 1);
    let hit = &server.full_text("acme", "default", "apples")[0];
    assert_eq!(hit["document_metadata"], json!({"colour": "colour19", "n": 19}));
    assert_eq!(server.get("/tenant/stats?tenant_id=acme").ok()["object_count"], 1);
    let fetch = json!({"tenant_id": "acme", "file_id": "a"});
    assert_eq!(server.post("/fetch/fetch_content", fetch).ok()["file_content"], "apples fall");
}

#[test]
fn update_metadata_replaces_whole_maps_and_empties_them() {
    let server = TestServer::start();
    let body = json!({
        "content": "apples fall", "file_id": "a", "tenant_metadata": {"t": 1},
        "document_metadata": {"x": 1, "y": 2},
    });
    upload(&server, body);
    server.settled("acme", "default", "a");
    let maps = || {
        let source = server.source("acme", "default", "a");
        (source["tenant_metadata"].clone(), source["document_metadata"].clone())
    };
    amend(&server, json!({"document_metadata": {"x": 3}})).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"x": 3})), "nothing is merged");
    amend(&server, json!({})).ok();
    amend(&server, json!({"document_metadata": null, "tenant_metadata": null})).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"x": 3})));
    amend(&server, json!({"document_metadata": {}, "tenant_metadata": {"t": 2}})).ok();
    assert_eq!(maps(), (json!({"t": 2}), json!({})));
    assert_eq!(matching(&server, "tenant_metadata", json!({"t": 2})), 1);
    assert_eq!(matching(&server, "document_metadata", json!({"x": 3})), 0);
    let server = server.restart();
    let source = server.source("acme", "default", "a");
    assert_eq!(source["tenant_metadata"], json!({"t": 2}), "it outlives a restart");
}

#[test]
fn update_metadata_of_what_is_unknown_or_wrong_changes_nothing() {
    let server = TestServer::start();
    upload(&server, json!({"content": "apples", "file_id": "a", "document_metadata": {"x": 1}}));
    server.settled("acme", "default", "a");
    let before = server.state("acme");
    let to = |source: &str, map: Value| {
        let body = json!({"tenant_id": "acme", "source_id": source, "document_metadata": map});
        server.call("PATCH", "/upload/update_metadata", body)
    };
    to("nope", json!({"x": 2})).error(404, "source_not_found");
    to("nope", Value::Null).error(404, "source_not_found");
    to("a", json!([])).error(400, "invalid_value");
    to("a", json!({"x": "y".repeat(70_000)})).error(413, "content_too_large");
    let elsewhere = json!({
        "tenant_id": "acme", "sub_tenant_id": "x", "source_id": "a", "document_metadata": {},
    });
    server.call("PATCH", "/upload/update_metadata", elsewhere).error(404, "source_not_found");
    assert_eq!(server.state("acme"), before);
}

#[test]
fn a_change_reaches_a_job_that_still_waits() {
    let (server, gate) = gated_server();
    gate.close();
    upload(&server, json!({"content": "pears", "file_id": "first"}));
    let body = json!({"content": "apples", "file_id": "a", "document_metadata": {"x": 1}});
    upload(&server, body);
    amend(&server, json!({"document_metadata": {"x": 2}})).ok();
    assert_eq!(server.source("acme", "default", "a")["document_metadata"], json!({"x": 2}));
    gate.open();
    assert_eq!(server.settled("acme", "default", "a")["status"], "success");
    assert_eq!(server.source("acme", "default", "a")["document_metadata"], json!({"x": 2}));
    assert_eq!(matching(&server, "document_metadata", json!({"x": 2})), 1);
}

#[test]
fn a_change_reaches_a_job_that_is_being_processed() {
    let (server, gate) = gated_server();
    let body = json!({"content": "apples", "file_id": "a", "document_metadata": {"x": 1}});
    upload(&server, body.clone());
    server.settled("acme", "default", "a");
    gate.close();
    upload(
        &server,
        json!({"content": "new apples", "file_id": "a", "document_metadata": {"x": 2}}),
    );
    let verify = "/upload/verify_processing?file_id=a&tenant_id=acme";
    while server.post(verify, Value::Null).ok()["stage"] != "embedding" {
        std::thread::yield_now();
    }
    amend(&server, json!({"document_metadata": {"x": 3}})).ok();
    assert_eq!(server.source("acme", "default", "a")["document_metadata"], json!({"x": 3}));
    assert_eq!(matching(&server, "document_metadata", json!({"x": 3})), 1, "the old text has it");
    gate.open();
    assert_eq!(server.settled("acme", "default", "a")["status"], "success");
    let source = server.source("acme", "default", "a");
    assert_eq!(
        (&source["document_metadata"], &source["version"]),
        (&json!({"x": 3}), &json!("v2"))
    );
    assert_eq!(matching(&server, "document_metadata", json!({"x": 3})), 1);
    assert_eq!(server.full_text("acme", "default", "new").len(), 1);
}

fn searchable_tenant(server: &TestServer) {
    let schema = json!([
        {"key": "region", "type": "string", "searchable": true},
        {"key": "year", "type": "number"},
    ]);
    let path = "/user/create_tenant?tenant_id=acme";
    server.post(path, json!({"tenant_metadata_schema": schema})).ok();
}

#[test]
fn a_searchable_value_is_found_by_its_words() {
    let server = TestServer::start();
    searchable_tenant(&server);
    let body = json!({
        "content": "apples fall", "file_id": "a",
        "tenant_metadata": {"region": "highlands", "year": 2024},
    });
    upload(&server, body);
    server.settled("acme", "default", "a");
    let keyword = |query: &str| {
        let body = json!({"tenant_id": "acme", "query": query, "alpha": 0});
        server.post("/search/retrieve", body).ok()["chunks"].as_array().unwrap().len()
    };
    assert_eq!((keyword("highlands"), keyword("lowlands"), keyword("2024")), (1, 0, 0));
    // Only changing a searchable field causes the source to be processed again.
    amend(&server, json!({"tenant_metadata": {"region": "highlands", "year": 2025}})).ok();
    let status = server.settled("acme", "default", "a");
    assert_eq!(status["version"], "v1", "{status}");
    assert_eq!(matching(&server, "tenant_metadata", json!({"year": 2025})), 1);
    amend(&server, json!({"tenant_metadata": {"region": "lowlands", "year": 2025}})).ok();
    assert_eq!(matching(&server, "tenant_metadata", json!({"region": "lowlands"})), 1, "at once");
    assert_eq!(server.settled("acme", "default", "a")["status"], "success");
    assert_eq!((keyword("highlands"), keyword("lowlands")), (0, 1));
    let source = server.source("acme", "default", "a");
    assert_eq!(source["tenant_metadata"], json!({"region": "lowlands", "year": 2025}));
    assert_eq!((&source["status"], &source["chunk_count"]), (&json!("success"), &json!(1)));
    let fetch = json!({"tenant_id": "acme", "file_id": "a"});
    assert_eq!(server.post("/fetch/fetch_content", fetch).ok()["file_content"], "apples fall");
}

#[test]
fn a_searchable_change_reaches_a_source_whose_replacement_failed() {
    let server = TestServer::start();
    searchable_tenant(&server);
    let tenant_metadata = json!({"region": "highlands"});
    let body =
        json!({"content": "apples fall", "file_id": "a", "tenant_metadata": tenant_metadata});
    upload(&server, body);
    server.settled("acme", "default", "a");
    let empty: Part<'_> = ("file", Some("a.html"), b"<html><body></body></html>");
    let path = "/upload/update_document?tenant_id=acme&source_id=a";
    server.form("PATCH", path, &[empty]).ok();
    assert_eq!(server.settled("acme", "default", "a")["status"], "errored");
    amend(&server, json!({"tenant_metadata": {"region": "lowlands"}})).ok();
    server.settled("acme", "default", "a");
    assert_eq!(server.full_text("acme", "default", "lowlands").len(), 1);
    assert!(server.full_text("acme", "default", "highlands").is_empty());
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
}

#[test]
fn the_metadata_of_a_source_that_never_succeeded_can_change() {
    let server = TestServer::start();
    let parts: [Part<'_>; 2] =
        [("file", Some("a.html"), b"<html><body></body></html>"), ("file_id", None, b"a")];
    server.form("POST", "/upload/upload_document?tenant_id=acme", &parts).ok();
    assert_eq!(server.settled("acme", "default", "a")["status"], "errored");
    amend(&server, json!({"document_metadata": {"x": 1}})).ok();
    let source = server.source("acme", "default", "a");
    assert_eq!(
        (&source["status"], &source["document_metadata"]),
        (&json!("errored"), &json!({"x": 1}))
    );
}

#[test]
fn a_change_of_metadata_leaves_upload_time_and_title_alone() {
    let server = TestServer::start();
    upload(&server, json!({"content": "# Falling\n\napples", "file_id": "a"}));
    server.settled("acme", "default", "a");
    let before = server.source("acme", "default", "a");
    assert_eq!(before["title"], "Falling");
    amend(&server, json!({"document_metadata": {"x": 1}})).ok();
    server.settled("acme", "default", "a");
    let after = server.source("acme", "default", "a");
    assert_eq!((&after["title"], &after["timestamp"]), (&before["title"], &before["timestamp"]));
    assert_eq!(after["description"], before["description"]);
}

#[test]
fn a_title_in_the_metadata_is_effective_and_can_be_taken_back() {
    let server = TestServer::start();
    upload(&server, json!({"content": "# Falling\n\napples", "file_id": "a"}));
    server.settled("acme", "default", "a");
    let titles = || {
        server.settled("acme", "default", "a");
        let listed = server.source("acme", "default", "a")["title"].clone();
        let hit = server.full_text("acme", "default", "apples")[0]["source_title"].clone();
        assert_eq!(listed, hit);
        listed
    };
    amend(&server, json!({"document_metadata": {"title": "Given"}})).ok();
    assert_eq!(titles(), "Given");
    assert_eq!(matching(&server, "metadata", json!({"source_title": "Given"})), 1);
    amend(&server, json!({"document_metadata": {}})).ok();
    assert_eq!(titles(), "Falling");
    assert_eq!(matching(&server, "metadata", json!({"source_title": "Falling"})), 1);
}

#[test]
fn the_chain_of_titles() {
    let server = TestServer::start();
    let document = |id: &str, name: &str, bytes: &[u8], metadata: Value| {
        let metadata = metadata.to_string();
        let parts: [Part<'_>; 3] = [
            ("file", Some(name), bytes),
            ("file_id", None, id.as_bytes()),
            ("document_metadata", None, metadata.as_bytes()),
        ];
        server.form("POST", "/upload/upload_document?tenant_id=acme", &parts).ok();
        server.settled("acme", "default", id);
        server.source("acme", "default", id)["title"].clone()
    };
    let page = b"<html><head><title>Page</title></head><body><h1>Head</h1>apples</body></html>";
    assert_eq!(document("a", "a.html", page, json!({"title": "Given"})), "Given");
    assert_eq!(document("b", "b.html", page, json!({})), "b.html");
    assert_eq!(document("c", "c.html", page, json!({"title": ""})), "c.html");
    assert_eq!(document("d", "d.html", page, json!({"title": 7})), "d.html");
    assert_eq!(document("e", "../x/e.txt", b"apples", json!({})), "e.txt");
    assert_eq!(document("f", "", page, json!({})), "Page");
    assert_eq!(
        document("g", "", b"<html><body><h1>Head</h1>apples</body></html>", json!({})),
        "Head"
    );
    assert_eq!(document("h", "", b"apples fall down", json!({})), "h");
    let text = |id: &str, content: &str| {
        upload(&server, json!({"content": content, "file_id": id}));
        server.settled("acme", "default", id);
        server.source("acme", "default", id)["title"].clone()
    };
    assert_eq!(text("i", "intro\n\n## Second level\n\napples"), "Second level");
    assert_eq!(text("j", "only apples"), "j");
}

#[test]
fn every_patch_keeps_what_it_does_not_name() {
    let server = TestServer::start();
    let body = json!({
        "content": "apples", "file_id": "a", "tenant_metadata": {"t": 1},
        "document_metadata": {"d": 1},
    });
    upload(&server, body);
    server.settled("acme", "default", "a");
    let maps = || {
        server.settled("acme", "default", "a");
        let source = server.source("acme", "default", "a");
        (source["tenant_metadata"].clone(), source["document_metadata"].clone())
    };
    let file: Part<'_> = ("file", Some("a.txt"), b"pears");
    let update = "/upload/update_document?tenant_id=acme&source_id=a";
    server.form("PATCH", update, &[file]).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"d": 1})));
    server.form("PATCH", update, &[file, ("document_metadata", None, b"{\"d\": 2}")]).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"d": 2})));
    server.form("PATCH", update, &[file, ("document_metadata", None, b"")]).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"d": 2})), "an empty part is none");
    let files: Part<'_> = ("files", Some("a.txt"), b"plums");
    let ids: Part<'_> = ("source_ids", None, b"[\"a\"]");
    let batch = "/upload/batch_update?tenant_id=acme";
    server.form("PATCH", batch, &[files, ids]).ok();
    assert_eq!(maps(), (json!({"t": 1}), json!({"d": 2})));
    server.form("PATCH", batch, &[files, ids, ("tenant_metadata", None, b"[{\"t\": 3}]")]).ok();
    assert_eq!(maps(), (json!({"t": 3}), json!({"d": 2})));
    server.form("PATCH", batch, &[files, ids, ("tenant_metadata", None, b"{}")]).ok();
    assert_eq!(maps(), (json!({}), json!({"d": 2})));
    // An upload is not an update: fields that it does not name are removed.
    upload(&server, json!({"content": "apples", "file_id": "a"}));
    assert_eq!(maps(), (json!({}), json!({})));
}

#[test]
fn a_patch_keeps_the_metadata_of_what_it_overtakes() {
    let (server, gate) = gated_server();
    gate.close();
    upload(&server, json!({"content": "pears", "file_id": "first"}));
    upload(&server, json!({"content": "apples", "file_id": "a", "document_metadata": {"d": 1}}));
    let path = "/upload/update_text?tenant_id=acme&source_id=a";
    server.call("PATCH", path, json!({"content": "new apples"})).ok();
    gate.open();
    assert_eq!(server.settled("acme", "default", "a")["status"], "success");
    let source = server.source("acme", "default", "a");
    assert_eq!(source["document_metadata"], json!({"d": 1}));
    assert_eq!(server.full_text("acme", "default", "new").len(), 1);
}
