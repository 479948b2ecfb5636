//! Answers made of passages that stand in the chunks.

use std::sync::Arc;

use crate::answer::AnswerError;
use crate::answer::candidates::{Candidate, Part, Reading, read};
use crate::answer::choose::Choice;
use crate::answer::compose::{Answer, SourceOrder, compose};
use crate::answer::editions::Editions;
use crate::answer::evidence::Evidence;
use crate::answer::question::Question;
use crate::answer::score::{by_words, dot};
use crate::models::{Models, OwnedText};
use lodestone_embed::{Embedder, Lane, Role};
use lodestone_types::{Clock, RequestContext, RetrievedChunk, SystemClock};

/// The text of an answer when nothing in the chunks answers.
pub const ABSTENTION: &str = "Nothing in the indexed content answers this question.";

/// Passages that are compared with the question by the model: those that are best by their words
/// and their chunk. Bounds the work of the model for one answer, at some 30 tokens each.
const EMBEDDED_MAX: usize = 24;

/// Makes extractive answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Answerer {
    models: Models,
    clock: Arc<dyn Clock>,
}

impl Answerer {
    /// An answerer that compares by the vectors of the current model. Which editions of documents
    /// hold is judged by the machine's clock.
    pub fn new(models: impl Into<Models>) -> Self {
        Self { models: models.into(), clock: Arc::new(SystemClock) }
    }

    /// The same by the vectors of another model.
    #[must_use]
    pub fn with_model(&self, model: &Arc<dyn Embedder>) -> Self {
        Self { models: self.models.led_by(model), clock: Arc::clone(&self.clock) }
    }

    /// The same by another clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Answers from the chunks that were found, which are given best first, and from those of the
    /// same sources that stand `around` them; [`ABSTENTION`] when nothing in them does. Blocking:
    /// one call of the model for the question and the passages that it has not read for the tenant
    /// lately.
    ///
    /// # Errors
    /// [`AnswerError::Embed`] when the model gives no vectors, or the request is over.
    pub fn answer(
        &self,
        context: &RequestContext,
        question: &str,
        chunks: &[RetrievedChunk],
        around: &[RetrievedChunk],
        order: SourceOrder,
    ) -> Result<Answer, AnswerError> {
        let (hits, chunks): (usize, Vec<&RetrievedChunk>) =
            (chunks.len(), chunks.iter().chain(around).collect());
        let editions = Editions::read(question, &chunks, self.clock.now());
        let is_doubtful = |chunk| editions.is_doubtful(chunk);
        let mut reading = read(&chunks, hits, |chunk| editions.holds(chunk));
        let mut chosen = self.chosen(context, question, &chunks, &reading, &editions)?;
        if chosen.is_empty() && (0..chunks.len()).any(is_doubtful) {
            reading = read(&chunks, hits, is_doubtful);
            chosen = self.chosen(context, question, &chunks, &reading, &editions)?;
        }
        let chosen: Vec<&Part> = chosen.iter().collect();
        let mut answer = compose(question, &chunks, hits, &chosen, order);
        answer.has_conflict = editions.are_mixed(chosen.iter().map(|part| part.chunk));
        Ok(answer)
    }

    /// The passages of an answer out of what was read, in its order; none where nothing answers.
    fn chosen(
        &self,
        context: &RequestContext,
        question: &str,
        chunks: &[&RetrievedChunk],
        reading: &Reading,
        editions: &Editions,
    ) -> Result<Vec<Part>, AnswerError> {
        if reading.candidates.is_empty() {
            return Ok(Vec::new());
        }
        let asked = Question::new(question);
        let (mut scores, matches) = by_words(&asked, &reading.candidates, chunks);
        let is_wanted = |at: &usize| asked.wants(reading.candidates[*at].shape);
        let mut embedded: Vec<usize> = (0..scores.len()).filter(is_wanted).collect();
        // Stable: of equal ones the first, so that the order of the chunks decides.
        embedded.sort_by(|a, b| scores[*b].first().total_cmp(&scores[*a].first()));
        embedded.truncate(EMBEDDED_MAX);
        embedded.sort_unstable();
        let best: Vec<&Candidate> = embedded.iter().map(|at| &reading.candidates[*at]).collect();
        let (question_vector, vectors) = self.vectors(context, question, &best, chunks)?;
        for (at, vector) in embedded.iter().zip(&vectors) {
            let candidate = &reading.candidates[*at];
            scores[*at].compare(
                dot(&question_vector, vector),
                candidate.has_values() && asked.wants_values(),
            );
        }
        let choice = Choice {
            question: &asked,
            reading,
            editions,
            scores: &scores,
            matches: &matches,
            compared: &embedded,
            vectors: &vectors,
            evidence: Evidence::needed_for(question),
        };
        Ok(choice.parts())
    }

    /// The vectors of the question and of the candidates.
    fn vectors(
        &self,
        context: &RequestContext,
        question: &str,
        candidates: &[&Candidate],
        chunks: &[&RetrievedChunk],
    ) -> Result<(Vec<f32>, Vec<Vec<f32>>), AnswerError> {
        let sub_tenant = |chunk: usize| chunks[chunk].source.sub_tenant.as_str();
        let asked = OwnedText { sub_tenant: sub_tenant(0), role: Role::Query, text: question };
        let mut texts = vec![asked];
        texts.extend(candidates.iter().map(|candidate| OwnedText {
            sub_tenant: sub_tenant(candidate.hit),
            role: Role::Document,
            text: &candidate.compared,
        }));
        let mut vectors =
            self.models.recent().embed(&**self.models.current(), Lane::Answer, context, &texts)?;
        let question_vector = vectors.remove(0);
        Ok((question_vector, vectors))
    }
}
