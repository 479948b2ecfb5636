//! Tests of forwarded requests: unchanged both ways, and cut off where either side is cut off.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use ureq::http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST};
use ureq::http::{HeaderMap, HeaderValue, Method};

use super::world::{Listener, PATIENCE, loopback_certificate, pages, reply};
use crate::forward::{ForwardAnswer, ForwardBody, ForwardError, ForwardRequest};
use crate::{Authorities, Forwarder};

/// More than the socket buffers of one machine hold.
const LARGE: u64 = 256 << 20;
/// Maximum number of bytes in transit, most of them in those buffers.
const ON_THE_WAY_MAX: u64 = 32 << 20;

/// Starts a server that handles each connection with `serve`; returns a forwarder to it.
fn upstream(serve: impl Fn(TcpStream) + Send + 'static) -> Forwarder {
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
    Forwarder::new(&base, &Authorities::default()).unwrap()
}

/// Reads the head of a request byte by byte.
fn head_of(stream: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn request(method: Method, body: Option<ForwardBody>) -> ForwardRequest {
    ForwardRequest {
        method,
        target: "/a?b=c".to_owned(),
        headers: HeaderMap::new(),
        body,
        within: None,
    }
}

fn body(reader: impl Read + Send + 'static, length: Option<u64>) -> Option<ForwardBody> {
    Some(ForwardBody { reader: Box::new(reader), length })
}

fn get(forwarder: &Forwarder) -> Result<ForwardAnswer, ForwardError> {
    forwarder.begin().send(request(Method::GET, None))
}

fn text(mut answer: ForwardAnswer) -> io::Result<String> {
    let mut text = String::new();
    answer.body.read_to_string(&mut text).map(|_| text)
}

/// A body of `left` equal bytes that counts the bytes taken from it.
struct Counted {
    left: u64,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.left.min(buffer.len() as u64);
        self.left -= count;
        self.taken.fetch_add(count, Ordering::SeqCst);
        buffer[..count as usize].fill(b'x');
        Ok(count as usize)
    }
}

#[test]
fn a_request_and_its_answer_pass_as_they_are() {
    let site = Listener::site(Arc::new(|path, stream| match path {
        "/base/moved" => reply(stream, 302, "location: /base/other\r\n", b"moved"),
        _ => {
            let headers = "content-encoding: gzip\r\nset-cookie: a\r\nset-cookie: b\r\n";
            reply(stream, 418, headers, b"not gzip")
        }
    }));
    let base = format!("http://{}/base/", site.address);
    let forwarder = Forwarder::new(&base, &Authorities::default()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_static("public.example"));
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer k"));
    headers.append("x-twice", HeaderValue::from_static("1"));
    headers.append("x-twice", HeaderValue::from_static("2"));
    // The client frames the body itself, so this header must not survive.
    headers.insert("content-length", HeaderValue::from_static("99"));
    let target = "/p%20q?r=%2F".to_owned();
    let body = body(&b"{}"[..], Some(2));
    let sent = ForwardRequest { method: Method::DELETE, target, headers, body, within: None };
    let answer = forwarder.begin().send(sent).unwrap();
    assert_eq!(answer.status, 418);
    assert_eq!(answer.headers["content-encoding"], "gzip");
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(text(answer).unwrap(), "not gzip");
    let head = &site.requests()[0];
    let mut lines: Vec<_> = head.trim_end().lines().collect();
    assert_eq!(lines.remove(0), "DELETE /base/p%20q?r=%2F HTTP/1.1");
    lines.sort_unstable();
    let expected =
        ["authorization: Bearer k", "content-length: 2", "host: public.example", "x-twice: 1"];
    assert_eq!(lines[..4], expected);
    assert_eq!(lines[4..], ["x-twice: 2"], "and nothing of this client's own");
    assert_eq!(site.bodies()[0], b"{}");
    let moved = ForwardRequest { target: "/moved".to_owned(), ..request(Method::POST, None) };
    let moved = forwarder.begin().send(moved).unwrap();
    assert_eq!(
        (moved.status.as_u16(), &moved.headers["location"]),
        (302, &"/base/other".parse().unwrap())
    );
    assert!(site.requests()[1].contains("content-length: 0\r\n"), "{}", site.requests()[1]);
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let forwarder = upstream(|mut stream| {
        for _ in 0..2 {
            head_of(&mut stream);
            reply(&mut stream, 200, "", b"same").unwrap();
        }
        head_of(&mut stream);
        reply(&mut stream, 200, "connection: close\r\n", b"last").unwrap();
    });
    // The server accepts the second connection only after the first has ended.
    for expected in ["same", "same", "last", "same"] {
        assert_eq!(text(get(&forwarder).unwrap()).unwrap(), expected);
    }
}

#[test]
fn an_answer_without_a_body_ends_at_once() {
    let forwarder = upstream(|mut stream| {
        for head in ["200 OK\r\ncontent-length: 9", "204 No Content", "304 Not Modified"] {
            head_of(&mut stream);
            write!(stream, "HTTP/1.1 {head}\r\n\r\n").unwrap();
        }
    });
    for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
        let answer = forwarder.begin().send(request(method, None)).unwrap();
        assert_eq!(answer.status, status);
        assert_eq!(text(answer).unwrap(), "");
    }
}

#[test]
fn large_bodies_pass_in_pieces_both_ways() {
    let taken = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&taken);
    let forwarder = upstream(move |mut stream| {
        let head = head_of(&mut stream).to_ascii_lowercase();
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
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
        let reader = io::repeat(b'y').take(LARGE);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {LARGE}\r\n\r\n").unwrap();
        io::copy(&mut io::BufReader::with_capacity(1 << 20, reader), &mut stream).unwrap();
    });
    let sent = Counted { left: LARGE, taken };
    let sent = request(Method::POST, body(sent, Some(LARGE)));
    let mut answer = forwarder.begin().send(sent).unwrap();
    assert_eq!(io::copy(&mut answer.body, &mut io::sink()).unwrap(), LARGE);
}

#[test]
fn a_refusal_in_the_middle_of_an_upload_is_read() {
    let forwarder = upstream(|mut stream| {
        head_of(&mut stream);
        stream.read_exact(&mut [0; 100_000]).unwrap();
        reply(&mut stream, 413, "connection: close\r\n", b"too large").unwrap();
        // Lingers like servers that want their response to arrive.
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_exact(&mut vec![0; 1 << 20]).unwrap();
    });
    for _ in 0..3 {
        let taken = Arc::new(AtomicU64::new(0));
        let sent = Counted { left: LARGE, taken: Arc::clone(&taken) };
        let answer = forwarder.begin().send(request(Method::POST, body(sent, None))).unwrap();
        assert_eq!(answer.status, 413);
        assert_eq!(text(answer).unwrap(), "too large");
        assert!(taken.load(Ordering::SeqCst) < LARGE, "the rest is not asked for");
    }
}

#[test]
fn a_body_that_breaks_off_is_never_whole() {
    for length in [None, Some(1000)] {
        let (tell, told) = mpsc::channel();
        let forwarder = upstream(move |mut stream| {
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            tell.send(received).unwrap();
        });
        let broken = (&b"half"[..]).chain(Broken);
        let failed = forwarder.begin().send(request(Method::POST, body(broken, length)));
        assert!(failed.err().unwrap().to_string().contains("the client has gone"));
        let received = told.recv_timeout(PATIENCE).unwrap();
        assert!(!received.ends_with(b"0\r\n\r\n"));
        let tail = received.windows(4).any(|window| window == b"half");
        assert!(tail, "the beginning was sent");
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the client has gone"))
    }
}

#[test]
fn an_answer_that_breaks_off_is_an_error() {
    for cut in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "transfer-encoding: chunked\r\n\r\nff\r\nhello",
        "connection: close\r\n\r\nhello",
    ] {
        let forwarder = upstream(move |mut stream| {
            head_of(&mut stream);
            write!(stream, "HTTP/1.1 200 OK\r\n{cut}").unwrap();
        });
        let mut answer = get(&forwarder).unwrap();
        let mut read = Vec::new();
        let error = answer.body.read_to_end(&mut read);
        assert!(error.is_err(), "{cut}");
        assert_eq!(read, b"hello", "{cut}");
    }
}

#[test]
fn an_exchange_ends_from_another_thread() {
    for first in ["", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"] {
        let (tell, told) = mpsc::channel();
        let forwarder = upstream(move |mut stream| {
            head_of(&mut stream);
            stream.write_all(first.as_bytes()).unwrap();
            tell.send("asked").unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
            tell.send("gone").unwrap();
        });
        let exchange = forwarder.begin();
        let asking = exchange.clone();
        let waiting = thread::spawn(move || match asking.send(request(Method::GET, None)) {
            Ok(answer) => text(answer).is_err(),
            Err(_) => true,
        });
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "asked");
        exchange.abort();
        assert!(waiting.join().unwrap(), "{first}");
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "gone");
        // An exchange that is over sends nothing.
        assert!(exchange.send(request(Method::GET, None)).is_err());
    }
}

#[test]
fn an_abort_after_the_end_does_not_concern_the_next() {
    let forwarder = upstream(|mut stream| {
        for body in [b"first".as_slice(), b"second"] {
            head_of(&mut stream);
            reply(&mut stream, 200, "", body).unwrap();
        }
    });
    let first = forwarder.begin();
    assert_eq!(text(first.send(request(Method::GET, None)).unwrap()).unwrap(), "first");
    let mut second = get(&forwarder).unwrap();
    first.abort();
    let mut read = String::new();
    second.body.read_to_string(&mut read).unwrap();
    assert_eq!(read, "second");
}

#[test]
fn a_server_that_is_away_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let forwarder = Forwarder::new(&base, &Authorities::default()).unwrap();
    let error = get(&forwarder).err().unwrap().to_string();
    assert!(error.starts_with(&base), "{error}");
    // A connection that closes without a response is an error; the next exchange may succeed.
    let answers = AtomicU64::new(0);
    let forwarder = upstream(move |mut stream| {
        head_of(&mut stream);
        if answers.fetch_add(1, Ordering::SeqCst) > 0 {
            reply(&mut stream, 200, "", b"back").unwrap();
        }
    });
    assert!(get(&forwarder).is_err());
    assert_eq!(text(get(&forwarder).unwrap()).unwrap(), "back");
}

#[test]
fn an_encrypted_server_is_one_that_the_authorities_vouch_for() {
    let (config, roots) = loopback_certificate();
    let site = Listener::secure_site(config, pages(&[("/a?b=c", 200, "", "safe")]));
    let base = format!("https://{}", site.address);
    let strict = Forwarder::new(&base, &Authorities::default()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer k"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("br"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let secret = ForwardRequest { headers, ..request(Method::GET, None) };
    assert!(strict.begin().send(secret).is_err());
    assert_eq!(site.requests().len(), 0, "no key is sent to a stranger");
    let known = Forwarder::new(&base, &Authorities(roots)).unwrap();
    assert_eq!(text(get(&known).unwrap()).unwrap(), "safe");
}

#[test]
fn addresses_that_are_none_are_refused() {
    for wrong in
        ["", "writer", "writer:8080", "ftp://writer", "http://", "http://a?b", "http://u:p@a"]
    {
        let error = Forwarder::new(wrong, &Authorities::default()).unwrap_err();
        assert!(error.starts_with(wrong), "{error}");
    }
}
