//! The console as a browser loads it: all referenced files exist, with media type, ETag and
//! security headers.

use std::collections::BTreeSet;

use axum::body::Body;
use http::Request;

use crate::support::{Reply, TestServer};

/// Maximum size of the whole console in bytes, uncompressed.
const BYTES_MAX: usize = 300 << 10;
/// Attributes and keywords that precede a reference in the page and its scripts.
const REFERENCES: [&str; 5] = [" src=\"", " href=\"", " from \"", "import(\"", " new URL(\""];

fn ask(server: &TestServer, method: &str, path: &str, tag: Option<&str>) -> Reply {
    let request = Request::builder().method(method).uri(path);
    let request = tag.into_iter().fold(request, |one, tag| one.header("if-none-match", tag));
    server.send(request.body(Body::empty()).unwrap())
}

fn header<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

fn paths() -> Vec<(String, &'static lodestone_console::File)> {
    let path = |file: &lodestone_console::File| match file.name {
        "index.html" => "/".to_owned(),
        name => format!("/console/{name}"),
    };
    lodestone_console::files().iter().map(|file| (path(file), file)).collect()
}

#[test]
fn every_file_is_served_with_its_type_its_tag_and_the_policy() {
    let server = TestServer::start();
    for (path, file) in paths() {
        let whole = ask(&server, "GET", &path, None);
        assert_eq!((whole.status, whole.bytes.as_slice()), (200, file.bytes), "{path}");
        assert_eq!(header(&whole, "content-type"), file.media_type, "{path}");
        assert_eq!(header(&whole, "x-content-type-options"), "nosniff", "{path}");
        let policy = header(&whole, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{path}: {policy}");
        let tag = header(&whole, "etag");
        assert!(tag.starts_with('"') && tag.len() > 10, "{path}: {tag}");
        for known in [tag, "*", &format!("\"other\", W/{tag}")] {
            let same = ask(&server, "GET", &path, Some(known));
            assert_eq!((same.status, same.bytes.len()), (304, 0), "{path} {known}");
            assert_eq!(header(&same, "etag"), tag, "{path}");
        }
        assert_eq!(ask(&server, "GET", &path, Some("\"other\"")).status, 200, "{path}");
        let head = ask(&server, "HEAD", &path, None);
        assert_eq!((head.status, head.bytes.len()), (200, 0), "{path}");
        assert_eq!(header(&head, "etag"), tag, "{path}");
        ask(&server, "POST", &path, None).error(405, "method_not_allowed");
    }
    for path in ["/console/none.js", "/console/%FF"] {
        ask(&server, "GET", path, None).error(404, "route_not_found");
    }
    let openapi = server.get("/openapi.json").ok();
    let paths = openapi["paths"].as_object().unwrap();
    assert!(!paths.keys().any(|path| path == "/" || path.starts_with("/console")));
}

#[test]
fn whatever_the_page_and_its_scripts_name_exists_and_nothing_else_is_sent() {
    let names: BTreeSet<&str> = lodestone_console::files().iter().map(|file| file.name).collect();
    let mut named = BTreeSet::from(["index.html"]);
    for file in lodestone_console::files() {
        let Ok(text) = std::str::from_utf8(file.bytes) else { continue };
        for mark in REFERENCES {
            for (at, _) in text.match_indices(mark) {
                let address = text[at + mark.len()..].split('"').next().unwrap();
                let is_page = file.name == "index.html";
                match address.strip_prefix(if is_page { "console/" } else { "./" }) {
                    Some(name) => drop(named.insert(name)),
                    // Operations of the server below the same prefix.
                    None => assert!(
                        is_page && ["docs", "openapi.json", "readyz"].contains(&address),
                        "{}: {address}",
                        file.name
                    ),
                }
            }
        }
    }
    assert_eq!(named, names);
    let bytes: usize = lodestone_console::files().iter().map(|file| file.bytes.len()).sum();
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}

#[test]
fn nothing_takes_text_for_markup_or_stands_inline() {
    for file in lodestone_console::files() {
        let Ok(text) = std::str::from_utf8(file.bytes) else { continue };
        for banned in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "DOMParser"]
        {
            assert!(!text.contains(banned), "{}: {banned}", file.name);
        }
        if file.media_type.starts_with("text/html") {
            assert!(!text.contains("<style") && !text.contains(" style="), "{}", file.name);
            assert!(!text.contains("<script>") && !text.contains(" onclick"), "{}", file.name);
        }
    }
}
