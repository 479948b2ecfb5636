//! Server-sent events: a channel whose receiver becomes a response body.
//!
//! Each event carries an increasing id and one JSON object. A comment line is sent after 15 s of
//! silence, so that proxies keep the connection open. When the client disconnects, the body is
//! dropped and the sender's next send fails, which tells a generator to stop. If the sender is
//! dropped before sending a last event, the stream ends with an `error` event rather than silently.
//! The data of a large event is kept in a file while it waits for a slow reader.

use std::any::Any;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::timeout;

use crate::error::{ApiError, ErrorForm};
use crate::request::spool::Spooler;
use crate::response_notes::tell_degraded;
use crate::{file_body, reply};
use lodestone_engine::{Spilled, SpilledFile};

/// Media type of an event stream.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// Longest silence before a ping is sent.
const PING_AFTER: Duration = Duration::from_secs(15);
/// Number of events buffered for a slow reader before the sender blocks.
pub const WAITING_MAX: usize = 64;

/// The client has disconnected, so work on its behalf should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client closed the stream")]
pub struct Disconnected;

#[derive(Debug)]
struct Event {
    name: &'static str,
    data: Data,
    is_last: bool,
}

/// The JSON object of an event, in memory or in a spill file.
#[derive(Debug)]
enum Data {
    Text(String),
    File(SpilledFile),
}

/// The sending half of the channel.
#[derive(Debug, Clone)]
pub struct EventSender {
    events: mpsc::Sender<Event>,
    spooler: Spooler,
    request_id: Arc<str>,
    form: ErrorForm,
}

/// The receiving half, which becomes the response.
#[derive(Debug)]
pub struct EventStream {
    events: mpsc::Receiver<Event>,
    request_id: Arc<str>,
    form: ErrorForm,
    ping_after: Duration,
    degraded: Vec<String>,
    held: Option<Box<dyn Any + Send>>,
}

/// Creates a channel for the request `request_id`; `spooler` provides files for large events.
pub fn channel(
    form: ErrorForm,
    request_id: Arc<str>,
    spooler: Spooler,
) -> (EventSender, EventStream) {
    let (events_in, events) = mpsc::channel(WAITING_MAX);
    let id = Arc::clone(&request_id);
    let sender = EventSender { events: events_in, spooler, request_id: id, form };
    let (ping_after, degraded, held) = (PING_AFTER, Vec::new(), None);
    (sender, EventStream { events, request_id, form, ping_after, degraded, held })
}

impl EventSender {
    /// Sends an event from blocking code; blocks while the buffer is full.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn send(&self, name: &'static str, data: &impl Serialize) -> Result<(), Disconnected> {
        let event = Event { name, data: self.encode(data), is_last: false };
        self.events.blocking_send(event).map_err(|_| Disconnected)
    }

    /// Sends an event unless the buffer is full, and returns whether it was sent. Never blocks.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn offer(&self, name: &'static str, data: &impl Serialize) -> Result<bool, Disconnected> {
        match self.events.try_reserve() {
            Ok(permit) => {
                permit.send(Event { name, data: self.encode(data), is_last: false });
                Ok(true)
            }
            Err(TrySendError::Full(())) => Ok(false),
            Err(TrySendError::Closed(())) => Err(Disconnected),
        }
    }

    /// Sends the final event, from blocking code; blocks while the buffer is full.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn send_last(self, name: &'static str, data: &impl Serialize) -> Result<(), Disconnected> {
        let event = Event { name, data: self.encode(data), is_last: true };
        self.events.blocking_send(event).map_err(|_| Disconnected)
    }

    /// Ends the stream with an `error` event.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn fail(self, error: &ApiError) -> Result<(), Disconnected> {
        let body = error.body_as(self.form, &self.request_id);
        self.send_last("error", &body)
    }

    /// Waits until the response has taken every event sent so far, without holding a thread.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub async fn drained(&self) -> Result<(), Disconnected> {
        // All permits of the channel are free only when it is empty.
        self.events.reserve_many(WAITING_MAX).await.map(drop).map_err(|_| Disconnected)
    }

    /// Resolves once the client has disconnected.
    pub async fn closed(&self) {
        self.events.closed().await;
    }

    /// Whether the client has disconnected.
    pub fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    fn encode(&self, data: &impl Serialize) -> Data {
        let text = encode(data);
        if text.len() as u64 <= reply::IN_MEMORY_BYTES_MAX {
            return Data::Text(text);
        }
        let mut spill = self.spooler.spills.begin(&self.spooler.owner);
        match spill.write_all(text.as_bytes()).map(|()| spill.finish()) {
            Ok(Ok(Spilled::File(spilled))) => Data::File(spilled),
            // If the disk is full, the event stays in memory.
            _ => Data::Text(text),
        }
    }
}

fn encode(data: &impl Serialize) -> String {
    serde_json::to_string(data).expect("response types have text keys only")
}

/// State of the response body.
struct Progress {
    stream: EventStream,
    next_id: u64,
    has_ended: bool,
    /// The data of an event that is being sent from a file, with the offset reached.
    file: Option<(SpilledFile, u64)>,
}

impl Progress {
    fn format(&mut self, event: Event) -> Bytes {
        let Event { name, data, is_last } = event;
        let id = self.next_id;
        self.next_id += 1;
        self.has_ended = is_last;
        let head = match (self.stream.form, name) {
            (ErrorForm::Own, _) => format!("id: {id}\nevent: {name}\ndata: "),
            (ErrorForm::OpenAi, "done") => return Bytes::from_static(b"data: [DONE]\n\n"),
            (ErrorForm::OpenAi, _) => "data: ".to_owned(),
        };
        match data {
            Data::Text(text) => Bytes::from(format!("{head}{text}\n\n")),
            Data::File(spilled) => {
                self.file = Some((spilled, 0));
                Bytes::from(head)
            }
        }
    }

    /// Reads the next piece of a large event; after the last one, returns the blank line.
    async fn piece(&mut self, spilled: SpilledFile, at: u64) -> io::Result<Bytes> {
        let bytes = file_body::piece(spilled.file.clone(), at).await?;
        if bytes.is_empty() {
            return Ok(Bytes::from_static(b"\n\n"));
        }
        self.file = Some((spilled, at + bytes.len() as u64));
        Ok(bytes)
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        if let Some((spilled, at)) = self.file.take() {
            return Some(self.piece(spilled, at).await);
        }
        self.next_event().await.map(Ok)
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        match timeout(self.stream.ping_after, self.stream.events.recv()).await {
            Err(_) => Some(Bytes::from_static(b": ping\n\n")),
            Ok(Some(event)) => Some(self.format(event)),
            Ok(None) => {
                let error = ApiError::internal("a stream ended without a final event");
                tracing::error!(request_id = %self.stream.request_id, cause = error.cause());
                let data = error.body_as(self.stream.form, &self.stream.request_id);
                let data = Data::Text(encode(&data));
                Some(self.format(Event { name: "error", data, is_last: true }))
            }
        }
    }
}

impl EventStream {
    /// Adds a header that lists the parts missing from the answer.
    #[must_use]
    pub fn with_degraded(self, degraded: Vec<String>) -> Self {
        Self { degraded, ..self }
    }

    /// Keeps `held` until the response is dropped, which happens at its end or when the client
    /// disconnects.
    #[must_use]
    pub fn holding(self, held: impl Any + Send) -> Self {
        Self { held: Some(Box::new(held)), ..self }
    }

    /// Builds the response: status 200 and a body that follows the events.
    pub fn into_response(mut self) -> Response {
        let degraded = std::mem::take(&mut self.degraded);
        let held = self.held.take();
        let progress = Progress { stream: self, next_id: 1, has_ended: false, file: None };
        let body = stream::unfold((progress, held), |(mut progress, held)| async move {
            let piece = progress.next().await?;
            Some((piece, (progress, held)))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Asks reverse proxies not to buffer the events.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        tell_degraded(headers, &degraded);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::Spools;
    use http_body_util::BodyExt;
    use serde_json::json;

    async fn text_of(response: Response) -> String {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn events_are_numbered_and_end_with_the_last() {
        let (sender, stream) = channel(ErrorForm::Own, "r-1".into(), Spools::new().spooler());
        std::thread::spawn(move || {
            sender.send("token", &json!({"delta": "a\nb"})).unwrap();
            sender.send_last("done", &json!({"answer": "a\nb"})).unwrap();
        });
        let text = text_of(stream.into_response()).await;
        let first = "id: 1\nevent: token\ndata: {\"delta\":\"a\\nb\"}\n\n";
        let second = "id: 2\nevent: done\ndata: {\"answer\":\"a\\nb\"}\n\n";
        assert_eq!(text, format!("{first}{second}"));
    }

    #[tokio::test]
    async fn a_large_event_waits_in_a_file() {
        let spools = Spools::new();
        let (sender, stream) = channel(ErrorForm::Own, "r-1".into(), spools.spooler());
        let large = json!({"sources": "x".repeat(300_000)});
        let (data, spooler) = (large.clone(), spools.spooler());
        let sending = tokio::task::spawn_blocking(move || {
            sender.send("sources", &data).unwrap();
            sender.send_last("done", &json!({})).unwrap();
            spooler.spills.bytes()
        });
        assert!(sending.await.unwrap() > 300_000);
        let text = text_of(stream.into_response()).await;
        let expected =
            format!("id: 1\nevent: sources\ndata: {large}\n\nid: 2\nevent: done\ndata: {{}}\n\n");
        assert!(text == expected, "{} bytes", text.len());
        assert_eq!(spools.bytes(), 0, "given back");
    }

    #[tokio::test]
    async fn a_lost_sender_is_an_error_event() {
        let (sender, stream) = channel(ErrorForm::Own, "r-1".into(), Spools::new().spooler());
        drop(sender);
        let text = text_of(stream.into_response()).await;
        assert!(text.starts_with("id: 1\nevent: error\ndata: {"), "{text}");
        assert!(text.contains("\"request_id\":\"r-1\""), "{text}");
    }

    #[tokio::test]
    async fn silence_is_filled_and_a_gone_client_is_noticed() {
        let (sender, mut stream) = channel(ErrorForm::Own, "r-1".into(), Spools::new().spooler());
        stream.ping_after = Duration::from_millis(1);
        let mut body = stream.into_response().into_body();
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(frame, ": ping\n\n");
        assert!(!sender.is_closed());
        drop(body);
        assert!(sender.is_closed());
        let sent = tokio::task::spawn_blocking(move || sender.send("token", &json!({})));
        assert_eq!(sent.await.unwrap(), Err(Disconnected));
    }
}
