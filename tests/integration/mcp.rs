//! The Model Context Protocol at `/mcp`: keys, roles, scopes, rate limits and sizes.
//! `scripts/mcp_check` tests it with third-party clients.

use axum::body::Body;
use http::Request;
use lodestone_engine::settings::RateLimit;
use serde_json::{Value, json};

use crate::contract::check_error;
use crate::support::{KEY, Reply, TestServer};

fn tell(server: &TestServer, key: &str, query: &str, message: &Value) -> Reply {
    let request = Request::post(format!("/mcp{query}"))
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("host", "lodestone.test");
    server.send(request.body(Body::from(message.to_string())).unwrap())
}

fn ask(server: &TestServer, key: &str, query: &str, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    tell(server, key, query, &message).ok()
}

fn call(server: &TestServer, key: &str, query: &str, tool: &str, arguments: Value) -> Value {
    ask(server, key, query, "tools/call", json!({"name": tool, "arguments": arguments}))
}

fn tools(server: &TestServer, key: &str) -> Vec<String> {
    let listed = ask(server, key, "", "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_a_key_nothing_is_told_or_read() {
    let server = TestServer::start();
    for key in ["", "wrong"] {
        let told = tell(&server, key, "", &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
        assert_eq!(
            (told.status, &told.headers["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
        check_error(&told, "without a key");
    }
    // There are no sessions: nothing to listen to and nothing to end.
    for method in ["GET", "DELETE"] {
        let request =
            Request::builder().method(method).uri("/mcp").header("host", "lodestone.test");
        let request = request.header("authorization", format!("Bearer {KEY}"));
        assert_eq!(server.send(request.body(Body::empty()).unwrap()).status, 405, "{method}");
    }
    let long = "x".repeat(lodestone_types::limits::MCP_MESSAGE_BYTES_MAX + 1);
    let told = tell(&server, KEY, "", &json!({"jsonrpc": "2.0", "id": 1, "method": long}));
    told.error(413, "body_too_large");
    assert_eq!(tell(&server, KEY, "?tenant_id=a%20b", &json!({})).status, 400);
    for nonsense in [json!([]), json!("x"), json!({"method": 7})] {
        let told = tell(&server, KEY, "", &nonsense);
        assert!((400..500).contains(&told.status), "{nonsense}: {told:?}");
    }
}

#[test]
fn a_filter_of_another_type_than_the_values_is_told() {
    let server = TestServer::start();
    let lamps = json!({"file_id": "lamps", "content": "Forty lamps hang in the hall.",
        "document_metadata": {"year": 2024}});
    server.index_items("acme", "default", &[lamps]);
    for (tool, name) in [("search", "query"), ("ask", "question")] {
        for (year, told) in [(json!("2024"), true), (json!(2024), false)] {
            let arguments = json!({name: "lamps", "filter": {"year": year}});
            let found = call(&server, KEY, "?tenant_id=acme", tool, arguments);
            let warning = &found["result"]["structuredContent"]["warnings"][0];
            assert_eq!(warning.is_string(), told, "{found}");
        }
    }
}

#[test]
fn a_key_has_the_tools_of_its_role_and_the_tenants_of_its_scope() {
    let server = TestServer::start();
    server.index("acme", "default", "lamps", "Forty lamps hang in the northern hall.");
    server.index("other", "default", "secret", "The vault opens with seven turns.");
    let reader = server.make_key("read", json!([{"tenant_id": "acme"}]));
    let writer = server.make_key("write", json!([{"tenant_id": "acme"}]));
    let read = ["search", "ask", "read_source", "list_sources", "recall"];
    assert_eq!(tools(&server, &reader), read);
    assert_eq!(tools(&server, &writer).len(), 8);

    let found = call(&server, &reader, "", "search", json!({"query": "lamps"}));
    let passage = &found["result"]["structuredContent"]["passages"][0];
    assert_eq!(passage["file_id"], "lamps", "{found}");
    let refused = call(&server, &reader, "", "add_text", json!({"text": "x"}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("may not use"), "{refused}");
    assert_eq!(server.get("/list/sources?tenant_id=acme").ok()["total"], 1);

    // Another tenant, given by argument, query or URI, looks as if it did not exist.
    let named = call(&server, &reader, "", "search", json!({"query": "x", "tenant_id": "other"}));
    assert_eq!(named["result"]["isError"], true, "{named}");
    let addressed = call(&server, &reader, "?tenant_id=other", "search", json!({"query": "x"}));
    let absent = call(&server, &reader, "?tenant_id=absent", "search", json!({"query": "x"}));
    let text = |reply: &Value| {
        let text = reply["result"]["content"][0]["text"].as_str().unwrap();
        text.split("request ").next().unwrap().to_owned()
    };
    assert_eq!(text(&addressed), text(&absent));
    for tenant in ["other", "absent"] {
        let uri = format!("lodestone://{tenant}/default/secret");
        let read = ask(&server, &reader, "", "resources/read", json!({"uri": uri}));
        assert!(
            read["error"]["message"].as_str().unwrap().contains("resource not found"),
            "{read}"
        );
    }
    let uri = "lodestone://acme/default/lamps";
    let read = ask(&server, &reader, "", "resources/read", json!({"uri": uri}));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("Forty"), "{read}");
    let listed = ask(&server, &reader, "", "resources/list", json!({}));
    assert_eq!(listed["result"]["resources"][0]["uri"], uri, "{listed}");
}

/// Goal: a key for several sub-tenants without `default` has to name one, and the model is told so.
#[test]
fn a_key_for_several_sub_tenants_names_one() {
    let server = TestServer::start();
    for part in ["north", "south", "default"] {
        server.index("acme", part, "lamps", "Forty lamps hang in the northern hall.");
    }
    let key = |parts: Value| {
        server.make_key("read", json!([{"tenant_id": "acme", "sub_tenant_ids": parts}]))
    };
    let listed = |key: &str| ask(&server, key, "", "resources/list", json!({}))["result"].clone();
    let schema = |key: &str| {
        let listed = ask(&server, key, "", "tools/list", json!({}));
        listed["result"]["tools"][0]["inputSchema"].clone()
    };
    let several = key(json!(["north", "south"]));
    assert_eq!(listed(&several)["resources"], json!([]));
    let told = schema(&several);
    assert!(told["required"].as_array().unwrap().contains(&json!("sub_tenant_id")), "{told}");
    let about = &told["properties"]["sub_tenant_id"];
    assert_eq!(about["enum"], json!(["north", "south"]));
    assert!(!about["description"].as_str().unwrap().contains("default"), "{about}");
    let refused = call(&server, &several, "", "search", json!({"query": "lamps"}));
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("sub_tenant_id is required"), "{text}");
    let named = json!({"query": "lamps", "sub_tenant_id": "south"});
    let found = call(&server, &several, "", "search", named);
    assert_eq!(found["result"]["structuredContent"]["passages"][0]["file_id"], "lamps", "{found}");

    let with_default = key(json!(["north", "default"]));
    assert_eq!(listed(&with_default)["resources"].as_array().unwrap().len(), 1);
    let told = schema(&with_default);
    assert!(!told["required"].as_array().unwrap().contains(&json!("sub_tenant_id")), "{told}");
    let one = key(json!(["south"]));
    assert!(listed(&one)["resources"][0]["uri"].as_str().unwrap().contains("/south/"));
    assert!(schema(&one)["properties"]["sub_tenant_id"].is_null());
}

#[test]
fn a_call_counts_once_against_the_rate() {
    let limit = RateLimit { per_second: 0.01, burst: 3.0 };
    let server = TestServer::start_with(|settings| settings.rate_limit = Some(limit));
    server.post("/user/create_tenant", json!({"tenant_id": "acme"})).ok();
    for _ in 0..2 {
        let listed = call(&server, KEY, "?tenant_id=acme", "list_sources", json!({}));
        assert_eq!(listed["result"]["structuredContent"]["total"], 0, "{listed}");
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    tell(&server, KEY, "", &message).error(429, "rate_limited");
}

/// Goal: errors refer to the tool's own arguments rather than the API fields they map to.
#[test]
fn a_wrong_argument_is_told_by_its_name() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let cases = [
        ("search", json!({"query": 5}), "invalid arguments: query: invalid type"),
        ("search", json!({"query": "x", "limit": "5"}), "invalid arguments: limit: invalid type"),
        ("search", json!({"limit": 5}), "invalid arguments: missing field `query`"),
        ("search", json!({"query": "x", "filter": {"a": {"$like": 1}}}), "filter.a.$like is not"),
        ("ask", json!({"question": "x", "file_ids": ["a/b"]}), "file_ids"),
        ("add_text", json!({"text": " "}), "text must not be blank"),
        ("remember", json!({"text": " "}), "text must not be blank"),
        ("remember", json!({"text": "x", "expires_in": 0}), "expires_in must be from 1"),
    ];
    for (tool, arguments, told) in cases {
        let refused = call(&server, KEY, "?tenant_id=acme", tool, arguments);
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let text = refused["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with(told), "{text}");
    }
    // PHP clients encode an empty map this way.
    let params = json!({"name": "search", "arguments": []});
    let refused = ask(&server, KEY, "?tenant_id=acme", "tools/call", params);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let unknown = ask(&server, KEY, "", "no/method", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let twice = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    tell(&server, KEY, "", &twice).error(400, "malformed_body");
}

/// Goal: a resource that is temporarily unreadable is not reported as missing.
#[test]
fn a_busy_tenant_still_has_its_resources() {
    let server = TestServer::start();
    server.index("acme", "default", "lamps", "Forty lamps hang in the hall.");
    let limits = json!({"tenant_id": "acme", "max_requests_per_minute": 1});
    server.post("/admin/tenant_limits", limits).ok();
    let uri = json!({"uri": "lodestone://acme/default/lamps"});
    let read = || ask(&server, KEY, "?tenant_id=acme", "resources/read", uri.clone());
    let first = read();
    assert!(first["result"]["contents"][0]["text"].is_string(), "{first}");
    let refused = read();
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let told = refused["error"]["message"].as_str().expect("a message");
    assert!(told.contains("tenant_rate_limited"), "{told}");
    let listed = ask(&server, KEY, "?tenant_id=acme", "resources/list", json!({}));
    assert_eq!(listed["error"]["code"], -32603, "{listed}");
}
