//! The events of a streamed answer: in the order of API 5.4, which is start, sources, tokens, done,
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

/// Form of the events of an answer.
#[derive(Debug)]
pub enum Voice {
    /// Events of this program (API 5.4).
    Own,
    /// Chunks of a chat completion.
    Chat(ChatVoice),
}

impl Voice {
    /// The form of errors on the way.
    pub fn error_form(&self) -> ErrorForm {
        match self {
            Self::Own => ErrorForm::Own,
            Self::Chat(_) => ErrorForm::OpenAi,
        }
    }
}

/// Writes the events of one answer. For blocking code.
#[derive(Debug)]
pub struct AnswerStream {
    events: EventSender,
    voice: Voice,
    /// The deltas that were sent, joined.
    sent: String,
    /// Text that waits until a slow client has taken an event.
    waiting: String,
}

impl AnswerStream {
    /// A stream without events yet.
    pub fn new(events: EventSender, voice: Voice) -> Self {
        Self { events, voice, sent: String::new(), waiting: String::new() }
    }

    /// Sends `start`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn start(&self, start: &StartEvent) -> Result<(), Disconnected> {
        match &self.voice {
            Voice::Own => self.events.send("start", start),
            Voice::Chat(chat) => self.events.send("chunk", &chat.begin()),
        }
    }

    /// Sends `sources`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn sources(&self, sources: &SourcesEvent) -> Result<(), Disconnected> {
        match &self.voice {
            Voice::Own => self.events.send("sources", sources),
            // Told with the citations, at the end.
            Voice::Chat(_) => Ok(()),
        }
    }

    /// Sends a `token`, or keeps it to be joined with the next one while the client is slow.
    /// Never waits; text that is kept at the end goes out with `done`.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
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

    /// Ends with an error.
    ///
    /// # Errors
    /// [`Disconnected`] when the client has gone.
    pub fn fail(self, error: &ApiError) -> Result<(), Disconnected> {
        self.events.fail(error)
    }
}
