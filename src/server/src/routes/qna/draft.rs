//! An answer before it is sent: by a generator, or of sentences of the chunks (API 5.11).

use std::ops::ControlFlow;

use crate::dto::answers::{GenerationMetadata, UnsupportedCitation};
use crate::error::ApiError;
use crate::routes::qna::{Asked, EXTRACTIVE, Found};
use lodestone_engine::answer::generate::{Delivery, Question, Tell, Writer, Written};
use lodestone_engine::answer::{AnswerSource, SourceOrder, sources_only};
use lodestone_engine::{EngineError, Grounds};

/// An answer, however it was written.
pub(super) struct Draft {
    pub(super) answer: String,
    pub(super) sources: Vec<AnswerSource>,
    pub(super) generation: GenerationMetadata,
    /// Whether a generator should have written it.
    pub(super) is_degraded: bool,
}

impl Asked {
    /// The answer at once.
    pub(super) fn draft(&self, found: &Found) -> Result<Draft, ApiError> {
        let Some(writer) = self.writer(found) else { return self.extract(found) };
        let sources = sources_only(&found.grounds.question, &found.grounds.retrieved.chunks);
        let mut ignore = |_: &str| ControlFlow::Continue(());
        match self.write(writer, found, &sources, Delivery::Whole, &mut ignore) {
            Ok(written) => Ok(drafted(writer, &found.grounds, sources, written)),
            Err(error) => self.fall_back(found, error),
        }
    }

    pub(super) fn write(
        &self,
        writer: &Writer,
        found: &Found,
        sources: &[AnswerSource],
        delivery: Delivery,
        tell: Tell<'_>,
    ) -> Result<Written, EngineError> {
        let question = Question {
            text: &self.input.question,
            past: &found.grounds.past,
            user_name: &self.input.user_name,
            user_instructions: &self.input.user_instructions,
        };
        let grounded = (sources, found.grounds.retrieved.chunks.as_slice());
        self.app.engine.write_answer(writer, &question, grounded, delivery, &self.cancel, tell)
    }

    /// The answer without a generator: sentences of the chunks, or none where none is wanted.
    pub(super) fn extract(&self, found: &Found) -> Result<Draft, ApiError> {
        let (question, chunks) = (&found.grounds.question, &found.grounds.retrieved.chunks);
        if !self.input.ai_generation {
            let (answer, sources) = (String::new(), sources_only(question, chunks));
            let generation = GenerationMetadata { fallback: true, ..Default::default() };
            return Ok(Draft { answer, sources, generation, is_degraded: false });
        }
        let has_generator = self.app.engine.writer().is_some();
        let order = match has_generator {
            true => SourceOrder::ByRelevance,
            false => SourceOrder::ByUse,
        };
        let answer = self.app.engine.answer(question, chunks, order)?;
        let model = Some(EXTRACTIVE.to_owned());
        let fallback = !has_generator;
        let generation = GenerationMetadata { model, fallback, ..understanding(&found.grounds) };
        let (answer, sources) = (answer.text, answer.sources);
        Ok(Draft { answer, sources, generation, is_degraded: false })
    }

    /// The answer where the generator has failed before it said anything.
    pub(super) fn fall_back(&self, found: &Found, error: EngineError) -> Result<Draft, ApiError> {
        let EngineError::Generate(why) = &error else { return Err(error.into()) };
        if self.cancel.is_cancelled() {
            return Err(error.into());
        }
        tracing::warn!(error = %why, request_id = %self.call.request_id, "no generated answer");
        if !self.app.engine.settings().llm_fallback {
            return Err(error.into());
        }
        let mut draft = self.extract(found)?;
        draft.generation.fallback = true;
        draft.generation.fallback_reason = Some(why.reason().to_owned());
        Ok(Draft { is_degraded: true, ..draft })
    }
}

/// What the generator has written, with all that belongs to it.
pub(super) fn drafted(
    writer: &Writer,
    grounds: &Grounds,
    sources: Vec<AnswerSource>,
    written: Written,
) -> Draft {
    let Written { text, unsupported, chunks_shown, usage, finish_reason } = written;
    let unsupported = unsupported.into_iter().map(|citation| UnsupportedCitation {
        number: citation.number,
        start: citation.answer_chars.start,
        end: citation.answer_chars.end,
    });
    let understanding = understanding(grounds);
    let generation = GenerationMetadata {
        model: Some(writer.generator().model().to_owned()),
        input_tokens: understanding.input_tokens + usage.input_tokens,
        output_tokens: understanding.output_tokens + usage.output_tokens,
        finish_reason,
        chunks_shown,
        unsupported: unsupported.collect(),
        ..understanding
    };
    Draft { answer: text, sources, generation, is_degraded: false }
}

/// What the generator did before the search.
fn understanding(grounds: &Grounds) -> GenerationMetadata {
    GenerationMetadata {
        queries: grounds.queries.clone(),
        input_tokens: grounds.usage.input_tokens,
        output_tokens: grounds.usage.output_tokens,
        ..Default::default()
    }
}
