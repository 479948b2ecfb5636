//! The previous question, asked again for another subject: "And Pinfold?" after "What curve is set
//! in Fennel Row?" becomes "What curve is set in Pinfold?".
//!
//! This applies only if one place in the previous question can be meant: the value after the same
//! noun ("zone A", "and zone C?"), or its only name.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::values::is_calendar_word;
use crate::text::words::{entries, is_entry, is_interrogative, is_reference};

/// Phrases before the new subject; a phrase that begins with another one comes first.
const LEADS: &str = "\
    and what about|and how about|what about|how about|what if it's|what if it is|and if it's|\
    and|or|und was ist mit|was ist mit|und|oder|et pour|et|ou|qué hay de|y|o";
/// Words between such a phrase and the subject.
const PARTICLES: &str = "\
    in|at|for|on|to|of|with|from|by|the|a|an|für|im|bei|der|die|das|pour|le|la|les|en|para|el|los";
/// Maximum number of words in a subject.
const SUBJECT_WORDS_MAX: usize = 4;

/// The previous question with the subject of the new one, if the new one consists of nothing else.
pub(crate) fn substituted(question: &str, before: &str) -> Option<String> {
    let subject = subject(question)?;
    let words: Vec<(usize, &str)> = before.unicode_word_indices().collect();
    let meant = same_noun(&subject, &words).or_else(|| only_name(&subject, &words))?;
    Some(format!("{}{subject}{}", &before[..meant.start], &before[meant.end..]))
}

/// The subject of a question that holds nothing else.
fn subject(question: &str) -> Option<String> {
    let question = question.trim_end_matches(['?', '.', '!', ' ', '\u{A0}']).trim_start();
    let folded = question.to_lowercase().replace('\u{2019}', "'");
    let behind = entries(LEADS).find_map(|lead| {
        let rest = folded.strip_prefix(lead)?;
        rest.starts_with([' ', ',']).then_some(rest.len())
    })?;
    // Lower-casing may change the length of a text.
    let rest = question.get(question.len().checked_sub(behind)?..)?;
    let mut words: Vec<&str> = rest.split_whitespace().skip_while(|word| *word == ",").collect();
    while words.first().is_some_and(|word| is_entry(PARTICLES, word)) {
        words.remove(0);
    }
    let is_other = |word: &&str| is_interrogative(word) || is_reference(word);
    let is_subject = (1..=SUBJECT_WORDS_MAX).contains(&words.len()) && !words.iter().any(is_other);
    is_subject.then(|| words.join(" "))
}

/// The bytes of the subject's noun and the word after it in the previous question, if they occur
/// once.
fn same_noun(subject: &str, words: &[(usize, &str)]) -> Option<Range<usize>> {
    let (noun, _) = subject.split_once(' ')?;
    let mut pairs = words.windows(2).filter(|pair| pair[0].1.to_lowercase() == noun.to_lowercase());
    let pair = pairs.next()?;
    let (end, last) = pair[1];
    pairs.next().is_none().then_some(pair[0].0..end + last.len())
}

/// The bytes of the only run of capitalised words after the first word.
fn only_name(subject: &str, words: &[(usize, &str)]) -> Option<Range<usize>> {
    if !subject.starts_with(char::is_uppercase) || is_calendar(subject) {
        return None;
    }
    let is_name =
        |word: &str| word.starts_with(char::is_uppercase) && word != "I" && !is_interrogative(word);
    let goes_on = |word: &str| is_name(word) || word.bytes().all(|byte| byte.is_ascii_digit());
    let first = words.iter().skip(1).position(|(_, word)| is_name(word))? + 1;
    let count = words[first..].iter().take_while(|(_, word)| goes_on(word)).count();
    let rest = &words[first + count..];
    let run = &words[first..first + count];
    let is_only = !rest.iter().any(|(_, word)| is_name(word));
    let is_dated = run.iter().any(|(_, word)| is_calendar(word));
    let (end, last) = *run.last()?;
    (is_only && !is_dated).then_some(run[0].0..end + last.len())
}

fn is_calendar(text: &str) -> bool {
    text.unicode_words().any(is_calendar_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_takes_the_place_of_the_one_before() {
        let curve = "What heating curve is set in Fennel Row?";
        let told = |question, before| substituted(question, before).unwrap_or_default();
        assert_eq!(told("And Pinfold?", curve), "What heating curve is set in Pinfold?");
        assert_eq!(
            told("what about in Tarn Hollow", curve),
            "What heating curve is set in Tarn Hollow?"
        );
        let zone = "What does a pallet to zone A cost in 2025?";
        assert_eq!(told("and zone C?", zone), "What does a pallet to zone C cost in 2025?");
        let class = "How fast do you come for a class A repair?";
        assert_eq!(
            told("what if it's class B", class),
            "How fast do you come for a class B repair?"
        );
        let lift = "How many people does the lift in Winnock Tower 1 carry?";
        assert_eq!(
            told("And in Pinfold?", lift),
            "How many people does the lift in Pinfold carry?"
        );
    }

    #[test]
    fn what_may_mean_several_things_is_left() {
        for (question, before) in [
            ("And Ada Brown?", "When did Tom Reed join Acme?"),
            ("And in Paris?", "Who designed the tower?"),
            ("and when?", "When does N3 leave Tarnbridge?"),
            ("And for her?", "Who is Ada Tarn?"),
            ("And July?", "Who is on call in June at the Lido?"),
            ("And in July?", "Who is on call in June?"),
            ("and for the tower with the old one?", "How high is Tower Winnock?"),
            ("Pinfold?", "What curve is set in Fennel Row?"),
        ] {
            assert_eq!(substituted(question, before), None, "{question}");
        }
    }
}
