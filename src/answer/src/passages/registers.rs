//! Registers: texts whose entries begin with a code, "D-22 The limit is 10 m.", and in which a
//! later entry may end an earlier one: "D-37 The limit is 8 m. Replaces D-22."

use std::collections::BTreeSet;

use crate::text::words::is_entry;

/// Maximum number of words up to an entry's code, which a number or a date may precede.
const WORDS_BEFORE_MAX: usize = 3;
/// Maximum number of letters, and of digits, in a code.
const LETTERS_MAX: usize = 5;
const DIGITS_MAX: usize = 5;
/// Maximum number of words between a verb and the code of the entry that it ends.
const WORDS_BETWEEN_MAX: usize = 2;
/// Verbs before the code of an ended entry, and words after such a code.
const ENDING: &str = "\
    replaces|supersedes|withdraws|revokes|repeals|cancels|overrides|annuls|ersetzt|widerruft|\
    remplace|annule|abroge|sustituye|reemplaza|anula|deroga";
const ENDED: &str = "\
    withdrawn|superseded|replaced|revoked|repealed|cancelled|canceled|annulled|void|obsolete|\
    aufgehoben|ersetzt|widerrufen|zurückgenommen|remplacé|remplacée|annulé|annulée|abrogé|\
    abrogée|sustituido|sustituida|anulado|anulada|derogado|derogada";
/// Words between a code and such a word.
const IS: &str = "is|was|are|has|been|now|ist|wurde|wird|est|a|été|es|fue|ha|sido";

/// The codes, in lower case, of entries that one of these texts ends.
pub(crate) fn ended<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in texts {
        let words: Vec<&str> = text.split_whitespace().map(bare).collect();
        for (at, word) in words.iter().enumerate().filter(|(_, word)| is_code(word)) {
            let mut before = words[..at].iter().rev().take(WORDS_BETWEEN_MAX + 1);
            let behind = words[at + 1..].iter().find(|word| !is_entry(IS, word));
            let is_object = before.any(|word| is_entry(ENDING, word));
            if is_object || behind.is_some_and(|word| is_entry(ENDED, word)) {
                found.insert(word.to_lowercase());
            }
        }
    }
    found
}

/// The code that an entry begins with, in lower case.
pub(crate) fn code_of(entry: &str) -> Option<String> {
    let words = entry.split_whitespace().map(bare).filter(|word| !word.is_empty());
    let code = words.take(WORDS_BEFORE_MAX).find(|word| is_code(word))?;
    Some(code.to_lowercase())
}

/// Whether a word is the code of an entry: capitals and a number, "D-22", "ADR-014", "R7a".
fn is_code(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.len() - number.len();
    let number = number.strip_prefix('-').unwrap_or(number);
    let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
    (1..=LETTERS_MAX).contains(&letters)
        && (1..=DIGITS_MAX).contains(&digits.len())
        && number.len() - digits.len() <= 1
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_another_ends_are_told() {
        let of = |text: &str| ended([text].into_iter()).into_iter().collect::<Vec<_>>();
        assert_eq!(of("D-37 The limit is 8 °C. Replaces D-22. (Ada)"), ["d-22"]);
        assert_eq!(of("2026-03-17 D-39 D-35 is withdrawn: closed."), ["d-35"]);
        assert_eq!(of("ADR-014 supersedes the decision ADR-007."), ["adr-007"]);
        assert_eq!(of("D-12 was confirmed by D-13."), [""; 0]);
        assert_eq!(of("The old pump is withdrawn."), [""; 0]);
    }

    #[test]
    fn entries_begin_with_their_codes() {
        assert_eq!(code_of("**2024-06-11** D-22 The limit").as_deref(), Some("d-22"));
        assert_eq!(code_of("R7a: no smoking").as_deref(), Some("r7a"));
        assert_eq!(code_of("The limit of D-22 is low"), None);
        assert_eq!(code_of("COVID is over"), None);
    }
}
