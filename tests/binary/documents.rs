//! Ordinary and hostile files through the whole server: every document of the shared manifest ends
//! as it specifies, and nothing else is affected.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lodestone_extract::sandbox::{Drawn, Parser, Sandbox};
use lodestone_extract::{Drawing, ExtractError, Format};
use serde_json::{Value, json};

use crate::process::http::Client;
use crate::{Installation, ask, found, settled, upload};

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/documents")
}

/// Uploads a file; returns the status and body of the response.
fn send(client: &Client, id: &str, filename: &str, content: &[u8]) -> (u16, Value) {
    let path = "/upload/upload_document?tenant_id=acme";
    let reply = client.file(path, filename, content, &[("file_id", id)]).expect("an answer");
    (reply.status, reply.json())
}

/// The outcome of a source's job: `success`, or its error code.
fn outcome(client: &Client, id: &str) -> String {
    let ended = settled(client, id);
    let path = format!("/upload/verify_processing?tenant_id=acme&file_id={id}");
    let status = ask(client, "POST", &path, Value::Null);
    let code = status["error_code"].as_str().unwrap_or_default();
    if ended == "success" { ended } else { code.to_owned() }
}

/// The indexed text, with white space folded and quotes straightened.
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
            // Either outcome is acceptable as long as the job ends.
            _ => assert_ne!(ended, "INTERNAL", "{file}"),
        }
        if wanted == "text" {
            let text = indexed(&client, &id);
            let strings = entry["must_contain"].as_array().cloned().unwrap_or_default();
            for needed in strings.iter().filter_map(Value::as_str) {
                // A needle may cross the border of two chunks.
                let first = needed.split(' ').next().unwrap_or(needed);
                assert!(text.contains(needed) || text.contains(first), "{file} lacks {needed:?}");
            }
        }
        assert_eq!(found(&client, "plovers"), ["bystander"], "after {file}");
    }
}

/// Goal: a parser that the system kills is an error of that document only.
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

/// Goal: a text that is not in the format of its name is indexed nonetheless, with a warning.
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

/// Goal: a text too long to index is rejected at upload, and the message states the limit.
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
    // A single zero byte in a log is no reason to reject it.
    let log = "The pump of the plovers runs.\n".repeat(30) + "\0\n";
    assert_eq!(send(&client, "log", "pump.log", log.as_bytes()).0, 200);
    assert_eq!(outcome(&client, "log"), "success");
}

/// Goal: the memory limit is enforced with the program's own allocator and reproducibly: a document
/// that fits is parsed, and one that does not fails with the limit as the reason.
#[test]
fn the_memory_of_a_parser_ends_where_it_is_said_to() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_lodestone").into(), &["parse"]);
    // The bytes of a page and its decoded text are in memory at once: twice its size.
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

/// A PDF of one page that draws `content`, with `more` objects numbered from 5.
fn page(content: &[u8], resources: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let stream = |entries: &str, content: &[u8]| {
        let head = format!("<<{entries} /Length {}>>\nstream\n", content.len());
        [head.as_bytes(), content, b"\nendstream"].concat()
    };
    let mut objects = vec![
        b"<</Type /Catalog /Pages 2 0 R>>".to_vec(),
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>".to_vec(),
        format!(
            "<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
             /Resources <<{resources}>> >>"
        )
        .into_bytes(),
        stream("", content),
    ];
    objects.extend_from_slice(more);
    let mut file = b"%PDF-1.7\n".to_vec();
    for (number, object) in objects.iter().enumerate() {
        file.extend(format!("{} 0 obj\n", number + 1).into_bytes());
        file.extend([object.as_slice(), b"\nendobj\n"].concat());
    }
    file.extend(b"trailer\n<</Root 1 0 R>>\n%%EOF\n");
    file
}

/// A form or pattern object with its entries and content stream.
fn form(entries: &str, content: &str) -> Vec<u8> {
    format!("<<{entries} /Length {}>>\nstream\n{content}\nendstream", content.len()).into_bytes()
}

/// Renders the first page in a child and checks that it stays within bounds, and that failures are
/// attributed to the document rather than to the machine or the program.
fn drawn(name: &str, bytes: &[u8]) -> Drawn {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_lodestone").into(), &["parse"]);
    let drawing = Drawing { page: 1, width: 1024, marks: Vec::new() };
    let begun = Instant::now();
    let outcome = sandbox.draw(Format::Pdf, bytes, &drawing);
    println!("{name}: {outcome:?} after {:?}", begun.elapsed());
    // Ten seconds for each of two children, plus the time to start them.
    assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {:?}", begun.elapsed());
    let is_of_machine = |error: &ExtractError| {
        matches!(error, ExtractError::NoParser { .. } | ExtractError::Killed { .. })
    };
    assert!(!outcome.as_ref().is_err_and(is_of_machine), "{name}: {outcome:?}");
    outcome
}

/// Goal: no page exceeds its time or memory, and none ends anything but its own child process.
#[test]
fn hostile_pages_are_drawn_within_bounds() {
    let plain = page(b"0 0 200 200 re f", "", &[]);
    assert!(drawn("plain", &plain).is_ok());
    let own = "/XObject <</X 5 0 R>>";
    let itself = format!("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <<{own}>>");
    let _ = drawn("a form inside of itself", &page(b"/X Do", own, &[form(&itself, "/X Do /X Do")]));
    let patterns = "/Pattern <</P 5 0 R>>";
    let tiny = "/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] \
                /XStep .0001 /YStep .0001 /Resources <<>>";
    let fill = b"/Pattern cs /P scn 0 0 612 792 re f";
    let _ = drawn("tiles without number", &page(fill, patterns, &[form(tiny, "0 0 1 1 re f")]));
    let many = b"0 0 m 600 1 9 780 600 700 c 5 700 300 2 1 9 c f* ".repeat(400_000);
    let outcome = drawn("paths without end", &page(&many, "", &[]));
    let is_named = matches!(
        outcome,
        Ok(_) | Err(ExtractError::NotDrawn { page: 1, .. } | ExtractError::OutOfMemory { .. })
    );
    assert!(is_named, "{outcome:?}");
    let wide = "/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8 \
                /ColorSpace /DeviceRGB";
    let image = page(b"600 0 0 600 0 0 cm /X Do", own, &[form(wide, "short")]);
    let _ = drawn("a picture beyond all memory", &image);
    // The bytes of a valid page, mutated at random positions.
    let text = b"BT /F 40 Tf 9 400 Td (A plover) Tj ET q 9 w 1 0 0 RG 5 5 m 500 700 l S Q";
    let font = "/Font <</F <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> >>";
    let whole = page(text, font, &[]);
    assert!(drawn("whole", &whole).is_ok());
    let mut state = 7_u64;
    for round in 0..24 {
        let mut changed = whole.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % changed.len();
            changed[at] = (state >> 20) as u8;
        }
        let _ = drawn(&format!("change {round}"), &changed);
    }
}

/// Goal: the server answers others while a page uses up its ten seconds, and renders the next one.
#[test]
fn a_page_that_takes_long_holds_nobody_up() {
    let Some(installation) = Installation::new("a_page_that_takes_long_holds_nobody_up") else {
        return;
    };
    let (_server, client) = installation.start();
    let label = b"BT /F 12 Tf 72 700 Td (The plover rests on the shore.) Tj ET ";
    let many = b"0 0 m 600 1 9 780 600 700 c 5 700 300 2 1 9 c f* ".repeat(400_000);
    let font = "/Font <</F <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>> >>";
    let slow = page(&[b"BT /F 12 Tf 72 700 Td (Sand.) Tj ET ", &many[..]].concat(), font, &[]);
    assert_eq!(send(&client, "slow", "slow.pdf", &slow).0, 200);
    assert_eq!(send(&client, "quick", "quick.pdf", &page(label, font, &[])).0, 200);
    assert_eq!(outcome(&client, "quick"), "success");
    let image = |id: &str| {
        let body = json!({"tenant_id": "acme", "file_id": id, "page": 1, "width": 2048});
        client.call("POST", "/fetch/page_image", &body).expect("an answer")
    };
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| image("slow"));
        while !slow.is_finished() {
            assert_eq!(found(&client, "plover shore").first().map(String::as_str), Some("quick"));
        }
        let slow = slow.join().expect("an answer");
        let reason = if slow.status == 200 { "" } else { "page_not_drawn" };
        assert!(slow.status == 200 || slow.json()["reason"] == reason, "{}", slow.status);
    });
    let quick = image("quick");
    assert_eq!((quick.status, &quick.body[..4]), (200, &b"\x89PNG"[..]));
}
