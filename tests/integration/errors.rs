//! Errors: authentication, validation, and their uniform format.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::contract::{check_error, guarded, operations};
use crate::support::{KEY, TestServer};

fn with_header(method: &str, path: &str, name: &str, value: &str, body: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header(name, value);
    request.body(Body::from(body.to_owned())).unwrap()
}

#[test]
fn every_operation_without_a_key_is_401() {
    let server = TestServer::start();
    for operation in guarded(&server) {
        let name = operation.name();
        let sample = operation.sample("acme", None);
        let reply = server.send(operation.request(None, &sample));
        check_error(&reply, &name);
        assert_eq!(reply.status, 401, "{name}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer", "{name}");
        if operation.path.starts_with("/v1/") {
            reply.error(401, "missing_api_key");
            continue;
        }
        let body = reply.json();
        assert_eq!(body["error"], "Unauthorized", "{name}");
        assert_eq!(body["error_code"], "UNAUTHORIZED", "{name}");
        assert_eq!(body["detail"]["error_code"], "UNAUTHORIZED", "{name}");
    }
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]), "nothing was made");
}

#[test]
fn a_wrong_key_is_401_whatever_the_body() {
    let server = TestServer::start();
    let basic = format!("Basic {KEY}");
    let longer = format!("Bearer {KEY}x");
    for authorization in ["Bearer wrong", basic.as_str(), "Bearer ", "Bearer", KEY, &longer] {
        for operation in guarded(&server) {
            let (method, path) = (operation.method.as_str(), operation.filled_path());
            let request = with_header(method, &path, "authorization", authorization, "{broken");
            let reply = server.send(request);
            check_error(&reply, &operation.name());
            assert_eq!(reply.status, 401, "{} with {authorization:?}", operation.name());
        }
    }
}

#[test]
fn the_scheme_word_may_be_written_in_any_case() {
    let server = TestServer::start();
    for scheme in ["bearer", "BEARER", "Bearer"] {
        let authorization = format!("{scheme} {KEY}");
        let request = with_header("GET", "/tenant/list", "authorization", &authorization, "");
        server.send(request).ok();
    }
}

#[test]
fn every_error_of_every_operation_has_the_one_form() {
    let server = TestServer::start();
    let bodies =
        ["", "{", "[]", "null", "\u{feff}{}", "{\"tenant_id\": 7}", "{\"tenant_id\": \"../x\"}"];
    let queries = ["", "?tenant_id=..", "?tenant_id=nowhere", "?tenant_id=a&tenant_id=b", "?%ff=%"];
    let types = ["application/json", "text/xml", "multipart/form-data; boundary=B"];
    let mut statuses = std::collections::BTreeSet::new();
    for operation in operations(&server) {
        for query in queries {
            for (body, content_type) in
                bodies.iter().flat_map(|body| types.map(|content_type| (body, content_type)))
            {
                let uri = format!("{}{query}", operation.filled_path());
                let request = Request::builder()
                    .method(operation.method.as_str())
                    .uri(&uri)
                    .header("authorization", format!("Bearer {KEY}"))
                    .header("content-type", content_type)
                    .body(Body::from(*body))
                    .unwrap();
                let reply = server.send(request);
                let what = format!("{} {uri} {body:?} {content_type}", operation.method);
                assert!(reply.headers.contains_key("x-request-id"), "{what}");
                if reply.status != 200 {
                    check_error(&reply, &what);
                    statuses.insert(reply.status);
                }
            }
        }
    }
    assert!([400, 404, 415].iter().all(|status| statuses.contains(status)), "{statuses:?}");
}

#[test]
fn a_valid_request_id_is_echoed_and_any_other_replaced() {
    let server = TestServer::start();
    let long = "a".repeat(128);
    for id in ["r-1", "A.b_c-9", &long] {
        let reply = server.send(with_header("GET", "/healthz", "x-request-id", id, ""));
        assert_eq!(reply.headers["x-request-id"], id);
    }
    let too_long = "a".repeat(129);
    for id in ["", "a b", "a/b", "a\"b", &too_long] {
        let reply = server.send(with_header("GET", "/nowhere", "x-request-id", id, ""));
        let given = reply.headers["x-request-id"].to_str().unwrap();
        assert!(!given.is_empty() && given != id, "{id:?} became {given:?}");
        assert_eq!(reply.json()["request_id"], given);
    }
}

#[test]
fn an_unknown_path_is_404() {
    let server = TestServer::start();
    for path in ["/upload", "/search/Retrieve", "/upload/upload_text/x", "//healthz", "/%00"] {
        let body = server.get(path).error(404, "route_not_found");
        assert_eq!(body["error"], "Not found", "{path}");
        let unauthorized = server.send(Request::builder().uri(path).body(Body::empty()).unwrap());
        assert_eq!(unauthorized.status, 401, "{path} without a key");
    }
}

#[test]
fn another_method_is_405_with_those_that_are_offered() {
    let server = TestServer::start();
    let all = operations(&server);
    for operation in &all {
        let mut offered: Vec<&str> = all
            .iter()
            .filter(|other| other.path == operation.path)
            .map(|other| other.method.as_str())
            .collect();
        if offered.contains(&"GET") {
            offered.push("HEAD");
        }
        offered.sort_unstable();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            if offered.contains(&method) {
                continue;
            }
            let reply = server.call(method, &operation.filled_path(), Value::Null);
            let name = format!("{method} {}", operation.path);
            assert_eq!(reply.status, 405, "{name}");
            check_error(&reply, &name);
            assert_eq!(reply.headers["allow"], offered.join(", ").as_str(), "{name}");
        }
    }
}

#[test]
fn one_trailing_slash_is_tolerated() {
    let server = TestServer::start();
    server.get("/healthz/").ok();
    server.get("/tenant/list/").ok();
    server.get("/tenant/list//").error(404, "route_not_found");
}

#[test]
fn values_out_of_range_are_400() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    let retrieve = |changes: Value| {
        let mut body = json!({"tenant_id": "acme", "query": "apples"});
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        server.post("/search/retrieve", body)
    };
    retrieve(json!({"max_chunks": 1, "alpha": 1, "mode": "accurate"})).ok();
    retrieve(json!({"max_chunks": 1001, "alpha": "0.5", "recency_bias": 1})).ok();
    for changes in [
        json!({"query": null}),
        json!({"query": " \n"}),
        json!({"query": "x".repeat(16_385)}),
        json!({"max_chunks": 0}),
        json!({"max_chunks": 1002}),
        json!({"max_chunks": -1}),
        json!({"max_chunks": 2.5}),
        json!({"alpha": 1.5}),
        json!({"alpha": -0.1}),
        json!({"alpha": "much"}),
        json!({"alpha": "NaN"}),
        json!({"recency_bias": 2}),
        json!({"mode": "slow"}),
        json!({"mode": "Fast"}),
        json!({"graph_context": "maybe"}),
        json!({"tenant_id": ""}),
    ] {
        let reply = retrieve(changes.clone());
        check_error(&reply, &changes.to_string());
        assert_eq!(reply.status, 400, "{changes}");
        let body = reply.json();
        assert_eq!(body["error_code"], "INVALID_PARAMETERS", "{changes}");
        let name = changes.as_object().unwrap().keys().next().unwrap();
        assert_eq!(body["detail"]["errors"][0]["field"], **name, "{changes}");
        assert_eq!(body["detail"]["errors"][0]["location"], "body", "{changes}");
    }
}

#[test]
fn a_broken_body_is_400_and_names_no_field() {
    let server = TestServer::start();
    for body in ["{", "{\"query\": \"x\"", "[1]", "\"x\"", "{\"a\": 1} 2", "{\"a\": \u{1}}"] {
        for path in ["/search/retrieve", "/upload/upload_text?tenant_id=acme"] {
            let request = Request::builder()
                .method("POST")
                .uri(path)
                .header("authorization", format!("Bearer {KEY}"))
                .body(Body::from(body))
                .unwrap();
            server.send(request).error(400, "malformed_body");
        }
    }
}

#[test]
fn another_media_type_is_415() {
    let server = TestServer::start();
    for operation in guarded(&server) {
        let types: &[&str] = match operation.is_multipart() {
            true => &["text/xml", "application/json", "application/x-www-form-urlencoded"],
            false => &["text/xml", "multipart/form-data; boundary=B", "application/jsonx"],
        };
        for content_type in types {
            let mut request = with_header(
                &operation.method,
                &operation.filled_path(),
                "content-type",
                content_type,
                "{}",
            );
            let key = format!("Bearer {KEY}").parse().unwrap();
            request.headers_mut().insert("authorization", key);
            let reply = server.send(request);
            let name = format!("{} as {content_type}", operation.name());
            check_error(&reply, &name);
            let body = reply.error(415, "unsupported_media_type");
            if !operation.path.starts_with("/v1/") {
                assert_eq!(body["error_code"], "UNSUPPORTED_MEDIA_TYPE", "{name}");
            }
        }
    }
}

#[test]
fn json_may_come_under_every_json_name_or_none() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    let body = json!({"tenant_id": "acme", "query": "apples"}).to_string();
    for content_type in
        ["application/json; charset=utf-8", "application/ld+json", "Application/JSON"]
    {
        let mut request =
            with_header("POST", "/search/retrieve", "content-type", content_type, &body);
        let key = format!("Bearer {KEY}").parse().unwrap();
        request.headers_mut().insert("authorization", key);
        server.send(request).ok();
    }
    let bare = format!("Bearer {KEY}");
    server.send(with_header("POST", "/search/retrieve", "authorization", &bare, &body)).ok();
}

#[test]
fn identifiers_may_stand_anywhere_but_must_agree() {
    let server = TestServer::start();
    server.index("acme", "default", "s", "apples fall");
    let before = server.state("acme");
    for operation in guarded(&server) {
        if !operation.takes("tenant_id") {
            continue;
        }
        let name = operation.name();
        let mut sample = operation.sample("acme", None);
        sample.query.push(("tenant_id".to_owned(), "elsewhere".to_owned()));
        let body = operation.send(&server, KEY, &sample).error(400, "conflicting_values");
        assert_eq!(body["detail"]["errors"][0]["field"], "tenant_id", "{name}");
    }
    assert_eq!(server.state("acme"), before);
    // A query parameter works where a body member is documented, and vice versa.
    let query = "/search/retrieve?tenant_id=acme&sub_tenant_id=default";
    server.post(query, json!({"query": "apples", "tenant_id": "acme"})).ok();
    server.post(query, json!({"query": "apples", "tenant_id": null, "sub_tenant_id": ""})).ok();
    let body = json!({"tenant_id": "acme", "source_id": "s", "content": "pears"});
    server.call("PATCH", "/upload/update_text", body).ok();
    server.settled("acme", "default", "s");
    assert_eq!(server.full_text("acme", "default", "pears").len(), 1);
}
