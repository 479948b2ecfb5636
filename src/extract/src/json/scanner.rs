//! The grammar of JSON (RFC 8259), without recursion and without a tree.
//!
//! A custom scanner, because values must come out as written: a number of forty digits stays
//! unchanged.

use crate::json::Sink;
use crate::{DEPTH_MAX, ExtractError, error};

/// Scans the values in `text`, one after the other.
pub(super) fn run(text: &str, sink: &mut impl Sink) -> Result<(), ExtractError> {
    Scanner { text, at: 0 }.run(sink)
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn run(&mut self, sink: &mut impl Sink) -> Result<(), ExtractError> {
        // One entry per open value: whether it is an array.
        let mut open: Vec<bool> = Vec::new();
        loop {
            self.skip_space();
            if open.is_empty() && self.at == self.text.len() {
                return Ok(());
            }
            let opened = self.value(sink)?;
            if let Some(is_array) = opened {
                open.push(is_array);
                if open.len() > DEPTH_MAX {
                    let what = "nesting of JSON values";
                    return Err(ExtractError::BeyondLimit { what, max: DEPTH_MAX });
                }
            }
            let mut is_fresh = opened.is_some();
            // Close everything that ends here, and stop where the next value starts.
            while let Some(&is_array) = open.last() {
                self.skip_space();
                if self.peek() == Some(if is_array { b']' } else { b'}' }) {
                    self.at += 1;
                    sink.close()?;
                    open.pop();
                    is_fresh = false;
                    continue;
                }
                if !is_fresh {
                    self.expect(b',', "a comma or the end of the value is missing")?;
                }
                if !is_array {
                    self.skip_space();
                    let key = self.string()?;
                    sink.key(&key);
                    self.skip_space();
                    self.expect(b':', "a colon is missing after the key")?;
                }
                break;
            }
        }
    }

    /// Scans one scalar, or the bracket that opens a value; for a bracket returns `Some(is_array)`.
    fn value(&mut self, sink: &mut impl Sink) -> Result<Option<bool>, ExtractError> {
        match self.peek() {
            Some(bracket @ (b'[' | b'{')) => {
                self.at += 1;
                sink.open(bracket == b'[')?;
                return Ok(Some(bracket == b'['));
            }
            Some(b'"') => sink.scalar(&self.string()?)?,
            _ => {
                let word = self.word();
                match word {
                    "null" => sink.scalar("")?,
                    "true" | "false" => sink.scalar(word)?,
                    _ if is_number(word) => sink.scalar(word)?,
                    _ => return Err(self.damaged("a value is missing or misspelt")),
                }
            }
        }
        Ok(None)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, problem: &str) -> Result<(), ExtractError> {
        if self.peek() != Some(byte) {
            return Err(self.damaged(problem));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let length = rest.bytes().take_while(|&b| is_word(b)).count();
        self.at += length;
        &rest[..length]
    }

    /// Scans a string and resolves its escapes.
    fn string(&mut self) -> Result<String, ExtractError> {
        if self.peek() != Some(b'"') {
            return Err(self.damaged("a quoted string is missing"));
        }
        let start = self.at;
        let mut end = start + 1;
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(end) {
            match byte {
                b'\\' => end += 2,
                b'"' => {
                    self.at = end + 1;
                    let literal = &self.text[start..self.at];
                    let plain = serde_json::from_str(literal);
                    return plain.map_err(|_| self.damaged("a string contains an invalid escape"));
                }
                _ => end += 1,
            }
        }
        Err(self.damaged("a quoted string is not closed"))
    }

    fn damaged(&self, problem: &str) -> ExtractError {
        let line = error::line_of(self.text, self.at);
        let rest = &self.text.as_bytes()[self.at..];
        if ["//", "/*", "#"].iter().any(|mark| rest.starts_with(mark.as_bytes())) {
            return ExtractError::Commented { format: "JSON", line };
        }
        ExtractError::Damaged { format: "JSON", line, problem: problem.to_owned() }
    }
}

/// Whether the word is a number by RFC 8259, section 6.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let whole = digits(unsigned);
    if whole == 0 || (whole > 1 && unsigned.starts_with('0')) {
        return false;
    }
    let mut rest = &unsigned[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}
