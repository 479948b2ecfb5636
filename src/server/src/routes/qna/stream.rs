//! The events of a streamed answer, in the order of API 5.4: start, sources, tokens, done.

use serde::Serialize;

use crate::dto::answers::{QnaResponse, SourcesEvent, StartEvent};
use crate::error::ApiError;
use crate::sse::{Disconnected, EventSender};

#[derive(Serialize)]
struct TokenEvent<'a> {
    delta: &'a str,
}

/// Writes the events of one answer. For blocking code.
#[derive(Debug)]
pub struct AnswerStream {
    events: EventSender,
    /// The deltas that were sent, joined.
    sent: String,
    /// Text that waits until a slow client has taken an event.
    waiting: String,
}

impl AnswerStream {
    /// A stream without events yet.
    pub fn new(events: EventSender) -> Self {
        Self { events, sent: String::new(), waiting: String::new() }
    }

    /// Sends `start`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn start(&self, start: &StartEvent) -> Result<(), Disconnected> {
        self.events.send("start", start)
    }

    /// Sends `sources`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn sources(&self, sources: &SourcesEvent) -> Result<(), Disconnected> {
        self.events.send("sources", sources)
    }

    /// Sends a `token`, or keeps it to be joined with the next one while the client is slow.
    /// Never waits; text that is kept at the end goes out with `done`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn token(&mut self, delta: &str) -> Result<(), Disconnected> {
        self.waiting.push_str(delta);
        if !self.waiting.is_empty()
            && self.events.offer("token", &TokenEvent { delta: &self.waiting })?
        {
            self.sent.push_str(&self.waiting);
            self.waiting.clear();
        }
        Ok(())
    }

    /// Waits until the response has taken every event so far. Holds no thread.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub async fn drained(&self) -> Result<(), Disconnected> {
        self.events.drained().await
    }

    /// Sends `done`; the rest of the answer goes out before it as a last token, so that joined
    /// deltas equal the answer.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn done(self, response: &QnaResponse) -> Result<(), Disconnected> {
        let Some(rest) = response.answer.strip_prefix(self.sent.as_str()) else {
            let error = ApiError::internal("the streamed tokens are not a prefix of the answer");
            return self.events.fail(&error);
        };
        if !rest.is_empty() {
            self.events.send("token", &TokenEvent { delta: rest })?;
        }
        self.events.send_last("done", response)
    }

    /// Ends with an error.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn fail(self, error: &ApiError) -> Result<(), Disconnected> {
        self.events.fail(error)
    }
}
