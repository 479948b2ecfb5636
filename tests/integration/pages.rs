//! Web pages, fetched from a site on the loopback interface that the operator allows.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::TestServer;

/// A web server with scripted responses, serving one connection at a time.
struct Site {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    pages: BTreeMap<String, Vec<u8>>,
    asked: Vec<String>,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                let mut state = shared.lock().unwrap();
                state.asked.push(path.clone());
                let missing = b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".to_vec();
                let answer = state.pages.get(&path).cloned().unwrap_or(missing);
                let _ = stream.write_all(&answer);
            }
        });
        Self { address, state }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn answers(&self, path: &str, status: &str, headers: &str, body: &str) {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        self.state.lock().unwrap().pages.insert(path.to_owned(), answer.into_bytes());
    }

    fn page(&self, path: &str, body: &str) {
        self.answers(path, "200 OK", "content-type: text/html; charset=utf-8\r\n", body);
    }

    fn times_asked(&self, path: &str) -> usize {
        self.state.lock().unwrap().asked.iter().filter(|asked| *asked == path).count()
    }
}

fn server_for(site: &Site) -> TestServer {
    let allowed = site.address.to_string();
    TestServer::start_with(|settings| settings.fetch_allow = allowed.parse().unwrap())
}

fn scrape(server: &TestServer, id: &str, url: &str) -> Value {
    let url: String = form_urlencoded::byte_serialize(url.as_bytes()).collect();
    let path = format!("/upload/scrape_webpage?tenant_id=acme&file_id={id}&web_url={url}");
    server.post(&path, Value::Null).ok()
}

fn listed(server: &TestServer, id: &str) -> Value {
    let body = json!({"tenant_id": "acme", "source_ids": [id]});
    server.post("/list/sources_by_id", body).ok()["sources"][0].clone()
}

#[test]
fn a_page_is_fetched_and_found() {
    let site = Site::start();
    site.page(
        "/wings",
        "<html><head><title>On wings</title></head><body><nav>menu</nav>\
         <main><h1>Wings</h1><p>A kestrel hovers over the field and looks for voles. It keeps its \
         head in one place while wings and tail work against the wind, so that what moves on the \
         ground is all that moves at all. Other falcons hunt in flight.</p></main></body></html>",
    );
    let server = server_for(&site);
    let accepted = scrape(&server, "page", &site.url("/wings"));
    assert_eq!((&accepted["file_id"], &accepted["status"]), (&json!("page"), &json!("queued")));
    let waiting = listed(&server, "page");
    assert_eq!(
        (&waiting["type"], &waiting["url"]),
        (&json!("webpage"), &json!(site.url("/wings")))
    );
    assert_eq!(server.settled("acme", "default", "page")["status"], "success");
    let found = &server.full_text("acme", "default", "kestrel")[0];
    assert_eq!(
        (&found["source_type"], &found["source_title"]),
        (&json!("webpage"), &json!("On wings"))
    );
    assert_eq!(found["source_url"], site.url("/wings"));
    assert!(server.full_text("acme", "default", "menu").is_empty(), "menus are not content");
    let body = json!({"tenant_id": "acme", "file_id": "page"});
    let original = server.post("/fetch/fetch_content", body).ok();
    assert!(original["file_content"].as_str().unwrap().starts_with("<html><head><title>On wings"));
    assert_eq!(original["content_type"], "text/html");

    // The page changes; fetching it again needs no URL.
    site.page("/wings", "<title>On wings</title><p>A harrier glides.</p>");
    let path = "/upload/update_webpage?tenant_id=acme&source_id=page";
    assert_eq!(server.call("PATCH", path, Value::Null).ok()["overwritten"], true);
    let status = server.settled("acme", "default", "page");
    assert_eq!((&status["status"], &status["version"]), (&json!("success"), &json!("v2")));
    assert!(server.full_text("acme", "default", "kestrel").is_empty());
    assert_eq!(server.full_text("acme", "default", "harrier").len(), 1);
    assert_eq!(site.times_asked("/wings"), 2);

    // A page that has disappeared leaves the stored version in place.
    site.answers("/wings", "410 Gone", "", "");
    server.call("PATCH", path, Value::Null).ok();
    let status = server.settled("acme", "default", "page");
    assert_eq!(
        (&status["status"], &status["error_code"]),
        (&json!("errored"), &json!("FETCH_FAILED"))
    );
    assert!(status["message"].as_str().unwrap().contains("410"), "{status}");
    assert_eq!(server.full_text("acme", "default", "harrier").len(), 1);
}

/// Goal: a page is fetched again from where it was requested, whatever it redirected to or declared
/// as its canonical address.
#[test]
fn a_page_is_fetched_again_from_where_it_was_requested() {
    let site = Site::start();
    let canonical = r#"<html><head><link rel="canonical" href="/"></head><p>a kestrel</p></html>"#;
    site.page("/declares", canonical);
    site.answers("/redirects", "302 Found", "location: /login\r\n", "");
    site.page("/login", "<p>please log in</p>");
    let server = server_for(&site);
    for (id, path, shown) in [("a", "/declares", "/"), ("b", "/redirects", "/login")] {
        scrape(&server, id, &site.url(path));
        for times in 1..=3 {
            assert_eq!(server.settled("acme", "default", id)["status"], "success");
            assert_eq!(listed(&server, id)["url"], site.url(shown));
            assert_eq!(site.times_asked(path), times);
            let again = format!("/upload/update_webpage?tenant_id=acme&source_id={id}");
            server.call("PATCH", &again, Value::Null).ok();
        }
    }
    assert_eq!(site.times_asked("/"), 0);
}

#[test]
fn a_form_gives_the_same_as_a_query() {
    let site = Site::start();
    site.page("/a", "<p>ocelot</p>");
    let server = server_for(&site);
    let pairs = [
        ("tenant_id", "acme".to_owned()),
        ("web_url", site.url("/a")),
        ("file_id", "form".to_owned()),
        ("document_metadata", r#"{"team": "red"}"#.to_owned()),
    ];
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let request = http::Request::builder()
        .method("POST")
        .uri("/upload/scrape_webpage")
        .header("authorization", format!("Bearer {}", crate::support::KEY))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(axum::body::Body::from(body))
        .unwrap();
    assert_eq!(server.send(request).ok()["file_id"], "form");
    assert_eq!(server.settled("acme", "default", "form")["status"], "success");
    assert_eq!(listed(&server, "form")["document_metadata"], json!({"team": "red"}));
}

#[test]
fn pages_of_a_batch_stand_alone() {
    let site = Site::start();
    for name in ["one", "two"] {
        site.page(&format!("/{name}"), &format!("<p>page {name}</p>"));
    }
    let server = server_for(&site);
    let path = "/upload/batch_scrape_webpage?tenant_id=acme";
    let body = json!({"items": [
        {"web_url": site.url("/one"), "file_id": "one"},
        {"web_url": "ftp://example.com/", "file_id": "bad"},
        {"web_url": site.url("/two"), "document_metadata": {"file_id": "two"}},
    ]});
    let reply = server.post(path, body).ok();
    assert_eq!((&reply["success"], &reply["uploaded_count"]), (&json!(false), &json!(2)));
    assert_eq!(reply["failed"][0]["index"], 1);
    assert_eq!(reply["failed"][0]["filename"], "ftp://example.com/");
    for id in ["one", "two"] {
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
        assert_eq!(server.full_text("acme", "default", id).len(), 1);
    }
    let twice = json!({"items": [{"web_url": site.url("/one"), "file_id": "x"},
                                 {"web_url": site.url("/two"), "file_id": "x"}]});
    server.post(path, twice).error(400, "duplicate_id");
}

#[test]
fn addresses_that_are_wrong_or_forbidden() {
    let server = TestServer::start();
    let path = |url: &str| format!("/upload/scrape_webpage?tenant_id=acme&web_url={url}");
    for bad in ["ftp://example.com/", "example.com", "/a", "http://", "http://u:p@example.com/"] {
        server.post(&path(bad), Value::Null).error(400, "invalid_value");
    }
    server.post("/upload/scrape_webpage?tenant_id=acme", Value::Null).error(400, "missing_field");
    let long = format!("http://example.com/{}", "x".repeat(2048));
    server.post(&path(&long), Value::Null).error(400, "invalid_value");
    server.get("/list/sources?tenant_id=acme").error(404, "tenant_not_found");

    let forbidden = Site::start();
    forbidden.page("/", "<p>secret</p>");
    for (id, url) in [
        ("literal", forbidden.url("/")),
        ("name", format!("http://localhost:{}/", forbidden.address.port())),
        ("decimal", "http://2130706433/".to_owned()),
        ("mapped", "http://[::ffff:127.0.0.1]/".to_owned()),
        ("metadata", "http://169.254.169.254/latest/meta-data/".to_owned()),
    ] {
        scrape(&server, id, &url);
        let status = server.settled("acme", "default", id);
        assert_eq!(
            (&status["status"], &status["error_code"]),
            (&json!("errored"), &json!("URL_BLOCKED"))
        );
    }
    // Redirects from an allowed site are checked as well.
    let site = Site::start();
    site.answers("/away", "302 Found", &format!("location: {}\r\n", forbidden.url("/")), "");
    let server = server_for(&site);
    scrape(&server, "redirect", &site.url("/away"));
    let status = server.settled("acme", "default", "redirect");
    assert_eq!(status["error_code"], "URL_BLOCKED", "{status}");
    assert_eq!(forbidden.times_asked("/"), 0);

    let text = json!({"content": "x", "file_id": "text"});
    server.post("/upload/upload_text?tenant_id=acme", text).ok();
    let path = "/upload/update_webpage?tenant_id=acme&source_id=";
    server.call("PATCH", &format!("{path}text"), Value::Null).error(400, "missing_field");
    server.call("PATCH", &format!("{path}none"), Value::Null).error(404, "source_not_found");
}

#[test]
fn a_page_that_waits_survives_a_restart_and_a_fetched_one_is_not_asked_again() {
    let site = Site::start();
    site.answers("/busy", "503 Busy", "", "");
    let server = server_for(&site);
    scrape(&server, "busy", &site.url("/busy"));
    let asked = || site.times_asked("/busy");
    while asked() == 0 {
        std::thread::yield_now();
    }
    let allowed = site.address.to_string();
    site.page("/busy", "<p>a marten at last</p>");
    let server = server.restart_with(|settings| settings.fetch_allow = allowed.parse().unwrap());
    assert_eq!(server.settled("acme", "default", "busy")["status"], "success");
    assert_eq!(server.full_text("acme", "default", "marten").len(), 1);
    let before = asked();
    let change = json!({"tenant_id": "acme", "source_id": "busy",
        "document_metadata": {"title": "Marten"}});
    server.call("PATCH", "/upload/update_metadata", change).ok();
    assert_eq!(server.settled("acme", "default", "busy")["status"], "success");
    assert_eq!(server.full_text("acme", "default", "marten")[0]["source_title"], "Marten");
    assert_eq!(asked(), before, "new words need no new page");
}
