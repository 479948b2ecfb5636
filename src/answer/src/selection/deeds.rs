//! Measures: the list or table of a report that says what is done after an event.

use std::collections::{BTreeMap, BTreeSet};

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::relevance::form::{DEED_NOUNS, is_of_deeds};
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::{Choice, SAME};
use crate::selection::rows::SELECTED_MAX;
use crate::text::terms::terms;
use crate::text::words::is_entry;

/// Nouns of measures that also name what somebody always has to do.
const OF_ROUTINE: &str = "steps|duties|tasks|aufgaben|tâches|tareas";
/// Words beside the measures in a question that tell nothing about the event.
const BESIDE: &str = "\
    taken agreed decided adopted introduced planned ordered follow followed come came out after \
    since because result resulted learn learned learnt \
    ergriffen beschlossen prises décidées tomadas adoptadas";
/// Minimum share of the event that a report has to name.
const SHARE_MIN: f32 = 0.5;

impl Choice<'_> {
    /// For a question for the measures after an event: the list or table below the heading of the
    /// measures in the report that tells most of the event. `None` if no report tells half of it.
    pub(crate) fn of_deeds(&self) -> Option<Vec<usize>> {
        let noun = self.question.noun.as_deref()?;
        let event = self.event(noun);
        let is_other = !is_entry(DEED_NOUNS, noun)
            || is_entry(OF_ROUTINE, noun)
            || self.question.selects_open()
            || self.question.is_computed();
        if is_other || event.is_empty() {
            return None;
        }
        let mut told: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (at, one) in self.reading.candidates.iter().enumerate() {
            let all = self.matches.own[at].union(&self.matches.above[at]);
            let of_text = told.entry(one.stretch).or_insert_with(|| {
                terms(&self.editions.names(one.hit)[0].replace(['-', '_'], " "))
            });
            of_text.extend(all.cloned());
        }
        let share =
            |stretch: usize| self.matches.weights.share(told[&stretch].intersection(&event));
        let whole = self.matches.weights.share(event.iter());
        let is_deed = |at: &usize| {
            let one = self.candidate(*at);
            let is_told = matches!(one.shape, Shape::Unit(Kind::Row | Kind::Item));
            is_told && !one.is_lead && is_of_deeds(self.question, one)
        };
        let deeds: Vec<usize> = (0..self.reading.candidates.len()).filter(is_deed).collect();
        let better = |best: usize, at: &usize| match share(self.candidate(*at).stretch) {
            of_other if of_other > share(self.candidate(best).stretch) + SAME => *at,
            _ => best,
        };
        let best = deeds.iter().fold(*deeds.first()?, better);
        if share(self.candidate(best).stretch) < SHARE_MIN * whole {
            return None;
        }
        let head = self.candidate(best);
        let is_one = |at: &usize| self.candidate(*at).is_beside(head);
        let found: Vec<usize> = deeds.into_iter().filter(is_one).collect();
        let found = self.without_widened(found);
        (found.len() <= SELECTED_MAX).then_some(found)
    }

    /// The terms of a question for measures that say after which event.
    fn event(&self, noun: &str) -> BTreeSet<String> {
        let known = &light_terms(self.question) | &terms(&format!("{noun} {BESIDE}"));
        &wanted_terms(self.question) - &known
    }
}
