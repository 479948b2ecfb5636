//! Answers from retrieved sources, at once or as events (API 3.5 #23, 5.4, 5.10).
//!
//! ```text
//! find: filters, scope, search   faults are plain HTTP statuses
//!   -> write: answer, sources, chunks
//!        at once:  remember the turn -> response
//!        streamed: start, sources, tokens -> all taken by the client? -> remember -> done
//! ```
//! A client that goes away ends the work at the next arrow, so its turn is not remembered.

use std::sync::Arc;

use crate::answer::{deltas, sources_only};
use crate::engine::Place;
use crate::query::Retrieved;
use crate::server::app::{App, degraded};
use crate::server::dto::answers::{
    AnswerStream, AnswerTokens, GenerationMetadata, QnaMetadata, QnaReply, QnaResponse,
    SourcesEvent, StartEvent,
};
use crate::server::dto::search::Qna;
use crate::server::error::ApiError;
use crate::server::reply::Json;
use crate::server::request::Call;
use crate::server::routes::chunks_out::{qna_chunks, qna_source};
use crate::server::routes::graph::{graph_relations, relate};
use crate::server::routes::search::{metadata_of, request_of};
use crate::server::routes::{Group, Route, off_thread};
use crate::server::sse::{self, Disconnected, EventSender};
use crate::types::{Role, TenantMode};

/// What writes answers where no generator is configured.
const EXTRACTIVE: &str = "extractive";
/// Token events of a stream at most: with `start` and `sources` they fit into the channel, so
/// that a slow reader holds no thread.
const TOKENS_MAX: usize = 48;

const _: () = assert!(TOKENS_MAX + 2 < sse::WAITING_MAX);

/// The operation.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/search/qna",
            Group::Search,
            Role::Read,
            "An answer with its sources, at once or as events",
        )
        .handle(qna),
    ]
}

async fn qna(app: App, call: Call, input: Qna) -> Result<QnaReply, ApiError> {
    let asked = Arc::new(Asked { app, call, input });
    let finding = Arc::clone(&asked);
    let found = off_thread(move || finding.find()).await?;
    let header = degraded(&found.place);
    if asked.input.stream {
        let (events, stream) = sse::channel(Arc::clone(&asked.call.request_id));
        tokio::spawn(stream_answer(asked, found, events));
        return Ok(QnaReply::Stream(stream.with_degraded(header)));
    }
    let writing = Arc::clone(&asked);
    let (found, mut response) = off_thread(move || {
        let response = writing.write(&found)?;
        Ok((found, response))
    })
    .await?;
    // A step of its own: it is not reached when the client has closed the connection.
    let response = off_thread(move || {
        asked.remember(&found, &mut response);
        Ok(response)
    })
    .await?;
    Ok(QnaReply::Whole(Box::new(Json::new(response).with_degraded(header))))
}

/// Sends the events of an answer; ends early when the client has gone.
async fn stream_answer(asked: Arc<Asked>, found: Found, events: EventSender) {
    let telling = Arc::clone(&asked);
    let told = off_thread(move || Ok(telling.tell(&found, events).map(|told| (found, told)))).await;
    // A panic has dropped the sender, and the stream ends with an `error` event.
    let Ok(Ok((found, Some((tokens, mut response))))) = told else { return };
    if tokens.drained().await.is_err() {
        return;
    }
    let ended = off_thread(move || {
        asked.remember(&found, &mut response);
        Ok(tokens.done(&response))
    });
    if let Ok(Err(Disconnected)) | Err(_) = ended.await {
        tracing::debug!("a stream was not read to its end");
    }
}

/// A question with everything that belongs to its request.
struct Asked {
    app: App,
    call: Call,
    input: Qna,
}

/// What was found for a question.
struct Found {
    place: Place,
    retrieved: Retrieved,
    /// The question as it was searched: a follow-up is made whole by the turns before it.
    question: String,
}

impl Asked {
    fn find(&self) -> Result<Found, ApiError> {
        let Self { app, call, input } = self;
        let request = request_of(input.question.clone(), &input.options)?;
        let place = app.engine.open(call.grant()?, &input.scope, Some(TenantMode::Standard))?;
        let session = input.session_id.as_ref();
        let (retrieved, question) = app.engine.retrieve_for_question(&place, session, request)?;
        Ok(Found { place, retrieved, question })
    }

    fn model(&self) -> Option<String> {
        self.input.ai_generation.then(|| EXTRACTIVE.to_owned())
    }

    fn session(&self) -> Option<String> {
        self.input.session_id.as_ref().map(ToString::to_string)
    }

    fn write(&self, found: &Found) -> Result<QnaResponse, ApiError> {
        let Self { app, call, input } = self;
        let (question, chunks) = (&found.question, &found.retrieved.chunks);
        let (answer, sources) = match input.ai_generation {
            true => {
                let answer = app.engine.answer(question, chunks)?;
                (answer.text, answer.sources)
            }
            false => (String::new(), sources_only(question, chunks)),
        };
        let model = self.model();
        let generation =
            GenerationMetadata { model: model.clone(), fallback: true, ..Default::default() };
        let ignored = input.ignored_parameters.iter();
        let mut shown = match input.highlight_chunks {
            true => qna_chunks(question, chunks, &sources),
            false => Vec::new(),
        };
        relate(shown.iter_mut().map(|shown| &mut shown.chunk), found.retrieved.relations.as_ref());
        Ok(QnaResponse {
            answer,
            chunks: shown,
            sources: sources.iter().map(|source| qna_source(source, chunks)).collect(),
            success: true,
            session_id: self.session(),
            graph_relations: graph_relations(found.retrieved.relations.as_ref()),
            model_used: model,
            metadata: QnaMetadata {
                search: metadata_of(app, call, &input.options, &found.retrieved),
                generation,
                ignored_parameters: ignored.map(ToString::to_string).collect(),
            },
        })
    }

    /// Writes the answer and sends everything but its end; `None` where an `error` event has
    /// ended the stream. Never waits for the client.
    fn tell(
        &self,
        found: &Found,
        events: EventSender,
    ) -> Result<Option<(AnswerTokens, QnaResponse)>, Disconnected> {
        let start = StartEvent {
            request_id: self.call.request_id.to_string(),
            session_id: self.session(),
            model: self.model(),
        };
        let stream = AnswerStream::start(events, &start)?;
        let response = match self.write(found) {
            Ok(response) => response,
            Err(error) => {
                let (request_id, cause) = (&self.call.request_id, error.cause());
                tracing::error!(%request_id, cause, "a streamed answer failed");
                return stream.fail(&error).map(|()| None);
            }
        };
        let mut tokens = stream.sources(&SourcesEvent {
            sources: response.sources.clone(),
            chunks: response.chunks.clone(),
            graph_relations: response.graph_relations.clone(),
        })?;
        for delta in few_deltas(&response.answer) {
            tokens.token(&delta)?;
        }
        Ok(Some((tokens, response)))
    }

    /// Adds the turn to its session. An answer is worth giving without that, so a failure, for
    /// example of a full disk, is told and not fatal.
    fn remember(&self, found: &Found, response: &mut QnaResponse) {
        let Self { app, call, input } = self;
        let Some(session) = &input.session_id else { return };
        let (place, question) = (&found.place, &input.question);
        if let Err(error) = app.engine.remember(place, session, question, &response.answer) {
            tracing::warn!(%error, request_id = %call.request_id, "a turn was not remembered");
            response.metadata.search.degraded.push("session_not_remembered".to_owned());
        }
    }
}

/// The deltas of an answer, neighbours joined so that there are at most [`TOKENS_MAX`].
fn few_deltas(answer: &str) -> Vec<String> {
    let all: Vec<&str> = deltas(answer).collect();
    let joined = all.len().div_ceil(TOKENS_MAX).max(1);
    all.chunks(joined).map(|run| run.concat()).collect()
}
