//! Memory under hostile load: clients that do not read, do not finish sending, or send a lot.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use crate::memory_group::{MemoryGroup, own_bytes_of_tree};
use crate::process::http::Client;
use crate::process::patience::{Patience, STILL};
use crate::{Installation, KEY, ask, settled, upload};

const MIB: usize = 1 << 20;
/// Memory of the machine on which the server runs.
const MACHINE_BYTES: u64 = 1 << 30;
/// Size of an original in bytes, and the number of clients that request it in each of two ways
/// without reading. Held in memory, the contents would take several times the memory of the
/// machine.
const ORIGINAL_BYTES: usize = 24 * MIB;
const SILENT_READERS: usize = 24;
/// Clients that announce a form of 500 MiB and send only a part of it.
const DRIPPING: usize = 10;
/// Concurrent requests with bodies of 15 MiB.
const LARGE_BODIES: usize = 16;
/// Sources whose metadata take some 10 MB each once they are read.
const LARGE_METADATA: usize = 300;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

fn connect(client: &Client) -> TcpStream {
    let stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    stream
}

fn head(method: &str, path: &str, kind: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
         content-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// Sends a request and reads only the beginning of the response.
fn begun(client: &Client, request: &str) -> TcpStream {
    let mut stream = connect(client);
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer begins");
    assert_eq!(&status, b"HTTP/1.1 200", "{request}");
    stream
}

/// Uploads a document that cannot be processed; its original is kept and can be fetched.
fn store_original(client: &Client) {
    let mut broken = b"%PDF-1.7\n".to_vec();
    broken.resize(ORIGINAL_BYTES, 0xe9);
    let path = "/upload/upload_document?tenant_id=acme";
    let reply = client.file(path, "broken.pdf", &broken, &[("file_id", "broken")]);
    assert_eq!(reply.expect("an answer").status, 200);
    assert_eq!(settled(client, "broken"), "errored");
}

fn innocent_is_served(client: &Client, turn: usize) {
    let query = json!({"tenant_id": "other", "query": "apples"});
    let found = ask(client, "POST", "/search/retrieve", query);
    assert_eq!(found["chunks"][0]["source_id"], "kept", "turn {turn}");
    let id = format!("during-{turn}");
    let body = json!({"content": "pears fall", "file_id": id});
    ask(client, "POST", "/upload/upload_text?tenant_id=other", body);
    // More than a connection may hold without reserving memory.
    let mut broken = b"%PDF-1.7\n".to_vec();
    broken.resize(200 << 10, 0xe9);
    let path = "/upload/upload_document?tenant_id=other";
    let reply = client.file(path, "broken.pdf", &broken, &[("file_id", "large")]);
    assert_eq!(reply.expect("an answer").status, 200, "turn {turn}");
}

fn settled_of_other(client: &Client, id: &str) {
    let path = format!("/upload/verify_processing?tenant_id=other&file_id={id}");
    let mut patience = Patience::new();
    loop {
        let status = ask(client, "POST", &path, Value::Null);
        if status["status"] == "success" {
            return;
        }
        assert!(!patience.is_over(status.clone()), "{id} is stuck: {status}");
    }
}

/// The peak of a server's private memory and that of its children while `work` runs.
fn peak_during(process: u32, work: impl FnOnce()) -> u64 {
    let peak = AtomicU64::new(0);
    let (end, has_ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let peak = &peak;
        scope.spawn(move || {
            while has_ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                peak.fetch_max(own_bytes_of_tree(process), Ordering::Relaxed);
            }
        });
        let _end = end;
        work();
    });
    peak.into_inner()
}

/// Goal: whatever clients request, do not read and do not finish sending, a server on a machine of
/// 1 GiB stays within that memory and serves others. Method: all of it at once against the real
/// server, in a control group if one can be created, while its private memory is measured.
#[test]
fn a_small_machine_survives_hostile_clients() {
    let Some(installation) = Installation::new("a_small_machine_survives") else { return };
    let group = MemoryGroup::new(MACHINE_BYTES);
    if group.is_none() {
        println!("SKIPPED the control group of a_small_machine_survives: it cannot be made here");
    }
    let limit = (MACHINE_BYTES / 4 * 3).to_string();
    let variables = [("LODESTONE_MEMORY_LIMIT", limit.as_str())];
    let (mut server, client) = installation.start_in(group.as_ref(), &variables);
    let client = &client;
    store_original(client);
    let kept = json!({"content": "apples fall", "file_id": "kept"});
    ask(client, "POST", "/upload/upload_text?tenant_id=other", kept);
    settled_of_other(client, "kept");

    let open: Mutex<Vec<TcpStream>> = Mutex::default();
    let peak = peak_during(server.id(), || {
        let hostile = std::thread::scope(|clients| {
            let mut threads = Vec::new();
            let body = json!({"tenant_id": "acme", "file_id": "broken"}).to_string();
            let fetch =
                head("POST", "/fetch/fetch_content", "application/json", body.len()) + &body;
            let asked = json!({"tenant_id": "acme", "file_id": "broken", "return_content": false});
            let url = ask(client, "POST", "/fetch/fetch_content", asked)["download_url"].clone();
            let path = url.as_str().expect("a URL").splitn(4, '/').nth(3).expect("a path");
            let download = format!("GET /{path} HTTP/1.1\r\nhost: lodestone\r\n\r\n");
            for request in [fetch, download] {
                for _ in 0..SILENT_READERS {
                    let (request, open) = (request.clone(), &open);
                    threads.push(clients.spawn(move || {
                        let stream = begun(client, &request);
                        open.lock().expect("no client fails").push(stream);
                    }));
                }
            }
            for _ in 0..DRIPPING {
                let mut stream = connect(client);
                let kind = "multipart/form-data; boundary=B";
                let path = "/upload/batch_upload?tenant_id=acme";
                let form = "--B\r\ncontent-disposition: form-data; name=\"files\"; \
                     filename=\"a.txt\"\r\n\r\n";
                let sent = head("POST", path, kind, 500 * MIB) + form + &"x".repeat(MIB);
                stream.write_all(sent.as_bytes()).expect("the server reads");
                open.lock().expect("no client fails").push(stream);
            }
            for _ in 0..LARGE_BODIES {
                threads.push(clients.spawn(|| {
                    let body = json!({"content": "x".repeat(15 * MIB)});
                    let path = "/upload/upload_text?tenant_id=acme";
                    let status = client.call("POST", path, &body).expect("an answer").status;
                    assert!([413, 503].contains(&status), "{status}");
                }));
            }
            for turn in 0..10 {
                innocent_is_served(client, turn);
            }
            threads.into_iter().try_for_each(|thread| thread.join())
        });
        innocent_is_served(client, 10);
        hostile.expect("every client is answered");
    });
    settled_of_other(client, "during-10");
    println!("private memory of the server and its children: {} MiB", peak >> 20);
    assert!(peak < MACHINE_BYTES, "{} MiB", peak >> 20);
    assert_eq!(open.into_inner().expect("no client fails").len(), 2 * SILENT_READERS + DRIPPING);
    assert!(!server.output().contains("\"level\":\"ERROR\""), "{}", server.output());
    upload(client, "after", "plums fall");
}

/// Goal: sources whose metadata take far more memory than their text are stored and merged within
/// the memory; results with many of them are refused rather than kill the server, smaller pages are
/// served, and so is everybody else.
#[test]
fn results_with_large_metadata_stay_within_the_memory() {
    let Some(installation) = Installation::new("results_with_large_metadata") else { return };
    let group = MemoryGroup::new(MACHINE_BYTES);
    if group.is_none() {
        println!(
            "SKIPPED the control group of results_with_large_metadata: it cannot be made here"
        );
    }
    let limit = (MACHINE_BYTES / 4 * 3).to_string();
    let variables = [("LODESTONE_MEMORY_LIMIT", limit.as_str())];
    let (mut server, client) = installation.start_in(group.as_ref(), &variables);
    let client = &client;
    let digits = vec![0; 32_000];
    let peak = peak_during(server.id(), || {
        for at in 0..LARGE_METADATA {
            let body = json!({
                "content": format!("lantern {at}"),
                "file_id": format!("lantern-{at}"),
                "tenant_metadata": {"digits": digits},
                "document_metadata": {"digits": digits},
            });
            ask(client, "POST", "/upload/upload_text?tenant_id=acme", body);
        }
        let kept = json!({"content": "apples fall", "file_id": "kept"});
        ask(client, "POST", "/upload/upload_text?tenant_id=other", kept);
        settled_of_other(client, "kept");
        for at in 0..LARGE_METADATA {
            assert_eq!(settled(client, &format!("lantern-{at}")), "success");
        }
    });
    println!("private memory of the server while it stores them: {} MiB", peak >> 20);
    assert!(peak < MACHINE_BYTES, "{} MiB", peak >> 20);
    let search = json!({
        "tenant_id": "acme", "query": "lantern", "max_chunks": LARGE_METADATA, "alpha": 0,
    });
    let ids: Vec<_> = (0..LARGE_METADATA).map(|at| format!("lantern-{at}")).collect();
    let by_id = json!({"tenant_id": "acme", "source_ids": ids});
    let refused = AtomicU64::new(0);
    let call = |method: &str, path: &str, body: &Value| {
        let reply = client.call(method, path, body).expect("an answer");
        match reply.status {
            200 => {}
            503 => {
                assert_eq!(reply.json()["reason"], "overloaded", "{}", reply.json());
                refused.fetch_add(1, Ordering::Relaxed);
            }
            status => panic!("{path}: {status}"),
        }
    };
    let peak = peak_during(server.id(), || {
        std::thread::scope(|clients| {
            for _ in 0..4 {
                clients.spawn(|| call("POST", "/search/retrieve", &search));
                clients.spawn(|| call("POST", "/search/full-text-search", &search));
                clients.spawn(|| call("GET", "/list/sources?tenant_id=acme", &Value::Null));
                clients.spawn(|| call("POST", "/list/sources_by_id", &by_id));
            }
            let query = json!({"tenant_id": "other", "query": "apples"});
            let found = ask(client, "POST", "/search/retrieve", query);
            assert_eq!(found["chunks"][0]["source_id"], "kept");
        });
    });
    println!("private memory of the server: {} MiB", peak >> 20);
    assert!(peak < MACHINE_BYTES, "{} MiB", peak >> 20);
    assert!(refused.into_inner() > 0, "the results fit: the test shows nothing");
    // The server frees the memory of a result a moment after its client has it.
    let mut patience = Patience::new();
    let page = loop {
        let path = "/list/sources?tenant_id=acme&limit=10";
        let reply = client.call("GET", path, &Value::Null).expect("an answer");
        if reply.status == 200 {
            break reply.json();
        }
        assert!(reply.status == 503 && !patience.is_over(reply.status), "{}", reply.json());
    };
    assert_eq!(page["sources"].as_array().map(Vec::len), Some(10));
    assert!(!server.output().contains("\"level\":\"ERROR\""), "{}", server.output());
}
