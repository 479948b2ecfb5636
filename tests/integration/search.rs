//! Hybrid search: the number of chunks, their order, and the parameters that affect it.

use serde_json::{Value, json};

use crate::corpus::{id_set, ids_of, list, scores_of, server_and_clock, timeless};
use crate::support::TestServer;

/// Builds `count` short texts, every third of which contains the word "granite".
fn stones(count: usize) -> Vec<Value> {
    let text = |n: usize| match n % 3 {
        0 => format!("Stone {n} of the old wall is granite from the northern quarry."),
        _ => format!("Stone {n} of the old wall was laid by a mason in summer."),
    };
    (0..count).map(|n| json!({"file_id": format!("s{n}"), "content": text(n)})).collect()
}

/// Goal: a search returns chunks in the documented format, ten by default, ordered by score.
#[test]
fn retrieve_gives_ten_scored_chunks_unless_told() {
    let server = TestServer::start();
    server.index_items("acme", "default", &stones(12));
    let found = server.ask("retrieve", "granite stone", &json!({})).ok();
    let chunks = list(&found, "chunks");
    assert_eq!(chunks.len(), 10);
    let scores = scores_of(&chunks);
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert!(scores[0] > scores[9], "scores tell chunks apart: {scores:?}");
    assert_eq!((&found["graph_relations"], &found["success"]), (&Value::Null, &json!(true)));
    assert_eq!(found["extra_graph_context"], Value::Null);
    for (max_chunks, expected) in [(json!(1), 1), (json!(null), 10), (json!(1001), 12)] {
        let changes = json!({"max_chunks": max_chunks});
        assert_eq!(server.chunks("granite stone", &changes).len(), expected, "{max_chunks}");
    }
    for chunk in &chunks {
        let texts = ["chunk_uuid", "source_id", "chunk_content", "source_type", "source_title"];
        assert!(
            texts.iter().all(|name| chunk[*name].as_str().is_some_and(|text| !text.is_empty()))
        );
        for name in ["source_upload_time", "source_last_updated_time"] {
            assert!(chunk[name].as_str().unwrap().parse::<f64>().unwrap() > 1e9, "{chunk}");
        }
        assert_eq!((&chunk["graph_triplet_ids"], &chunk["version"]), (&json!([]), &json!("v1")));
        assert_eq!((&chunk["source_url"], &chunk["source_collection"]), (&json!(""), &json!([])));
        assert_eq!((&chunk["extra_context"], &chunk["rerank_score"]), (&json!(null), &json!(null)));
        assert_eq!(chunk["document_metadata"], json!({}));
        assert_eq!(chunk["tenant_metadata"], json!({}));
    }
}

/// Goal: a document that fills the candidates of both legs leaves room for other sources under the
/// limit per source, at every weight and mode, and for a question in parts.
#[test]
fn a_limit_a_source_still_gives_as_many_chunks_as_were_asked_for() {
    let server = TestServer::start();
    let large = "granite stone of the northern quarry wall ".repeat(10_000);
    let mut items = vec![json!({"file_id": "large", "content": large})];
    items.extend((0..12).map(|n| {
        let content = format!("Note {n} of the mason in summer, on stone and on his dog.");
        json!({"file_id": format!("s{n}"), "content": content})
    }));
    server.index_items("acme", "default", &items);
    let query = "granite stone of the northern quarry wall";
    for (most, alpha, mode) in [
        (1, json!(0.8), "fast"),
        (1, json!(0), "fast"),
        (1, json!(1), "accurate"),
        (3, json!("auto"), "accurate"),
    ] {
        let changes = json!({"max_chunks_per_source": most, "alpha": alpha, "mode": mode,
            "max_chunks": 12});
        let ids = ids_of(&server.chunks(query, &changes));
        assert_eq!(ids.len(), 12, "{changes}: {ids:?}");
        let of_large = ids.iter().filter(|id| *id == "large").count();
        assert_eq!((of_large, ids[0].as_str()), (most, "large"), "{changes}");
        let unlimited = server.chunks(query, &json!({"alpha": alpha, "mode": mode}));
        assert!(ids_of(&unlimited).iter().all(|id| id == "large"), "{changes}");
    }
}

/// Goal: `metadata` reports how the search was executed.
#[test]
fn the_metadata_of_a_search_tells_what_was_done() {
    let server = TestServer::start();
    server.index_items("acme", "default", &stones(12));
    let changes = json!({"max_chunks": 5, "alpha": 0.25, "recency_bias": 0.5});
    let reply = server.ask("retrieve", "granite", &changes);
    let told = reply.ok()["metadata"].clone();
    let request_id = reply.headers["x-request-id"].to_str().unwrap();
    assert_eq!(told["request_id"], request_id);
    assert_eq!((&told["mode"], &told["alpha"]), (&json!("fast"), &json!(0.25)));
    assert_eq!((&told["alpha_mode"], &told["recency_bias"]), (&json!("fixed"), &json!(0.5)));
    assert_eq!((&told["max_chunks"], &told["returned"]), (&json!(5), &json!(5)));
    let candidates = json!({"semantic": 12, "keyword": 4, "fused": 12});
    assert_eq!(told["candidates"], candidates);
    assert_eq!((&told["filtered"], &told["personalised"]), (&json!(false), &json!(false)));
    assert_eq!((&told["reranker"], &told["memories_used"]), (&json!(null), &json!([])));
    assert_eq!(told["graph"], json!({"entity_paths": 0, "chunk_triplets": 0, "reason": null}));
    assert_eq!((&told["degraded"], told["embedding_model"].is_string()), (&json!([]), true));
    // There are too few rows for a scan to pay off.
    assert_eq!(told["vector_paths"], json!(["gather"]));
    let times = told["timings_ms"].as_object().unwrap();
    let stages = ["embed", "semantic", "keyword", "fuse", "rerank", "graph", "total"];
    assert_eq!(times.len(), stages.len());
    assert!(stages.iter().all(|stage| times[*stage].as_f64().is_some_and(|ms| ms >= 0.0)));
    let filter = json!({"document_metadata": {"x": 1}});
    let told = server.ask("retrieve", "granite", &filter).ok()["metadata"].clone();
    assert_eq!((&told["filtered"], &told["returned"]), (&json!(true), &json!(0)));
}

/// Goal: the candidate pool is never smaller than `max_chunks`.
#[test]
fn max_chunks_is_honoured_beyond_the_pool() {
    let server = TestServer::start();
    server.index_items("acme", "default", &stones(330));
    for changes in [
        json!({}),
        json!({"alpha": 0.01}),
        json!({"alpha": 1}),
        json!({"alpha": "auto"}),
        json!({"mode": "accurate"}),
        json!({"recency_bias": 1}),
    ] {
        for max_chunks in [100, 101, 250, 330, 1001] {
            let mut changes = changes.clone();
            changes["max_chunks"] = json!(max_chunks);
            let chunks = server.chunks("granite", &changes);
            let expected = max_chunks.min(330);
            assert_eq!((chunks.len(), id_set(&chunks).len()), (expected, expected), "{changes}");
        }
    }
    let by_words = json!({"alpha": 0, "max_chunks": 1001});
    assert_eq!(server.chunks("granite", &by_words).len(), 110, "every third and no other");
    assert_eq!(server.words("granite", &json!({"max_chunks": 1001})).len(), 110);
    let some: Vec<String> = (100..300).map(|n| format!("s{n}")).collect();
    let within = json!({"context_list": some, "max_chunks": 150});
    assert_eq!(server.chunks("granite", &within).len(), 150);
    let answered = server.qna("granite?", &json!({"top_n": 200}));
    assert_eq!(list(&answered, "chunks").len(), 200);
}

/// Goal: `alpha` shifts the weight between semantic and keyword search.
#[test]
fn alpha_chooses_between_meaning_and_words() {
    let server = TestServer::start();
    // The test model considers only identical words similar; keyword search matches stems and
    // ignores stop words as long as other words remain.
    server.index("acme", "default", "near", "of the of the of it");
    server.index("acme", "default", "stem", "A lone connection stands somewhere quite else.");
    server.index("acme", "default", "none", "Weather report: clouds, rain, later sun.");
    let query = "of the connected";
    let order = |alpha: Value| ids_of(&server.chunks(query, &json!({"alpha": alpha})));
    assert_eq!(order(json!(0)), ["stem"], "its analysed form counts");
    assert_eq!(order(json!(1)).len(), 3);
    assert_eq!(order(json!(1))[0], "near");
    assert_eq!(order(json!(0.05))[0], "stem");
    assert_eq!(order(json!("1")), order(json!(1.0)));
    let plain =
        |alpha: Value| timeless(server.ask("retrieve", query, &json!({"alpha": alpha})).ok());
    assert_eq!(plain(json!("0.8")), plain(json!(0.8)));
    assert_eq!(plain(json!(null)), plain(json!(0.8)), "0.8 is the default");
    assert_ne!(plain(json!(0.3))["chunks"], plain(json!(0.8))["chunks"]);
}

/// Goal: at `alpha` 0 a term may match in searchable metadata, but in no other metadata.
#[test]
fn at_alpha_0_a_term_may_stand_in_searchable_metadata() {
    let server = TestServer::start();
    let schema = json!({"tenant_metadata_schema": [
        {"key": "team", "type": "string", "searchable": true},
        {"key": "room", "type": "string"},
    ]});
    server.post("/user/create_tenant?tenant_id=acme", schema).ok();
    let item = |id: &str, team: &str, room: &str| {
        json!({"file_id": id, "content": "Minutes of a meeting.",
            "tenant_metadata": {"team": team, "room": room}})
    };
    let items = [item("a", "aeronautics", "cellar"), item("b", "kitchen", "aeronautics")];
    server.index_items("acme", "default", &items);
    let found = server.chunks("aeronautics", &json!({"alpha": 0}));
    assert_eq!(ids_of(&found), ["a"]);
    assert_eq!(found[0]["chunk_content"], "Minutes of a meeting.");
}

/// Goal: `auto` reports the `alpha` it chose, and chooses it from the query alone.
#[test]
fn auto_reports_the_number_it_took() {
    let server = TestServer::start();
    server.index_items("acme", "default", &stones(3));
    let chosen = |query: &str| {
        let told = server.ask("retrieve", query, &json!({"alpha": "auto"})).ok();
        assert_eq!(told["metadata"]["alpha_mode"], "auto", "{query}");
        let alpha = told["metadata"]["alpha"].as_f64().expect("a number");
        assert!((0.0..=1.0).contains(&alpha), "{query}: {alpha}");
        // The reported number is the one used: passing it explicitly gives the same chunks.
        let fixed = server.ask("retrieve", query, &json!({"alpha": alpha})).ok();
        assert_eq!(fixed["chunks"], told["chunks"], "{query}");
        alpha
    };
    let question = chosen("Which of the stones in the wall are from the northern quarry?");
    assert!(chosen("ERR_4012") < question);
    for plain in ["\"northern quarry\"", "granite", "FY2018"] {
        assert_eq!(chosen(plain), question, "{plain}");
    }
    assert_eq!(chosen("granite"), chosen("granite"), "a rule, not a guess");
}

/// Goal: of equal texts the newer comes first; years matter, minutes do not.
#[test]
fn recency_weighs_the_date_of_the_document() {
    let server = TestServer::start();
    let upload = |id: &str, content: &str, date: &str| {
        let body = json!({"content": content, "file_id": id, "source_time": date});
        server.post("/upload/upload_text?tenant_id=acme", body).ok();
        server.settled("acme", "default", id);
    };
    let text = "Granite stands the test of time.";
    // Uploaded newest first, to show that the document's date counts and not the upload time.
    for (id, date) in [("new", "2026-06-01"), ("middle", "2025-06-01"), ("old", "2016-06-01")] {
        upload(id, text, &format!("{date}T00:00:00Z"));
    }
    upload("newest", "Rain in the evening.", "2026-07-01T00:00:00Z");
    let at = |bias: Value| server.chunks("granite time", &json!({"recency_bias": bias}));
    let plain = server.chunks("granite time", &json!({}));
    assert_eq!(at(json!(0)), plain, "0 is as if it were not there");
    assert_eq!(at(json!(null)), plain);
    let score = |chunks: &[Value], id: &str| {
        scores_of(chunks)[ids_of(chunks).iter().position(|other| other == id).unwrap()]
    };
    for bias in [0.3_f64, 0.5, 1.0] {
        let chunks = at(json!(bias));
        let lead = 1.0 - 0.1 * (bias - 0.5).max(0.0);
        for (id, days) in [("middle", 365.0), ("old", 3652.0)] {
            let expected = (1.0 - 0.4 * bias * days / (days + 180.0)) * lead;
            let factor = score(&chunks, id) / score(&plain, id);
            assert!((factor - expected).abs() < 1e-5, "{id} at {bias}: {factor}, not {expected}");
        }
        for id in ["new", "newest"] {
            assert_eq!(score(&chunks, id), score(&plain, id), "{id} at {bias}");
        }
        assert_eq!(ids_of(&chunks), ["new", "middle", "old", "newest"], "at {bias}");
    }
    // Recency does not add documents that do not match.
    let by_words = server.chunks("granite", &json!({"alpha": 0, "recency_bias": 1}));
    assert_eq!(ids_of(&by_words), ["new", "middle", "old"]);
}

/// Goal: sources stored within minutes are ranked by their text; a copy precedes its older
/// original.
#[test]
fn minutes_do_not_outweigh_relevance() {
    let (server, clock) = server_and_clock();
    let texts = [
        ("best", "Granite stands the test of time."),
        ("less", "Granite is sold by the ton in the yard behind the railway station."),
        ("copy", "Granite stands the test of time."),
        ("none", "Rain in the evening."),
    ];
    for (id, text) in texts {
        server.index("acme", "default", id, text);
        clock.advance_millis(1_000);
    }
    for bias in [0.3, 0.5, 0.6, 0.8, 1.0] {
        let found = ids_of(&server.chunks("granite time", &json!({"recency_bias": bias})));
        assert_eq!(found, ["copy", "best", "less", "none"], "at {bias}");
    }
}

/// Goal: a replaced source is as new as its replacement.
#[test]
fn a_replacement_is_as_new_as_its_upload() {
    let (server, clock) = server_and_clock();
    for id in ["a", "b", "a"] {
        server.index("acme", "default", id, "Granite stands the test of time.");
        clock.advance_millis(60_000);
    }
    let order = ids_of(&server.chunks("granite", &json!({"recency_bias": 1})));
    assert_eq!(order, ["a", "b"]);
    let changes = json!({"tenant_id": "acme", "source_id": "b", "document_metadata": {"n": 1}});
    server.call("PATCH", "/upload/update_metadata", changes).ok();
    let order = ids_of(&server.chunks("granite", &json!({"recency_bias": 1})));
    assert_eq!(order, ["a", "b"], "a change of metadata makes no text newer");
}

/// Goal: ties go to the newer source, then to the smaller `chunk_uuid`; the cut at `max_chunks`
/// follows that order in every search.
#[test]
fn ties_go_to_the_newer_source_then_by_chunk_id() {
    let (server, clock) = server_and_clock();
    let name = |n: usize| format!("t{n}");
    for n in 0..6 {
        server.index("acme", "default", &name(n), "Granite stands the test of time.");
        clock.advance_millis(60_000);
    }
    let newest_first: Vec<String> = (0..6).rev().map(name).collect();
    for max_chunks in 1..=6 {
        for changes in [json!({}), json!({"alpha": 0}), json!({"alpha": 1})] {
            let mut changes = changes;
            changes["max_chunks"] = json!(max_chunks);
            let found = ids_of(&server.chunks("granite time", &changes));
            assert_eq!(found, newest_first[..max_chunks], "{changes}");
        }
        let found = ids_of(&server.words("granite time", &json!({"max_chunks": max_chunks})));
        assert_eq!(found, newest_first[..max_chunks], "full text, {max_chunks}");
    }
    // All are uploaded within the same millisecond of the clock.
    for n in 0..6 {
        server.index("acme", "default", &name(n), "Granite stands the test of time.");
    }
    for chunks in
        [server.chunks("granite time", &json!({})), server.words("granite time", &json!({}))]
    {
        let uuids: Vec<&str> =
            chunks.iter().map(|chunk| chunk["chunk_uuid"].as_str().unwrap()).collect();
        assert_eq!(uuids.len(), 6);
        assert!(uuids.is_sorted(), "{uuids:?}");
    }
}

/// Goal: more equal texts than the pool holds do not change the order of ties.
#[test]
fn ties_beyond_the_pool_go_to_the_newer_source_too() {
    let (server, clock) = server_and_clock();
    let text = "Granite stands the test of time.";
    let items: Vec<Value> =
        (0..130).map(|n| json!({"file_id": format!("old{n}"), "content": text})).collect();
    server.index_items("acme", "default", &items);
    clock.advance_millis(60_000);
    server.index("acme", "default", "new", text);
    for changes in [json!({}), json!({"alpha": 0}), json!({"alpha": 1}), json!({"recency_bias": 1})]
    {
        assert_eq!(ids_of(&server.chunks("granite", &changes))[0], "new", "{changes}");
    }
    assert_eq!(ids_of(&server.words("granite", &json!({"max_chunks": 1})))[0], "new");
}

/// Goal: `extra_context` steers the semantic side, and none of its words are required.
#[test]
fn extra_context_steers_meaning_and_requires_nothing() {
    let server = TestServer::start();
    server.index("acme", "default", "river", "The bank of the river is muddy.");
    server.index("acme", "default", "money", "The bank lends money at interest.");
    let first = |changes: Value| ids_of(&server.chunks("bank", &changes))[0].clone();
    assert_eq!(first(json!({"alpha": 1, "extra_context": "muddy river"})), "river");
    assert_eq!(first(json!({"alpha": 1, "extra_context": "money at interest"})), "money");
    let by_words = |changes: Value| server.chunks("muddy", &changes);
    let plain = by_words(json!({"alpha": 0}));
    assert_eq!(ids_of(&plain), ["river"]);
    assert_eq!(by_words(json!({"alpha": 0, "extra_context": "money interest"})), plain);
    for nothing in [json!(null), json!(""), json!(" \n")] {
        let changes = json!({"alpha": 1, "extra_context": nothing});
        assert_eq!(server.chunks("bank", &changes), server.chunks("bank", &json!({"alpha": 1})));
    }
    let long = json!({"extra_context": "x".repeat(16_385)});
    server.ask("retrieve", "bank", &long).error(400, "invalid_value");
    server.ask("retrieve", "bank", &json!({"extra_context": "x".repeat(16_384)})).ok();
}

/// Goal: both modes are deterministic on unchanged data and respect the same bounds.
#[test]
fn both_modes_give_the_same_answer_twice() {
    let server = TestServer::start();
    server.index_items("acme", "default", &stones(40));
    for mode in ["fast", "accurate"] {
        for alpha in [json!(0), json!(0.8), json!(1), json!("auto")] {
            let changes = json!({"mode": mode, "alpha": alpha, "max_chunks": 20});
            let once = timeless(server.ask("retrieve", "granite from the quarry", &changes).ok());
            let twice = timeless(server.ask("retrieve", "granite from the quarry", &changes).ok());
            assert_eq!(once, twice, "{changes}");
            let scores = scores_of(&list(&once, "chunks"));
            assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{changes}");
            assert!(scores.is_sorted_by(|a, b| a >= b), "{changes}: {scores:?}");
            assert_eq!(once["metadata"]["mode"], mode);
            let lacks = once["metadata"]["degraded"] == json!(["reranker_unavailable"]);
            assert_eq!(lacks, mode == "accurate", "only accurate asks for a reranker");
        }
        let changes = json!({"mode": mode, "alpha": 0, "max_chunks": 100});
        let chunks = server.chunks("granite", &changes);
        let holds = |chunk: &Value| chunk["chunk_content"].as_str().unwrap().contains("granite");
        assert_eq!((chunks.len(), chunks.iter().all(holds)), (14, true), "{mode}");
    }
}

/// Goal: searches of an empty tenant and of an unknown sub-tenant return empty results.
#[test]
fn an_empty_scope_answers_with_nothing() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    for sub_tenant in ["default", "nowhere"] {
        let place = json!({"sub_tenant_id": sub_tenant, "alpha": "auto", "mode": "accurate"});
        assert!(server.chunks("granite", &place).is_empty());
        assert!(server.words("granite", &place).is_empty());
        let answered = server.qna("granite?", &place);
        assert_eq!((&answered["sources"], &answered["chunks"]), (&json!([]), &json!([])));
        assert!(answered["answer"].as_str().is_some_and(|answer| !answer.is_empty()));
    }
}

/// Goal: scores depend only on the current content of the scope: neither other scopes nor deleted
/// sources count in its statistics.
#[test]
fn scores_rest_on_what_the_scope_holds() {
    let server = TestServer::start();
    let told = |sub_tenant: &str| {
        let place = json!({"sub_tenant_id": sub_tenant, "max_chunks": 100});
        let pair = |chunk: &Value| (chunk["source_id"].clone(), chunk["relevancy_score"].clone());
        let by_words: Vec<_> = server.words("granite wall", &place).iter().map(pair).collect();
        let both: Vec<_> = server.chunks("granite wall", &place).iter().map(pair).collect();
        assert_eq!((by_words.len(), both.len()), (9, 9), "{sub_tenant}");
        (by_words, both)
    };
    server.index_items("acme", "alone", &stones(9));
    let alone = told("alone");
    server.index_items("acme", "default", &stones(60));
    server.index_items("other", "alone", &stones(30));
    assert_eq!(told("alone"), alone, "other scopes came");
    server.index_items("acme", "shrunk", &stones(30));
    let gone: Vec<String> = (9..30).map(|n| format!("s{n}")).collect();
    let body = json!({"tenant_id": "acme", "sub_tenant_id": "shrunk", "source_ids": gone});
    server.call("DELETE", "/delete_source", body).ok();
    let mut shrunk = told("shrunk");
    let mut expected = alone;
    // Ties are ordered by chunk id, and the chunk ids differ.
    for pairs in [&mut shrunk.0, &mut shrunk.1, &mut expected.0, &mut expected.1] {
        pairs.sort_by_key(|(id, _)| id.to_string());
    }
    assert_eq!(shrunk, expected, "deleted sources do not count");
}

/// Goal: with `join_neighbours`, neighbouring chunks become one result with the source's own text,
/// the freed slots are filled, and ids remain those of chunks.
#[test]
fn neighbours_of_a_source_become_one_result() {
    let server = TestServer::start();
    let words = |count: usize| {
        let word = |n: usize| if n % 20 == 19 { format!("granite{n}.") } else { format!("w{n}") };
        (0..count).map(word).collect::<Vec<_>>().join(" ") + " granite."
    };
    let (short, long) = (words(450), words(2200));
    let mut items = vec![
        json!({"file_id": "short", "content": format!("granite {short}")}),
        json!({"file_id": "long", "content": format!("granite {long}")}),
    ];
    items.extend(stones(12));
    server.index_items("acme", "default", &items);
    let ask = |join: Value, most: usize| {
        let body = json!({"join_neighbours": join, "max_chunks": most, "alpha": 1});
        server.chunks("granite w1 w2", &body)
    };
    let of = |chunks: &[Value], id: &str| -> Vec<Value> {
        chunks.iter().filter(|chunk| chunk["source_id"] == id).cloned().collect()
    };
    let apart = ask(json!(false), 100);
    assert!(apart.iter().all(|chunk| chunk["joined"] == json!([])));
    assert_eq!(of(&apart, "short").len(), 3);
    let long_chunks = of(&apart, "long").len();
    assert!(long_chunks > 8, "{long_chunks}");

    for join in [json!("auto"), json!(null)] {
        let found = ask(join, 100);
        let joined = of(&found, "short");
        assert_eq!(joined.len(), 1);
        let text = joined[0]["chunk_content"].as_str().unwrap();
        assert_eq!(text, format!("granite {short}"));
        let ids = list(&joined[0], "joined");
        assert_eq!(ids.len(), 3);
        assert!(ids.contains(&joined[0]["chunk_uuid"]));
        let best = of(&apart, "short")[0].clone();
        assert_eq!(joined[0]["chunk_uuid"], best["chunk_uuid"]);
        assert_eq!(joined[0]["relevancy_score"], best["relevancy_score"]);
        assert_eq!(of(&found, "long").len(), long_chunks, "a long source");
    }
    let joined = ask(json!(true), 100);
    let bounded = of(&joined, "long");
    assert!(bounded.len() < long_chunks && bounded.iter().all(|c| list(c, "joined").len() <= 8));
    assert_eq!(ask(json!(true), 5).len(), 5, "the room is filled");
    let limited = json!({"join_neighbours": true, "max_chunks_per_source": 2, "max_chunks": 8});
    let limited = server.chunks("granite", &limited);
    let chunks_of_long: usize =
        of(&limited, "long").iter().map(|c| list(c, "joined").len().max(1)).sum();
    assert!(chunks_of_long <= 2, "the limit counts chunks");
    let refused = server.ask("retrieve", "granite", &json!({"join_neighbours": "maybe"}));
    assert!(refused.error(400, "invalid_value").to_string().contains("join_neighbours"));
}
