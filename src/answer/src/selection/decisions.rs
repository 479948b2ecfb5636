//! Decisions: those recorded in minutes, for questions that ask for all of them or for those on a
//! matter.

use std::collections::{BTreeMap, BTreeSet};

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::phrases::DECISIONS;
use crate::relevance::weights::light_terms;
use crate::selection::choose::{Choice, PASSAGES_MAX, ROWS_MAX, SAME};
use crate::selection::rows::SELECTED_MAX;
use crate::text::dates;
use crate::text::terms::terms;
use crate::text::values::{Day, days, is_calendar_word};
use crate::text::words::{contains, entries, is_entry, spaced};

/// Words between "decided" and its matter, and before a meeting.
const ABOUT: &str = "\
    about|regarding|concerning|on|for|über|bezüglich|zu|zum|zur|sur|concernant|sobre|respecto";
const AT: &str = "at|during|auf|bei|lors|durante";
/// Minimum number of items in minutes.
const ITEMS_MIN: usize = 3;
/// Weight of what the paragraph of a decision holds of the matter, beside the decision itself.
const BESIDE_SHARE: f32 = 0.5;

impl Choice<'_> {
    /// A decision from the document whose title or headings name the day asked for, if those of the
    /// first passage do not.
    pub(crate) fn of_day(&self, first: usize) -> Option<usize> {
        let days: Vec<String> =
            self.question.days.iter().filter_map(|day| day.terms().into_iter().next()).collect();
        let is_of_day = |at: &usize| days.iter().any(|day| self.matches.above[*at].contains(day));
        if !self.question.is_of_decisions || is_of_day(&first) {
            return None;
        }
        (0..self.reading.candidates.len()).filter(|at| self.decides(*at)).find(|at| is_of_day(at))
    }

    /// Whether a passage states a decision.
    fn decides(&self, at: usize) -> bool {
        let one = self.candidate(at);
        let text = spaced(&one.shown());
        matches!(one.shape, Shape::Unit(_))
            && !one.is_lead
            && entries(DECISIONS).any(|word| contains(&text, word))
            && !contains(&text, "not decided")
    }

    /// All decisions in the document of the first passage, if the question asks for them; only
    /// those on the matter and of the day that it names. Empty if the document names another day.
    pub(crate) fn of_decisions(&self, first: usize) -> Option<Vec<usize>> {
        if !self.question.is_of_decisions {
            return None;
        }
        if let Some(items) = self.of_agenda(first) {
            return Some(items);
        }
        let is_one = |at: &usize| {
            self.candidate(*at).stretch == self.candidate(first).stretch && self.decides(*at)
        };
        let found: Vec<usize> = (0..self.reading.candidates.len()).filter(is_one).collect();
        let mut found = self.without_widened(found);
        let on_matter = self.on_matter(&found, first);
        let is_on_matter = on_matter.is_some();
        found = on_matter.unwrap_or(found);
        let has_matter = !matter(self.question.last()).is_empty();
        let is_of_day = |at: &usize| !self.is_of_other_day(*at, has_matter);
        let of_day: Vec<usize> = found.iter().copied().filter(is_of_day).collect();
        if of_day.is_empty() && !found.is_empty() {
            return Some(of_day);
        }
        found = of_day;
        if let (true, [one]) = (is_on_matter, &found[..]) {
            return Some(self.with_rest(*one));
        }
        found.truncate(ROWS_MAX);
        (found.len() > 1).then_some(found)
    }

    /// The items of the minutes of the day asked for, if few of them say in so many words that they
    /// were decided: "Roof: Strutt gets the job". `None` if the question names a matter.
    fn of_agenda(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let named = self.editions.named_day(one.hit)?;
        let is_named = |day: &Day| names_day(day, &named);
        if !self.question.days.iter().any(is_named) || !matter(self.question.last()).is_empty() {
            return None;
        }
        let groups = &self.reading.blocks[one.stretch].groups;
        let is_item = |at: &usize| {
            let other = self.candidate(*at);
            other.stretch == one.stretch
                && other.shape == Shape::Unit(Kind::Item)
                && groups[other.group].is_numbered
        };
        let mut agenda: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in (0..self.reading.candidates.len()).filter(is_item) {
            agenda.entry(self.candidate(at).group).or_default().push(at);
        }
        let items = agenda.into_values().max_by_key(Vec::len)?;
        let decided = items.iter().filter(|at| self.decides(**at)).count();
        let is_agenda = (ITEMS_MIN..=SELECTED_MAX).contains(&items.len());
        (is_agenda && 2 * decided < items.len()).then_some(items)
    }

    /// The decisions that hold most of the matter named after "about" in the question, in
    /// themselves, their heading or their paragraph; `None` if none holds half of it, or all do.
    fn on_matter(&self, found: &[usize], first: usize) -> Option<Vec<usize>> {
        let [file, title] = self.editions.names(self.candidate(first).hit);
        let matter = &matter(self.question.last()) - &terms(&format!("{file}\n{title}"));
        let matter = &matter - &light_terms(self.question);
        let share = |held: &BTreeSet<String>| {
            self.matches.weights.share(matter.iter().filter(|term| held.contains(*term)))
        };
        let whole = share(&matter);
        let mut groups: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
        for (one, own) in self.reading.candidates.iter().zip(&self.matches.own) {
            groups.entry((one.stretch, one.group)).or_default().extend(own.iter().cloned());
        }
        let held = |at: &usize| {
            let one = self.candidate(*at);
            let near = &self.matches.own[*at] | &terms(&one.heading);
            let is_prose = one.shape == Shape::Unit(Kind::Sentence);
            let beside = groups.get(&(one.stretch, one.group)).filter(|_| is_prose);
            let around = beside.map_or_else(|| near.clone(), |beside| &near | beside);
            share(&near) + BESIDE_SHARE * share(&around)
        };
        let shares: Vec<f32> = found.iter().map(held).collect();
        let most = shares.iter().copied().fold(0.0_f32, f32::max);
        let kept = found.iter().zip(&shares).filter(|(_, share)| **share >= most - SAME);
        let kept: Vec<usize> = kept.map(|(at, _)| *at).collect();
        let is_enough = whole > SAME && most >= BESIDE_SHARE * whole / 2.0;
        (is_enough && kept.len() < found.len()).then_some(kept)
    }

    /// Whether a decision is from a document named after another day than the question asks for.
    /// The first lines of the document may name the day, too. If the question names a matter, the
    /// day may belong to that: "the party on 20 June".
    fn is_of_other_day(&self, at: usize, has_matter: bool) -> bool {
        let asked: Vec<String> = self.question.days.iter().flat_map(|day| day.terms()).collect();
        let has = |held: &BTreeSet<String>| asked.iter().any(|day| held.contains(day));
        let Some(named) = self.editions.named_day(self.candidate(at).hit) else { return false };
        let is_named = |day: &Day| names_day(day, &named);
        let is_told_near = || {
            let one = self.candidate(at);
            let mut near =
                self.reading.candidates.iter().zip(&self.matches.own).filter(|(it, _)| {
                    let is_first = it.stretch == one.stretch && it.group == 0;
                    is_first || (has_matter && it.shares_section(one))
                });
            near.any(|(_, own)| has(own))
        };
        let mut days = self.question.days.iter().filter(|day| day.day.is_some()).peekable();
        days.peek().is_some()
            && !days.any(is_named)
            && !has(&self.matches.above[at])
            && !has(&self.matches.own[at])
            && !is_told_near()
    }

    /// A decision with the sentences after it in its paragraph, up to the limit of an answer.
    fn with_rest(&self, one: usize) -> Vec<usize> {
        let mut chosen = vec![one];
        let all = 0..self.reading.candidates.len();
        while let Some(last) = chosen.last().copied().filter(|_| chosen.len() < PASSAGES_MAX) {
            let last = self.candidate(last);
            let is_next = |at: &usize| {
                let other = self.candidate(*at);
                other.shape == Shape::Unit(Kind::Sentence)
                    && last.shape == other.shape
                    && other.is_beside(last)
                    && other.unit == last.unit + 1
                    && !other.is_lead
            };
            let Some(next) = all.clone().find(is_next) else { break };
            // A sentence that points back already begins with the one before it.
            if self.candidate(next).repeats(last) {
                chosen.pop();
            }
            chosen.push(next);
        }
        chosen
    }
}

/// Whether a day that may lack its year is the day that a document is named after.
fn names_day(day: &Day, named: &dates::Day) -> bool {
    (day.month, day.day) == (named.month, Some(named.day))
        && day.year.is_none_or(|year| year == named.year)
}

/// The terms after the first word for "about" behind a word of deciding, up to one for "at",
/// without days.
fn matter(question: &str) -> BTreeSet<String> {
    let words = question.unicode_words().map(str::to_lowercase);
    let mut words = words.skip_while(|word| !is_entry(DECISIONS, word)).peekable();
    let is_of_day =
        |word: &String| word.starts_with(|c: char| c.is_ascii_digit()) || is_calendar_word(word);
    while let Some(word) = words.next() {
        if is_entry(ABOUT, &word) && words.peek().is_some_and(|next| !is_of_day(next)) {
            break;
        }
    }
    let matter: Vec<String> = words.take_while(|word| !is_entry(AT, word)).collect();
    let of_days = days(question).into_iter().flat_map(|(_, day)| day.terms());
    let of_days: BTreeSet<String> = of_days.collect();
    let parts = matter.iter().filter(|word| !is_of_day(word)).map(String::as_str);
    &terms(&parts.collect::<Vec<_>>().join(" ")) - &of_days
}
