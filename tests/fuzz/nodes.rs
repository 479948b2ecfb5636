//! Messages between nodes: accepted messages are unchanged when sent again.

use lodestone_engine::ingest::nodes::wire;
use lodestone_engine::query::shares::wire::{ShareAnswer, ShareStep, ShareTask};
use lodestone_extract::sandbox::{parsed_from_bytes, parsed_to_bytes};
use lodestone_text::{CorpusStats, HybridQuery, RowText, SentQuery, TextIndex, TextIndexBuilder};
use lodestone_types::{Filter, Metric};

use crate::mutations::Shape;
use crate::replies::fuzz;

/// Vectors and parsed documents as sent by ingest nodes.
#[test]
fn ingest_nodes() {
    let parsed = |format: &str| {
        let (of, bytes) = match format {
            "md" => {
                (lodestone_extract::Format::Md, b"# A\n\nb \xc3\xa9\n\n| a | b |\n|-|-|\n".to_vec())
            }
            _ => (lodestone_extract::Format::Csv, b"a,b\n1,2\n".to_vec()),
        };
        parsed_to_bytes(lodestone_extract::extract(of, &bytes).map(|read| (of, read)))
    };
    let seeds = [
        wire::vectors_to_bytes(&[vec![0.6, 0.8], vec![1.0, 0.0]]),
        b"[[[3,0.5],[70000,2.75]],[]]".to_vec(),
        parsed("md"),
        parsed("csv"),
    ];
    fuzz("ingest_nodes", &seeds, Shape::Values, |bytes| {
        for (count, dimension) in [(2, 2), (1, 4), (4, 1)] {
            if let Ok(vectors) = wire::vectors_from_bytes(bytes, count, dimension) {
                assert_eq!(wire::vectors_to_bytes(&vectors), bytes);
            }
        }
        for count in 0..3 {
            if let Ok(vectors) = wire::sparse_from_bytes(bytes, count) {
                let again = serde_json::to_vec(&vectors).expect("numbers are JSON");
                assert_eq!(wire::sparse_from_bytes(&again, count), Ok(vectors));
            }
        }
        if let Some(parsed) = parsed_from_bytes(bytes) {
            let again = parsed_to_bytes(parsed.clone());
            assert_eq!(parsed_from_bytes(&again), Some(parsed), "it changes on the way");
        }
    });
}

/// Shares of searches between query nodes, and the full-text work on them.
#[test]
fn shares() {
    let mut builder = TextIndexBuilder::new();
    for row in 0..300 {
        let body = format!("common {} w{row}", if row % 2 == 0 { "even" } else { "odd" });
        builder.add_row(&RowText { body: &body, title: "common", ..RowText::default() }).unwrap();
    }
    let index = TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap();
    let query = HybridQuery::analyse("common \"even w4\" odd");
    let mut stats = CorpusStats::default();
    stats.add(index.scope_stats(None), &index.term_counts(&query, None).unwrap());
    let sent = serde_json::to_value(SentQuery::of(&query)).unwrap();
    let stats_sent = serde_json::to_value(&stats).unwrap();
    let task = |step: serde_json::Value| {
        let id = uuid::Uuid::from_u128(1);
        serde_json::json!({
            "release": "1", "collection": id, "version": 3, "sub_tenant": "default",
            "filter": serde_json::to_value(Filter::All).unwrap(),
            "segments": [id], "within_millis": 5, "step": step,
        })
    };
    let tops = serde_json::json!({"Tops": {
        "k": 10, "metric": serde_json::to_value(Metric::Cosine).unwrap(),
        "vectors": [[0.6, 0.8]], "thoroughness": "Exact", "words": [sent.clone(), stats_sent],
        "sparse": [[1, 0.5]], "has_scores": true,
    }});
    let answer = r#"{"Tops":{"near":[[[[0,1],0.5]]],"words":[[[0,2],1.5]],"sparse":[],"scores":
        [[[0,1],[0.5,null,1e300]]],"paths":[],"patience":3}}"#;
    let seeds = [
        task(serde_json::json!({"Counts": sent})).to_string(),
        task(tops).to_string(),
        answer.to_owned(),
        serde_json::json!({"Counts": stats}).to_string(),
    ];
    for seed in &seeds[..2] {
        serde_json::from_str::<ShareTask>(seed).expect("a seed is a task");
    }
    fuzz("shares", &seeds, Shape::Values, move |bytes| {
        if let Ok(answer) = serde_json::from_slice::<ShareAnswer>(bytes) {
            let again = serde_json::to_vec(&answer).expect("plain data is JSON");
            assert_eq!(serde_json::from_slice::<ShareAnswer>(&again).ok(), Some(answer));
        }
        let Ok(task) = serde_json::from_slice::<ShareTask>(bytes) else { return };
        let again = serde_json::to_vec(&task).expect("plain data is JSON");
        assert_eq!(serde_json::from_slice::<ShareTask>(&again).ok().as_ref(), Some(&task));
        let scored = |query: &SentQuery, stats: &CorpusStats| {
            let scores = index.score(query, stats, None).expect("an index that is whole");
            assert!(scores.top(10).len() <= 10);
        };
        match &task.step {
            ShareStep::Counts(query) => {
                let counts = index.term_counts(query, None).expect("an index that is whole");
                let mut stats = CorpusStats::default();
                stats.add(index.scope_stats(None), &counts);
                assert!(stats.is_of(query));
                scored(query, &stats);
            }
            ShareStep::Tops(tops) => {
                if let Some((query, stats)) = &tops.words {
                    scored(query, stats);
                }
            }
        }
    });
}
