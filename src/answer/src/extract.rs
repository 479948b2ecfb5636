//! Extractive answers: passages quoted from the retrieved chunks.

mod verdicts;
mod withdrawn;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compose::{Answer, SourceOrder, compose};
use crate::error::AnswerError;
use crate::extract::verdicts::Again;
use crate::passages::candidates::{Candidate, Part, Reading, read};
use crate::passages::document::{HITS_MAX, HITS_OF_ROWS_MAX};
use crate::question::openers::asks_nothing;
use crate::question::wish::{Question, Wanted};
use crate::relevance::evidence::Evidence;
use crate::relevance::score::{by_words, dot};
use crate::selection::choose::Choice;
use crate::selection::foreign::{Glossary, Strength, as_written};
use crate::selection::kinds::asks_for_rows;
use crate::translation::Gloss;
use crate::versions::amendments::section_told;
use crate::versions::editions::Editions;
use lodestone_embed::{EmbedError, Embedder, Lane, OwnedText, RecentVectors, Role};
use lodestone_rank::Reranker;
use lodestone_types::{Clock, RequestContext, RetrievedChunk, SystemClock};

/// Maximum number of passages that the embedding model compares with the question: those ranked
/// best by their words and their chunk. Bounds the model's work per answer, at about 30 tokens
/// each.
const EMBEDDED_MAX: usize = 24;
/// Maximum number for a question in other words than the documents, which the match of words hardly
/// ranks: no passage holds this share of its terms. Nine in ten questions in everyday words are
/// below the share, and one in ten others; of the former, 0.41 have the right passage among these
/// many, and 0.32 among the number above.
const EMBEDDED_OF_OTHER_WORDS_MAX: usize = 48;
const OTHER_WORDS_SHARE: f32 = 0.35;

/// Maximum number of passages added for one of several questions, unless it asks for a list.
const FURTHER_MAX: usize = 2;

/// The passages of an answer, and the strength of the best candidate.
#[derive(Debug, Default)]
struct Chosen {
    parts: Vec<Part>,
    /// A text about the chosen rows as a whole, such as their total.
    told: Option<String>,
    strength: Strength,
}

impl Chosen {
    /// Puts the passages that answer the parts of a question, in their order, before those for the
    /// whole; after them if a text tells of the latter together. If nothing answers the whole, at
    /// least two parts must have an answer.
    fn join(&mut self, answered: Vec<(&String, Self)>) {
        let is_declined = self.parts.is_empty();
        if answered.is_empty() || (is_declined && answered.len() < 2) {
            return;
        }
        if is_declined {
            self.strength = answered[0].1.strength;
        }
        let mut parts: Vec<Part> = Vec::new();
        for (part, of_part) in answered {
            let is_all = matches!(Question::new(part).wanted, Wanted::Steps | Wanted::List);
            let most = if is_all { usize::MAX } else { FURTHER_MAX };
            let of_part = of_part.parts.into_iter().take(most).collect();
            parts = joined(parts, of_part);
        }
        let whole = std::mem::take(&mut self.parts);
        self.parts = if self.told.is_some() { joined(whole, parts) } else { joined(parts, whole) };
    }
}

/// The passages of both, each once: of two with text in common, the longer one at the place of the
/// first.
fn joined(first: Vec<Part>, further: Vec<Part>) -> Vec<Part> {
    let mut all = first;
    let count = all.len();
    for part in further {
        match all[..count].iter().position(|known| known.repeats(&part)) {
            Some(at) if part.shown.len() > all[at].shown.len() => all[at] = part,
            Some(_) => {}
            None => all.push(part),
        }
    }
    all
}

/// Composes extractive answers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Answerer {
    model: Arc<dyn Embedder>,
    recent: Arc<RecentVectors>,
    clock: Arc<dyn Clock>,
    judge: Option<Arc<dyn Reranker>>,
    reader: Option<Arc<dyn Reranker>>,
    /// The questions that the question to answer consists of, if there are several.
    parts: Arc<[String]>,
}

impl Answerer {
    /// Creates an answerer that compares texts by the vectors of `model`. The system clock decides
    /// which editions of a document are in force.
    pub fn new(model: Arc<dyn Embedder>) -> Self {
        let recent = Arc::default();
        let clock = Arc::new(SystemClock);
        Self { model, recent, clock, judge: None, reader: None, parts: Arc::default() }
    }

    /// Replaces the cache of recent vectors by one shared with others.
    pub fn sharing(self, recent: Arc<RecentVectors>) -> Self {
        Self { recent, ..self }
    }

    /// Returns a copy that compares texts by the vectors of another model.
    #[must_use]
    pub fn with_model(&self, model: &Arc<dyn Embedder>) -> Self {
        Self { model: Arc::clone(model), ..self.clone() }
    }

    /// Replaces the clock that decides which editions are in force.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Sets an optional reranker as the judge: it scores the question against each passage of an
    /// answer, and the answer is declined if every passage scores too low.
    pub fn judged_by(self, judge: Option<Arc<dyn Reranker>>) -> Self {
        Self { judge, ..self }
    }

    /// Sets an optional reader: a reranker whose verdicts on the best passages are weighed together
    /// with their words and vectors.
    pub fn read_by(self, reader: Option<Arc<dyn Reranker>>) -> Self {
        Self { reader, ..self }
    }

    /// Sets the questions that the next question consists of: each of them is answered.
    pub fn for_parts(self, parts: Vec<String>) -> Self {
        Self { parts: parts.into(), ..self }
    }

    /// The reader, if one is set.
    pub fn reader(&self) -> Option<&dyn Reranker> {
        self.reader.as_deref()
    }

    /// Answers from retrieved `chunks`, given best first, and from the chunks `around` them in the
    /// same sources. Returns [`crate::ABSTENTION`] if no passage answers. If the editions in force
    /// have no answer, the doubtful ones are tried. Blocking: calls the embedding model for the
    /// question and the passages that are not among the recent vectors, then the reader and the
    /// judge, if they are set.
    ///
    /// # Errors
    /// [`AnswerError::Embed`] if the model returns no vectors, or the request was cancelled or ran
    /// out of time.
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
        let of_withdrawn = self.of_withdrawn(context, question, (&chunks, read_hits), &editions)?;
        let mut chosen = match of_withdrawn {
            Some(chosen) => chosen,
            None => self.chosen(context, question, &chunks, &reading, &editions)?,
        };
        if chosen.parts.is_empty() && (0..chunks.len()).any(is_doubtful) {
            reading = read(context, &chunks, read_hits, is_doubtful).map_err(EmbedError::from)?;
            chosen = self.chosen(context, question, &chunks, &reading, &editions)?;
        }
        let mut answered = Vec::with_capacity(self.parts.len());
        for (at, part) in self.parts.iter().enumerate() {
            // Without an answer to the first, the others may be about something else.
            if at > 0 && answered.is_empty() && chosen.parts.is_empty() {
                break;
            }
            let of_part = self.chosen(context, part, &chunks, &reading, &editions)?;
            answered.extend((!of_part.parts.is_empty()).then_some((part, of_part)));
        }
        chosen.join(answered);
        let parts: Vec<&Part> = chosen.parts.iter().collect();
        let mut answer = compose(question, &chunks, hits, (&parts, chosen.told.as_deref()), order);
        answer.has_conflict = editions.are_mixed(parts.iter().map(|part| part.chunk));
        answer.strength = chosen.strength;
        Ok(answer)
    }

    /// Answers like [`Self::answer`] from chunks in other languages, whose words `gloss` translates
    /// into the question's language. Abstains unless the best passage is clearly stronger than an
    /// answer in the question's own language has to be.
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
        // The reader is trained on sentences, while a gloss is a mere sequence of words.
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

    /// Chooses the passages of an answer from what was read, in order; none if nothing answers.
    fn chosen(
        &self,
        context: &RequestContext,
        question: &str,
        chunks: &[&RetrievedChunk],
        reading: &Reading,
        editions: &Editions,
    ) -> Result<Chosen, AnswerError> {
        if reading.candidates.is_empty() || asks_nothing(question) {
            return Ok(Chosen::default());
        }
        let asked = Question::new(question);
        let (mut scores, matches) = by_words(&asked, &reading.candidates, chunks, editions);
        let is_wanted = |at: &usize| asked.wants(reading.candidates[*at].shape);
        let mut embedded: Vec<usize> = (0..scores.len()).filter(is_wanted).collect();
        // A stable sort: candidates that score alike stay in the order of the chunks.
        embedded.sort_by(|a, b| scores[*b].first().total_cmp(&scores[*a].first()));
        let is_in_other_words = scores.iter().all(|score| score.own < OTHER_WORDS_SHARE);
        embedded.truncate(match is_in_other_words && self.reader.is_some() {
            true => EMBEDDED_OF_OTHER_WORDS_MAX,
            false => EMBEDDED_MAX,
        });
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
        let again = match choice.chosen().is_empty() {
            true => self.read_again(context, &choice, chunks)?,
            false => None,
        };
        let choice = match &again {
            Some(Again { scores, compared, vectors }) => {
                Choice { scores, compared, vectors, ..choice }
            }
            None => choice,
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

    /// Returns the vector of the question and those of the candidates.
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

/// Removes the passages that a later document in force has amended, and the changes that a later
/// amendment changes again.
fn without_changed(reading: &mut Reading, editions: &Editions) {
    let Reading { candidates, blocks, .. } = reading;
    let section = |one: &Candidate| section_told(&one.parts[0].shown);
    let told = candidates.iter().filter_map(|one| Some((section(one)?, one.hit)));
    // Each section once per chunk, however often a long document names it.
    let told: BTreeSet<(String, usize)> = told.collect();
    let is_again = |one: &Candidate| {
        section(one).is_some_and(|section| {
            let mut others = told.iter().filter(|(other, _)| *other == section);
            others.any(|(_, hit)| editions.is_amended_later(*hit, one.hit))
        })
    };
    candidates.retain(|one| {
        let headings = &blocks[one.stretch].sections[one.section];
        !editions.is_changed(one.hit, headings, &one.parts[0].shown) && !is_again(one)
    });
}
