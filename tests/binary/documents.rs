//! Files as people have them, and as attackers make them, through the whole server: every document
//! that the shared manifest describes ends as it says, and nothing else notices.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::{Installation, ask, found, settled, upload};

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/documents")
}

/// Status and body of the upload of a file.
fn send(client: &Client, id: &str, filename: &str, content: &[u8]) -> (u16, Value) {
    let path = "/upload/upload_document?tenant_id=acme";
    let reply = client.file(path, filename, content, &[("file_id", id)]).expect("an answer");
    (reply.status, reply.json())
}

/// Outcome of a source's job: `success`, or the code of its error.
fn outcome(client: &Client, id: &str) -> String {
    let ended = settled(client, id);
    let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
    let status = ask(client, "POST", &path, Value::Null);
    let code = status["error_code"].as_str().unwrap_or_default();
    if ended == "success" { ended } else { code.to_owned() }
}

/// The text that was indexed, white space folded and quotes straight.
fn indexed(client: &Client, id: &str) -> String {
    let body = json!({"tenant_id": "acme", "query": "the", "max_chunks": 1001,
        "metadata": {"source_id": id}});
    let chunks = ask(client, "POST", "/search/retrieve", body);
    let chunks = chunks["chunks"].as_array().or_else(|| chunks.as_array()).expect("chunks");
    let text = |chunk: &Value| chunk["chunk_content"].as_str().expect("text").to_owned();
    let text: Vec<String> = chunks.iter().map(text).collect();
    let folded = text.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    folded.replace(['\u{2018}', '\u{2019}'], "'").replace(['\u{201c}', '\u{201d}'], "\"")
}

#[test]
fn every_document_ends_as_the_manifest_says() {
    const NAME: &str = "every_document_ends_as_the_manifest_says";
    let Some(installation) = Installation::new(NAME) else { return };
    let Ok(manifest) = std::fs::read(shared().join("manifest.json")) else {
        println!("SKIPPED {NAME}: no {}", shared().display());
        return;
    };
    let manifest: Vec<Value> = serde_json::from_slice(&manifest).expect("JSON");
    let (_server, client) = installation.start();
    upload(&client, "bystander", "The lighthouse keeper wrote about plovers.");
    assert_eq!(settled(&client, "bystander"), "success");
    for (number, entry) in manifest.iter().enumerate() {
        let file = entry["file"].as_str().expect("a name");
        let content = std::fs::read(shared().join(file)).expect("a readable file");
        let (id, begun) = (format!("doc-{number}"), Instant::now());
        let (status, answer) = send(&client, &id, file.trim_start_matches("files/"), &content);
        let wanted = entry["outcome"].as_str().expect("an outcome");
        let ended = match status {
            200 => outcome(&client, &id),
            400 => answer["reason"].as_str().unwrap_or("no reason").to_owned(),
            other => panic!("{file}: {other} {answer}"),
        };
        println!("{file}: {ended} after {:?}", begun.elapsed());
        match wanted {
            "text" => assert_eq!(ended, "success", "{file}: {answer}"),
            "clean-error" => assert_ne!(ended, "success", "{file}"),
            // Either is right, so long as it ends.
            _ => assert_ne!(ended, "INTERNAL", "{file}"),
        }
        if wanted == "text" {
            let text = indexed(&client, &id);
            let strings = entry["must_contain"].as_array().cloned().unwrap_or_default();
            for needed in strings.iter().filter_map(Value::as_str) {
                // A needle may stand across the border of two chunks.
                let first = needed.split(' ').next().unwrap_or(needed);
                assert!(text.contains(needed) || text.contains(first), "{file} lacks {needed:?}");
            }
        }
        assert_eq!(found(&client, "plovers"), ["bystander"], "after {file}");
    }
}

/// A parser that is killed by the system is an error of one document.
#[test]
fn markup_that_nests_without_end_is_read_or_refused() {
    let Some(installation) = Installation::new("markup_that_nests_without_end_is_read_or_refused")
    else {
        return;
    };
    let (_server, client) = installation.start();
    let deep = format!("{}needle{}", "<div>".repeat(200_000), "</div>".repeat(200_000));
    let (status, answer) = send(&client, "deep", "deep.html", deep.as_bytes());
    assert_eq!(status, 200, "{answer}");
    let ended = outcome(&client, "deep");
    assert_ne!(ended, "INTERNAL");
    upload(&client, "after", "Work goes on.");
    assert_eq!(settled(&client, "after"), "success");
}
