//! `/openapi.json` against the server: every operation is served, and responses conform to the
//! documented schemas.

use serde_json::{Value, json};

use crate::contract::{Operation, encode, guarded, operations};
use crate::support::{KEY, TestServer};

/// Operations that this release does not have.
const ABSENT: &[(&str, &str)] =
    &[("POST", "/search/hybrid-search"), ("POST", "/memories/add-memories")];

/// Goal: every documented operation is served: none is an unknown path or method, with or without a
/// trailing slash.
#[test]
fn every_documented_operation_is_served() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    for operation in operations(&server) {
        let reply = operation.send(&server, KEY, &operation.sample("acme", None));
        let body: Value = serde_json::from_slice(&reply.bytes).unwrap_or_default();
        let unknown = ["route_not_found", "method_not_allowed", "internal"];
        assert!(!unknown.iter().any(|word| body["reason"] == *word), "{}", operation.name());
    }
}

/// Goal: an operation that this release does not have is neither documented nor served.
#[test]
fn what_is_not_there_is_neither_documented_nor_served() {
    let server = TestServer::start();
    let documented: Vec<String> = operations(&server).iter().map(Operation::name).collect();
    for (method, path) in ABSENT {
        assert!(!documented.contains(&format!("{method} {path}")), "{path} is documented");
        let reply = server.call(method, path, Value::Null);
        assert_eq!(reply.status, 404, "{method} {path}");
        reply.error(404, "route_not_found");
    }
}

/// Returns the schema rule that a value breaks, or `None`. A member that is missing from the schema
/// is an error too, as the document describes responses exactly.
fn misfit(document: &Value, schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(path) = schema["$ref"].as_str() {
        let target = document.pointer(path.trim_start_matches('#')).expect("a definition");
        return misfit(document, target, value, place);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array() {
            let errors: Vec<String> =
                choices.iter().map_while(|choice| misfit(document, choice, value, place)).collect();
            return (errors.len() == choices.len()).then(|| errors.join(" and "));
        }
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |wanted: &Value| *wanted == kind || (*wanted == "number" && kind == "integer");
    let fits = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is_kind),
        wanted => is_kind(wanted),
    };
    if !fits {
        return Some(format!("{place} is {kind}, not {}", schema["type"]));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return Some(format!("{place} is {value}, none of {words:?}"));
    }
    match value {
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            misfit(document, &schema["items"], item, &format!("{place}[{at}]"))
        }),
        Value::Object(members) => {
            let required = schema["required"].as_array().into_iter().flatten();
            let missing =
                required.filter_map(Value::as_str).find(|name| !members.contains_key(*name));
            if let Some(name) = missing {
                return Some(format!("{place} lacks {name}"));
            }
            members.iter().find_map(|(name, member)| {
                let place = format!("{place}.{name}");
                match (schema["properties"].get(name), &schema["additionalProperties"]) {
                    (Some(schema), _) => misfit(document, schema, member, &place),
                    (None, Value::Object(_)) => {
                        misfit(document, &schema["additionalProperties"], member, &place)
                    }
                    (None, Value::Bool(true)) => None,
                    // A free-form map has no properties of its own.
                    (None, _) if schema.get("properties").is_none() => None,
                    (None, _) => Some(format!("{place} is not documented")),
                }
            })
        }
        _ => None,
    }
}

/// The schema of a response.
fn schema_of(document: &Value, method: &str, path: &str, status: u16) -> Value {
    let responses = &document["paths"][path][method.to_ascii_lowercase()]["responses"];
    responses[status.to_string()]["content"]["application/json"]["schema"].clone()
}

/// Goal: the schema checker detects violations.
#[test]
fn a_value_that_breaks_a_schema_is_noticed() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "number"}},
        "c": {"anyOf": [{"type": "null"}, {"$ref": "#/d"}]}}});
    let document = json!({"d": {"type": "integer"}});
    let misfit_of = |value: Value| misfit(&document, &schema, &value, "body");
    assert_eq!(misfit_of(json!({"a": "x", "b": [1, 2.5], "c": 3})), None);
    assert_eq!(misfit_of(json!({"a": null, "c": null})), None);
    for wrong in [
        json!([]),
        json!({}),
        json!({"a": 1}),
        json!({"a": "x", "b": ["y"]}),
        json!({"a": "x", "c": 1.5}),
        json!({"a": "x", "z": 1}),
    ] {
        assert!(misfit_of(wrong.clone()).is_some(), "{wrong}");
    }
}

/// Goal: successful responses have exactly the documented schema, no less and no more.
#[test]
fn answers_have_the_documented_form() {
    let server = TestServer::start();
    let document = server.get("/openapi.json").ok();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let rows = json!({"file_id": "s", "embeddings": [[1.0, 0.0]]});
    let mut checked = 0;
    let mut all = operations(&server);
    // Deletions go last, and `s` is restored before each operation.
    all.sort_by_key(|operation| (operation.method == "DELETE", operation.path.contains("tenant")));
    for operation in all {
        server.post("/upload/upload_embeddings?tenant_id=vectors", rows.clone());
        server.index("acme", "north", "s", "word of a text");
        server.index("acme", "default", "s", "word of a text");
        let of_vectors = operation.path.contains("embeddings");
        let tenant = match operation.path.as_str() {
            path if path.contains("create_tenant") => "fresh",
            _ if of_vectors => "vectors",
            _ => "acme",
        };
        let sub_tenant = operation.path.contains("delete_sub_tenant").then_some("north");
        let reply = operation.send(&server, KEY, &operation.sample(tenant, sub_tenant));
        let is_json =
            reply.headers.get("content-type").is_some_and(|kind| kind == "application/json");
        if !is_json || operation.path == "/openapi.json" {
            continue;
        }
        let name = operation.name();
        let schema = schema_of(&document, &operation.method, &operation.path, reply.status);
        let body = reply.json();
        assert!(schema.is_object(), "{name} answers {} undocumented: {body}", reply.status);
        assert_eq!(misfit(&document, &schema, &body, "body"), None, "{name}: {body}");
        checked += usize::from(reply.status == 200);
        if operation.path == "/embeddings/create_tenant" {
            server.call("DELETE", "/tenant/delete?tenant_id=fresh&confirm=fresh", Value::Null).ok();
        }
        if operation.path == "/user/create_tenant" {
            server.call("DELETE", "/tenant/delete?tenant_id=fresh&confirm=fresh", Value::Null).ok();
        }
    }
    assert!(checked >= 33, "{checked} answers were checked");
}

/// Goal: responses have one of the documented media types.
#[test]
fn answers_come_under_a_documented_media_type() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "word of a text");
    let document = server.get("/openapi.json").ok();
    let types = |method: &str, path: &str| -> Vec<String> {
        let content = &document["paths"][path][method]["responses"]["200"]["content"];
        content.as_object().expect("types").keys().cloned().collect()
    };
    assert_eq!(types("post", "/search/qna"), ["application/json", "text/event-stream"]);
    assert_eq!(types("get", "/docs"), ["text/html"]);
    assert_eq!(types("get", "/fetch/download/{token}"), ["*/*"]);
    for operation in operations(&server) {
        let reply = operation.send(&server, KEY, &operation.sample("acme", None));
        if reply.status == 200 {
            let given = reply.headers["content-type"].to_str().unwrap();
            let essence = given.split(';').next().unwrap_or_default().to_owned();
            let types = types(&operation.method.to_ascii_lowercase(), &operation.path);
            assert!(types.contains(&essence), "{} answers {given}", operation.name());
        }
    }
}

/// Goal: errors have the documented schema too, and only documented statuses occur.
#[test]
fn errors_have_the_documented_form() {
    let server = TestServer::start();
    let document = server.get("/openapi.json").ok();
    let read = server.make_key("read", Value::Null);
    for operation in guarded(&server) {
        let wrong = format!("?tenant_id={}", encode("../x"));
        let mut sample = operation.sample("nowhere", None);
        let unknown = operation.send(&server, KEY, &sample);
        sample.query.push(("tenant_id".to_owned(), wrong));
        let invalid = operation.send(&server, KEY, &sample);
        let forbidden = operation.send(&server, &read, &operation.sample("nowhere", None));
        let unauthorized = operation.send(&server, "none", &operation.sample("nowhere", None));
        for reply in [unknown, invalid, forbidden, unauthorized] {
            if reply.status == 200 {
                continue;
            }
            let schema = schema_of(&document, &operation.method, &operation.path, reply.status);
            let (name, body) = (operation.name(), reply.json());
            assert!(schema.is_object(), "{name} answers {} undocumented", reply.status);
            assert_eq!(misfit(&document, &schema, &body, "body"), None, "{name}: {body}");
        }
    }
}

/// Goal: descriptions are self-contained, for readers who have only this document.
#[test]
fn operations_are_described_and_refer_to_nothing_else() {
    let server = TestServer::start();
    let document = server.get("/openapi.json").ok();
    for operation in operations(&server) {
        let method = operation.method.to_ascii_lowercase();
        let described = &document["paths"][&operation.path][method]["description"];
        let text = described.as_str().unwrap_or_default();
        assert!(text.len() > 20 && !text.contains('\n'), "{}: {text}", operation.name());
    }
    let text = document.to_string();
    let digit = |at: usize| text.as_bytes().get(at + 4).is_some_and(u8::is_ascii_digit);
    let referring: Vec<&str> = text
        .match_indices("API ")
        .filter(|(at, _)| digit(*at))
        .filter_map(|(at, _)| text.get(at..at + 9))
        .collect();
    assert!(referring.is_empty(), "{referring:?}");
}
