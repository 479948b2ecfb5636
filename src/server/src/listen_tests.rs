//! Real sockets against the accept loop, with short limits instead of a false clock.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::time::{Duration, Instant};

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
        drain: GENEROUS,
        ..ListenSettings::default()
    };
    change(&mut settings);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, receiver) = watch::channel(Stop::Run);
    let served = tokio::spawn(serve(listener, router, settings, receiver));
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

/// Longer than any step takes on a machine that does other work.
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
    let large = format!("GET /open HTTP/1.1\r\nx: {}\r\n\r\n", "a".repeat(40_000));
    assert!(exchange(&server, large.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let many = format!("GET /open HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
    assert!(exchange(&server, many.as_bytes()).await.starts_with("HTTP/1.1 431"));
    let within = CLOSE.replace("host: x", &format!("x: {}", "a".repeat(15_000)));
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
    // The server is not waiting for the rest.
    let sent = async { while stream.write_all(&[b'x'; 65_536]).await.is_ok() {} };
    timeout(GENEROUS, sent).await.unwrap();
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
    let change = |settings: &mut ListenSettings| {
        settings.connections_max = 1;
        settings.header_timeout = Duration::from_millis(300);
    };
    let server = start(Rig::new().router, change).await;
    let _holder = TcpStream::connect(server.address).await.unwrap();
    let started = Instant::now();
    // Waits in the operating system's queue until the silent holder is closed.
    assert!(exchange(&server, CLOSE.as_bytes()).await.starts_with("HTTP/1.1 200"));
    assert!(started.elapsed() >= Duration::from_millis(150));
}

#[test]
fn addresses_are_bounded_but_loopback_is_not() {
    let addresses = Arc::new(Addresses::default());
    let remote: IpAddr = "192.0.2.1".parse().unwrap();
    let held: Vec<ConnectionPermit> = (0..2).map(|_| addresses.enter(remote, 2).unwrap()).collect();
    assert!(addresses.enter(remote, 2).is_none());
    assert!(addresses.enter("192.0.2.2".parse().unwrap(), 2).is_some());
    assert!(addresses.enter("127.0.0.1".parse().unwrap(), 0).is_some());
    drop(held);
    assert!(addresses.enter(remote, 2).is_some());
    assert!(addresses.0.lock().is_empty(), "nothing is kept for those who left");
}

#[tokio::test]
async fn draining_finishes_requests_in_flight() {
    let (entered, mut entries) = tokio::sync::mpsc::channel(1);
    let (release, released) = watch::channel(false);
    let handler = move || {
        let (entered, mut released) = (entered.clone(), released.clone());
        async move {
            entered.send(()).await.unwrap();
            released.wait_for(|released| *released).await.unwrap();
            "finished"
        }
    };
    let router = Router::new().route("/", axum::routing::get(handler));
    let server = start(router, |_| {}).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    entries.recv().await.unwrap();
    server.stop.send_replace(Stop::Drain);
    // New connections end without an answer once the listener is gone.
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
    let server = start(router, |s| s.write_timeout = Duration::from_millis(100)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    // The endless answer is dropped while the client holds its connection open and silent.
    assert!(timeout(GENEROUS, seen).await.unwrap().is_err());
    drop(stream);
}
