//! Answers from retrieved sources, complete or as an event stream (docs/api.md, "Questions").
//!
//! ```text
//! parse -> access -> permit (see `fair_queue`), if an answer is wanted
//!       -> Engine::qna -+- complete: remember the turn -> response
//!                       +- streamed: start, sources, tokens -> all taken by the client?
//!                                    -> remember the turn -> done
//! ```
//! Errors before `start` become plain HTTP statuses, later ones an `error` event. The turn is not
//! remembered if the client disconnects.
//!
//! - `stream`: the event stream of an answer; `cores`: cores for the parts that keep one busy

mod cores;
mod stream;

use std::ops::ControlFlow;
use std::sync::Arc;

use tokio::sync::oneshot;
use tracing::Instrument;

pub use stream::{AnswerStream, Voice};

use crate::app::{App, degraded};
use crate::dto::answers::{
    Correction, GenerationMetadata, QnaMetadata, QnaReply, QnaResponse, SourcesEvent, StartEvent,
    UnsupportedCitation,
};
use crate::dto::search::Qna;
use crate::error::ApiError;
use crate::fair_queue::RunPermit;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::chunks_out::{citation, explanation, qna_chunks, qna_source};
use crate::routes::graph::{graph_relations, relate};
use crate::routes::search::{completed, metadata_of};
use crate::routes::search_warnings::warnings;
use crate::routes::{Group, Route, off_thread};
use crate::sse::{self, Disconnected, EventStream};
use lodestone_answer::{AnswerSource, DELTAS_MAX};
use lodestone_engine::TenantAccess;
use lodestone_engine::qna::{
    AnswerEvent, Conversation, Generation, Grounds, QnaAnswer, QnaRequest,
};
use lodestone_types::{CancellationGuard, CollectionId, RequestContext, Role, TenantMode};

/// Entry of `metadata.degraded` when the generator failed to write the answer.
const GENERATOR_UNAVAILABLE: &str = "generator_unavailable";

// An answer without a generator fits into the channel, so a slow reader holds up no thread.
const _: () = assert!(DELTAS_MAX + 2 < sse::WAITING_MAX);

/// Returns the question answering operation.
pub fn routes() -> Vec<Route<App>> {
    vec![
        Route::<App>::post(
            "/search/qna",
            Group::Search,
            Role::Read,
            "Answer a question with citations, whole or streamed as events",
        )
        .handle(qna),
    ]
}

async fn qna(app: App, call: Call, input: Qna) -> Result<QnaReply, ApiError> {
    Ok(match answered(app, call, input, Voice::Own).await? {
        Answered::Whole(response, lacks) => {
            QnaReply::Whole(Box::new(Json::new(*response).with_degraded(lacks)))
        }
        Answered::Stream(stream) => QnaReply::Stream(stream),
    })
}

/// The response of a question.
pub(super) enum Answered {
    /// A complete response, with the parts that it lacks.
    Whole(Box<QnaResponse>, Vec<String>),
    /// An event stream.
    Stream(EventStream),
}

/// Answers a question; the events of a stream have the form of `voice`.
pub(super) async fn answered(
    app: App,
    call: Call,
    input: Qna,
    voice: Voice,
) -> Result<Answered, ApiError> {
    let context = app.search_context(&call);
    // Dropped when the client disconnects, together with this handler or the body of the stream.
    let listening = context.cancel().on_drop();
    let asked = Arc::new(Asked { app, call, input, context });
    let opening = Arc::clone(&asked);
    let access = off_thread(move || opening.open()).await?;
    let permit = cores::permit(&asked, &access).await?;
    if asked.input.stream {
        return begin_stream(asked, access, permit, voice, listening).await;
    }
    let asking = Arc::clone(&asked);
    let (access, mut response) = off_thread(move || {
        let answer = cores::answer(&asking.app, &access, &asking.request(), None)?;
        drop(permit);
        let sources = asking.sources(&answer.grounds, &answer.sources);
        Ok((access, asking.response(answer, sources)))
    })
    .await?;
    // A separate step, which is not reached if the client has closed the connection.
    let answered = off_thread(move || {
        asked.remember(&access, &mut response);
        Ok(Answered::Whole(Box::new(response), degraded(&access)))
    })
    .await?;
    drop(listening);
    Ok(answered)
}

/// Returns the response of a stream once the search is done.
async fn begin_stream(
    asked: Arc<Asked>,
    access: TenantAccess,
    permit: Option<RunPermit<CollectionId>>,
    voice: Voice,
    listening: CancellationGuard,
) -> Result<Answered, ApiError> {
    let call = &asked.call;
    let (events, stream) =
        sse::channel(voice.error_form(), Arc::clone(&call.request_id), call.spooler());
    let (starting, started) = oneshot::channel();
    let events = AnswerStream::new(events, voice);
    let answering = stream_answer(asked, access, permit, events, starting);
    let answered = tokio::spawn(answering.instrument(tracing::Span::current()));
    if let Ok(degraded) = started.await {
        return Ok(Answered::Stream(stream.with_degraded(degraded).holding(listening)));
    }
    match answered.await {
        Ok(Err(error)) => Err(error),
        _ => Err(ApiError::internal("a stream ended before its start")),
    }
}

/// Sends the events of an answer, and stops early if the client disconnects. Returns only errors
/// that occur before `start`.
async fn stream_answer(
    asked: Arc<Asked>,
    access: TenantAccess,
    permit: Option<RunPermit<CollectionId>>,
    events: AnswerStream,
    starting: oneshot::Sender<Vec<String>>,
) -> Result<(), ApiError> {
    let telling = Arc::clone(&asked);
    // A panic drops the sender, which ends the stream with an `error` event.
    let told = off_thread(move || {
        let told = telling.tell(access, events, starting);
        drop(permit);
        told
    });
    let Some((access, stream, mut response)) = told.await? else { return Ok(()) };
    // From here on, the work only waits for the client.
    asked.call.give_back();
    if stream.drained().await.is_err() {
        return Ok(());
    }
    let ended = off_thread(move || {
        asked.remember(&access, &mut response);
        Ok(stream.done(&response))
    });
    if let Ok(Err(Disconnected)) | Err(_) = ended.await {
        tracing::debug!("a stream was not read to the end");
    }
    Ok(())
}

/// A question together with the context of its request.
struct Asked {
    app: App,
    call: Call,
    input: Qna,
    context: RequestContext,
}

impl Asked {
    fn open(&self) -> Result<TenantAccess, ApiError> {
        let Self { app, call, input, context } = self;
        if let Conversation::Session(_) = input.conversation {
            // A session requires reading its earlier turns and adding this one.
            call.require_writer()?;
        }
        let mode = Some(TenantMode::Standard);
        Ok(app.engine.open(call.grant()?, &input.scope, mode)?.within(context))
    }

    fn request(&self) -> QnaRequest {
        let input = &self.input;
        QnaRequest {
            search: input.request.clone(),
            conversation: input.conversation.clone(),
            ai_generation: input.ai_generation,
            may_split: input.multi_step_reasoning,
            user_name: input.user_name.clone(),
            user_instructions: input.user_instructions.clone(),
            sampling: input.sampling,
            tools: input.tools.clone(),
        }
    }

    /// Sends all events except the last one; returns `None` if an `error` event has ended the
    /// stream. Blocks on a slow client only to send an error.
    fn tell(
        &self,
        access: TenantAccess,
        events: AnswerStream,
        starting: oneshot::Sender<Vec<String>>,
    ) -> Result<Option<(TenantAccess, AnswerStream, QnaResponse)>, ApiError> {
        let mut sink = EventSink {
            asked: self,
            access: &access,
            starting: Some(starting),
            stream: events,
            sources: None,
        };
        let mut send = |event: AnswerEvent<'_>| sink.send(event);
        let answer = cores::answer(&self.app, &access, &self.request(), Some(&mut send));
        let EventSink { starting, stream, sources, .. } = sink;
        match answer {
            Ok(answer) => {
                let sources = sources.expect("an answer has told its sources");
                Ok(Some((access, stream, self.response(answer, sources))))
            }
            Err(error) if starting.is_some() => Err(error),
            Err(error) => {
                if !self.context.cancel().is_cancelled() {
                    let (request_id, cause) = (&self.call.request_id, error.cause());
                    tracing::error!(%request_id, cause, "a streamed answer failed");
                }
                if let Err(Disconnected) = stream.fail(&error) {
                    tracing::debug!("a stream was not read to the end");
                }
                Ok(None)
            }
        }
    }

    fn session(&self) -> Option<String> {
        match &self.input.conversation {
            Conversation::Session(session) => Some(session.to_string()),
            Conversation::New | Conversation::Told(_) => None,
        }
    }

    fn response(&self, answer: QnaAnswer, sources: SourcesEvent) -> QnaResponse {
        let Self { app, call, input, .. } = self;
        let QnaAnswer { text, quotes, grounds, mut generation, answer_ms, total_ms, .. } = answer;
        let mut search = metadata_of(call, &input.request, &grounds.retrieved);
        search.completed_query = completed(&input.request.query, &grounds.question);
        if let Ok(access) = self.open() {
            search.degraded_message = app.engine.model_failure(&access);
            search.warnings = warnings(app, call, &access, &input.request.filter, search.returned);
        }
        search.timings_ms.answer = input.ai_generation.then_some(answer_ms);
        // Includes the time that a generator took to understand the question.
        search.timings_ms.total = total_ms;
        if let Some(error) = &generation.error {
            tracing::warn!(%error, request_id = %call.request_id, "answer generation failed");
            search.degraded.push(GENERATOR_UNAVAILABLE.to_owned());
        }
        let SourcesEvent { mut sources, chunks, graph_relations } = sources;
        for quote in &quotes {
            sources[quote.number - 1].cited = true;
        }
        QnaResponse {
            answer: text,
            sources,
            citations: quotes.into_iter().map(citation).collect(),
            chunks,
            success: true,
            session_id: self.session(),
            graph_relations,
            model_used: generation.model.clone(),
            tool_calls: std::mem::take(&mut generation.tool_calls),
            metadata: QnaMetadata {
                search,
                corrections: grounds.corrections.into_iter().map(correction).collect(),
                conflict: generation.has_conflict,
                language: generation.language.map(str::to_owned),
                generation: generation_metadata(generation, grounds.queries),
            },
        }
    }

    /// Converts the sources and chunks of an answer to response types.
    fn sources(&self, grounds: &Grounds, sources: &[AnswerSource]) -> SourcesEvent {
        let Grounds { retrieved, question, .. } = grounds;
        let found = &retrieved.chunks;
        let mut chunks = match self.input.highlight_chunks {
            true => qna_chunks(question, found, sources),
            false => Vec::new(),
        };
        for (shown, found) in chunks.iter_mut().zip(found) {
            relate(&mut shown.chunk, retrieved.relations.as_ref());
            shown.chunk.explain = self.input.explain.then(|| explanation(&found.parts));
        }
        SourcesEvent {
            sources: sources.iter().map(|source| qna_source(source, found)).collect(),
            chunks,
            graph_relations: graph_relations(retrieved),
        }
    }

    /// Adds the turn to its session. The answer is useful even if that fails, for example on a full
    /// disk, so an error is reported but not fatal.
    fn remember(&self, access: &TenantAccess, response: &mut QnaResponse) {
        let Self { app, call, input, .. } = self;
        let Conversation::Session(session) = &input.conversation else { return };
        let question = &input.request.query;
        let answer = input.ai_generation.then_some(response.answer.as_str());
        if let Err(error) = app.engine.remember(access, session, question, answer) {
            tracing::warn!(%error, request_id = %call.request_id, "storing a turn failed");
            response.metadata.search.degraded.push("session_not_remembered".to_owned());
        }
    }
}

/// Encodes an answer as events while it is being produced.
struct EventSink<'a> {
    asked: &'a Asked,
    access: &'a TenantAccess,
    /// Starts the response, given the parts that it lacks; `None` once it has started.
    starting: Option<oneshot::Sender<Vec<String>>>,
    stream: AnswerStream,
    sources: Option<SourcesEvent>,
}

impl EventSink<'_> {
    fn send(&mut self, event: AnswerEvent<'_>) -> ControlFlow<()> {
        let sent = match event {
            AnswerEvent::Start(model) => {
                let starting = self.starting.take().expect("an answer starts once");
                let start = StartEvent {
                    request_id: self.asked.call.request_id.to_string(),
                    session_id: self.asked.session(),
                    model: model.map(str::to_owned),
                };
                let begun = starting.send(degraded(self.access)).map_err(|_| Disconnected);
                begun.and_then(|()| self.stream.start(&start))
            }
            AnswerEvent::Sources(grounds, sources) => {
                let sources = self.sources.insert(self.asked.sources(grounds, sources));
                self.stream.sources(sources)
            }
            AnswerEvent::Token(piece) => self.stream.token(piece),
        };
        match sent {
            Ok(()) => ControlFlow::Continue(()),
            Err(Disconnected) => ControlFlow::Break(()),
        }
    }
}

fn correction(found: lodestone_answer::Correction) -> Correction {
    Correction { from: found.from, to: found.to }
}

fn generation_metadata(generation: Generation, queries: Vec<String>) -> GenerationMetadata {
    let Generation {
        model,
        is_fallback,
        error,
        usage,
        finish_reason,
        chunks_shown,
        unsupported,
        ..
    } = generation;
    let unsupported = unsupported.into_iter().map(|citation| UnsupportedCitation {
        number: citation.number,
        start: citation.answer_chars.start,
        end: citation.answer_chars.end,
    });
    let is_unconfigured = is_fallback && error.is_none() && model.is_some();
    let fallback_reason = match error {
        Some(error) => Some(error.reason()),
        None => is_unconfigured.then_some("not_configured"),
    };
    GenerationMetadata {
        model,
        fallback: is_fallback,
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        fallback_reason: fallback_reason.map(str::to_owned),
        finish_reason,
        queries,
        chunks_shown,
        unsupported: unsupported.collect(),
    }
}
