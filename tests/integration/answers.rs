//! Unstreamed answers: their format, and the sources that support them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::corpus::{id_set, ids_of, list, scores_of, timeless, with};
use crate::support::TestServer;

const QUESTION: &str = "Who designed the Eiffel Tower?";

/// Three short sources about towers and a long one of several chunks.
fn towers() -> TestServer {
    let server = TestServer::start();
    let long: String =
        (0..60).map(|n| format!("Report {n}: the tower was painted again by team {n}. ")).collect();
    let items = [
        json!({"file_id": "eiffel", "document_metadata": {"title": "Eiffel Tower", "year": 1889},
            "content": "The Eiffel Tower was designed by Gustave Eiffel. It stands in Paris."}),
        json!({"file_id": "pisa", "content": "The tower of Pisa leans. It is made of marble."}),
        json!({"file_id": "bridge", "content": "The Forth Bridge crosses a firth."}),
        json!({"file_id": "reports", "content": long}),
    ];
    server.index_items("acme", "default", &items);
    server
}

/// The number in each citation mark `[n]` of an answer, with the passage before the mark.
fn citations(answer: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = answer;
    while let Some((passage, after)) = rest.split_once(" [") {
        let (number, after) = after.split_once(']').expect("a closing bracket");
        found.push((number.parse().expect("a number"), passage.trim().to_owned()));
        rest = after;
    }
    assert_eq!(rest.trim(), "", "every sentence names its source");
    found
}

/// Goal: a question and a tenant are enough, with no generator configured.
#[test]
fn a_question_and_a_tenant_are_enough() {
    let server = towers();
    let body = json!({"question": QUESTION, "tenant_id": "acme"});
    let reply = server.post("/search/qna", body);
    let found = reply.ok();
    assert!(found["answer"].as_str().is_some_and(|answer| answer.contains("Gustave Eiffel")));
    assert!(!list(&found, "sources").is_empty() && !list(&found, "chunks").is_empty());
    assert_eq!((&found["success"], &found["session_id"]), (&json!(true), &Value::Null));
    assert_eq!(found["graph_relations"], Value::Null);
    let metadata = &found["metadata"];
    assert_eq!(metadata["request_id"], reply.headers["x-request-id"].to_str().unwrap());
    assert_eq!((&metadata["alpha"], &metadata["max_chunks"]), (&json!(0.8), &json!(10)));
    assert_eq!(metadata["ignored_parameters"], json!([]));
    let times = &metadata["timings_ms"];
    let of = |stage: &str| times[stage].as_f64().unwrap_or_else(|| panic!("{stage} in {times}"));
    assert!(of("answer") > 0.0 && of("total") >= of("answer") + of("embed"), "{times}");
    let generation = &metadata["generation"];
    assert_eq!(generation["fallback"], true);
    assert_eq!(generation["fallback_reason"], "not_configured");
    assert_eq!(generation["model"], found["model_used"]);
    assert!(found["model_used"].is_string(), "it says what wrote the answer");
    assert!(generation["input_tokens"].is_u64() && generation["output_tokens"].is_u64());
}

/// Goal: every `[n]` refers to a source, and the marked statement is in that source.
#[test]
fn an_answer_rests_on_what_it_cites() {
    let server = towers();
    for question in [QUESTION, "Which tower leans?", "What was painted by team 7?", "tower"] {
        let found = server.qna(question, &json!({"top_n": 20}));
        let (sources, chunks) = (list(&found, "sources"), list(&found, "chunks"));
        let cited = citations(found["answer"].as_str().unwrap());
        let mut first_uses = Vec::new();
        for (number, passage) in &cited {
            let source = &sources[number - 1];
            let of_source = |chunk: &&Value| chunk["source_id"] == source["source_id"];
            let holds = |chunk: &Value| chunk["chunk_content"].as_str().unwrap().contains(passage);
            assert!(chunks.iter().filter(of_source).any(holds), "{question}: {passage}");
            if !first_uses.contains(number) {
                first_uses.push(*number);
            }
        }
        let expected: Vec<usize> = (1..=first_uses.len()).collect();
        assert_eq!(first_uses, expected, "cited sources come first, by first use");
        for (at, source) in sources.iter().enumerate() {
            assert_eq!(source["cited"], json!(at < first_uses.len()), "{question}: {source}");
        }
        let told = list(&found, "citations");
        assert_eq!(told.len(), cited.len());
        for (citation, (number, passage)) in told.iter().zip(&cited) {
            assert_eq!(citation["n"], json!(number));
            assert_eq!(citation["text"], json!(passage));
            assert_eq!(citation["file_id"], sources[number - 1]["source_id"]);
            let chars = citation["end"].as_u64().unwrap() - citation["start"].as_u64().unwrap();
            assert_eq!(chars, passage.chars().count() as u64);
            assert!(citation["chunk_uuid"].is_string() && citation["boxes"].is_array());
            assert!(citation["page"].is_null(), "a text has no pages");
        }
    }
    assert!(!citations(server.qna(QUESTION, &json!({}))["answer"].as_str().unwrap()).is_empty());
}

/// Goal: a row far below the header of a long table is told with the names of its columns, although
/// the header is not among what was read.
#[test]
fn rows_of_a_long_table_have_the_names_of_their_columns() {
    let server = TestServer::start();
    let row = |n: u32| format!("| K{n} | {} EUR | hall {} |\n", n + 7, n % 9);
    let rows: String = (1000..2200).map(row).collect();
    let table = format!("# Spare parts\n\n| Part | Price | Stored |\n| --- | --- | --- |\n{rows}");
    server.index_items("acme", "default", &[json!({"file_id": "parts", "content": table})]);
    let found = server.qna("What is the price of part K1650?", &json!({}));
    let answer = found["answer"].as_str().expect("an answer");
    assert!(answer.starts_with("Part: K1650; Price: 1657 EUR; Stored: hall 3"), "{answer}");
}

/// Goal: a superseded edition does not answer although the one in force is not among the results,
/// and still answers a question that names it.
#[test]
fn an_edition_in_force_answers_although_it_is_not_found() {
    let server = TestServer::start();
    let titled = |id: &str, title: &str, content: &str| {
        let metadata = json!({"title": title});
        json!({"file_id": id, "document_metadata": metadata, "content": content})
    };
    let items = [
        titled("hire-2021", "Boat hire rules 2021", "Rowing boats are hired for 3 hours at most."),
        titled("hire-2024", "Boat hire rules 2024", "Who takes a skiff brings it back by dusk."),
        titled("notes", "Notes", "Rowing boats are painted in March. Rowing boats are heavy."),
    ];
    server.index_items("acme", "default", &items);
    let asked = |question: &str| server.qna(question, &json!({"max_chunks": 1}));
    let now = asked("For how many hours at most are rowing boats hired?");
    assert_eq!(list(&now, "chunks")[0]["source_id"], "hire-2024", "{now}");
    let answer = now["answer"].as_str().unwrap();
    assert!(!answer.contains("3 hours"), "{answer}");
    let then = asked("For how many hours at most were rowing boats hired in 2021?");
    assert_eq!(list(&then, "chunks")[0]["source_id"], "hire-2021", "{then}");
    assert!(then["answer"].as_str().unwrap().contains("3 hours"), "{then}");
}

/// Goal: `chunks` lists all retrieved chunks, and `sources` each of their sources once.
#[test]
fn chunks_and_sources_point_at_each_other() {
    let server = towers();
    let found = server.qna(QUESTION, &json!({"top_n": 20}));
    let (sources, chunks) = (list(&found, "sources"), list(&found, "chunks"));
    let retrieved = server.chunks(QUESTION, &json!({"max_chunks": 20, "join_neighbours": false}));
    let uuids = |chunks: &[Value]| -> Vec<Value> {
        chunks.iter().map(|chunk| chunk["chunk_uuid"].clone()).collect()
    };
    assert_eq!(uuids(&chunks), uuids(&retrieved), "all that retrieve finds, in its order");
    assert_eq!(scores_of(&chunks), scores_of(&retrieved));
    assert_eq!(ids_of(&sources).len(), id_set(&chunks).len(), "each source once");
    for chunk in &chunks {
        let source = &sources[chunk["source_index"].as_u64().unwrap() as usize];
        assert_eq!(source["source_id"], chunk["source_id"]);
        assert!(list(source, "chunk_uuids").contains(&chunk["chunk_uuid"]));
        let snippet = chunk["snippet"].as_str().unwrap();
        assert!((1..=300).contains(&snippet.chars().count()), "{snippet}");
        assert_eq!((&chunk["bounding_box"], &chunk["page_number"]), (&Value::Null, &Value::Null));
        assert!(chunk["source_filename"].is_string() && chunk["layout"].is_string());
    }
    let mut listed = BTreeSet::new();
    for source in &sources {
        let pairs = [
            ("id", "source_id"),
            ("title", "source_title"),
            ("type", "source_type"),
            ("timestamp", "source_upload_time"),
        ];
        assert!(pairs.iter().all(|(old, new)| source[*old] == source[*new]), "{source}");
        for uuid in list(source, "chunk_uuids") {
            assert!(listed.insert(uuid.as_str().unwrap().to_owned()), "a chunk has one source");
        }
        let of_source: Vec<Value> = chunks
            .iter()
            .filter(|chunk| chunk["source_id"] == source["source_id"])
            .cloned()
            .collect();
        assert_eq!(source["relevancy_score"].as_f64().unwrap(), scores_of(&of_source)[0]);
        assert!(source["source_last_updated_time"].as_str().unwrap().parse::<f64>().is_ok());
        assert!(source["snippet"].as_str().is_some_and(|text| text.chars().count() <= 300));
        assert!(source["source_url"].is_string() && source["source_filename"].is_string());
        let pages = of_source.iter().map(|chunk| &chunk["page_number"]);
        let pages: Vec<&Value> = pages.filter(|page| !page.is_null()).collect();
        assert_eq!(source["page_numbers"], json!(pages), "those of its chunks");
    }
    assert_eq!(listed.len(), chunks.len());
    let eiffel = sources.iter().find(|source| source["id"] == "eiffel").unwrap();
    assert_eq!(eiffel["title"], "Eiffel Tower");
    assert_eq!(eiffel["document_metadata"]["year"], 1889);
}

/// Goal: without generation the answer is empty, but the context is returned.
#[test]
fn without_generation_there_is_only_context() {
    let server = towers();
    let found = server.qna(QUESTION, &json!({"ai_generation": false}));
    assert_eq!((&found["answer"], &found["model_used"]), (&json!(""), &Value::Null));
    assert_eq!(found["metadata"]["generation"]["model"], Value::Null);
    assert_eq!(found["metadata"]["timings_ms"].get("answer"), None);
    let chunks = list(&found, "chunks");
    assert!(!chunks.is_empty());
    let order: Vec<String> = ids_of(&list(&found, "sources"));
    let mut by_relevance = ids_of(&chunks);
    by_relevance.dedup();
    let mut seen = BTreeSet::new();
    by_relevance.retain(|id| seen.insert(id.clone()));
    assert_eq!(order, by_relevance, "sources by relevance");
    let also = server.qna(QUESTION, &json!({"ai_generation": false, "highlight_chunks": false}));
    assert_eq!(timeless(also), timeless(found), "highlight_chunks is ignored then");
}

/// Goal: `highlight_chunks: false` empties `chunks` and changes nothing else.
#[test]
fn without_highlights_there_are_no_chunks() {
    let server = towers();
    let plain = timeless(server.qna(QUESTION, &json!({})));
    let bare = timeless(server.qna(QUESTION, &json!({"highlight_chunks": false})));
    assert_eq!(bare, with(plain, &json!({"chunks": []})));
}

/// Goal: an answer without matching sources is a 200 that says so and cites nothing.
#[test]
fn without_context_the_answer_says_so() {
    let server = towers();
    let nothing = server.qna(QUESTION, &json!({"document_metadata": {"year": 1066}}));
    assert_eq!((&nothing["sources"], &nothing["chunks"]), (&json!([]), &json!([])));
    let said = nothing["answer"].as_str().unwrap();
    assert!(said.contains("Nothing") && !said.contains('['), "{said}");
    let silent = json!({"document_metadata": {"year": 1066}, "ai_generation": false});
    assert_eq!(server.qna(QUESTION, &silent)["answer"], "");
}

/// Goal: `top_n` and `max_chunks` are the same field, and `search_alpha` is the `alpha` of qna.
#[test]
fn the_names_of_qna_mean_what_those_of_retrieve_mean() {
    let server = towers();
    for name in ["top_n", "max_chunks"] {
        assert_eq!(list(&server.qna("tower", &json!({ name: 2 })), "chunks").len(), 2);
        for wrong in [0, 1002] {
            server.ask("qna", "tower", &json!({ name: wrong })).error(400, "invalid_value");
        }
        server.ask("qna", "tower", &json!({ name: 1001 })).ok();
    }
    let both = json!({"top_n": 2, "max_chunks": 3});
    assert_eq!(server.ask("qna", "tower", &both).status, 400);
    for alpha in [json!(0), json!("0.3"), json!(1), json!("auto")] {
        let changes = json!({"search_alpha": alpha, "alpha": alpha, "max_chunks": 7});
        let answered = list(&server.qna("leaning tower", &changes), "chunks");
        let mut apart = changes.clone();
        apart["join_neighbours"] = json!(false);
        let retrieved = server.chunks("leaning tower", &apart);
        assert_eq!(ids_of(&answered), ids_of(&retrieved), "{alpha}");
        assert_eq!(scores_of(&answered), scores_of(&retrieved), "{alpha}");
    }
    for wrong in [json!(1.5), json!(-0.1), json!("much")] {
        let changes = json!({"search_alpha": wrong});
        server.ask("qna", "tower", &changes).error(400, "invalid_value");
    }
}

/// Goal: parameters that are accepted without effect are reported.
#[test]
fn parameters_without_effect_are_named() {
    let server = towers();
    let changes = json!({"auto_agent_routing": true, "search_modes": ["deep"],
        "multi_step_reasoning": false, "user_name": "Ann", "user_instructions": "Rhyme."});
    let found = server.qna(QUESTION, &changes);
    let ignored = json!(["auto_agent_routing", "search_modes"]);
    assert_eq!(found["metadata"]["ignored_parameters"], ignored);
    assert_eq!(found["answer"], server.qna(QUESTION, &json!({}))["answer"]);
}

/// Goal: limits in characters are enforced with a 400.
#[test]
fn texts_of_a_question_keep_to_their_limits() {
    let server = towers();
    for (name, limit) in [("user_name", 256), ("user_instructions", 4096)] {
        server.ask("qna", "x", &json!({ name: "é".repeat(limit) })).ok();
        let long = json!({ name: "é".repeat(limit + 1) });
        server.ask("qna", "x", &long).error(400, "invalid_value");
    }
    for search in ["qna", "retrieve", "full-text-search"] {
        server.ask(search, &"é".repeat(16_384), &json!({})).ok();
        assert_eq!(server.ask(search, &"é".repeat(16_385), &json!({})).status, 400);
        for blank in ["", " \n\t", "\u{3000}"] {
            assert_eq!(server.ask(search, blank, &json!({})).status, 400, "{search}");
        }
    }
    for id in ["a/b", "..", " a", &"x".repeat(257)] {
        let changes = json!({"session_id": id});
        server.ask("qna", "tower", &changes).error(400, "invalid_identifier");
    }
}
