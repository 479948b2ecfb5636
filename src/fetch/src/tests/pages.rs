//! Goal: permitted pages arrive intact, and every other fetch ends with its reason.

use std::io::Write;
use std::sync::Arc;

use crate::tests::world::{HTML, Listener, World, certificate, pages, reply};
use lodestone_types::{BlockedReason, FetchProblem, WebFailure, WebStep};

fn failed(step: WebStep, problem: FetchProblem) -> WebFailure {
    WebFailure::Failed { step, problem }
}

#[test]
fn a_page_arrives_with_its_title_and_its_own_address() {
    let page = "<!doctype html><title>A  page</title><link rel=canonical href='/a'>text";
    let site = Listener::site(pages(&[
        ("/", 301, "location: ./b/../c?x=1#f\r\n", ""),
        ("/c?x=1", 200, "content-type: Text/HTML; charset=utf-8\r\n", page),
        ("/plain", 200, "content-type: text/plain\r\n", page),
        ("/untyped", 200, "", page),
        ("/empty", 200, "content-type: text/html\r\ncontent-encoding: gzip\r\n", ""),
    ]));
    let world = World::of(&site);
    let found = world.fetch("http://www.test#top").unwrap();
    assert_eq!(found.final_url.as_str(), "http://www.test/c?x=1");
    assert_eq!(found.canonical_url.as_str(), "http://www.test/a");
    assert_eq!(found.title.as_deref(), Some("A page"));
    assert_eq!(found.media_type.as_deref(), Some("text/html"));
    assert_eq!(found.bytes, page.as_bytes());
    let plain = world.fetch("http://www.test/plain").unwrap();
    assert_eq!((plain.title, plain.canonical_url), (None, plain.final_url));
    let untyped = world.fetch("http://www.test/untyped").unwrap();
    assert_eq!((untyped.title.as_deref(), untyped.media_type), (Some("A page"), None));
    assert_eq!(world.fetch("http://www.test/empty").unwrap().bytes, b"");
}

#[test]
fn a_page_speaks_for_its_own_host_alone() {
    for (named, expected) in [
        ("/a", "http://www.test/a"),
        ("http://test/a", "http://test/a"),
        ("https://www.test/a", "https://www.test/a"),
        ("http://other.test/a", "http://www.test/"),
        ("http://www.www.test/a", "http://www.test/"),
        ("http://127.0.0.1/", "http://www.test/"),
        ("http://u@www.test/", "http://www.test/"),
        ("javascript:x", "http://www.test/"),
        ("//", "http://www.test/"),
    ] {
        let page = format!("<!doctype html><link rel=canonical href='{named}'>text");
        let site = Listener::site(pages(&[("/", 200, HTML, &page)]));
        let found = World::of(&site).fetch("http://www.test/").unwrap();
        assert_eq!(found.canonical_url.as_str(), expected, "{named}");
        assert_eq!(site.requests().len(), 2);
    }
}

#[test]
fn compressed_and_chunked_pages_are_the_page() {
    let text = "<p>All work and no play. ".repeat(5000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 3).unwrap();
    // A brotli stream with one uncompressed block: the window header, then the length.
    let brotli = b"\x8b\x01\x80ping\x03".to_vec();
    let plain = text.clone().into_bytes();
    for (encoding, body, expected) in [
        ("gzip", gzip.clone(), plain.clone()),
        ("X-GZIP", gzip.clone(), plain.clone()),
        ("zstd", zstd, plain.clone()),
        ("br", brotli, b"ping".to_vec()),
        ("identity", plain.clone(), plain.clone()),
    ] {
        for is_chunked in [false, true] {
            let body = body.clone();
            let site = Listener::site(Arc::new(move |path, stream| {
                let headers = format!("{HTML}content-encoding: {encoding}\r\n");
                if path != "/" || !is_chunked {
                    let status = if path == "/" { 200 } else { 404 };
                    return reply(stream, status, &headers, &body);
                }
                write!(stream, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n{headers}\r\n")?;
                for piece in body.chunks(1000) {
                    write!(stream, "{:x}\r\n", piece.len())?;
                    stream.write_all(piece)?;
                    stream.write_all(b"\r\n")?;
                }
                stream.write_all(b"0\r\n\r\n")
            }));
            let found = World::of(&site).fetch("http://www.test/").unwrap();
            assert!(found.bytes == expected, "{encoding}, chunked {is_chunked}");
        }
    }
    let (front, _) = gzip.split_at(gzip.len() / 2);
    // A window that requires more memory of the reader than allowed.
    let mut wide = zstd::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(24).unwrap();
    wide.write_all(&plain).unwrap();
    let wide = wide.finish().unwrap();
    let mut large = Vec::new();
    let parameters =
        brotli::enc::BrotliEncoderParams { large_window: true, lgwin: 28, ..Default::default() };
    brotli::BrotliCompress(&mut &plain[..], &mut large, &parameters).unwrap();
    for (encoding, body) in [
        ("gzip", front.to_vec()),
        ("gzip", plain.clone()),
        ("br", plain.clone()),
        ("zstd", plain.clone()),
        ("deflate", plain.clone()),
        ("gzip, gzip", gzip.clone()),
        ("compress", plain.clone()),
        ("zstd", wide),
        ("br", large),
    ] {
        let site = Listener::site(Arc::new(move |path, stream| {
            let status = if path == "/" { 200 } else { 404 };
            reply(stream, status, &format!("{HTML}content-encoding: {encoding}\r\n"), &body)
        }));
        let failure = World::of(&site).fetch("http://www.test/").unwrap_err();
        assert_eq!(failure, failed(WebStep::Page, FetchProblem::Encoding), "{encoding}");
    }
}

#[test]
fn answers_that_are_no_page_say_what_they_are() {
    for (status, is_temporary) in [
        (204, false),
        (206, false),
        (304, false),
        (300, false),
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (410, false),
        (418, false),
        (408, true),
        (429, true),
        (500, true),
        (502, true),
        (503, true),
        (504, true),
    ] {
        let site = Listener::site(pages(&[("/", status, HTML, "")]));
        let failure = World::of(&site).fetch("http://www.test/").unwrap_err();
        assert_eq!(failure, failed(WebStep::Page, FetchProblem::Status { status }));
        assert_eq!(failure.is_temporary(), is_temporary, "{status}");
    }
    for kind in ["image/png", "application/octet-stream", "video/mp4", "application/zip"] {
        let site = Listener::site(pages(&[("/", 200, &format!("content-type: {kind}\r\n"), "x")]));
        let failure = World::of(&site).fetch("http://www.test/").unwrap_err();
        let problem = FetchProblem::UnsupportedType { media_type: kind.to_owned() };
        assert_eq!(failure, failed(WebStep::Page, problem));
    }
    for location in ["", "location:\r\n"] {
        let site = Listener::site(pages(&[("/", 302, location, "")]));
        let failure = World::of(&site).fetch("http://www.test/").unwrap_err();
        assert_eq!(failure, failed(WebStep::Redirect, FetchProblem::RedirectToNowhere));
    }
}

#[test]
fn five_redirects_are_followed_and_six_are_not() {
    let handler = Arc::new(|path: &str, stream: &mut dyn super::world::Duplex| {
        match path[1..].parse::<u32>() {
            Ok(0) => reply(stream, 200, HTML, b"<p>end"),
            Ok(left) => reply(stream, 302, &format!("location: /{}\r\n", left - 1), b""),
            Err(_) if path == "/loop" => reply(stream, 307, "location: /loop\r\n", b""),
            Err(_) => reply(stream, 404, "", b""),
        }
    });
    let site = Listener::site(handler);
    let world = World::of(&site);
    assert_eq!(world.fetch("http://www.test/5").unwrap().bytes, b"<p>end");
    for path in ["/6", "/1000", "/loop"] {
        let before = site.requests().len();
        let failure = world.fetch(&format!("http://www.test{path}")).unwrap_err();
        let problem = FetchProblem::TooManyRedirects { max: 5 };
        assert_eq!(failure, failed(WebStep::Page, problem));
        assert_eq!(site.requests().len() - before, 7, "robots.txt, the page and five more");
    }
}

#[test]
fn sites_keep_robots_away_and_each_is_asked_once() {
    let other = Listener::site(pages(&[
        ("/robots.txt", 200, "", "user-agent: *\ndisallow: /secret\n"),
        ("/open", 200, HTML, "<p>open"),
        ("/secret", 200, HTML, "<p>secret"),
    ]));
    let site = Listener::site(pages(&[
        ("/robots.txt", 301, "location: /rules\r\n", ""),
        ("/rules", 200, "", "user-agent: lodestone\ndisallow: /private\n"),
        ("/open", 302, "location: /hop\r\n", ""),
        ("/hop", 302, "location: http://other.test/open\r\n", ""),
        ("/bad", 302, "location: http://other.test/secret\r\n", ""),
        ("/worse", 302, "location: /private/x\r\n", ""),
        ("/private/x", 200, HTML, "<p>private"),
    ]));
    let world = World::of(&site);
    world.map.put("[2606:2800:21f::1]:80", &other);
    assert_eq!(world.fetch("http://www.test/open").unwrap().bytes, b"<p>open");
    let paths = |site: &Listener| -> Vec<String> {
        site.requests().iter().map(|r| r.split(' ').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&site), ["/robots.txt", "/rules", "/open", "/hop"]);
    assert_eq!(paths(&other), ["/robots.txt", "/open"]);
    for (path, step) in
        [("/private/x", WebStep::Page), ("/bad", WebStep::Redirect), ("/worse", WebStep::Redirect)]
    {
        let failure = world.fetch(&format!("http://www.test{path}")).unwrap_err();
        assert_eq!(failure, failed(step, FetchProblem::Disallowed), "{path}");
    }
    assert!(!paths(&other).contains(&"/secret".to_owned()));
    assert!(!paths(&site).contains(&"/private/x".to_owned()));
}

#[test]
fn rules_that_are_not_shown_allow_and_rules_that_cannot_be_read_do_not() {
    for status in [400, 401, 403, 404, 410, 429, 204] {
        let site = Listener::site(pages(&[("/robots.txt", status, "", ""), ("/", 200, HTML, "x")]));
        assert!(World::of(&site).fetch("http://www.test/").is_ok(), "{status}");
    }
    for status in [500, 503, 599] {
        let site = Listener::site(pages(&[("/robots.txt", status, "", ""), ("/", 200, HTML, "x")]));
        let failure = World::of(&site).fetch("http://www.test/").unwrap_err();
        assert_eq!(failure, failed(WebStep::Robots, FetchProblem::Status { status }));
        assert!(failure.is_temporary());
        assert!(failure.to_string().contains("robots.txt"), "{failure}");
    }
    let site = Listener::site(pages(&[
        ("/robots.txt", 302, "location: /robots.txt\r\n", ""),
        ("/", 200, HTML, "x"),
    ]));
    assert!(World::of(&site).fetch("http://www.test/").is_ok(), "a loop is as good as nothing");
}

#[test]
fn encrypted_pages_are_fetched_from_whom_they_claim_to_be_from() {
    let (config, roots) = certificate();
    let site = Listener::secure_site(
        Arc::clone(&config),
        pages(&[
            ("/", 200, HTML, "<p>safe"),
            ("/down", 302, "location: http://www.test/\r\n", ""),
            ("/same", 302, "location: //www.test/\r\n", ""),
        ]),
    );
    let plain = Listener::site(pages(&[
        ("/", 200, HTML, "<p>in the clear"),
        ("/up", 301, "location: https://www.test/\r\n", ""),
    ]));
    let mut world = World::of(&plain);
    world.map.put("93.184.215.14:443", &site);
    world.names.set("wrong.test", &[&["93.184.215.14"]]);
    let insecure = failed(WebStep::Page, FetchProblem::Insecure);
    // No trusted authority signed the certificate.
    assert_eq!(world.fetch("https://www.test/"), Err(insecure.clone()));
    world.roots = roots;
    assert_eq!(world.fetch("https://www.test/").unwrap().bytes, b"<p>safe");
    assert_eq!(world.fetch("https://www.test/same").unwrap().bytes, b"<p>safe");
    assert_eq!(world.fetch("http://www.test/up").unwrap().bytes, b"<p>safe");
    // The certificate is for another name, or the URL has none.
    assert_eq!(world.fetch("https://wrong.test/"), Err(insecure.clone()));
    assert_eq!(world.fetch("https://93.184.215.14/"), Err(insecure.clone()));
    let before = plain.requests().len();
    let reason = BlockedReason::Downgrade;
    let downgrade = WebFailure::Blocked { step: WebStep::Redirect, reason };
    assert_eq!(world.fetch("https://www.test/down"), Err(downgrade));
    assert_eq!(plain.requests().len(), before);
    // A label this long is invalid in any certificate.
    let long = format!("{}.test", "a".repeat(64));
    world.names.set(&long, &[&["93.184.215.14"]]);
    assert_eq!(world.fetch(&format!("https://{long}/")), Err(insecure));
    // A connection that breaks off is lost, not insecure.
    let cut = Listener::secure_site(
        config,
        Arc::new(|path, stream| match path {
            "/robots.txt" => reply(stream, 404, "", b""),
            _ => {
                write!(stream, "HTTP/1.1 200 OK\r\n{HTML}content-length: 9\r\n\r\n<p>ha")?;
                stream.flush()?;
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
        }),
    );
    world.map.put("93.184.215.14:443", &cut);
    let lost = failed(WebStep::Page, FetchProblem::Lost);
    assert_eq!(world.fetch("https://www.test/"), Err(lost));
    // The server does not speak TLS.
    world.map.put("93.184.215.14:443", &plain);
    let failure = world.fetch("https://www.test/").unwrap_err();
    assert!(!failure.is_blocked(), "{failure}");
}
