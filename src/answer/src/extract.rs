//! Answers made of passages that stand in the chunks.

use std::sync::Arc;

use crate::compose::{Answer, SourceOrder, compose};
use crate::error::AnswerError;
use crate::passages::candidates::{Candidate, Part, Reading, read};
use crate::passages::document::{HITS_MAX, HITS_OF_ROWS_MAX};
use crate::question::wish::Question;
use crate::relevance::evidence::Evidence;
use crate::relevance::score::{Score, by_words, dot};
use crate::selection::choose::Choice;
use crate::selection::foreign::{Glossary, Strength, as_written};
use crate::selection::kinds::asks_for_rows;
use crate::translation::{Gloss, Language, Lexicon};
use crate::versions::editions::Editions;
use lodestone_embed::{EmbedError, Embedder, Lane, OwnedText, RecentVectors, Role};
use lodestone_rank::Reranker;
use lodestone_types::{Clock, ErrorKind, RequestContext, RetrievedChunk, SystemClock};

/// Passages that are compared with the question by the model: those that are best by their words
/// and their chunk. Bounds the work of the model for one answer, at some 30 tokens each.
const EMBEDDED_MAX: usize = 24;
/// Passages of them that the reader reads, the best by words and vectors. With all of them the
/// first passage is right for .606 of 1,387 questions, with eight for .605.
const READ_MAX: usize = 8;
/// The judge's verdict below which a passage surely does not answer. Cross-encoders put nearly all
/// pairs at one of the two ends: what is less than one in ten is a no. Chosen by reason, not by
/// measurement.
const STANDS_MIN: f32 = 0.1;
/// Characters of a title that a model gets before a passage, which shares its window.
const TITLE_CHARS_MAX: usize = 200;
/// Share of the time that a question has left, that the judge may take of it, and the reader.
const VERDICTS_SHARE: u32 = 4;

/// The passages of an answer, and the strength of the best one.
#[derive(Debug, Default)]
struct Chosen {
    parts: Vec<Part>,
    /// The text about its rows together.
    told: Option<String>,
    strength: Strength,
}

/// Makes extractive answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Answerer {
    model: Arc<dyn Embedder>,
    recent: Arc<RecentVectors>,
    clock: Arc<dyn Clock>,
    judge: Option<Arc<dyn Reranker>>,
    reader: Option<Arc<dyn Reranker>>,
}

impl Answerer {
    /// An answerer that compares by the vectors of a model. Which editions of documents hold is
    /// judged by the machine's clock.
    pub fn new(model: Arc<dyn Embedder>) -> Self {
        let recent = Arc::default();
        Self { model, recent, clock: Arc::new(SystemClock), judge: None, reader: None }
    }

    /// Shares its cache of recent vectors with others.
    pub fn sharing(self, recent: Arc<RecentVectors>) -> Self {
        Self { recent, ..self }
    }

    /// A copy that compares by the vectors of another model.
    #[must_use]
    pub fn with_model(&self, model: &Arc<dyn Embedder>) -> Self {
        Self { model: Arc::clone(model), ..self.clone() }
    }

    /// Sets the clock.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets a reranker, if there is one, that reads the question with each passage of an answer: an
    /// answer is declined where it takes none of its passages for one.
    pub fn judged_by(self, judge: Option<Arc<dyn Reranker>>) -> Self {
        Self { judge, ..self }
    }

    /// Sets a reader, if there is one, whose verdicts on the passages that are compared count
    /// beside their words.
    pub fn read_by(self, reader: Option<Arc<dyn Reranker>>) -> Self {
        Self { reader, ..self }
    }

    /// Its reader, if it has one.
    pub fn reader(&self) -> Option<&dyn Reranker> {
        self.reader.as_deref()
    }

    /// Answers from the chunks that were found, which are given best first, and from those of the
    /// same sources that stand `around` them; [`crate::ABSTENTION`] when nothing in them does.
    /// Blocking: one call of the model for the question and the passages that it has not read for
    /// the tenant lately.
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
        let opened =
            if asks_for_rows(&Question::new(question)) { HITS_OF_ROWS_MAX } else { HITS_MAX };
        let read_hits = (hits, opened);
        let mut reading = read(context, &chunks, read_hits, |chunk| editions.holds(chunk))
            .map_err(EmbedError::from)?;
        without_changed(&mut reading, &editions);
        let mut chosen = self.chosen(context, question, &chunks, &reading, &editions)?;
        if chosen.parts.is_empty() && (0..chunks.len()).any(is_doubtful) {
            reading = read(context, &chunks, read_hits, is_doubtful).map_err(EmbedError::from)?;
            chosen = self.chosen(context, question, &chunks, &reading, &editions)?;
        }
        let parts: Vec<&Part> = chosen.parts.iter().collect();
        let mut answer = compose(question, &chunks, hits, (&parts, chosen.told.as_deref()), order);
        answer.has_conflict = editions.are_mixed(parts.iter().map(|part| part.chunk));
        answer.strength = chosen.strength;
        Ok(answer)
    }

    /// As [`Self::answer`], from chunks in other languages, which `gloss` tells in words of the
    /// question's; an abstention unless they say clearly more of it than an answer needs.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_foreign(
        &self,
        context: &RequestContext,
        gloss: &Gloss,
        chunks: &[RetrievedChunk],
        around: &[RetrievedChunk],
    ) -> Result<Answer, AnswerError> {
        let (hits, chunks): (usize, Vec<&RetrievedChunk>) =
            (chunks.len(), chunks.iter().chain(around).collect());
        let question = gloss.question();
        let editions = Editions::read(question, &chunks, self.clock.now());
        let read_hits = (hits, HITS_MAX);
        let mut reading = read(context, &chunks, read_hits, |chunk| editions.holds(chunk))
            .map_err(EmbedError::from)?;
        without_changed(&mut reading, &editions);
        let candidates = reading.candidates.iter();
        let written: Vec<Part> = candidates.flat_map(|one| one.parts.iter().cloned()).collect();
        let glossary = Glossary::new(gloss, &chunks);
        let reading = glossary.reading(reading);
        let glossed = glossary.chunks(&chunks);
        let glossed: Vec<&RetrievedChunk> = glossed.iter().collect();
        // The reader knows sentences, and glosses are words one after the other.
        let without_reader = Self { reader: None, ..self.clone() };
        let mut chosen = without_reader.chosen(context, question, &glossed, &reading, &editions)?;
        let lacks_name = gloss.names().map(str::to_lowercase).any(|name| {
            let is_in = |part: &Part| {
                let RetrievedChunk { source, text, .. } = glossed[part.chunk];
                [&source.title, text].iter().any(|text| text.to_lowercase().contains(&name))
            };
            !chosen.parts.iter().any(is_in)
        });
        if !chosen.strength.is_enough_of_foreign(lacks_name) {
            chosen.parts.clear();
        }
        let parts = as_written(&chosen.parts, &written);
        let parts: Vec<&Part> = parts.iter().collect();
        let mut answer =
            compose(question, &chunks, hits, (&parts, chosen.told.as_deref()), SourceOrder::ByUse);
        answer.has_conflict = editions.are_mixed(parts.iter().map(|part| part.chunk));
        answer.language = parts.first().map(|part| glossary.language_of(part.chunk));
        answer.strength = chosen.strength;
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
    ) -> Result<Chosen, AnswerError> {
        if reading.candidates.is_empty() {
            return Ok(Chosen::default());
        }
        let asked = Question::new(question);
        let (mut scores, matches) = by_words(&asked, &reading.candidates, chunks, editions);
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
        let passages = (&reading.candidates[..], chunks);
        for (at, verdict) in self.read(context, &asked, passages, (&embedded, &scores))? {
            scores[at].verdict = Some(verdict);
        }
        let choice = Choice {
            question: &asked,
            reading,
            editions,
            scores: &scores,
            matches: &matches,
            compared: &embedded,
            vectors: &vectors,
            evidence: Evidence::needed_for(&asked),
        };
        let strength = |at: usize| Strength::of(&choice, at);
        let first = choice.first();
        let strength = first.map(strength).unwrap_or_default();
        let chosen = choice.chosen();
        let told = choice.told_together(&chosen);
        let chosen: Vec<&Candidate> = chosen.iter().map(|at| &reading.candidates[*at]).collect();
        if self.is_refused(context, question, &chosen, chunks)? {
            return Ok(Chosen { strength, ..Chosen::default() });
        }
        let parts = chosen.into_iter().flat_map(|candidate| candidate.parts.clone());
        Ok(Chosen { parts: parts.collect(), told, strength })
    }

    /// Whether the judge is sure of every passage that it does not answer. Where it fails or has no
    /// time for all of them it refuses nothing.
    fn is_refused(
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

    /// The verdicts of the reader on the best of the `compared` candidates, by their position among
    /// all; none for questions that it does not read, and where it fails or has no time for all.
    fn read(
        &self,
        context: &RequestContext,
        question: &Question,
        (candidates, chunks): (&[Candidate], &[&RetrievedChunk]),
        (compared, scores): (&[usize], &[Score]),
    ) -> Result<Vec<(usize, f32)>, AnswerError> {
        let Some(reader) = self.reader.as_deref() else { return Ok(Vec::new()) };
        let mut best = compared.to_vec();
        best.sort_by(|a, b| scores[*b].relevance().total_cmp(&scores[*a].relevance()));
        best.truncate(READ_MAX);
        let reads = |at: &usize| question.wants_one_passage(candidates[*at].shape);
        if !best.first().is_some_and(reads) {
            return Ok(Vec::new());
        }
        let first = best.first().map(|at| &*chunks[candidates[*at].hit].text);
        if !first.is_some_and(|first| are_english(&question.text, first)) {
            return Ok(Vec::new());
        }
        let passages: Vec<&Candidate> = best.iter().map(|at| &candidates[*at]).collect();
        let texts = titled(&passages, chunks, ": ");
        let verdicts = verdicts(reader, context, &question.text, &texts)?;
        Ok(best.into_iter().zip(verdicts.into_iter().flatten()).collect())
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
        let mut vectors = self.recent.embed(&*self.model, Lane::Answer, context, &texts)?;
        let question_vector = vectors.remove(0);
        Ok((question_vector, vectors))
    }
}

/// Passages behind the titles of their sources, as models that read pairs get them.
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

/// The verdicts of a model on all passages; `None` where it has no time for all of them, or fails.
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
            // One tenant with many questions must not fill the log.
            match error.kind() {
                ErrorKind::Overloaded => tracing::debug!(%error, "an answer goes without verdicts"),
                _ => {
                    tracing::warn!(%error, model = model.name(), "an answer goes without verdicts")
                }
            }
            Ok(None)
        }
    }
}

/// Whether a question and the text that its best passage is of are in the language that the reader
/// reads. A short question need not tell its own; the text does then.
fn are_english(question: &str, text: &str) -> bool {
    let told = [question, text].map(|one| Lexicon::get().language_of(one));
    let other = |language: &Option<Language>| language.is_some_and(|it| it != Language::English);
    Evidence::is_of_latin(question) && !told.iter().any(other) && told.iter().any(Option::is_some)
}

/// Drops the passages that a later document in force has changed.
fn without_changed(reading: &mut Reading, editions: &Editions) {
    let Reading { candidates, blocks, .. } = reading;
    candidates.retain(|one| {
        let headings = &blocks[one.stretch].sections[one.section];
        !editions.is_changed(one.hit, headings, &one.parts[0].shown)
    });
}
