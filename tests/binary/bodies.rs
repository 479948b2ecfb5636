//! Memory that hostile bodies cost the whole process.

use std::fs;

use serde_json::{Value, json};

use crate::process::Server;
use crate::{Installation, ask, settled, upload};

/// Bytes of the bodies to operations that take large ones.
const LARGE: usize = 16 << 20;
/// Bytes of the bodies to searches.
const SMALL: usize = 1 << 20;
/// Growth that a body may cause, in sizes of the largest one. As JSON values its zeros would take
/// thirty-six.
const GROWTH_MAX: u64 = 8;

/// The most memory that the process has had so far, in bytes.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib = line.trim().strip_suffix(" kB").expect("a number of KiB");
    kib.parse::<u64>().expect("a number") << 10
}

/// `head`, then zeros up to `bytes` in all, then `tail`.
fn zeros(bytes: usize, head: &str, tail: &str) -> String {
    let count = (bytes - head.len() - tail.len()) / 2;
    format!("{head}{}0{tail}", "0,".repeat(count - 1))
}

#[test]
fn a_body_costs_memory_by_its_size_whatever_it_holds() {
    let Some(installation) = Installation::new("a_body_costs_memory_by_its_size") else { return };
    let (server, client) = installation.start();
    upload(&client, "doc", "Something to find.");
    assert_eq!(settled(&client, "doc"), "success");
    let search = json!({"tenant_id": "acme", "query": "something"});
    ask(&client, "POST", "/search/retrieve", search.clone());
    ask(&client, "POST", "/search/qna", json!({"tenant_id": "acme", "question": "something"}));
    let before = peak(&server);

    let unknown = r#"{"tenant_id": "acme", "query": "something", "other": ["#;
    let filter = r#"{"tenant_id": "acme", "query": "x", "document_metadata": {"a": {"$in": ["#;
    let list = r#"{"tenant_id": "acme", "query": "something", "context_list": ["#;
    let text = r#"{"content": "x", "file_id": "y", "document_metadata": {"a": ["#;
    let cases = [
        ("/search/retrieve", SMALL, unknown, "]}", 200),
        ("/search/full-text-search", SMALL, unknown, "]}", 200),
        ("/search/retrieve", SMALL, filter, "]}}}", 400),
        ("/search/retrieve", SMALL, list, "]}", 400),
        ("/embeddings/search", 8 << 20, r#"{"tenant_id": "acme", "other": ["#, "]}", 400),
        ("/upload/upload_text?tenant_id=acme", LARGE, text, "]}}", 413),
        ("/upload/upload_text?tenant_id=acme", LARGE, r#"{"content": "x", "o": ["#, "]}", 200),
        ("/upload/batch_upload_text?tenant_id=acme", LARGE, r#"{"items": ["#, "]}", 400),
        (
            "/upload/batch_upload_text?tenant_id=acme",
            LARGE,
            r#"{"items": [{"content": "x", "o": ["#,
            "]}]}",
            200,
        ),
        ("/upload/upload_embeddings?tenant_id=acme", LARGE, r#"{"other": ["#, "]}", 400),
    ];
    for (path, bytes, head, tail, status) in cases {
        let body = zeros(bytes, head, tail);
        let reply = client.send("POST", path, "application/json", body.as_bytes());
        let reply = reply.expect("an answer");
        let said = String::from_utf8_lossy(&reply.body);
        assert_eq!(reply.status, status, "{path} {head}: {said:.300}");
        let grown = peak(&server) - before;
        let max = GROWTH_MAX * LARGE as u64;
        assert!(grown < max, "{path} {head}: {} MiB more", grown >> 20);
    }
    let form = format!("metadata={}", zeros(SMALL - 16, "[", "]"));
    let path = "/upload/scrape_webpage?tenant_id=acme&web_url=http://127.0.0.1:9/";
    let media = "application/x-www-form-urlencoded";
    let reply = client.send("POST", path, media, form.as_bytes()).expect("an answer");
    assert!([200, 400, 413].contains(&reply.status), "{}", reply.status);
    assert!(peak(&server) - before < GROWTH_MAX * LARGE as u64);
    println!("{} MiB more after all", (peak(&server) - before) >> 20);
    assert_eq!(ask(&client, "GET", "/healthz", Value::Null)["status"], "ok");
}
