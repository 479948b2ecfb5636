//! Verdicts of the judge and the reader: models that score a question and a passage as a pair.

use super::Answerer;
use crate::error::AnswerError;
use crate::passages::candidates::{Candidate, Shape};
use crate::question::wish::Question;
use crate::relevance::evidence::Evidence;
use crate::relevance::score::Score;
use crate::selection::choose::Choice;
use crate::translation::{Language, Lexicon};
use lodestone_embed::EmbedError;
use lodestone_rank::Reranker;
use lodestone_types::{ErrorKind, RequestContext, RetrievedChunk};

/// The reader scores one in this many of the compared passages, the best by words and vectors, but
/// at least as many as given. Of 24, the first one is right for 0.606 of 1,387 questions if all are
/// read, and for 0.605 with eight.
const READ_SHARE: usize = 4;
const READ_MIN: usize = 8;
/// Minimum score by the judge; a passage below it surely does not answer. Cross-encoders put nearly
/// every pair at one of the two extremes, so a score below one in ten means no. Set by reasoning,
/// not by measurement.
const STANDS_MIN: f32 = 0.1;
/// Maximum number of characters of a title put before a passage, which shares the model's window.
const TITLE_CHARS_MAX: usize = 200;
/// The judge and the reader may each use one part in this many of the request's remaining time.
const VERDICTS_SHARE: u32 = 4;

/// Passages that the reader scored because no list was sure. Positions are among all candidates.
pub(super) struct Again {
    pub(super) scores: Vec<Score>,
    pub(super) compared: Vec<usize>,
    pub(super) vectors: Vec<Vec<f32>>,
}

impl Answerer {
    /// Whether the judge rejects every passage. If it fails, or runs out of time before it has
    /// scored all of them, nothing is refused.
    pub(super) fn is_refused(
        &self,
        context: &RequestContext,
        question: &str,
        passages: &[&Candidate],
        chunks: &[&RetrievedChunk],
    ) -> Result<bool, AnswerError> {
        let Some(judge) = self.judge.as_deref().filter(|_| !passages.is_empty()) else {
            return Ok(false);
        };
        let is_no = |score: &f32| lodestone_rank::settle(*score) < STANDS_MIN;
        let verdicts = verdicts(judge, context, question, &titled(passages, chunks, "\n"))?;
        Ok(verdicts.is_some_and(|verdicts| verdicts.iter().all(is_no)))
    }

    /// Returns the reader's verdicts on the best of the `compared` candidates, with their positions
    /// among all candidates. Empty for questions that the reader is not made for, and if it fails
    /// or runs out of time.
    pub(super) fn read(
        &self,
        context: &RequestContext,
        question: &Question,
        (candidates, chunks): (&[Candidate], &[&RetrievedChunk]),
        (compared, scores): (&[usize], &[Score]),
    ) -> Result<Vec<(usize, f32)>, AnswerError> {
        let mut best = compared.to_vec();
        best.sort_by(|a, b| scores[*b].relevance().total_cmp(&scores[*a].relevance()));
        best.truncate(READ_MIN.max(compared.len() / READ_SHARE));
        let reads = |at: &usize| question.wants_one_passage(candidates[*at].shape);
        match best.first().is_some_and(reads) {
            true => self.opinions(context, question, (candidates, chunks), best),
            false => Ok(Vec::new()),
        }
    }

    /// Lets the reader score the best single passages if no list or steps were confident enough and
    /// it has scored nothing yet. `None` if the reader does not favour the best of them.
    pub(super) fn read_again(
        &self,
        context: &RequestContext,
        choice: &Choice<'_>,
        chunks: &[&RetrievedChunk],
    ) -> Result<Option<Again>, AnswerError> {
        let (question, candidates) = (choice.question, &choice.reading.candidates[..]);
        let is_unread = choice.scores.iter().all(|score| score.verdict.is_none());
        if !is_unread || !question.may_be_told_by_one() {
            return Ok(None);
        }
        let is_unit = |at: &usize| matches!(candidates[*at].shape, Shape::Unit(_));
        let mut best: Vec<usize> = choice.compared.iter().copied().filter(is_unit).collect();
        best.sort_by(|a, b| choice.relevance(*b).total_cmp(&choice.relevance(*a)));
        best.truncate(READ_MIN.max(choice.compared.len() / READ_SHARE));
        let mut scores = choice.scores.to_vec();
        for (at, verdict) in self.opinions(context, question, (candidates, chunks), best)? {
            scores[at].verdict = Some(verdict);
        }
        let read = choice.compared.iter().zip(choice.vectors);
        let read = read.filter(|(at, _)| scores[**at].verdict.is_some());
        let (compared, vectors) = read.map(|(at, vector)| (*at, vector.clone())).unzip();
        let again = Again { scores, compared, vectors };
        let Again { scores, compared, vectors } = &again;
        let first = Choice { scores, compared, vectors, ..*choice }.first();
        Ok(first.is_some_and(|first| scores[first].opinion() > 0.0).then_some(again))
    }

    /// Returns the reader's verdicts on the candidates `best`; empty as for [`Self::read`].
    fn opinions(
        &self,
        context: &RequestContext,
        question: &Question,
        (candidates, chunks): (&[Candidate], &[&RetrievedChunk]),
        best: Vec<usize>,
    ) -> Result<Vec<(usize, f32)>, AnswerError> {
        let Some(reader) = self.reader.as_deref() else { return Ok(Vec::new()) };
        let first = best.first().map(|at| &*chunks[candidates[*at].hit].text);
        if !first.is_some_and(|first| are_english(&question.text, first)) {
            return Ok(Vec::new());
        }
        let passages: Vec<&Candidate> = best.iter().map(|at| &candidates[*at]).collect();
        let texts = titled(&passages, chunks, ": ");
        let verdicts = verdicts(reader, context, &question.text, &texts)?;
        Ok(best.into_iter().zip(verdicts.into_iter().flatten()).collect())
    }
}

/// The passages, each preceded by the title of its source, as the models take them.
fn titled(passages: &[&Candidate], chunks: &[&RetrievedChunk], between: &str) -> Vec<String> {
    let text = |passage: &&Candidate| match chunks[passage.hit].source.title.as_str() {
        "" => passage.compared.clone(),
        title => {
            let end = title.char_indices().nth(TITLE_CHARS_MAX).map_or(title.len(), |(at, _)| at);
            format!("{}{between}{}", &title[..end], passage.compared)
        }
    };
    passages.iter().map(text).collect()
}

/// Returns a model's scores of all passages; `None` if it fails or runs out of time.
fn verdicts(
    model: &dyn Reranker,
    context: &RequestContext,
    question: &str,
    passages: &[String],
) -> Result<Option<Vec<f32>>, AnswerError> {
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    match model.score(context, context.part_of_rest(VERDICTS_SHARE), question, &passages) {
        Ok(read) => Ok((read.scores.len() == passages.len()).then_some(read.scores)),
        Err(error) => {
            context.check().map_err(EmbedError::from)?;
            // At debug level, so that one tenant with many questions cannot flood the log.
            match error.kind() {
                ErrorKind::Overloaded => tracing::debug!(%error, "an answer is made without \
                    verdicts"),
                _ => {
                    tracing::warn!(%error, model = model.name(), "an answer is made without \
                        verdicts")
                }
            }
            Ok(None)
        }
    }
}

/// Whether the question and the text of its best passage are in English, the reader's language.
/// The language of a short question may be unrecognisable; then that of the text decides.
fn are_english(question: &str, text: &str) -> bool {
    let told = [question, text].map(|one| Lexicon::get().language_of(one));
    let other = |language: &Option<Language>| language.is_some_and(|it| it != Language::English);
    Evidence::is_of_latin(question) && !told.iter().any(other) && told.iter().any(Option::is_some)
}
