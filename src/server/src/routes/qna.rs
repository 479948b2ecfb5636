//! Answers from retrieved sources, at once or as events (API 3.5 #23, 5.4, 5.10, 5.11).
//!
//! ```text
//! find: filters, scope, what to search for, search   faults are plain HTTP statuses
//!   -> draft: a generator's text, or sentences of the chunks where there is none or it fails
//!        at once:  remember the turn -> response
//!        streamed: start, sources, tokens -> all taken by the client? -> remember -> done
//! ```
//! A client that goes away ends the work at the next arrow, and a generator in the middle of its
//! text, so its turn is not remembered. Sources are numbered by relevance where a generator writes,
//! at once as in a stream, where they are told before the first token.
//!
//! - `draft`: the answer before it is sent

mod draft;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::app::{App, degraded};
use crate::dto::answers::{
    AnswerStream, AnswerTokens, QnaMetadata, QnaReply, QnaResponse, SourcesEvent, StartEvent,
};
use crate::dto::search::Qna;
use crate::error::ApiError;
use crate::reply::Json;
use crate::request::Call;
use crate::routes::chunks_out::{explanation, qna_chunks, qna_source};
use crate::routes::graph::{graph_relations, relate};
use crate::routes::qna::draft::{Draft, drafted};
use crate::routes::search::{metadata_of, request_of};
use crate::routes::{Group, Route, off_thread};
use crate::sse::{self, Disconnected, EventSender};
use lodestone_engine::answer::generate::{CancellationToken, Delivery, Writer};
use lodestone_engine::answer::{AnswerSource, deltas, sources_only};
use lodestone_engine::query::Retrieved;
use lodestone_engine::{Asking, Grounds, TenantAccess};
use lodestone_types::{Role, TenantMode};

/// What writes answers where no generator is configured, or it fails.
const EXTRACTIVE: &str = "extractive";
/// What `metadata.degraded` says of an answer that the generator should have written.
const GENERATOR_UNAVAILABLE: &str = "generator_unavailable";
/// Token events of an extracted answer at most: with `start` and `sources` they fit into the
/// channel, so that a slow reader holds no thread.
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
    let cancel = CancellationToken::default();
    // Goes when the client goes: with this handler, or with the body of a stream.
    let listening = cancel.on_drop();
    let asked = Arc::new(Asked { app, call, input, cancel });
    let finding = Arc::clone(&asked);
    let found = off_thread(move || finding.find()).await?;
    let header = degraded(&found.access);
    if asked.input.stream {
        let (events, stream) = sse::channel(Arc::clone(&asked.call.request_id));
        tokio::spawn(stream_answer(asked, found, events));
        return Ok(QnaReply::Stream(stream.with_degraded(header).holding(listening)));
    }
    let writing = Arc::clone(&asked);
    let (found, mut response) = off_thread(move || {
        let draft = writing.draft(&found)?;
        let response = writing.response(&found, draft);
        Ok((found, response))
    })
    .await?;
    // A step of its own: it is not reached when the client has closed the connection.
    let response = off_thread(move || {
        asked.remember(&found, &mut response);
        Ok(response)
    })
    .await?;
    drop(listening);
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
    cancel: CancellationToken,
}

/// What was found for a question.
struct Found {
    access: TenantAccess,
    grounds: Grounds,
    begun: Instant,
    /// When the chunks were there and the answer was begun.
    found: Instant,
}

impl Asked {
    fn find(&self) -> Result<Found, ApiError> {
        let begun = Instant::now();
        let Self { app, call, input, cancel } = self;
        let request = request_of(input.question.clone(), &input.options)?;
        let access = app.engine.open(call.grant()?, &input.scope, Some(TenantMode::Standard))?;
        let asking = Asking {
            session: input.session_id.as_ref(),
            may_generate: input.ai_generation,
            may_split: input.multi_step_reasoning,
            cancel,
        };
        let grounds = app.engine.retrieve_for_question(&access, asking, request)?;
        Ok(Found { access, grounds, begun, found: Instant::now() })
    }

    /// What writes the answer by a generator; without context there is nothing to write about.
    fn writer(&self, found: &Found) -> Option<&Writer> {
        let is_wanted = self.input.ai_generation && !found.grounds.retrieved.chunks.is_empty();
        self.app.engine.writer().filter(|_| is_wanted)
    }

    fn session(&self) -> Option<String> {
        self.input.session_id.as_ref().map(ToString::to_string)
    }

    fn response(&self, found: &Found, draft: Draft) -> QnaResponse {
        let Self { app, call, input, .. } = self;
        let Grounds { retrieved, question, .. } = &found.grounds;
        let SourcesEvent { sources, chunks, graph_relations } =
            self.sources(question, retrieved, &draft.sources);
        let mut search = metadata_of(app, call, &input.options, retrieved);
        let answer_ms = found.found.elapsed().as_secs_f64() * 1e3;
        search.timings_ms.answer = input.ai_generation.then_some(answer_ms);
        // With what a generator took to understand the question.
        search.timings_ms.total = found.begun.elapsed().as_secs_f64() * 1e3;
        if draft.is_degraded {
            search.degraded.push(GENERATOR_UNAVAILABLE.to_owned());
        }
        let ignored = input.ignored_parameters.iter();
        QnaResponse {
            answer: draft.answer,
            sources,
            chunks,
            success: true,
            session_id: self.session(),
            graph_relations,
            model_used: draft.generation.model.clone(),
            metadata: QnaMetadata {
                search,
                generation: draft.generation,
                ignored_parameters: ignored.map(ToString::to_string).collect(),
            },
        }
    }

    /// Context as the wire has it.
    fn sources(
        &self,
        question: &str,
        retrieved: &Retrieved,
        sources: &[AnswerSource],
    ) -> SourcesEvent {
        let found = &retrieved.chunks;
        let mut chunks = match self.input.highlight_chunks {
            true => qna_chunks(question, found, sources),
            false => Vec::new(),
        };
        for (shown, found) in chunks.iter_mut().zip(found) {
            relate(&mut shown.chunk, retrieved.relations.as_ref());
            shown.chunk.explain = self.input.options.explain.then(|| explanation(&found.parts));
        }
        SourcesEvent {
            sources: sources.iter().map(|source| qna_source(source, found)).collect(),
            chunks,
            graph_relations: graph_relations(retrieved),
        }
    }

    /// Writes the answer and sends everything but its end; `None` where an `error` event has
    /// ended the stream. Never waits for the client but to tell it of an error.
    fn tell(
        &self,
        found: &Found,
        events: EventSender,
    ) -> Result<Option<(AnswerTokens, QnaResponse)>, Disconnected> {
        let writer = self.writer(found);
        let model = match (writer, self.input.ai_generation) {
            (Some(writer), _) => Some(writer.generator().model().to_owned()),
            (None, true) => Some(EXTRACTIVE.to_owned()),
            (None, false) => None,
        };
        let request_id = self.call.request_id.to_string();
        let start = StartEvent { request_id, session_id: self.session(), model };
        let stream = AnswerStream::start(events, &start)?;
        if let Some(writer) = writer {
            return self.tell_generated(writer, found, stream);
        }
        let draft = match self.extract(found) {
            Ok(draft) => draft,
            Err(error) => {
                self.note(&error);
                return stream.fail(&error).map(|()| None);
            }
        };
        let response = self.response(found, draft);
        let tokens = stream.sources(&SourcesEvent {
            sources: response.sources.clone(),
            chunks: response.chunks.clone(),
            graph_relations: response.graph_relations.clone(),
        })?;
        tell_whole(tokens, response).map(Some)
    }

    fn tell_generated(
        &self,
        writer: &Writer,
        found: &Found,
        stream: AnswerStream,
    ) -> Result<Option<(AnswerTokens, QnaResponse)>, Disconnected> {
        let Grounds { retrieved, question, .. } = &found.grounds;
        let sources = sources_only(question, &retrieved.chunks);
        let mut tokens = stream.sources(&self.sources(question, retrieved, &sources))?;
        let mut has_told = false;
        let mut tell = |piece: &str| {
            has_told = true;
            match tokens.offer(piece) {
                Ok(()) => ControlFlow::Continue(()),
                Err(Disconnected) => ControlFlow::Break(()),
            }
        };
        let failed = match self.write(writer, found, &sources, Delivery::Streamed, &mut tell) {
            Ok(written) => {
                let draft = drafted(writer, &found.grounds, sources, written);
                return Ok(Some((tokens, self.response(found, draft))));
            }
            Err(error) => error,
        };
        let draft = match has_told {
            true => Err(failed.into()),
            false => self.fall_back(found, failed),
        };
        match draft {
            Ok(draft) => tell_whole(tokens, self.response(found, draft)).map(Some),
            Err(error) => {
                self.note(&error);
                tokens.fail(&error).map(|()| None)
            }
        }
    }

    fn note(&self, error: &ApiError) {
        if !self.cancel.is_cancelled() {
            let (request_id, cause) = (&self.call.request_id, error.cause());
            tracing::error!(%request_id, cause, "a streamed answer failed");
        }
    }

    /// Adds the turn to its session. An answer is worth giving without that, so a failure, for
    /// example of a full disk, is told and not fatal.
    fn remember(&self, found: &Found, response: &mut QnaResponse) {
        let Self { app, call, input, .. } = self;
        let Some(session) = &input.session_id else { return };
        let (access, question) = (&found.access, &input.question);
        if let Err(error) = app.engine.remember(access, session, question, &response.answer) {
            tracing::warn!(%error, request_id = %call.request_id, "a turn was not remembered");
            response.metadata.search.degraded.push("session_not_remembered".to_owned());
        }
    }
}

/// Sends an answer that is there as a whole.
fn tell_whole(
    mut tokens: AnswerTokens,
    response: QnaResponse,
) -> Result<(AnswerTokens, QnaResponse), Disconnected> {
    for delta in few_deltas(&response.answer) {
        tokens.token(&delta)?;
    }
    Ok((tokens, response))
}

/// The deltas of an answer, neighbours joined so that there are at most [`TOKENS_MAX`].
fn few_deltas(answer: &str) -> Vec<String> {
    let all: Vec<&str> = deltas(answer).collect();
    let joined = all.len().div_ceil(TOKENS_MAX).max(1);
    all.chunks(joined).map(|run| run.concat()).collect()
}
