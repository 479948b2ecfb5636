//! The two sides of a comparison: the rows that it names by their keys ("the ketch or the big
//! ketch"), and the passage on the other edition or thing.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::passages::candidates::Shape;
use crate::selection::choose::Choice;
use crate::text::terms::is_common;
use crate::text::words::spaced;

/// Number of rows that a comparison names.
const SIDES: usize = 2;
/// Minimum confidence of a passage of another edition, or on the other of two compared things.
const OTHER_CONFIDENCE_MIN: f32 = 0.75;
/// Loss of relevance of a passage of another edition that is a sentence where the first is a row,
/// or vice versa.
const OTHER_FORM_DROP: f32 = 0.1;

impl Choice<'_> {
    /// The two rows of the first one's table whose keys occur whole in a question that compares, in
    /// its order. A key within a longer one is not named by it, and a key of several rows names
    /// none.
    pub(crate) fn sides_by_key(&self, first: usize) -> Option<Vec<usize>> {
        let mates = self.mates(first);
        if !self.question.compares || mates.len() < SIDES {
            return None;
        }
        let names = self.keys_of(&mates);
        let keys = mates.iter().filter_map(|at| {
            let mut cells = self.candidate(*at).cells.iter();
            let key = cells.rfind(|cell| names.contains(cell.name.as_str()))?;
            Some((spaced(&key.value.replace('_', " ")), *at))
        });
        let mut keys: Vec<(String, usize)> = keys.collect();
        keys.sort_by_key(|(key, _)| Reverse(key.len()));
        let mut asked = spaced(self.question.last());
        let mut named: Vec<(usize, usize)> = Vec::new();
        for (key, at) in &keys {
            let said = key.trim();
            let is_name = said.chars().count() > 1 && !is_common(said);
            let Some(place) = asked.find(key.as_str()).filter(|_| is_name) else { continue };
            if keys.iter().filter(|(other, _)| other == key).count() > 1 {
                return None;
            }
            // Blanks keep the places of the words behind, and a blank on either side.
            let end = place + key.len();
            asked.replace_range(place + 1..end - 1, &" ".repeat(said.len()));
            named.push((place, *at));
        }
        named.sort_unstable();
        (named.len() == SIDES).then(|| named.into_iter().map(|(_, at)| at).collect())
    }

    /// The passage of another edition on the matter of the first one, if both editions are asked
    /// about.
    pub(crate) fn of_other_edition(&self, first: usize) -> Option<usize> {
        let one = self.candidate(first);
        self.best(|at| {
            let other = self.candidate(at);
            let is_fit = other.stretch != one.stretch
                && matches!(other.shape, Shape::Unit(_))
                && !other.is_lead
                && self.scores[at].confidence(&self.evidence) >= OTHER_CONFIDENCE_MIN
                && self.editions.are_compared(one.hit, other.hit);
            let is_alike = other.has_values() == one.has_values();
            let drop = if is_alike { 0.0 } else { OTHER_FORM_DROP };
            is_fit.then(|| self.relevance(at) - drop)
        })
    }

    /// Which of the two things named in the question a passage is about, judged by its words,
    /// headings and title; `None` if it is about neither or both.
    pub(crate) fn side_of(&self, at: usize) -> Option<usize> {
        let (one, other) = self.question.sides.as_ref()?;
        let (own, above) = (&self.matches.own[at], &self.matches.above[at]);
        let is_of = |side: &BTreeSet<String>| {
            side.iter().all(|term| own.contains(term) || above.contains(term))
        };
        match (is_of(one), is_of(other)) {
            (true, false) => Some(0),
            (false, true) => Some(1),
            _ => None,
        }
    }

    /// The passage of another source that tells of one named thing what the first passage tells of
    /// the other.
    pub(crate) fn of_other_side(&self, first: usize) -> Option<usize> {
        let side = self.side_of(first)?;
        let sides = self.question.sides.as_ref()?;
        let is_matter = |term: &&String| !sides.0.contains(*term) && !sides.1.contains(*term);
        let matter = |at: usize| -> BTreeSet<&String> {
            self.matches.own[at].iter().filter(is_matter).collect()
        };
        let (one, of_first) = (self.candidate(first), matter(first));
        let is_fit = |at: &usize| {
            let other = self.candidate(*at);
            other.stretch != one.stretch
                && matches!(other.shape, Shape::Unit(_))
                && !other.is_lead
                && self.side_of(*at) == Some(1 - side)
                && self.scores[*at].confidence(&self.evidence) >= OTHER_CONFIDENCE_MIN
                && !of_first.is_disjoint(&matter(*at))
        };
        let fits = (0..self.reading.candidates.len()).filter(is_fit);
        let share = |at: usize| self.matches.weights.share(matter(at).into_iter());
        fits.max_by(|a, b| {
            let by_matter = share(*a).total_cmp(&share(*b));
            by_matter.then(self.scores[*a].first().total_cmp(&self.scores[*b].first()))
        })
    }
}
