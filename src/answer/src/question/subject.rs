//! The previous question, asked again for another subject: "And Pinfold?" after "What curve is set
//! in Fennel Row?" becomes "What curve is set in Pinfold?".
//!
//! This applies only if one place in the previous question can be meant: the value after the same
//! noun ("zone A", "and zone C?"), its only amount in the same unit ("8 m", "and for 11 m?"), its
//! only day ("on 5 May", "and on the 6th?"), its only name, or all that it asks about ("Who is the
//! treasurer?", "and the secretary?").

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::phrase::{self, is_be, is_predicate};
use crate::text::values::{Day, days, is_calendar_word, ordinal_number, quantities, weekday};
use crate::text::words::{entries, is_entry, is_interrogative, is_reference};

/// Phrases before the new subject; a phrase that begins with another one comes first.
const LEADS: &str = "\
    and what about|and how about|what about|how about|what if it's|what if it is|and if it's|\
    and|or|und was ist mit|was ist mit|und|oder|et pour|et|ou|qué hay de|y|o";
/// Words between such a phrase and the subject.
const PARTICLES: &str = "\
    in|at|for|on|to|of|with|from|by|the|a|an|für|im|am|bei|der|die|das|pour|le|la|les|en|para|el|\
    los";
/// Words before a day.
const BEFORE_DAYS: &str = "on|am|le|el|los|every|each";
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
    if let Some(asked) = another_day(question, &subject, before, &words) {
        return Some(asked);
    }
    let meant = same_noun(&subject, &words)
        .or_else(|| same_unit(&subject, before))
        .or_else(|| only_name(&subject, &words))
        .or_else(|| same_code(question, &subject, before))
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

/// The previous question with another day, if it names one day and the subject is one too.
fn another_day(
    question: &str,
    subject: &str,
    before: &str,
    words: &[(usize, &str)],
) -> Option<String> {
    let is_other = |word: &str| weekday(word).is_some();
    let told = days(before);
    let [(bytes, day)] = told.as_slice() else {
        // "On Sunday", for which no date is named.
        let mut named = (1..words.len()).filter(|at| is_other(words[*at].1));
        let (at, other) = (named.next()?, named.next());
        let is_placed = told.is_empty() && is_entry(BEFORE_DAYS, words[at - 1].1);
        let (start, word) = words[at];
        return (is_placed && other.is_none() && is_other(subject))
            .then(|| format!("{}{subject}{}", &before[..start], &before[start + word.len()..]));
    };
    let old = day.day?;
    // "And the 4th?" may be the fourth of something else.
    let is_ordinal = |(at, word): &(usize, &str)| {
        !bytes.contains(at) && !is_number(word) && ordinal_number(word).is_some()
    };
    let numbered = || {
        let number = number_of_day(question, subject).filter(|_| !words.iter().any(is_ordinal))?;
        with_number(&before[bytes.clone()], old, number)
    };
    let new = match is_other(subject) {
        true => subject.to_owned(),
        false => whole_day(subject, *day).or_else(numbered)?,
    };
    // The day of the week is that of the other day.
    let behind = words.partition_point(|(at, _)| *at < bytes.start);
    let last = behind.checked_sub(1).and_then(|last| words.get(last));
    let start = last.filter(|(_, word)| is_other(word)).map_or(bytes.start, |(at, _)| *at);
    Some(format!("{}{new}{}", &before[..start], &before[bytes.end..]))
}

/// A subject that is a day, with the year of the other day if it names none.
fn whole_day(subject: &str, other: Day) -> Option<String> {
    let told = days(subject);
    let [(bytes, day)] = told.as_slice() else { return None };
    day.day.filter(|_| *bytes == (0..subject.len()))?;
    match (other.year, day.year) {
        (Some(year), None) => Some(format!("{subject} {year}")),
        _ => Some(subject.to_owned()),
    }
}

/// The day of the month that a subject names without its month: "6th" or, behind a word for days,
/// "6".
fn number_of_day(question: &str, subject: &str) -> Option<u32> {
    let is_placed = || question.unicode_words().any(|word| is_entry(BEFORE_DAYS, word));
    ordinal_number(subject).filter(|_| !is_number(subject) || is_placed())
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A day as it is written, with another number in the place of that of the day.
fn with_number(day: &str, old: u32, new: u32) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let first = day.find(is_digit)?;
    let end = day[first..].find(|c| !is_digit(c)).map_or(day.len(), |length| first + length);
    // 2026-05-06.
    let is_year_first = end - first == 4;
    let run =
        if is_year_first { day.trim_end_matches(is_digit).len()..day.len() } else { first..end };
    day[run.clone()].parse().ok().filter(|number: &u32| *number == old)?;
    let suffix = day[run.end..].bytes().take_while(u8::is_ascii_alphabetic).count();
    let width = run.len();
    Some(format!("{}{new:0width$}{}", &day[..run.start], &day[run.end + suffix..]))
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

/// The bytes of the only code of the same form, if the subject is a code: "the PDL" for "the FDL".
fn same_code(question: &str, subject: &str, before: &str) -> Option<Range<usize>> {
    let form = form_of_code(subject)?;
    let has_article = |text: &str| {
        let word = text.unicode_words().next_back();
        word.is_some_and(|word| is_entry(ARTICLES, word))
    };
    let words = phrase::words(before);
    let mut alike = words.iter().filter(|word| form_of_code(word.text).as_ref() == Some(&form));
    let (code, other) = (alike.next()?, alike.next());
    let start = question.rfind(subject)?;
    let is_alike = has_article(&before[..code.start]) == has_article(&question[..start]);
    (other.is_none() && is_alike).then(|| code.start..code.start + code.text.len())
}

/// The letters and digits of a code with a capital by their kind, each run once; `None` for other
/// words.
fn form_of_code(word: &str) -> Option<String> {
    let is_one = !word.contains(char::is_whitespace);
    let word = phrase::words(word).into_iter().next().filter(|word| is_one && word.is_code())?;
    let kind = |c: char| match c {
        _ if c.is_ascii_digit() => '0',
        _ if c.is_uppercase() => 'A',
        _ if c.is_lowercase() => 'a',
        _ => c,
    };
    let mut form: Vec<char> = word.text.chars().map(kind).collect();
    form.dedup();
    // "4th" and "8kg" are numbers.
    form.contains(&'A').then(|| form.into_iter().collect())
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
    fn a_day_takes_the_place_of_the_only_day() {
        for (question, before, expected) in [
            ("and on the 9th?", "Who milks on 8 May?", "Who milks on 9 May?"),
            ("And the 3rd?", "Who milks on May 2nd, 2026?", "Who milks on May 3, 2026?"),
            ("and on 1 June?", "Who milks on 8 May 2026?", "Who milks on 1 June 2026?"),
            ("what about 1 June 2027", "Who milks on 8 May?", "Who milks on 1 June 2027?"),
            ("and on the 9th?", "Who milks on Friday, 8 May?", "Who milks on 9 May?"),
            ("and on the 9th?", "Who milks on 2026-05-08?", "Who milks on 2026-05-09?"),
            ("und am 9.?", "Wer melkt am 8. Mai?", "Wer melkt am 9. Mai?"),
            ("et le 9 ?", "Qui trait le 8 mai ?", "Qui trait le 9 mai ?"),
            ("and on Sunday?", "Who milks on 8 May?", "Who milks on Sunday?"),
            ("And Sunday?", "Who milks on Friday morning?", "Who milks on Sunday morning?"),
            ("und am Sonntag?", "Wer melkt am Freitag?", "Wer melkt am Sonntag?"),
        ] {
            assert_eq!(substituted(question, before).as_deref(), Some(expected), "{question}");
        }
        for (question, before) in [
            ("and on the 9th?", "Who milks on 8 May and on 1 June?"),
            ("And the 4th?", "Who won the 3rd heat on 8 May?"),
            ("And the 4th?", "Who lives on the 3rd floor?"),
            ("And 9?", "Who milks on 8 May?"),
            ("And the 9th cow?", "Who milks on 8 May?"),
            ("And Sunday?", "When does the Friday market open?"),
            ("And Sunday?", "Who milks on Friday and Saturday?"),
            ("And on Sunday?", "Who milks in May 2026?"),
        ] {
            assert_eq!(substituted(question, before), None, "{question}");
        }
    }

    #[test]
    fn a_code_takes_the_place_of_one_of_its_form() {
        for (question, before, expected) in [
            (
                "and the PDL?", "What is the FDL in the Tarn contract?",
                "What is the PDL in the Tarn contract?",
            ),
            (
                "And the LK-50?", "How hot does the LK-40 get in Tarn?",
                "How hot does the LK-50 get in Tarn?",
            ),
        ] {
            assert_eq!(substituted(question, before).as_deref(), Some(expected));
        }
        for (question, before) in [
            ("And the PDL?", "Is the FDL of the LMT low in Tarn?"),
            ("And the LK-50?", "Is the FDL high in Tarn?"),
            ("And in PL?", "Is the VAT low in Tarn?"),
            ("And the fee?", "What is the FDL in the Tarn contract?"),
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
