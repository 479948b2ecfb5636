//! The `accurate` mode with a reranker: the passages it reads, the effect of its verdicts, searches
//! that fall back when it fails or is slow, and answers that it rejects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lodestone_answer::ABSTENTION;
use lodestone_rank::{RerankError, Reranker, Verdicts};
use lodestone_types::{ErrorKind, RequestContext, limits};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::corpus::{ids_of, list, scores_of, timeless};
use crate::patience::Patience;
use crate::support::TestServer;

/// A reranker that prefers passages containing [`PREFERRED`], the shorter the better. Tests make it
/// fail, or make it score only a given number of passages in time.
#[derive(Debug, Default)]
struct Preference {
    fails: AtomicBool,
    /// Whether it considers nothing relevant.
    refuses: Mutex<bool>,
    /// Whether a client has disconnected during a call.
    is_left: AtomicBool,
    /// Whether a call blocks until its time is over or its client has disconnected.
    waits: AtomicBool,
    reads_in_time: Mutex<Option<usize>>,
    read: Mutex<Vec<(String, Vec<String>)>>,
}

const PREFERRED: &str = "summer";
const ACCURATE: &str = "accurate";

impl Reranker for Preference {
    fn name(&self) -> &str {
        "preference-test-double"
    }

    fn score(
        &self,
        context: &RequestContext,
        until: Option<Instant>,
        query: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError> {
        let (until, deadline) = (until.unwrap(), context.deadline().unwrap());
        assert!(left(until) <= left(deadline) / 3, "the search has time left behind it");
        if self.fails.load(Ordering::Relaxed) {
            return Err(RerankError::new(ErrorKind::Overloaded, "told to"));
        }
        let owned = passages.iter().map(|passage| (*passage).to_owned()).collect();
        self.read.lock().push((query.to_owned(), owned));
        let refuses = *self.refuses.lock();
        let score = |passage: &&str| match passage.contains(PREFERRED) {
            _ if refuses => 0.01,
            true => 1.0 / (1.0 + passage.len() as f32 / 1e4),
            false => 0.1,
        };
        let in_time = *self.reads_in_time.lock();
        let count = in_time.unwrap_or(passages.len()).min(passages.len());
        let is_cut_short = count < passages.len();
        if self.waits.load(Ordering::Relaxed) && context.cancel().wait(left(until)) {
            self.is_left.store(true, Ordering::Relaxed);
            return Err(RerankError::new(ErrorKind::Unavailable, "the client has gone"));
        }
        Ok(Verdicts { scores: passages.iter().take(count).map(score).collect(), is_cut_short })
    }
}

/// The time left until an instant.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

fn server() -> (TestServer, Arc<Preference>) {
    let reranker = Arc::new(Preference::default());
    let part = Arc::clone(&reranker);
    (TestServer::start_with_parts(|_| {}, |parts| parts.reranker = Some(part)), reranker)
}

/// Builds short texts, every third about granite and the others about summer.
fn stones(count: usize) -> Vec<Value> {
    let text = |n: usize| match n % 3 {
        0 => format!("Stone {n} of the old wall is granite from the northern quarry."),
        _ => format!("Stone {n} of the old wall was laid by a mason in summer."),
    };
    (0..count).map(|n| json!({"file_id": format!("s{n}"), "content": text(n)})).collect()
}

/// Goal: verdicts change the order, scores stay ordered and in range, and passages that were not
/// read rank last.
#[test]
fn accurate_searches_follow_the_verdicts() {
    let (server, reranker) = server();
    server.index_items("acme", "default", &stones(90));
    let query = "granite from the quarry";
    let holds = |chunk: &Value, word: &str| chunk["chunk_content"].as_str().unwrap().contains(word);
    let fast = server.ask("retrieve", query, &json!({"max_chunks": 90})).ok();
    assert!(holds(&fast["chunks"][0], "granite"));
    assert!(list(&fast, "chunks").iter().all(|chunk| chunk["rerank_score"].is_null()));
    let told = &fast["metadata"];
    assert_eq!((&told["reranker"], &told["degraded"]), (&json!(null), &json!([])));
    assert_eq!(told["timings_ms"]["rerank"], 0.0);
    assert!(reranker.read.lock().is_empty(), "fast asks nobody");

    let changes = json!({"mode": ACCURATE, "max_chunks": 90, "explain": true});
    let reply = server.ask("retrieve", query, &changes);
    let found = reply.ok();
    let chunks = list(&found, "chunks");
    assert!(holds(&chunks[0], PREFERRED), "{}", chunks[0]);
    let scores = scores_of(&chunks);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    let verdicts: Vec<Option<f64>> =
        chunks.iter().map(|chunk| chunk["rerank_score"].as_f64()).collect();
    let (read, unread) = verdicts.split_at(limits::RERANK_CANDIDATES);
    assert!(read.iter().all(|verdict| verdict.is_some_and(|v| (0.0..=1.0).contains(&v))));
    assert!(unread.len() == 40 && unread.iter().all(Option::is_none), "{unread:?}");
    for (chunk, verdict) in chunks.iter().zip(&verdicts) {
        let explained = &chunk["explain"];
        let share = |name: &str| explained[name].as_f64().unwrap();
        let fused = share("semantic_share") + share("keyword_share");
        let expected = 0.6 * verdict.unwrap_or(0.0) + 0.4 * fused;
        let score = chunk["relevancy_score"].as_f64().unwrap();
        assert!((score - expected).abs() < 2e-6, "{chunk}");
        assert_eq!(explained["rerank"].as_f64(), *verdict);
    }
    let told = &found["metadata"];
    assert_eq!(told["reranker"], "preference-test-double");
    assert_eq!(told["degraded"], json!([]));
    assert!(told["timings_ms"]["rerank"].as_f64().unwrap() > 0.0);
    let again = server.ask("retrieve", query, &changes).ok();
    assert_eq!(timeless(again), timeless(found), "unchanged data, the same answer");
}

/// Goal: the reranker reads the text that was embedded, title first, and extra context steers it.
#[test]
fn passages_are_read_with_their_titles_behind_the_steered_query() {
    let (server, reranker) = server();
    let titled = json!({"file_id": "walls", "content": "Of granite, and laid in summer.",
        "document_metadata": {"title": "Old walls"}});
    let plain = json!({"file_id": "plain", "content": "Granite is a hard stone."});
    server.index_items("acme", "default", &[titled, plain]);
    let changes = json!({"mode": ACCURATE, "extra_context": "a dry summer"});
    server.ask("retrieve", "granite", &changes).ok();
    let (query, mut passages) = reranker.read.lock().pop().expect("one call");
    passages.sort();
    assert_eq!(query, "granite\na dry summer");
    assert_eq!(
        passages,
        ["Granite is a hard stone.", "Old walls\nOf granite, and laid in summer."]
    );
}

/// Goal: qna in accurate mode is reranked too, before recency, caps and the graph apply.
#[test]
fn every_accurate_search_has_its_candidates_read() {
    let (server, _) = server();
    server.index_items("acme", "default", &stones(12));
    let answered = server.qna("Which stone is granite?", &json!({"mode": ACCURATE}));
    assert_eq!(answered["metadata"]["reranker"], "preference-test-double");
    let chunks = list(&answered, "chunks");
    assert!(!chunks.is_empty() && chunks.iter().all(|chunk| chunk["rerank_score"].is_number()));
    for changes in [
        json!({"recency_bias": 1}),
        json!({"graph_context": true}),
        json!({"max_chunks_per_source": 1, "alpha": "auto"}),
        json!({"alpha": 0}),
    ] {
        let mut asked = changes.clone();
        asked["mode"] = json!(ACCURATE);
        let found = server.ask("retrieve", "granite wall", &asked).ok();
        let chunks = list(&found, "chunks");
        let scores = scores_of(&chunks);
        assert!(!chunks.is_empty() && scores.is_sorted_by(|a, b| a >= b), "{changes}: {scores:?}");
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{changes}: {scores:?}");
        assert!(chunks.iter().all(|chunk| chunk["rerank_score"].is_number()), "{changes}");
        let told = &found["metadata"];
        assert_eq!((&told["degraded"], told["reranker"].is_null()), (&json!([]), false));
    }
    let nowhere = json!({"mode": ACCURATE, "sub_tenant_id": "nowhere"});
    let found = server.ask("retrieve", "granite", &nowhere).ok();
    assert_eq!((&found["chunks"], &found["metadata"]["degraded"]), (&json!([]), &json!([])));
}

/// Goal: a failing reranker costs a search its verdicts and nothing else.
#[test]
fn a_failing_reranker_fails_no_search() {
    let (server, reranker) = server();
    let without = TestServer::start();
    for server in [&server, &without] {
        server.index_items("acme", "default", &stones(30));
    }
    reranker.fails.store(true, Ordering::Relaxed);
    let changes = json!({"mode": ACCURATE, "max_chunks": 30});
    let reply = server.ask("retrieve", "granite from the quarry", &changes);
    let (found, plain) =
        (reply.ok(), without.ask("retrieve", "granite from the quarry", &changes).ok());
    assert!(!reply.headers.contains_key("x-lodestone-degraded"), "the answer is whole");
    for found in [&found, &plain] {
        let told = &found["metadata"];
        assert_eq!(told["degraded"], json!(["reranker_unavailable"]));
        assert_eq!(told["reranker"], json!(null));
    }
    let (chunks, expected) = (list(&found, "chunks"), list(&plain, "chunks"));
    assert_eq!(scores_of(&chunks), scores_of(&expected));
    // The servers took their uploads at different times, which affects the order of ties.
    let by_score = |chunks: &[Value]| {
        let pairs = scores_of(chunks).into_iter().zip(ids_of(chunks));
        let mut pairs: Vec<(f64, String)> = pairs.collect();
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        pairs
    };
    assert_eq!(by_score(&chunks), by_score(&expected));
    assert!(chunks.iter().all(|chunk| chunk["rerank_score"].is_null()));
    let answered = server.qna("Which stone is granite?", &json!({"mode": ACCURATE}));
    assert_eq!(answered["metadata"]["degraded"], json!(["reranker_unavailable"]));

    reranker.fails.store(false, Ordering::Relaxed);
    let found = server.ask("retrieve", "granite from the quarry", &changes).ok();
    assert_eq!(found["metadata"]["degraded"], json!([]), "it is asked again each time");
}

/// Goal: candidates that a slow reranker does not read in its share of the time keep their order
/// behind the others, and the response says so. If it reads nothing in time, the search is not
/// reranked.
#[test]
fn a_slow_reranker_reads_what_it_can() {
    let (server, reranker) = server();
    server.index_items("acme", "default", &stones(30));
    let changes = json!({"mode": ACCURATE, "max_chunks": 30});
    reranker.fails.store(true, Ordering::Relaxed);
    let plain = server.ask("retrieve", "granite from the quarry", &changes).ok();
    reranker.fails.store(false, Ordering::Relaxed);
    *reranker.reads_in_time.lock() = Some(5);
    let found = server.ask("retrieve", "granite from the quarry", &changes).ok();
    let told = &found["metadata"];
    assert_eq!(told["degraded"], json!(["reranking_partial"]));
    assert_eq!(told["reranker"], "preference-test-double");
    let chunks = list(&found, "chunks");
    let (read, unread) = chunks.split_at(5);
    assert!(read.iter().all(|chunk| chunk["rerank_score"].is_number()), "{read:?}");
    assert!(unread.iter().all(|chunk| chunk["rerank_score"].is_null()), "{unread:?}");
    assert_eq!(ids_of(unread), ids_of(&list(&plain, "chunks")[5..]), "in their old order");

    *reranker.reads_in_time.lock() = Some(0);
    let found = server.ask("retrieve", "granite from the quarry", &changes).ok();
    assert_eq!(found["metadata"]["degraded"], json!(["reranker_unavailable"]));
    assert_eq!(ids_of(&list(&found, "chunks")), ids_of(&list(&plain, "chunks")));
}

/// Goal: `accurate` rejects an extracted answer if the reranker finds it in no passage; `fast` does
/// not ask the reranker, and a failing or late reranker rejects nothing.
#[test]
fn the_reranker_is_the_judge_of_extracted_answers() {
    let (server, reranker) = server();
    let walls = json!({"file_id": "walls", "content":
        "The old wall is 12 metres high. It was built by masons from the north."});
    server.index_items("acme", "default", &[walls]);
    let answer = |mode: &str, question: &str| {
        let answered = server.qna(question, &json!({"mode": mode}));
        answered["answer"].as_str().unwrap().to_owned()
    };
    let question = "How high is the old wall?";
    assert!(answer("fast", question).contains("12 metres"));
    assert!(reranker.read.lock().is_empty(), "fast asks nobody");
    assert!(answer(ACCURATE, question).contains("12 metres"), "one in ten is no sure no");
    let (asked, passages) = reranker.read.lock().pop().expect("a call");
    assert_eq!(asked, question);
    assert!(passages.iter().any(|passage| passage.ends_with("The old wall is 12 metres high.")));
    *reranker.refuses.lock() = true;
    assert!(answer("fast", question).contains("12 metres"));
    assert_eq!(answer(ACCURATE, question), ABSTENTION);
    reranker.fails.store(true, Ordering::Relaxed);
    assert!(answer(ACCURATE, question).contains("12 metres"), "nobody judges");
    reranker.fails.store(false, Ordering::Relaxed);
    *reranker.reads_in_time.lock() = Some(0);
    assert!(answer(ACCURATE, question).contains("12 metres"), "nobody judges in time");
}

/// Goal: reranking stops when the client disconnects.
#[test]
fn reranking_ends_with_its_client() {
    let (server, reranker) = server();
    server.index_items("acme", "default", &stones(3));
    reranker.waits.store(true, Ordering::Relaxed);
    let asked = json!({"tenant_id": "acme", "query": "granite", "mode": ACCURATE});
    server.leave("/search/retrieve", &asked, || reranker.read.lock().len() == 1);
    let mut patience = Patience::new();
    while !reranker.is_left.load(Ordering::Relaxed) {
        assert!(!patience.is_over("left"), "it goes on without its client");
    }
}
