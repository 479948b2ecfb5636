//! Tool calls in chats: the client's functions reach the generator, its calls reach the client, and
//! their results reach the generator.

use serde_json::{Value, json};

use crate::openai::{chat, chunks, content};
use crate::support::{Reply, TestServer, use_generator};
use crate::upstream::{Asked, Turn, Upstream};

const QUESTION: &str = "How warm is it at the Eiffel Tower?";
const LYON: &str = "{\"city\":\"Lyon\"}";
const PATH: &str = "/v1/chat/completions";

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    json!({"type": "function", "function": {"name": name, "parameters": schema}})
}

fn call(id: &str, city: &str) -> Value {
    let arguments = json!({ "city": city }).to_string();
    json!({"id": id, "type": "function", "function": {"name": "weather", "arguments": arguments}})
}

/// Makes two parallel tool calls, streamed in pieces, until the request contains results.
fn caller(asked: &Asked) -> Turn {
    if asked.is_preparation() {
        return Turn::Fails(400, "", "{}");
    }
    if !asked.said("tool").is_empty() {
        return Turn::Says(vec!["It is 21 degrees. ", "Eiffel designed the tower [1]."]);
    }
    let pieces = [
        json!({"index": 0, "id": "a", "function": {"name": "weather", "arguments": ""}}),
        json!({"index": 0, "function": {"arguments": "{\"city\":"}}),
        json!({"index": 0, "id": "", "function": {"arguments": "\"Paris\"}"}}),
        json!({"index": 1, "id": "b", "function": {"name": "weather", "arguments": LYON}}),
    ];
    let deltas = pieces.map(|piece| json!({"content": null, "tool_calls": [piece]}));
    Turn::Sends(deltas.to_vec(), "tool_calls")
}

fn server_over(upstream: &Upstream) -> TestServer {
    let url = upstream.url.clone();
    let server = TestServer::start_with(|settings| {
        use_generator(settings, crate::generated::settings_at(url));
    });
    server.index("acme", "default", "s", "The Eiffel Tower was designed by Gustave Eiffel.");
    server
}

fn with_tools(changes: &Value) -> Value {
    let mut body = chat("acme", QUESTION);
    body["tools"] = json!([tool("weather")]);
    for (name, value) in changes.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

#[test]
fn a_tool_is_called_and_its_results_are_answered_from() {
    let upstream = Upstream::start(caller);
    let server = server_over(&upstream);
    let body = with_tools(&json!({"tool_choice": "auto", "parallel_tool_calls": true}));
    let first = server.post(PATH, body.clone()).ok();
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{first}");
    let message = &choice["message"];
    assert_eq!(message["content"], Value::Null);
    assert_eq!(message["tool_calls"].as_array().expect("calls").len(), 2);
    for (at, (id, city)) in [("a", "Paris"), ("b", "Lyon")].into_iter().enumerate() {
        let told = &message["tool_calls"][at];
        let arguments = told["function"]["arguments"].as_str().expect("a text");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        assert_eq!((&told["id"], &told["type"]), (&json!(id), &json!("function")));
        assert_eq!(
            (&told["function"]["name"], &arguments["city"]),
            (&json!("weather"), &json!(city))
        );
    }
    let asked = upstream.asked().pop().expect("a request");
    assert_eq!(asked.body["tools"], json!([tool("weather")]));
    assert_eq!(
        (&asked.body["tool_choice"], &asked.body["parallel_tool_calls"]),
        (&json!("auto"), &json!(true))
    );
    assert!(asked.said("user").contains("designed by Gustave Eiffel"), "sources are shown too");

    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let streamed = chunks(&server.post(PATH, streamed));
    let last = &streamed.last().expect("chunks")["choices"][0];
    assert_eq!(last["finish_reason"], "tool_calls");
    let calls = last["delta"]["tool_calls"].as_array().expect("calls");
    assert_eq!((&calls[0]["index"], &calls[1]["index"]), (&json!(0), &json!(1)));
    assert_eq!(calls[1]["function"], message["tool_calls"][1]["function"]);

    let mut second = body;
    let messages = second["messages"].as_array_mut().expect("messages");
    messages.push(message.clone());
    for (id, result) in [("b", "19"), ("a", "21")] {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    let second = server.post(PATH, second).ok();
    assert_eq!(content(&second), "It is 21 degrees. Eiffel designed the tower [1].");
    assert_eq!(second["choices"][0]["finish_reason"], "stop");
    assert!(second["choices"][0]["message"].get("tool_calls").is_none());
    let asked = upstream.asked().pop().expect("a request");
    let told = asked.body["messages"].as_array().expect("messages");
    let roles: Vec<&str> = told.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(told[2]["tool_calls"], json!([call_of(message, 0), call_of(message, 1)]));
    assert_eq!((&told[3]["tool_call_id"], &told[3]["content"]), (&json!("b"), &json!("19")));
}

fn call_of(message: &Value, at: usize) -> Value {
    message["tool_calls"][at].clone()
}

#[test]
fn a_question_without_documents_may_still_call() {
    let upstream = Upstream::start(caller);
    let server = server_over(&upstream);
    server.post("/user/create_tenant?tenant_id=empty", Value::Null).ok();
    let mut body = with_tools(&json!({}));
    body["model"] = json!("empty");
    let reply = server.post(PATH, body).ok();
    assert_eq!(reply["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn calls_of_tools_that_nobody_offers_are_left_out() {
    let upstream = Upstream::start(caller);
    let server = server_over(&upstream);
    for changes in [json!({"tools": []}), json!({"tool_choice": "none"})] {
        let reply = server.post(PATH, with_tools(&changes)).ok();
        assert_eq!(reply["choices"][0]["finish_reason"], "stop", "{reply}");
        assert_eq!(reply["model_used"], "extractive", "an empty answer falls back");
        assert!(upstream.asked().pop().expect("a request").body.get("tools").is_none());
    }
}

#[test]
fn a_call_that_must_be_made_is_not_replaced_by_an_extract() {
    let upstream = Upstream::start(|_| Turn::Fails(503, "", "{}"));
    let server = server_over(&upstream);
    let named = json!({"type": "function", "function": {"name": "weather"}});
    for choice in [json!("required"), named] {
        let reply = server.post(PATH, with_tools(&json!({ "tool_choice": choice })));
        assert!(reply.status >= 500, "{}", reply.status);
    }
    let free = server.post(PATH, with_tools(&json!({}))).ok();
    assert_eq!(free["model_used"], "extractive");
}

#[test]
fn results_that_do_not_fit_are_refused_and_not_left_out() {
    let upstream = Upstream::start(caller);
    let server = server_over(&upstream);
    let mut body = with_tools(&json!({}));
    let calls = json!({"role": "assistant", "tool_calls": [call("a", "Paris")]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "word ".repeat(6000)});
    body["messages"].as_array_mut().expect("messages").extend([calls, result]);
    let error = server.post(PATH, body).error(400, "question_too_long");
    assert!(error["error"]["message"].as_str().expect("a text").contains("4096"), "{error}");
}

#[test]
fn broken_calls_of_a_generator_end_in_an_extract() {
    for deltas in [
        vec![json!({"tool_calls": [{"index": 7, "id": "a", "function": {"name": "weather"}}]})],
        vec![json!({"tool_calls": [{"index": 0, "function": {"name": "weather"}}]})],
        vec![json!({"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]})],
    ] {
        let upstream = Upstream::start(move |_| Turn::Sends(deltas.clone(), "tool_calls"));
        let server = server_over(&upstream);
        let reply = server.post(PATH, with_tools(&json!({}))).ok();
        assert_eq!(reply["model_used"], "extractive", "{reply}");
    }
}

#[test]
fn wrong_tools_and_calls_are_named() {
    let upstream = Upstream::start(caller);
    let server = server_over(&upstream);
    let refused = |changes: Value, param: &str| {
        let reply: Reply = server.post(PATH, with_tools(&changes));
        let error = reply.error(400, "invalid_value");
        assert_eq!(error["error"]["param"], param, "{error}");
    };
    let function = |function: Value| json!({"tools": [{"type": "function", "function": function}]});
    refused(json!({"tools": {}}), "tools");
    refused(json!({"tools": vec![tool("f"); 129]}), "tools");
    refused(json!({"tools": [{"type": "custom"}]}), "tools[0].type");
    refused(function(json!(7)), "tools[0].function");
    refused(function(json!({"name": "no spaces"})), "tools[0].function.name");
    let twice = [json!({"name": "f"}), json!({"name": "g"}), json!({"name": "f"})];
    let twice = twice.map(|function| json!({"type": "function", "function": function}));
    refused(json!({"tools": twice}), "tools[2].function.name");
    refused(function(json!({"name": "f", "parameters": []})), "tools[0].function.parameters");
    refused(function(json!({"name": "f", "description": 1})), "tools[0].function.description");
    refused(function(json!({"name": "f", "strict": "yes"})), "tools[0].function.strict");
    refused(json!({"tool_choice": "sometimes"}), "tool_choice");
    refused(json!({"tool_choice": "required", "tools": []}), "tool_choice");
    let other = json!({"type": "function", "function": {"name": "other"}});
    refused(json!({ "tool_choice": other }), "tool_choice");
    refused(json!({"parallel_tool_calls": 1}), "parallel_tool_calls");

    let after = |messages: &[Value]| {
        let question = [json!({"role": "user", "content": QUESTION})];
        json!({"messages": question.iter().chain(messages).collect::<Vec<_>>()})
    };
    let says = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "21"});
    refused(after(&[result("a")]), "messages[1].tool_call_id");
    refused(after(&[says(json!([call("a", "Paris")]))]), "messages");
    let twice = [says(json!([call("a", "Paris")])), result("a"), result("a")];
    refused(after(&twice), "messages[3].tool_call_id");
    refused(after(&[says(json!("x"))]), "messages[1].tool_calls");
    refused(after(&[says(json!([{"id": "a"}]))]), "messages[1].tool_calls[0].function.name");
    refused(after(&[says(json!([{"function": {}}]))]), "messages[1].tool_calls[0].id");
    let unnamed = json!({"role": "tool", "content": "21"});
    let reply = server.post(PATH, with_tools(&after(&[says(json!([call("a", "x")])), unnamed])));
    assert_eq!(reply.error(400, "missing_field")["error"]["param"], "messages[2].tool_call_id");
    assert!(upstream.asked().is_empty(), "nothing of it has reached the generator");
}

#[test]
fn without_a_generator_tools_and_results_are_refused() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "The Eiffel Tower was designed by Gustave Eiffel.");
    let error = server.post(PATH, with_tools(&json!({}))).error(400, "unsupported_parameter");
    assert_eq!(error["error"]["param"], "tools", "{error}");
    let mut body = with_tools(&json!({"tools": []}));
    let calls = json!({"role": "assistant", "tool_calls": [call("a", "Paris")]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "21"});
    body["messages"].as_array_mut().expect("messages").extend([calls, result]);
    let error = server.post(PATH, body).error(400, "unsupported_parameter");
    assert_eq!(error["error"]["param"], "messages", "{error}");
}
