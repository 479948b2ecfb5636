//! A query node in front of scripted servers, and the part of the frame in forwarding.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::convert::Infallible;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use http::{Method, Request};
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::ServiceExt;

use super::*;
use crate::listen::pace::Pace;
use crate::listen::{ListenSettings, never_stops, serve};
use crate::tests::support::{Rig, multipart_body};
use lodestone_fetch::Authorities;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// More than the socket buffers of one machine can hold.
const LARGE: u64 = 256 << 20;
/// Bytes that may be in transit at once, mostly in socket buffers.
const ON_THE_WAY_MAX: u64 = 32 << 20;

/// An upstream whose connections are each served by one call of a function.
fn upstream(serve: impl Fn(TcpStream) + Send + 'static) -> Arc<Forwarder> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            serve(stream);
        }
    });
    forwarder(&base)
}

fn forwarder(base: &str) -> Arc<Forwarder> {
    Arc::new(Forwarder::new(base, &Authorities::default()).unwrap())
}

/// An upstream that nobody listens at.
fn nowhere() -> Arc<Forwarder> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    forwarder(&format!("http://{}", listener.local_addr().unwrap()))
}

/// A query node that waits long for bodies.
fn node(forwarder: Arc<Forwarder>) -> Rig {
    let pace = Pace { window: PATIENCE, bytes_per_second_min: 0 };
    Rig::node(forwarder, |settings| settings.pace = pace)
}

/// An upstream that answers every request with `answer`, and reports the requests.
fn answering(answer: &'static str) -> (Arc<Forwarder>, Receiver<String>) {
    let (tell, told) = channel();
    let forwarder = upstream(move |mut stream| {
        let head = head_of(&mut stream);
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        tell.send(head + &String::from_utf8(body).unwrap()).unwrap();
    });
    (forwarder, told)
}

/// Reads the head of a request byte by byte and converts it to lower case.
fn head_of(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

fn change(body: Body) -> Request<Body> {
    Request::post("/lines").header("authorization", "Bearer write-key").body(body).unwrap()
}

/// A body whose pieces are sent through a channel.
fn fed_body() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    (sender, Body::from_stream(pieces))
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nyes!";

/// Waits for a message of a server without blocking the async threads.
async fn word<T: Send + 'static>(told: Receiver<T>) -> (T, Receiver<T>) {
    let heard = tokio::task::spawn_blocking(move || (told.recv_timeout(PATIENCE).unwrap(), told));
    heard.await.unwrap()
}

#[tokio::test]
async fn a_request_passes_with_what_tells_of_its_client_and_without_what_is_of_its_connection() {
    let (forwarder, told) = answering(
        "HTTP/1.1 201 Made\r\nconnection: keep-alive, x-hop\r\nkeep-alive: timeout=5\r\n\
         x-hop: 1\r\nx-end: 2\r\nx-request-id: other\r\ncontent-length: 4\r\n\r\nmade",
    );
    let request = Request::post("/echo?a=b%20c")
        .header("authorization", "Bearer write-key")
        .header("host", "public.example:8443")
        .header("x-forwarded-proto", "https")
        .header("x-forwarded-for", "192.0.2.1")
        .header("x-request-id", "id-1")
        .header("traceparent", format!("00-{:032x}-{:016x}-01", 5, 6))
        .header("connection", "X-Private, close")
        .header("x-private", "1")
        .header("te", "trailers")
        .header("expect", "100-continue")
        .header("origin", "https://page.example")
        .header("idempotency-key", "k")
        .body("{\"a\": 1}".into());
    let answer = node(forwarder).send(request.unwrap()).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (201, "made"));
    assert_eq!(answer.header("x-end"), Some("2"));
    assert_eq!(answer.header("x-request-id"), Some("id-1"), "one id in both logs");
    for name in ["connection", "keep-alive", "x-hop"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    let asked = told.recv_timeout(PATIENCE).unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"a\": 1}");
    let mut lines: Vec<_> = head.lines().collect();
    assert_eq!(lines.remove(0), "post /echo?a=b%20c http/1.1");
    lines.sort_unstable();
    let trace = lines.iter().position(|line| line.starts_with("traceparent: ")).unwrap();
    let trace = lines.remove(trace);
    assert!(trace.starts_with(&format!("traceparent: 00-{:032x}-", 5)), "{trace}");
    assert!(!trace.contains(&format!("-{:016x}-", 6)), "the span of this server: {trace}");
    assert_eq!(
        lines,
        [
            "authorization: bearer write-key", "content-length: 8", "host: public.example:8443",
            "idempotency-key: k", "x-forwarded-for: 192.0.2.1", "x-forwarded-proto: https",
            "x-lodestone-forwarded: any", "x-request-id: id-1",
        ]
    );
}

#[test]
fn the_address_of_the_connection_is_told() {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.headers.insert(FORWARDED_FOR, HeaderValue::from_static("192.0.2.1"));
    let from = Some("2001:db8::7".parse().unwrap());
    let headers =
        request_headers(&parts, &Origin { request_id: "r".into(), owner: "k".into(), from });
    let told: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
    assert_eq!(told, ["192.0.2.1", "2001:db8::7"]);
}

#[tokio::test]
async fn reads_are_answered_here_and_so_are_refusals() {
    let rig = node(nowhere());
    assert_eq!(rig.get("/echo", Some("read-key")).await.status, 200);
    let send = |method, path, key: Option<&'static str>| {
        let rig = &rig;
        async move { rig.send(Rig::request(&method, path, key, "{}")).await.status.as_u16() }
    };
    assert_eq!(send(Method::POST, "/echo", None).await, 401);
    assert_eq!(send(Method::POST, "/echo", Some("read-key")).await, 403);
    assert_eq!(send(Method::PUT, "/echo", Some("write-key")).await, 405);
    assert_eq!(send(Method::POST, "/form", Some("write-key")).await, 415);
    let long = Request::post("/echo").header("authorization", "Bearer write-key");
    let long = long.header("content-length", "1001").body(Body::from("x")).unwrap();
    assert_eq!(rig.send(long).await.status, 413);
}

#[tokio::test]
async fn a_server_that_writes_and_is_away_is_told() {
    let rig = node(nowhere());
    let answer = rig.send(change(Body::from("{}"))).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.json["reason"].to_string()),
        (503, "\"writer_away\"")
    );
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json["error_code"], "SERVICE_UNAVAILABLE");
    // A server that accepts the request and hangs up also counts as away, and is not asked again.
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let rig = node(upstream(move |mut stream| {
        head_of(&mut stream);
        count.fetch_add(1, Ordering::SeqCst);
    }));
    let answer = rig.send(change(Body::empty())).await;
    assert_eq!(answer.json["reason"], "writer_away");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_is_passed_on_once() {
    let (forwarder, told) = answering(OK);
    let rig = node(forwarder);
    let again = |path: &str| {
        Request::post(path)
            .header("authorization", "Bearer write-key")
            .header("x-lodestone-forwarded", "any")
            .body(Body::from("{}"))
            .unwrap()
    };
    let answer = rig.send(again("/echo")).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json["reason"], "forwarding_loop");
    let answer = rig.send(again("/behind")).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.json["reason"].to_string()),
        (503, "\"node_behind\"")
    );
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert!(told.try_recv().is_err(), "nobody was asked");
    // Two nodes that are configured to forward to each other.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let first = node(forwarder_to(&listener));
    let second = node(forwarder_to(&listener));
    tokio::spawn(serve(listener, None, second.router.clone(), settings(), never_stops()));
    let answer = first.send(change(Body::from("{}"))).await;
    assert_eq!(answer.json["reason"], "forwarding_loop", "{}", answer.text);
}

fn forwarder_to(listener: &tokio::net::TcpListener) -> Arc<Forwarder> {
    forwarder(&format!("http://{}", listener.local_addr().unwrap()))
}

fn settings() -> ListenSettings {
    ListenSettings { rest_timeout: PATIENCE, ..ListenSettings::default() }
}

#[tokio::test]
async fn a_read_that_this_node_cannot_answer_passes_with_its_body() {
    let (forwarder, told) = answering(OK);
    let rig = node(forwarder);
    let body = r#"{"query": "q", "tenant_id": "t"}"#;
    let answer = rig.send(Rig::request(&Method::POST, "/behind?x=y", Some("read-key"), body)).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "yes!"));
    let asked = told.recv_timeout(PATIENCE).unwrap();
    assert!(asked.starts_with("post /behind?x=y http/1.1\r\n"), "{asked}");
    assert!(asked.contains(&format!("content-length: {}\r\n", body.len())), "{asked}");
    assert!(asked.ends_with(body), "{asked}");
    let alone = Rig::new();
    let answer = alone.send(Rig::request(&Method::POST, "/behind", Some("read-key"), body)).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")));
    assert_eq!(answer.json["reason"], "node_behind");
}

/// Goal: a node that may not know the newest keys leaves messages of `/mcp` to the writer too.
#[tokio::test]
async fn a_key_that_this_node_does_not_know_passes_with_the_body() {
    let body = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    for path in ["/search?x=y", "/mcp?x=y"] {
        let ask = || Rig::request(&Method::POST, path, Some("newer-key"), body);
        let (forwarder, told) = answering(OK);
        let rig = node(forwarder);
        let answer = rig.send(ask()).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "yes!"), "{path}");
        let asked = told.recv_timeout(PATIENCE).unwrap();
        assert!(asked.starts_with(&format!("post {path} http/1.1\r\n")), "{asked}");
        assert!(asked.contains("authorization: bearer newer-key\r\n"), "{asked}");
        assert!(asked.ends_with(body), "{asked}");
        let mut again = ask();
        again.headers_mut().insert(FORWARDED, ANY);
        for (rig, request) in [(rig, again), (Rig::new(), ask())] {
            let answer = rig.send(request).await;
            assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("1")));
            assert_eq!(answer.json["reason"], "node_behind", "{path}");
        }
    }
}

#[tokio::test]
async fn a_large_upload_takes_the_memory_of_a_few_pieces() {
    let sent = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&sent);
    let rig = node(upstream(move |mut stream| {
        head_of(&mut stream);
        let (mut received, mut buffer, mut tail) = (0, vec![0; 1 << 20], Vec::new());
        while !tail.ends_with(b"\r\n0\r\n\r\n") {
            let count = stream.read(&mut buffer).unwrap();
            received += count as u64;
            let ahead = seen.load(Ordering::SeqCst).saturating_sub(received);
            assert!(ahead < ON_THE_WAY_MAX, "{ahead} bytes wait");
            // The last bytes may arrive in several pieces.
            tail.extend_from_slice(&buffer[count.saturating_sub(7)..count]);
            tail.drain(..tail.len().saturating_sub(7));
        }
        assert!(received > LARGE);
        stream.write_all(OK.as_bytes()).unwrap();
    }));
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let pieces = (0..LARGE >> 20).map(move |_| {
        sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
        Ok::<_, Infallible>(piece.clone())
    });
    let answer = rig.send(change(Body::from_stream(stream::iter(pieces)))).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "yes!"));
}

#[tokio::test]
async fn a_large_answer_waits_for_its_reader() {
    let (tell, told) = channel();
    let rig = node(upstream(move |mut stream| {
        head_of(&mut stream);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {LARGE}\r\n\r\n").unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let (mut written, mut has_stalled) = (0, false);
        while written < LARGE {
            let piece = [b'y'; 64 << 10];
            let count = (LARGE - written).min(piece.len() as u64) as usize;
            match stream.write(&piece[..count]) {
                Ok(count) => written += count as u64,
                Err(_) if !has_stalled => {
                    has_stalled = true;
                    stream.set_write_timeout(Some(PATIENCE)).unwrap();
                    tell.send(written).unwrap();
                }
                Err(error) => panic!("{error}"),
            }
        }
        // Nobody receives this if the transfer has stalled.
        let _ = tell.send(written);
    }));
    let response = rig.router.clone().oneshot(change(Body::empty())).await.unwrap();
    assert_eq!(response.headers()["content-length"], LARGE.to_string());
    let (waiting, _) = word(told).await;
    assert!(waiting < ON_THE_WAY_MAX, "{waiting} bytes wait");
    let mut read = 0;
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().unwrap().len() as u64;
    }
    assert_eq!(read, LARGE);
}

#[tokio::test]
async fn an_upload_that_is_refused_in_its_middle_is_answered() {
    let rig = node(upstream(|mut stream| {
        head_of(&mut stream);
        stream.read_exact(&mut [0; 100_000]).unwrap();
        let refusal = "HTTP/1.1 413 No\r\nconnection: close\r\ncontent-length: 4\r\n\r\nlong";
        stream.write_all(refusal.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
    }));
    let pieces = (0..4000).map(|_| Ok::<_, Infallible>(Bytes::from(vec![b'x'; 64 << 10])));
    let answer = rig.send(change(Body::from_stream(stream::iter(pieces)))).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (413, "long"));
}

/// A server that sends `first`, then reports the request, and later that the connection was closed.
fn waiting(first: &'static str) -> (Arc<Forwarder>, Receiver<String>) {
    let (tell, told) = channel();
    let forwarder = upstream(move |mut stream| {
        let head = head_of(&mut stream);
        stream.write_all(first.as_bytes()).unwrap();
        tell.send(head).unwrap();
        let mut rest = Vec::new();
        // The connection was reset or closed.
        let _ = stream.read_to_end(&mut rest);
        tell.send(String::from_utf8(rest).unwrap()).unwrap();
    });
    (forwarder, told)
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_exchange() {
    // During an upload, while waiting for the response, and while receiving it.
    let (forwarder, told) = waiting("");
    let (pieces, body) = fed_body();
    let upload = tokio::spawn(node(forwarder).router.oneshot(change(body)));
    pieces.send("half".into()).await.unwrap();
    let (_, told) = word(told).await;
    upload.abort();
    let (rest, _) = word(told).await;
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");

    let (forwarder, told) = waiting("");
    let asking = tokio::spawn(node(forwarder).router.oneshot(change(Body::from("{}"))));
    let (_, told) = word(told).await;
    asking.abort();
    word(told).await;

    let (forwarder, told) =
        waiting("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n");
    let response = node(forwarder).router.oneshot(change(Body::empty())).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "hello");
    let (_, told) = word(told).await;
    drop(body);
    word(told).await;
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_given_up() {
    let (forwarder, told) = waiting("");
    // The rig uses a rate window of 50 ms.
    let rig = Rig::node(forwarder, |_| {});
    let (pieces, body) = fed_body();
    pieces.send("half".into()).await.unwrap();
    let answer = rig.send(change(body)).await;
    assert_eq!(
        (answer.status.as_u16(), &*answer.json["reason"].to_string()),
        (408, "\"body_timeout\"")
    );
    let (_, told) = word(told).await;
    let (rest, _) = word(told).await;
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let (go_on, may_go_on) = channel();
    let rig = node(upstream(move |mut stream| {
        head_of(&mut stream);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for event in ["a", "b"] {
            stream.write_all(format!("9\r\ndata: {event}\n\n\r\n").as_bytes()).unwrap();
            may_go_on.recv_timeout(PATIENCE).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    }));
    let request = Request::post("/lines").header("authorization", "Bearer write-key");
    let request = request.header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let response = rig.router.oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    for event in ["a", "b"] {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame, format!("data: {event}\n\n"));
        go_on.send(()).unwrap();
    }
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn an_answer_that_breaks_off_does_not_look_whole() {
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello",
    ] {
        let (forwarder, _told) = answering(cut);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = node(forwarder).router.clone();
        tokio::spawn(serve(listener, None, router, settings(), never_stops()));
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = "POST /lines HTTP/1.1\r\nhost: x\r\nauthorization: Bearer write-key\r\n\
                       content-length: 0\r\n\r\n";
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // Closed or reset: the connection ends before the response is complete.
        let _ = tokio::time::timeout(PATIENCE, client.read_to_end(&mut answer)).await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        // The head may not have been sent when the connection ends.
        let head = answer.split_once("\r\n\r\n").map_or("", |(head, _)| head);
        assert!(answer.is_empty() || head.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
        let is_told = ["content-length: 10", "transfer-encoding: chunked"];
        assert!(answer.is_empty() || is_told.iter().any(|framing| head.contains(framing)));
    }
}

#[tokio::test]
async fn no_key_has_more_exchanges_than_are_left() {
    let upstream = Upstream::new(Arc::new(nowhere().into()));
    let owner: Arc<str> = "a".into();
    let many: Vec<_> = std::iter::from_fn(|| upstream.exchanges.take(&owner)).collect();
    assert_eq!(many.len(), EXCHANGES_MAX / 2);
    let (parts, ()) = Request::new(()).into_parts();
    let pass = |owner: &str| {
        let origin = Origin { request_id: "r".into(), owner: owner.into(), from: None };
        upstream.pass(&parts, "/", Outgoing::Nothing, origin)
    };
    let refused = pass("a").await.unwrap_err();
    assert_eq!((refused.condition(), refused.reason()), (Condition::Unavailable, "overloaded"));
    assert_eq!(pass("b").await.unwrap_err().reason(), AWAY, "it was sent");
}

#[tokio::test]
async fn answers_to_visible_changes_are_held_back_and_no_others() {
    let delay = Duration::from_millis(30);
    let late = Rig::with(|settings| settings.change_delay = delay);
    let start = Instant::now();
    let answer = late.send(Rig::request(&Method::POST, "/echo", Some("write-key"), "{}")).await;
    assert_eq!(answer.status, 200);
    assert!(start.elapsed() >= delay);
    // A response that was delayed would never arrive.
    let never = Rig::with(|settings| settings.change_delay = Duration::from_secs(1 << 30));
    assert_eq!(never.get("/echo", Some("read-key")).await.status, 200);
    let wrong = never.send(Rig::request(&Method::POST, "/echo", Some("write-key"), "{")).await;
    assert_eq!(wrong.status, 400);
    let (media, form) = multipart_body(&[("tenant_id", None, "t"), ("file", Some("a.txt"), "x")]);
    let queued = Request::post("/form").header("authorization", "Bearer write-key");
    let queued = queued.header("content-type", media).body(form.into()).unwrap();
    assert_eq!(never.send(queued).await.status, 200);
    let held = never.send(Rig::request(&Method::POST, "/echo", Some("write-key"), "{}"));
    assert!(tokio::time::timeout(delay, held).await.is_err());
}

/// Goal: a server does not carry out requests that a node meant for another server.
#[tokio::test]
async fn a_request_for_another_server_is_refused() {
    let rig = Rig::with(|settings| settings.writer_name = Some("this-one".to_owned()));
    for (name, status) in [("this-one", 200), ("any", 200), ("another-one", 503)] {
        let request = Request::post("/echo")
            .header("authorization", "Bearer write-key")
            .header("x-lodestone-forwarded", name)
            .body(Body::from("{}"))
            .unwrap();
        let answer = rig.send(request).await;
        assert_eq!(answer.status, status, "{name}: {}", answer.json);
        assert!(status == 200 || answer.json["reason"] == "writer_differs", "{}", answer.json);
    }
    let mut request = Rig::request(&Method::POST, "/mcp", Some("write-key"), "{}");
    request.headers_mut().insert(FORWARDED, HeaderValue::from_static("another-one"));
    assert_eq!(rig.send(request).await.json["reason"], "writer_differs");
}
