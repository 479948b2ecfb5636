//! Uploads: ids, states, replacement, rejection and batches.

use serde_json::{Value, json};

use crate::contract::check_error;
use crate::gate::gated_server;
use crate::support::{Part, TestServer};

const TEXT: &str = "/upload/upload_text?tenant_id=acme";
const STATES: [&str; 4] = ["queued", "in_progress", "success", "errored"];

fn verify(server: &TestServer, query: &str) -> crate::support::Reply {
    server.post(&format!("/upload/verify_processing?{query}"), Value::Null)
}

fn document<'a>(name: &'a str, bytes: &'a [u8]) -> [Part<'a>; 2] {
    [("tenant_id", None, b"acme"), ("file", Some(name), bytes)]
}

#[test]
fn an_upload_without_an_id_gets_one_of_its_own() {
    let server = TestServer::start();
    let mut ids = std::collections::BTreeSet::new();
    for body in [
        json!({"content": "x"}),
        json!({"content": "x", "file_id": ""}),
        json!({"content": "x", "file_id": null}),
    ] {
        let made = server.post(TEXT, body).ok();
        assert_eq!((&made["success"], &made["overwritten"]), (&json!(true), &json!(false)));
        let id = made["file_id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("doc_") && id.len() == 30, "{id}");
        assert_eq!(server.settled("acme", "default", &id)["status"], "success");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 3);
}

#[test]
fn the_id_of_the_body_wins_over_that_of_the_metadata() {
    let server = TestServer::start();
    let upload = |body: Value| server.post(TEXT, body).ok()["file_id"].as_str().unwrap().to_owned();
    let metadata = json!({"file_id": "from-metadata"});
    let body = json!({"content": "x", "file_id": "from-body", "document_metadata": metadata});
    assert_eq!(upload(body), "from-body");
    assert_eq!(upload(json!({"content": "x", "document_metadata": metadata})), "from-metadata");
    assert_eq!(
        upload(json!({"content": "x", "file_id": "", "document_metadata": metadata})),
        "from-metadata"
    );
    for other in [json!({"file_id": ""}), json!({"file_id": 7}), json!({})] {
        assert!(upload(json!({"content": "x", "document_metadata": other})).starts_with("doc_"));
    }
    let slash = json!({"content": "x", "document_metadata": {"file_id": "a/b"}});
    server.post(TEXT, slash).error(400, "invalid_identifier");
}

#[test]
fn the_state_is_known_from_the_first_moment_and_only_moves_forward() {
    let server = TestServer::start();
    for round in 0..20 {
        let id = format!("s{round}");
        server.post(TEXT, json!({"content": "apples fall", "file_id": id})).ok();
        let mut seen = Vec::new();
        loop {
            let status = verify(&server, &format!("file_id={id}")).ok();
            assert_eq!(status["status"], status["indexing_status"]);
            let at = STATES.iter().position(|state| status["status"] == *state);
            seen.push(at.unwrap_or_else(|| panic!("{status}")));
            if status["status"] == "success" {
                assert_eq!(
                    (&status["searchable"], &status["error_code"]),
                    (&json!(true), &json!(""))
                );
                assert_eq!((&status["stage"], &status["version"]), (&Value::Null, &json!("v1")));
                assert_eq!(status["chunk_count"], 1);
                break;
            }
            assert_ne!(status["status"], "errored");
        }
        assert!(seen.is_sorted(), "{seen:?}");
    }
}

#[test]
fn every_state_on_the_way_can_be_seen() {
    let (server, gate) = gated_server();
    gate.close();
    server.post(TEXT, json!({"content": "apples", "file_id": "first"})).ok();
    // The only worker holds the first source at the gate; the second waits in the queue.
    let running = loop {
        let status = verify(&server, "file_id=first").ok();
        if status["stage"] == "embedding" {
            break status;
        }
        assert_ne!(status["status"], "success");
    };
    assert_eq!(
        (&running["status"], &running["searchable"]),
        (&json!("in_progress"), &json!(false))
    );
    server.post(TEXT, json!({"content": "pears", "file_id": "second"})).ok();
    let waiting = verify(&server, "file_id=second").ok();
    assert_eq!((&waiting["status"], &waiting["stage"]), (&json!("queued"), &Value::Null));
    assert!(server.full_text("acme", "default", "apples pears").is_empty());
    let counts = server.get("/jobs").ok()["counts"].clone();
    assert_eq!((&counts["in_progress"], &counts["queued"]), (&json!(1), &json!(1)));
    gate.open();
    for id in ["first", "second"] {
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
    }
}

#[test]
fn a_source_is_found_by_its_id_alone_until_it_is_deleted() {
    let server = TestServer::start();
    verify(&server, "file_id=a").error(404, "source_not_found");
    server.index("acme", "north", "a", "apples");
    for query in ["file_id=a", "file_id=a&tenant_id=acme", "file_id=a&tenant_id=&sub_tenant_id="] {
        let found = verify(&server, query).ok();
        assert_eq!(
            (&found["tenant_id"], &found["sub_tenant_id"]),
            (&json!("acme"), &json!("north"))
        );
        let got = server.get(&format!("/upload/verify_processing?{query}")).ok();
        assert_eq!(got, found, "GET answers as POST does");
    }
    // An explicit `default` searches only that sub-tenant.
    let literal = "file_id=a&tenant_id=acme&sub_tenant_id=default";
    verify(&server, literal).error(404, "source_not_found");
    verify(&server, "file_id=a&tenant_id=nowhere").error(404, "tenant_not_found");
    server.index("acme", "default", "a", "pears");
    let found = verify(&server, "file_id=a&tenant_id=acme").ok();
    assert_eq!(found["sub_tenant_id"], "default", "default goes first");
    let newest = verify(&server, "file_id=a").ok();
    assert_eq!(newest["sub_tenant_id"], "default", "the newest of all");
    for sub_tenant in ["north", "default"] {
        let body = json!({"tenant_id": "acme", "sub_tenant_id": sub_tenant, "source_ids": ["a"]});
        server.call("DELETE", "/upload/delete_source", body).ok();
    }
    for query in ["file_id=a", "file_id=a&tenant_id=acme"] {
        verify(&server, query).error(404, "source_not_found");
    }
}

#[test]
fn success_means_found_at_once_by_every_search() {
    let server = TestServer::start();
    for round in 0..10 {
        let word = format!("keyword{round}");
        server.index("acme", "default", &word, &format!("The {word} stands here."));
        assert_eq!(server.retrieve("acme", "default", &word)[0]["source_id"], word.as_str());
        assert_eq!(server.full_text("acme", "default", &word).len(), 1);
        let body = json!({"tenant_id": "acme", "question": format!("What about {word}?")});
        let answer = server.post("/search/qna", body).ok();
        assert_eq!(answer["sources"][0]["source_id"], word.as_str());
    }
}

/// A source without the members that an identical replacement may change.
fn unversioned(mut source: Value) -> Value {
    let members = source.as_object_mut().unwrap();
    for name in ["version", "timestamp", "updated_at"] {
        assert!(members.remove(name).is_some_and(|value| value.is_string()), "{name}");
    }
    source
}

#[test]
fn the_same_id_again_replaces_the_whole_source() {
    let server = TestServer::start();
    let upload = |content: &str, metadata: Value| {
        let body = json!({"content": content, "file_id": "a", "document_metadata": metadata});
        let made = server.post(TEXT, body).ok();
        assert_eq!(server.settled("acme", "default", "a")["status"], "success");
        made
    };
    let first = upload("apples fall", json!({"colour": "red"}));
    assert_eq!(first["overwritten"], false);
    assert!(!first["message"].as_str().unwrap().contains("overwritten"));
    let second = upload("pears ripen", Value::Null);
    assert_eq!(second["overwritten"], true);
    assert!(second["message"].as_str().unwrap().contains("overwritten"));
    assert!(server.full_text("acme", "default", "apples").is_empty());
    assert_eq!(server.full_text("acme", "default", "pears").len(), 1);
    let replaced = server.source("acme", "default", "a");
    assert_eq!((&replaced["version"], &replaced["document_metadata"]), (&json!("v2"), &json!({})));
    let stats = server.get("/tenant/stats?tenant_id=acme").ok();
    upload("pears ripen", Value::Null);
    let again = server.source("acme", "default", "a");
    assert_eq!(again["version"], "v3");
    assert_eq!(unversioned(again), unversioned(replaced));
    assert_eq!(server.get("/tenant/stats?tenant_id=acme").ok(), stats);
    assert_eq!(server.full_text("acme", "default", "pears")[0]["version"], "v3");
}

#[test]
fn a_replacement_that_fails_leaves_the_old_text() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    let empty = b"<html><body></body></html>";
    let parts: [Part<'_>; 1] = [("file", Some("a.html"), empty)];
    let path = "/upload/update_document?tenant_id=acme&source_id=a";
    server.form("PATCH", path, &parts).ok();
    let status = server.settled("acme", "default", "a");
    assert_eq!((&status["status"], &status["error_code"]), (&json!("errored"), &json!("NO_TEXT")));
    let message = status["message"].as_str().expect("a text");
    assert!(message.ends_with("; the previous version, v1, is still searchable"), "{message}");
    assert_eq!((&status["searchable"], &status["version"]), (&json!(true), &json!("v2")));
    assert_eq!(server.full_text("acme", "default", "apples")[0]["version"], "v1");
    assert_eq!(server.retrieve("acme", "default", "apples").len(), 1);
    let listed = server.source("acme", "default", "a");
    assert_eq!((&listed["status"], &listed["version"]), (&json!("errored"), &json!("v1")));
    let body = json!({"tenant_id": "acme", "file_id": "a"});
    assert_eq!(server.post("/fetch/fetch_content", body).ok()["file_content"], "apples fall");
    // The next valid version clears the error.
    server.index("acme", "default", "a", "pears ripen");
    assert_eq!(server.source("acme", "default", "a")["status"], "success");
    assert!(server.full_text("acme", "default", "apples").is_empty());
}

#[test]
fn update_text_creates_keeps_and_replaces() {
    let server = TestServer::start();
    let update = |body: Value| {
        let path = "/upload/update_text?tenant_id=acme&source_id=a";
        let made = server.call("PATCH", path, body).ok();
        assert_eq!(made["file_id"], "a");
        assert_eq!(server.settled("acme", "default", "a")["status"], "success");
        (made["overwritten"].clone(), server.source("acme", "default", "a"))
    };
    let (overwritten, source) = update(json!({
        "content": "one", "tenant_metadata": {"t": 1}, "document_metadata": {"x": 1, "y": 2},
    }));
    assert_eq!(overwritten, false);
    assert_eq!(source["document_metadata"], json!({"x": 1, "y": 2}));
    let (overwritten, source) = update(json!({"content": "two", "file_id": "a"}));
    assert_eq!(overwritten, true);
    assert_eq!(source["document_metadata"], json!({"x": 1, "y": 2}), "absent keeps");
    let (_, source) =
        update(json!({"content": "three", "document_metadata": {"z": 3}, "tenant_metadata": null}));
    assert_eq!(source["document_metadata"], json!({"z": 3}), "an object replaces the whole map");
    assert_eq!(source["tenant_metadata"], json!({"t": 1}), "null keeps");
    let path = "/upload/update_text?tenant_id=acme&source_id=a";
    let other = json!({"content": "four", "file_id": "b"});
    server.call("PATCH", path, other).error(400, "conflicting_values");
    let no_id = "/upload/update_text?tenant_id=acme";
    server.call("PATCH", no_id, json!({"content": "x"})).error(400, "missing_field");
    assert_eq!(server.full_text("acme", "default", "three").len(), 1);
}

#[test]
fn the_tenant_of_a_document_may_stand_in_form_or_query() {
    let server = TestServer::start();
    let upload = |query: &str, parts: &[Part<'_>]| {
        server.form("POST", &format!("/upload/upload_document{query}"), parts)
    };
    let file: Part<'_> = ("file", Some("a.txt"), b"apples fall");
    upload("", &[("tenant_id", None, b"acme"), file]).ok();
    upload("", &[file, ("tenant_id", None, b"acme"), ("sub_tenant_id", None, b"x")]).ok();
    upload("?tenant_id=acme", &[file]).ok();
    upload("?tenant_id=acme", &[file, ("tenant_id", None, b"acme")]).ok();
    upload("?tenant_id=acme", &[file, ("tenant_id", None, b"")]).ok();
    let other = upload("?tenant_id=acme", &[file, ("tenant_id", None, b"other")]);
    other.error(400, "conflicting_values");
    upload("", &[file]).error(400, "missing_field");
    assert_eq!(server.sources("acme", "default").len(), 4);
    assert_eq!(server.sources("acme", "x").len(), 1);
}

#[test]
fn a_document_is_processed_by_what_it_is() {
    let server = TestServer::start();
    let upload = |name: &str, bytes: &[u8]| {
        let made = server.form("POST", "/upload/upload_document", &document(name, bytes)).ok();
        let id = made["file_id"].as_str().unwrap().to_owned();
        assert_eq!(server.settled("acme", "default", &id)["status"], "success", "{name}");
        server.source("acme", "default", &id)
    };
    for (name, bytes, word) in [
        ("a.txt", &b"alphaword here"[..], "alphaword"),
        ("b.md", b"# Head\n\nbetaword here", "betaword"),
        ("c.html", b"<html><title>T</title><p>gammaword</html>", "gammaword"),
        ("d.csv", b"name,colour\ndeltaword,red\n", "deltaword"),
        ("e.tsv", b"name\tcolour\nepsilonword\tred\n", "epsilonword"),
        ("f.json", b"{\"name\": \"zetaword\"}", "zetaword"),
        ("g.xml", b"<?xml version=\"1.0\"?><a><b>etaword</b></a>", "etaword"),
    ] {
        let source = upload(name, bytes);
        assert_eq!((&source["title"], &source["type"]), (&json!(name), &json!("file")));
        assert_eq!(source["size_bytes"], bytes.len());
        assert_eq!(server.full_text("acme", "default", word).len(), 1, "{name}");
    }
}

#[test]
fn an_encrypted_file_is_taken_and_its_job_says_so() {
    let server = TestServer::start();
    server.index("acme", "default", "kept", "apples");
    let bytes = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<</Encrypt 2 0 R>>\n%%EOF";
    let [tenant, file] = document("secret.pdf", bytes);
    let parts = [tenant, file, ("file_id", None, &b"secret"[..])];
    server.form("POST", "/upload/upload_document", &parts).ok();
    let status = server.settled("acme", "default", "secret");
    assert_eq!(
        (&status["status"], &status["error_code"]),
        (&json!("errored"), &json!("ENCRYPTED_FILE"))
    );
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
}

#[test]
fn a_file_that_is_not_supported_is_refused_and_not_listed() {
    let server = TestServer::start();
    server.index("acme", "default", "kept", "apples");
    let before = server.state("acme");
    for (name, bytes) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("a.doc", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
        ("a.zip", b"PK\x03\x04some"),
        ("a.bin", b"\0\x01\x02\x03\0\x05"),
        ("a.exe", b"MZ\0\x01\0\0\0\0"),
    ] {
        let reply = server.form("POST", "/upload/upload_document", &document(name, bytes));
        let body = reply.error(400, "unsupported_file_format");
        let message = body["message"].as_str().unwrap();
        assert!(message.starts_with("Unsupported file format: "), "{name}: {message}");
        let parts: [Part<'_>; 1] = [("file", Some(name), bytes)];
        let path = "/upload/update_document?tenant_id=acme&source_id=kept";
        server.form("PATCH", path, &parts).error(400, "unsupported_file_format");
    }
    let empty = server.form("POST", "/upload/upload_document", &document("a.txt", b""));
    empty.error(400, "empty_file");
    for metadata in [&b"{"[..], b"[]", b"7", b"\"x\""] {
        let [tenant, file] = document("a.txt", b"pears");
        let parts = [tenant, file, ("document_metadata", None, metadata)];
        let reply = server.form("POST", "/upload/upload_document", &parts);
        reply.error(400, "invalid_value");
    }
    server
        .form("POST", "/upload/upload_document", &[("tenant_id", None, b"acme")])
        .error(400, "missing_field");
    assert_eq!(server.state("acme"), before);
}

const BATCH: &str = "/upload/batch_upload?tenant_id=acme";

#[test]
fn a_batch_stores_its_good_files_and_names_the_bad() {
    let server = TestServer::start();
    let reply = server.form(
        "POST",
        BATCH,
        &[
            ("files", Some("good.txt"), b"apples"),
            ("files", Some("bad.png"), b"\x89PNG\r\n\x1a\n\0"),
            ("files", Some("also.txt"), b"pears"),
            ("file_ids", None, br#"["one", "two", ""]"#),
            ("document_metadata", None, br#"[{"n": 1}, {"n": 2}, {"n": 3}]"#),
        ],
    );
    let body = reply.ok();
    assert_eq!(body["success"], false);
    assert_eq!((&body["uploaded_count"], &body["failed_count"]), (&json!(2), &json!(1)));
    assert_eq!(body["uploaded"][0]["file_id"], "one");
    assert_eq!(body["uploaded"][1]["filename"], "also.txt");
    let failed = &body["failed"][0];
    assert_eq!((&failed["index"], &failed["filename"]), (&json!(1), &json!("bad.png")));
    assert_eq!(failed["reason"], "unsupported_file_format");
    assert_eq!(failed["error_code"], "INVALID_PARAMETERS");
    let generated = body["uploaded"][1]["file_id"].as_str().unwrap();
    for (id, number) in [("one", 1), (generated, 3)] {
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
        assert_eq!(server.source("acme", "default", id)["document_metadata"], json!({"n": number}));
    }
    assert_eq!(server.sources("acme", "default").len(), 2);
}

#[test]
fn a_batch_of_bad_files_is_400() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let parts: [Part<'_>; 2] =
        [("files", Some("a.txt"), b""), ("files", Some("b.png"), b"\x89PNG\r\n\x1a\n\0")];
    let reply = server.form("POST", BATCH, &parts);
    assert_eq!(reply.status, 400);
    check_error(&reply, "a batch of bad files");
    let failed = reply.json()["failed"].clone();
    let reasons = [&failed[0]["reason"], &failed[1]["reason"]];
    assert_eq!(reasons, ["empty_file", "unsupported_file_format"]);
    assert!(server.sources("acme", "default").is_empty());
}

#[test]
fn a_batch_that_does_not_add_up_stores_nothing() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let file: Part<'_> = ("files", Some("a.txt"), b"apples");
    let with = |name: &'static str, value: &'static [u8]| {
        server.form("POST", BATCH, &[file, file, (name, None, value)])
    };
    with("file_ids", br#"["one"]"#).error(400, "count_mismatch");
    with("file_ids", br#"["one", "two", "three"]"#).error(400, "count_mismatch");
    with("file_ids", br#"["one", "two"#).error(400, "invalid_value");
    with("file_ids", br#"[1, "a/b"]"#).error(400, "batch_failed");
    assert_eq!(with("file_ids", br#"["same", "same"]"#).status, 400);
    assert_eq!(with("document_metadata", br#"[{"n": 1}]"#).status, 400);
    assert_eq!(with("document_metadata", b"nonsense").status, 400);
    server.form("POST", BATCH, &[]).error(400, "missing_field");
    let many: Vec<Part<'_>> = vec![file; 101];
    server.form("POST", BATCH, &many).error(400, "too_many_items");
    assert!(server.sources("acme", "default").is_empty());
    assert_eq!(server.get("/jobs").ok()["jobs"], json!([]));
}

#[test]
fn texts_come_in_batches_too() {
    let server = TestServer::start();
    let path = "/upload/batch_upload_text?tenant_id=acme";
    let items =
        json!([{"content": "apples", "file_id": "a"}, {"content": " "}, {"content": "pears"}]);
    let body = server.post(path, json!({"items": items})).ok();
    assert_eq!((&body["success"], &body["failed"][0]["index"]), (&json!(false), &json!(1)));
    assert_eq!(body["uploaded"][0]["file_id"], "a");
    for uploaded in body["uploaded"].as_array().unwrap() {
        let id = uploaded["file_id"].as_str().unwrap();
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
    }
    for items in [
        json!([]),
        json!(null),
        json!("x"),
        json!([7]),
        json!([{}]),
        json!(vec![json!({"content": "x"}); 101]),
    ] {
        let reply = server.post(path, json!({"items": items}));
        assert_eq!(reply.status, 400, "{items:.60}");
    }
    assert_eq!(server.sources("acme", "default").len(), 2);
}

#[test]
fn batch_update_needs_one_id_a_file() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples");
    let path = "/upload/batch_update?tenant_id=acme";
    let file: Part<'_> = ("files", Some("a.txt"), b"pears");
    let before = server.state("acme");
    for ids in [&br#"["a"]"#[..], br#"["a", "b", "c"]"#, br#"["a", ""]"#] {
        let parts = [file, file, ("source_ids", None, ids)];
        server.form("PATCH", path, &parts).error(400, "count_mismatch");
    }
    server.form("PATCH", path, &[file]).error(400, "missing_field");
    assert_eq!(server.state("acme"), before);
    for parts in [
        &[file, file, ("source_ids", None, &br#"["a", "b"]"#[..])][..],
        &[file, file, ("source_ids", None, b"a"), ("source_ids", None, b"b")],
        &[("source_ids[0]", None, b"a"), file, ("source_ids[1]", None, b"b"), file],
    ] {
        let body = server.form("PATCH", path, parts).ok();
        assert_eq!((&body["success"], &body["uploaded_count"]), (&json!(true), &json!(2)));
        assert_eq!(body["uploaded"][0]["overwritten"], true);
    }
    for id in ["a", "b"] {
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
    }
    assert!(server.full_text("acme", "default", "apples").is_empty());
}

#[test]
fn uploads_answered_before_a_restart_are_processed_after_it() {
    let mut server = TestServer::start();
    for round in 0..30 {
        let body =
            json!({"content": format!("word{round} apples"), "file_id": format!("s{round}")});
        server.post(TEXT, body).ok();
    }
    let delete = json!({"tenant_id": "acme", "source_ids": ["s7"]});
    server.call("DELETE", "/delete_source", delete).ok();
    server = server.restart();
    for round in (0..30).filter(|round| *round != 7) {
        let status = server.settled("acme", "default", &format!("s{round}"));
        assert_eq!(status["status"], "success");
        assert_eq!(server.full_text("acme", "default", &format!("word{round}")).len(), 1);
    }
    assert!(server.full_text("acme", "default", "word7").is_empty(), "what is deleted stays so");
    assert_eq!(server.sources("acme", "default").len(), 29);
}

#[test]
fn a_question_for_the_state_may_wait_for_the_end() {
    let (server, gate) = gated_server();
    let verify = |wait: &str| {
        server.post(&format!("/upload/verify_processing?file_id=s&wait={wait}"), Value::Null)
    };
    server.index("acme", "default", "s", "before");
    gate.close();
    server.post(TEXT, json!({"content": "apples fall", "file_id": "s"})).ok();
    let started = std::time::Instant::now();
    assert_ne!(verify("1").ok()["status"], "success");
    assert!(started.elapsed() >= std::time::Duration::from_secs(1), "it waited");
    gate.open();
    let status = verify("60").ok();
    assert_eq!((&status["status"], &status["version"]), (&json!("success"), &json!("v2")));
    for bad in ["61", "-1", "x"] {
        verify(bad).error(400, "invalid_value");
    }
}

/// Builds a PDF with one page per line of text, in 12-point Helvetica, with the baseline 92 points
/// below the upper edge and the text starting 72 points from the left edge.
pub fn pdf(lines: &[&str]) -> Vec<u8> {
    let mut objects = vec![String::new(), String::new()];
    let mut kids = String::new();
    for line in lines {
        let content = format!("BT /F1 12 Tf 72 700 Td ({line}) Tj ET");
        let page = objects.len() + 1;
        kids.push_str(&format!("{page} 0 R "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 \
             /BaseFont /Helvetica >> >> >> >>",
            page + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    objects[0] = "<< /Type /Catalog /Pages 2 0 R >>".to_owned();
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", lines.len());
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).into_bytes());
    }
    let table = bytes.len();
    bytes.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).into_bytes());
    for offset in offsets {
        bytes.extend(format!("{offset:010} 00000 n \n").into_bytes());
    }
    let size = objects.len() + 1;
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    bytes.extend(trailer.into_bytes());
    bytes
}

#[test]
fn chunks_of_a_pdf_say_where_they_stand() {
    let server = TestServer::start();
    let file = pdf(&["The kestrel hovers over the field.", "The heron waits at the pond."]);
    let form = document("birds.pdf", &file);
    let made = server.form("POST", "/upload/upload_document", &form).ok();
    let id = made["file_id"].as_str().unwrap();
    assert_eq!(server.settled("acme", "default", id)["status"], "success");
    let question = json!({"question": "Where does the heron wait?", "tenant_id": "acme"});
    let check = |server: &TestServer| {
        let answer = server.post("/search/qna", question.clone()).ok();
        let chunk = &answer["chunks"][0];
        let layout: Value = serde_json::from_str(chunk["layout"].as_str().unwrap()).unwrap();
        let boxes = chunk["bounding_boxes"].as_array().unwrap();
        let pages: Vec<u64> = boxes.iter().map(|found| found["page"].as_u64().unwrap()).collect();
        assert_eq!(pages, [1, 2], "one chunk holds both pages: {chunk}");
        assert_eq!((&layout["page"], &chunk["bounding_box"]), (&json!(1), &boxes[0]));
        let number = |value: &Value, name: &str| value[name].as_f64().unwrap();
        for found in boxes.iter().chain([&layout["coordinates"]]) {
            let (x, y) = (number(found, "x"), number(found, "y"));
            let (right, bottom) = (x + number(found, "width"), y + number(found, "height"));
            assert!((x - 72.0).abs() < 2.0 && (170.0..330.0).contains(&right), "{found}");
            assert!(y < 88.0 && y > 70.0 && bottom > 90.0 && bottom < 100.0, "{found}");
        }
        assert_eq!(layout["offsets"]["document_level_start_index"], 0);
    };
    check(&server);
    let server = server.restart();
    check(&server);
}
