//! Answers made of sentences that stand in the chunks.

use std::sync::Arc;

use crate::answer::AnswerError;
use crate::answer::candidates::{Candidate, candidates};
use crate::answer::compose::{Answer, SourceOrder, compose};
use crate::answer::score::{Evidence, Score, dot, scores};
use crate::answer::vectors::{PassageVectors, key_of};
use lodestone_embed::{Embedder, Lane};
use lodestone_types::{RequestContext, RetrievedChunk};

/// The text of an answer when nothing in the chunks answers.
pub const ABSTENTION: &str = "Nothing in the indexed content answers this question.";

/// Sentences of an answer at most.
const SENTENCES_MAX: usize = 5;
/// A further sentence is this much less relevant than the first at most; one that leads by more
/// answers alone.
const RELEVANCE_DROP_MAX: f32 = 0.4;
/// Confidence that a further sentence needs; the first one needs 1.
const FURTHER_CONFIDENCE_MIN: f32 = 0.9;
/// Loss of relevance of a sentence that is like one chosen already.
const SAMENESS_WEIGHT: f32 = 0.2;

/// Makes extractive answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Answerer {
    embedder: Arc<dyn Embedder>,
    known: Arc<PassageVectors>,
}

impl Answerer {
    /// An answerer that compares by the vectors of a model.
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, known: Arc::default() }
    }

    /// Answers from the chunks, which are given best first; [`ABSTENTION`] when nothing in them
    /// does. Blocking: one call of the model for the question and the passages that it has not read
    /// for the tenant lately.
    ///
    /// # Errors
    /// [`AnswerError::Embed`] when the model gives no vectors, or the request is over.
    pub fn answer(
        &self,
        context: &RequestContext,
        question: &str,
        chunks: &[RetrievedChunk],
        order: SourceOrder,
    ) -> Result<Answer, AnswerError> {
        let candidates = candidates(chunks);
        if candidates.is_empty() {
            return Ok(compose(question, chunks, &[], order));
        }
        let (question_vector, vectors) = self.vectors(context, question, &candidates, chunks)?;
        let scores = scores(question, &question_vector, &candidates, &vectors, chunks);
        let chosen = choose(&candidates, &scores, &vectors, &Evidence::needed_for(question));
        let chosen: Vec<&Candidate> = chosen.into_iter().map(|at| &candidates[at]).collect();
        Ok(compose(question, chunks, &chosen, order))
    }

    /// The vectors of the question and of the candidates.
    fn vectors(
        &self,
        context: &RequestContext,
        question: &str,
        candidates: &[Candidate],
        chunks: &[RetrievedChunk],
    ) -> Result<(Vec<f32>, Vec<Vec<f32>>), AnswerError> {
        let tenant = context.tenant();
        let keys: Vec<_> =
            candidates.iter().map(|candidate| key_of(tenant, candidate, chunks)).collect();
        let mut vectors: Vec<_> = keys.iter().map(|key| self.known.get(*key)).collect();
        let mut texts = vec![question.to_owned()];
        for (candidate, vector) in candidates.iter().zip(&vectors) {
            if vector.is_none() {
                texts.push(candidate.compared.clone());
            }
        }
        let mut embedded = self.embedder.embed_within(Lane::Answer, context, texts)?.into_iter();
        let mut next = || embedded.next().expect("a vector for each text");
        let question_vector = next();
        for (key, vector) in keys.into_iter().zip(&mut vectors) {
            if vector.is_none() {
                let new = vector.insert(next());
                self.known.keep(key, new);
            }
        }
        Ok((question_vector, vectors.into_iter().flatten().collect()))
    }
}

/// Chooses the candidates that make the answer, best first; none where none is good enough.
///
/// After the first, each next one is the most relevant that is least like those before it
/// (maximal marginal relevance; Carbonell and Goldstein 1998).
fn choose(
    candidates: &[Candidate],
    scores: &[Score],
    vectors: &[Vec<f32>],
    evidence: &Evidence,
) -> Vec<usize> {
    let best_of = |value: &dyn Fn(usize) -> Option<f32>| {
        // The first of equals, so that the order of the chunks decides.
        let values = (0..scores.len()).filter_map(|at| value(at).map(|value| (at, value)));
        values.fold(None, |best: Option<(usize, f32)>, (at, value)| match best {
            Some((_, top)) if top.total_cmp(&value).is_ge() => best,
            _ => Some((at, value)),
        })
    };
    let Some((first, relevance)) = best_of(&|at| Some(scores[at].relevance())) else {
        return Vec::new();
    };
    if scores[first].confidence(evidence) < 1.0 {
        return Vec::new();
    }
    let mut chosen = vec![first];
    while chosen.len() < SENTENCES_MAX {
        let next = best_of(&|at| {
            let is_near = scores[at].relevance() >= relevance - RELEVANCE_DROP_MAX;
            let is_said = |other: &usize| candidates[*other].repeats(&candidates[at]);
            let is_enough = scores[at].confidence(evidence) >= FURTHER_CONFIDENCE_MIN;
            // A row that holds less of what was asked than another of its table is of something
            // else.
            let is_beside = |other: &usize| {
                candidates[*other].shares_header(&candidates[at])
                    && scores[*other].overlap > scores[at].overlap
            };
            let is_ruled_out = |other: &usize| is_said(other) || is_beside(other);
            if !is_near || !is_enough || chosen.iter().any(is_ruled_out) {
                return None;
            }
            let likeness = chosen.iter().map(|other| dot(&vectors[*other], &vectors[at]));
            let likeness = likeness.fold(0.0_f32, f32::max);
            Some(scores[at].relevance() - SAMENESS_WEIGHT * likeness)
        });
        let Some((at, _)) = next else { break };
        chosen.push(at);
    }
    chosen
}
