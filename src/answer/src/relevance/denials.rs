//! Lists of what is not so or not allowed.

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::candidates::Candidate;
use crate::question::openers::asking;
use crate::question::wish::{Question, Wanted};
use crate::text::words::{is_interrogative, tells_negation};

/// Whether a question asks for several things that are not so or not allowed, unlike "We are not
/// content. Which steps follow?".
pub(crate) fn asks_denied(question: &Question) -> bool {
    question.is_negated
        && question.wanted == Wanted::List
        && tells_negation(asking(question.last()))
}

/// Whether a list tells what is not so or not allowed: the text above it says so, or at least half
/// of its items do. A single "never" among steps does not make them a list of prohibitions, nor
/// does a heading that only states what the steps are against.
pub(crate) fn denies(list: &Candidate) -> bool {
    let denying = list.parts.iter().filter(|part| tells_negation(&part.shown)).count();
    is_below_denial(list) || 2 * denying >= list.parts.len()
}

/// Whether a passage may follow a first one that tells what must not be done, if the question asks
/// for that: it tells so as well.
pub(crate) fn goes_on_denying(question: &Question, first: &Candidate, next: &Candidate) -> bool {
    let tells = |one: &Candidate| tells_negation(&one.shown());
    !asks_denied(question) || !tells(first) || tells(next) || is_below_denial(next)
}

/// Whether the text above a passage says that something is not so or not allowed. A heading above
/// numbered steps that states a trouble does not.
pub(crate) fn is_below_denial(passage: &Candidate) -> bool {
    let is_numbered = || passage.parts.iter().all(|part| part.shown.starts_with(is_digit));
    let heading = &passage.heading;
    let is_headed = tells_negation(heading) && !(states(heading) && is_numbered());
    is_headed || tells_negation(&passage.lead)
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Whether a heading states that something is not so, as "2. The lamp does not burn", rather than
/// "What not to burn" or "No entry".
fn states(heading: &str) -> bool {
    let mut words = heading.unicode_words().map(str::to_lowercase);
    let first = words.find(|word| !word.starts_with(is_digit)).unwrap_or_default();
    !is_interrogative(&first) && !tells_negation(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: headings of troubles are told from headings of prohibitions.
    #[test]
    fn a_heading_states_a_trouble_or_forbids() {
        assert!(states("2. The lamp does not burn") && states("Lamp out, no spare"));
        assert!(!states("4 What not to burn") && !states("Never burn") && !states("No entry"));
    }
}
