//! Cases: the items of a list that tell of one thing in several cases, for a question that compares
//! two: "Berths until June: free. Berths from July: half price".

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::selection::choose::{Choice, PASSAGES_MAX};
use crate::text::terms::{is_common, terms};

/// Number of quantities by which a question tells its cases apart.
const CASES_MIN: usize = 2;

impl Choice<'_> {
    /// For a question that compares cases by their numbers: the items of the first one's list that
    /// begin with the same word of the question as it does, in order.
    pub(crate) fn of_cases(&self, first: usize) -> Option<Vec<usize>> {
        let question = self.question;
        let is_compared = question.compares && question.quantities.len() >= CASES_MIN;
        let one = self.candidate(first);
        if !is_compared || one.shape != Shape::Unit(Kind::Item) {
            return None;
        }
        let word = opening(&one.shown()).filter(|word| !is_common(word))?;
        if terms(&word).is_empty() || !terms(&word).is_subset(&self.matches.own[first]) {
            return None;
        }
        let is_case = |at: &usize| {
            let other = self.candidate(*at);
            other.shape == one.shape
                && other.is_beside(one)
                && opening(&other.shown()).as_ref() == Some(&word)
        };
        let cases: Vec<usize> = (0..self.reading.candidates.len()).filter(is_case).collect();
        (CASES_MIN..=PASSAGES_MAX).contains(&cases.len()).then_some(cases)
    }
}

/// The first word of a text, in lower case.
fn opening(text: &str) -> Option<String> {
    text.unicode_words().next().map(str::to_lowercase)
}
