//! Full-text search: whole words, the operators that combine them, and a chunk's position in its
//! text.

use serde_json::{Value, json};

use crate::corpus::{id_set, ids_of, list, scores_of};
use crate::support::{Part, TestServer};

/// Starts a server with one source per text, named `t0`, `t1` and so on.
fn with_texts(texts: &[&str]) -> TestServer {
    let server = TestServer::start();
    let item = |(n, text): (usize, &&str)| json!({"file_id": format!("t{n}"), "content": text});
    let items: Vec<Value> = texts.iter().enumerate().map(item).collect();
    server.index_items("acme", "default", &items);
    server
}

/// Goal: the result is a bare array, 25 chunks by default, best first.
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

/// Goal: `and` requires all terms and `or`, the default, any of them; the operator's case is
/// ignored.
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

/// Goal: words match as a whole after normalization and case folding, both in the index and in the
/// query.
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
    assert_eq!(found("CAFE\u{301}"), ["t2", "t3", "t5"]);
    assert_eq!(found("café"), ["t2", "t3", "t5"], "diacritics are folded");
    assert_eq!(found("cafe"), ["t2", "t3", "t5"]);
    assert_eq!(ids_of(&server.words("cafe", &json!({})))[0], "t5", "the form as written first");
    assert_eq!(ids_of(&server.words("café", &json!({})))[2], "t5", "the form as written first");
    assert_eq!(found("file"), ["t4"]);
}

/// Goal: stop words count only if the query has no other words or all words are required.
#[test]
fn common_words_count_where_nothing_else_is_left() {
    let server = with_texts(&["the apple of it", "the pear", "to be or not to be"]);
    let found = |query: &str| id_set(&server.words(query, &json!({})));
    assert_eq!(found("the apple"), ["t0"]);
    assert_eq!(found("the"), ["t0", "t1"]);
    assert_eq!(found("to be or not to be"), ["t2"]);
    let all = json!({"operator": "and"});
    assert_eq!(id_set(&server.words("the pear", &all)), ["t1"]);
    assert!(server.words("the pears", &all).is_empty());
    assert_eq!(id_set(&server.words("pear th", &json!({"prefix": true}))), ["t0", "t1"]);
}

/// Goal: misspelt words and prefixes match only on request.
#[test]
fn misspelt_and_unfinished_words_are_found_where_asked_for() {
    let server = with_texts(&[
        "The boundary layer separates.", "Boundaries of the parish.", "Order 4711 of unit AB12",
        "Order 4712 of unit AB13", "A cat sat.",
    ]);
    let found = |query: &str, changes: Value| id_set(&server.words(query, &changes));
    for off in [json!({}), json!({"fuzzy": false}), json!({"fuzzy": null})] {
        assert!(found("bondary", off).is_empty());
    }
    for on in [json!("auto"), json!(1), json!("2")] {
        assert_eq!(found("bondary", json!({"fuzzy": on})), ["t0"], "{on}");
    }
    assert_eq!(found("bounadry", json!({"fuzzy": 1})), ["t0"], "swapped letters are one edit");
    assert!(found("cta", json!({"fuzzy": "auto"})).is_empty(), "short words are not forgiven");
    assert_eq!(found("cta", json!({"fuzzy": 1})), ["t4"]);
    assert_eq!(found("4711", json!({"fuzzy": 2})), ["t2"], "numbers are exact");
    assert_eq!(found("ab12", json!({"fuzzy": 2})), ["t2"], "identifiers are exact");
    let both = server.words("boundary", &json!({"fuzzy": 2, "prefix": true}));
    assert_eq!(ids_of(&both)[0], "t0", "the form as written first");
    assert!(found("bound", json!({})).is_empty());
    assert_eq!(found("bound", json!({"prefix": true})), ["t0", "t1"]);
    assert_eq!(found("layer bound", json!({"prefix": true, "operator": "and"})), ["t0"]);
    assert!(found("bound layer", json!({"prefix": true, "operator": "and"})).is_empty());
    for wrong in [json!(3), json!("maybe"), json!(true), json!(1.5)] {
        let changes = json!({"fuzzy": wrong});
        server.ask("full-text-search", "cat", &changes).error(400, "invalid_value");
    }
}

/// Goal: a query of a thousand words that are each similar to many, and a prefix of one letter, are
/// answered in bounded time without losing the rarest words.
#[test]
fn hostile_queries_are_bounded() {
    let words = |n: usize| -> String { (0..500).map(|w| format!("a{}x ", n * 500 + w)).collect() };
    let texts: Vec<String> = (0..8).map(words).collect();
    let server = with_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let begun = std::time::Instant::now();
    let long: String = (0..1000).map(|n| format!("abcdefg{n} ")).collect();
    for query in [long.as_str(), "a", &"aaaaaaaaab ".repeat(1000)] {
        let changes = json!({"fuzzy": 2, "prefix": true, "offset": 10_000, "facets": []});
        server.ask("full-text-search", query, &changes).ok();
    }
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(!server.words("a", &json!({"prefix": true})).is_empty());
}

/// Goal: a query of which not every word is required says so.
#[test]
fn queries_that_are_too_long_are_told_of() {
    let server = with_texts(&["red apples"]);
    let ask = |words: usize| {
        let query: String = (0..words).map(|n| format!("w{n} ")).collect();
        let changes = json!({"operator": "and", "facets": []});
        server.ask("full-text-search", &query, &changes).ok()["warnings"][0].clone()
    };
    assert_eq!(ask(256), Value::Null);
    let told = ask(257);
    assert_eq!((&told["code"], &told["field"]), (&json!("query_shortened"), &json!("query")));
    let run = "\u{673a}".repeat(257);
    let list = server.ask("full-text-search", &run, &json!({"operator": "and"}));
    assert!(list.headers.contains_key("x-lodestone-warnings"));
}

/// Goal: pages, totals and facet counts cover all matching chunks.
#[test]
fn pages_and_facets_count_all_that_matches() {
    let server = TestServer::start();
    let item = |n: usize| {
        let kind = if n.is_multiple_of(3) { "memo" } else { "plan" };
        let metadata = json!({"kind": kind, "year": 2020 + n % 2, "only": format!("v{n:03}")});
        json!({"file_id": format!("t{n:03}"), "content": format!("stone number {n}"),
            "document_metadata": metadata})
    };
    for items in (0..150).map(item).collect::<Vec<_>>().chunks(75) {
        server.index_items("acme", "default", items);
    }
    let ask = |changes: &Value| server.ask("full-text-search", "stone", changes).ok();
    let counted = json!({"facets": ["kind", "year", "only", "source_type", "none"]});
    let page = ask(&counted);
    assert_eq!((page["total"].as_u64(), page["next_offset"].as_u64()), (Some(150), Some(25)));
    assert_eq!(page["facets"]["kind"], json!({"memo": 50, "plan": 100}));
    assert_eq!(page["facets"]["year"], json!({"2020": 75, "2021": 75}));
    assert_eq!(page["facets"]["only"].as_object().unwrap().len(), 100);
    assert_eq!(page["facets"]["none"], json!({}));
    assert_eq!(page["facets_left_out"], json!({"only": 50}));
    let mut seen = Vec::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let page = ask(&json!({"facets": [], "offset": offset, "max_chunks": 40}));
        seen.extend(ids_of(&list(&page, "chunks")));
        offset = page["next_offset"].clone();
    }
    assert_eq!(seen, ids_of(&server.words("stone", &json!({"max_chunks": 1001}))));
    assert_eq!(server.words("stone", &json!({"offset": 149})).len(), 1);
    assert!(server.words("stone", &json!({"offset": 150})).is_empty());
    let memos = json!({"facets": ["year"], "document_metadata": {"kind": "memo"}});
    assert_eq!(ask(&memos)["facets"]["year"], json!({"2020": 25, "2021": 25}));
    let many: Vec<String> = (0..21).map(|n| format!("k{n}")).collect();
    for wrong in [json!({"offset": 10_001}), json!({"facets": many})] {
        assert_eq!(server.ask("full-text-search", "stone", &wrong).status, 400, "{wrong}");
    }
}

/// Goal: chunks report the scores of both legs, a confidence, and the positions of the matched
/// words.
#[test]
fn chunks_say_what_they_score_and_where_the_words_stand() {
    let server = with_texts(&["Der Caf\u{e9}-Besitzer: \u{1f34f} cafe", "A tea house with cake."]);
    let found = server.words("cafe", &json!({"highlights": true}));
    assert_eq!(found[0]["highlights"], json!([[4, 8], [21, 25]]));
    assert_eq!(found[0]["vector_score"], Value::Null);
    assert!(found[0]["keyword_score"].as_f64().is_some_and(|score| score > 0.0));
    assert!(found[0]["confidence"].as_f64().is_some_and(|sure| sure > 0.5), "{}", found[0]);
    assert!(server.words("cafe", &json!({}))[0].get("highlights").is_none());
    let foreign = "cafe astronomy telescope nebula galaxy";
    let all = server.words(foreign, &json!({}));
    assert!(all[0]["confidence"].as_f64().is_some_and(|sure| sure < 0.2), "{}", all[0]);
    assert!(server.words(foreign, &json!({"min_confidence": 0.5})).is_empty());
    assert_eq!(server.words("tea cake", &json!({"min_confidence": 0.5})).len(), 1);
    let retrieved = server.chunks("tea house cake", &json!({}));
    assert_eq!(retrieved.len(), 2);
    for chunk in &retrieved {
        assert!(chunk["vector_score"].is_number() && chunk["keyword_score"].is_number(), "{chunk}");
        let sure = chunk["confidence"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&sure));
    }
    assert!(retrieved[0]["confidence"].as_f64() > retrieved[1]["confidence"].as_f64());
    let some =
        server.chunks("tea house cake", &json!({"min_confidence": retrieved[0]["confidence"]}));
    assert_eq!(some.len(), 1);
    assert_eq!(server.chunks("tea", &json!({"alpha": 1}))[0]["keyword_score"], Value::Null);
    assert_eq!(server.chunks("tea", &json!({"alpha": 0}))[0]["vector_score"], Value::Null);
}

/// Goal: a word with punctuation inside is found as a whole and by its parts.
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

/// Goal: a query without word characters finds nothing.
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

/// Goal: in scripts without spaces a run of characters matches texts that contain two adjacent
/// ones, ranked by how much of the run they contain; with `and` they must contain all of it.
#[test]
fn runs_without_spaces_rank_by_how_much_of_them_stands() {
    let server = with_texts(&[
        "今日は東京都の天気です", "京都は古い町", "天空の気球", "สวัสดีชาวโลก", "GPUの価格",
    ]);
    let found =
        |query: &str, operator: &str| id_set(&server.words(query, &json!({"operator": operator})));
    let weather = "天気";
    assert_eq!(found(weather, "or"), ["t0"], "both characters alone stand in t2");
    assert_eq!(found("天", "or"), ["t0", "t2"], "one character matches itself");
    assert_eq!(found("京都", "or"), ["t0", "t1"], "wherever the run stands");
    assert_eq!(ids_of(&server.words("東京都", &json!({}))), ["t0", "t1"]);
    assert_eq!(found("東京都", "and"), ["t0"]);
    assert_eq!(found("京都の東京", "or"), ["t0", "t1"], "not in one piece");
    assert!(found("京都の東京", "and").is_empty());
    assert!(found("都京", "or").is_empty(), "order counts");
    let two = "天気 古い";
    assert_eq!(found(two, "or"), ["t0", "t1"]);
    assert!(found(two, "and").is_empty());
    assert_eq!(found("天気 東京", "and"), ["t0"]);
    assert_eq!(found("ชาว", "or"), ["t3"]);
    assert_eq!(found("gpu 価格", "and"), ["t4"]);
}

/// Goal: in Thai, which is written without spaces, nine of ten questions find their paragraph
/// first.
#[test]
fn questions_in_thai_find_their_paragraphs() {
    let pairs: Vec<(&str, &str)> = include_str!("thai.txt")
        .lines()
        .map(|line| line.split_once('\t').expect("a paragraph and its question"))
        .collect();
    let paragraphs: Vec<&str> = pairs.iter().map(|(paragraph, _)| *paragraph).collect();
    let server = with_texts(&paragraphs);
    let is_first = |(n, (_, question)): &(usize, &(&str, &str))| {
        ids_of(&server.words(question, &json!({}))).first() == Some(&format!("t{n}"))
    };
    let first = pairs.iter().enumerate().filter(is_first).count();
    println!("{first} of {} questions find their paragraph first", pairs.len());
    assert!(first * 10 >= pairs.len() * 9, "{first} of {}", pairs.len());
}

/// Reassembles the part of a text that a set of chunks covers, after checking that they agree.
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

/// Goal: `layout` is JSON in a string, and its offsets locate the chunk's text.
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

/// Goal: in formats with markup the offsets of all chunks of a document are consistent.
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
        let within = json!({"context_list": [name], "max_chunks": 1001, "join_neighbours": false});
        let chunks = server.chunks("row", &within);
        assert!(chunks.len() > 2, "{name}: {} chunks", chunks.len());
        let text: String = laid_out(&chunks).into_iter().flatten().collect();
        for n in [0, 1, 99] {
            assert!(text.contains(&n.to_string()), "{name}: {n} is in no chunk");
        }
    }
}

/// Goal: U+0000 becomes U+FFFD in the indexed text, and offsets remain correct.
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
