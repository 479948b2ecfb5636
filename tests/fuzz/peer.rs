//! A local third-party server that answers every request with the bytes that a target chooses.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::chance::Chance;

/// The pending responses; the last one is repeated.
type Answers = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// The server.
pub struct Peer {
    /// Its URL, without a path.
    pub url: String,
    answers: Answers,
}

impl Peer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let answers = Answers::default();
        let given = Arc::clone(&answers);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let given = Arc::clone(&given);
                thread::spawn(move || serve(connection, &given));
            }
        });
        Self { url, answers }
    }

    /// Sets the responses to the next requests.
    pub fn answer(&self, answers: impl IntoIterator<Item = Vec<u8>>) {
        *self.answers.lock().unwrap() = answers.into_iter().collect();
    }
}

/// Serves one connection until the client closes it.
fn serve(connection: TcpStream, answers: &Answers) -> Option<()> {
    connection.set_nodelay(true).ok()?;
    let mut out = connection.try_clone().ok()?;
    let mut requests = BufReader::new(connection);
    loop {
        let (mut line, mut body_bytes) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if requests.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let length = line.to_ascii_lowercase();
            let length = length.strip_prefix("content-length:");
            body_bytes = length.map_or(body_bytes, |text| text.trim().parse().unwrap_or(0));
        }
        std::io::copy(&mut (&mut requests).take(body_bytes), &mut std::io::sink()).ok()?;
        let answer = {
            let mut answers = answers.lock().unwrap();
            if answers.len() > 1 { answers.pop_front()? } else { answers.front()?.clone() }
        };
        out.write_all(&answer).ok()?;
    }
}

/// A response with this body.
pub fn whole(kind: &str, body: &[u8]) -> Vec<u8> {
    let bytes = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {bytes}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A response with this body in chunked encoding.
pub fn in_pieces(kind: &str, body: &[u8], chance: &mut Chance) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut answer = head.into_bytes();
    for piece in pieces(body, chance) {
        answer.extend(format!("{:x}\r\n", piece.len()).bytes());
        answer.extend(piece.iter().chain(b"\r\n"));
    }
    answer.extend(b"0\r\n\r\n");
    answer
}

/// Splits bytes into pieces of at least one byte.
pub fn pieces<'a>(mut rest: &'a [u8], chance: &mut Chance) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.len().min(1 + chance.length(rest.len())));
        pieces.push(piece);
        rest = others;
    }
    pieces
}
