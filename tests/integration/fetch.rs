//! Originals: downloaded byte for byte, and through signed URLs.

use std::sync::Arc;

use axum::body::Body;
use http::Request;
use lodestone_engine::settings::RateLimit;
use lodestone_types::{ManualClock, Timestamp};
use serde_json::{Value, json};

use crate::contract::check_error;
use crate::support::{KEY, Reply, TestServer};

fn fetch(server: &TestServer, id: &str, return_content: bool) -> Reply {
    let body = json!({"tenant_id": "acme", "file_id": id, "return_content": return_content});
    server.post("/fetch/fetch_content", body)
}

fn upload(server: &TestServer, id: &str, name: &str, bytes: &[u8]) {
    let parts = [
        ("tenant_id", None, &b"acme"[..]),
        ("file_id", None, id.as_bytes()),
        ("file", Some(name), bytes),
    ];
    server.form("POST", "/upload/upload_document", &parts).ok();
}

/// Follows a download URL as its holder would, without a key.
fn follow(server: &TestServer, url: &str) -> Reply {
    let path = url.split_once("/fetch/").map(|(_, rest)| format!("/fetch/{rest}"));
    server.send(Request::builder().uri(path.expect("a path")).body(Body::empty()).unwrap())
}

fn url_of(server: &TestServer, id: &str) -> String {
    let body = json!({"tenant_id": "acme", "file_id": id, "return_content": false}).to_string();
    let request = Request::builder()
        .method("POST")
        .uri("/fetch/fetch_content")
        .header("authorization", format!("Bearer {KEY}"))
        .header("host", "search.example:8080")
        .body(Body::from(body))
        .unwrap();
    let given = server.send(request).ok();
    assert_eq!(given["file_content"], "");
    given["download_url"].as_str().expect("a URL").to_owned()
}

#[test]
fn a_text_comes_back_byte_for_byte() {
    let server = TestServer::start();
    let texts = [
        "apples fall",
        "\u{feff}begins with a mark\r\nlines\rof\nall kinds\u{2028}",
        "cafe\u{301} \u{1f4da} \u{0}nul\u{7f} tail  \n\n ",
    ];
    for (n, text) in texts.into_iter().enumerate() {
        let id = format!("t{n}");
        let body = json!({"content": text, "file_id": id});
        server.post("/upload/upload_text?tenant_id=acme", body).ok();
        server.settled("acme", "default", &id);
        let given = fetch(&server, &id, true).ok();
        assert_eq!((&given["file_content"], &given["encoding"]), (&json!(text), &json!("utf-8")));
        assert_eq!(given["size_bytes"], text.len());
        assert_eq!(given["content_type"], "text/plain; charset=utf-8");
        assert_eq!((&given["download_url"], &given["expires_at"]), (&Value::Null, &Value::Null));
    }
    let given = server
        .post(
            "/fetch/fetch_content",
            json!({"tenant_id": "acme", "file_id": "t0", "file_type": "x"}),
        )
        .ok();
    assert_eq!(given["file_content"], texts[0], "return_content is true unless said");
}

#[test]
fn bytes_that_are_no_utf_8_come_as_base64() {
    let server = TestServer::start();
    let latin = b"caf\xe9 in Latin 1, na\xefve and long enough to be told from noise";
    upload(&server, "a", "a.txt", latin);
    assert_eq!(server.settled("acme", "default", "a")["status"], "success");
    let given = fetch(&server, "a", true).ok();
    assert_eq!(given["encoding"], "base64");
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    assert_eq!(engine.decode(given["file_content"].as_str().unwrap()).unwrap(), latin);
    assert_eq!(given["size_bytes"], latin.len());
}

#[test]
fn a_download_url_works_without_a_key_and_shows_no_page() {
    let server = TestServer::start();
    let page = b"<html><body><script>alert(1)</script>apples</body></html>";
    upload(&server, "a", "evil”;'%.html", page);
    server.settled("acme", "default", "a");
    let url = url_of(&server, "a");
    assert!(url.starts_with("http://search.example:8080/fetch/download/"), "{url}");
    let file = follow(&server, &url);
    assert_eq!((file.status, &file.bytes[..]), (200, &page[..]));
    assert_eq!(file.headers["x-content-type-options"], "nosniff");
    assert!(file.headers["content-disposition"].to_str().unwrap().starts_with("attachment;"));
    assert!(file.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert!(!url.contains(KEY));
}

#[test]
fn an_altered_url_is_404() {
    let server = TestServer::start();
    for id in ["a", "b"] {
        server.index("acme", "default", id, &format!("apples {id}"));
    }
    let url = url_of(&server, "a");
    let (base, token) = url.split_once("/download/").unwrap();
    let (claim, seal) = token.split_once('.').unwrap();
    let other = url_of(&server, "b");
    let other = other.split_once("/download/").unwrap().1.split_once('.').unwrap().0;
    for token in [
        format!("{other}.{seal}"),
        format!("{claim}.{}", "A".repeat(seal.len())),
        format!("{claim}."),
        format!("{token}A"),
        claim.to_owned(),
        "unknown".to_owned(),
        "%ff".to_owned(),
        "x".repeat(5000),
    ] {
        let reply = follow(&server, &format!("{base}/download/{token}"));
        check_error(&reply, &token);
        assert_eq!(reply.status, 404, "{token}");
    }
    let head = Request::builder().method("HEAD").uri(format!("/fetch/download/{token}"));
    assert_eq!(server.send(head.body(Body::empty()).unwrap()).status, 200);
}

#[test]
fn a_url_ends_after_an_hour_with_its_source_and_with_its_tenant() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_757_402_409_000)));
    let parts = Arc::clone(&clock);
    let server = TestServer::start_with_parts(|_| {}, |components| components.clock = parts);
    for id in ["a", "b"] {
        server.index("acme", "default", id, "apples");
    }
    let given = fetch(&server, "a", false).ok();
    assert_eq!(given["expires_at"], "1757406009.000");
    let (a, b) = (url_of(&server, "a"), url_of(&server, "b"));
    clock.advance_millis(3_599_999);
    assert_eq!(follow(&server, &a).status, 200);
    let body = json!({"tenant_id": "acme", "source_ids": ["b"]});
    server.call("DELETE", "/delete_source", body).ok();
    follow(&server, &b).error(404, "download_not_found");
    clock.advance_millis(1);
    follow(&server, &a).error(404, "download_not_found");
    let fresh = url_of(&server, "a");
    assert_eq!(follow(&server, &fresh).status, 200);
    server.call("DELETE", "/tenant/delete?tenant_id=acme&confirm=acme", Value::Null).ok();
    follow(&server, &fresh).error(404, "download_not_found");
    server.index("acme", "default", "a", "somebody else's apples");
    follow(&server, &fresh).error(404, "download_not_found");
}

#[test]
fn what_could_not_be_processed_can_be_fetched() {
    let server = TestServer::start();
    let empty = b"<html><body></body></html>";
    upload(&server, "a", "a.html", empty);
    assert_eq!(server.settled("acme", "default", "a")["status"], "errored");
    let given = fetch(&server, "a", true).ok();
    assert_eq!(given["file_content"].as_str().unwrap().as_bytes(), empty);
    fetch(&server, "nope", true).error(404, "source_not_found");
    fetch(&server, "nope", false).error(404, "source_not_found");
}

/// Goal: creating a URL does not read the content, and content that does not match its hash is sent
/// neither way.
#[test]
fn damaged_content_is_not_sent_and_a_url_reads_nothing() {
    let server = TestServer::start();
    let text = "apples fall \u{1f34e} ".repeat(20_000);
    server.index("acme", "default", "a", &text);
    assert_eq!(fetch(&server, "a", true).ok()["file_content"], text);
    let url = url_of(&server, "a");
    assert_eq!(follow(&server, &url).bytes, text.as_bytes());
    let originals = server.engine.settings().data_dir.join("v1/raw");
    let collection = std::fs::read_dir(originals).unwrap().next().unwrap().unwrap().path();
    let original = std::fs::read_dir(collection).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&original).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&original, &bytes).unwrap();
    let given = fetch(&server, "a", false).ok();
    assert_eq!(given["size_bytes"], text.len());
    for refused in [fetch(&server, "a", true), follow(&server, &url)] {
        check_error(&refused, "damaged");
        assert!(refused.status >= 500, "{}", refused.status);
    }
}

/// Goal: downloads by URL count against the rate limit of the key that created the URL.
#[test]
fn downloads_have_the_rate_of_their_key() {
    let limit = RateLimit { per_second: 0.01, burst: 40.0 };
    let server = TestServer::start_with(|settings| settings.rate_limit = Some(limit));
    let body = json!({"content": "apples", "file_id": "a"});
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
    let url = url_of(&server, "a");
    let statuses: Vec<u16> = (0..40).map(|_| follow(&server, &url).status).collect();
    assert_eq!((statuses[0], statuses[39]), (200, 429));
    follow(&server, &url).error(429, "rate_limited");
    let unknown = url.replace("/download/", "/download/x");
    follow(&server, &unknown).error(404, "download_not_found");
}
