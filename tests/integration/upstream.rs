//! A scripted generator for tests: an HTTP server whose responses are controlled byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::patience::STILL;

/// A response of the generator.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Streams these pieces and ends normally.
    Says(Vec<&'static str>),
    /// Streams these deltas and ends normally with this finish reason.
    Sends(Vec<Value>, &'static str),
    /// Responds with a single JSON body although a stream was requested.
    SaysAtOnce(&'static str),
    /// Streams these pieces, then closes the connection in mid-stream.
    Breaks(Vec<&'static str>),
    /// Streams these pieces, then stays silent until the client disconnects.
    Waits(Vec<&'static str>),
    /// Responds with an error: status, additional header lines, body.
    Fails(u16, &'static str, &'static str),
}

/// A request as received.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request line and headers, in lower case.
    pub head: String,
    pub body: Value,
}

impl Asked {
    /// The messages of one role, concatenated.
    pub fn said(&self, role: &str) -> String {
        let messages = self.body["messages"].as_array().expect("messages");
        let of_role = messages.iter().filter(|message| message["role"] == role);
        of_role.filter_map(|message| message["content"].as_str()).collect()
    }

    /// Whether the request asks which queries to search for.
    pub fn is_preparation(&self) -> bool {
        self.said("system").starts_with("You prepare a search.")
    }
}

/// A running generator; its thread ends with the test process.
pub struct Upstream {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    gone: Receiver<()>,
}

impl Upstream {
    /// Starts a generator that responds to each request as `turn` decides.
    pub fn start(turn: impl Fn(&Asked) -> Turn + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (left, gone) = channel();
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let Some(request) = read(&stream) else { continue };
                heard.lock().push(request.clone());
                let turn = turn(&request);
                let waits = matches!(turn, Turn::Waits(_));
                if answer(&mut stream, turn).is_ok() && waits {
                    stream.set_read_timeout(Some(STILL)).expect("a timeout");
                    if matches!(stream.read(&mut [0; 1]), Ok(0)) {
                        left.send(()).ok();
                    }
                }
            }
        });
        Self { url, asked, gone }
    }

    /// Starts a generator that gives every request the same response.
    pub fn saying(pieces: Vec<&'static str>) -> Self {
        Self::start(move |_| Turn::Says(pieces.clone()))
    }

    /// The requests received so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    /// Waits until the client of a [`Turn::Waits`] has closed its connection.
    pub fn client_has_gone(&self) -> bool {
        self.gone.recv_timeout(STILL).is_ok()
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { head, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn answer(stream: &mut TcpStream, turn: Turn) -> std::io::Result<()> {
    let (deltas, reason) = match turn {
        Turn::Fails(status, headers, body) => {
            let length = body.len();
            let head = format!("HTTP/1.1 {status} No\r\n{headers}content-length: {length}\r\n\r\n");
            return stream.write_all(format!("{head}{body}").as_bytes());
        }
        Turn::SaysAtOnce(text) => {
            let message = json!({"message": {"content": text}, "finish_reason": "stop"});
            let body = json!({ "choices": [message] }).to_string();
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            let text = format!("{head}content-length: {length}\r\n\r\n{body}");
            return stream.write_all(text.as_bytes());
        }
        Turn::Sends(deltas, reason) => (deltas, Some(reason)),
        Turn::Says(pieces) => (said(pieces), Some("stop")),
        Turn::Breaks(pieces) | Turn::Waits(pieces) => (said(pieces), None),
    };
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: hi\n\n",
    )?;
    for delta in deltas {
        let piece = json!({"choices": [{"index": 0, "delta": delta}]});
        stream.write_all(format!("data: {piece}\n\n").as_bytes())?;
    }
    if let Some(reason) = reason {
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
        stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes())?;
    }
    Ok(())
}

fn said(pieces: Vec<&'static str>) -> Vec<Value> {
    pieces.into_iter().map(|piece| json!({ "content": piece })).collect()
}
