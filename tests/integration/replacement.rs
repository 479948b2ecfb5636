//! Replacing a text while others read it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::TestServer;

const REPLACEMENTS: usize = 50;

/// A text of several chunks, each of which names its version.
fn version(number: usize) -> String {
    let sentence = |word: usize| format!("beacon{word} of edition{number} shines, a beacon. ");
    let paragraph = |p: usize| (0..30).map(|s| sentence(p * 30 + s)).collect::<String>();
    (0..1 + number % 3).map(paragraph).collect::<Vec<_>>().join("\n\n")
}

/// The versions that a text mentions.
fn editions(text: &str) -> BTreeSet<usize> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter_map(|word| word.strip_prefix("edition")?.parse().ok()).collect()
}

/// The result of one read: the versions it contains, and the number of their chunks.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    read: &'static str,
    editions: BTreeSet<usize>,
    chunks: Option<usize>,
}

fn seen_in_chunks(read: &'static str, chunks: &[Value]) -> Seen {
    let text = |chunk: &Value| chunk["chunk_content"].as_str().expect("text").to_owned();
    let editions = chunks.iter().flat_map(|chunk| editions(&text(chunk))).collect();
    Seen { read, editions, chunks: Some(chunks.len()) }
}

fn retrieve(server: &TestServer) -> Seen {
    let body = json!({
        "query": "beacon", "tenant_id": "acme", "max_chunks": 100, "join_neighbours": false,
    });
    let found = server.post("/search/retrieve", body).ok();
    seen_in_chunks("retrieve", found["chunks"].as_array().unwrap())
}

fn full_text(server: &TestServer) -> Seen {
    let body = json!({"query": "beacon", "tenant_id": "acme", "max_chunks": 100});
    let found = server.post("/search/full-text-search", body).ok();
    seen_in_chunks("full text", found.as_array().unwrap())
}

fn list(server: &TestServer) -> Seen {
    let source = server.source("acme", "default", "text");
    let editions = editions(source["description"].as_str().unwrap());
    let chunks = source["chunk_count"].as_u64().map(|count| count as usize);
    Seen { read: "list", editions, chunks }
}

fn look_up(server: &TestServer) -> Seen {
    let body = json!({"tenant_id": "acme", "source_ids": ["text"]});
    let found = server.post("/list/sources_by_id", body).ok();
    let source = &found["sources"][0];
    let editions = editions(source["description"].as_str().unwrap_or_default());
    let chunks = source["chunk_count"].as_u64().map(|count| count as usize);
    Seen { read: "look up", editions, chunks }
}

fn fetch(server: &TestServer) -> Seen {
    let body = json!({"tenant_id": "acme", "file_id": "text"});
    let content = server.post("/fetch/fetch_content", body).ok()["file_content"].clone();
    let content = content.as_str().unwrap();
    let found = editions(content);
    let whole = found.iter().all(|number| content == version(*number));
    Seen { read: "fetch", editions: if whole { found } else { BTreeSet::new() }, chunks: None }
}

fn stats(server: &TestServer) -> usize {
    let stats = server.get("/tenant/stats?tenant_id=acme").ok();
    assert_eq!(stats["source_count"], 1);
    stats["object_count"].as_u64().unwrap() as usize
}

#[test]
fn readers_see_the_old_text_or_the_new_one_never_both_or_neither() {
    let server = TestServer::start();
    server.index("acme", "default", "other", "something else stands here");
    let body = json!({"tenant_id": "acme", "source_ids": ["other"]});
    server.index("acme", "default", "text", &version(0));
    server.call("DELETE", "/delete_source", body).ok();
    // The number of chunks of each version, filled in while the readers run.
    let mut chunks_of = vec![stats(&server)];
    let (is_done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let reader = |read: fn(&TestServer) -> Seen| {
        let mut all: Vec<Seen> = Vec::new();
        while !is_done.load(Ordering::Relaxed) {
            let seen = read(&server);
            reads.fetch_add(1, Ordering::Relaxed);
            if all.last() != Some(&seen) {
                all.push(seen);
            }
        }
        all
    };
    let readers: [fn(&TestServer) -> Seen; 5] = [retrieve, full_text, list, look_up, fetch];
    let all: Vec<Vec<Seen>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            readers.into_iter().map(|read| scope.spawn(move || reader(read))).collect();
        let done = FinishOnDrop(&is_done);
        for number in 1..=REPLACEMENTS {
            server.index("acme", "default", "text", &version(number));
            chunks_of.push(stats(&server));
            // A version whose write has been acknowledged is visible to the writer.
            for read in readers {
                assert_eq!(read(&server).editions, BTreeSet::from([number]));
            }
        }
        drop(done);
        threads.into_iter().map(|thread| thread.join().expect("a reader")).collect()
    });
    let mut violations = Vec::new();
    for seen in all.iter().flatten() {
        let is_whole = seen.editions.len() == 1
            && seen
                .chunks
                .is_none_or(|count| Some(count) == seen.editions.first().map(|n| chunks_of[*n]));
        if !is_whole {
            violations.push(seen);
        }
    }
    assert!(violations.is_empty(), "{} violations: {:?}", violations.len(), violations[0]);
    for of_reader in &all {
        assert!(of_reader.is_sorted_by_key(|seen| seen.editions.first().copied()), "time ran back");
    }
    let changes = all.iter().map(Vec::len).min().unwrap();
    assert!(changes > 3, "a reader saw only {changes} versions");
    assert!(reads.into_inner() > 5 * REPLACEMENTS);
}

/// Stops the readers even if the writer panics.
struct FinishOnDrop<'a>(&'a AtomicBool);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn of_many_uploads_of_one_id_the_last_accepted_wins() {
    let server = TestServer::start();
    for round in 0..5 {
        let path = "/upload/upload_text?tenant_id=acme";
        for number in 0..20 {
            let number = round * 20 + number;
            server.post(path, json!({"content": version(number), "file_id": "text"})).ok();
        }
        assert_eq!(server.settled("acme", "default", "text")["status"], "success");
        for read in [retrieve, full_text, list, fetch] {
            assert_eq!(read(&server).editions, BTreeSet::from([round * 20 + 19]));
        }
    }
    assert_eq!(server.source("acme", "default", "text")["version"], "v100");
}

#[test]
fn a_deletion_beats_what_is_being_processed() {
    let server = TestServer::start();
    for round in 0..30 {
        let body = json!({"content": version(round), "file_id": "text"});
        server.post("/upload/upload_text?tenant_id=acme", body).ok();
        if round % 3 == 0 {
            server.settled("acme", "default", "text");
        }
        let body = json!({"tenant_id": "acme", "source_ids": ["text"]});
        let deleted = server.call("DELETE", "/delete_source", body).ok();
        assert_eq!(deleted["deleted"], json!(["text"]), "round {round}");
        assert!(retrieve(&server).editions.is_empty(), "round {round}");
        assert!(server.sources("acme", "default").is_empty(), "round {round}");
    }
    // Another source follows the deleted ones in the queue: once it is done, they have had their
    // turn.
    server.index("acme", "default", "last", "nothing of the kind");
    assert!(full_text(&server).editions.is_empty());
    assert_eq!(server.sources("acme", "default").len(), 1);
}
