//! Corrections: later messages, minutes and addenda that put a passage right.

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::{Shape, said_in};
use crate::selection::choose::Choice;
use crate::selection::conflicts::{REPLACING_DROP_MAX, bare_words, denied, tells_all};
use crate::text::words::{contains, denies, entries, is_entry, spaced};
use crate::versions::amendments::{PARTS, is_addendum, part_number};

/// Words that announce corrections in minutes.
const CORRECTIONS: &str = "\
    correction|corrections|corrected|amendment|amendments|to the minutes|to the last minutes|\
    berichtigung|berichtigungen|korrektur|korrekturen|zum protokoll|rectification|rectifications|\
    au procès verbal|corrección|correcciones|rectificación|al acta";

impl Choice<'_> {
    /// The passage below an addendum at the end of a document that gives a number for what the
    /// first passage, above the addendum, gives another one for.
    pub(super) fn of_addendum(&self, first: usize) -> Option<usize> {
        let has_number = |at: usize| self.candidate(at).shown().contains(char::is_numeric);
        let one = self.candidate(first);
        let is_added = |at: usize| {
            let other = self.candidate(at);
            let sections = &self.reading.blocks[other.stretch].sections;
            sections[other.section].iter().any(|heading| is_addendum(heading))
        };
        let is_meant = |at: usize| {
            self.candidate(at).stretch == one.stretch
                && matches!(self.candidate(at).shape, Shape::Unit(_))
                && !self.matches.own[at].is_empty()
                && self.scores[at].cosine >= self.scores[first].cosine - REPLACING_DROP_MAX
        };
        if self.question.is_of_past || !has_number(first) || is_added(first) {
            return None;
        }
        self.best(|at| (is_added(at) && has_number(at) && is_meant(at)).then(|| self.relevance(at)))
    }

    /// The passage that corrects the first one: the next message, a later message on the same
    /// matter that retracts it, or the item of later minutes that corrects the item of the same
    /// number.
    pub(crate) fn put_right(&self, first: usize) -> Option<usize> {
        let (one, of_first) = (self.candidate(first), &self.matches.own[first]);
        let is_behind = |at: usize| {
            let other = self.candidate(at);
            let is_next = || one.is_put_right && other.unit == one.unit + 1;
            let is_of_same = || {
                one.shape == Shape::Unit(Kind::Line)
                    && !of_first.is_empty()
                    && of_first.is_subset(&self.matches.own[at])
                    && denies(said_in(Kind::Line, &other.shown()))
            };
            other.is_beside(one)
                && other.units == 1
                && other.unit > one.unit
                && (is_next() || is_of_same())
        };
        let number = part_number(&one.shown());
        // "In item 2 the ticket costs 89 EUR, not 94" corrects no other sentence of item 2.
        let held = one.shown();
        let held: Vec<&str> = bare_words(&held).collect();
        let is_of_what_is_held = |correction: &str| {
            let denied = denied(part_of(correction, number.as_deref().unwrap_or_default()));
            denied.is_empty() || denied.iter().any(|told| tells_all(&held, told))
        };
        let is_right = |at: &usize| {
            let other = self.candidate(*at);
            is_behind(*at)
                || (matches!(other.shape, Shape::Unit(_))
                    && number.as_ref().is_some_and(|number| names_item(&other.shown(), number))
                    && self.editions.is_later(other.hit, one.hit)
                    && self.is_correction(*at)
                    && is_of_what_is_held(&other.shown()))
        };
        (0..self.reading.candidates.len()).find(is_right)
    }

    /// Whether an item announces corrections or stands below words that do.
    fn is_correction(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let tells = |text: &str| entries(CORRECTIONS).any(|word| contains(&spaced(text), word));
        let all = &self.reading.candidates;
        let before = all.iter().take(at).rev().take_while(|other| other.stretch == one.stretch);
        let mut before = before.skip_while(|other| item_number(&other.shown()).is_some());
        [&one.lead, &one.heading, &one.shown()].into_iter().any(|text| tells(text))
            || before.next().is_some_and(|other| tells(&other.shown()))
    }
}

/// The number of the item that a correction names: "item 6: it costs 36 EUR".
fn item_number(text: &str) -> Option<String> {
    let first = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_named = first.starts_with(char::is_alphabetic);
    part_number(first).filter(|_| is_named)
}

/// Whether a text mentions the item with a number: "correction to item 6: it costs 36 EUR".
fn names_item(text: &str, number: &str) -> bool {
    let words: Vec<String> = bare_words(text).map(str::to_lowercase).collect();
    words.windows(2).any(|two| is_entry(PARTS, &two[0]) && two[1] == number)
}

/// The part of a text from where it names the item with a number up to where it names another.
fn part_of<'t>(text: &'t str, number: &str) -> &'t str {
    let words: Vec<(usize, &str)> = text.unicode_word_indices().collect();
    let named = words.windows(2).filter(|two| {
        is_entry(PARTS, &two[0].1.to_lowercase()) && two[1].1.starts_with(|c: char| c.is_numeric())
    });
    let mut named = named.skip_while(|two| two[1].1 != number).map(|two| two[0].0);
    let Some(from) = named.next() else { return text };
    &text[from..named.next().unwrap_or(text.len())]
}
