//! User memories: added, listed, searched, deleted, and isolated from everything else.

use std::sync::Arc;

use lodestone_types::{ManualClock, Timestamp};
use serde_json::{Value, json};

use crate::contract::encode;
use crate::corpus::{ids_of, list as list_of, timeless};
use crate::support::{Reply, TestServer};

const START: Timestamp = Timestamp(1_757_402_409_727);

fn path(verb: &str, tenant: &str, sub_tenant: &str) -> String {
    format!("/user_memory/{verb}?tenant_id={tenant}&sub_tenant_id={sub_tenant}")
}

fn add(server: &TestServer, body: Value) -> Reply {
    server.post(&path("add_user_memory", "acme", ""), body)
}

fn list(server: &TestServer, tenant: &str, sub_tenant: &str) -> Vec<Value> {
    let listed = server.get(&path("list_user_memories", tenant, sub_tenant)).ok();
    listed["user_memories"].as_array().expect("memories").clone()
}

fn retrieve(server: &TestServer, query: &str, max_count: &str) -> Vec<Value> {
    let path = format!("{}{max_count}", path("retrieve_user_memory", "acme", ""));
    let found = server.post(&path, json!({ "query": query })).ok();
    assert_eq!(found["retrieved_user_memories"], found["user_memories"], "one array, two names");
    found["user_memories"].as_array().expect("memories").clone()
}

fn delete(server: &TestServer, id: &str) -> Reply {
    let path = format!("{}&memory_id={}", path("delete_user_memory", "acme", ""), encode(id));
    server.call("DELETE", &path, Value::Null)
}

fn generate(server: &TestServer, body: Value) -> Vec<String> {
    let made = server.post(&path("generate_user_memory", "acme", ""), body).ok();
    texts(made["generated_user_memories"].as_array().expect("memories"))
}

fn texts(memories: &[Value]) -> Vec<String> {
    let text = |memory: &Value| memory["memory_content"].as_str().expect("a text").to_owned();
    memories.iter().map(text).collect()
}

fn memory_count(server: &TestServer) -> Value {
    server.get("/tenant/stats?tenant_id=acme").ok()["memory_count"].clone()
}

fn with_clock() -> (TestServer, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let parts = Arc::clone(&clock);
    (TestServer::start_with_parts(|_| {}, |all| all.clock = parts), clock)
}

#[test]
fn a_memory_is_there_when_the_call_returns_and_gone_when_it_is_deleted() {
    let server = TestServer::start();
    let added = add(&server, json!({"user_memory": "Ann drinks green tea"})).ok();
    let id = added["memory_id"].as_str().expect("an id").to_owned();
    assert!(id.starts_with("mem_") && id.len() == 30, "{id}");
    let fields = (&added["success"], &added["user_memory_added"], &added["chunks_created"]);
    assert_eq!(fields, (&json!(true), &json!(true), &json!(1)));
    assert_eq!(added.as_object().unwrap().len(), 4);
    add(&server, json!({"raw_text": "The cat is called Miez"})).ok();
    let listed = list(&server, "acme", "default");
    assert_eq!(texts(&listed), ["The cat is called Miez", "Ann drinks green tea"], "newest first");
    assert_eq!(listed[1]["memory_id"], id.as_str());
    assert_eq!(listed[1]["expires_at"], Value::Null);
    assert!(listed[1]["created_at"].as_str().unwrap().parse::<f64>().is_ok());
    assert_eq!(memory_count(&server), 2);
    let found = retrieve(&server, "green tea", "");
    assert_eq!(found[0]["memory_content"], "Ann drinks green tea");
    let scores: Vec<f64> =
        found.iter().map(|memory| memory["relevancy_score"].as_f64().unwrap()).collect();
    assert!(
        scores.iter().all(|score| (0.0..=1.0).contains(score))
            && scores.is_sorted_by(|a, b| a >= b)
    );
    assert_eq!(retrieve(&server, "green tea", "&max_count=1").len(), 1);
    assert_eq!(retrieve(&server, "green tea", "&max_count=0")[0], found[0]);
    let deleted = delete(&server, &id).ok();
    assert_eq!(deleted, json!({"success": true, "user_memory_deleted": true}));
    let body = delete(&server, &id).error(404, "memory_not_found");
    assert_eq!(
        (&body["error"], &body["error_code"]),
        (&json!("Memory not found"), &json!("NOT_FOUND"))
    );
    assert_eq!(list(&server, "acme", "default").len(), 1);
    assert_eq!(memory_count(&server), 1);
}

#[test]
fn an_expired_memory_is_invisible_at_once_and_removed_later() {
    let (server, clock) = with_clock();
    add(&server, json!({"user_memory": "the code is 1234", "memory_id": "code", "expiry_time": 1}))
        .ok();
    add(&server, json!({"user_memory": "the street is Elm", "expiry_time": null})).ok();
    assert_eq!(list(&server, "acme", "")[1]["expires_at"], "1757402410.727");
    assert_eq!(retrieve(&server, "code", "").len(), 2);
    clock.advance_millis(999);
    assert_eq!(memory_count(&server), 2);
    clock.advance_millis(1);
    assert_eq!(texts(&list(&server, "acme", "")), ["the street is Elm"]);
    assert_eq!(texts(&retrieve(&server, "code", "")), ["the street is Elm"]);
    assert_eq!(memory_count(&server), 1);
    delete(&server, "code").error(404, "memory_not_found");
    // The id can be used again.
    add(&server, json!({"user_memory": "the code is 99", "memory_id": "code", "expiry_time": 9}))
        .ok();
    assert_eq!(texts(&list(&server, "acme", "")), ["the code is 99", "the street is Elm"]);
    let server = server.restart();
    assert_eq!(texts(&list(&server, "acme", "")), ["the street is Elm"], "the machine's clock");
}

/// Goal: the text has two names, and takes precedence over pairs.
#[test]
fn the_text_has_two_names_and_goes_before_pairs() {
    let server = TestServer::start();
    let both = |a: &str, b: &str| json!({"user_memory": a, "raw_text": b});
    add(&server, both("a b", "a c")).error(400, "conflicting_values");
    add(&server, both("same words", "same words")).ok();
    let pairs =
        json!([{"user": "I like tea", "assistant": "Noted."}, {"user": "Bye", "assistant": ""}]);
    add(&server, json!({"user_memory": "a text", "user_assistant_pairs": pairs})).ok();
    add(&server, json!({"user_assistant_pairs": pairs, "user_name": "Ann"})).ok();
    add(&server, json!({"user_assistant_pairs": pairs})).ok();
    let expected = [
        "User: I like tea\nAssistant: Noted.\nUser: Bye",
        "Ann: I like tea\nAssistant: Noted.\nAnn: Bye",
        "a text",
        "same words",
    ];
    assert_eq!(texts(&list(&server, "acme", "")), expected);
}

#[test]
fn what_breaks_a_rule_is_refused_and_nothing_is_kept() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    add(&server, json!({})).error(400, "missing_field");
    add(&server, json!({"user_memory": "  \n"})).error(400, "invalid_value");
    add(&server, json!({"user_memory": "x".repeat((32 << 10) + 1)}))
        .error(413, "content_too_large");
    let pair = json!({"user": "x".repeat(20 << 10), "assistant": "y".repeat(20 << 10)});
    add(&server, json!({"user_assistant_pairs": [pair]})).error(413, "content_too_large");
    let many = vec![json!({"user": "a", "assistant": "b"}); 101];
    add(&server, json!({"user_assistant_pairs": many})).error(400, "too_many_items");
    for (pairs, reason) in [
        (json!([]), "invalid_value"),
        (json!([7]), "invalid_value"),
        (json!([{}]), "missing_field"),
        (json!([{"user": "a"}]), "missing_field"),
        (json!([{"user": "", "assistant": " "}]), "invalid_value"),
    ] {
        add(&server, json!({"user_assistant_pairs": pairs})).error(400, reason);
    }
    for expiry in [json!(0), json!(-1), json!(1.5), json!("soon"), json!(1e300)] {
        let body = json!({"user_memory": "x", "expiry_time": expiry});
        add(&server, body).error(400, "invalid_value");
    }
    add(&server, json!({"user_memory": "x", "memory_id": "a/b"})).error(400, "invalid_identifier");
    for count in ["-1", "101", "x"] {
        let path = format!("{}&max_count={count}", path("retrieve_user_memory", "acme", ""));
        server.post(&path, json!({"query": "x"})).error(400, "invalid_value");
    }
    assert!(list(&server, "acme", "").is_empty());
    assert_eq!(retrieve(&server, "x", ""), Vec::<Value>::new());
    add(&server, json!({"user_memory": "x".repeat(32 << 10)})).ok();
    let long: String = (0..2000).map(|n| format!("word{n} ")).collect();
    let added = add(&server, json!({"user_memory": long, "memory_id": "long"})).ok();
    assert!(added["chunks_created"].as_u64().unwrap() > 5, "{added}");
    assert_eq!(list(&server, "acme", "")[0]["memory_content"], long, "the text comes back whole");
    assert_eq!(retrieve(&server, "word1 word900 word1900", "").len(), 2, "a memory counts once");
}

/// Goal: adding a memory under an existing id replaces it.
#[test]
fn a_repeated_id_replaces_that_memory() {
    let server = TestServer::start();
    add(&server, json!({"user_memory": "likes tea", "memory_id": "drink"})).ok();
    add(&server, json!({"user_memory": "other", "memory_id": "b"})).ok();
    let again = add(&server, json!({"user_memory": "likes coffee", "memory_id": "drink"})).ok();
    assert_eq!(again["memory_id"], "drink");
    assert_eq!(texts(&list(&server, "acme", "")), ["likes coffee", "other"]);
    assert!(texts(&retrieve(&server, "tea", "")).iter().all(|text| !text.contains("tea")));
    let server = server.restart();
    assert_eq!(texts(&list(&server, "acme", "")), ["likes coffee", "other"]);
}

/// Goal: each scope has its own memories, and the first write creates the scope.
#[test]
fn memories_belong_to_one_scope_and_a_first_write_makes_it() {
    let server = TestServer::start();
    let missing = path("list_user_memories", "fresh", "");
    server.get(&missing).error(404, "tenant_not_found");
    let body = json!({"query": "x"});
    server.post(&path("retrieve_user_memory", "fresh", ""), body).error(404, "tenant_not_found");
    let gone = format!("{}&memory_id=m", path("delete_user_memory", "fresh", ""));
    server.call("DELETE", &gone, Value::Null).error(404, "tenant_not_found");
    // The scope may also be given in the body.
    let mut body = json!({"tenant_id": "fresh", "sub_tenant_id": "east", "memory_id": "m"});
    body["raw_text"] = json!("in the east");
    server.post("/user_memory/add_user_memory", body).ok();
    let subs = server.get("/tenant/sub_tenant_ids?tenant_id=fresh").ok();
    assert_eq!(subs["sub_tenant_ids"], json!(["default", "east"]));
    let message = json!({"user_message": "I like tea."});
    server.post(&path("generate_user_memory", "new", "west"), message).ok();
    assert_eq!(texts(&list(&server, "new", "west")), ["I like tea."]);
    assert!(list(&server, "fresh", "").is_empty() && list(&server, "fresh", "west").is_empty());
    assert_eq!(texts(&list(&server, "fresh", "east")), ["in the east"]);
    let key =
        server.make_key("write", json!([{"tenant_id": "fresh", "sub_tenant_ids": ["default"]}]));
    let reply =
        server.call_as(&key, "GET", &path("list_user_memories", "fresh", "east"), &Value::Null);
    reply.error(404, "sub_tenant_not_found");
    let body = json!({"user_memory": "x"});
    let reply = server.call_as(&key, "POST", &path("add_user_memory", "nowhere", ""), &body);
    reply.error(404, "tenant_not_found");
    server
        .call("DELETE", "/tenant/delete_sub_tenant?tenant_id=fresh&sub_tenant_id=east", Value::Null)
        .ok();
    assert!(list(&server, "fresh", "east").is_empty(), "its memories went with it");
    server.call("DELETE", "/tenant/delete?tenant_id=new&confirm=new", Value::Null).ok();
    server.get(&path("list_user_memories", "new", "west")).error(404, "tenant_not_found");
}

#[test]
fn memories_are_no_sources_and_no_chunks() {
    let server = TestServer::start();
    server.index("acme", "default", "doc", "apples fall from trees");
    add(&server, json!({"user_memory": "apples are Ann's favourite", "memory_id": "m"})).ok();
    let stats = server.get("/tenant/stats?tenant_id=acme").ok();
    let counts = ["object_count", "tenant_object_count", "source_count", "memory_count"];
    assert_eq!(counts.map(|name| stats[name].as_u64().unwrap()), [1, 1, 1, 1]);
    assert_eq!(server.sources("acme", "default").len(), 1);
    assert_eq!(server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok()["count"], 1);
    assert_eq!(server.get("/jobs").ok()["jobs"].as_array().unwrap().len(), 1);
    server.post("/upload/verify_processing?file_id=m", Value::Null).error(404, "source_not_found");
    for chunk in server
        .retrieve("acme", "", "apples")
        .into_iter()
        .chain(server.full_text("acme", "", "apples"))
    {
        assert_eq!(chunk["source_id"], "doc");
    }
    let body = json!({"tenant_id": "acme", "file_id": "m"});
    server.post("/fetch/fetch_content", body).error(404, "source_not_found");
    let body = json!({"tenant_id": "acme", "source_ids": ["m"]});
    assert_eq!(server.post("/list/sources_by_id", body.clone()).ok()["not_found"], json!(["m"]));
    let deleted = server.call("DELETE", "/upload/delete_source", body).ok();
    assert_eq!(deleted["deleted_count"], 0);
    assert_eq!(list(&server, "acme", "").len(), 1);
    // A document and a memory with the same id are independent.
    server.index("acme", "default", "m", "pears");
    assert_eq!(texts(&list(&server, "acme", "")), ["apples are Ann's favourite"]);
    delete(&server, "m").ok();
    assert_eq!(server.sources("acme", "default").len(), 2);
    // The internal scope of memories has a name that no client can send.
    for name in ["!default", "!", "default!"] {
        let query = format!("/list/sources?tenant_id=acme&sub_tenant_id={}", encode(name));
        server.get(&query).error(400, "invalid_identifier");
    }
}

/// Goal: without a generator `infer` stores only the original text.
#[test]
fn without_a_generator_infer_keeps_the_original_alone() {
    let server = TestServer::start();
    let mut body = json!({"user_memory": "I like tea. And you?", "infer": true});
    body["custom_instructions"] = json!("briefly");
    add(&server, body).ok();
    assert_eq!(texts(&list(&server, "acme", "")), ["I like tea. And you?"]);
}

#[test]
fn a_message_becomes_its_statements() {
    let server = TestServer::start();
    let message = "Hi! I prefer window seats. My dog is called Rex. What is the weather like?";
    let body = json!({"user_message": message, "user_name": "Ann"});
    let made = generate(&server, body.clone());
    assert_eq!(made, ["Ann prefers window seats.", "Ann's dog is called Rex."]);
    assert_eq!(memory_count(&server), 2);
    assert_eq!(generate(&server, body), made, "what is remembered is not added again");
    assert_eq!(memory_count(&server), 2);
    assert_eq!(retrieve(&server, "window seats", "")[0]["memory_content"], made[0].as_str());
    let idle = json!({"user_message": "Hello there! How are you?"});
    assert_eq!(generate(&server, idle), Vec::<String>::new());
    let path = path("generate_user_memory", "acme", "");
    server.post(&path, json!({"user_message": " "})).error(400, "invalid_value");
    server.post(&path, json!({})).error(400, "missing_field");
}

/// Goal: a repeated request with an idempotency key adds nothing twice.
#[test]
fn a_repeated_request_adds_nothing_twice() {
    let server = TestServer::start();
    let request = || {
        http::Request::post("/user_memory/add_user_memory?tenant_id=acme")
            .header("authorization", format!("Bearer {}", crate::support::KEY))
            .header("idempotency-key", "one")
            .body(axum::body::Body::from(r#"{"user_memory": "likes tea"}"#))
            .expect("a request")
    };
    let first = server.send(request()).ok();
    assert_eq!(server.send(request()).ok(), first);
    assert_eq!(list(&server, "acme", "").len(), 1);
}

#[test]
fn a_near_memory_steers_a_search_and_says_so() {
    let server = TestServer::start();
    let texts = ["paper on granite walls", "paper on timber walls", "paper on brick walls"];
    let items = texts.iter().enumerate();
    let items = items.map(|(n, text)| json!({"file_id": format!("d{n}"), "content": text}));
    server.index_items("acme", "default", &items.collect::<Vec<_>>());
    let ask = |personalise: bool| {
        let changes = json!({"personalise_search": personalise, "alpha": 1});
        timeless(server.ask("retrieve", "paper on walls", &changes).ok())
    };
    let plain = ask(false);
    assert_eq!(ask(true), plain, "without memories nothing changes");
    let id =
        add(&server, json!({"user_memory": "paper on walls of timber"})).ok()["memory_id"].clone();
    add(&server, json!({"user_memory": "Lunch is at noon."})).ok();
    assert_eq!(ask(false), plain, "nobody asked for it");
    let steered = ask(true);
    assert_eq!(steered["metadata"]["personalised"], true);
    assert_eq!(steered["metadata"]["memories_used"], json!([id]));
    assert_eq!(ids_of(&list_of(&steered, "chunks"))[0], "d1");
    assert_eq!(list_of(&steered, "chunks").len(), 3, "memories are no chunks");
}
