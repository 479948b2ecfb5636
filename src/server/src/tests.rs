//! The whole frame (keys, roles, error bodies, request ids, unknown routes, media types, invalid
//! input), checked for every entry of a table with one route of each kind, and the input types of
//! real routes. Requests go through the router itself.

pub mod support;

use axum::body::{Body, Bytes};
use futures_util::stream;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::tests::support::{Answer, Rig, multipart_body};

const METHODS: [Method; 5] =
    [Method::GET, Method::POST, Method::PATCH, Method::DELETE, Method::PUT];

/// Checks the form that every error has.
fn assert_error(answer: &Answer, status: u16, reason: &str) {
    assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
    let body = &answer.json;
    assert_eq!(body["reason"], reason, "{body}");
    for name in ["error", "message", "error_code", "request_id"] {
        assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{name} in {body}");
    }
    assert_eq!(body["success"], false);
    assert_eq!(body["detail"]["message"], body["message"]);
    assert_eq!(body["detail"]["error_code"], body["error_code"]);
    assert_eq!(answer.header("x-request-id"), body["request_id"].as_str());
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn every_route_needs_a_good_key() {
    let rig = Rig::new();
    for (method, path) in rig.keyed_routes() {
        for (authorization, reason) in [
            (None, "missing_api_key"),
            (Some("Bearer "), "missing_api_key"),
            (Some("Bearer"), "missing_api_key"),
            (Some("Bearer wrong"), "invalid_api_key"),
            (Some("Bearer read-key-"), "invalid_api_key"),
            (Some("Basic read-key"), "invalid_api_key"),
            (Some("Bearer expired-key"), "expired_api_key"),
        ] {
            let mut request = Request::builder().method(&method).uri(path);
            if let Some(authorization) = authorization {
                request = request.header("authorization", authorization);
            }
            let request = request.header("content-type", "text/xml").body("{ bad".into()).unwrap();
            let answer = rig.send(request).await;
            assert_error(&answer, 401, reason);
            assert_eq!(answer.json["error"], "Unauthorized", "{method} {path}");
            assert_eq!(answer.json["error_code"], "UNAUTHORIZED");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        }
    }
    let in_query = rig.get("/echo?api_key=read-key", None).await;
    assert_error(&in_query, 401, "missing_api_key");
}

#[tokio::test]
async fn roles_are_a_ladder() {
    let rig = Rig::new();
    for route in rig.specs() {
        let Some(needed) = route.role else { continue };
        for (key, role) in Rig::KEYS {
            let method = &route.method;
            let answer = rig.send(Rig::request(method, route.path, Some(key), "")).await;
            let is_forbidden = answer.status == StatusCode::FORBIDDEN;
            assert_eq!(is_forbidden, role < needed, "{key} {method} {}", route.path);
            if is_forbidden {
                assert_error(&answer, 403, "insufficient_role");
            }
        }
    }
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let rig = Rig::new();
    assert_error(&rig.get("/nowhere", None).await, 401, "missing_api_key");
    assert_error(&rig.get("/nowhere", Some("read-key")).await, 404, "route_not_found");
    assert_error(&rig.get("/echo//", Some("read-key")).await, 404, "route_not_found");
    assert_error(&rig.get("/ECHO", Some("read-key")).await, 404, "route_not_found");
    assert_error(&rig.get("/", Some("read-key")).await, 404, "route_not_found");
    for (path, methods) in rig.paths() {
        let is_public = path == "/open" || path == "/openapi.json";
        for method in METHODS.iter().filter(|method| !methods.contains(method)) {
            let answer = rig.send(Rig::request(method, path, Some("admin-key"), "")).await;
            assert_error(&answer, 405, "method_not_allowed");
            let allow = answer.header("allow").unwrap();
            for offered in &methods {
                assert!(allow.contains(offered.as_str()), "{allow} lacks {offered}");
            }
            assert_eq!(allow.contains("HEAD"), methods.contains(&Method::GET));
            let answer = rig.send(Rig::request(method, path, None, "")).await;
            assert_eq!(answer.status.as_u16(), if is_public { 405 } else { 401 });
        }
        let answer = rig.send(Rig::request(&Method::OPTIONS, path, Some("read-key"), "")).await;
        assert_error(&answer, 405, "method_not_allowed");
    }
}

#[tokio::test]
async fn one_trailing_slash_is_tolerated() {
    let rig = Rig::new();
    for path in ["/echo", "/echo/", "/items/7", "/items/7/"] {
        assert_eq!(rig.get(path, Some("read-key")).await.status, 200, "{path}");
    }
    assert_eq!(rig.get("/items/7/", Some("read-key")).await.json["path"]["id"], "7");
    assert_error(&rig.get("/items/7//", Some("read-key")).await, 404, "route_not_found");
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let rig = Rig::new();
    let send = |id: &'static [u8]| {
        let request = Request::get("/echo").header("x-request-id", id);
        rig.send(request.header("authorization", "Bearer read-key").body(Body::empty()).unwrap())
    };
    for good in [&b"a"[..], b"A-z_0.9", &[b'x'; 128]] {
        let answer = send(good).await;
        assert_eq!(answer.header("x-request-id").unwrap().as_bytes(), good);
        assert_eq!(answer.json["request_id"].as_str().unwrap().as_bytes(), good);
    }
    for bad in [&b""[..], b"a b", b"a/b", b"\xff", &[b'x'; 129]] {
        let answer = send(bad).await;
        let made = answer.header("x-request-id").unwrap();
        assert!(made.starts_with("req_") && made.len() == 30, "{made}");
    }
    assert_ne!(send(b"").await.header("x-request-id"), send(b"").await.header("x-request-id"));
}

#[tokio::test]
async fn media_types() {
    let rig = Rig::new();
    let send = |path: &'static str, media: Option<&'static str>, body: &'static str| {
        let mut request = Request::post(path).header("authorization", "Bearer write-key");
        if let Some(media) = media {
            request = request.header("content-type", media);
        }
        rig.send(request.body(body.into()).unwrap())
    };
    for good in [
        None,
        Some(""),
        Some("application/json"),
        Some("Application/JSON; charset=utf-8"),
        Some("application/vnd.x+json"),
    ] {
        assert_eq!(send("/echo", good, "{\"a\": 1}").await.status, 200, "{good:?}");
    }
    for bad in ["text/xml", "text/plain", "application/+json", "multipart/form-data; boundary=B"] {
        let answer = send("/echo", Some(bad), "{}").await;
        assert_error(&answer, 415, "unsupported_media_type");
        assert_eq!(send("/echo", Some(bad), "").await.status, 200, "ignored without a body");
    }
    let json_to_form = send("/form", Some("application/json"), "{}").await;
    assert_error(&json_to_form, 415, "unsupported_media_type");
    assert_error(&send("/form", None, "{}").await, 415, "unsupported_media_type");
    let no_boundary = send("/form", Some("multipart/form-data"), "{}").await;
    assert_error(&no_boundary, 400, "malformed_body");
    let packed = Request::post("/echo").header("authorization", "Bearer write-key");
    let packed = packed.header("content-encoding", "gzip").body("x".into()).unwrap();
    assert_error(&rig.send(packed).await, 415, "unsupported_media_type");
}

#[tokio::test]
async fn a_form_is_read() {
    let rig = Rig::new();
    let (media, body) =
        multipart_body(&[("tenant_id", None, "acme"), ("file", Some("a.txt"), "x")]);
    let request = Request::post("/form?sub_tenant_id=b").header("content-type", &media);
    let request = request.header("authorization", "Bearer write-key").body(body.into()).unwrap();
    let answer = rig.send(request).await;
    assert_eq!(answer.json["file"], "a.txt", "{}", answer.text);
    assert_eq!(answer.json["scope"], "acme/b");
}

#[tokio::test]
async fn bodies_over_the_limit() {
    let rig = Rig::new();
    let post = |length: Option<&'static str>, body: Body| {
        let mut request = Request::post("/echo").header("authorization", "Bearer write-key");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        rig.send(request.body(body).unwrap())
    };
    // A body that never arrives proves that the response does not wait for it.
    let never = || Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
    assert_error(&post(Some("1001"), never()).await, 413, "body_too_large");
    let pieces = (0..200).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"1234567890")));
    let endless = stream::iter(pieces);
    assert_error(&post(None, Body::from_stream(endless)).await, 413, "body_too_large");
    assert_error(&post(Some("10"), never()).await, 408, "body_timeout");
}

#[tokio::test]
async fn no_body_is_read_before_the_checks() {
    let rig = Rig::new();
    // A stream that panics when polled proves that the body was not touched.
    let untouchable = || {
        Body::from_stream(stream::poll_fn(
            |_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
                panic!("the body was read")
            },
        ))
    };
    let cases = [
        ("/echo", None, "application/json", 401),
        ("/nowhere", Some("Bearer admin-key"), "application/json", 404),
        ("/items/7", Some("Bearer admin-key"), "application/json", 405),
        ("/admin", Some("Bearer read-key"), "application/json", 403),
        ("/echo", Some("Bearer write-key"), "text/xml", 415),
        ("/form", Some("Bearer write-key"), "application/json", 415),
        ("/echo", Some("Bearer write-key"), "application/json", 413),
    ];
    for (path, key, media, status) in cases {
        let mut request = Request::post(path).header("content-length", "104857600");
        request = request.header("content-type", media);
        if let Some(key) = key {
            request = request.header("authorization", key);
        }
        let answer = rig.send(request.body(untouchable()).unwrap()).await;
        assert_eq!(answer.status.as_u16(), status, "{path} {}", answer.text);
    }
}

#[tokio::test]
async fn syntax_and_validation_are_400() {
    let rig = Rig::new();
    let post = |uri: &'static str, body: &'static str| {
        rig.send(Rig::request(&Method::POST, uri, Some("write-key"), body))
    };
    assert_error(&post("/search", "{ bad").await, 400, "malformed_body");
    assert_error(&post("/search", "[]").await, 400, "malformed_body");
    assert_error(&post("/search", "").await, 400, "missing_field");
    for (body, reason) in [
        (r#"{"tenant_id": "t"}"#, "missing_field"),
        (r#"{"query": "q"}"#, "missing_field"),
        (r#"{"query": "q", "tenant_id": "t", "max_chunks": 0}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "t", "max_chunks": 1002}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "t", "max_chunks": "10"}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "t", "alpha": 1.5}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "t", "mode": "slow"}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "a/b"}"#, "invalid_identifier"),
        (r#"{"query": "q", "tenant_id": 5}"#, "invalid_value"),
        (r#"{"query": " ", "tenant_id": "t"}"#, "invalid_value"),
        (r#"{"query": "q", "tenant_id": "t", "metadata": 1}"#, "invalid_filter"),
    ] {
        let answer = post("/search", body).await;
        assert_error(&answer, 400, reason);
        assert_eq!(answer.json["error_code"], "INVALID_PARAMETERS");
        let entry = &answer.json["detail"]["errors"][0];
        assert_eq!(entry["location"], "body", "{body}");
        assert!(entry["field"].is_string() && entry["message"].is_string());
    }
    assert_eq!(post("/search", r#"{"query": "q", "tenant_id": "t", "x": {}}"#).await.status, 200);
}

#[tokio::test]
async fn ids_may_stand_anywhere_but_must_agree() {
    let rig = Rig::new();
    let post = |uri: &'static str, body: &'static str| {
        rig.send(Rig::request(&Method::POST, uri, Some("write-key"), body))
    };
    assert_eq!(post("/search?tenant_id=t", r#"{"query": "q"}"#).await.status, 200);
    let same = post("/search?tenant_id=t", r#"{"query": "q", "tenant_id": "t"}"#).await;
    assert_eq!(same.status, 200);
    let empty = post("/search?tenant_id=", r#"{"query": "q", "tenant_id": "t"}"#).await;
    assert_eq!(empty.status, 200);
    let other = post("/search?tenant_id=u", r#"{"query": "q", "tenant_id": "t"}"#).await;
    assert_error(&other, 400, "conflicting_values");
    let twice = post("/search?tenant_id=u&tenant_id=t", r#"{"query": "q"}"#).await;
    assert_error(&twice, 400, "conflicting_values");
    let misplaced = post("/search?max_chunks=x", r#"{"query": "q", "tenant_id": "t"}"#).await;
    assert_error(&misplaced, 400, "unknown_parameter");
    assert!(misplaced.text.contains("must be sent in the body"), "{}", misplaced.text);
}

#[tokio::test]
async fn ignored_parameters_are_named_and_mistakes_refused() {
    let rig = Rig::new();
    let post = |uri: &'static str, prefer: &'static str, body: &'static str| {
        let request = Request::post(uri).header("authorization", "Bearer write-key");
        rig.send(request.header("prefer", prefer).body(body.into()).unwrap())
    };
    let body = r#"{"query": "q", "tenant_id": "t", "colour": [1, {"a": 2}], "max_chunk": 3}"#;
    let refused = post("/search", "", body).await;
    assert_error(&refused, 400, "unknown_parameter");
    assert!(refused.text.contains("max_chunks"), "{}", refused.text);
    assert_eq!(refused.json["detail"]["errors"][0]["field"], "max_chunk");
    let lenient = post("/search?b%C3%A4r=1", "handling=lenient", body).await;
    assert_eq!(lenient.status, 200, "{}", lenient.text);
    assert_eq!(lenient.json["ignored_parameters"], json!(["bär", "colour", "max_chunk"]));
    assert_eq!(lenient.header("x-ignored-parameters"), Some("b%C3%A4r, colour, max_chunk"));
    let good = r#"{"query": "q", "tenant_id": "t"}"#;
    let plain = post("/search", "handling=strict", good).await;
    assert_eq!((plain.status.as_u16(), plain.header("x-ignored-parameters")), (200, None));
    assert!(plain.json.get("ignored_parameters").is_none());
    let strict = post("/search?colour=1", "handling=strict", good).await;
    assert_error(&strict, 400, "unknown_parameter");
    // An unknown name may be the cause of another error.
    let missing = post("/search", "", r#"{"question": "q", "tenant_id": "t"}"#).await;
    assert_error(&missing, 400, "missing_field");
    assert_eq!(missing.json["ignored_parameters"], json!(["question"]));
    assert_eq!(missing.header("x-ignored-parameters"), Some("question"));
    // A write must not go to another place than intended.
    let (media, form) = multipart_body(&[("tenant", None, "acme"), ("file", Some("a.txt"), "x")]);
    let request = Request::post("/form?tenant_id=t").header("content-type", &media);
    let request = request.header("authorization", "Bearer write-key").body(form.into()).unwrap();
    assert_error(&rig.send(request).await, 400, "unknown_parameter");
    let (media, form) = multipart_body(&[("colour", None, "red"), ("file", Some("a.txt"), "x")]);
    let request = Request::post("/form?tenant_id=t").header("content-type", &media);
    let request = request.header("authorization", "Bearer write-key").body(form.into()).unwrap();
    let ignored = rig.send(request).await;
    assert_eq!(ignored.json["ignored_parameters"], json!(["colour"]), "{}", ignored.text);
}

#[tokio::test]
async fn head_is_get_without_a_body() {
    let rig = Rig::new();
    let get = rig.get("/openapi.json", None).await;
    let head = rig.send(Rig::request(&Method::HEAD, "/openapi.json", None, "")).await;
    assert_eq!((head.status.as_u16(), head.text.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(get.text.len().to_string().as_str()));
    let head = rig.send(Rig::request(&Method::HEAD, "/search", Some("read-key"), "")).await;
    assert_eq!(head.status, 405);
}

#[tokio::test]
async fn faults_of_ours_are_500_without_detail() {
    let rig = Rig::new();
    for path in ["/panic", "/panic-off-thread", "/internal"] {
        let answer = rig.get(path, Some("read-key")).await;
        assert_error(&answer, 500, "internal");
        assert!(!answer.text.contains("secret"), "{}", answer.text);
    }
    assert_eq!(rig.get("/echo", Some("read-key")).await.status, 200, "the server lives on");
}

#[tokio::test]
async fn responses_are_compressed_when_asked_but_streams_never() {
    let rig = Rig::new();
    for coding in ["gzip", "br", "zstd"] {
        for (path, coded) in [("/openapi.json", Some(coding)), ("/stream", None)] {
            let request = Request::get(path).header("accept-encoding", coding);
            let request = request.header("authorization", "Bearer read-key");
            let answer = rig.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.header("content-encoding"), coded, "{path}");
        }
    }
    // A client that accepts no encoding still gets the response, because the work has been done.
    for (accepted, coded) in [
        ("identity;q=0", None),
        ("*;q=0", None),
        ("deflate, identity;q=0, *;q=0", None),
        ("gzip;q=0.5, identity;q=0", Some("gzip")),
        ("br;q=0.001, *;q=0", Some("br")),
    ] {
        let request = Request::get("/openapi.json").header("accept-encoding", accepted);
        let answer = rig.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, coded));
    }
    // One header line per encoding, as clients may send them.
    let lines = ["deflate", "identity;q=0", "gzip", "*;q=0"];
    let request = Request::get("/openapi.json");
    let request = lines.iter().fold(request, |all, line| all.header("accept-encoding", *line));
    let answer = rig.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-encoding")), (200, Some("gzip")));
    let answer = rig.get("/stream", Some("read-key")).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.text, "id: 1\nevent: done\ndata: {}\n\n");
}

#[tokio::test]
async fn cross_origin_only_for_configured_origins() {
    let rig = Rig::with(|settings| settings.cors_origins = vec!["https://a.example".into()]);
    let preflight = |origin: &'static str| {
        let request = Request::options("/search").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        rig.send(request.body(Body::empty()).unwrap())
    };
    let good = preflight("https://a.example").await;
    assert_eq!(good.status, 200);
    assert_eq!(good.header("access-control-allow-origin"), Some("https://a.example"));
    assert!(good.header("access-control-allow-methods").unwrap().contains("POST"));
    let bad = preflight("https://b.example").await;
    assert_error(&bad, 401, "missing_api_key");
    assert_eq!(bad.header("access-control-allow-origin"), None);
    let request = Request::get("/echo").header("origin", "https://a.example");
    let request = request.header("authorization", "Bearer read-key").body(Body::empty()).unwrap();
    let answer = rig.send(request).await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://a.example"));
}

#[tokio::test]
async fn rates_are_per_key() {
    let rig = Rig::with(|settings| {
        settings.rate_limit = "0.01/2".parse().ok();
    });
    for _ in 0..2 {
        assert_eq!(rig.get("/echo", Some("read-key")).await.status, 200);
    }
    let refused = rig.get("/echo", Some("read-key")).await;
    assert_error(&refused, 429, "rate_limited");
    assert!(refused.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(rig.get("/echo", Some("write-key")).await.status, 200);
    assert_eq!(rig.get("/open", None).await.status, 200, "no key, no bucket");
}

#[tokio::test]
async fn idempotency_keys_are_bounded_and_bound_to_the_input() {
    let rig = Rig::new();
    let send = |key: String, body: &'static str| {
        let request = Request::post("/echo").header("authorization", "Bearer write-key");
        rig.send(request.header("idempotency-key", key).body(body.into()).unwrap())
    };
    let first = send("k".into(), "{\"a\": 1}").await;
    let same = send("k".into(), "{\"a\": 1}").await;
    let other = send("k".into(), "{\"a\": 2}").await;
    assert_eq!(first.json["idempotency"], same.json["idempotency"]);
    assert_ne!(first.json["idempotency"], other.json["idempotency"]);
    assert_eq!(send("k".repeat(255), "").await.status, 200);
    let long = send("k".repeat(256), "").await;
    assert_error(&long, 400, "invalid_value");
    assert_eq!(long.json["detail"]["errors"][0]["location"], "header");
}

#[tokio::test]
async fn a_prefix_moves_every_path() {
    let rig = Rig::with(|settings| settings.path_prefix = "/lode".into());
    assert_eq!(rig.get("/lode/echo", Some("read-key")).await.status, 200);
    assert_eq!(rig.get("/lode/open/", None).await.status, 200);
    assert_error(&rig.get("/echo", Some("read-key")).await, 404, "route_not_found");
}

#[tokio::test]
async fn the_document_describes_the_table() {
    let rig = Rig::new();
    let document = rig.get("/openapi.json", None).await.json;
    assert_eq!(document["openapi"], "3.1.0");
    let mut operation_ids = std::collections::BTreeSet::new();
    for spec in rig.specs() {
        let method = spec.method.as_str().to_ascii_lowercase();
        let operation = &document["paths"][spec.path][&method];
        assert!(operation.is_object(), "{method} {}", spec.path);
        assert!(operation_ids.insert(operation["operationId"].to_string()));
        assert_eq!(operation["security"].is_array(), spec.role.is_none());
        assert!(operation["responses"]["200"]["content"].is_object());
        let named = spec.path.matches('{').count();
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
        assert_eq!(in_path.count(), named, "{}", spec.path);
    }
    let operations = document["paths"].as_object().unwrap().values();
    let count: usize = operations.map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(count, rig.specs().len(), "nothing beside the table");
    assert_eq!(
        document["paths"]["/search"]["post"]["requestBody"]["content"]["application/json"]["schema"]
            ["required"],
        json!(["query", "tenant_id"])
    );
    assert!(
        document["paths"]["/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]
            .is_object()
    );
    assert_references_resolve(&document, &document);
}

fn assert_references_resolve(document: &serde_json::Value, node: &serde_json::Value) {
    match node {
        serde_json::Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(|value| value.as_str()) {
                let pointer = reference.strip_prefix('#').expect("a local reference");
                assert!(document.pointer(pointer).is_some(), "{reference}");
            }
            members.values().for_each(|member| assert_references_resolve(document, member));
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| assert_references_resolve(document, item));
        }
        _ => {}
    }
}

/// Collects log lines, which are searched for text that must not be logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_names_the_route_and_nothing_of_the_caller() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let rig = Rig::new();
    let body = r#"{"query": "canary-text", "tenant_id": "canary-tenant", "x": 1}"#;
    let uri = "/search/?sub_tenant_id=canary-sub";
    rig.send(Rig::request(&Method::POST, uri, Some("read-key"), body)).await;
    rig.send(Rig::request(&Method::GET, "/items/canary-id?q=1", Some("canary-key"), "")).await;
    rig.get("/canary-path", Some("read-key")).await;
    rig.get("/internal", Some("read-key")).await;
    drop(guard);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    for wanted in ["/search", "/items/{id}", "status=200", "status=401", "status=500", "req_"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    for unwanted in ["canary", "read-key", "?"] {
        assert!(!text.contains(unwanted), "{unwanted} in {text}");
    }
    assert!(text.contains("secret"), "the cause of an internal error is logged: {text}");
}

/// Goal: a large response is kept in a file while its reader is slow.
#[tokio::test]
async fn a_large_answer_waits_in_a_file() {
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let rig = Rig::new();
    let request = Rig::request(&Method::GET, "/large", Some("read-key"), "");
    let response = rig.router.clone().oneshot(request).await.unwrap();
    let length: u64 = response.headers()["content-length"].to_str().unwrap().parse().unwrap();
    assert!(length > support::LARGE_BYTES as u64);
    assert_eq!(rig.spools.bytes(), length);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body.len() as u64, length);
    let told: Value = serde_json::from_slice(&body).unwrap();
    assert!(told["file"].as_str().unwrap().bytes().all(|byte| byte == b'x'));
    assert_eq!(rig.spools.bytes(), 0, "given back");
    let small = rig.get("/echo", Some("read-key")).await;
    assert_eq!((small.status, rig.spools.bytes()), (StatusCode::OK, 0));
}
