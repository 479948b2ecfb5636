//! The accept loop over real sockets, with short limits instead of a simulated clock.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::*;
use crate::tests::support::Rig;

struct Server {
    address: SocketAddr,
    stop: watch::Sender<Stop>,
    served: JoinHandle<bool>,
}

async fn start(router: Router, change: impl FnOnce(&mut ListenSettings)) -> Server {
    let mut settings = ListenSettings {
        header_timeout: Duration::from_millis(300),
        idle_timeout: Duration::from_millis(300),
        drain: GENEROUS,
        rest_timeout: GENEROUS,
        ..ListenSettings::default()
    };
    change(&mut settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, receiver) = watch::channel(Stop::Run);
    let served = tokio::spawn(serve(listener, None, router, settings, receiver));
    Server { address, stop, served }
}

/// Sends `text` and reads until the server closes.
async fn exchange(server: &Server, text: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text).await.unwrap();
    read_all(&mut stream).await
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = timeout(GENEROUS, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Longer than any step takes on a busy machine.
const GENEROUS: Duration = Duration::from_secs(120);
const CLOSE: &str = "GET /open HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn slow_and_silent_connections_are_closed() {
    let server = start(Rig::new().router, |_| {}).await;
    let silent = exchange(&server, b"").await;
    let half = exchange(&server, b"GET /open HTTP/1.1\r\nhost: x\r\n").await;
    let idle = exchange(&server, b"GET /open HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(silent.is_empty(), "{silent}");
    assert!(!half.contains(" 200 "), "{half}");
    assert!(idle.starts_with("HTTP/1.1 200 OK"), "{idle}");
}

#[tokio::test]
async fn large_headers_are_431() {
    let server = start(Rig::new().router, |_| {}).await;
    let large = format!("GET /open HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(70_000));
    assert!(exchange(&server, large.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let many = format!("GET /open HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
    assert!(exchange(&server, many.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let ids = format!("source_ids={}&", "a".repeat(40)).repeat(1000);
    let within = CLOSE.replace("/open", &format!("/open?{ids}"));
    assert!(exchange(&server, within.as_bytes()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_refused_upload_is_answered_without_being_read() {
    let server = start(Rig::new().router, |_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&[b'x'; 30_000]).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("\"reason\":\"missing_api_key\""), "{answer}");
}

/// Goal: a client that sends a large body to its end before it reads, as Python's `requests` does,
/// receives the refusal and not a reset.
#[tokio::test]
async fn a_refusal_outlives_a_body_that_is_sent_first() {
    const BODY: usize = 64 << 20;
    let server = start(Rig::new().router, |_| {}).await;
    for (key, reason) in [("wrong", "invalid_api_key"), ("write-key", "unsupported_media_type")] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /echo HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\
             content-type: text/xml\r\ncontent-length: {BODY}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..BODY / 65_536 {
            stream.write_all(&[b'x'; 65_536]).await.unwrap();
        }
        let answer = read_all(&mut stream).await;
        assert!(answer.contains(&format!("\"reason\":\"{reason}\"")), "{answer}");
    }
}

/// A connection that has received its refusal and may keep sending for an hour.
async fn lingering(change: impl FnOnce(&mut ListenSettings)) -> (Server, TcpStream) {
    let long = Duration::from_secs(3600);
    let server = start(Rig::new().router, |settings| {
        settings.linger = Linger { silence: long, unknown: long, authenticated: long };
        change(settings);
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 104857600\r\n\r\n";
    stream.write_all(head).await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 401"));
    (server, stream)
}

#[tokio::test]
async fn a_connection_that_lingers_makes_room_for_others() {
    let (server, _stream) = lingering(|settings| settings.connections_max = 1).await;
    assert!(exchange(&server, CLOSE.as_bytes()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_connection_that_lingers_does_not_hold_up_the_end() {
    let (server, _stream) = lingering(|_| {}).await;
    server.stop.send_replace(Stop::Drain);
    assert!(server.served.await.unwrap());
}

#[tokio::test]
async fn one_connection_serves_several_requests() {
    let server = start(Rig::new().router, |_| {}).await;
    let twice = format!("GET /open HTTP/1.1\r\nhost: x\r\n\r\n{CLOSE}");
    let answer = exchange(&server, twice.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
}

#[tokio::test]
async fn connections_are_bounded() {
    let (entered, mut entries) = tokio::sync::mpsc::channel(2);
    let (release, released) = watch::channel(false);
    let router = Router::new().route("/", axum::routing::get(held(entered, released)));
    let server = start(router, |settings| settings.connections_max = 1).await;
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(request).await.unwrap();
    entries.recv().await.unwrap();
    // Without a key, the first must go: it is the oldest unauthenticated connection.
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second.write_all(request).await.unwrap();
    entries.recv().await.unwrap();
    assert_eq!(read_all(&mut first).await, "");
    release.send_replace(true);
    assert!(read_all(&mut second).await.ends_with("finished"));
}

/// A handler that reports when it begins, and ends when it is released.
fn held(
    entered: tokio::sync::mpsc::Sender<()>,
    released: watch::Receiver<bool>,
) -> impl Fn() -> std::pin::Pin<Box<dyn Future<Output = &'static str> + Send>> + Clone {
    move || {
        let (entered, mut released) = (entered.clone(), released.clone());
        Box::pin(async move {
            entered.send(()).await.unwrap();
            released.wait_for(|released| *released).await.unwrap();
            "finished"
        })
    }
}

/// Goal: connections that only send requests without a key cannot keep out one that has a key.
#[tokio::test]
async fn a_table_full_of_strangers_lets_a_key_in_and_keeps_it() {
    let change = |settings: &mut ListenSettings| {
        settings.connections_max = 16;
        settings.idle_timeout = GENEROUS;
        settings.header_timeout = GENEROUS;
    };
    let server = start(Rig::new().router, change).await;
    let open = b"GET /open HTTP/1.1\r\nhost: x\r\n\r\n";
    let keyed = b"GET /echo HTTP/1.1\r\nhost: x\r\nauthorization: Bearer read-key\r\n\r\n";
    let mut strangers = Vec::new();
    let mut known = None;
    for turn in 0..40 {
        let mut stranger = TcpStream::connect(server.address).await.unwrap();
        stranger.write_all(open).await.unwrap();
        assert_eq!(status_of(&mut stranger).await, 200);
        strangers.push(stranger);
        if turn == 20 {
            known = Some(TcpStream::connect(server.address).await.unwrap());
        }
        if let Some(known) = &mut known {
            known.write_all(keyed).await.unwrap();
            assert_eq!(status_of(known).await, 200, "turn {turn}");
        }
    }
}

/// Reads the next response on a connection and returns its status.
async fn status_of(stream: &mut TcpStream) -> u16 {
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize =
                length.expect("answers of the tests have a length").parse().unwrap();
            if body.len() >= length {
                return head[9..12].parse().unwrap();
            }
        }
        let mut part = [0; 4096];
        let read = timeout(GENEROUS, stream.read(&mut part)).await.unwrap().unwrap();
        assert!(read > 0, "closed after {}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&part[..read]);
    }
}

/// Goal: a refused request whose body arrives later does not disturb the next request on its
/// connection.
#[tokio::test]
async fn a_connection_outlives_requests_that_are_refused_before_their_body() {
    let change = |settings: &mut ListenSettings| {
        settings.header_timeout = GENEROUS;
        settings.idle_timeout = GENEROUS;
    };
    let server = start(Rig::new().router, change).await;
    let key = |key: &str| format!("authorization: Bearer {key}\r\n");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for (line, key, media_type, status) in [
        ("POST /echo", "", "application/json", 401),
        ("POST /echo", &*key("read-key"), "application/json", 403),
        ("POST /nowhere", &*key("read-key"), "application/json", 404),
        ("PUT /echo", &*key("read-key"), "application/json", 405),
        ("POST /echo", &*key("write-key"), "text/xml", 415),
    ] {
        for chunked in [false, true] {
            let framing = match chunked {
                true => "transfer-encoding: chunked",
                false => "content-length: 70000",
            };
            let head = format!(
                "{line} HTTP/1.1\r\nhost: x\r\n{key}content-type: {media_type}\r\n{framing}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            // The response cannot arrive before the body, which the server is still reading.
            let mut byte = [0; 1];
            tokio::task::yield_now().await;
            assert!(stream.try_read(&mut byte).is_err());
            let body = match chunked {
                true => format!("11170\r\n{}\r\n0\r\n\r\n", "x".repeat(70_000)),
                false => "x".repeat(70_000),
            };
            stream.write_all(body.as_bytes()).await.unwrap();
            assert_eq!(status_of(&mut stream).await, status, "{line} {status}");
        }
        stream.write_all(b"GET /open HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        assert_eq!(status_of(&mut stream).await, 200, "after {line} {status}");
    }
}

/// Goal: if the rest of a body is not read, the response announces that the connection closes.
#[tokio::test]
async fn an_answer_before_a_long_body_says_that_it_closes() {
    let server = start(Rig::new().router, |_| {}).await;
    for more in ["content-length: 2000000\r\n", "expect: 100-continue\r\ncontent-length: 5\r\n"] {
        let head = format!("POST /echo HTTP/1.1\r\nhost: x\r\n{more}\r\n");
        let answer = exchange(&server, head.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
    }
    let answer = exchange(&server, b"GET /open HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.contains("keep-alive: timeout=0\r\n"), "{answer}");
}

#[tokio::test]
async fn a_refused_connection_is_told_so_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (refusals, mut connections) = (Refusals::default(), JoinSet::new());
    for turn in 1..=3 {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        refusals.refuse(listener.accept().await.unwrap().0, false, &mut connections);
        client.write_all(b"POST /x HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let answer = read_all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after"), "{answer}");
        assert!(answer.contains("\"reason\":\"too_many_connections\""), "{answer}");
        assert_eq!(refusals.count.load(Ordering::Relaxed), turn);
    }
}

#[tokio::test]
async fn draining_finishes_requests_in_flight() {
    let (entered, mut entries) = tokio::sync::mpsc::channel(1);
    let (release, released) = watch::channel(false);
    let router = Router::new().route("/", axum::routing::get(held(entered, released)));
    let server = start(router, |_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    entries.recv().await.unwrap();
    server.stop.send_replace(Stop::Drain);
    // New connections end without a response once the listener is closed.
    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(GENEROUS, refused).await.unwrap();
    release.send_replace(true);
    assert!(read_all(&mut stream).await.ends_with("finished"));
    drop(stream);
    assert!(server.served.await.unwrap(), "everything in flight has finished");
}

#[tokio::test]
async fn the_second_signal_ends_at_once() {
    let router = Router::new().route("/", axum::routing::get(std::future::pending::<()>));
    let server = start(router, |_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    server.stop.send_replace(Stop::Now);
    let _ = timeout(GENEROUS, server.served).await.unwrap();
    drop(stream);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_left() {
    use axum::routing::get;
    let (dropped, seen) = tokio::sync::oneshot::channel::<()>();
    let sent = Arc::new(Mutex::new(Some(dropped)));
    let router = Router::new().route(
        "/",
        get(move || {
            let until_dropped = sent.lock().take();
            let parts = futures_util::stream::repeat_with(move || {
                let _alive = &until_dropped;
                Ok::<_, io::Error>(bytes::Bytes::from_static(&[b'x'; 65_536]))
            });
            async { Body::from_stream(parts) }
        }),
    );
    let server = start(router, |s| {
        s.pace = Pace { window: Duration::from_millis(100), bytes_per_second_min: 1 };
    })
    .await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    // The endless response is dropped while the client keeps its connection open and silent.
    assert!(timeout(GENEROUS, seen).await.unwrap().is_err());
    drop(stream);
}
