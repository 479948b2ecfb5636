//! Legends: short entries such as "Blue = checked" that say what signs, colours and letters mean.

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::definitions::asks_meaning;
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::spaced;

/// The sign between a word and its meaning.
const MEANS: char = '=';

impl Choice<'_> {
    /// For a question for the meaning of something: the only passage that begins with it and the
    /// sign of a legend. "Blue = checked" defines a blue tag if its section is about tags.
    pub(crate) fn of_legend(&self) -> Option<usize> {
        let thing = self.question.thing.as_deref()?;
        if !asks_meaning(&spaced(self.question.last())) {
            return None;
        }
        let (bare, kind) = thing.rsplit_once(' ').unwrap_or((thing, ""));
        let is_one = |at: &usize| {
            let one = self.candidate(*at);
            let is_entry =
                matches!(one.shape, Shape::Unit(Kind::Sentence | Kind::Item | Kind::Line))
                    && one.units == 1;
            is_entry
                && match defined(&one.shown()).as_deref() {
                    Some(word) if word == thing => true,
                    Some(word) if word == bare => self.is_about(*at, kind),
                    _ => false,
                }
        };
        let mut found = (0..self.reading.candidates.len()).filter(is_one);
        let one = found.next()?;
        found.next().is_none().then_some(one)
    }

    /// Whether the headings above a passage or another passage of its section name a kind of
    /// things.
    fn is_about(&self, at: usize, kind: &str) -> bool {
        let kind = terms(kind);
        let one = self.candidate(at);
        let is_named = |text: &str| !kind.is_empty() && kind.is_subset(&terms(text));
        let mut others = self.reading.candidates.iter().filter(|other| other.shares_section(one));
        is_named(&one.context) || others.any(|other| is_named(&other.shown()))
    }
}

/// The words before the sign of a legend, in lower case.
fn defined(text: &str) -> Option<String> {
    let (before, behind) = text.split_once(MEANS)?;
    let is_sign = before.ends_with(' ') && behind.starts_with(' ');
    let word = spaced(before.trim_start_matches(|c: char| !c.is_alphanumeric()));
    is_sign.then(|| word.trim().to_owned())
}
