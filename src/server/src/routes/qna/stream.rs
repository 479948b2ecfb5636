//! The events of a streamed answer, either in the form of this API (start, sources, tokens, done)
//! or as chunks of a chat completion.

use serde::Serialize;

use crate::dto::answers::{QnaResponse, SourcesEvent, StartEvent};
use crate::error::{ApiError, ErrorForm};
use crate::routes::v1::chat::ChatVoice;
use crate::sse::{Disconnected, EventSender};

#[derive(Serialize)]
struct TokenEvent<'a> {
    delta: &'a str,
}

/// The form of an answer's events.
#[derive(Debug)]
pub enum Voice {
    /// Events of this API (docs/api.md, "Streaming").
    Own,
    /// Chunks of an OpenAI chat completion.
    Chat(ChatVoice),
}

impl Voice {
    /// Returns the form of errors in the stream.
    pub fn error_form(&self) -> ErrorForm {
        match self {
            Self::Own => ErrorForm::Own,
            Self::Chat(_) => ErrorForm::OpenAi,
        }
    }
}

/// Writes the events of one answer from blocking code.
#[derive(Debug)]
pub struct AnswerStream {
    events: EventSender,
    voice: Voice,
    /// The text sent so far.
    sent: String,
    /// Text held back until a slow client has taken an event.
    waiting: String,
}

impl AnswerStream {
    /// Creates a stream that has sent nothing yet.
    pub fn new(events: EventSender, voice: Voice) -> Self {
        Self { events, voice, sent: String::new(), waiting: String::new() }
    }

    /// Sends `start`.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn start(&self, start: &StartEvent) -> Result<(), Disconnected> {
        match &self.voice {
            Voice::Own => self.events.send("start", start),
            Voice::Chat(chat) => self.events.send("chunk", &chat.begin()),
        }
    }

    /// Sends `sources`.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn sources(&self, sources: &SourcesEvent) -> Result<(), Disconnected> {
        match &self.voice {
            Voice::Own => self.events.send("sources", sources),
            // Sent with the citations at the end.
            Voice::Chat(_) => Ok(()),
        }
    }

    /// Sends a `token`, or holds it back while the client is slow and joins it with the next. Never
    /// blocks; [`Self::done`] sends text that is still held back.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn token(&mut self, delta: &str) -> Result<(), Disconnected> {
        self.waiting.push_str(delta);
        if self.waiting.is_empty() {
            return Ok(());
        }
        let is_sent = match &self.voice {
            Voice::Own => self.events.offer("token", &TokenEvent { delta: &self.waiting })?,
            Voice::Chat(chat) => self.events.offer("chunk", &chat.piece(&self.waiting))?,
        };
        if is_sent {
            self.sent.push_str(&self.waiting);
            self.waiting.clear();
        }
        Ok(())
    }

    /// Waits until the response has taken all events so far, without holding a thread.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub async fn drained(&self) -> Result<(), Disconnected> {
        self.events.drained().await
    }

    /// Sends `done`, preceded by a last token with the rest of the answer, so that the joined
    /// deltas equal the answer.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn done(self, response: &QnaResponse) -> Result<(), Disconnected> {
        let Some(rest) = response.answer.strip_prefix(self.sent.as_str()) else {
            let error = ApiError::internal("the streamed tokens are not a prefix of the answer");
            return self.events.fail(&error);
        };
        match &self.voice {
            Voice::Own => {
                if !rest.is_empty() {
                    self.events.send("token", &TokenEvent { delta: rest })?;
                }
                self.events.send_last("done", response)
            }
            Voice::Chat(chat) => {
                if !rest.is_empty() {
                    self.events.send("chunk", &chat.piece(rest))?;
                }
                chat.end(response).iter().try_for_each(|chunk| self.events.send("chunk", chunk))?;
                self.events.send_last("done", &())
            }
        }
    }

    /// Ends the stream with an error.
    ///
    /// # Errors
    /// [`Disconnected`] if the client has gone.
    pub fn fail(self, error: &ApiError) -> Result<(), Disconnected> {
        self.events.fail(error)
    }
}
