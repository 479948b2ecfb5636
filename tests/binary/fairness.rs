//! Tenants side by side, with the real model: the cost of one tenant's answers to another, and of
//! questions whose clients have disconnected.
//!
//! Answers are counted rather than timed, because on a busy machine all of them are slow.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Cursor, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::{Installation, KEY, ask};

/// More than can run at once in any configuration.
const ASKERS: usize = 80;
const NOTES: usize = 300;

/// Uploads notes of eight sentences, any of which may answer a question.
fn upload_notes(client: &Client, tenant: &str, notes: usize) {
    let sentence = |n: usize, s: usize| {
        let litres = n * 8 + s;
        format!("Pump {s} of hall {n} lifts {litres} litres of water an hour into its tank.")
    };
    let items: Vec<Value> = (0..notes)
        .map(|n| {
            let content: Vec<String> = (0..8).map(|s| sentence(n, s)).collect();
            json!({"file_id": format!("n{n}"), "content": content.join(" ")})
        })
        .collect();
    for items in items.chunks(100) {
        let path = format!("/upload/batch_upload_text?tenant_id={tenant}");
        ask(client, "POST", &path, json!({ "items": items }));
    }
    for n in 0..notes {
        let path = format!("/upload/verify_processing?tenant_id={tenant}&file_id=n{n}");
        let mut patience = Patience::new();
        loop {
            let status = ask(client, "POST", &path, Value::Null);
            if status["status"] == "success" {
                break;
            }
            assert!(!patience.is_over(status.clone()), "{status}");
        }
    }
}

/// Builds a question about a different note for each `n`, so that its passages are not cached.
fn question(tenant: &str, n: usize) -> Value {
    let question = format!("How many litres of water does a pump of hall {n} lift?");
    json!({"tenant_id": tenant, "question": question})
}

/// Goal: while many clients of one tenant ask for answers, neither a search nor an answer of
/// another tenant waits behind them: only a few of theirs are given meanwhile.
#[test]
fn answers_of_one_tenant_do_not_hold_up_another() {
    let Some(installation) = Installation::new("answers_of_one_tenant_do_not_hold_up_another")
    else {
        return;
    };
    let variables = [("LODESTONE_QUERY_TIMEOUT", "3600"), ("LODESTONE_EMBED_THREADS", "2")];
    let (server, client) = installation.start_with(&variables);
    upload_notes(&client, "loud", 2 * ASKERS);
    upload_notes(&client, "quiet", 10);
    let given = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..ASKERS {
            let (client, given) = (&client, &given);
            scope.spawn(move || {
                // Until the server is gone.
                let mut asked = (n..).step_by(ASKERS).map(|n| question("loud", n % (2 * ASKERS)));
                let mut ask = || client.call("POST", "/search/qna", &asked.next()?).ok();
                while let Some(reply) = ask() {
                    assert_eq!(reply.status, 200, "{}", reply.json());
                    given.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let wait_for = |answers: usize| {
            let mut patience = Patience::new();
            while given.load(Ordering::SeqCst) < answers {
                assert!(!patience.is_over(given.load(Ordering::SeqCst)), "no answers are given");
            }
        };
        wait_for(2);
        // Counts the other clients' answers during `count` requests.
        let meanwhile = |count: usize, path: &str| -> usize {
            let before = given.load(Ordering::SeqCst);
            for n in 0..count {
                let mut body = question("quiet", n);
                body["query"] = body["question"].clone();
                ask(&client, "POST", path, body);
            }
            given.load(Ordering::SeqCst) - before
        };
        let searches = meanwhile(20, "/search/retrieve");
        let answers = meanwhile(3, "/search/qna");
        println!("{searches} answers during 20 searches, {answers} during 3 answers");
        server.kill();
        assert!(searches <= 60, "{searches} answers of the others during 20 searches");
        assert!(answers <= 60, "{answers} answers of the others during 3 answers");
    });
}

/// Goal: while one tenant's requests fill its queue, another tenant's are answered, even if both
/// use the same key.
#[test]
fn a_flood_of_one_tenant_turns_no_other_away() {
    /// More than the 64 that run at once and the 256 that wait.
    const FLOOD: usize = 450;
    let name = "a_flood_of_one_tenant_turns_no_other_away";
    let Some(installation) = Installation::new(name) else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_QUERY_TIMEOUT", "3600")]);
    upload_notes(&client, "loud", 20);
    upload_notes(&client, "quiet", 10);
    let search = |tenant: &str, n: usize| {
        let mut body = question(tenant, n);
        body["query"] = body["question"].take();
        body
    };
    let turned_away = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..FLOOD {
            let (client, turned_away, search) = (&client, &turned_away, &search);
            scope.spawn(move || {
                // Until the server is gone.
                while let Ok(reply) = client.call("POST", "/search/retrieve", &search("loud", n)) {
                    match reply.status {
                        200 => {}
                        503 => drop(turned_away.fetch_add(1, Ordering::SeqCst)),
                        status => panic!("{status}: {}", reply.json()),
                    }
                }
            });
        }
        let mut patience = Patience::new();
        while turned_away.load(Ordering::SeqCst) == 0 {
            assert!(!patience.is_over(0), "the queue is never full");
        }
        let enough = turned_away.load(Ordering::SeqCst) + FLOOD;
        let mut searches = 0;
        while searches < 20 || turned_away.load(Ordering::SeqCst) < enough {
            ask(&client, "POST", "/search/retrieve", search("quiet", searches % 10));
            searches += 1;
            let refused = turned_away.load(Ordering::SeqCst);
            assert!(!patience.is_over(refused), "the queue is full no more");
        }
        println!("{searches} searches of the quiet one while {FLOOD} others were turned away");
        server.kill();
    });
}

/// A client with a key for one tenant.
fn client_of(client: &Client, tenant: &str) -> Client {
    let scope = json!({"name": tenant, "role": "read", "tenants": [{"tenant_id": tenant}]});
    let made = ask(client, "POST", "/admin/api_keys", scope);
    let key = made["api_key"].as_str().expect("a secret").to_owned();
    Client { key, ..client.clone() }
}

/// Goal: while one tenant has thousands of texts embedded and reranked, another tenant's searches,
/// embeddings and answers wait at most for a group of texts, not for whole requests.
#[test]
fn vectors_for_one_tenant_do_not_hold_up_another() {
    const LOUD: usize = 6;
    let name = "vectors_for_one_tenant_do_not_hold_up_another";
    let Some(installation) = Installation::new(name) else { return };
    let variables = [("LODESTONE_QUERY_TIMEOUT", "3600"), ("LODESTONE_EMBED_THREADS", "2")];
    let (server, client) = installation.start_with(&variables);
    for tenant in ["loud", "quiet"] {
        upload_notes(&client, tenant, 10);
    }
    let (loud, quiet) = (client_of(&client, "loud"), client_of(&client, "quiet"));
    let texts: Vec<String> = (0..256).map(|n| format!("Hall {n} has a pump. ").repeat(5)).collect();
    let given = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 0..LOUD {
            let (loud, given, texts) = (&loud, &given, &texts);
            scope.spawn(move || {
                let (path, body) = match n % 2 {
                    0 => ("/v1/embeddings", json!({ "input": texts })),
                    _ => ("/v1/rerank", json!({ "query": "a pump", "documents": texts })),
                };
                // Until the server is gone.
                while let Ok(reply) = loud.call("POST", path, &body) {
                    assert_eq!(reply.status, 200, "{}", reply.json());
                    given.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let mut patience = Patience::new();
        while given.load(Ordering::SeqCst) < 1 {
            assert!(!patience.is_over(()), "no vectors are made");
        }
        let before = given.load(Ordering::SeqCst);
        for n in 0..10 {
            let mut body = question("quiet", n);
            body["query"] = body["question"].clone();
            ask(&quiet, "POST", "/search/retrieve", body);
            let body = json!({"input": format!("a text of hall {n}")});
            ask(&quiet, "POST", "/v1/embeddings", body);
        }
        for n in 0..3 {
            ask(&quiet, "POST", "/search/qna", question("quiet", n));
        }
        ask(&quiet, "POST", "/v1/embeddings", json!({"input": texts[..16]}));
        let meanwhile = given.load(Ordering::SeqCst) - before;
        println!("{meanwhile} requests of 256 texts were answered during 24 of the other tenant");
        server.kill();
        // One request of the other tenant per request would be 24.
        assert!(meanwhile <= 3 * LOUD, "{meanwhile} requests of 256 texts");
    });
}

/// Goal: questions of clients that have disconnected cost at most a quarter of their answers.
#[test]
fn questions_of_clients_that_left_are_not_worked_on() {
    let Some(installation) = Installation::new("questions_of_clients_that_left") else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_QUERY_TIMEOUT", "3600")]);
    upload_notes(&client, "acme", NOTES);
    let asked = |n| ask(&client, "POST", "/search/qna", question("acme", n));
    asked(NOTES - 1);
    let before = processor_ticks(server.id());
    [120, 160, 200, 240].into_iter().for_each(|n| drop(asked(n)));
    let each = (processor_ticks(server.id()) - before) / 4;

    let begin = |n: usize| {
        let body = question("acme", n).to_string();
        let head = format!(
            "POST /search/qna HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(client.address).expect("a connection");
        stream.write_all(head.as_bytes()).expect("the server reads");
        stream
    };
    let before = processor_ticks(server.id());
    let streams: Vec<TcpStream> = (0..ASKERS).map(begin).collect();
    drop(streams);
    // Queued behind all of them, as it belongs to the same tenant.
    asked(1);
    let spent = processor_ticks(server.id()) - before;
    println!("{each} ticks an answer, {spent} for {ASKERS} questions that were left");
    assert!(spent < each * ASKERS as u64 / 4, "{spent} ticks at {each} an answer");
}

/// A document whose paragraphs are all empty except the last: slow to parse and quick to upload.
fn slow_document() -> Vec<u8> {
    let empty = "<w:p/>".repeat(1 << 20);
    let text = format!(
        "<w:document><w:body>{empty}<w:p><w:r><w:t>The end.</w:t></w:r></w:p></w:body></w:document>"
    );
    let mut package = ZipWriter::new(Cursor::new(Vec::new()));
    package.start_file("word/document.xml", SimpleFileOptions::default()).expect("a new part");
    package.write_all(text.as_bytes()).expect("memory takes it");
    package.finish().expect("a whole package").into_inner()
}

/// Goal: a text of another tenant becomes searchable while a hundred slow documents wait, not after
/// them. Documents are counted rather than timed.
#[test]
fn slow_documents_of_one_tenant_do_not_hold_up_another() {
    const DOCUMENTS: usize = 100;
    let name = "slow_documents_of_one_tenant_do_not_hold_up_another";
    let Some(installation) = Installation::new(name) else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_INGEST_THREADS", "2")]);
    upload_notes(&client, "quiet", 1);
    let document = slow_document();
    for n in 0..DOCUMENTS {
        let (path, filename) = ("/upload/upload_document?tenant_id=slow", format!("{n}.docx"));
        let id = format!("slow{n}");
        let reply = client.file(path, &filename, &document, &[("file_id", &id)]);
        assert_eq!(reply.expect("an answer").status, 200);
    }
    let ended = || {
        let counts = &ask(&client, "GET", "/jobs?tenant_id=slow&limit=1", Value::Null)["counts"];
        assert_eq!(counts["errored"], 0, "{counts}");
        counts["success"].as_u64().expect("a number")
    };
    let before = ended();
    upload_notes(&client, "quiet", 3);
    let meanwhile = ended() - before;
    println!("{meanwhile} of {DOCUMENTS} slow documents were read meanwhile, {before} before");
    server.kill();
    assert!(before < 50, "{before} were read while they were uploaded: they are not slow");
    assert!(meanwhile <= 30, "{meanwhile} slow documents were read before three notes");
}

/// CPU time that a process has used so far, in clock ticks.
fn processor_ticks(process: u32) -> u64 {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(path).expect("Linux tells of its processes");
    // Fields 14 and 15 (utime and stime); field 2, the name, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    let mut fields = fields.split_whitespace().skip(11);
    let mut next = || fields.next().and_then(|field| field.parse::<u64>().ok()).expect("a number");
    next() + next()
}

/// Goal: with a deadline that no search can meet, searches are rejected, and nothing else is.
#[test]
fn a_deadline_refuses_searches_and_nothing_else() {
    let Some(installation) = Installation::new("a_deadline_refuses_searches") else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_QUERY_TIMEOUT", "0.001")]);
    upload_notes(&client, "acme", 1);
    let mut long = question("acme", 1);
    long["query"] = json!("how many litres of water ".repeat(100));
    for path in ["/search/retrieve", "/search/qna"] {
        let reply = client.call("POST", path, &long).expect("an answer");
        assert_eq!((reply.status, &reply.json()["reason"]), (503, &json!("deadline_exceeded")));
    }
    assert_eq!(ask(&client, "GET", "/readyz", Value::Null)["status"], "ok");
    assert_eq!(ask(&client, "GET", "/list/sources?tenant_id=acme", Value::Null)["success"], true);
    server.kill();
    let (_server, client) = installation.start();
    assert_eq!(ask(&client, "POST", "/search/retrieve", long)["success"], true);
}
