//! Withdrawn documents: a question that one of them would answer best is answered by the notice
//! that withdraws it, which says so and often what to do instead.

use super::{Answerer, Chosen};
use crate::error::AnswerError;
use crate::passages::blocks::Form;
use crate::passages::candidates::{Candidate, Reading, Shape, read};
use crate::question::wish::{Question, Wanted};
use crate::text::words::{contains_any, spaced};
use crate::versions::editions::Editions;
use lodestone_embed::EmbedError;
use lodestone_types::{RequestContext, RetrievedChunk};

/// Words of the list or the sentence that says what takes the place of something withdrawn.
const INSTEAD: &str = "\
    instead|in its place|in the meantime|meanwhile|until then|for now|stattdessen|an seiner stelle|\
    in der zwischenzeit|solange|à la place|entre temps|en su lugar|mientras tanto";

impl Answerer {
    /// Chooses from the notice that withdraws a document if the passages of that document, were it
    /// in force, would be the answer: the statement that it is withdrawn, and what to do instead.
    /// A reason is told by the notice in any case.
    pub(super) fn of_withdrawn(
        &self,
        context: &RequestContext,
        question: &str,
        (chunks, hits): (&[&RetrievedChunk], (usize, usize)),
        editions: &Editions,
    ) -> Result<Option<Chosen>, AnswerError> {
        let is_withdrawn = |chunk: usize| editions.notice_ending(chunk).is_some();
        let wants_cause = || Question::new(question).wanted == Wanted::Cause;
        if !(0..chunks.len()).any(is_withdrawn) || wants_cause() {
            return Ok(None);
        }
        let is_read = |chunk| editions.holds(chunk) || is_withdrawn(chunk);
        let reading = read(context, chunks, hits, is_read).map_err(EmbedError::from)?;
        let chosen = self.chosen(context, question, chunks, &reading, editions)?;
        let best = chosen.parts.first().map(|part| part.chunk);
        let Some(notice) = best.and_then(|chunk| editions.notice_ending(chunk)) else {
            return Ok(None);
        };
        let is_of_notice = |chunk| editions.is_of(chunk, notice);
        let reading = read(context, chunks, hits, is_of_notice).map_err(EmbedError::from)?;
        let is_ending = |one: &&Candidate| {
            matches!(one.shape, Shape::Unit(_)) && editions.is_ending(notice, &one.shown())
        };
        let Some(ending) = reading.candidates.iter().find(is_ending) else { return Ok(None) };
        let instead = instead(&reading).filter(|one| !one.repeats(ending));
        let told = [Some(ending), instead].into_iter().flatten();
        let parts = told.flat_map(|one| one.parts.clone()).collect();
        Ok(Some(Chosen { parts, told: None, strength: chosen.strength }))
    }
}

/// The list below an announcement of what to do instead; else the sentence that says it.
fn instead(reading: &Reading) -> Option<&Candidate> {
    let says = |text: &str| contains_any(&spaced(text), INSTEAD);
    let is_list = |one: &&Candidate| {
        one.shape == Shape::Whole(Form::List) && (says(&one.lead) || says(&one.heading))
    };
    let is_sentence = |one: &&Candidate| matches!(one.shape, Shape::Unit(_)) && says(&one.shown());
    let mut all = reading.candidates.iter();
    all.clone().find(is_list).or_else(|| all.find(|one| is_sentence(one) && !one.is_lead))
}
