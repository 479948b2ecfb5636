//! Chooses the passages that make up an answer: the whole unit that the question asks for, and
//! nothing beyond it.

use std::collections::BTreeSet;

use crate::passages::blocks::{Form, Kind};
use crate::passages::candidates::{Candidate, Reading, Shape};
use crate::question::wish::{Question, Wanted};
use crate::relevance::denials::{asks_denied, denies, goes_on_denying};
use crate::relevance::evidence::Evidence;
use crate::relevance::form::is_of_mail_head;
use crate::relevance::score::{Matches, Score, dot};
use crate::text::terms::terms;
use crate::text::words::{Asked, enumerates, has_full_name, holds};
use crate::versions::editions::Editions;
use crate::versions::head::is_remark_on_edition;

/// Maximum number of terms in a heading that merely names a kind of things: "Courses in spring".
const HEADING_TERMS_MAX: usize = 2;
/// Maximum number of sentences or rows in an answer to a question that wants no list.
pub(crate) const PASSAGES_MAX: usize = 3;
/// A list at most this many units after a title or announcement belongs to it.
const TITLE_UNITS_MAX: usize = 2;
/// Maximum number of rows in an answer to a question that wants several.
pub(crate) const ROWS_MAX: usize = 8;
/// Maximum drop in relevance of a further sentence against the first; a first one with a larger
/// lead stands alone.
pub(crate) const RELEVANCE_DROP_MAX: f32 = 0.4;
/// Maximum drop in relevance of a further sentence from another section that adds nothing new of
/// the question.
const ELSEWHERE_DROP_MAX: f32 = 0.2;
/// Confidence that a further sentence needs; the first needs 1.
pub(crate) const FURTHER_CONFIDENCE_MIN: f32 = 0.9;
/// Maximum drop in relevance, and minimum confidence, of the sentence right after the first.
const NEXT_DROP_MAX: f32 = 0.7;
const NEXT_CONFIDENCE_MIN: f32 = 0.65;
/// Maximum drop in relevance, and minimum confidence, of a next sentence that enumerates things
/// when the question asks for several.
const LISTING_DROP_MAX: f32 = 1.2;
const LISTING_CONFIDENCE_MIN: f32 = 0.3;
/// Weight of a sentence's similarity to those already chosen, subtracted from its relevance.
const SAMENESS_WEIGHT: f32 = 0.2;
/// Weight of the question's terms that a passage must add to those already covered in order to be
/// needed.
pub(crate) const GAIN_MIN: f32 = 0.15;
/// Maximum drop in relevance of a row that is as likely meant as another, and the maximum number of
/// such rows of which the question identifies one.
const LIKE_DROP_MAX: f32 = 0.02;
const LIKE_MAX: usize = 3;
/// Weights that differ by less are considered equal.
pub(crate) const SAME: f32 = 1e-3;

/// The inputs of a choice.
pub(crate) struct Choice<'a> {
    pub(crate) question: &'a Question,
    pub(crate) reading: &'a Reading,
    pub(crate) editions: &'a Editions,
    pub(crate) scores: &'a [Score],
    pub(crate) matches: &'a Matches,
    /// The candidates compared by the embedding model, ascending, with their vectors below.
    pub(crate) compared: &'a [usize],
    pub(crate) vectors: &'a [Vec<f32>],
    pub(crate) evidence: Evidence,
}

impl Choice<'_> {
    /// Returns the candidates of the answer, in order; none if no candidate is good enough.
    pub(crate) fn chosen(&self) -> Vec<usize> {
        self.with_second_opinion(self.by_first())
    }

    /// The candidates that answer together with the first passage.
    fn by_first(&self) -> Vec<usize> {
        let Some(first) = self.first() else {
            return Vec::new();
        };
        if let Some(list) = self.named_list().or_else(|| self.list_of_asked()) {
            return vec![list];
        }
        if let Some(entry) = self.of_legend() {
            return vec![entry];
        }
        if let Some(told) = self.of_deeds().or_else(|| self.of_exclusion(first)) {
            return told;
        }
        let other = self.of_kind(first).or_else(|| self.of_thing(first));
        let Some(first) = other.or_else(|| self.of_what_is_named(first)) else {
            return Vec::new();
        };
        let first = self.later(first).unwrap_or(first);
        let first = self.of_day(first).unwrap_or(first);
        let first = self.of_state(first).unwrap_or(first);
        let first = self.of_weekday(first).unwrap_or(first);
        let first = self.of_selection(first).unwrap_or(first);
        if let Some(rows) = self.of_step(first).or_else(|| self.of_actions(first)) {
            return rows;
        }
        let Some(first) = self.within_bounds(first) else { return Vec::new() };
        let whole = self.of_today(first).or_else(|| self.of_version(first));
        let whole = whole.or_else(|| self.of_changes(first)).or_else(|| self.of_topic(first));
        let whole = whole.or_else(|| self.of_votes(first)).or_else(|| self.of_trouble(first));
        if let Some(whole) = whole.or_else(|| self.of_condition(first)) {
            return whole;
        }
        let other = self.of_other_edition(first);
        // From two compared editions, one passage each is shown instead of a whole list.
        let whole = self.whole_of(first).or_else(|| self.list_of_items(first));
        if let Some(whole) = whole.filter(|_| other.is_none() || self.question.sides.is_none()) {
            return self.filtered(whole);
        }
        if let Some(other) = other {
            return [self.on_same(first, other), self.on_same(other, first)].concat();
        }
        if let Some(other) = self.of_other_side(first) {
            let is_second = self.side_of(first) == Some(1);
            return if is_second { vec![other, first] } else { vec![first, other] };
        }
        let is_other = self.is_of_others(first) || self.lacks_unfinished(first);
        if is_other || self.lacks_quality(first) || self.lacks_in_column(first) {
            return Vec::new();
        }
        if self.candidate(first).has_values() {
            let note = self.note_on(first).map(|note| vec![note]);
            return note.or_else(|| self.of_row(first)).unwrap_or_else(|| self.rows(first));
        }
        self.of_cases(first)
            .or_else(|| self.of_chain(first))
            .or_else(|| self.of_decisions(first))
            .or_else(|| self.of_payer(first))
            .or_else(|| self.of_cause(first))
            .or_else(|| self.with_replies(first))
            .or_else(|| self.of_place(first))
            .or_else(|| self.of_ground(first))
            .unwrap_or_else(|| self.sentences(first))
    }

    pub(crate) fn candidate(&self, at: usize) -> &Candidate {
        &self.reading.candidates[at]
    }

    pub(crate) fn relevance(&self, at: usize) -> f32 {
        self.scores[at].relevance()
    }

    /// The passage that answers best, judged by words and reader. A row that the question
    /// identifies by a value wins, however the reader judges other passages.
    pub(crate) fn first(&self) -> Option<usize> {
        let by_words = self.best(|at| Some(self.relevance(at)))?;
        let is_read = |at: usize| self.scores[at].verdict.is_some();
        // Passages the reader did not see rank below those it did.
        let has_reader = is_read(by_words);
        let judged =
            |at: usize| (is_read(at) == has_reader).then(|| self.scores[at].judged(self.question));
        let judged = self.best(judged)?;
        // "name: Tarn" tells nothing of the Tarn.
        let is_meant = |at: usize| {
            let one = self.candidate(at);
            self.scores[at].keyed > 0.0 && one.has_values() && one.cells.len() > 1
        };
        // A value that many rows share identifies none: "shed B", in which ten boats lie.
        let is_like = |at: &&usize| {
            is_meant(**at) && self.relevance(**at) >= self.relevance(by_words) - LIKE_DROP_MAX
        };
        let is_one = || self.compared.iter().filter(is_like).count() <= LIKE_MAX;
        Some(if is_meant(by_words) && !is_meant(judged) && is_one() { by_words } else { judged })
    }

    /// The compared candidate with the greatest value; the first one among equals.
    pub(crate) fn best(&self, value: impl Fn(usize) -> Option<f32>) -> Option<usize> {
        let values = self.compared.iter().filter_map(|at| value(*at).map(|value| (*at, value)));
        let best = values.fold(None, |best: Option<(usize, f32)>, (at, value)| match best {
            Some((_, top)) if top.total_cmp(&value).is_ge() => best,
            _ => Some((at, value)),
        });
        best.map(|(at, _)| at)
    }

    /// The whole list or procedure that the candidate belongs to or announces, if the question
    /// wants one.
    pub(crate) fn whole_of(&self, first: usize) -> Option<usize> {
        if let Some(steps) = self.steps_below(first) {
            return Some(steps);
        }
        let one = self.candidate(first);
        let (is_list, is_steps) =
            (self.question.wanted == Wanted::List, self.question.wanted == Wanted::Steps);
        if matches!(one.shape, Shape::Whole(_)) {
            return Some(first);
        }
        let wholes = self.reading.candidates.iter().enumerate();
        let is_against = asks_denied(self.question);
        let mut wholes = wholes.filter(|(_, other)| match other.shape {
            Shape::Whole(Form::List) if is_against && !denies(other) => false,
            Shape::Whole(Form::List) => {
                let is_behind = is_steps
                    && one.unit == 0
                    && other.stretch == one.stretch
                    && (1..=TITLE_UNITS_MAX).contains(&other.unit.saturating_sub(one.unit));
                let is_announced = is_list
                    && !other.lead.is_empty()
                    && other.stretch == one.stretch
                    && other.section == one.section
                    && (1..=TITLE_UNITS_MAX).contains(&other.unit.saturating_sub(one.unit));
                is_behind || is_announced || ((is_list || is_steps) && other.is_beside(one))
            }
            Shape::Whole(_) => {
                let is_meant = is_steps || (is_list && self.is_below_noun(one));
                is_meant && one.shape == Shape::Unit(Kind::Sentence) && other.is_beside(one)
            }
            Shape::Unit(_) => false,
        });
        wholes.next().map(|(at, _)| at)
    }

    /// Whether a passage stands below a heading that names the things asked for.
    fn is_below_noun(&self, one: &Candidate) -> bool {
        let heading = terms(&one.heading);
        let noun = self.question.noun.as_deref().map(terms).unwrap_or_default();
        !noun.is_empty() && noun.is_subset(&heading) && heading.len() <= HEADING_TERMS_MAX
    }

    /// The first passage, followed by the next sentence if only that one holds the kind of thing
    /// asked for.
    fn with_kind(&self, first: usize) -> Vec<usize> {
        let (question, one) = (self.question, self.candidate(first));
        // "Staffbook" may be a name, but not a person's.
        let has_kind = |at: usize| {
            let shown = self.candidate(at).shown();
            let is_somebody = question.asked != Asked::Person || has_full_name(&shown);
            is_somebody && holds(question.asked, &shown, &question.lower)
        };
        let is_next = |at: &usize| {
            let other = self.candidate(*at);
            let is_prose = matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item));
            is_prose && other.is_beside(one) && other.unit == one.unit + 1 && has_kind(*at)
        };
        let is_whole = question.asked == Asked::Other || has_kind(first);
        let next = (0..self.reading.candidates.len()).filter(|_| !is_whole).find(is_next);
        match next {
            // The next passage already begins with the first one.
            Some(next) if self.candidate(next).repeats(one) => vec![next],
            next => [first].into_iter().chain(next).collect(),
        }
    }

    /// Drops sentences that a later passage, which points back to them, already begins with.
    pub(crate) fn without_widened(&self, mut sentences: Vec<usize>) -> Vec<usize> {
        let all: Vec<usize> = sentences.clone();
        sentences.retain(|at| {
            let is_repeated = |other: &usize| {
                let other = self.candidate(*other);
                other.units > 1 && other.unit == self.candidate(*at).unit + 1
            };
            !all.iter().any(is_repeated)
        });
        sentences
    }

    /// A passage that covers much of what the chosen ones leave out of the question.
    pub(crate) fn needed(&self, chosen: &[usize]) -> Option<usize> {
        if chosen.len() >= PASSAGES_MAX {
            return None;
        }
        let first = chosen[0];
        let held: BTreeSet<&String> = chosen.iter().flat_map(|at| &self.matches.own[*at]).collect();
        let weights = &self.matches.weights;
        self.best(|at| {
            let candidate = self.candidate(at);
            let is_near = self.relevance(at) >= self.relevance(first) - RELEVANCE_DROP_MAX;
            let is_elsewhere = !candidate.is_beside(self.candidate(first));
            let is_ruled_out = !matches!(candidate.shape, Shape::Unit(_))
                || candidate.is_lead
                || (is_elsewhere && !self.question.compares)
                || chosen.iter().any(|other| self.candidate(*other).repeats(candidate));
            let new = self.matches.own[at].iter().filter(|term| !held.contains(term));
            let gain = weights.share(new);
            // In a comparison: another row of the same table that adds a term.
            let is_pair = self.question.compares && !is_elsewhere && gain > SAME;
            let value = gain + self.relevance(at) + if is_pair { 1.0 } else { 0.0 };
            (is_near && !is_ruled_out && (is_pair || gain >= GAIN_MIN)).then_some(value)
        })
    }

    /// The first sentence and the further ones that it needs.
    ///
    /// Each further sentence maximises relevance minus similarity to those already chosen (maximal
    /// marginal relevance; Carbonell and Goldstein 1998).
    fn sentences(&self, first: usize) -> Vec<usize> {
        let mut chosen = self.with_more(self.with_kind(self.with_vote(first)));
        let relevance = self.relevance(first);
        let vector = |at: usize| {
            let position = self.compared.binary_search(&at).ok();
            position.map_or(&[][..], |position| &self.vectors[position])
        };
        let said =
            |chosen: &[usize]| -> usize { chosen.iter().map(|at| self.candidate(*at).units).sum() };
        while said(&chosen) < PASSAGES_MAX {
            let held: BTreeSet<&String> =
                chosen.iter().flat_map(|at| &self.matches.own[*at]).collect();
            let next = self.best(|at| {
                let candidate = self.candidate(at);
                let new = self.matches.own[at].iter().filter(|term| !held.contains(term));
                let is_needed = self.matches.weights.share(new) >= GAIN_MIN
                    || candidate.shares_section(self.candidate(first));
                let drop = if is_needed { RELEVANCE_DROP_MAX } else { ELSEWHERE_DROP_MAX };
                // The sentence after the first usually continues its matter.
                let is_next = candidate.is_beside(self.candidate(first))
                    && candidate.unit == self.candidate(first).unit + 1;
                let lists =
                    || self.question.wanted == Wanted::List && enumerates(&candidate.shown());
                let (drop, needed) = match is_next {
                    true if lists() => (LISTING_DROP_MAX, LISTING_CONFIDENCE_MIN),
                    true => (NEXT_DROP_MAX, NEXT_CONFIDENCE_MIN),
                    false => (drop, FURTHER_CONFIDENCE_MIN),
                };
                let is_near = self.relevance(at) >= relevance - drop;
                let is_said = |other: &usize| self.candidate(*other).repeats(candidate);
                let is_enough = self.scores[at].confidence(&self.evidence) >= needed;
                let is_prose = matches!(candidate.shape, Shape::Unit(_))
                    && !candidate.is_lead
                    && (!candidate.is_taken_back()
                        || self.question.wants_of_before(&candidate.shown()))
                    && (self.question.is_of_mail || !is_of_mail_head(candidate))
                    && !self.is_left_by_bounds(at)
                    && !(self.matches.own[at].is_empty()
                        && is_remark_on_edition(&candidate.shown()))
                    && said(&chosen) + candidate.units <= PASSAGES_MAX;
                let is_overtaken = self.overtakes(first, at)
                    || self.put_right(at).is_some_and(|right| chosen.contains(&right));
                let is_fit = is_prose
                    && self.goes_on_with_cause(at, &chosen)
                    && goes_on_denying(self.question, self.candidate(first), candidate);
                if !is_near || !is_enough || !is_fit || chosen.iter().any(is_said) || is_overtaken {
                    return None;
                }
                let likeness = chosen.iter().map(|other| dot(vector(*other), vector(at)));
                let likeness = likeness.fold(0.0_f32, f32::max);
                Some(self.relevance(at) - SAMENESS_WEIGHT * likeness)
            });
            let Some(at) = next else { break };
            let at = self.later(at).filter(|later| !chosen.contains(later)).unwrap_or(at);
            chosen.push(at);
        }
        self.with_enumeration_first(chosen)
    }

    /// For a question that wants several things, the sentence that enumerates them before others.
    fn with_enumeration_first(&self, mut chosen: Vec<usize>) -> Vec<usize> {
        let noun = self.question.noun.as_deref().map(terms).unwrap_or_default();
        let tells_all = |at: &usize| {
            let shown = self.candidate(*at).shown();
            enumerates(&shown) && !noun.is_disjoint(&terms(&shown))
        };
        if self.question.wanted == Wanted::List
            && let Some(at) = chosen.iter().position(tells_all)
        {
            chosen[..=at].rotate_right(1);
        }
        chosen
    }
}
