//! Event streams over a socket, and answers under concurrency, with the real model.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::patience::STILL;
use crate::{Installation, KEY, ask, settled, upload};

/// On its own this question finds the bridge; after a question about the tower it finds the tower.
const FOLLOW_UP: &str = "When was it built?";
const QUESTION: &str = "Who designed the Eiffel Tower?";

/// A connection on which a question was asked and whose response has begun.
struct Asked {
    reader: BufReader<TcpStream>,
}

impl Asked {
    fn begin(client: &Client, body: &Value) -> Self {
        let body = body.to_string();
        let mut stream = TcpStream::connect(client.address).expect("a connection");
        stream.set_read_timeout(Some(STILL)).expect("a time above zero");
        let head = format!(
            "POST /search/qna HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("the server reads");
        let mut asked = Self { reader: BufReader::new(stream) };
        assert!(asked.line().starts_with("HTTP/1.1 200"));
        let mut headers = String::new();
        loop {
            match asked.line().as_str() {
                "" => break,
                line => headers += &format!("{}\n", line.to_ascii_lowercase()),
            }
        }
        assert!(headers.contains("content-type: text/event-stream"), "{headers}");
        assert!(headers.contains("transfer-encoding: chunked"), "{headers}");
        asked
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line.trim_end_matches(['\r', '\n']).to_owned()
    }

    /// Reads the next chunk of the body; `None` at its end.
    fn chunk(&mut self) -> Option<String> {
        let length = usize::from_str_radix(&self.line(), 16).expect("a length in hex");
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).expect("a whole chunk");
        assert_eq!(bytes.split_off(length), b"\r\n");
        (length > 0).then(|| String::from_utf8(bytes).expect("UTF-8"))
    }
}

/// The first source of an answer to the follow-up, found by keyword search alone.
fn first_source(client: &Client, session: &str) -> Value {
    let body = json!({"tenant_id": "acme", "question": FOLLOW_UP, "session_id": session,
        "search_alpha": 0, "top_n": 1, "ai_generation": false});
    ask(client, "POST", "/search/qna", body)["sources"][0]["id"].clone()
}

fn upload_tower_and_bridge(client: &Client) {
    let tower = "The Eiffel Tower was designed by Gustave Eiffel. It was built in 1889.";
    upload(client, "tower", tower);
    upload(client, "bridge", "Built it was, built again, and built in 1890.");
    assert_eq!(settled(client, "tower"), "success");
    assert_eq!(settled(client, "bridge"), "success");
}

/// Goal: each event arrives separately, the first before the last has been produced.
#[test]
fn events_arrive_one_by_one() {
    let Some(installation) = Installation::new("events_arrive_one_by_one") else { return };
    let (_server, client) = installation.start();
    upload_tower_and_bridge(&client);
    let body = json!({"tenant_id": "acme", "question": QUESTION, "stream": true});
    let mut asked = Asked::begin(&client, &body);
    let mut names = Vec::new();
    while let Some(chunk) = asked.chunk() {
        let number = names.len() + 1;
        assert!(chunk.starts_with(&format!("id: {number}\nevent: ")), "{chunk}");
        assert!(chunk.ends_with("\n\n"), "the event is whole: {chunk}");
        assert_eq!(chunk.matches("\n\n").count(), 1, "one event a piece: {chunk}");
        let name = chunk.lines().nth(1).expect("a name").trim_start_matches("event: ");
        names.push(name.to_owned());
    }
    assert_eq!(names[..3], ["start", "sources", "token"]);
    assert!(names.len() > 4 && names[3..names.len() - 1].iter().all(|name| name == "token"));
    assert_eq!(names[names.len() - 1], "done");
}

/// Goal: a client that disconnects early adds nothing to its session. The answer exceeds the
/// buffers of a connection, so that the server notices.
#[test]
fn closing_the_connection_early_adds_nothing_to_the_session() {
    let Some(installation) = Installation::new("closing_the_connection_early") else { return };
    let (_server, client) = installation.start();
    upload_tower_and_bridge(&client);
    let note = "x".repeat(60_000);
    for batch in 0..5 {
        let id = |n: usize| format!("s{}", batch * 100 + n);
        let items: Vec<Value> = (0..100)
            .map(|n| {
                json!({"file_id": id(n), "content": format!("Eiffel note {}", id(n)),
                    "document_metadata": {"note": note}})
            })
            .collect();
        let path = "/upload/batch_upload_text?tenant_id=acme";
        ask(&client, "POST", path, json!({ "items": items }));
        (0..100).for_each(|n| assert_eq!(settled(&client, &id(n)), "success"));
    }
    let asking = |session: &str| {
        json!({"tenant_id": "acme", "question": QUESTION, "stream": true, "top_n": 1001,
            "session_id": session})
    };
    for session in ["left-1", "left-2", "left-3"] {
        let mut asked = Asked::begin(&client, &asking(session));
        assert!(asked.chunk().expect("an event").contains("event: start"));
        // The first disconnects at once, the others once the server blocks on unread data; asking
        // the same question unstreamed in the meantime takes about as long.
        if session != "left-1" {
            let mut whole = asking("meanwhile");
            whole["stream"] = json!(false);
            (0..2).for_each(|_| drop(ask(&client, "POST", "/search/qna", whole.clone())));
        }
    }
    // A client that reads to the end is remembered; by then the others have been dealt with as
    // well.
    let mut asked = Asked::begin(&client, &asking("stayed"));
    let mut bytes = 0;
    while let Some(chunk) = asked.chunk() {
        bytes += chunk.len();
    }
    assert!(bytes > 60 << 20, "{bytes} bytes fit into the buffers of a connection");
    assert_eq!(first_source(&client, "stayed"), "tower");
    for session in ["left-1", "left-2", "left-3", "new"] {
        assert_eq!(first_source(&client, session), "bridge", "{session}");
    }
}

/// Goal: a text gets the same vector whether it is embedded alone or in a batch, and a question
/// gets the same answer whether it is asked alone or concurrently with others.
#[test]
fn an_answer_is_the_same_alone_and_in_company() {
    let Some(installation) = Installation::new("an_answer_is_the_same_alone_and_in_company") else {
        return;
    };
    let (_server, client) = installation.start();
    let subjects = ["granite", "rivers", "the moon", "bread", "clocks", "glass", "whales", "maps"];
    let text = |n: usize| {
        let subject = subjects[n % subjects.len()];
        let length = 1 + n * 7 % 12;
        format!("Note {n} on {subject}. ")
            + &format!("It says much about {subject}. ").repeat(length)
    };
    let items: Vec<Value> =
        (0..40).map(|n| json!({"file_id": format!("n{n}"), "content": text(n)})).collect();
    for (n, item) in items.iter().enumerate() {
        let path = "/upload/upload_text?tenant_id=acme&sub_tenant_id=alone";
        ask(&client, "POST", path, item.clone());
        let path =
            format!("/upload/verify_processing?tenant_id=acme&sub_tenant_id=alone&file_id=n{n}");
        while ask(&client, "POST", &path, Value::Null)["status"] != "success" {}
    }
    let path = "/upload/batch_upload_text?tenant_id=acme&sub_tenant_id=company";
    ask(&client, "POST", path, json!({ "items": items }));
    for n in 0..items.len() {
        let path =
            format!("/upload/verify_processing?tenant_id=acme&sub_tenant_id=company&file_id=n{n}");
        while ask(&client, "POST", &path, Value::Null)["status"] != "success" {}
    }
    let search = |client: &Client, sub_tenant: &str, query: &str| -> Vec<(String, f64)> {
        let body = json!({"tenant_id": "acme", "sub_tenant_id": sub_tenant, "query": query,
            "max_chunks": 100});
        let found = ask(client, "POST", "/search/retrieve", body);
        let pair = |chunk: &Value| {
            let score = chunk["relevancy_score"].as_f64().expect("a score");
            (chunk["source_id"].as_str().expect("an id").to_owned(), score)
        };
        found["chunks"].as_array().expect("chunks").iter().map(pair).collect()
    };
    let queries: Vec<String> =
        subjects.iter().map(|subject| format!("What is known of {subject}?")).collect();
    for query in &queries {
        let mut alone = search(&client, "alone", query);
        let mut company = search(&client, "company", query);
        assert_eq!(alone.len(), items.len());
        // Upload times, and with them the order of ties, may differ, but scores may not.
        alone.sort_by(|a, b| a.0.cmp(&b.0));
        company.sort_by(|a, b| a.0.cmp(&b.0));
        for ((id, a), (other, b)) in alone.iter().zip(&company) {
            assert!(id == other && (a - b).abs() < 2e-5, "{query}: {id} {a}, {other} {b}");
        }
    }
    let quietly: Vec<_> = queries.iter().map(|query| search(&client, "company", query)).collect();
    for _ in 0..3 {
        let among_others: Vec<_> = std::thread::scope(|scope| {
            let asked: Vec<_> = queries
                .iter()
                .map(|query| scope.spawn(|| search(&client, "company", query)))
                .collect();
            asked.into_iter().map(|asked| asked.join().expect("an answer")).collect()
        });
        assert_eq!(among_others, quietly);
    }
}
