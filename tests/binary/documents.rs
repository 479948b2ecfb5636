//! Files as people have them, and as attackers make them, through the whole server: every document
//! that the shared manifest describes ends as it says, and nothing else notices.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lodestone_extract::sandbox::{Parser, Sandbox};
use lodestone_extract::{ExtractError, Format};
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

/// A text that is not in the format of its name is indexed all the same, and whoever asks is told.
#[test]
fn a_document_that_was_read_in_part_says_so() {
    let Some(installation) = Installation::new("a_document_that_was_read_in_part_says_so") else {
        return;
    };
    let (_server, client) = installation.start();
    let settings = b"// The port of the plover service.\n{\"port\": 8080,}\n";
    let (status, answer) = send(&client, "settings", "settings.json", settings);
    assert_eq!(status, 200, "{answer}");
    upload(&client, "whole", "Nothing is missing here.");
    for id in ["settings", "whole"] {
        assert_eq!(outcome(&client, id), "success");
    }
    assert_eq!(found(&client, "plover port"), ["settings"]);
    let verify = |id: &str| {
        let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
        ask(&client, "POST", &path, Value::Null)
    };
    let body = json!({"tenant_id": "acme", "source_ids": ["settings", "whole"]});
    let named = ask(&client, "POST", "/list/sources_by_id", body);
    let listed = ask(&client, "GET", "/list/sources?tenant_id=acme", Value::Null);
    let of = |listing: &Value, id: &str| {
        let sources = listing["sources"].as_array().expect("sources").clone();
        sources.into_iter().find(|source| source["id"] == id).expect("listed")
    };
    let views = |id: &str| [verify(id), of(&named, id), of(&listed, id)];
    for view in views("settings") {
        let warnings = view["warnings"].as_array().expect("warnings");
        assert_eq!(warnings.len(), 1, "{view}");
        assert_eq!(warnings[0]["code"], "read_as_text");
        let message = warnings[0]["message"].as_str().expect("a message");
        assert!(message.contains("JSON") && message.contains("line 1"), "{message}");
        assert!(warnings[0].get("pages").is_none(), "{view}");
    }
    for view in views("whole") {
        assert!(view.get("warnings").is_none(), "{view}");
    }
}

/// A text that cannot be indexed is refused while its sender still listens, with the limit.
#[test]
fn a_text_beyond_the_limit_is_refused_at_the_door() {
    let Some(installation) = Installation::new("a_text_beyond_the_limit_is_refused_at_the_door")
    else {
        return;
    };
    let (_server, client) = installation.start();
    let long = "the log goes on\n".repeat((33 << 20) / 16);
    let (status, answer) = send(&client, "long", "long.log", long.as_bytes());
    assert_eq!(status, 413, "{answer}");
    let message = answer["message"].as_str().expect("a message");
    assert!(message.contains(&(32 << 20).to_string()), "{message}");
    // One zero in a log is no reason to refuse it.
    let log = "The pump of the plovers runs.\n".repeat(30) + "\0\n";
    assert_eq!(send(&client, "log", "pump.log", log.as_bytes()).0, 200);
    assert_eq!(outcome(&client, "log"), "success");
}

/// The limit of memory holds with the program's own allocator, the same way each time: what fits is
/// read, and what does not ends with the limit as its reason.
#[test]
fn the_memory_of_a_parser_ends_where_it_is_said_to() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_lodestone").into(), &["parse"]);
    // The bytes of a page and its decoded text are held at once: twice its size.
    let page = |mebibytes: usize| {
        let mut page = b"<p>The last words.</p><!--".to_vec();
        page.resize((mebibytes << 20) - 3, b' ');
        page.extend_from_slice(b"-->");
        page
    };
    let (fits, exceeds) = (page(240), page(256));
    for _ in 0..2 {
        let read = sandbox.parse(Format::Html, &fits).map(|(_, extracted)| extracted.text);
        assert_eq!(read.as_deref(), Ok("The last words."));
        let error = sandbox.parse(Format::Html, &exceeds).expect_err("more than there is");
        assert_eq!(error, ExtractError::OutOfMemory { format: "html" });
        assert!(error.to_string().contains("512 MiB"), "{error}");
    }
}
