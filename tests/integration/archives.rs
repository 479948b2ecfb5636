//! Exporting and importing tenants.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{KEY, Reply, TestServer};

const QUERIES: usize = 100;
const WORDS: [&str; 12] = [
    "granite", "harbour", "lantern", "meadow", "copper", "violin", "glacier", "orchard", "compass",
    "thunder", "velvet", "falcon",
];

fn sentence(number: usize) -> String {
    let word = |step: usize| WORDS[(number * step + number / 5) % WORDS.len()];
    format!("The {} of {} stands near Lake {}, says report {number}.", word(1), word(5), word(7))
}

fn export(server: &TestServer, tenant: &str) -> Vec<u8> {
    let reply = server.get(&format!("/tenant/export?tenant_id={tenant}"));
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.bytes));
    reply.bytes
}

fn import(server: &TestServer, tenant: &str, archive: &[u8]) -> Reply {
    let request = Request::post(format!("/tenant/import?tenant_id={tenant}"))
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/x-ndjson")
        .body(Body::from(archive.to_vec()));
    server.send(request.expect("a request"))
}

/// The listings, and the ten best results of many queries with their scores.
fn seen(server: &TestServer, tenant: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for sub_tenant in ["default", "north"] {
        let path = format!("/list/sources?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        seen.push(server.get(&path).ok()["sources"].to_string());
        for number in 0..QUERIES / 2 {
            let chunks = server.retrieve(tenant, sub_tenant, &sentence(number * 3 + 1));
            assert!(!chunks.is_empty());
            seen.push(Value::from(chunks).to_string());
        }
        let memories = format!(
            "/user_memory/list_user_memories?tenant_id={tenant}&sub_tenant_id={sub_tenant}"
        );
        seen.push(server.get(&memories).ok()["user_memories"].to_string());
    }
    let ids = server.get(&format!("/tenant/sub_tenant_ids?tenant_id={tenant}")).ok();
    seen.push(json!([ids["sub_tenant_ids"], ids["tenant_schema"]]).to_string());
    let original = json!({"tenant_id": tenant, "file_id": "s3"});
    seen.push(server.post("/fetch/fetch_content", original).ok()["file_content"].to_string());
    seen
}

fn filled() -> TestServer {
    let server = TestServer::start();
    let schema = json!({"tenant_metadata_schema": [
        {"key": "place", "type": "string", "searchable": true, "filterable": true},
    ]});
    server.post("/user/create_tenant?tenant_id=acme", schema).ok();
    for number in 0..20 {
        let text = format!("# Report\n\n{}\n\n{}", sentence(number), sentence(number + 40));
        let body = json!({"content": text, "file_id": format!("s{number}"),
            "tenant_metadata": {"place": WORDS[number % 5]},
            "document_metadata": {"page": number}});
        let sub_tenant = if number % 4 == 0 { "north" } else { "default" };
        let path = format!("/upload/upload_text?tenant_id=acme&sub_tenant_id={sub_tenant}");
        server.post(&path, body).ok();
        server.settled("acme", sub_tenant, &format!("s{number}"));
    }
    let path = "/user_memory/add_user_memory?tenant_id=acme";
    server.post(path, json!({"user_memory": "likes granite", "memory_id": "m1"})).ok();
    server.call("DELETE", "/delete_source?tenant_id=acme", json!({"source_ids": ["s1"]})).ok();
    server
}

/// Goal: a tenant imported on another server and under another name, and exported again, gives
/// equal listings and answers.
#[test]
fn an_import_gives_equal_listings_and_answers() {
    let server = filled();
    let before = seen(&server, "acme");
    let archive = export(&server, "acme");
    let other = TestServer::start();
    let made = import(&other, "moved", &archive).ok();
    assert_eq!((&made["sources"], &made["reembedded"]), (&json!(20), &json!(false)), "{made}");
    let chunks = |bytes: &[u8]| -> Vec<Value> {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).expect("a line"));
        lines.filter(|line| line["member"] == "chunk").collect()
    };
    assert_eq!(chunks(&export(&other, "moved")), chunks(&archive), "text, places and vectors");
    assert_eq!(seen(&other, "moved"), before);
    let used = |server: &TestServer, tenant: &str| {
        let usage = server.get(&format!("/tenant/usage?tenant_id={tenant}")).ok();
        ["sources", "bytes", "vectors"].map(|name| usage[name].as_u64().expect("a number"))
    };
    assert_eq!(used(&other, "moved"), used(&server, "acme"), "it counts at once");
    let status = other.post("/upload/verify_processing?file_id=s3", Value::Null).ok();
    assert_eq!(status["status"], "success", "found without its tenant: {status}");
    // It behaves like any other tenant, also after a restart.
    other.index("moved", "default", "s3", "replaced by something about zebras");
    let other = other.restart();
    assert_eq!(other.source("moved", "default", "s3")["version"], json!("v2"));
    // Import it back, next to the original.
    import(&server, "again", &archive).ok();
    assert_eq!(seen(&server, "again"), before);
    let twice = export(&server, "again");
    let counts = |bytes: &[u8]| {
        let end = String::from_utf8_lossy(bytes).lines().last().unwrap().to_owned();
        let end: Value = serde_json::from_str(&end).unwrap();
        (end["sources"].clone(), end["chunks"].clone(), end["original_bytes"].clone())
    };
    assert_eq!(counts(&twice), counts(&archive));
}

#[test]
fn a_tenant_of_client_vectors_goes_bit_for_bit() {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let rows = json!([[0.1, -2.5, 3.25], [1e-20, 7.0, 0.3], [4.0, 5.0, 6.5]]);
    let path = "/upload/upload_embeddings?tenant_id=vectors";
    server.post(path, json!({"file_id": "b", "embeddings": rows})).ok();
    let metadata = json!([{"place": "north"}, {"place": "south"}]);
    let named = json!({"file_id": "own", "embeddings": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        "ids": ["first", "second"], "metadata": metadata});
    server.post(path, named).ok();
    let archive = export(&server, "vectors");
    import(&server, "copy", &archive).ok();
    let search = |tenant: &str| {
        let body = json!({"tenant_id": tenant, "embeddings": [0.1, -2.5, 3.0], "max_chunks": 3,
            "filter": {"place": "south"}, "with_metadata": true});
        server.post("/embeddings/search", body).ok()
    };
    assert_eq!(search("copy"), search("vectors"));
    assert_eq!(search("copy")["chunk_ids"], json!(["second"]));
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.lines().filter(|line| line.contains("\"chunk\"")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&export(&server, "copy")), lines(&archive), "every number as it was sent");
    import(&server, "copy", &archive).error(409, "tenant_not_empty");
}

#[test]
fn an_empty_tenant_takes_an_archive_of_its_kind() {
    let server = filled();
    let archive = export(&server, "acme");
    server.post("/user/create_tenant?tenant_id=empty", Value::Null).ok();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let key = server.make_key("read", json!([{"tenant_id": "empty"}]));
    import(&server, "empty", &archive).ok();
    let path = "/list/sources?tenant_id=empty";
    let listed = server.call_as(&key, "GET", path, &Value::Null).ok();
    assert_eq!(listed["sources"].as_array().unwrap().len(), 14, "the key still opens it");
    import(&server, "vectors", &archive).error(409, "tenant_differs");
    import(&server, "acme", &archive).error(409, "tenant_not_empty");
}

#[test]
fn vectors_of_another_model_are_made_anew() {
    let server = filled();
    let before = seen(&server, "acme");
    let archive = String::from_utf8(export(&server, "acme")).unwrap();
    let model = archive.split("\"model\":\"").nth(1).unwrap().split('"').next().unwrap();
    let foreign = sealed(archive.replacen(model, "another model", 1).as_bytes());
    let other = TestServer::start();
    let made = import(&other, "acme", &foreign).ok();
    assert_eq!(made["reembedded"], true);
    assert_eq!(seen(&other, "acme"), before, "this server's model has made them before, too");
}

/// Recomputes the checksum in an archive's last line to match the lines before it.
fn sealed(archive: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(archive).unwrap();
    let at = text.trim_end().rfind('\n').unwrap() + 1;
    let mut end: Value = serde_json::from_str(&text[at..]).unwrap();
    end["sha256"] = json!(hex::encode(Sha256::digest(&archive[..at])));
    format!("{}{end}\n", &text[..at]).into_bytes()
}

/// Goal: keys with many dots, stored by a release that did not limit them, can be imported,
/// although uploads are held to the limit.
#[test]
fn keys_with_more_dots_than_uploads_may_have_are_imported() {
    let server = filled();
    let archive = String::from_utf8(export(&server, "acme")).unwrap();
    let key = (0..20).map(|part| part.to_string()).collect::<Vec<_>>().join(".");
    let mut lines: Vec<Value> =
        archive.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_page = |line: &&mut Value| line["file_id"] == "s3";
    let line = lines.iter_mut().find(of_page).expect("the source is archived");
    line["document_metadata"] = json!({"page": 3, &key: "deep"});
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    import(&server, "dotted", &sealed(lines.as_bytes())).ok();
    import(&server, "dotted-again", &export(&server, "dotted")).ok();
    let filter = json!({"tenant_id": "dotted-again", "query": sentence(3),
        "document_metadata": {&key: "deep"}});
    let chunks = server.post("/search/retrieve", filter).ok()["chunks"].clone();
    let sources: Vec<&Value> =
        chunks.as_array().unwrap().iter().map(|chunk| &chunk["source_id"]).collect();
    assert!(!sources.is_empty() && sources.iter().all(|source| **source == "s3"), "{chunks}");
    let body = json!({"content": "x", "document_metadata": {key: "deep"}});
    let refused = server.post("/upload/upload_text?tenant_id=acme", body);
    assert_eq!(refused.status, 400, "{}", refused.json());
}

/// Goal: an archive truncated at any point is rejected as truncated, and nothing is imported.
#[test]
fn a_cut_archive_is_refused_as_cut() {
    let server = filled();
    let archive = export(&server, "acme");
    let tenants = server.get("/tenant/list").ok();
    let step = archive.len() / 40;
    for cut in (0..archive.len() - 1).step_by(step).chain([archive.len() - 2]) {
        let body = import(&server, "cut", &archive[..cut]).error(400, "archive_cut");
        assert!(body["message"].as_str().unwrap().contains("nothing was imported"), "{body}");
    }
    assert_eq!(server.get("/tenant/list").ok(), tenants);
    // The final line feed is optional.
    import(&server, "whole", &archive[..archive.len() - 1]).ok();
}

#[test]
fn a_hostile_archive_is_refused_with_its_line() {
    let server = filled();
    let archive = String::from_utf8(export(&server, "acme")).unwrap();
    let tenants = server.get("/tenant/list").ok();
    let deep = format!("\"document_metadata\":{}1{}", "{\"a\":".repeat(500), "}".repeat(500));
    let page = archive.split("\"document_metadata\":").nth(1).unwrap();
    let page = format!("\"document_metadata\":{}", &page[..=page.find('}').unwrap()]);
    let vector = archive.split("\"vector\":\"").nth(1).unwrap().split('"').next().unwrap();
    let source = archive.lines().find(|line| line.contains("\"source\"")).unwrap();
    let id = source.split("\"file_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let id = format!("\"file_id\":\"{id}\"");
    let cases: Vec<(&str, String)> = vec![
        ("source", archive.replacen(&id, "\"file_id\":\"../../etc/passwd\"", 1)),
        ("source", archive.replacen(&id, "\"file_id\":\"..\"", 1)),
        ("source", archive.replacen(&page, &deep, 1)),
        ("source", archive.replacen("\"version\":1", "\"version\":4294967295", 1)),
        ("source", archive.replacen("\"original_bytes\":", "\"original_bytes\":9999999999", 1)),
        ("chunk", archive.replacen("\"chunks\":", "\"chunks\":1", 1)),
        ("chunk", archive.replacen(vector, "AACAPwAAAEA=", 1)),
        ("chunk", archive.replacen(vector, &"AADAfw".repeat(vector.len() / 6), 1)),
        ("chunk", archive.replacen("\"chars\":", "\"chars\":9", 1)),
        ("archive", archive.replacen("\"format\":1", "\"format\":2", 1)),
        ("archive", archive.replacen("\"dimension\":", "\"dimension\":9", 1)),
        ("end", archive.replacen("says report", "says repart", 1)),
        ("end", format!("{archive}{{}}\n")),
        ("source", archive.replacen(source, &format!("{source}\n{source}"), 1)),
        ("line", archive.replacen(source, &"x".repeat(5 << 20), 1)),
    ];
    for (number, (member, text)) in cases.into_iter().enumerate() {
        assert_ne!(text, archive, "case {number} changes something");
        let bytes = match member {
            "end" => text.into_bytes(),
            _ => sealed(text.as_bytes()),
        };
        let reply = import(&server, "hostile", &bytes);
        let body = reply.json();
        let message = body["message"].as_str().unwrap_or_default();
        assert_eq!(
            (reply.status, &body["reason"]),
            (400, &json!("invalid_archive")),
            "case {number}: {body}"
        );
        assert!(message.starts_with("line "), "case {number}: {message}");
        assert!(message.contains("nothing was imported"), "case {number}: {message}");
    }
    assert_eq!(server.get("/tenant/list").ok(), tenants);
}

#[test]
fn a_key_exports_what_it_reaches() {
    let server = filled();
    let scope = json!([{"tenant_id": "acme", "sub_tenant_ids": ["north"]}]);
    let key = server.make_key("admin", scope);
    let path = "/tenant/export?tenant_id=acme";
    let part = server.call_as(&key, "GET", path, &Value::Null);
    let text = String::from_utf8(part.bytes).unwrap();
    assert!(text.contains("\"sub_tenant_id\":\"north\"") && !text.contains("\"default\""));
    let end: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(end["sources"], 5);
    let hidden =
        server.call_as(&key, "GET", &format!("{path}&sub_tenant_id=default"), &Value::Null);
    hidden.error(404, "sub_tenant_not_found");
    server
        .call_as(&key, "POST", "/tenant/import?tenant_id=x", &Value::Null)
        .error(403, "insufficient_scope");
}
