use std::sync::Arc;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::Server;
use crate::listen::Peer;
use crate::shares::Shares;

fn ids(body: &Value) -> Vec<&str> {
    let sources = body["sources"].as_array().unwrap();
    sources.iter().map(|source| source["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn sources_are_listed_in_pages() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        server.text("tenant_id=acme", id, "apples").await;
    }
    server.clock.advance_millis(1000);
    server.text("tenant_id=acme", "d", "apples").await;
    let all = server.get("/list/sources?tenant_id=acme").await.ok();
    assert_eq!(ids(&all), ["d", "a", "b", "c"]);
    assert_eq!((&all["total"], &all["next_cursor"]), (&json!(4), &Value::Null));
    let timestamp = all["sources"][0]["timestamp"].as_str().unwrap();
    assert!(timestamp.parse::<f64>().unwrap() > 0.0);
    for member in ["title", "type", "description", "document_metadata", "tenant_metadata"] {
        assert!(!all["sources"][0][member].is_null(), "{member}");
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..2 {
        let path = format!("/list/sources?tenant_id=acme&limit=3&cursor={cursor}");
        let page = server.get(path).await.ok();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        cursor = page["next_cursor"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((seen, cursor.as_str()), (["d", "a", "b", "c"].map(str::to_owned).to_vec(), ""));
    let errored = server.get("/list/sources?tenant_id=acme&status=errored").await.ok();
    assert_eq!(errored["total"], 0);
    server.get("/list/sources?tenant_id=acme&cursor=x").await.fails(400, "invalid_value");
    server.get("/list/sources?tenant_id=acme&limit=0").await.fails(400, "invalid_value");
    server.get("/list/sources?tenant_id=none").await.fails(404, "tenant_not_found");
}

#[tokio::test]
async fn sources_are_found_by_id_in_request_order() {
    let server = Server::start();
    server.text("tenant_id=acme", "a", "apples").await;
    server.text("tenant_id=acme", "b", "pears").await;
    let asked = json!({"tenant_id": "acme", "source_ids": ["b", "x", "a", "b"]});
    let found = server.post("/list/sources_by_id", asked).await.ok();
    assert_eq!((ids(&found), &found["not_found"]), (vec!["b", "a"], &json!(["x"])));
    let elsewhere = json!({"tenant_id": "acme", "sub_tenant_id": "s", "source_ids": ["a"]});
    let found = server.post("/list/sources_by_id", elsewhere).await.ok();
    assert_eq!(found["not_found"], json!(["a"]));
    let missing = server.post("/list/sources_by_id", json!({"tenant_id": "acme"})).await;
    missing.fails(400, "missing_field");
}

#[tokio::test]
async fn deleted_sources_are_gone_at_once() {
    let server = Server::start();
    for id in ["a", "b"] {
        server.text("tenant_id=acme", id, "apples").await;
    }
    let body = json!({"tenant_id": "acme", "source_ids": ["a", "x"]});
    let delete = || server.send("DELETE", "/upload/delete_source").json(body.clone()).answer();
    let deleted = delete().await.ok();
    assert_eq!((&deleted["deleted"], &deleted["not_found"]), (&json!(["a"]), &json!(["x"])));
    assert_eq!(deleted["deleted_count"], 1);
    assert_eq!(ids(&server.get("/list/sources?tenant_id=acme").await.ok()), ["b"]);
    let again = delete().await.ok();
    assert_eq!(again["deleted"], json!([]));
    assert!(again["message"].as_str().unwrap().contains("nothing"));
    let query = "/delete_source?tenant_id=acme&source_ids=b&source_ids=x";
    let deleted = server.send("DELETE", query).answer().await.ok();
    assert_eq!(deleted["deleted"], json!(["b"]));
    let none = json!({"tenant_id": "acme", "source_ids": []});
    let none = server.send("DELETE", "/delete_source").json(none).answer().await;
    assert_eq!(none.status, 400);
}

#[tokio::test]
async fn originals_come_back_byte_for_byte() {
    let server = Server::start();
    server.text("tenant_id=acme", "a", "Grüße\r\n\u{feff}x").await;
    let ask = |id: &str| json!({"tenant_id": "acme", "file_id": id});
    let text = server.post("/fetch/fetch_content", ask("a")).await.ok();
    assert_eq!(text["file_content"], "Grüße\r\n\u{feff}x");
    assert_eq!((&text["encoding"], &text["download_url"]), (&json!("utf-8"), &Value::Null));
    assert_eq!(text["size_bytes"], "Grüße\r\n\u{feff}x".len());
    let files = [("file", "l.txt", &b"caf\xe9 au lait"[..])];
    let path = "/upload/upload_document?tenant_id=acme&file_id=b";
    server.send("POST", path).form(&[], &files).answer().await.ok();
    let bytes = server.post("/fetch/fetch_content", ask("b")).await.ok();
    assert_eq!(bytes["encoding"], "base64");
    assert_eq!(bytes["file_content"], "Y2Fm6SBhdSBsYWl0");
    server.post("/fetch/fetch_content", ask("x")).await.fails(404, "source_not_found");
}

#[tokio::test]
async fn a_download_url_opens_one_original_for_an_hour() {
    let server = Server::start();
    let html = b"<html><script>alert(1)</script><p>apples</p></html>";
    let files = [("file", "Grün 1.html", &html[..])];
    let path = "/upload/upload_document?tenant_id=acme&file_id=h";
    server.send("POST", path).form(&[], &files).answer().await.ok();
    server.settled("tenant_id=acme", "h").await;
    let ask = json!({"tenant_id": "acme", "file_id": "h", "return_content": false});
    let sent = server.send("POST", "/fetch/fetch_content").json(ask);
    let given = sent.with_header("host", "docs.example:8080").answer().await.ok();
    assert_eq!((&given["file_content"], &given["encoding"]), (&json!(""), &json!("utf-8")));
    assert!(given["expires_at"].is_string());
    let url = given["download_url"].as_str().unwrap();
    let path = url.strip_prefix("http://docs.example:8080").unwrap().to_owned();

    let open = |path: String| server.send("GET", path).with_key(None).answer();
    let file = open(path.clone()).await;
    assert_eq!((file.status, &file.body[..]), (200, &html[..]));
    let name = "attachment; filename=\"Gr_n 1.html\"; filename*=UTF-8''Gr%C3%BCn%201.html";
    assert_eq!(file.header("content-disposition"), name);
    assert_eq!(file.header("content-type"), "text/html");
    assert_eq!(file.header("x-content-type-options"), "nosniff");
    assert_eq!(file.header("content-security-policy"), "default-src 'none'; sandbox");

    // The connection of a link is counted for the tenant while it is busy, and is not one of a key.
    let occupied = Shares::new(2);
    let mut known = Vec::new();
    for status in [200, 503] {
        let peer = Arc::new(Peer::new([192, 0, 2, 1].into(), Arc::clone(&occupied)));
        let mut request = Request::get(path.as_str()).body(Body::empty()).unwrap();
        request.extensions_mut().insert(Arc::clone(&peer));
        let response = server.router.clone().oneshot(request).await.unwrap();
        assert_eq!((response.status().as_u16(), peer.is_authenticated()), (status, false));
        known.push(peer);
    }
    assert_eq!(occupied.used(), 1);

    let mut altered = path.clone();
    let middle = "/fetch/download/".len() + 5;
    let other = if altered.as_bytes()[middle] == b'A' { "B" } else { "A" };
    altered.replace_range(middle..=middle, other);
    open(altered).await.fails(404, "download_not_found");
    open("/fetch/download/x".to_owned()).await.fails(404, "download_not_found");
    server.clock.advance_millis(3_600_000);
    open(path).await.fails(404, "download_not_found");
}

/// Goal: the download URLs that a key requested end with it, whether it is revoked or expires.
#[tokio::test]
async fn a_download_url_ends_with_its_key() {
    let server = Server::start();
    server.text("tenant_id=acme", "a", "apples").await;
    let made = async |more: Value| {
        let mut body = json!({"name": "k", "role": "read"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let key = server.post("/admin/api_keys", body).await.ok();
        let ask = json!({"tenant_id": "acme", "file_id": "a", "return_content": false});
        let sent = server.send("POST", "/fetch/fetch_content").json(ask);
        let given = sent.with_key(key["api_key"].as_str()).answer().await.ok();
        let url = given["download_url"].as_str().unwrap().to_owned();
        (key["key_id"].as_str().unwrap().to_owned(), url)
    };
    let open = |url: &str| server.send("GET", url).with_key(None).answer();
    let (revoked, first) = made(json!({})).await;
    let expires_at = server.clock_seconds() + 60;
    let (_, second) = made(json!({ "expires_at": expires_at })).await;
    let (_, third) = made(json!({})).await;
    for url in [&first, &second, &third] {
        assert_eq!(open(url).await.body, "apples");
    }
    server.send("DELETE", format!("/admin/api_keys/{revoked}")).answer().await.ok();
    open(&first).await.fails(404, "download_not_found");
    assert_eq!(open(&second).await.status, 200);
    server.clock.advance_millis(61_000);
    open(&second).await.fails(404, "download_not_found");
    assert_eq!(open(&third).await.status, 200);
}

#[tokio::test]
async fn jobs_are_listed_in_pages() {
    let server = Server::start();
    for id in ["a", "b", "c"] {
        server.text("tenant_id=acme", id, "apples").await;
    }
    let page = server.get("/jobs?tenant_id=acme&limit=2").await.ok();
    assert_eq!(page["counts"], json!({"queued": 0, "in_progress": 0, "success": 3, "errored": 0}));
    assert_eq!(page["jobs"][0]["file_id"], "c");
    assert!(page["jobs"][0]["job_id"].as_str().unwrap().starts_with("job_"));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = server.get(format!("/jobs?limit=2&cursor={cursor}")).await.ok();
    assert_eq!((&rest["jobs"][0]["file_id"], &rest["next_cursor"]), (&json!("a"), &Value::Null));
    server.get("/jobs?cursor=-1").await.fails(400, "invalid_value");
    server.get("/jobs?sub_tenant_id=s").await.fails(400, "missing_field");
    server.get("/jobs?tenant_id=none").await.fails(404, "tenant_not_found");
}
