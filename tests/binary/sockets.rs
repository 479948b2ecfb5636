//! Raw connections: clients that send nothing or too little, and event streams as they arrive.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::patience::STILL;
use crate::{Installation, KEY, ask, settled, upload};

/// Interval at which a slow client sends a byte of its header.
const DRIP: Duration = Duration::from_millis(500);
/// Well beyond the time limit for headers, and less than the slow client takes for all its bytes.
const TOO_LONG: Duration = Duration::from_secs(45);

/// Sends `head` at once and then `drip` byte by byte; returns the time until the server closed the
/// connection, and its response before that.
fn hung_up_after(client: &Client, head: &[u8], drip: &[u8]) -> (Duration, String) {
    let mut stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(DRIP)).expect("a time above zero");
    stream.write_all(head).expect("the server reads");
    let begun = Instant::now();
    let mut drip = drip.iter();
    let (mut answer, mut part) = (Vec::new(), [0; 1024]);
    while begun.elapsed() < TOO_LONG {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&part[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // The server may have closed the connection; the next read tells.
                if let Some(byte) = drip.next() {
                    let _ = stream.write_all(&[*byte]);
                }
            }
            Err(_) => break,
        }
    }
    (begun.elapsed(), String::from_utf8_lossy(&answer).into_owned())
}

#[test]
fn silent_and_slow_clients_are_closed_after_five_seconds() {
    let Some(installation) = Installation::new("silent_and_slow_clients") else { return };
    let (_server, client) = installation.start_with(&[("LODESTONE_KEEP_ALIVE_SECONDS", "5")]);
    let client = &client;
    let request = b"GET /healthz HTTP/1.1\r\nhost: lodestone\r\n\r\n";
    let cases: [(&str, &[u8], &[u8]); 4] = [
        ("silent", b"", b""),
        ("half a header", b"GET /healthz HTTP/1.1\r\nhost: ", b""),
        ("dripped", b"GET /healthz HTTP/1.1\r\nx-slow: ", &[b'a'; 100]),
        ("idle after an answer", request, b""),
    ];
    std::thread::scope(|scope| {
        let times = cases.map(|(name, head, drip)| {
            (name, scope.spawn(move || hung_up_after(client, head, drip)))
        });
        for (name, time) in times {
            let seconds = time.join().expect("the client returns").0.as_secs_f64();
            assert!((4.0..40.0).contains(&seconds), "{name}: closed after {seconds:.1} s");
        }
    });
    assert_eq!(ask(client, "GET", "/healthz", Value::Null)["status"], "ok");
}

/// Goal: a body that trickles in is answered with a 408 that says so.
#[test]
fn a_dripped_body_is_408() {
    let Some(installation) = Installation::new("a_dripped_body_is_408") else { return };
    let variables =
        [("LODESTONE_SLOW_CLIENT_SECONDS", "1"), ("LODESTONE_SLOW_CLIENT_RATE", "10KiB")];
    let (_server, client) = installation.start_with(&variables);
    let head = format!(
        "POST /search/retrieve HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{"
    );
    let (_, answer) = hung_up_after(&client, head.as_bytes(), &[b' '; 500]);
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\"reason\":\"body_timeout\""), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
}

struct Event {
    name: String,
    id: u64,
    data: Value,
}

/// Returns the status line, the headers in lower case, and the body without chunk framing.
fn raw(client: &Client, body: &Value) -> (String, String, String) {
    // Complete responses are compressed on request, streams never.
    let coding = if body["question"].is_null() { "identity" } else { "gzip" };
    let body = body.to_string();
    let mut stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    let head = format!(
        "POST /search/qna HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
         content-type: application/json\r\naccept-encoding: {coding}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("a header");
    let (status, headers) = head.split_once("\r\n").expect("a status line");
    let headers = headers.to_ascii_lowercase();
    if !headers.contains("transfer-encoding: chunked") {
        return (status.to_owned(), headers, rest.to_owned());
    }
    let mut body = String::new();
    loop {
        let (length, from) = rest.split_once("\r\n").expect("a chunk's length");
        let length = usize::from_str_radix(length, 16).expect("a length in hex");
        body.push_str(&from[..length]);
        rest = from[length..].strip_prefix("\r\n").expect("a chunk's end");
        if length == 0 {
            assert_eq!(rest, "", "nothing follows the last chunk");
            return (status.to_owned(), headers, body);
        }
    }
}

fn events(body: &str) -> Vec<Event> {
    let blocks = body.split("\n\n").filter(|block| !block.trim().is_empty());
    let blocks = blocks.filter(|block| !block.starts_with(':'));
    let parse = |block: &str| {
        let field = |name: &str| {
            let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect::<Vec<_>>()
        };
        Event {
            name: field("event").concat(),
            id: field("id").concat().parse().expect("a number"),
            data: serde_json::from_str(&field("data").join("\n")).expect("one JSON object"),
        }
    };
    blocks.map(parse).collect()
}

#[test]
fn an_answer_streams_in_order_and_adds_up() {
    let Some(installation) = Installation::new("an_answer_streams_in_order") else { return };
    let (_server, client) = installation.start();
    upload(&client, "tower", "The Eiffel Tower is 330 metres tall. It stands in Paris.");
    upload(&client, "bridge", "The Forth Bridge is 2,467 metres long and crosses a firth.");
    assert_eq!((settled(&client, "tower"), settled(&client, "bridge")).0, "success");
    let mut question = json!({"tenant_id": "acme", "question": "How tall is the Eiffel Tower?"});
    let plain = ask(&client, "POST", "/search/qna", question.clone());
    question["stream"] = json!(true);

    let (status, headers, body) = raw(&client, &question);
    assert!(status.starts_with("HTTP/1.1 200"), "{status}");
    assert!(headers.contains("content-type: text/event-stream"), "{headers}");
    assert!(headers.contains("x-request-id: ") && !headers.contains("content-encoding"));
    let events = events(&body);
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!((names[0], names[1], *names.last().unwrap()), ("start", "sources", "done"));
    let tokens = &events[2..events.len() - 1];
    assert!(!tokens.is_empty() && tokens.iter().all(|event| event.name == "token"), "{names:?}");
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id));
    let delta = |event: &Event| event.data["delta"].as_str().expect("a text").to_owned();
    let joined: String = tokens.iter().map(delta).collect();
    let done = &events.last().unwrap().data;
    assert_eq!(done["answer"], joined);
    assert_eq!(done["answer"], plain["answer"]);
    assert!(joined.contains("330"), "{joined}");
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(keys(done), keys(&plain));
    assert_eq!(events[1].data["sources"], done["sources"]);
    assert_eq!(events[1].data["chunks"], done["chunks"]);

    let (status, headers, _) = raw(&client, &json!({"tenant_id": "acme", "stream": true}));
    assert!(status.starts_with("HTTP/1.1 400"), "{status}");
    assert!(headers.contains("content-type: application/json"), "{headers}");
}
