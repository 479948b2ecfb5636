//! Full-text search: whole words and how they combine (API 3.5 #25, 8.14), and where a chunk
//! stands in its text (4.4).

use serde_json::{Value, json};

use crate::corpus::{id_set, ids_of, list, scores_of};
use crate::support::{Part, TestServer};

/// A server with one source a text, `t0` and on.
fn with_texts(texts: &[&str]) -> TestServer {
    let server = TestServer::start();
    let item = |(n, text): (usize, &&str)| json!({"file_id": format!("t{n}"), "content": text});
    let items: Vec<Value> = texts.iter().enumerate().map(item).collect();
    server.index_items("acme", "default", &items);
    server
}

/// Statement 41: a bare array, 25 chunks unless told, best first.
#[test]
fn full_text_search_is_a_bare_array_of_25_unless_told() {
    let texts: Vec<String> = (1..=30).map(|n| format!("wall {}", "stone ".repeat(n))).collect();
    let server = with_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let found = server.words("stone", &json!({}));
    assert_eq!((found.len(), id_set(&found).len()), (25, 25));
    let scores = scores_of(&found);
    assert!(scores.iter().all(|score| *score >= 0.0), "{scores:?}");
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    for (max_chunks, expected) in [(json!(1), 1), (json!(null), 25), (json!(1001), 30)] {
        assert_eq!(server.words("stone", &json!({"max_chunks": max_chunks})).len(), expected);
    }
    for max_chunks in [0, 1002] {
        let changes = json!({"max_chunks": max_chunks});
        server.ask("full-text-search", "stone", &changes).error(400, "invalid_value");
    }
    let whole = ["chunk_uuid", "source_id", "chunk_content", "source_type", "source_title"];
    assert!(whole.iter().all(|name| found[0][*name].as_str().is_some_and(|text| !text.is_empty())));
    for name in ["source_upload_time", "source_last_updated_time", "source_url", "version"] {
        assert!(found[0][name].is_string(), "{name}");
    }
    for name in ["graph_triplet_ids", "source_collection"] {
        assert_eq!(found[0][name], json!([]), "{name}");
    }
}

/// Statement 41: `and` wants all terms, `or` one; `or` is the default; any letter case.
#[test]
fn operators_combine_whole_words() {
    let server = with_texts(&["red apples fall", "red pears fall", "green apples rot"]);
    let found =
        |query: &str, operator: Value| id_set(&server.words(query, &json!({"operator": operator})));
    for either in [json!("or"), json!("OR"), json!("Or"), json!(null)] {
        assert_eq!(found("red rot", either), ["t0", "t1", "t2"]);
    }
    assert_eq!(id_set(&server.words("red rot", &json!({}))), ["t0", "t1", "t2"]);
    for all in [json!("and"), json!("AND"), json!("aNd")] {
        assert_eq!(found("red apples", all.clone()), ["t0"]);
        assert_eq!(found("apples, APPLES!", all.clone()), ["t0", "t2"]);
        assert!(found("red apples nowhere", all).is_empty());
    }
    assert_eq!(found("nowhere pears", json!("or")), ["t1"]);
    for wrong in [json!("xor"), json!("and "), json!("andor"), json!(1)] {
        let changes = json!({"operator": wrong});
        server.ask("full-text-search", "red", &changes).error(400, "invalid_value");
    }
}

/// Point 3.5 #25: whole words after normalisation and case folding, alike in index and query.
#[test]
fn words_are_whole_and_folded() {
    let server = with_texts(&[
        "The pineapple and the APPLE.",
        "Applesauce, apples.",
        "In der STRASSE steht ein café.",
        "In der straße steht ein cafe\u{301}.",
        "\u{ff21}\u{ff30}\u{ff30}\u{ff2c}\u{ff25} \u{fb01}le",
        "The cafe of no accent.",
    ]);
    let found = |query: &str| id_set(&server.words(query, &json!({})));
    for query in ["apple", "Apple", "APPLE", "\u{ff41}pple", " (apple)! "] {
        assert_eq!(found(query), ["t0", "t4"], "{query}");
    }
    assert_eq!(found("apples"), ["t1"], "no stems here");
    assert_eq!(found("pineapple"), ["t0"]);
    assert!(found("appl").is_empty());
    assert_eq!(found("Straße"), found("strasse"));
    assert_eq!(found("strasse"), ["t2", "t3"]);
    assert_eq!(found("CAFE\u{301}"), ["t2", "t3"]);
    assert_eq!(found("café"), ["t2", "t3"]);
    assert_eq!(found("cafe"), ["t5"], "an accent is part of the word");
    assert_eq!(found("file"), ["t4"]);
    assert_eq!(found("the"), ["t0", "t5"], "a common word is a word");
}

/// A word with marks inside is found as a whole and by what stands between them.
#[test]
fn words_are_found_by_their_pieces_too() {
    let server =
        with_texts(&["Status:urgent since Monday", "see src/main.rs:12", "the main thing"]);
    let found = |query: &str| id_set(&server.words(query, &json!({"operator": "and"})));
    for query in ["urgent", "status", "Status:urgent", "STATUS Monday"] {
        assert_eq!(found(query), ["t0"], "{query}");
    }
    assert_eq!(found("main.rs"), ["t1"], "the whole is meant");
    assert_eq!(found("main"), ["t1", "t2"]);
    assert_eq!(found("rs 12"), ["t1"]);
    assert!(found("status:late").is_empty());
}

/// Point 3.5 #25: without word characters there is nothing to find.
#[test]
fn a_query_without_word_characters_finds_nothing() {
    let server = with_texts(&["apples?! -- & *", "..."]);
    for query in ["?", "!!!", "-- &", "*", "\u{2026} \u{201c}\u{201d}", "\u{1f34f}"] {
        for operator in ["or", "and"] {
            let found = server.words(query, &json!({"operator": operator}));
            assert!(found.is_empty(), "{query}: {found:?}");
        }
    }
    for blank in ["", " ", "\n\t"] {
        assert_eq!(server.ask("full-text-search", blank, &json!({})).status, 400);
    }
    assert_eq!(server.words("apples ?", &json!({"operator": "and"})).len(), 1);
}

/// Point 8.14: in scripts without spaces a run matches where the same run stands.
#[test]
fn runs_without_spaces_match_where_the_same_run_stands() {
    let server = with_texts(&[
        "今日は東京都の天気です",
        "京都は古い町",
        "天空の気球",
        "สวัสดีชาวโลก",
        "GPUの価格",
    ]);
    let found =
        |query: &str, operator: &str| id_set(&server.words(query, &json!({"operator": operator})));
    let weather = "天気";
    assert_eq!(found(weather, "or"), ["t0"], "both characters alone stand in t2");
    assert_eq!(found("天", "or"), ["t0", "t2"], "one character matches itself");
    assert_eq!(found("京都", "or"), ["t0", "t1"], "wherever the run stands");
    assert_eq!(found("東京都", "or"), ["t0"]);
    assert!(found("都京", "or").is_empty(), "order counts");
    let two = "天気 古い";
    assert_eq!(found(two, "or"), ["t0", "t1"]);
    assert!(found(two, "and").is_empty());
    assert_eq!(found("天気 東京", "and"), ["t0"]);
    assert_eq!(found("ชาว", "or"), ["t3"]);
    assert_eq!(found("gpu 価格", "and"), ["t4"]);
}

/// The text of characters that a set of chunks covers, after checking that they agree.
fn laid_out(chunks: &[Value]) -> Vec<Option<char>> {
    let mut text: Vec<Option<char>> = Vec::new();
    for chunk in chunks {
        let layout = chunk["layout"].as_str().expect("a text");
        let layout: Value = serde_json::from_str(layout).expect("JSON in a string");
        let start = layout["offsets"]["document_level_start_index"].as_u64().expect("an index");
        assert!(layout["offsets"]["page_level_start_index"].is_u64(), "{layout}");
        assert_eq!(layout["page"], 1, "formats without pages have one");
        for (at, c) in chunk["chunk_content"].as_str().unwrap().chars().enumerate() {
            let at = start as usize + at;
            text.resize(text.len().max(at + 1), None);
            let before = text[at].replace(c);
            assert!(before.is_none_or(|before| before == c), "two chunks disagree at {at}");
        }
    }
    text
}

/// Statement 42: `layout` is JSON in a string whose offsets point at the chunk's text.
#[test]
fn offsets_point_at_the_text_of_the_chunk() {
    let server = TestServer::start();
    let sentence = |n: usize| format!("Satz {n}: \u{1f34f} fiel vom Baum, señor 天気 war gut.\n\n");
    let text: String = (0..120).map(sentence).collect();
    server.index("acme", "default", "long", &text);
    for chunks in [
        server.words("satz", &json!({"max_chunks": 1001})),
        server.chunks("satz", &json!({"max_chunks": 1001})),
        list(&server.qna("satz?", &json!({"top_n": 1001})), "chunks"),
    ] {
        assert!(chunks.len() > 5, "{} chunks", chunks.len());
        let laid_out = laid_out(&chunks);
        let mut covered = 0;
        for (at, c) in text.chars().enumerate() {
            match laid_out.get(at).copied().flatten() {
                Some(found) => {
                    assert_eq!(found, c, "at {at}");
                    covered += 1;
                }
                None => assert!(c.is_whitespace(), "{c:?} at {at} is in no chunk"),
            }
        }
        assert!(covered > text.chars().count() * 9 / 10, "{covered}");
    }
}

/// Statement 42: in formats with markup the chunks of one text agree about their places.
#[test]
fn offsets_of_one_document_agree_with_each_other() {
    let server = TestServer::start();
    let row = |n: usize| format!("<p>Row {n} \u{1f34f} of <b>many</b> &amp; more</p>");
    let html: String = (0..200).map(row).collect();
    let csv: String = (0..200).map(|n| format!("{n},row of many,\"a, b\"\n")).collect();
    let markdown: String = (0..100).map(|n| format!("# Row {n}\n\nof *many*\n\n- x\n")).collect();
    let csv = format!("number,text,pair\n{csv}");
    for (name, text) in [("a.html", html), ("b.csv", csv), ("c.md", markdown)] {
        let parts: [Part<'_>; 2] =
            [("file", Some(name), text.as_bytes()), ("file_id", None, name.as_bytes())];
        server.form("POST", "/upload/upload_document?tenant_id=acme", &parts).ok();
        assert_eq!(server.settled("acme", "default", name)["status"], "success", "{name}");
        let within = json!({"context_list": [name], "max_chunks": 1001});
        let chunks = server.chunks("row", &within);
        assert!(chunks.len() > 2, "{name}: {} chunks", chunks.len());
        let text: String = laid_out(&chunks).into_iter().flatten().collect();
        for n in [0, 1, 99] {
            assert!(text.contains(&n.to_string()), "{name}: {n} is in no chunk");
        }
    }
}

/// Point 8.18: U+0000 becomes U+FFFD in the indexed text, and offsets still count.
#[test]
fn a_nul_is_indexed_as_a_replacement_character() {
    let server = with_texts(&["apples\u{0}fall far"]);
    let found = server.words("fall", &json!({}));
    assert_eq!(ids_of(&found), ["t0"]);
    assert_eq!(found[0]["chunk_content"], "apples\u{fffd}fall far");
    let fetch = json!({"tenant_id": "acme", "file_id": "t0"});
    let original = server.post("/fetch/fetch_content", fetch).ok();
    assert_eq!(original["file_content"], "apples\u{0}fall far");
}
