//! Estimates the tokens of a text without its model's tokenizer, to measure chunks.
//!
//! Current tokenizers make a token of 4 to 5 letters of a European language, of one to three
//! digits, of each punctuation mark, and of one or two letters in scripts without spaces. The
//! estimate errs on the high side, so that chunks are too short rather than too long.

use std::ops::Range;

/// Letters per token in scripts that separate words by spaces.
const LETTERS: usize = 5;
const DIGITS: usize = 3;

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Letter,
    Digit,
    /// A token by itself.
    Alone,
}

impl Kind {
    fn of(c: char) -> Option<Self> {
        match c {
            c if c.is_whitespace() => None,
            c if c.is_ascii_digit() => Some(Self::Digit),
            // Latin, Greek, Cyrillic, Hebrew, Arabic and their neighbours. Above them are scripts
            // without spaces, or whose letters take three bytes.
            c if c.is_alphabetic() && (c as u32) < 0x900 => Some(Self::Letter),
            _ => Some(Self::Alone),
        }
    }

    fn most(self) -> usize {
        match self {
            Self::Letter => LETTERS,
            Self::Digit => DIGITS,
            Self::Alone => 1,
        }
    }
}

/// Estimates the byte ranges of the tokens of a text, in order.
pub(super) fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let mut last: Option<(Kind, usize)> = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let kind = Kind::of(c);
        last = match (kind, last) {
            (None, _) => None,
            (Some(kind), Some((same, length))) if kind == same && length < kind.most() => {
                tokens.last_mut().expect("the token that goes on").end = end;
                Some((kind, length + 1))
            }
            (Some(kind), _) => {
                tokens.push(at..end);
                Some((kind, 1))
            }
        };
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_digits_and_signs_are_cut() {
        let told = |text: &str| -> Vec<String> {
            tokens(text).into_iter().map(|range| text[range].to_owned()).collect()
        };
        assert_eq!(told("An embedding, 2026!"), ["An", "embed", "ding", ",", "202", "6", "!"]);
        assert_eq!(told("埋め込み"), ["埋", "め", "込", "み"]);
        assert_eq!(told("Übergrößen"), ["Überg", "rößen"]);
        assert_eq!(told("  \n"), Vec::<String>::new());
    }
}
