//! Requests of clients.
//!
//! An input consists of a head (method and URL, then headers), an empty line and a body. The
//! response is never an internal error, and an error has the documented format; the same request
//! sent in pieces, or with its JSON formatted differently, has the same meaning.

use axum::body::Body;
use http::{Method, Request};
use lodestone_server::routes::Media;
use serde_json::{Value, json};

use crate::chance::Chance;
use crate::mutations::Shape;
use crate::operations::{Answer, Api, examples};
use crate::peer::pieces;
use crate::runner::{Target, fingerprint, run};

/// Parses an input; `None` if no client could send it.
fn request(input: &[u8], kind: Option<&str>) -> Option<(http::request::Builder, Vec<u8>)> {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let head = String::from_utf8_lossy(&input[..end]);
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let method = Method::from_bytes(method.as_bytes()).ok()?;
    let mut builder = Request::builder().method(method).uri(target);
    builder = builder.header("authorization", "Bearer x");
    if let Some(kind) = kind {
        builder = builder.header("content-type", kind);
    }
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        builder = builder.header(name, value.trim());
        builder.headers_ref()?;
    }
    Some((builder, input.get(end + 2..).unwrap_or_default().to_vec()))
}

fn sent(api: &Api, input: &[u8], kind: Option<&str>, body: Body) -> Option<Answer> {
    let (builder, _) = request(input, kind)?;
    let answer = api.send(builder.body(body).ok()?);
    assert!(answer.status < 500, "a client's fault is answered {}", answer.status);
    let is_trace = |trace: &str| {
        let of =
            |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        trace.len() == 55
            && trace.split('-').map(str::len).eq([2, 32, 16, 2])
            && trace.split('-').all(of)
    };
    assert!(is_trace(&answer.trace), "no trace: {}", answer.trace);
    if answer.status >= 400 && answer.json != Value::Null {
        let messages = ["/message", "/error/message"];
        let message = messages.into_iter().find_map(|place| answer.json.pointer(place)?.as_str());
        let message = message.expect("a refusal has a message");
        assert!(!message.is_empty() && answer.meaning().1.is_string(), "{}", answer.json);
        for error in answer.json["detail"]["errors"].as_array().into_iter().flatten() {
            assert!(error["field"].as_str().is_some_and(|name| !name.is_empty()), "no field");
        }
    }
    Some(answer)
}

/// Sends a request unchanged, in pieces, and with its JSON formatted anew.
fn check(api: &Api, input: &[u8], kind: Option<&str>) {
    let Some((_, body)) = request(input, kind) else { return };
    let Some(answer) = sent(api, input, kind, Body::from(body.clone())) else { return };
    let cut = pieces(&body, &mut Chance::new(fingerprint(input)));
    if cut.len() > 1 {
        let cut: Vec<_> =
            cut.into_iter().map(|one| Ok::<_, std::io::Error>(one.to_vec())).collect();
        let pieces = Body::from_stream(futures_util::stream::iter(cut));
        let again = sent(api, input, kind, pieces);
        let again = again.as_ref().map(Answer::meaning);
        assert_eq!(again, Some(answer.meaning()), "in pieces it means something else");
    }
    let is_of_lines = answer.json.as_str().is_some_and(|told| told.starts_with("ImportTenant"));
    if answer.status == 200
        && kind.is_none()
        && !is_of_lines
        && let Ok(value) = serde_json::from_slice::<Value>(&body)
    {
        let pretty = serde_json::to_vec_pretty(&value).expect("a value is JSON");
        let again = sent(api, input, kind, Body::from(pretty));
        let again = again.as_ref().map(Answer::meaning);
        assert_eq!(again, Some(answer.meaning()), "written anew it means something else");
    }
}

fn fuzz(name: &'static str, seeds: Vec<Vec<u8>>, shape: Shape, kind: Option<&'static str>) {
    let api = Api::new();
    let read = Box::new(move |input: &[u8]| check(&api, input, kind));
    run(Target { name, seeds, shape, read, is_contained: |_| false });
}

#[test]
fn bodies() {
    fuzz("bodies", examples(|spec| spec.media != Media::Multipart), Shape::Values, None);
}

#[test]
fn forms() {
    const PARTS: &[&str] = &[
        "--B\r\n", "--B--\r\n", "\r\n\r\n", "\r\n", "--", "Content-Disposition: form-data; ",
        "name=\"files\"", "name=\"tenant_id\"", "filename=\"../../a\"", "filename=\"\"",
        "filename*=utf-8''%e2%82%ac", "filename*=utf-8''%", "filename=\"a\\\"b\"", "; ", "\"",
        "filename=\"C:\\\\x\\\\y.txt\"", "filename=\"\u{202e}x\"", "Content-Type: text/html\r\n",
        "Content-Transfer-Encoding: base64\r\n", "name=\"file_metadata\"", "[{\"a\":1},null]",
        "[\"a\",\"b\"]", "name=\"file_ids\"", "\0",
    ];
    let kind = Some("multipart/form-data; boundary=B");
    fuzz("forms", examples(|spec| spec.media == Media::Multipart), Shape::Text(PARTS), kind);
}

#[test]
fn matrices() {
    const PARTS: &[&str] = &[
        "'descr': '<f4'", "'fortran_order': False", "'shape': (2, 2)", "(1,)", "()", "(0, 4)",
        "(99999999999, 99999999999)", "True", "'<f8'", "'>f4'", "{", "}", ", ", "\n", " ", "-1",
    ];
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
    let mut file = b"POST /embeddings/upload?tenant_id=a\n\n\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16 + 1).to_le_bytes());
    file.extend(header.bytes().chain([b'\n']));
    file.extend([1.0_f32, 0.5, -2.0, 3.0].iter().flat_map(|number| number.to_le_bytes()));
    fuzz("matrices", vec![file], Shape::Text(PARTS), Some("application/x-npy"));
}

#[test]
fn heads() {
    const PARTS: &[&str] = &[
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
        "-",
        "00",
        "ff",
        "content-type: application/x-www-form-urlencoded\n",
        "content-length: 5\n",
        "GET ",
        "PUT ",
        "content-encoding: gzip\n",
        "idempotency-key: a\n",
        "accept-encoding: br\n",
        "?",
        "&",
        "=",
        "origin: null\n",
        "host: [::1]:1\n",
        "host: a b\n",
        "x-forwarded-proto: https\n",
        "%",
        "x-request-id: a\n",
        "expect: 100-continue\n",
        "cursor=",
        "limit=",
        "after=",
        "since=",
        "%00",
        "%ff",
        "+",
        "/",
        "//",
        "/../",
        "created_after=1700000000",
        "2024-02-30T24:00:00Z",
        "1e400",
        "-1",
        "order=asc",
        "accept: text/event-stream\n",
        "\u{e9}",
    ];
    let heads = "\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\
        \nidempotency-key: abc\nx-request-id: r-1\norigin: https://example.com\n\n";
    let with_heads =
        |seed: Vec<u8>| String::from_utf8_lossy(&seed).replacen("\n\n", heads, 1).into_bytes();
    let seeds = examples(|spec| spec.media != Media::Multipart).into_iter().map(with_heads);
    fuzz("heads", seeds.collect(), Shape::Text(PARTS), None);
}

/// Messages to MCP tools, whose protocol a library implements.
#[test]
fn tools() {
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let messages = [
        json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": "a"}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": {"uri": "a:b"}}),
        call("search", json!({"query": "a", "tenant_id": "b", "filter": {"c": 1}, "limit": 3})),
        call("ask", json!({"question": "a", "query": "a", "tenant_id": "b", "sub_tenant_id": "c"})),
        call("list_documents", json!({"tenant_id": "b", "cursor": "c", "limit": 1})),
        call("read_document", json!({"tenant_id": "b", "source_id": "c", "from": 1})),
        call("remember", json!({"tenant_id": "b", "text": "c", "memory": "d"})),
    ];
    let head = "POST /mcp\naccept: application/json, text/event-stream\n\n";
    let api = Api::new();
    let read = move |input: &[u8]| {
        let kind = Some("application/json");
        let Some((_, body)) = request(input, kind) else { return };
        let Some(answer) = sent(&api, input, kind, Body::from(body.clone())) else { return };
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        if answer.status == 200 && answer.json["jsonrpc"] == "2.0" {
            let id = &answer.json["id"];
            assert!(id.is_null() || *id == asked["id"], "{asked} is answered {}", answer.json);
            let ends = ["result", "error"].map(|name| answer.json.get(name).is_some());
            assert!(ends[0] != ends[1], "{}", answer.json);
        }
    };
    run(Target {
        name: "tools",
        seeds: messages.iter().map(|one| format!("{head}{one}").into_bytes()).collect(),
        shape: Shape::Values,
        read: Box::new(read),
        is_contained: |_| false,
    });
}
