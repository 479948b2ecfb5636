//! A scripted HTTP server for tests, with a thread per connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request as received.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Method, and path with query.
    pub line: String,
    headers: Vec<(String, String)>,
    pub body: Value,
}

impl Asked {
    /// The value of a header; its name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    pub fn path(&self) -> &str {
        let path = self.line.split(' ').nth(1).unwrap_or_default();
        path.split('?').next().unwrap_or_default()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Told {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The number of bytes of the body to send, if not all, and whether to keep the connection open
    /// after that until the client disconnects.
    pub part: Option<(usize, bool)>,
}

impl Told {
    pub fn json(status: u16, body: &Value) -> Self {
        Self::bytes(status, body.to_string().into_bytes())
    }

    pub fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, part: None }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A running server; its thread ends with the test process.
pub struct StandIn {
    /// The URL without a trailing slash.
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl StandIn {
    pub fn start(answer: impl Fn(&Asked) -> Told + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                std::thread::spawn(move || {
                    if let Ok(request) = read(&stream) {
                        heard.lock().expect("no panic").push(request.clone());
                        // A client that was killed has closed its end of the connection.
                        let _ = write(&stream, &answer(&request));
                    }
                });
            }
        });
        Self { url, asked }
    }

    /// The requests received so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn read(stream: &TcpStream) -> std::io::Result<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        match header.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let line = line.rsplit_once(' ').map_or("", |line| line.0).to_owned();
    let mut asked = Asked { line, headers, body: Value::Null };
    let length = asked.header("content-length").map_or(0, |text| text.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    asked.body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(asked)
}

fn write(mut stream: &TcpStream, told: &Told) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", told.status);
    head += &format!("content-length: {}\r\n", told.body.len());
    for (name, value) in &told.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let (length, is_kept) = told.part.unwrap_or((told.body.len(), false));
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(&told.body[..length])?;
    if is_kept {
        stream.read_exact(&mut [0])?;
    }
    Ok(())
}
