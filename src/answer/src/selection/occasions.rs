//! Occasions: the part of a paragraph that begins with the condition a question names, for "what
//! happens if the kiln cracks?".

use crate::passages::blocks::{Form, Kind};
use crate::passages::candidates::Shape;
use crate::relevance::weights::light_terms;
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::{begins_with, entries, spaced};

/// Questions about the consequences of an occasion.
const ASKS: &str = "what happens|what happened|what will happen|what would happen";
/// Words before an occasion.
const CONDITIONS: &str = "if|when|once|after|whenever";

impl Choice<'_> {
    /// For a question what happens if something occurs, if a whole paragraph would answer: that
    /// paragraph from its sentence that begins with "if" and the occasion. What stands before it
    /// is about something else.
    pub(crate) fn of_condition(&self, first: usize) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        if !begins_with(&asked, ASKS) {
            return None;
        }
        let occasion = behind_condition(&asked)?;
        let matter = &terms(occasion) - &light_terms(self.question);
        let whole = self.candidate(self.whole_of(first)?);
        if whole.shape != Shape::Whole(Form::Paragraph) || matter.is_empty() {
            return None;
        }
        let is_sentence = |at: &usize| {
            let one = self.candidate(*at);
            one.shape == Shape::Unit(Kind::Sentence) && !one.is_lead && one.is_beside(whole)
        };
        let sentences: Vec<usize> =
            (0..self.reading.candidates.len()).filter(is_sentence).collect();
        let opens = |at: &&usize| {
            let one = self.candidate(**at);
            let shown = one.shown();
            let clause = spaced(shown.split(',').next().unwrap_or_default());
            let begins = begins_with(&clause, CONDITIONS);
            one.units == 1 && begins && matter.is_subset(&terms(&clause))
        };
        let from = self.candidate(*sentences.iter().find(opens)?).unit;
        let rest = sentences.into_iter().filter(|at| self.candidate(*at).unit >= from);
        Some(self.without_widened(rest.collect()))
    }
}

/// The words of a question behind its condition.
fn behind_condition(asked: &str) -> Option<&str> {
    entries(CONDITIONS).find_map(|word| Some(asked.split_once(&format!(" {word} "))?.1))
}
