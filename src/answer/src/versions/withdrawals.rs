//! Notices of withdrawal: documents about another one, which they name by its code and its edition
//! and end, as in "NOTICE 7: withdrawn with immediate effect: SOP-12 ed. 3".

use crate::text::words::{EDITIONS, contains_any, entries, is_entry, spaced};
use crate::versions::notices::{WITHDRAWN, codes, numbers};

/// Names of documents that may tell of others, and of those that certainly do.
const NOTICES: &str = "\
    notice|notices|notification|announcement|circular|bulletin|mitteilung|bekanntmachung|\
    rundschreiben|aushang|avis|circulaire|aviso|comunicado";
const WITHDRAWALS: &str = "withdrawal|withdrawals|recall|widerruf|rücknahme|retrait|retirada";
/// Phrases that end a document named beside them, apart from those by which documents speak of
/// themselves.
const ENDED: &str = "\
    withdraws|revokes|repeals|rescinds|repealed|rescinded|taken out of use|\
    must not be used any more|must no longer be used|no longer in use";
/// Phrases before the document that takes the place of the ended one.
const SUCCESSORS: &str = "\
    replaced by|superseded by|see|use|follow|instead|ersetzt durch|abgelöst durch|siehe|\
    remplacé par|remplacée par|voir|sustituido por|véase";
/// Phrases between the document that takes the place of another one and that other one.
const INSTEAD_OF: &str = "instead of|in place of|statt|anstelle von|au lieu de|en lugar de";
/// Words that end bookings as well as documents.
const CANCELLED: [&str; 2] = ["cancelled", "canceled"];
/// Maximum number of characters after a code that may name its edition.
const EDITION_CHARS_MAX: usize = 16;

/// A document that another one ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: String,
    /// The edition, if one is named.
    version: Vec<u32>,
}

impl Ended {
    /// Finds the documents that a sentence about the end or the replacement of one names.
    pub(super) fn in_sentence(sentence: &str) -> Vec<Self> {
        let place = |text: &str, list: &str| {
            let lower = text.to_lowercase();
            let places = entries(list)
                .filter_map(|words| lower.find(&format!(" {words} ")).map(|at| (at, words.len())));
            // The offset is of the original text only if lower-casing kept its length, and even
            // then it may lie within a character: some letters become shorter, others longer.
            places.min().filter(|_| lower.len() == text.len())
        };
        let start = place(sentence, INSTEAD_OF).and_then(|(at, len)| sentence.get(at + len + 1..));
        let sentence = start.unwrap_or(sentence);
        let end = place(sentence, SUCCESSORS).and_then(|(at, _)| sentence.get(..at));
        let sentence = end.unwrap_or(sentence);
        let found = codes(sentence).into_iter();
        found.map(|code| Self { version: edition_of(&code, sentence), code }).collect()
    }

    /// Whether a document of this version may be the one that is ended.
    pub(super) fn is_of(&self, version: &[u32]) -> bool {
        self.version.is_empty() || version.is_empty() || version.starts_with(&self.version)
    }
}

/// Whether a sentence says that something is no longer in force.
pub(super) fn is_ending(sentence: &str) -> bool {
    let said = spaced(sentence);
    contains_any(&said, WITHDRAWN) || contains_any(&said, ENDED) || is_cancelling(sentence)
}

/// Whether a sentence says that a document is cancelled, which is named before that or behind a
/// colon: "SOP-12 is cancelled", but not "bookings are cancelled with form SOP-12".
fn is_cancelling(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let Some(at) = CANCELLED.iter().find_map(|word| lower.find(word)) else { return false };
    let before = sentence.get(..at).unwrap_or_default().trim_end();
    before.is_empty() || before.ends_with(':') || !codes(before).is_empty()
}

/// Whether a document with these names tells of others.
pub(super) fn is_notice<'n>(names: impl IntoIterator<Item = &'n str>) -> bool {
    let words = names.into_iter().map(|name| spaced(&name.replace('_', " ")));
    let is_one = |words: String| contains_any(&words, NOTICES) || contains_any(&words, WITHDRAWALS);
    words.into_iter().any(is_one)
}

/// Whether a name gives a notice a code of its own: "Bulletin SB-12", "SB-12 Safety bulletin", but
/// not "Withdrawal of SB-12". What such a notice says of this code, it says of itself.
pub(super) fn is_numbered(name: &str, code: &str) -> bool {
    let (said, words) = (spaced(name), name.split_whitespace().collect::<Vec<_>>());
    let is_code = |word: &str| codes(word).iter().any(|one| one == code);
    let begins = words.first().is_some_and(|word| is_code(word))
        && contains_any(&said, NOTICES)
        && !is_ending(name);
    let is_behind = |two: &[&str]| is_entry(NOTICES, two[0]) && is_code(two[1]);
    !contains_any(&said, WITHDRAWALS) && (begins || words.windows(2).any(is_behind))
}

/// The version named right after a code in a sentence.
fn edition_of(code: &str, sentence: &str) -> Vec<u32> {
    let mut letters = sentence.char_indices().filter(|(_, c)| c.is_alphanumeric());
    let code: Vec<char> = code.chars().collect();
    let mut window: Vec<char> = Vec::new();
    let end = letters.find_map(|(at, c)| {
        window.extend(c.to_lowercase());
        let end = at + c.len_utf8();
        // "SOP-1" is not named by "SOP-12".
        let is_whole = !sentence[end..].starts_with(char::is_alphanumeric);
        (is_whole && window.ends_with(&code)).then_some(end)
    });
    let behind: String = end.map_or_else(String::new, |end| {
        let rest = sentence[end..].split(['(', ',', ';']).next().unwrap_or_default();
        rest.chars().take(EDITION_CHARS_MAX).collect()
    });
    let names_one = entries(EDITIONS).any(|word| spaced(&behind).contains(&format!(" {word}")));
    if names_one { numbers(&behind) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an edition behind a code is read, a successor is not ended.
    #[test]
    fn the_edition_of_a_code_is_told() {
        let ended = |text: &str| -> Vec<(String, Vec<u32>)> {
            let found = Ended::in_sentence(text).into_iter();
            found.map(|one| (one.code, one.version)).collect()
        };
        assert_eq!(ended("WITHDRAWN: SOP-12 ed. 3 (knots)"), [("sop12".to_owned(), vec![3])]);
        assert_eq!(ended("WITHDRAWN: SOP-12, see SOP-14"), [("sop12".to_owned(), vec![])]);
        assert_eq!(ended("Form RG-DK-04 v2.1 is withdrawn"), [("rgdk04".to_owned(), vec![2, 1])]);
    }

    /// Goal: letters that change their length in lower case do not cut a character.
    #[test]
    fn any_letters_may_stand_before_a_successor() {
        let text = "WITHDRAWN: CH-12 \u{212A}\u{20AC} see CH-14 \u{130}\u{130}";
        assert_eq!(text.len(), text.to_lowercase().len());
        assert_eq!(Ended::in_sentence(text)[0].code, "ch12");
    }

    /// Goal: a document that takes the place of another one, or by which a booking is cancelled,
    /// does not end.
    #[test]
    fn what_is_to_be_used_does_not_end() {
        let ended = Ended::in_sentence("Use CH-14 instead of CH-12, which is withdrawn");
        assert_eq!(ended, [Ended { code: "ch12".to_owned(), version: Vec::new() }]);
        assert!(!is_ending("A cheese course is cancelled with form CH-12."));
        for ending in ["CH-12 is cancelled", "Cancelled: CH-12", "Notice 7: cancelled: CH-12"] {
            assert!(is_ending(ending), "{ending}");
        }
    }

    /// Goal: the edition behind a longer code is not that of a shorter one.
    #[test]
    fn the_edition_is_that_of_the_whole_code() {
        let text = "Withdrawn: CH-12 ed. 3 and CH-1 ed. 2";
        let told: Vec<Vec<u32>> =
            Ended::in_sentence(text).into_iter().map(|one| one.version).collect();
        assert_eq!(told, [vec![3], vec![2]]);
    }
}
