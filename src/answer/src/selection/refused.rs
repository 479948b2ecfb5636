//! Exclusions: what a text leaves out, refuses or forbids, for questions such as "what do you not
//! print?".
//!
//! ```text
//! ## What we do not print                  Not in it: food, boarding.
//! Bank notes, identity papers.             No entry for people with open wounds.
//! ```

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::{Form, Kind};
use crate::passages::candidates::{Candidate, Shape};
use crate::question::wish::Wanted;
use crate::relevance::weights::matter;
use crate::selection::choose::{Choice, PASSAGES_MAX, SAME};
use crate::text::words::{Asked, contains_any, enumerates, is_entry, spaced, tells_negation};

/// Words that open a question for what is excluded.
const OPENINGS: &str = "\
    what|what's|which|who|things|was|welche|welches|wer|que|quel|quelle|quels|quelles|qui|qué|\
    cuáles|quién|quiénes|list|name";
/// Words with which a sentence that excludes begins.
const EXCLUDING: &str = "\
    no|not|never|none|nobody|neither|without|excluded|except|forbidden|prohibited|banned|nicht|\
    kein|keine|keinen|nie|niemals|niemand|ausgeschlossen|verboten|ne|pas|aucun|aucune|jamais|\
    interdit|interdits|exclu|exclus|ningún|ninguna|nunca|prohibido|prohibidos|excluido|excluidos";
/// Phrases of headings and of sentences with a colon that exclude without a negation.
const OUTSIDE: &str = "\
    stay outside|stays outside|leave at home|stay at home|stays at home|off limits|keep out|\
    left out|exclusions|exceptions|limits of cover|draußen bleiben|bleibt draußen|zu hause lassen|\
    ausnahmen|ausschlüsse|fuera";
/// Words that end the main clause of a question.
const SUBORDINATE: &str = "so|that|because|if|when|after|before|damit|dass|weil|wenn|pour|si|para";
/// Words that begin a condition, which excludes nothing.
const IF: &str = "if|when|whoever|unless|where|wenn|falls|si|cuando";
/// Minimum share of a question's matter that an exclusion, its headings and its title hold.
const SHARE_MIN: f32 = 0.5;
/// Maximum drop in relevance against the first passage.
const DROP_MAX: f32 = 0.6;
/// Bonus for an exclusion below a heading that says it.
const HEADED_BONUS: f32 = 0.2;
/// Maximum number of characters before a colon that announces what is excluded.
const LEAD_CHARS_MAX: usize = 60;

impl Choice<'_> {
    /// For a question for what is not done, allowed or included: the list or paragraph below the
    /// heading that excludes it, or the sentence that enumerates it. `None` if no text excludes
    /// anything of the kind.
    pub(crate) fn of_exclusion(&self, first: usize) -> Option<Vec<usize>> {
        let question = self.question;
        let asked = spaced(question.last());
        let is_fit = matches!(question.wanted, Wanted::Fact | Wanted::List)
            && matches!(question.asked, Asked::Other | Asked::Person)
            && !question.is_computed()
            && !question.asks_where
            && question.others_than.is_empty();
        let opening = asked.split_whitespace().next().unwrap_or_default();
        let clause: Vec<&str> =
            asked.split_whitespace().take_while(|word| !is_entry(SUBORDINATE, word)).collect();
        let clause = clause.join(" ");
        let is_negated = tells_exclusion(&clause);
        if !is_fit || !is_negated || !is_entry(OPENINGS, opening) {
            return None;
        }
        let matter = matter(question);
        let whole = self.matches.weights.share(matter.iter());
        let value = |at: usize| {
            let one = self.candidate(at);
            let bonus = if is_headed(one) { HEADED_BONUS } else { 0.0 };
            let is_about = self.share_of(at, &matter) >= SHARE_MIN * whole;
            let is_near = self.relevance(at) >= self.relevance(first) - DROP_MAX;
            (is_about && is_near && excludes(one) && !self.is_numbered(one))
                .then(|| self.relevance(at) + bonus)
        };
        let best = self.best(value)?;
        // A first passage that denies as much of the matter needs no other.
        let denies = tells_negation(&self.candidate(first).shown());
        let is_better = self.share_of(best, &matter) > self.share_of(first, &matter) + SAME;
        let is_sure = best == first || is_headed(self.candidate(best));
        (!denies || is_better || is_sure).then(|| self.with_others_excluded(best))
    }

    /// Whether a passage is one of the steps of a procedure, or all of them.
    fn is_numbered(&self, one: &Candidate) -> bool {
        one.shape != Shape::Unit(Kind::Sentence)
            && self.reading.blocks[one.stretch].groups[one.group].is_numbered
    }

    /// Share of the matter that a passage, its headings and its title hold.
    fn share_of(&self, at: usize, matter: &BTreeSet<String>) -> f32 {
        let held = self.matches.own[at].union(&self.matches.above[at]);
        self.matches.weights.share(held.filter(|term| matter.contains(*term)))
    }

    /// The whole list that an exclusion is an item of, or the rest of its paragraph if the heading
    /// excludes.
    fn with_others_excluded(&self, at: usize) -> Vec<usize> {
        let one = self.candidate(at);
        let all = || 0..self.reading.candidates.len();
        if !is_headed(one) || matches!(one.shape, Shape::Whole(_)) {
            return vec![at];
        }
        let is_list = |other: &usize| {
            let other = self.candidate(*other);
            other.shape == Shape::Whole(Form::List) && other.is_beside(one)
        };
        if let Some(list) = all().find(is_list) {
            return vec![list];
        }
        let is_rest = |other: &usize| {
            let other = self.candidate(*other);
            other.shape == Shape::Unit(Kind::Sentence) && other.is_beside(one) && !other.is_lead
        };
        let rest = self.without_widened(all().filter(is_rest).collect());
        rest.into_iter().take(PASSAGES_MAX).collect()
    }
}

/// Whether a passage excludes things.
fn excludes(one: &Candidate) -> bool {
    let is_text = match one.shape {
        Shape::Unit(kind) => matches!(kind, Kind::Sentence | Kind::Item),
        Shape::Whole(form) => form == Form::List,
    };
    is_text && !one.is_lead && !one.is_taken_back() && (is_headed(one) || says_exclusion(one))
}

/// Whether a passage stands in the first group below a heading that excludes, or below a lead that
/// does.
fn is_headed(one: &Candidate) -> bool {
    (one.opens_section && tells_exclusion(&one.heading)) || tells_exclusion(&one.lead)
}

/// Whether a sentence begins or ends with a negation, or has one before a colon, and enumerates.
fn says_exclusion(one: &Candidate) -> bool {
    let shown = one.shown();
    let frames = || {
        let mut words = shown.unicode_words().map(str::to_lowercase);
        let (first, last) = (words.next(), words.next_back());
        first.into_iter().chain(last).any(|word| is_entry(EXCLUDING, &word))
    };
    let announced = || {
        let (lead, rest) = shown.split_once(':')?;
        let is_short = lead.chars().count() <= LEAD_CHARS_MAX;
        let first = lead.unicode_words().next().unwrap_or_default().to_lowercase();
        let is_meant = is_short && rest.contains([',', ';']) && !is_entry(IF, &first);
        is_meant.then(|| tells_exclusion(lead))
    };
    announced().unwrap_or(false) || (frames() && enumerates(&shown))
}

/// Whether a text has a negation or a phrase that excludes.
fn tells_exclusion(text: &str) -> bool {
    tells_negation(text) || contains_any(&spaced(text), OUTSIDE)
}
