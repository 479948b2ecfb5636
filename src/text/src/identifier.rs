//! The parts of an identifier: `getUserName`, `HTTPServer`, `snake_case`, `gpt4`, `std.fs`.

use std::ops::Range;

/// Maximum number of parts of one word; anything longer is data, not a name.
const PARTS_MAX: usize = 16;

/// Minimum number of letters after an apostrophe for the word to be split there: `l'avion` and
/// `O'Neil` have a part of their own after it, `don't` and `it's` do not.
const LETTERS_AFTER_APOSTROPHE: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    /// Any other letter, and marks that attach to a letter.
    Lower,
    Digit,
    Separator,
}

fn class(c: char) -> Class {
    if c.is_uppercase() {
        Class::Upper
    } else if c.is_numeric() {
        Class::Digit
    } else if c.is_ascii_punctuation()
        || matches!(c as u32, 0xB7 | 0x2018..=0x2027 | 0x203F..=0x2040)
    {
        Class::Separator
    } else {
        Class::Lower
    }
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}')
}

/// Calls `each` with the byte range of every part of a word, in order, but never with the whole
/// word.
///
/// Words are split at separators, between a lower and an upper case letter, before the last of
/// several upper case letters followed by a lower case one, and between letters and digits. A
/// plural `s` after upper case letters is cut off (`GPUs`). Single letters are not parts; numbers
/// of any length are. Words of digits and separators only have no parts.
pub(super) fn parts(word: &str, mut each: impl FnMut(Range<usize>)) {
    let is_plain = |c: char| class(c) == Class::Lower;
    if word.chars().skip(1).all(is_plain) || !word.chars().any(char::is_alphabetic) {
        return;
    }
    let mut part = 0..0;
    let mut found = 0;
    let mut before = Class::Separator;
    let mut chars = word.char_indices().peekable();
    let mut finish = |part: Range<usize>| {
        let text = &word[part.clone()];
        let is_number = text.starts_with(char::is_numeric);
        let is_part = is_number || text.chars().nth(1).is_some();
        if is_part && part.len() < word.len() && found < PARTS_MAX {
            found += 1;
            each(part);
        }
    };
    while let Some((at, c)) = chars.next() {
        let mut now = class(c);
        let rest = &word[at + c.len_utf8()..];
        if is_apostrophe(c) && !splits_after_apostrophe(rest) {
            now = if before == Class::Separator { Class::Separator } else { before };
        }
        let next = chars.peek().map(|&(_, next)| class(next));
        let is_cut = match (before, now) {
            (Class::Separator, _) | (_, Class::Separator) => true,
            (Class::Lower, Class::Upper) => true,
            (Class::Upper, Class::Upper) => next == Some(Class::Lower) && !is_plural(rest),
            (Class::Upper, Class::Lower) => c == 's' && part.len() > 1 && is_end(next),
            (Class::Digit, other) | (other, Class::Digit) => other != Class::Digit,
            (Class::Lower, _) => false,
        };
        if is_cut {
            finish(part);
            part = at..at;
        }
        if now != Class::Separator {
            part.end = at + c.len_utf8();
        }
        before = now;
    }
    finish(part);
}

/// Calls `each` with the byte range of every piece of a word between punctuation inside it, in
/// order, but never with the whole word. Apostrophes and underscores do not split; single letters
/// and words without letters are not reported.
pub(super) fn pieces(word: &str, mut each: impl FnMut(Range<usize>)) {
    let is_mark =
        |c: char| class(c) == Class::Separator && !is_apostrophe(c) && c != '_' && c != '\u{203F}';
    if !word.contains(is_mark) || !word.chars().any(char::is_alphabetic) {
        return;
    }
    let mut start = 0;
    let mut found = 0;
    for piece in word.split_inclusive(is_mark) {
        let text = piece.trim_end_matches(is_mark);
        let is_piece = text.starts_with(char::is_numeric) || text.chars().nth(1).is_some();
        if is_piece && text.len() < word.len() && found < PARTS_MAX {
            found += 1;
            each(start..start + text.len());
        }
        start += piece.len();
    }
}

fn is_end(next: Option<Class>) -> bool {
    matches!(next, None | Some(Class::Separator))
}

/// Whether all that follows an upper case letter is a plural `s`.
fn is_plural(rest: &str) -> bool {
    let mut chars = rest.chars();
    chars.next() == Some('s') && is_end(chars.next().map(class))
}

fn splits_after_apostrophe(rest: &str) -> bool {
    let is_letter = |c: &char| !matches!(class(*c), Class::Separator | Class::Digit);
    rest.chars().take_while(is_letter).count() >= LETTERS_AFTER_APOSTROPHE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(word: &str) -> Vec<&str> {
        let mut found = Vec::new();
        parts(word, |part| found.push(&word[part]));
        found
    }

    #[test]
    fn identifiers_fall_into_their_parts() {
        for (word, expected) in [
            ("getUserName", vec!["get", "User", "Name"]),
            ("PascalCase", vec!["Pascal", "Case"]),
            ("HTTPServer", vec!["HTTP", "Server"]),
            ("parseJSON", vec!["parse", "JSON"]),
            ("snake_case_name", vec!["snake", "case", "name"]),
            ("__init__", vec!["init"]),
            ("SCREAMING_CASE", vec!["SCREAMING", "CASE"]),
            ("gpt4", vec!["gpt", "4"]),
            ("utf8mb4", vec!["utf", "8", "mb", "4"]),
            ("os.path.join", vec!["os", "path", "join"]),
            ("GPUs", vec!["GPU"]),
            ("GPUs_used", vec!["GPU", "used"]),
            ("l'avion", vec!["avion"]),
            ("O’Neil", vec!["Neil"]),
            ("iPhone", vec!["Phone"]),
        ] {
            assert_eq!(of(word), expected, "{word}");
        }
    }

    #[test]
    fn plain_words_and_numbers_have_no_parts() {
        for word in [
            "word", "Word", "don't", "Don’t", "it's", "e.g", "U.S", "3.14", "1,000", "a", "",
            "Привет", "हिन्दी", "HTTP", "NASA",
        ] {
            assert_eq!(of(word), Vec::<&str>::new(), "{word}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_ascending_true_pieces(word in "[a-cA-C0-2_.'é一]{0,24}") {
            let mut end = 0;
            let mut ranges = Vec::new();
            parts(&word, |part| ranges.push(part));
            for part in ranges {
                prop_assert!(part.start >= end && part.start < part.end);
                prop_assert!(word.get(part.clone()).is_some());
                prop_assert!(part.len() < word.len());
                end = part.end;
            }
        }
    }
}
