//! Memory that hostile request bodies cost the whole process, and the errors that clients see when
//! a large body is rejected.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::Server;
use crate::process::patience::STILL;
use crate::{Installation, KEY, ask, settled, upload};

/// Size in bytes of bodies for operations that accept large ones.
const LARGE: usize = 16 << 20;
/// Size in bytes of bodies for searches.
const SMALL: usize = 1 << 20;
/// Size in bytes of forms without any structure, and the memory growth that they may cause.
const FORM: usize = 128 << 20;
const FORM_GROWTH_MAX: u64 = 32 << 20;
/// Memory growth that a body may cause, as a multiple of the largest body's size. Parsed into JSON
/// values, its zeros would take thirty-six times as much.
const GROWTH_MAX: u64 = 8;

/// Size in bytes of a body that is rejected because of its length alone.
const REFUSED: usize = 128 << 20;
/// Sends a form of the given size to its end, then reads the response.
const PYTHON: &str = r#"
import http.client, json, sys
address, key, size = sys.argv[1:]
server = http.client.HTTPConnection(address)
headers = {"authorization": "Bearer " + key, "content-type": "multipart/form-data; boundary=B"}
server.request("POST", "/upload/upload_document", b"x" * int(size), headers)
answer = server.getresponse()
print(answer.status, json.load(answer)["reason"])
"#;
const NODE: &str = r#"
const [address, key, size] = process.argv.slice(1);
const type = "multipart/form-data; boundary=B";
const headers = { authorization: `Bearer ${key}`, "content-type": type };
const body = Buffer.alloc(Number(size), "x");
fetch(`http://${address}/upload/upload_document`, { method: "POST", headers, body })
  .then(async (answer) => console.log(answer.status, (await answer.json()).reason));
"#;

/// The peak memory of the process so far, in bytes. The kernel counts approximately, so a later
/// figure can be smaller.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib = line.trim().strip_suffix(" kB").expect("a number of KiB");
    kib.parse::<u64>().expect("a number") << 10
}

/// Returns `head`, zeros up to `bytes` in total, and `tail`.
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
        ("/search/retrieve", LARGE, unknown, "]}", 200),
        ("/search/retrieve", LARGE, filter, "]}}}", 400),
        ("/search/retrieve", LARGE, list, "]}", 400),
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
        let grown = peak(&server).saturating_sub(before);
        let max = GROWTH_MAX * LARGE as u64;
        assert!(grown < max, "{path} {head}: {} MiB more", grown >> 20);
    }
    let form = format!("metadata={}", zeros(SMALL - 16, "[", "]"));
    let path = "/upload/scrape_webpage?tenant_id=acme&web_url=http://127.0.0.1:9/";
    let media = "application/x-www-form-urlencoded";
    let reply = client.send("POST", path, media, form.as_bytes()).expect("an answer");
    assert!([200, 400, 413].contains(&reply.status), "{}", reply.status);
    let grown = peak(&server).saturating_sub(before);
    assert!(grown < GROWTH_MAX * LARGE as u64);
    println!("{} MiB more after all", grown >> 20);
    assert_eq!(ask(&client, "GET", "/healthz", Value::Null)["status"], "ok");
}

/// Goal: a form in which the parser finds neither a boundary nor the end of a part's headers is
/// rejected while it is being sent, and is never held in memory. Method: the client reads while it
/// writes, because the response comes before the end of the form.
#[test]
fn a_form_without_structure_is_refused_early() {
    let Some(installation) = Installation::new("a_form_without_structure") else { return };
    let (server, client) = installation.start();
    client.file("/upload/batch_upload?tenant_id=acme", "a.txt", b"x", &[]).expect("an answer");
    let before = peak(&server);
    let path = "/upload/batch_upload?tenant_id=acme";
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
         content-type: multipart/form-data; boundary=B\r\ncontent-length: {FORM}\r\n\r\n"
    );
    for begins in ["", "--B\r\ncontent-disposition: form-data; name=\"files\"\r\nx-long: "] {
        let mut stream = TcpStream::connect(client.address).expect("a connection");
        stream.set_read_timeout(Some(STILL)).expect("a time above zero");
        stream.write_all(format!("{head}{begins}").as_bytes()).expect("the server reads");
        let mut writing = stream.try_clone().expect("a second handle");
        let said = std::thread::scope(|scope| {
            scope.spawn(move || {
                let piece = vec![b'x'; 64 << 10];
                // Until the server closes the connection.
                for _ in 0..(FORM - begins.len()) / piece.len() {
                    if writing.write_all(&piece).is_err() {
                        break;
                    }
                }
            });
            let mut said = [0; 2048];
            let mut read = 0;
            while !said[..read].ends_with(b"}") {
                match stream.read(&mut said[read..]) {
                    Ok(0) | Err(_) => break,
                    Ok(bytes) => read += bytes,
                }
            }
            String::from_utf8_lossy(&said[..read]).into_owned()
        });
        let is_refused = said.starts_with("HTTP/1.1 400") && said.contains("malformed_body");
        assert!(is_refused && said.contains("131072 bytes"), "{said}");
        let grown = peak(&server).saturating_sub(before);
        assert!(grown < FORM_GROWTH_MAX, "{} MiB more", grown >> 20);
    }
}

/// Goal: clients that send the whole body before they read see the reason for the rejection rather
/// than a connection reset. Method: the HTTP clients of Python and Node, where installed.
#[test]
fn a_client_that_sends_first_sees_the_refusal() {
    let Some(installation) = Installation::new("a_client_that_sends_first") else { return };
    let (_server, client) = installation.start();
    let (address, size) = (client.address.to_string(), REFUSED.to_string());
    for (program, run, script) in [("python3", "-c", PYTHON), ("node", "-e", NODE)] {
        let wrong = "a-key-that-nobody-made-0123456789abcdef";
        for (key, expected) in [(wrong, "401 invalid_api_key"), (KEY, "413 body_too_large")] {
            let arguments = [run, script, address.as_str(), key, size.as_str()];
            let Ok(output) = Command::new(program).args(arguments).output() else {
                println!("SKIPPED a client of {program}: it is not there");
                break;
            };
            let said = String::from_utf8_lossy(&output.stdout);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(said.trim(), expected, "{program}: {error}");
        }
    }
}
