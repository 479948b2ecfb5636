//! The OpenAI-compatible interface below `/v1`: formats, errors, limits and scopes.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use http::Request;
use lodestone_embed::HashEmbedder;
use lodestone_rank::{RerankError, Reranker, Verdicts};
use lodestone_types::RequestContext;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::contract::{check_error, operations};
use crate::support::{KEY, Reply, TestServer, use_generator};
use crate::upstream::Upstream;

const MODEL: &str = "hashing-test-double";
const QUESTION: &str = "Who designed the Eiffel Tower?";

fn with_texts() -> TestServer {
    let server = TestServer::start();
    for (sub_tenant, text) in [
        ("default", "The Eiffel Tower was designed by Gustave Eiffel."),
        ("north", "The Forth Bridge was opened in 1890 in Scotland."),
    ] {
        server.index("acme", sub_tenant, "s", text);
    }
    server
}

fn embed(server: &TestServer, input: Value) -> Reply {
    server.post("/v1/embeddings", json!({"model": MODEL, "input": input}))
}

pub fn chat(model: &str, question: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": question}]})
}

/// Sends JSON with additional headers.
fn with_headers(server: &TestServer, path: &str, body: &Value, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::post(path).header("authorization", format!("Bearer {KEY}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request.body(Body::from(body.to_string())).expect("a request"))
}

/// The vector of an entry as 32-bit floats.
fn numbers(entry: &Value) -> Vec<f32> {
    let numbers = entry["embedding"].as_array().expect("numbers");
    numbers.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

pub fn content(completion: &Value) -> &str {
    completion["choices"][0]["message"]["content"].as_str().expect("a text")
}

#[test]
fn errors_have_the_form_of_openai_below_v1_only() {
    let server = TestServer::start_with(|settings| {
        settings.rate_limit = Some("2000/2000".parse().expect("a rate"));
    });
    for operation in operations(&server) {
        let request = Request::builder().method(operation.method.as_str());
        let request = request.uri(operation.filled_path()).header("authorization", "Bearer wrong");
        let reply = server.send(request.body(Body::empty()).expect("a request"));
        if reply.status == 401 {
            let is_openai = operation.path.starts_with("/v1/");
            assert_eq!(reply.json()["error"].is_object(), is_openai, "{}", operation.name());
        }
    }
    for (method, path, status, code) in [
        ("GET", "/v1/nothing", 404, "route_not_found"),
        ("GET", "/v1/", 404, "route_not_found"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/absent", 404, "model_not_found"),
        ("POST", "/v1/embeddings", 400, "missing_field"),
    ] {
        let reply = server.call(method, path, Value::Null);
        check_error(&reply, path);
        assert!(reply.json()["error"].is_object(), "{path}");
        reply.error(status, code);
    }
    let missing = server.post("/v1/chat/completions", json!({"model": "x"}));
    let error = missing.error(400, "missing_field");
    assert_eq!(error["error"]["param"], "messages");
    assert_eq!(error["error"]["type"], "invalid_request_error");
    assert!(server.get("/v10").json()["error"].is_string());
}

#[test]
fn a_key_above_its_rate_is_told_so_in_the_same_form() {
    let server = TestServer::start_with(|settings| {
        settings.rate_limit = Some("1/1".parse().expect("a rate"));
    });
    server.get("/v1/models").ok();
    let limited = server.get("/v1/models");
    let error = limited.error(429, "rate_limited");
    assert_eq!(error["error"]["type"], "rate_limit_error");
    assert!(limited.headers.contains_key("retry-after"));
}

#[test]
fn texts_become_vectors_in_their_order() {
    let server = TestServer::start();
    let one = embed(&server, json!("apples fall")).ok();
    assert_eq!((&one["object"], &one["model"]), (&json!("list"), &json!(MODEL)));
    assert_eq!(one["usage"], json!({"prompt_tokens": 2, "total_tokens": 2}));
    let expected: Vec<f32> = HashEmbedder::vector("apples fall");
    assert_eq!(numbers(&one["data"][0]), expected);
    assert_eq!(
        (&one["data"][0]["object"], &one["data"][0]["index"]),
        (&json!("embedding"), &json!(0))
    );
    let texts: Vec<String> = (0..2048).map(|n| format!("apple number {n}")).collect();
    let many = embed(&server, json!(texts)).ok();
    let data = many["data"].as_array().expect("vectors");
    assert_eq!(data.len(), 2048);
    for at in [0, 1000, 2047] {
        assert_eq!(data[at]["index"], at);
        assert_eq!(numbers(&data[at]), HashEmbedder::vector(&texts[at]), "{at}");
    }
    assert_eq!(many["usage"]["prompt_tokens"], 2048 * 3);
    let base64 = json!({"model": MODEL, "input": ["apples fall"], "encoding_format": "base64"});
    let packed = server.post("/v1/embeddings", base64).ok();
    let bytes: Vec<u8> = expected.iter().flat_map(|x| x.to_le_bytes()).collect();
    let text = packed["data"][0]["embedding"].as_str().expect("base64");
    assert_eq!(text.len(), bytes.len().div_ceil(3) * 4);
    assert!(server.get("/tenant/list").ok()["tenants"] == json!([]), "no tenant is needed or made");
}

#[test]
fn wrong_inputs_are_named() {
    let server = TestServer::start();
    let many = vec!["x"; 2049];
    for (body, status, code, param) in [
        (json!({"input": []}), 400, "invalid_value", "input"),
        (json!({"input": ["a", ""]}), 400, "invalid_value", "input"),
        (json!({"input": 7}), 400, "invalid_value", "input"),
        (json!({"input": ["a", 7]}), 400, "invalid_value", "input"),
        (json!({"input": many}), 400, "too_many_items", "input"),
        (json!({"input": vec![1; 8193]}), 400, "too_many_items", "input"),
        // The test model has no vocabulary.
        (json!({"input": [[1, 2]]}), 400, "invalid_value", "input"),
        (json!({"input": "a", "dimensions": 32}), 400, "invalid_value", "dimensions"),
        (json!({"input": "a", "encoding_format": "hex"}), 400, "invalid_value", "encoding_format"),
        (json!({"input": "a", "input_type": "answer"}), 400, "invalid_value", "input_type"),
        (json!({"input": "a", "model": "text-embedding-3-small"}), 404, "model_not_found", "model"),
    ] {
        let reply = server.post("/v1/embeddings", body.clone());
        assert_eq!(reply.error(status, code)["error"]["param"], param, "{}", reply.json());
    }
    let message = embed(&server, json!(["a", ""])).json()["error"]["message"].clone();
    assert_eq!(message, "input[1] is empty");
    let own = json!({"input": "a", "dimensions": 64, "input_type": "search_query"});
    server.post("/v1/embeddings", own).ok();
    let large = json!({"input": "x".repeat(9 << 20)});
    server.post("/v1/embeddings", large).error(413, "body_too_large");
}

#[test]
fn unknown_members_are_ignored_and_named_in_the_header() {
    let server = with_texts();
    let body = json!({"model": MODEL, "input": "a", "user": "u", "inputs": 1, "modle": "x"});
    let reply = server.post("/v1/embeddings", body);
    assert!(reply.ok().get("ignored_parameters").is_none());
    assert_eq!(reply.headers["x-ignored-parameters"], "inputs, modle, user");
    let mut body = chat("acme", QUESTION);
    body["top_p"] = json!(0.5);
    body["messages"][0]["name"] = json!("Ann");
    let reply = server.post("/v1/chat/completions", body.clone());
    reply.ok();
    assert_eq!(reply.headers["x-ignored-parameters"], "messages.name, top_p");
    let strict = [("prefer", "handling=strict")];
    let reply = with_headers(&server, "/v1/chat/completions", &body, &strict);
    reply.error(400, "unknown_parameter");
}

#[test]
fn the_models_of_a_key_are_those_of_its_scope() {
    let server = with_texts();
    server.index("other", "default", "s", "pears");
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let ids = |key: &str| -> Vec<String> {
        let list = server.call_as(key, "GET", "/v1/models", &Value::Null).ok();
        assert_eq!(list["object"], "list");
        let name = |model: &Value| {
            assert_eq!(
                (&model["object"], &model["owned_by"]),
                (&json!("model"), &json!("lodestone"))
            );
            format!("{} {}", model["kind"].as_str().unwrap(), model["id"].as_str().unwrap())
        };
        list["data"].as_array().expect("models").iter().map(name).collect()
    };
    let own = format!("embedding {MODEL}");
    assert_eq!(ids(KEY), [own.as_str(), "knowledge acme", "knowledge other"]);
    let scoped = server.make_key("read", json!([{"tenant_id": "acme"}]));
    assert_eq!(ids(&scoped), [own.as_str(), "knowledge acme"]);
    let narrow = json!([{"tenant_id": "acme", "sub_tenant_ids": ["north"]}]);
    let narrow = server.make_key("read", narrow);
    assert_eq!(ids(&narrow), [own.as_str(), "knowledge acme/north"]);
    let get = |key: &str, model: &str| {
        server.call_as(key, "GET", &format!("/v1/models/{model}"), &Value::Null)
    };
    assert_eq!(get(&scoped, MODEL).ok()["dimension"], 64);
    assert_eq!(get(&scoped, "acme").ok()["kind"], "knowledge");
    assert_eq!(get(&narrow, "acme%2Fnorth").ok()["id"], "acme/north");
    let absent = get(&scoped, "absent").error(404, "model_not_found");
    for (key, model) in [
        (&scoped, "other"),
        (&scoped, "vectors"),
        (&narrow, "acme"),
        (&narrow, "acme%2Fdefault"),
        (&scoped, "..%2Fx"),
    ] {
        assert_eq!(get(key, model).error(404, "model_not_found"), absent, "{model}");
    }
}

/// A reranker that prefers long passages and reads two at a time.
#[derive(Debug, Default)]
struct Longest(Mutex<Vec<usize>>);

impl Reranker for Longest {
    fn name(&self) -> &str {
        "longest-test-double"
    }

    fn score(
        &self,
        _: &RequestContext,
        _: Option<Instant>,
        _: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError> {
        self.0.lock().push(passages.len());
        let scores = passages.iter().take(2).map(|passage| passage.len() as f32 / 100.0);
        Ok(Verdicts { scores: scores.collect(), is_cut_short: false })
    }
}

#[test]
fn documents_are_ranked_by_the_reranker() {
    let reranker = Arc::new(Longest::default());
    let part = Arc::clone(&reranker);
    let server = TestServer::start_with_parts(|_| {}, |parts| parts.reranker = Some(part));
    let documents = json!(["aa", {"text": "aaaa", "title": "x"}, "a", "aaa", "aaaa"]);
    let body = json!({"query": "q", "documents": documents, "top_n": 3, "return_documents": true});
    let ranked = server.post("/v1/rerank", body.clone()).ok();
    assert_eq!(ranked["model"], "longest-test-double");
    let expected = json!([
        {"index": 1, "relevance_score": 0.04, "document": {"text": "aaaa"}},
        {"index": 4, "relevance_score": 0.04, "document": {"text": "aaaa"}},
        {"index": 3, "relevance_score": 0.03, "document": {"text": "aaa"}},
    ]);
    assert_eq!(timeless_scores(&ranked["results"]), timeless_scores(&expected));
    assert_eq!(*reranker.0.lock(), [5, 3, 1], "as many at once as it reads");
    let ids = server.get("/v1/models").ok();
    assert_eq!(ids["data"][1]["kind"], "reranker");
}

#[test]
fn a_ranker_of_a_vector_store_is_the_reranker() {
    let reranker = Arc::new(Longest::default());
    let part = Arc::clone(&reranker);
    let server = TestServer::start_with_parts(|_| {}, |parts| parts.reranker = Some(part));
    server.index("acme", "north", "s", "The Forth Bridge was opened in 1890 in Scotland.");
    let tenant = [("x-lodestone-tenant", "acme")];
    for (options, is_asked) in [
        (json!(null), false),
        (json!({"ranker": "none"}), false),
        (json!({"ranker": "auto"}), true),
        (json!({"ranker": "default-2024-11-15"}), true),
    ] {
        reranker.0.lock().clear();
        let body = json!({"query": "Forth Bridge", "ranking_options": options});
        let found = with_headers(&server, "/v1/vector_stores/north/search", &body, &tenant).ok();
        assert_eq!(found["data"].as_array().map(Vec::len), Some(1), "{options}");
        assert_eq!(!reranker.0.lock().is_empty(), is_asked, "{options}");
    }
}

/// The scores in hundredths, because the JSON floats have more digits.
fn timeless_scores(results: &Value) -> Vec<(u64, i64, Value)> {
    let entry = |result: &Value| {
        let score = result["relevance_score"].as_f64().expect("a score");
        let index = result["index"].as_u64().expect("an index");
        (index, (score * 100.0).round() as i64, result["document"].clone())
    };
    results.as_array().expect("results").iter().map(entry).collect()
}

#[test]
fn without_a_reranker_the_cosine_ranks_and_the_answer_says_so() {
    let server = TestServer::start();
    let documents = json!(["pears grow", "apples fall", "apples fall down"]);
    let body = json!({"query": "apples fall", "documents": documents});
    let ranked = server.post("/v1/rerank", body.clone()).ok();
    assert_eq!(ranked["model"], MODEL);
    let results = ranked["results"].as_array().expect("results");
    let order: Vec<&Value> = results.iter().map(|result| &result["index"]).collect();
    assert_eq!(order, [&json!(1), &json!(2), &json!(0)]);
    assert_eq!(
        (&results[0]["relevance_score"], &results[0]["document"]),
        (&json!(1.0), &Value::Null)
    );
    let ask = |changes: Value| {
        let mut body = body.clone();
        for (name, value) in changes.as_object().expect("members") {
            body[name] = value.clone();
        }
        server.post("/v1/rerank", body)
    };
    ask(json!({"model": MODEL})).ok();
    ask(json!({"model": "rerank-v3.5"})).error(404, "model_not_found");
    ask(json!({"documents": []})).error(400, "invalid_value");
    ask(json!({"documents": "apples"})).error(400, "invalid_value");
    ask(json!({"documents": [{"title": "x"}]})).error(400, "invalid_value");
    ask(json!({"documents": vec!["x"; 1001]})).error(400, "too_many_items");
    ask(json!({"query": " "})).error(400, "invalid_value");
    ask(json!({"top_n": 0})).error(400, "invalid_value");
    assert_eq!(ask(json!({"documents": vec!["x y z"; 1000]})).ok()["results"][999]["index"], 999);
}

#[test]
fn the_owner_of_a_turn_must_be_in_the_scope() {
    let server = with_texts();
    let body = json!({"input": "a"});
    with_headers(&server, "/v1/embeddings", &body, &[("x-lodestone-tenant", "acme")]).ok();
    let absent = with_headers(&server, "/v1/embeddings", &body, &[("x-lodestone-tenant", "no")]);
    absent.error(404, "tenant_not_found");
    let bad = with_headers(&server, "/v1/embeddings", &body, &[("x-lodestone-tenant", "../x")]);
    assert_eq!(bad.error(400, "invalid_identifier")["error"]["param"], "x-lodestone-tenant");
}

#[test]
fn a_tenant_answers_as_a_model_with_citations() {
    let server = with_texts();
    let completion = server.post("/v1/chat/completions", chat("acme", QUESTION)).ok();
    assert_eq!(
        (&completion["object"], &completion["model"]),
        (&json!("chat.completion"), &json!("acme"))
    );
    assert_eq!(completion["model_used"], "extractive");
    let choice = &completion["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    let text = content(&completion);
    assert!(text.contains("Gustave Eiffel") && text.contains("[1]"), "{text}");
    let message = &choice["message"];
    let cited = &message["annotations"][0];
    assert_eq!(cited["type"], "url_citation");
    let cited = &cited["url_citation"];
    let place = |name: &str| cited[name].as_u64().expect("a position") as usize;
    let mark: String = text
        .chars()
        .skip(place("start_index"))
        .take(place("end_index") - place("start_index"))
        .collect();
    assert_eq!((mark.as_str(), &cited["url"]), ("[1]", &json!("lodestone://acme/default/s")));
    let citation = &message["citations"][0];
    assert_eq!(
        (&citation["n"], &citation["file_id"], &citation["url"]),
        (&json!(1), &json!("s"), &Value::Null)
    );
    assert!(citation["text"].as_str().is_some_and(|text| text.contains("Gustave Eiffel")));
    let usage = &completion["usage"];
    assert_eq!(usage["prompt_tokens"], 5);
    assert_eq!(
        usage["total_tokens"].as_u64(),
        usage["completion_tokens"].as_u64().map(|tokens| tokens + 5)
    );
    let same = server.post("/search/qna", json!({"tenant_id": "acme", "question": QUESTION})).ok();
    assert_eq!(same["answer"], content(&completion));
}

#[test]
fn a_model_or_a_header_names_the_scope() {
    let server = with_texts();
    let ask = |model: &str, headers: &[(&str, &str)]| {
        let body = chat(model, "When was the Forth Bridge opened?");
        with_headers(&server, "/v1/chat/completions", &body, headers)
    };
    for (model, headers) in [
        ("acme/north", &[][..]),
        ("acme", &[("x-lodestone-sub-tenant", "north")][..]),
        ("gpt-4o", &[("x-lodestone-tenant", "acme"), ("x-lodestone-sub-tenant", "north")][..]),
        ("acme/north", &[("x-lodestone-tenant", "acme")][..]),
    ] {
        let completion = ask(model, headers).ok();
        assert!(content(&completion).contains("1890"), "{model}: {completion}");
        assert_eq!(completion["model"], "acme/north");
    }
    for (model, tenant) in [("acme", None), ("other/north", Some(("x-lodestone-tenant", "acme")))] {
        let elsewhere = ask(model, tenant.as_slice()).ok();
        assert!(!content(&elsewhere).contains("1890"), "{model}: {elsewhere}");
    }
    let absent = ask("gpt-4o", &[]).error(404, "model_not_found");
    assert_eq!(ask("../x", &[]).error(404, "model_not_found"), absent);
    ask("acme", &[("x-lodestone-tenant", "nowhere")]).error(404, "tenant_not_found");
    let narrow = json!([{"tenant_id": "acme", "sub_tenant_ids": ["north"]}]);
    let narrow = server.make_key("read", narrow);
    let scoped = |model: &str| {
        server.call_as(&narrow, "POST", "/v1/chat/completions", &chat(model, QUESTION))
    };
    scoped("acme/north").ok();
    for model in ["acme", "acme/south", "nowhere"] {
        assert_eq!(scoped(model).error(404, "model_not_found"), absent, "{model}");
    }
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    ask("vectors", &[]).error(409, "tenant_mode_mismatch");
}

#[test]
fn earlier_messages_are_the_conversation() {
    let server = TestServer::start();
    for (id, text) in [
        (
            "tower",
            "The Eiffel Tower was designed by Gustave Eiffel. The Eiffel Tower was built in 1889.",
        ),
        ("bridge", "Built it was, built again, and built in 1890."),
    ] {
        server.index("acme", "default", id, text);
    }
    let ask = |messages: Value| {
        server.post("/v1/chat/completions", json!({"model": "acme", "messages": messages})).ok()
    };
    let follow_up = "When was it built?";
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "content": "Gustave Eiffel designed the Eiffel Tower."},
        {"role": "user", "content": follow_up},
    ]);
    let told = ask(messages);
    let history =
        json!([{"question": QUESTION, "answer": "Gustave Eiffel designed the Eiffel Tower."}]);
    let body = json!({"tenant_id": "acme", "question": follow_up, "history": history});
    assert_eq!(content(&told), server.post("/search/qna", body).ok()["answer"]);
    let alone = ask(json!([{"role": "user", "content": follow_up}]));
    assert_ne!(content(&told), content(&alone));
    let mut long: Vec<Value> = Vec::new();
    for turn in 0..400 {
        long.push(json!({"role": "user", "content": format!("Question {turn}?")}));
        long.push(json!({"role": "assistant", "content": "An answer. ".repeat(20)}));
    }
    long.push(json!({"role": "user", "content": QUESTION}));
    assert!(content(&ask(json!(long))).contains("Gustave Eiffel"));
}

#[test]
fn what_an_answer_cannot_be_is_refused() {
    let server = with_texts();
    let tool = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    let ask = |changes: Value| {
        let mut body = chat("acme", QUESTION);
        for (name, value) in changes.as_object().expect("members") {
            body[name] = value.clone();
        }
        server.post("/v1/chat/completions", body)
    };
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    for (changes, code, param) in [
        (json!({"tools": tool}), "unsupported_parameter", "tools"),
        (json!({"functions": [{"name": "f"}]}), "unsupported_parameter", "functions"),
        (
            json!({"response_format": {"type": "json_object"}}),
            "unsupported_parameter",
            "response_format",
        ),
        (json!({"n": 2}), "invalid_value", "n"),
        (json!({"temperature": 2.5}), "invalid_value", "temperature"),
        (json!({"max_tokens": 0}), "invalid_value", "max_tokens"),
        (json!({"max_tokens": 5, "max_completion_tokens": 6}), "conflicting_values", "max_tokens"),
        (json!({"messages": []}), "invalid_value", "messages"),
        (json!({"messages": [{"role": "system", "content": "x"}]}), "invalid_value", "messages"),
        (json!({"messages": user(json!(" "))}), "invalid_value", "messages"),
        (
            json!({"messages": user(json!("x".repeat(16_385)))}),
            "invalid_value",
            "messages[0].content",
        ),
        (
            json!({"messages": user(json!([{"type": "image_url", "image_url": {"url": "x"}}]))}),
            "invalid_value",
            "messages[0].content",
        ),
        (json!({"messages": user(json!({"a": 1}))}), "invalid_value", "messages[0].content"),
        (
            json!({"messages": [{"role": "function", "content": "x"}]}),
            "invalid_value",
            "messages[0].role",
        ),
        (json!({"messages": [{"content": "x"}]}), "missing_field", "messages[0].role"),
        (json!({"messages": [7]}), "invalid_value", "messages"),
        (
            json!({"messages": vec![json!({"role": "user", "content": "x"}); 1001]}),
            "too_many_items",
            "messages",
        ),
    ] {
        let reply = ask(changes.clone());
        let error = reply.error(400, code);
        let told = error["error"]["param"].as_str().unwrap_or_default();
        assert!(told.starts_with(param), "{changes}: {error}");
    }
    for accepted in [
        json!({"tools": [], "response_format": {"type": "text"}, "n": 1, "temperature": 0.7}),
        json!({"tools": tool, "tool_choice": "none", "max_completion_tokens": 100}),
    ] {
        ask(accepted).ok();
    }
}

/// The data of a stream's events.
pub fn chunks(reply: &Reply) -> Vec<Value> {
    assert_eq!(
        (reply.status, &reply.headers["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let text = std::str::from_utf8(&reply.bytes).expect("UTF-8");
    let text = text.strip_suffix("data: [DONE]\n\n").expect("it ends with [DONE]");
    let blocks = text.split_terminator("\n\n").filter(|block| !block.starts_with(':'));
    let data = |block: &str| block.strip_prefix("data: ").expect("data alone").to_owned();
    blocks.map(|block| serde_json::from_str(&data(block)).expect("JSON")).collect()
}

#[test]
fn a_streamed_answer_is_the_same_in_chunks() {
    let server = with_texts();
    let whole = server.post("/v1/chat/completions", chat("acme", QUESTION)).ok();
    let mut body = chat("acme", QUESTION);
    body["stream"] = json!(true);
    let plain = chunks(&server.post("/v1/chat/completions", body.clone()));
    body["stream_options"] = json!({"include_usage": true});
    let counted = chunks(&server.post("/v1/chat/completions", body));
    assert_eq!(counted.len(), plain.len() + 1);
    let delta = |chunk: &Value| chunk["choices"][0]["delta"].clone();
    assert_eq!(delta(&plain[0])["role"], "assistant");
    let text: String = plain
        .iter()
        .filter_map(|chunk| delta(chunk)["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(text, content(&whole));
    let last = plain.last().expect("chunks");
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    let message = &whole["choices"][0]["message"];
    assert_eq!(delta(last)["annotations"], message["annotations"]);
    assert_eq!(delta(last)["citations"], message["citations"]);
    for chunk in &plain {
        assert_eq!(
            (&chunk["object"], &chunk["model"]),
            (&json!("chat.completion.chunk"), &json!("acme"))
        );
        assert_eq!((&chunk["id"], &chunk["usage"]), (&plain[0]["id"], &Value::Null));
    }
    let usage = counted.last().expect("chunks");
    assert_eq!((&usage["choices"], &usage["usage"]), (&json!([]), &whole["usage"]));
    let mut absent = chat("nowhere", QUESTION);
    absent["stream"] = json!(true);
    server.post("/v1/chat/completions", absent).error(404, "model_not_found");
}

#[test]
fn a_generator_gets_the_wishes_of_the_client() {
    let upstream = Upstream::saying(vec!["Gustave Eiffel designed the Eiffel Tower [1]."]);
    let url = upstream.url.clone();
    let server = TestServer::start_with(|settings| {
        use_generator(settings, crate::generated::settings_at(url));
    });
    server.index("acme", "default", "s", "The Eiffel Tower was designed by Gustave Eiffel.");
    let mut body = chat("acme", QUESTION);
    body["temperature"] = json!(0.7);
    body["max_tokens"] = json!(50);
    let system = json!({"role": "system", "content": "Answer like a pirate."});
    body["messages"].as_array_mut().expect("messages").insert(0, system);
    let completion = server.post("/v1/chat/completions", body.clone()).ok();
    assert_eq!(content(&completion), "Gustave Eiffel designed the Eiffel Tower [1].");
    assert_eq!(completion["model_used"], "small-model");
    assert_eq!(completion["usage"]["completion_tokens"], 10, "the generator's count");
    let asked = upstream.asked();
    let written = asked.iter().rfind(|asked| !asked.is_preparation()).expect("a request");
    assert_eq!(
        (&written.body["temperature"], &written.body["max_tokens"]),
        (&json!(0.7), &json!(50))
    );
    assert!(written.said("system").contains("Answer like a pirate."));
    body["stream"] = json!(true);
    let streamed = chunks(&server.post("/v1/chat/completions", body));
    let piece = |chunk: &Value| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned);
    assert_eq!(streamed.iter().filter_map(piece).collect::<String>(), content(&completion));
}
