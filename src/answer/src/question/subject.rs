//! The previous question, asked again for another subject: "And Pinfold?" after "What curve is set
//! in Fennel Row?" becomes "What curve is set in Pinfold?".
//!
//! This applies only if one place in the previous question can be meant: the value after the same
//! noun ("zone A", "and zone C?"), its only amount in the same unit ("8 m", "and for 11 m?"), its
//! only name, or all that it asks about ("Who is the treasurer?", "and the secretary?").

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::phrase::{is_be, is_predicate};
use crate::text::values::{is_calendar_word, quantities};
use crate::text::words::{entries, is_entry, is_interrogative, is_reference};

/// Phrases before the new subject; a phrase that begins with another one comes first.
const LEADS: &str = "\
    and what about|and how about|what about|how about|what if it's|what if it is|and if it's|\
    and|or|und was ist mit|was ist mit|und|oder|et pour|et|ou|qué hay de|y|o";
/// Words between such a phrase and the subject.
const PARTICLES: &str = "\
    in|at|for|on|to|of|with|from|by|the|a|an|für|im|bei|der|die|das|pour|le|la|les|en|para|el|los";
/// Articles before a noun, and words that begin another part of a question.
const ARTICLES: &str = "the|a|an|der|die|das|le|la|les|el|los|las";
const PARTS: &str =
    "in|at|for|on|to|of|with|from|by|and|or|that|which|if|when|während|von|de|del|du";
/// Maximum number of words in a subject.
const SUBJECT_WORDS_MAX: usize = 4;

/// The previous question with the subject of the new one, if the new one consists of nothing else.
pub(crate) fn substituted(question: &str, before: &str) -> Option<String> {
    let subject = subject(question)?;
    let words: Vec<(usize, &str)> = before.unicode_word_indices().collect();
    let meant = same_noun(&subject, &words)
        .or_else(|| same_unit(&subject, before))
        .or_else(|| only_name(&subject, &words))
        .or_else(|| only_noun(question, &subject, &words))?;
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
    let words = rest.split_whitespace().skip_while(|word| *word == ",");
    let words: Vec<&str> = words.skip_while(|word| is_entry(PARTICLES, word)).collect();
    let is_other = |word: &&str| is_interrogative(word) || is_reference(word);
    let is_subject = (1..=SUBJECT_WORDS_MAX).contains(&words.len()) && !words.iter().any(is_other);
    is_subject.then(|| words.join(" "))
}

/// The bytes of the subject's noun and the word after it in the previous question, if they occur
/// once.
fn same_noun(subject: &str, words: &[(usize, &str)]) -> Option<Range<usize>> {
    let (noun, _) = subject.split_once(' ')?;
    let noun = noun.to_lowercase();
    let mut pairs = words.windows(2).filter(|pair| pair[0].1.to_lowercase() == noun);
    let pair = pairs.next()?;
    let (end, last) = pair[1];
    pairs.next().is_none().then_some(pair[0].0..end + last.len())
}

/// The bytes of the only amount in the unit of the subject, if that is an amount.
fn same_unit(subject: &str, before: &str) -> Option<Range<usize>> {
    let amounts = quantities(subject);
    let [amount] = amounts.as_slice() else { return None };
    if amount.unit.is_empty() || amount.bytes != (0..subject.len()) {
        return None;
    }
    let mut alike = quantities(before).into_iter().filter(|one| one.unit == amount.unit);
    let meant = alike.next()?;
    alike.next().is_none().then_some(meant.bytes)
}

/// The bytes of the noun that the previous question is about, if it consists of a question word, a
/// form of "be", and that noun with an article, and the new subject is a noun with an article too.
fn only_noun(question: &str, subject: &str, words: &[(usize, &str)]) -> Option<Range<usize>> {
    let has_article = question.unicode_words().any(|word| is_entry(ARTICLES, word));
    let asks_noun = |word: &str| word.starts_with(char::is_lowercase) || is_entry(ARTICLES, word);
    let (opening, noun) = words.split_at_checked(3)?;
    let is_plain = is_interrogative(opening[0].1)
        && is_be(opening[1].1)
        && is_entry(ARTICLES, opening[2].1)
        && has_article
        && subject.unicode_words().all(asks_noun);
    let count = noun.iter().take_while(|(_, word)| !is_predicate(word)).count();
    let is_other = |word: &str| is_entry(PARTS, word) || is_interrogative(word) || is_be(word);
    let is_only = (1..=SUBJECT_WORDS_MAX).contains(&count)
        && noun[count..].iter().all(|(_, word)| is_predicate(word))
        && !noun[..count].iter().any(|(_, word)| is_other(word) || !asks_noun(word));
    let (end, last) = *noun.get(count.checked_sub(1)?)?;
    (is_plain && is_only).then_some(noun[0].0..end + last.len())
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
    fn an_amount_or_a_noun_takes_the_place_of_one_of_its_kind() {
        for (question, before, expected) in [
            (
                "And for 11 kg?", "What does a parcel of 8 kg cost?",
                "What does a parcel of 11 kg cost?",
            ),
            ("And the secretary?", "Who is the treasurer?", "Who is the secretary?"),
            ("And the red kiln?", "When is the pool open?", "When is the red kiln open?"),
        ] {
            assert_eq!(substituted(question, before).as_deref(), Some(expected));
        }
        for (question, before) in [
            ("And for 11 kg?", "What does a parcel of 8 kg or 9 kg cost?"),
            ("And for 11 kg?", "What does a parcel of 8 litres cost?"),
            ("And the secretary?", "When does the treasurer speak?"),
            ("And the fee?", "Who is the head of glazing?"),
            ("And in winter?", "When is the pool open?"),
        ] {
            assert_eq!(substituted(question, before), None, "{question}");
        }
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
