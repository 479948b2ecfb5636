//! Conversation turns that precede a search or a question.

use serde_json::{Value, json};

use crate::support::TestServer;

const QUESTION: &str = "Who designed the lighthouse?";
const FOLLOW_UP: &str = "When was he born?";

fn lighthouse() -> TestServer {
    let server = TestServer::start();
    for (id, text) in [
        ("lighthouse", "The lighthouse of Norvik was designed by Anders Holm."),
        ("holm", "Anders Holm, designer of the lighthouse, was born in 1871 in Bergen."),
        ("cook", "When the cook was born, the sea was calm."),
        ("mayor", "The mayor was born in 1902, when he was not yet a mayor."),
    ] {
        server.index("acme", "default", id, text);
    }
    server
}

fn history() -> Value {
    json!([{"question": QUESTION, "answer": "It was designed by Anders Holm. [1]"}])
}

/// The follow-up with the one that the earlier turn names.
const COMPLETED: &str = "When was Anders Holm born?";

/// Whether, by words, the source about the one that only the earlier turn names comes first.
fn leads_with_holm(found: &Value) -> bool {
    found["chunks"][0]["source_id"] == "holm"
}

#[test]
fn a_search_is_understood_from_the_turns_before_it() {
    let server = lighthouse();
    let alone = server.ask("retrieve", FOLLOW_UP, &json!({"alpha": 0})).ok();
    assert!(!leads_with_holm(&alone), "{alone}");
    assert_eq!(alone["metadata"]["completed_query"], Value::Null);
    let within = server.ask("retrieve", FOLLOW_UP, &json!({"history": history(), "alpha": 0})).ok();
    assert!(leads_with_holm(&within), "{within}");
    let searched = &within["metadata"]["completed_query"];
    assert_eq!(searched, COMPLETED);

    for whole in ["How long does the battery last?", "And who is Piet Vik?"] {
        let stands_alone =
            server.ask("retrieve", whole, &json!({"history": history(), "alpha": 0})).ok();
        assert_eq!(stands_alone["metadata"]["completed_query"], Value::Null);
    }
    let without = server.ask("retrieve", FOLLOW_UP, &json!({"history": [], "alpha": 0})).ok();
    assert_eq!(without["chunks"], alone["chunks"], "no turns are no conversation");
}

#[test]
fn a_search_reads_the_session_of_questions_and_adds_nothing_to_it() {
    let server = lighthouse();
    let in_session = json!({"session_id": "s", "alpha": 0});
    server.ask("qna", QUESTION, &in_session).ok();
    let found = server.ask("retrieve", FOLLOW_UP, &in_session).ok();
    assert!(leads_with_holm(&found), "{found}");
    let searched = found["metadata"]["completed_query"].clone();
    let again = server.ask("retrieve", FOLLOW_UP, &in_session).ok();
    assert_eq!(again["metadata"]["completed_query"], searched, "a search is no turn");
    let elsewhere = json!({"session_id": "s", "tenant_id": "acme", "sub_tenant_id": "other"});
    let other = server.ask("retrieve", FOLLOW_UP, &elsewhere).ok();
    assert_eq!(other["metadata"]["completed_query"], Value::Null);
}

#[test]
fn a_question_takes_its_turns_too_and_remembers_none_of_them() {
    let server = lighthouse();
    let told = server.ask("qna", FOLLOW_UP, &json!({"history": history()})).ok();
    assert_eq!(told["sources"][0]["source_id"], "holm", "{told}");
    assert_eq!(told["session_id"], Value::Null);
    assert_eq!(told["metadata"]["completed_query"], COMPLETED);
    let alone = server.ask("qna", FOLLOW_UP, &json!({})).ok();
    assert_eq!(alone["metadata"]["completed_query"], Value::Null);
}

#[test]
fn a_history_keeps_to_its_limits() {
    let server = lighthouse();
    for search in ["retrieve", "qna"] {
        let refused = |changes: Value, reason: &str| {
            let body = server.ask(search, FOLLOW_UP, &changes).error(400, reason);
            body["message"].as_str().unwrap().to_owned()
        };
        let both = refused(json!({"history": history(), "session_id": "s"}), "conflicting_values");
        assert_eq!(both, "history and session_id are mutually exclusive");
        let turns = |count: usize| json!({"history": vec![history()[0].clone(); count]});
        server.ask(search, FOLLOW_UP, &turns(10)).ok();
        refused(turns(11), "too_many_items");
        let unasked = json!({"history": [history()[0], {"answer": "x"}]});
        assert_eq!(refused(unasked, "missing_field"), "history[1].question is required");
        refused(json!({"history": [{"question": " "}]}), "invalid_value");
        let long = "x".repeat(16_385);
        refused(json!({"history": [{"question": "x", "answer": long}]}), "invalid_value");
        refused(json!({"history": "x"}), "invalid_value");
        refused(json!({"history": ["x"]}), "invalid_value");
    }
}
