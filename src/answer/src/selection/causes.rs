//! Causes: the part of a report that tells why, for questions that ask for it.

use crate::passages::blocks::Kind;
use crate::passages::candidates::{Candidate, Shape};
use crate::question::wish::Wanted;
use crate::relevance::causes::{CAUSE_LABELS, is_labelled_cause, tells_cause};
use crate::relevance::weights::light_terms;
use crate::rows::evaluate::is_code;
use crate::selection::choose::{Choice, FURTHER_CONFIDENCE_MIN, PASSAGES_MAX, RELEVANCE_DROP_MAX};
use crate::text::words::{begins_with, contains_any, entries, is_entry, spaced};

/// Maximum drop in relevance of a passage whose source has a section on the cause.
pub(crate) const CAUSE_DROP_MAX: f32 = 0.2;
/// Minimum share of the question's terms in a sentence that is about what the question asks: one of
/// such a section that tells a cause, or one that says what happened.
pub(crate) const TOLD_SHARE_MIN: f32 = 0.5;
/// Index of the section below the first heading of a text; text above that heading has section 0.
const TITLE_SECTION: usize = 1;
/// Opening words of a sentence that tells a cause itself.
const CAUSE_OPENINGS: &str = "why|because|reason|warum|weil|pourquoi|parce que|por qué|porque";
/// Words of a question for the cause of something past.
const PAST: &str = "\
    was|were|did|had|has been|have been|wurde|wurden|war|waren|hat|haben|a été|ont été|avait|\
    avaient|fue|fueron|ha sido|han sido|había";
/// Minimum number of words before a colon that tell what happened, and are no label.
const DEED_WORDS_MIN: usize = 3;

/// Final words of a heading for a cause: "What was moved and why".
const WHY: &str = "why|warum|weshalb|pourquoi|por qué";

/// Whether a heading ends in the word for why; "Why we do not sell" has a matter of its own.
fn ends_in_why(heading: &str) -> bool {
    let words = spaced(heading);
    entries(WHY).any(|word| words.ends_with(&format!(" {word} ")))
}

impl Choice<'_> {
    /// For a question about a cause: the passages headed or labelled as the cause in the source of
    /// the first passage, or in another source whose passage is about as relevant.
    pub(crate) fn of_cause(&self, first: usize) -> Option<Vec<usize>> {
        if self.question.wanted != Wanted::Cause {
            return None;
        }
        let said = spaced(&self.candidate(first).shown());
        let is_told = tells_cause(&self.candidate(first).shown());
        let is_whole = is_told
            && self.scores[first].own >= TOLD_SHARE_MIN
            && self.is_below_cause(self.candidate(first));
        if is_whole || begins_with(&said, CAUSE_OPENINGS) {
            return None;
        }
        let near = self.best(|at| {
            let is_near = self.candidate(at).stretch != self.candidate(first).stretch
                && self.relevance(at) >= self.relevance(first) - CAUSE_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= 1.0
                && self.headed_cause(at).is_some();
            is_near.then(|| self.relevance(at))
        });
        self.caused_beside(first)
            .or_else(|| self.headed_cause(first))
            .or_else(|| self.headed_cause(near.filter(|_| !is_told)?))
            .or_else(|| self.labelled_near(first))
    }

    /// For a question why something was done, if the first passage states that it was and nothing
    /// states why in so many words: the sentences before it in its paragraph, which usually do.
    /// Those before a rule ("the gate is locked at night") seldom explain it.
    pub(crate) fn of_ground(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let is_deed = one.shape == Shape::Unit(Kind::Sentence)
            && self.scores[first].own >= TOLD_SHARE_MIN
            && !self.is_below_cause(one);
        let tells = |at: usize| {
            let said = self.candidate(at).shown();
            tells_cause(&said) || is_labelled_cause(&said)
        };
        let is_rival = |at: usize| {
            self.relevance(at) >= self.relevance(first) - RELEVANCE_DROP_MAX
                && self.scores[at].confidence(&self.evidence) >= FURTHER_CONFIDENCE_MIN
        };
        let is_told = || self.compared.iter().any(|at| tells(*at) && is_rival(*at));
        // "Dunmere lost: the poster hung behind the door" tells its reason behind the colon.
        let shown = one.shown();
        let words = shown.split_once(": ").map_or(0, |(deed, _)| deed.split_whitespace().count());
        let has_colon = words >= DEED_WORDS_MIN;
        let asked = spaced(self.question.last());
        let is_cause = self.question.wanted == Wanted::Cause && contains_any(&asked, PAST);
        if !is_cause || !is_deed || has_colon || tells(first) || is_told() {
            return None;
        }
        let begin = (one.unit + 1).saturating_sub(one.units);
        let is_before = |at: &usize| {
            let other = self.candidate(*at);
            let is_sentence = other.shape == Shape::Unit(Kind::Sentence) && other.units == 1;
            let units = begin.saturating_sub(PASSAGES_MAX - one.units.min(PASSAGES_MAX))..begin;
            is_sentence && !other.is_lead && other.is_beside(one) && units.contains(&other.unit)
        };
        let mut told: Vec<usize> = (0..self.reading.candidates.len()).filter(is_before).collect();
        if told.is_empty() {
            return None;
        }
        told.push(first);
        Some(told)
    }

    /// For a question about a cause: the passages that tell it in place of a row that does not, if
    /// they or the text above them name something of the question that the row holds.
    pub(crate) fn of_row(&self, first: usize) -> Option<Vec<usize>> {
        let matter = &self.matches.own[first] - &light_terms(self.question);
        let is_of_it = |at: &usize| {
            let (own, above) = (&self.matches.own[*at], &self.matches.above[*at]);
            matter.iter().any(|term| own.contains(term) || above.contains(term))
        };
        let told = self.of_cause(first).filter(|told| told.iter().any(is_of_it));
        told.filter(|_| !tells_cause(&self.candidate(first).shown()))
    }

    /// For a question about a cause: a sentence in the source of a row that begins with the row's
    /// code, as notes below a table do: "K-12: a hose had burst."
    pub(crate) fn note_on(&self, row: usize) -> Option<usize> {
        if self.question.wanted != Wanted::Cause {
            return None;
        }
        let one = self.candidate(row);
        let code = one.cells.first().filter(|cell| one.has_values() && is_code(&cell.value))?;
        let is_note = |at: &usize| {
            let other = self.candidate(*at);
            matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item))
                && other.stretch == one.stretch
                && other.shown().split_once(':').is_some_and(|(label, _)| label == code.value)
        };
        (0..self.reading.candidates.len()).find(is_note)
    }

    /// Whether a passage stands below a heading for the cause. A title of the document that
    /// mentions a cause does not count.
    fn is_below_cause(&self, one: &Candidate) -> bool {
        let headings = &self.reading.blocks[one.stretch].sections[one.section];
        headings.last().is_some_and(|heading| {
            is_entry(CAUSE_LABELS, spaced(heading).trim())
                || (one.section > TITLE_SECTION && (tells_cause(heading) || ends_in_why(heading)))
        })
    }

    /// Whether a passage may follow a first one that tells the cause: it directly follows a chosen
    /// one, tells a cause, or is a row, field or line. "Written by Ada" does not qualify.
    pub(crate) fn goes_on_with_cause(&self, at: usize, chosen: &[usize]) -> bool {
        let one = self.candidate(at);
        let follows = |other: &usize| {
            let other = self.candidate(*other);
            one.is_beside(other) && one.unit == other.unit + 1
        };
        let is_told = |first: &usize| {
            let said = self.candidate(*first).shown();
            tells_cause(&said) || is_labelled_cause(&said)
        };
        self.question.wanted != Wanted::Cause
            || !chosen.first().is_some_and(is_told)
            || matches!(one.shape, Shape::Unit(Kind::Row | Kind::Field | Kind::Line))
            || tells_cause(&one.shown())
            || chosen.iter().any(follows)
    }

    /// The section headed as the cause in the source of a passage; else the only passage there
    /// labelled as the cause, with the sentence after it.
    fn headed_cause(&self, of: usize) -> Option<Vec<usize>> {
        let one = self.candidate(of);
        let is_prose = |at: &usize| {
            let other = self.candidate(*at);
            let is_of_source = other.stretch == one.stretch;
            is_of_source && matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item))
        };
        let prose: Vec<usize> = (0..self.reading.candidates.len()).filter(is_prose).collect();
        let headed = prose.iter().copied().filter(|at| self.is_below_cause(self.candidate(*at)));
        let headed: Vec<usize> = headed.take(PASSAGES_MAX).collect();
        if !headed.is_empty() {
            return Some(headed);
        }
        // "Why: a fuse" may be the first line of a record.
        let is_labelled = |at: &usize| {
            let other = self.candidate(*at);
            let is_unit = matches!(other.shape, Shape::Unit(_)) && other.units == 1;
            is_unit && other.stretch == one.stretch && is_labelled_cause(&other.shown())
        };
        let mut labelled = (0..self.reading.candidates.len()).filter(is_labelled);
        let cause = labelled.next()?;
        let is_next = |at: &usize| {
            let (other, cause) = (self.candidate(*at), self.candidate(cause));
            other.is_beside(cause) && other.unit == cause.unit + 1
        };
        let next = prose.iter().copied().find(is_next);
        // A next passage that repeats the cause already begins with it.
        let cause = match next {
            Some(next) if self.candidate(next).repeats(self.candidate(cause)) => vec![next],
            next => [cause].into_iter().chain(next).collect(),
        };
        labelled.next().is_none().then_some(cause)
    }
}
