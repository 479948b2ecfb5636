//! Splits RTF into groups, control words and text, in one pass.

use crate::mail;

/// Maximum letters of a control word; anything longer is not valid RTF.
const WORD_BYTES_MAX: usize = 40;

/// An RTF token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Start of a group.
    Open,
    /// End of a group.
    Close,
    /// A control word and its numeric parameter.
    Word(&'a str, Option<i32>),
    /// A control symbol.
    Sign(u8),
    /// A byte written as two hex digits.
    Byte(u8),
    /// Literal bytes, without line ends.
    Text(&'a [u8]),
}

/// The tokens of a document.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    /// Creates an iterator over the tokens of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn word(&mut self) -> Token<'a> {
        let letters = self.rest.iter().take(WORD_BYTES_MAX);
        let length = letters.take_while(|b| b.is_ascii_alphabetic()).count();
        let (name, rest) = self.rest.split_at(length);
        let name = std::str::from_utf8(name).unwrap_or("");
        let is_negative = rest.first() == Some(&b'-');
        let digits = &rest[usize::from(is_negative)..];
        let count = digits.iter().take(10).take_while(|b| b.is_ascii_digit()).count();
        self.rest = rest;
        let mut parameter = None;
        if count > 0 {
            let value = digits[..count].iter().fold(0_i64, |n, b| n * 10 + i64::from(b - b'0'));
            let value = if is_negative { -value } else { value };
            parameter = Some(i32::try_from(value).unwrap_or(i32::MAX));
            self.rest = &digits[count..];
        }
        if self.rest.first() == Some(&b' ') {
            self.rest = &self.rest[1..];
        }
        if name == "bin" {
            let length = usize::try_from(parameter.unwrap_or(0)).unwrap_or(0);
            self.rest = &self.rest[length.min(self.rest.len())..];
        }
        Token::Word(name, parameter)
    }

    fn escape(&mut self) -> Option<Token<'a>> {
        let (&sign, rest) = self.rest.split_first()?;
        if sign.is_ascii_alphabetic() {
            return Some(self.word());
        }
        self.rest = rest;
        if sign == b'\'' {
            let digit = |at: usize| rest.get(at).and_then(|b| mail::hex(*b));
            if let (Some(high), Some(low)) = (digit(0), digit(1)) {
                self.rest = &rest[2..];
                return Some(Token::Byte(high << 4 | low));
            }
        }
        Some(Token::Sign(sign))
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let first = *self.rest.first()?;
            let is_text = !matches!(first, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
            if is_text {
                let ends = |b: &u8| matches!(b, b'{' | b'}' | b'\\' | b'\r' | b'\n' | 0);
                let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
                let (text, rest) = self.rest.split_at(length);
                self.rest = rest;
                return Some(Token::Text(text));
            }
            self.rest = &self.rest[1..];
            match first {
                b'{' => return Some(Token::Open),
                b'}' => return Some(Token::Close),
                b'\\' => return self.escape(),
                _ => {}
            }
        }
    }
}
