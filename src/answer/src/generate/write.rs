//! The steps of a generated answer: prompt, reply, citation marks, check of the citations.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::generate::condense::condense;
use crate::generate::marks::{MarkFilter, MarkedText};
use crate::generate::prompt::{Shown, show};
use crate::generate::queries::understand;
use crate::generate::support::{Doubt, doubts};
use crate::generate::{
    ANSWERING, GenerateError, Generator, Prompt, Said, Sampling, Tell, ToolCall, Tools, Understood,
    Usage, tokens,
};
use crate::sources::AnswerSource;
use lodestone_embed::Embedder;
use lodestone_types::{CancellationToken, IdSource, RequestContext, RetrievedChunk, Stopped};

/// Time during which a generator that could not be reached is not called again.
const RESPITE: Duration = Duration::from_secs(5);

/// A question to the generator, with its context.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The question as asked.
    pub text: &'a str,
    /// Past turns, oldest first, each a question and its answer.
    pub past: &'a [(String, String)],
    /// Name of the user; may be empty.
    pub user_name: &'a str,
    /// The user's wishes for the form of the answer; may be empty.
    pub user_instructions: &'a str,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Functions that the client offers, if any.
    pub tools: Option<&'a Tools>,
    /// The model whose vectors are used to check citations.
    pub embedder: &'a dyn Embedder,
}

/// Delivery of an answer to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Piece by piece while it is written: nothing can be withdrawn.
    Streamed,
    /// Complete, with unsupported marks removed.
    Whole,
}

/// A generated answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The text; each `[n]` names the n-th source.
    pub text: String,
    /// Citations that their sources do not support, as far as can be judged.
    pub unsupported: Vec<Unsupported>,
    /// Number of chunks shown to the generator, the most relevant ones.
    pub chunks_shown: usize,
    /// Token usage of the call; an estimate if the generator reports none.
    pub usage: Usage,
    /// The finish reason as the generator reports it.
    pub finish_reason: Option<String>,
    /// Calls of the client's functions; the text may be empty if there are any.
    pub tool_calls: Vec<ToolCall>,
}

/// A citation that its source does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The `n` of its mark, which [`Delivery::Whole`] removes unless nothing in the answer is
    /// supported.
    pub number: usize,
    /// The sentence, in Unicode characters of the answer's text.
    pub answer_chars: Range<usize>,
}

/// Writes answers with a generator. Each call occupies a thread and a connection; callers limit how
/// many run at once.
#[derive(Debug)]
pub struct Writer {
    generator: Arc<dyn Generator>,
    ids: Arc<dyn IdSource>,
    unreachable_since: Mutex<Option<Instant>>,
}

impl Writer {
    /// Creates a writer that uses `generator`.
    pub fn new(generator: Arc<dyn Generator>, ids: Arc<dyn IdSource>) -> Self {
        Self { generator, ids, unreachable_since: Mutex::default() }
    }

    /// The generator.
    pub fn generator(&self) -> &dyn Generator {
        &*self.generator
    }

    /// Interprets a question in the light of past turns, oldest first; splits it into parts only if
    /// it `may_split`. Makes at most one short call, and falls back to rules if that fails.
    ///
    /// # Errors
    /// [`Stopped`] if the request ends while the rules are applied.
    pub fn understand(
        &self,
        question: &str,
        past: &[(String, String)],
        may_split: bool,
        context: &RequestContext,
    ) -> Result<Understood, Stopped> {
        match self.require_reachable() {
            Ok(()) => {
                let (generator, ids) = (&*self.generator, &*self.ids);
                let understood = understand(generator, ids, question, past, may_split, context)?;
                self.note(understood.failure.as_ref());
                Ok(understood)
            }
            Err(_) => Understood::by_rule(question, past, context),
        }
    }

    /// Condenses a statement to sentences worth remembering, in one short call.
    ///
    /// # Errors
    /// Those of the generator.
    pub fn condense(
        &self,
        said: &Said<'_>,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, GenerateError> {
        self.require_reachable()?;
        let condensed = condense(&*self.generator, &*self.ids, said, cancel);
        self.note(condensed.as_ref().err());
        condensed
    }

    /// Writes an answer from `chunks`, given best first, whose sources are numbered as in
    /// `sources`. Passes each piece to `tell`; with [`Delivery::Streamed`] the pieces make up the
    /// text. Of `context`, generating observes only the cancellation, because the generator has
    /// time limits of its own; the check of the citations gets a fresh time limit.
    ///
    /// # Errors
    /// Those of the generator, possibly after `tell` has received some pieces.
    pub fn write(
        &self,
        question: &Question<'_>,
        sources: &[AnswerSource],
        chunks: &[RetrievedChunk],
        delivery: Delivery,
        context: &RequestContext,
        tell: Tell<'_>,
    ) -> Result<Written, GenerateError> {
        self.require_reachable()?;
        let window = self.generator.context_tokens();
        let shown = show(question, sources, chunks, window, &*self.ids)?;
        let Shown { messages, reply_tokens_max, numbers, .. } = &shown;
        let prompt = Prompt {
            messages: messages.clone(),
            reply_tokens_max: *reply_tokens_max,
            temperature: question.sampling.temperature.unwrap_or(0.0),
            effort: ANSWERING,
            tools: question.tools.cloned(),
        };
        let mut filter = MarkFilter::new(numbers.clone());
        let cancel = context.cancel();
        let ended =
            self.generator.generate(&prompt, cancel, &mut |piece| match filter.push(piece) {
                piece if piece.is_empty() => ControlFlow::Continue(()),
                piece => tell(&piece),
            });
        self.note(ended.as_ref().err());
        let ended = ended?;
        let (last, text, marked) = filter.finish();
        // Calls of functions that the client has not offered are ignored.
        let tool_calls = question.tools.map(|_| ended.tool_calls).unwrap_or_default();
        if text.is_empty() && tool_calls.is_empty() {
            return Err(GenerateError::Empty);
        }
        if !last.is_empty() && tell(&last).is_break() {
            return Err(GenerateError::Cancelled);
        }
        let usage = ended.usage.unwrap_or_else(|| {
            let written = tool_calls.iter().map(|call| call.arguments.as_str());
            tokens::usage(&prompt, &written.chain([text.as_str()]).collect::<Vec<_>>())
        });
        let checking = context.restarted();
        let doubts = doubts(question.embedder, &checking, &marked, sources, chunks, &shown.chunks);
        // If the check fails, the answer is returned unchecked.
        let doubts = doubts.unwrap_or_else(|error| {
            tracing::warn!(%error, "the citations of an answer were not checked");
            Vec::new()
        });
        let (text, unsupported) = settle(&marked, &doubts, delivery);
        let chunks_shown = shown.chunks.len();
        let finish_reason = ended.finish_reason;
        Ok(Written { text, unsupported, chunks_shown, usage, finish_reason, tool_calls })
    }

    /// Fails if the generator was just found unreachable.
    fn require_reachable(&self) -> Result<(), GenerateError> {
        match *self.unreachable_since.lock() {
            Some(since) if since.elapsed() < RESPITE => {
                let cause = "a moment ago it could not be".to_owned();
                Err(GenerateError::Unreachable { cause })
            }
            _ => Ok(()),
        }
    }

    fn note(&self, error: Option<&GenerateError>) {
        let is_away = matches!(error, Some(GenerateError::Unreachable { .. }));
        *self.unreachable_since.lock() = is_away.then(Instant::now);
    }
}

/// Returns the text to deliver, and the unsupported citations with their sentences in it.
fn settle(marked: &MarkedText, doubts: &[Doubt], delivery: Delivery) -> (String, Vec<Unsupported>) {
    let is_dropped = |doubt: &&Doubt| delivery == Delivery::Whole && !doubt.is_general;
    let dropped: BTreeSet<usize> =
        doubts.iter().filter(is_dropped).map(|doubt| doubt.mark).collect();
    let rendered = marked.render(&dropped);
    let unsupported = doubts.iter().map(|doubt| Unsupported {
        number: marked.marks[doubt.mark].number,
        answer_chars: rendered.chars_of(&doubt.sentence),
    });
    let unsupported = unsupported.collect();
    (rendered.text, unsupported)
}
