//! The key of a name: its words in a normalised spelling, under which the name is found.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::words;
use lodestone_types::script::is_in_unspaced_block as is_unspaced;

/// Maximum number of words of a key; of longer names the first words are kept.
pub const KEY_WORDS_MAX: usize = 8;
/// Maximum number of words of a text for which keys are formed; the rest is ignored.
const TEXT_WORDS_MAX: usize = 4096;
/// Maximum bytes of a word in a key; a longer run is not a word of any language.
const WORD_BYTES_MAX: usize = 64;

/// A normalised name: words in NFKC, with case and diacritics folded, separated by single spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

/// Computes the key of a name.
///
/// Punctuation separates words. A possessive ending, a leading English article and a trailing
/// addition in parentheses ("Avatar (film)") are dropped. Characters of scripts without spaces are
/// words of their own. A name without letters and digits has the empty key.
pub fn key(name: &str) -> Key {
    let mut text = String::new();
    let mut words = 0;
    for word in Words::of(without_addition(name)).take(KEY_WORDS_MAX + 1) {
        if words == 1 && words::is_article(&text) {
            text.clear();
            words = 0;
        }
        if words == KEY_WORDS_MAX {
            break;
        }
        push_word(&mut text, &name[word]);
        words += 1;
    }
    Key(text)
}

/// Returns the keys of all runs of one to eight words of a text that are worth looking up, each
/// with its byte range, ordered by start and then by length.
///
/// Omits runs that begin with an article, as keys of names never do, and keys consisting of common
/// words only, which would link any text to any other.
pub fn keys_in(text: &str) -> Vec<(Key, Range<usize>)> {
    let ranges: Vec<Range<usize>> = Words::of(text).take(TEXT_WORDS_MAX).collect();
    let mut folded = String::new();
    let mut folds = Vec::with_capacity(ranges.len());
    for range in &ranges {
        let end = folded.len();
        push_word(&mut folded, &text[range.clone()]);
        // A word of marks only adds nothing, and the first word adds no space.
        let start = if end > 0 && folded.len() > end { end + 1 } else { end };
        folds.push(start..folded.len());
    }
    let mut found = Vec::new();
    for (first, range) in ranges.iter().enumerate() {
        let start = folds[first].start;
        let word = &folded[folds[first].clone()];
        if word.is_empty() || words::is_article(word) {
            continue;
        }
        for last in first..ranges.len().min(first + KEY_WORDS_MAX) {
            let key = &folded[start..folds[last].end];
            if is_telling(key) {
                found.push((Key(key.to_owned()), range.start..ranges[last].end));
            }
        }
    }
    found
}

/// Whether a key is specific enough to link texts by it.
///
/// It is not if it is a single ordinary word, a single letter, or consists only of numbers, months
/// and function words. Otherwise a document titled "The" or "History" would be linked to all
/// others. Ordinary words are those in the list of common words; a rare word in lower case passes,
/// because questions are often typed without capitals.
pub fn is_telling(key: &str) -> bool {
    let mut words = key.split(' ');
    let (Some(first), None) = (words.next(), words.next()) else {
        return key.split(' ').any(|word| !is_empty_word(word)) && key.len() > 3;
    };
    let is_short = first.len() < 2 || first.len() == 2 && first.is_ascii();
    !is_short && !is_empty_word(first) && !words::is_ordinary(first)
}

/// Whether the word does not distinguish anything, even next to other words.
fn is_empty_word(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.len() < 7
        || word.len() == 1
        || words::is_grammar(word)
        || words::is_month(word)
}

/// Collapses each run of white space to a single space.
pub(super) fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Strips a trailing addition in parentheses from a name.
fn without_addition(name: &str) -> &str {
    let trimmed = name.trim_end();
    match trimmed.find('(') {
        Some(at) if trimmed.ends_with(')') && !trimmed[..at].trim().is_empty() => &trimmed[..at],
        _ => name,
    }
}

/// Appends a folded word, preceded by a space.
fn push_word(text: &mut String, word: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    let start = text.len();
    if word.is_ascii() {
        text.push_str(word);
        text[start..].make_ascii_lowercase();
        return;
    }
    let folded = word.nfkd().filter(|c| !matches!(*c as u32, 0x300..=0x36F)).nfc();
    for c in folded.flat_map(char::to_lowercase) {
        match letter_without_stroke(c) {
            Some(plain) => text.push_str(plain),
            // Normalisation can produce punctuation, as from the single-character form of "a.m.".
            None if is_word_char(c) => text.push(c),
            None => {}
        }
    }
    if text.len() == start {
        text.truncate(start.saturating_sub(1));
    }
}

/// Substitutes for letters that Unicode does not decompose, but that people type without the right
/// keyboard.
fn letter_without_stroke(c: char) -> Option<&'static str> {
    Some(match c {
        'ł' => "l",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'æ' => "ae",
        'œ' => "oe",
        'ß' => "ss",
        'ı' => "i",
        'ħ' => "h",
        _ => return None,
    })
}

/// Whether the character is part of a word: a letter, a digit, or a mark on a letter.
pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c as u32, 0x300..=0x36F | 0x900..=0xDFF)
}

pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}' | '\u{2bc}')
}

/// Iterates over the words of a text as byte ranges.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Whether the word that starts here is the remainder of a possessive.
    fn is_possessive(&self, range: &Range<usize>) -> bool {
        let mut before = self.text[..range.start].chars().rev();
        matches!(&self.text[range.clone()], "s" | "S")
            && before.next().is_some_and(is_apostrophe)
            && before.next().is_some_and(char::is_alphanumeric)
    }
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        loop {
            let rest = &self.text[self.at..];
            let start = self.at + rest.find(is_word_char)?;
            let rest = &self.text[start..];
            let first = rest.chars().next()?;
            let is_end = |c: char| !is_word_char(c) || is_unspaced(c);
            let length = match is_unspaced(first) {
                true => first.len_utf8(),
                false => rest.find(is_end).unwrap_or(rest.len()),
            };
            self.at = start + length;
            let cut = rest.floor_char_boundary(length.min(WORD_BYTES_MAX));
            let range = start..start + cut;
            if !self.is_possessive(&range) {
                return Some(range);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spelling_does_not_matter() {
        let same = |names: &[&str]| {
            let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
            assert!(keys.windows(2).all(|pair| pair[0] == pair[1]), "{keys:?}");
        };
        same(&["The Lord of the Rings", "lord of the rings", "Lord of the Rings (film)"]);
        same(&["J.R.R. Tolkien", "J. R. R. Tolkien", "J R R TOLKIEN"]);
        same(&["Schindler's List", "Schindler’s list"]);
        same(&["Stanisław Lem", "Stanislaw Lem", "STANISLAW LEM's"]);
        same(&["Jean-Luc Godard", "Jean Luc Godard", "Jean\u{2010}Luc Godard"]);
        same(&["Garçon", "Garc\u{327}on", "garcon"]);
        assert_eq!(key("紅楼夢").as_str(), "紅 楼 夢");
        assert_eq!(key("(untitled)").as_str(), "untitled");
        assert_eq!(key("...").as_str(), "");
    }

    #[test]
    fn names_in_questions_are_found() {
        let keys = |text: &str| -> Vec<String> {
            keys_in(text).into_iter().map(|(key, _)| key.into()).collect()
        };
        let found = keys("Who directed the film \"The Lord of the Rings\" in 1978?");
        assert!(found.contains(&"lord of the rings".to_owned()), "{found:?}");
        assert!(!found.iter().any(|key| ["film", "1978", "who", "of the"].contains(&&**key)));
        let text = "mother of Schindler’s List's director";
        let (_, range) = keys_in(text)
            .into_iter()
            .find(|(key, _)| key.as_str() == "schindler list")
            .expect("the title");
        assert_eq!(&text[range], "Schindler’s List");
    }

    #[test]
    fn ordinary_words_link_nothing() {
        for key in ["", "the", "history", "1978", "of the", "in 1978", "x", "may 1950", "3 may"] {
            assert!(!is_telling(key), "{key}");
        }
        for key in ["inception", "lord of the rings", "usa", "紅 楼", "ibm"] {
            assert!(is_telling(key), "{key}");
        }
    }

    #[test]
    fn words_of_marks_alone_move_no_key() {
        for text in ["\u{300} Ῠdra Isle", "x \u{300} Ῠdra Isle", "\u{300} \u{301} Ῠdra Isle"]
        {
            let found = keys_in(text);
            let key = key("Ῠdra Isle");
            let range = found.iter().find(|(found, _)| *found == key).map(|(_, range)| range);
            assert_eq!(range.map(|range| &text[range.clone()]), Some("Ῠdra Isle"), "{found:?}");
            assert!(found.iter().all(|(key, _)| key.as_str().trim() == key.as_str()), "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_is_found_by_its_key(name in "\\PC{0,40}", before in "[a-z ]{0,9}") {
            let key = key(&name);
            // Normalisation can split one character into several words.
            if unicode_normalization::is_nfkc(&name) {
                prop_assert_eq!(&super::key(key.as_str()), &key);
            }
            if is_telling(key.as_str()) && !name.contains('(') {
                let text = format!("{before}, {name}");
                let found = keys_in(&text);
                prop_assert!(found.iter().any(|(candidate, _)| *candidate == key));
                for (_, range) in found {
                    prop_assert!(text.get(range).is_some());
                }
            }
        }
    }
}
