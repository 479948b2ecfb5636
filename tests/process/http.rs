//! A minimal HTTP client that distinguishes its failures. It opens one connection per request and
//! never retries, so a request whose answer is lost was sent at most once.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::patience::STILL;

/// Sends requests to one server with one key.
#[derive(Debug, Clone)]
pub struct Client {
    /// The address the server listens on.
    pub address: SocketAddr,
    /// The API key, sent as a bearer token.
    pub key: String,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

/// The reason why there is no complete response.
#[derive(Debug)]
pub enum Failure {
    /// The connection failed, so the request was not sent.
    Refused(io::Error),
    /// The connection broke, so the request may or may not have taken effect.
    Lost(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => write!(f, "no connection: {error}"),
            Self::Lost(error) => write!(f, "no whole answer: {error}"),
        }
    }
}

impl Reply {
    /// Parses the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }
}

impl Client {
    /// Sends a JSON body, or no body for `null`.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Result<Reply, Failure> {
        let bytes = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        self.send(method, path, "application/json", &bytes)
    }

    /// Sends one file and additional text fields as a multipart form.
    pub fn file(
        &self,
        path: &str,
        filename: &str,
        content: &[u8],
        parts: &[(&str, &str)],
    ) -> Result<Reply, Failure> {
        const BOUNDARY: &str = "boundary-of-the-tests";
        let mut body = String::new();
        for (name, value) in parts {
            body += &format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"");
            body += &format!("\r\n\r\n{value}\r\n");
        }
        body += &format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; ");
        body += &format!("filename=\"{filename}\"\r\n\r\n");
        let end = format!("\r\n--{BOUNDARY}--\r\n");
        let body = [body.as_bytes(), content, end.as_bytes()].concat();
        let media_type = format!("multipart/form-data; boundary={BOUNDARY}");
        self.send("POST", path, &media_type, &body)
    }

    /// Sends a body of the given media type.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: &[u8],
    ) -> Result<Reply, Failure> {
        let mut stream = TcpStream::connect(self.address).map_err(Failure::Refused)?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.address,
            self.key,
            body.len()
        );
        let mut exchange = || {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(STILL))?;
            stream.write_all(&[head.as_bytes(), body].concat())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        exchange().map_err(Failure::Lost)
    }
}

/// Parses a response that has a `content-length`; `None` if it is incomplete.
fn parse(answer: &[u8]) -> Option<Reply> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let body = &answer[end + 4..];
    (length == Some(body.len())).then(|| Reply { status, body: body.to_vec() })
}
