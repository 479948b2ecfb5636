//! Words of a question that identify something: names, years, codes.

use std::collections::BTreeMap;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::stops::goes_over;
use crate::text::words::{contains, is_entry, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// Words that indicate an English question.
const ENGLISH: &str =
    "the|of|is|are|was|were|does|did|do|in|to|for|how|what|who|when|which|where|why";
/// Capitalised words that are not names.
const NO_NAMES: &str = "\
    i|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|\
    june|july|august|september|october|november|december|mr|mrs|ms|dr|prof|and|but|or|so|ok|okay";
/// Maximum number of letters before the dash of a code, and minimum number of digits after it, with
/// a higher minimum after lower-case letters.
const CODE_LETTERS_MAX: usize = 4;
const CODE_DIGITS_MIN: usize = 2;
const NUMBER_DIGITS_MIN: usize = 3;
/// Words before a number that is an identifier, words before those that make them verbs, units
/// after a number that is an amount (as are plurals), and words that only look like plurals.
const NUMBERED: &str = "\
    number|no|nr|id|ref|reference|order|invoice|ticket|booking|case|claim|batch|lot|job|contract|\
    customer|article|serial|nummer|auftrag|bestellung|rechnung|vorgang|charge|numéro|commande|\
    facture|dossier|número|pedido|factura";
const BEFORE_VERB: &str = "i|we|you|they|to|can|must|should|may|please";
const UNITS: &str = "kg|g|mg|t|l|ml|cl|m|cm|mm|km|oz|lb|ft|eur|euro|usd|gbp|chf";
const NO_PLURALS: &str = "is|was|has|does";
/// Largest share of capitalised words in a question; with more it is a heading.
const NAMES_SHARE_MAX: f32 = 0.6;

/// Confidence lost for a missing name of the question. On XQuAD in English and judged questions on
/// office documents, 7 of 100 correct passages lack one, and 46 of 100 near misses do.
const NAME_MALUS: f32 = 0.1;
/// Confidence lost for a missing year of the question: another year is another thing.
const YEAR_MALUS: f32 = 0.6;
/// Confidence lost for a missing code of the question: nothing can stand for it.
pub(crate) const CODE_MALUS: f32 = 0.6;

/// The kind of an identifying word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Name,
    /// An ordinal or decade in digits, which a text may spell out: "3rd", "1980s".
    Ordinal,
    Year,
    Code,
}

impl Named {
    /// The confidence that a passage loses without it.
    pub(crate) fn malus(self) -> f32 {
        match self {
            Self::Name | Self::Ordinal => NAME_MALUS,
            Self::Year => YEAR_MALUS,
            Self::Code => CODE_MALUS,
        }
    }
}

/// The terms of a question that identify something: capitalised words within it, ordinals, codes,
/// years and identifying numbers.
pub(crate) fn names(question: &str) -> BTreeMap<String, Named> {
    let text = spaced(question);
    let words: Vec<&str> = question.unicode_words().collect();
    let begins = beginnings(question);
    let is_capital = |word: &&str| word.starts_with(char::is_uppercase);
    let capitals = words.iter().skip(1).filter(|word| is_capital(word)).count();
    let is_heading = capitals as f32 > NAMES_SHARE_MAX * words.len() as f32;
    let has_names = !is_heading && ENGLISH.split('|').any(|word| contains(&text, word));
    let is_name = |word: &str| {
        let bare = word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word);
        let is_listed = NO_NAMES.split('|').any(|other| other == bare.to_lowercase());
        // A single letter is only part of a name ("P-card"), and "I'm" is not one.
        let is_pronoun = bare.split(['\'', '\u{2019}']).next() == Some("I");
        let is_word = bare.chars().count() > 1 && !is_pronoun;
        is_word && bare.starts_with(char::is_uppercase) && !is_listed && !is_interrogative(bare)
    };
    // In other languages and in headings, words that begin with a digit may be ordinals or
    // measures.
    let is_code = |word: &str| {
        word.contains(|c: char| c.is_ascii_digit())
            && word.contains(char::is_alphabetic)
            && (has_names || word.starts_with(char::is_alphabetic))
    };
    let mut names = BTreeMap::new();
    for (at, word) in words.iter().enumerate() {
        let named = match () {
            () if has_names && at > 0 && is_ordinal(word) => Named::Ordinal,
            () if is_code(word) => Named::Code,
            () if is_year(word) => Named::Year,
            () if has_names && !begins[at] && is_name(word) => Named::Name,
            () => continue,
        };
        let analysed = HybridQuery::analyse(word);
        let whole = word.to_lowercase();
        // A word with digits is meant as a whole, not by its parts.
        let is_whole = matches!(named, Named::Code | Named::Ordinal);
        let is_meant = |term: &&String| !is_whole || **term == whole;
        let terms = analysed.terms().iter().filter(is_meant);
        names.extend(terms.map(|term| (term.clone(), named)));
    }
    let marked = question.split_whitespace().filter_map(number_of_code);
    names.extend(marked.chain(numbered(&words)).map(|number| (number.to_owned(), Named::Code)));
    names
}

/// Whether a lower-case word has a capital letter in English without being a name: months, days,
/// forms of address.
pub(crate) fn is_no_name(lower: &str) -> bool {
    NO_NAMES.split('|').any(|other| other == lower)
}

/// For each word, whether it begins the question or a part after a statement.
fn beginnings(question: &str) -> Vec<bool> {
    let mut before = "";
    // Names from an earlier answer may follow a question, unless the text ends in a statement.
    let is_stated = question.trim_end().ends_with(['.', '!']);
    let ends = |c: char| matches!(c, '.' | '!') || (is_stated && c == '?');
    let begins = question.unicode_word_indices().map(|(at, word)| {
        let is_ended = question[..at].trim_end().ends_with(ends);
        let begins = before.is_empty() || (is_ended && !goes_over(before, question, at));
        before = word;
        begins
    });
    begins.collect()
}

/// The last number of a dashed code: 5009 in "O-5009", 117 in "INV-2024-117".
fn number_of_code(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let (letters, numbers) = word.split_once(['-', '/'])?;
    let mut parts = numbers.split(['-', '/']);
    let is_capital = letters.chars().all(char::is_uppercase);
    let fewest = if is_capital { CODE_DIGITS_MIN } else { NUMBER_DIGITS_MIN };
    let last = parts.clone().next_back()?;
    let is_code = (1..=CODE_LETTERS_MAX).contains(&letters.chars().count())
        && letters.chars().all(char::is_alphabetic)
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        && last.len() >= fewest;
    (is_code && !is_year(last)).then_some(last)
}

/// The numbers among words that identify things ("order 5009"), as opposed to amounts ("can I order
/// 500 bags").
fn numbered<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map(|word| word.to_lowercase());
    let is_number = |at: &usize| {
        let number = words[*at];
        let is_named = word(at.checked_sub(1)).is_some_and(|word| is_entry(NUMBERED, &word));
        let is_verb = word(at.checked_sub(2)).is_some_and(|word| is_entry(BEFORE_VERB, &word));
        let is_amount = word(Some(at + 1)).is_some_and(|unit| {
            is_entry(UNITS, &unit) || (unit.ends_with('s') && !is_entry(NO_PLURALS, &unit))
        });
        number.len() >= NUMBER_DIGITS_MIN
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !is_year(number)
            && is_named
            && !is_verb
            && !is_amount
    };
    (0..words.len()).filter(is_number).map(|at| words[at]).collect()
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && matches!(word.parse(), Ok(1500..=2199_u32))
}

/// Whether a text names a year.
pub(crate) fn tells_year(text: &str) -> bool {
    text.unicode_words().any(is_year)
}

fn is_ordinal(word: &str) -> bool {
    let end = word.trim_start_matches(|c: char| c.is_ascii_digit());
    end.len() < word.len() && is_entry("st|nd|rd|th|s|'s|\u{2019}s", end)
}

/// The words of a question whose terms are names, in lower case and without a possessive ending.
pub(crate) fn written(question: &str, names: &BTreeMap<String, Named>) -> Vec<String> {
    let is_name = |word: &&str| {
        let analysed = HybridQuery::analyse(word);
        analysed.terms().iter().any(|term| names.get(term) == Some(&Named::Name))
    };
    let bare = |word: &str| word.split(['\'', '\u{2019}']).next().unwrap_or(word).to_lowercase();
    question.unicode_words().filter(is_name).map(bare).collect()
}

/// Whether a word is the singular or plural of an acronym among the names `written` in lower case:
/// "DVDs" for "dvd"; but "Martens" is another name than "Marten".
pub(crate) fn is_acronym_of(word: &str, written: &[String]) -> bool {
    let is_acronym = |word: &str| word.len() > 1 && word.chars().all(char::is_uppercase);
    let one = word.strip_suffix('s').filter(|one| is_acronym(one));
    one.is_some_and(|one| written.contains(&one.to_lowercase()))
        || is_acronym(word) && written.contains(&format!("{}s", word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acronyms_have_plurals() {
        let of = |word, written: &str| is_acronym_of(word, &[written.to_owned()]);
        assert!(of("DVDs", "dvd") && of("DVD", "dvds") && !of("DVD", "cd"));
        assert!(!of("Martens", "marten") && !of("Marten", "martens") && !of("A", "as"));
    }

    fn named(question: &str) -> Vec<String> {
        names(question).into_keys().collect()
    }

    #[test]
    fn names_codes_and_years_are_required() {
        assert_eq!(named("What is the capital of Portugal?"), ["portug"]);
        assert_eq!(named("How much does an MRI scan cost in 2026?"), ["2026", "mri"]);
        assert_eq!(named("What is Dr Solheim's salary on Monday?"), ["solheim"]);
        assert!(named("What was the fix of HV-2214 and of A131?").contains(&"a131".to_owned()));
        assert_eq!(named("Which bin for cytotoxic drugs?"), [""; 0]);
        assert_eq!(named("The pump is down. Fishing trip at ten, is it OK to go?"), [""; 0]);
        assert_eq!(named("What does the trip cost while I'm a guest? Booked it in May."), [""; 0]);
        assert_eq!(named("It is for Dr. Solheim. Is the boat free?"), ["solheim"]);
    }

    #[test]
    fn numbers_of_things_are_codes() {
        for question in [
            "What is the state of loan L-5009?", "When was l-5009 lent?", "Who has INV-2024-5009?",
            "What is the status of order 5009?", "When is order 5009 due?",
        ] {
            assert_eq!(names(question).get("5009"), Some(&Named::Code), "{question}");
        }
        for question in [
            "Can I order 5009 bags?",
            "How do we order 5009 kg?",
            "What was COVID-19?",
            "Is the over-60 swim free?",
            "What was the state of order in pre-2020 times?",
        ] {
            assert!(!names(question).values().any(|named| *named == Named::Code), "{question}");
        }
    }

    #[test]
    fn ordinals_and_decades_may_be_told_in_words() {
        for word in ["3rd", "15th", "80s", "1980s"] {
            let question = format!("Who played on the {word} evening?");
            let expected = BTreeMap::from([(word.to_owned(), Named::Ordinal)]);
            assert_eq!(names(&question), expected);
            assert_eq!(written(&question, &expected), [""; 0], "no row needs a capital for it");
        }
        assert_eq!(names("Who fixed the 15X?")["15x"], Named::Code);
    }

    #[test]
    fn other_languages_and_headings_name_nothing() {
        assert_eq!(named("Wie viel kostet ein Röntgenbild?"), [""; 0]);
        assert_eq!(named("What Is The Capital Of Portugal"), [""; 0]);
    }
}
