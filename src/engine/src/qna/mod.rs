//! Answers a question: understands it, searches, writes the answer, and streams it in pieces.
//!
//! ```text
//! past turns, question -> grounds: what to search for, one search per part, merged
//!   -> start -> with a generator:             sources -> tokens as they are written
//!            -> with sentences of chunks:     text -> sources -> tokens
//!               (no generator, or it fails before its first token, then with its sources)
//!   -> QnaAnswer (followed by [`Engine::remember`] once the client has received all of it)
//! ```
//! When a client disconnects, the work ends at the next arrow, and a generator stops mid-text. With
//! a generator, sources are numbered by relevance even if the answer is not streamed, because a
//! stream announces them before the first token.
//!
//! - `events`: events of an answer for its caller, and the cores it asks for
//! - `grounds`: the search behind a question; `quotes`: the passages behind an answer
//! - `editions`: the editions in force of documents found; `foreign`: answers from texts in other
//!   languages

mod editions;
mod events;
mod foreign;
mod grounds;
mod quotes;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

pub use events::{AnswerEvent, AnswerSink, CoreTurn};
pub use grounds::Grounds;
pub use quotes::Quote;

use self::events::{tell_text, told};
use crate::meters::Leg;
use crate::query::{Mode, QueryError, RetrieveRequest};
use crate::stage::stage;
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::generate::{
    Delivery, GenerateError, Question, Sampling, ToolCall, Tools, Unsupported, Usage, Writer,
    Written,
};
use lodestone_answer::translation::Language;
use lodestone_answer::{AnswerSource, SourceOrder, contextualise, sources_only};
use lodestone_embed::Embedder;
use lodestone_types::RetrievedChunk;
use lodestone_types::id::SessionId;

/// Model name reported for answers written without a generator.
const EXTRACTIVE: &str = "extractive";

/// The conversation that precedes a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Conversation {
    /// None.
    #[default]
    New,
    /// The turns of a stored session.
    Session(SessionId),
    /// Questions with their answers, oldest first, as sent by the client.
    Told(Vec<(String, String)>),
}

/// A question to answer.
#[derive(Debug, Clone)]
pub struct QnaRequest {
    /// The search for the grounds; its query is the question.
    pub search: RetrieveRequest,
    /// The conversation that the question belongs to.
    pub conversation: Conversation,
    /// Whether an answer is wanted, not only its sources. Only then a generator is used.
    pub ai_generation: bool,
    /// Whether the generator may split the question into parts, each of which is then searched for.
    pub may_split: bool,
    /// Name of the user, for the generator; possibly empty.
    pub user_name: String,
    /// The user's wishes about form, for the generator; possibly empty.
    pub user_instructions: String,
    /// Sampling parameters for the generator.
    pub sampling: Sampling,
    /// Functions that the client offers to the generator; ignored without one.
    pub tools: Option<Tools>,
}

/// A finished answer.
#[derive(Debug)]
pub struct QnaAnswer {
    /// The text; empty if no answer was wanted.
    pub text: String,
    /// The sources; `[n]` in the text refers to the n-th of them.
    pub sources: Vec<AnswerSource>,
    /// The cited passages, in the order of their citations.
    pub quotes: Vec<Quote>,
    /// The search results that the answer rests on.
    pub grounds: Grounds,
    /// Model, usage and errors behind the text.
    pub generation: Generation,
    /// Milliseconds spent on writing the answer.
    pub answer_ms: f64,
    /// Milliseconds in total.
    pub total_ms: f64,
}

/// Model, usage and errors behind a text.
#[derive(Debug, Default)]
pub struct Generation {
    /// Name of the model that wrote it.
    pub model: Option<String>,
    /// Whether it was written without a generator.
    pub is_fallback: bool,
    /// The error of the generator that should have written it.
    pub error: Option<GenerateError>,
    /// Tokens used by all calls of the generator.
    pub usage: Usage,
    /// The generator's own word for why it stopped.
    pub finish_reason: Option<String>,
    /// Calls of the client's functions that the generator requests.
    pub tool_calls: Vec<ToolCall>,
    /// Number of chunks shown to the generator.
    pub chunks_shown: usize,
    /// Citations that are not supported by their sources.
    pub unsupported: Vec<Unsupported>,
    /// Whether an extracted answer reports differences between several editions of a document.
    pub has_conflict: bool,
    /// ISO 639-1 code of the language of an extracted answer's passages, if it differs from the
    /// question's.
    pub language: Option<&'static str>,
}

/// The text of an answer with its sources, quotes and generation.
type Draft = (String, Vec<AnswerSource>, Vec<Quote>, Generation);

impl Engine {
    /// Answers a question and passes each event to `sink`, if there is one. In a session, the
    /// preceding turns help to understand the question; the search filters are those of the
    /// request. An answer without a generator, and a reranked search without an answer, keep a core
    /// busy, which the caller provides; `turn` is called for a core beside a generator.
    ///
    /// # Errors
    /// See [`Self::retrieve`], before `Start`. Errors of the model. Errors of the generator, if the
    /// settings allow no fallback or some of its text was already sent; its time is not part of the
    /// request's. [`GenerateError::Cancelled`] if the sink or `turn` breaks off.
    pub fn qna(
        &self,
        access: &TenantAccess,
        request: &QnaRequest,
        sink: Option<AnswerSink<'_>>,
        turn: CoreTurn<'_>,
    ) -> Result<QnaAnswer, EngineError> {
        let begun = Instant::now();
        let core = match self.reranks_without_core(request) {
            true => Some(told(turn(&access.context))?),
            false => None,
        };
        let mut grounds = self.grounds(access, request)?;
        drop(core);
        let searched = Instant::now();
        let mut silent = |_: AnswerEvent<'_>| ControlFlow::Continue(());
        let (delivery, sink): (Delivery, AnswerSink<'_>) = match sink {
            Some(sink) => (Delivery::Streamed, sink),
            None => (Delivery::Whole, &mut silent),
        };
        // Without chunks the generator has nothing to write about, unless it may call functions.
        let has_grounds = !grounds.retrieved.chunks.is_empty() || request.tools.is_some();
        let is_wanted = request.ai_generation && has_grounds;
        let writer = self.writer.as_ref().filter(|_| is_wanted);
        let model = match writer {
            Some(writer) => Some(writer.generator().model()),
            None => request.ai_generation.then_some(EXTRACTIVE),
        };
        told(sink(AnswerEvent::Start(model)))?;
        let answering = stage!("answer");
        let (text, sources, quotes, generation) = match writer {
            Some(writer) => {
                match self.generate(writer, access, request, &mut grounds, delivery, sink)? {
                    Ok(draft) => draft,
                    Err(error) => {
                        self.fall_back(access, request, &mut grounds, error, sink, turn)?
                    }
                }
            }
            None => {
                let draft = self.extract(access, request, &mut grounds)?;
                told(sink(AnswerEvent::Sources(&grounds, &draft.1)))?;
                tell_text(sink, &draft.0)?;
                draft
            }
        };
        drop(answering);
        let millis = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
        let (answer_ms, total_ms) = (millis(searched), millis(begun));
        if request.ai_generation {
            self.meters.observe(Leg::Answer, answer_ms / 1e3);
        }
        self.tell_slow_answer(access, &grounds, answer_ms, total_ms);
        Ok(QnaAnswer { text, sources, quotes, grounds, generation, answer_ms, total_ms })
    }

    /// Whether the search reranks beside a generator, so that the caller holds no core.
    fn reranks_without_core(&self, request: &QnaRequest) -> bool {
        let reranks = request.search.mode == Mode::Accurate && self.reranker.is_some();
        reranks && request.ai_generation && self.writer.is_some()
    }

    /// Lets the generator answer. Returns its error if sentences may be extracted instead: it
    /// failed before its first token.
    fn generate(
        &self,
        writer: &Writer,
        access: &TenantAccess,
        request: &QnaRequest,
        grounds: &mut Grounds,
        delivery: Delivery,
        sink: AnswerSink<'_>,
    ) -> Result<Result<Draft, GenerateError>, EngineError> {
        let chunks = grounds.retrieved.chunks.as_slice();
        let sources = sources_only(&grounds.question, chunks);
        told(sink(AnswerEvent::Sources(grounds, &sources)))?;
        let embedder = self.comparing(access);
        let question = Question {
            text: &request.search.query,
            past: &grounds.past,
            user_name: &request.user_name,
            user_instructions: &request.user_instructions,
            sampling: request.sampling,
            tools: request.tools.as_ref(),
            embedder: &**embedder,
        };
        let mut has_told = false;
        let context = &access.context;
        let written = writer.write(&question, &sources, chunks, delivery, context, &mut |piece| {
            has_told = delivery == Delivery::Streamed;
            sink(AnswerEvent::Token(piece))
        });
        let error = match written {
            Ok(Written { text, unsupported, chunks_shown, usage, finish_reason, tool_calls }) => {
                let generation = Generation {
                    model: Some(writer.generator().model().to_owned()),
                    usage: Usage {
                        input_tokens: grounds.usage.input_tokens + usage.input_tokens,
                        output_tokens: grounds.usage.output_tokens + usage.output_tokens,
                    },
                    finish_reason,
                    tool_calls,
                    chunks_shown,
                    unsupported,
                    ..Generation::default()
                };
                let quotes = quotes::generated(&text, &sources, chunks);
                return Ok(Ok((text, sources, quotes, generation)));
            }
            Err(error) => error,
        };
        let must_call = request.tools.as_ref().is_some_and(Tools::must_be_called);
        // If results of tools are too long, the request must not be answered as if there were none.
        let is_too_long =
            request.tools.is_some() && matches!(error, GenerateError::QuestionTooLong { .. });
        let may_extract = self.settings.llm_fallback && !must_call && !is_too_long;
        if has_told || context.cancel().is_cancelled() || !may_extract {
            return Err(error.into());
        }
        Ok(Err(error))
    }

    /// Extracts an answer in place of one that the generator failed to write.
    fn fall_back(
        &self,
        access: &TenantAccess,
        request: &QnaRequest,
        grounds: &mut Grounds,
        error: GenerateError,
        sink: AnswerSink<'_>,
        turn: CoreTurn<'_>,
    ) -> Result<Draft, EngineError> {
        let access = access.restarted();
        let _core = told(turn(&access.context))?;
        let (text, sources, quotes, generation) = self.extract(&access, request, grounds)?;
        tell_text(sink, &text)?;
        let generation = Generation { is_fallback: true, error: Some(error), ..generation };
        Ok((text, sources, quotes, generation))
    }

    /// Answers without a generator: sentences of the chunks, or only sources if no answer is
    /// wanted. If no generator is configured, texts in other languages may answer; their chunks
    /// then become the grounds.
    fn extract(
        &self,
        access: &TenantAccess,
        request: &QnaRequest,
        grounds: &mut Grounds,
    ) -> Result<Draft, EngineError> {
        let (question, chunks) = (&grounds.question, &grounds.retrieved.chunks);
        if !request.ai_generation {
            let generation = Generation { is_fallback: true, ..Generation::default() };
            return Ok((String::new(), sources_only(question, chunks), Vec::new(), generation));
        }
        let order = match self.writer {
            Some(_) => SourceOrder::ByRelevance,
            None => SourceOrder::ByUse,
        };
        let mut around = self.around(access, chunks)?;
        let model = self.comparing(access);
        let judge = self.reranker.clone().filter(|_| request.search.mode == Mode::Accurate);
        let parts = grounds.parts.clone();
        let answerer = self.answerer.with_model(model).judged_by(judge).for_parts(parts);
        let mut answer = answerer.answer(&access.context, question, chunks, &around, order)?;
        if self.writer.is_none()
            && let Some(foreign) = self.foreign(access, request, grounds, (&answerer, &answer))?
        {
            (answer, around) = foreign;
        }
        let generation = Generation {
            model: Some(EXTRACTIVE.to_owned()),
            is_fallback: self.writer.is_none(),
            usage: grounds.usage,
            has_conflict: answer.has_conflict,
            language: answer.language.map(Language::code),
            ..Generation::default()
        };
        let quotes = quotes::extracted(&answer, &grounds.retrieved.chunks, &around);
        Ok((answer.text, answer.sources, quotes, generation))
    }

    /// The model that compares sentences for a tenant: the one that made its vectors or, if that is
    /// not loaded, the current one, which serves the purpose as well.
    fn comparing(&self, access: &TenantAccess) -> &Arc<dyn Embedder> {
        let snapshot = access.collection.snapshot();
        let model = self.models.of(&snapshot.manifest, access.tenant.embedding_model.as_deref());
        model.unwrap_or(self.models.current())
    }

    /// The chunks surrounding those that were found.
    fn around(
        &self,
        access: &TenantAccess,
        chunks: &[RetrievedChunk],
    ) -> Result<Vec<RetrievedChunk>, EngineError> {
        self.read(access, |snapshot| {
            self.query.around(&access.context, snapshot, &access.sub_tenant, chunks)
        })
    }

    /// The writer of generated answers, if a generator is configured.
    pub fn writer(&self) -> Option<&Writer> {
        self.writer.as_ref()
    }

    /// Completes a query from the conversation that precedes it, by the same rules as a question.
    ///
    /// # Errors
    /// Errors of the catalog; [`QueryError::Stopped`] if the request ends meanwhile.
    pub fn completed(
        &self,
        access: &TenantAccess,
        conversation: &Conversation,
        query: &str,
    ) -> Result<String, EngineError> {
        let past = self.past_turns(access, conversation)?;
        Ok(contextualise(query, &past, &access.context).map_err(QueryError::from)?)
    }

    /// Adds a turn to a session. A question without an answer adds no turn, but keeps the session
    /// alive.
    ///
    /// # Errors
    /// [`crate::ingest::IngestError::DiskFull`] for a turn; errors of the catalog.
    pub fn remember(
        &self,
        access: &TenantAccess,
        session: &SessionId,
        question: &str,
        answer: Option<&str>,
    ) -> Result<(), EngineError> {
        let (collection, sub_tenant) = (access.tenant.collection, &access.sub_tenant);
        let Some(answer) = answer else {
            return Ok(self.catalog.touch_session(collection, sub_tenant, session)?);
        };
        self.ingest.require_room_for_content()?;
        let (question, answer) = (question.to_owned(), answer.to_owned());
        Ok(self.catalog.append_turn(collection, sub_tenant, session, question, answer)?)
    }
}
