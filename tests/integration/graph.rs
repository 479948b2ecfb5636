//! Entities, triplets and paths in searches and listings.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::corpus::{ids_of, list};
use crate::support::TestServer;

/// The test model weights all words alike; a low `alpha` lets rare words decide.
const ALPHA: f64 = 0.3;
const QUESTION: &str = "Who is the mother of the director of Northern Light?";

/// A film, its director and her mother, each in a document of its own.
fn family() -> Vec<Value> {
    let item = |id: &str, title: &str, content: &str| {
        let metadata = json!({ "title": title });
        json!({"file_id": id, "content": content, "document_metadata": metadata})
    };
    vec![
        item(
            "film",
            "Northern Light",
            "Northern Light is a 1972 film directed by Marta Lindqvist.",
        ),
        item(
            "director",
            "Marta Lindqvist",
            "Marta Lindqvist was born in Uppsala. She is the daughter of Elsa Lindqvist.",
        ),
        item("mother", "Elsa Lindqvist", "Elsa Lindqvist was a painter who died in Lund in 1999."),
    ]
}

/// Distractors that share more words with the question than the answer does.
fn bystanders() -> Vec<Value> {
    let text = |n: usize| format!("The mother of the director of plan {n} is who light the lamp.");
    (0..30).map(|n| json!({"file_id": format!("b{n}"), "content": text(n)})).collect()
}

fn server() -> TestServer {
    let server = TestServer::start();
    server.index_items("acme", "default", &family());
    server.index_items("acme", "default", &bystanders());
    server
}

fn asked(server: &TestServer, changes: &Value) -> Value {
    let mut all = json!({"graph_context": true, "max_chunks": 5, "alpha": ALPHA});
    all.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    server.ask("retrieve", QUESTION, &all).ok()
}

/// All entity names in a response.
fn names(relations: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut note = |triplet: &Value| {
        for end in ["source", "target"] {
            names.insert(triplet[end]["name"].as_str().unwrap().to_owned());
        }
    };
    for path in list(relations, "entity_paths") {
        list(&path, "triplets").iter().for_each(&mut note);
    }
    relations["chunk_triplets"].as_object().unwrap().values().for_each(note);
    names
}

/// Goal: graph members are null without graph context; with it both are present, their ids resolve
/// and scores appear where documented.
#[test]
fn relations_have_the_documented_form() {
    let server = server();
    let without = server.ask("retrieve", QUESTION, &json!({"graph_context": false})).ok();
    assert_eq!(without["graph_relations"], Value::Null);
    assert_eq!(without["extra_graph_context"], Value::Null);
    for chunk in list(&without, "chunks") {
        assert_eq!(
            (&chunk["graph_triplet_ids"], &chunk["extra_context"]),
            (&json!([]), &json!(null))
        );
    }

    let found = asked(&server, &json!({}));
    let relations = &found["graph_relations"];
    let triplets = relations["chunk_triplets"].as_object().unwrap();
    let paths = list(relations, "entity_paths");
    assert!(!triplets.is_empty() && !paths.is_empty(), "{relations}");
    assert_eq!(found["extra_graph_context"], relations["entity_paths"]);
    assert_eq!(found["metadata"]["graph"]["entity_paths"], paths.len());
    assert_eq!(found["metadata"]["graph"]["chunk_triplets"], triplets.len());
    let mut named = 0;
    for chunk in list(&found, "chunks") {
        for id in list(&chunk, "graph_triplet_ids") {
            assert!(triplets.contains_key(id.as_str().unwrap()), "{id} resolves");
            named += 1;
        }
        let stated = list(&chunk["extra_context"], "chunk_relations");
        assert_eq!(stated.len(), list(&chunk, "graph_triplet_ids").len());
    }
    assert!(named >= triplets.len());
    for (id, triplet) in triplets {
        assert!(id.starts_with("g_"));
        let score = triplet["relevancy_score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{triplet}");
        let predicate = triplet["relation"]["canonical_predicate"].as_str().unwrap();
        assert!(predicate.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{predicate}");
    }
    let mut last = 1.0;
    for path in paths {
        let steps = list(&path, "triplets");
        assert!(steps.iter().all(|triplet| triplet.get("relevancy_score").is_none()), "{path}");
        let context = |step: &Value| step["relation"]["context"].as_str().unwrap().to_owned();
        let contexts: Vec<String> = steps.iter().map(context).collect();
        assert_eq!(path["combined_context"], contexts.join(" | "));
        let score = path["relevancy_score"].as_f64().unwrap();
        assert!(score <= last, "best first");
        last = score;
    }
}

/// Goal: entities named by the top results are found although they share few words with the
/// question; without graph context they are not.
#[test]
fn what_results_name_is_found() {
    let server = server();
    let plain = server.ask("retrieve", QUESTION, &json!({"max_chunks": 5, "alpha": ALPHA})).ok();
    assert!(!ids_of(&list(&plain, "chunks")).contains(&"director".to_owned()));
    let found = asked(&server, &json!({}));
    let ids = ids_of(&list(&found, "chunks"));
    assert!(ids.contains(&"film".to_owned()) && ids.contains(&"director".to_owned()), "{ids:?}");
    let scores: Vec<f64> = list(&found, "chunks")
        .iter()
        .map(|chunk| chunk["relevancy_score"].as_f64().unwrap())
        .collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let explained = asked(&server, &json!({"explain": true}));
    let chunks = list(&explained, "chunks");
    let director = chunks.iter().find(|chunk| chunk["source_id"] == "director").unwrap();
    assert!(director["explain"]["link"].as_f64().unwrap() > 0.0, "{director}");
}

/// Goal: a path leads from the film through its director to her mother.
#[test]
fn paths_go_from_entity_to_entity() {
    let found = asked(&server(), &json!({}));
    let predicates = |path: &Value| -> Vec<String> {
        let of =
            |step: &Value| step["relation"]["canonical_predicate"].as_str().unwrap().to_owned();
        list(path, "triplets").iter().map(of).collect()
    };
    let paths = list(&found["graph_relations"], "entity_paths");
    let all: Vec<Vec<String>> = paths.iter().map(predicates).collect();
    assert!(all.contains(&vec!["DIRECTED_BY".into(), "CHILD_OF".into()]), "{all:?}");
}

/// Goal: a source hidden by a deletion, a filter or a scope appears in no graph.
#[test]
fn hidden_sources_are_in_no_graph() {
    let server = server();
    server.index_items("acme", "other", &family());
    assert!(names(&asked(&server, &json!({}))["graph_relations"]).contains("Elsa Lindqvist"));

    let filtered = asked(&server, &json!({"context_list": ["film"]}));
    let told = names(&filtered["graph_relations"]);
    assert!(told.contains("Marta Lindqvist") && !told.contains("Elsa Lindqvist"), "{told:?}");

    let body = json!({"tenant_id": "acme", "source_ids": ["director"]});
    server.call("DELETE", "/delete_source", body).ok();
    let told = names(&asked(&server, &json!({}))["graph_relations"]);
    assert!(!told.contains("Uppsala"), "{told:?}");
    let elsewhere = server
        .ask("retrieve", QUESTION, &json!({"graph_context": true, "sub_tenant_id": "other"}))
        .ok();
    assert!(names(&elsewhere["graph_relations"]).contains("Uppsala"));
    let nowhere = server
        .ask("retrieve", QUESTION, &json!({"graph_context": true, "sub_tenant_id": "third"}))
        .ok();
    assert_eq!(nowhere["graph_relations"], json!({"entity_paths": [], "chunk_triplets": {}}));
}

/// Goal: relations are listed by source id.
#[test]
fn relations_are_listed_by_source() {
    let server = server();
    let ask = |body: Value| server.post("/list/graph_relations_by_id", body);
    let ids = json!(["director", "nobody", "film", "director"]);
    let found = ask(json!({"tenant_id": "acme", "source_ids": ids})).ok();
    assert_eq!((&found["not_found"], &found["success"]), (&json!(["nobody"]), &json!(true)));
    let relations = found["relations"].as_object().unwrap();
    assert_eq!(relations.keys().collect::<Vec<_>>(), ["director", "film"]);
    let of_film = relations["film"].as_array().unwrap();
    let directed = |triplet: &&Value| triplet["relation"]["canonical_predicate"] == "DIRECTED_BY";
    let directed = of_film.iter().find(directed).unwrap_or_else(|| panic!("{of_film:?}"));
    assert_eq!(directed["source"]["name"], "Northern Light");
    assert_eq!(directed["target"]["name"], "Marta Lindqvist");
    assert!(directed["chunk_uuid"].is_string() && directed.get("relevancy_score").is_none());
    let id = directed["triplet_id"].as_str().unwrap();
    let searched = asked(&server, &json!({}));
    assert!(searched["graph_relations"]["chunk_triplets"].get(id).is_some(), "the same id");

    let few =
        ask(json!({"tenant_id": "acme", "source_ids": ["film", "director"], "limit": 1})).ok();
    let counts = few["relations"].as_object().unwrap().values();
    assert_eq!(counts.map(|list| list.as_array().unwrap().len()).sum::<usize>(), 1);
    ask(json!({"tenant_id": "acme", "source_ids": []})).error(400, "invalid_value");
    let body = json!({"tenant_id": "acme", "source_ids": ["film"], "limit": 5001});
    ask(body).error(400, "invalid_value");
    ask(json!({"tenant_id": "nobody", "source_ids": ["x"]})).error(404, "tenant_not_found");
}

/// Goal: with `auto`, the form of the question and the top results decide whether the graph is
/// used.
#[test]
fn the_graph_is_used_where_the_question_calls_for_it() {
    let server = server();
    let ask = |question: &str, changes: Value| {
        let found = server.ask("retrieve", question, &changes).ok();
        (found["graph_relations"].is_object(), found["metadata"]["graph"]["reason"].clone())
    };
    let auto = || json!({"graph_context": "auto", "alpha": ALPHA});
    for (question, is_used, reason) in [
        (QUESTION, true, "the first results do not cover what is asked of the thing named"),
        (
            "Who was born first, Marta Lindqvist or Elsa Lindqvist?",
            true,
            "the question names several things",
        ),
        ("Northern Light", false, "the first results cover what is asked of the one thing named"),
        ("who is the mother", false, "the question names nothing that documents are about"),
    ] {
        assert_eq!(ask(question, auto()), (is_used, json!(reason)), "{question}");
        let accurate = ask(question, json!({"mode": "accurate", "alpha": ALPHA}));
        assert_eq!(accurate, (is_used, json!(reason)), "{question}, by default");
        assert_eq!(ask(question, json!({})), (false, Value::Null), "{question}, fast");
        let given = ask(question, json!({"mode": "accurate", "graph_context": false}));
        assert_eq!(given, (false, Value::Null), "{question}, refused");
    }
    let with_graph = list(&asked(&server, &json!({})), "chunks");
    let by_itself = list(&asked(&server, &json!({"graph_context": "auto"})), "chunks");
    assert_eq!(by_itself, with_graph, "the same search");
    let nowhere = json!({"graph_context": "auto", "sub_tenant_id": "empty"});
    assert_eq!(ask(QUESTION, nowhere), (false, json!("there is nothing to search")));
    let refused = server.ask("retrieve", QUESTION, &json!({"graph_context": "Auto"}));
    let body = refused.error(400, "invalid_value");
    assert_eq!(body["message"], "graph_context must be true, false or 'auto'");
}
