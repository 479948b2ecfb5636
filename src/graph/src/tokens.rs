//! Words and punctuation of a text, classified by the form of their letters.

use crate::key::{is_apostrophe, is_word_char};
use crate::nouns::senses_of;
use crate::words::Senses;
use lodestone_types::script::is_in_unspaced_block as is_unspaced;

/// Maximum bytes of a footnote mark.
const NOTE_BYTES_MAX: usize = 24;
/// Maximum bytes of a link's address.
const LINK_BYTES_MAX: usize = 400;
/// Maximum bytes of a word; anything longer is not a word of any language, and names nothing.
const WORD_BYTES_MAX: usize = 80;

/// The form of a token, by its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// No leading capital, or letters without case.
    Lower,
    /// "Paris", "Jean-Luc", "McDonald".
    Capital,
    /// "NASA": two or more capitals and nothing else, except for trailing digits.
    Capitals,
    /// "J": a single capital.
    Initial,
    /// "snake_case", "config.json", "x@y.org", "LC-34" with a digit before any lower-case letter.
    Code,
    /// Starts with a digit.
    Number,
    /// A run of a script without spaces.
    Unspaced,
    /// Any other character.
    Mark,
}

/// A word or a punctuation mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub start: usize,
    pub end: usize,
    pub form: Form,
    /// Whether white space precedes it.
    pub is_apart: bool,
    /// Whether a possessive ending follows; it is not part of the token.
    pub is_owner: bool,
    pub senses: Senses,
}

impl Token {
    pub(super) fn text<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start..self.end]
    }

    /// Whether the token can be a word of a name.
    pub(super) fn is_capital(&self) -> bool {
        matches!(self.form, Form::Capital | Form::Capitals | Form::Initial)
    }

    pub(super) fn is_word(&self) -> bool {
        self.form != Form::Mark
    }
}

/// Appends the tokens of `text[from..to]`.
pub(super) fn tokens(text: &str, from: usize, to: usize, found: &mut Vec<Token>) {
    let mut at = from;
    let mut is_apart = true;
    while let Some(c) = text[at..to].chars().next() {
        let aside = aside_end(&text[at..to]);
        if aside > 0 {
            at += aside;
            continue;
        }
        if c.is_whitespace() {
            is_apart = true;
            at += c.len_utf8();
            continue;
        }
        let behind = at + c.len_utf8();
        let (end, next) = if is_letter(c) { word_end(text, at, to) } else { (behind, behind) };
        let word = &text[at..end];
        let form = if is_letter(c) { form(word) } else { Form::Mark };
        let has_senses = matches!(form, Form::Lower | Form::Capital | Form::Capitals);
        let senses = if has_senses { senses_of(word) } else { Senses::default() };
        found.push(Token { start: at, end, form, is_apart, is_owner: next > end, senses });
        is_apart = false;
        at = next;
    }
}

/// Length of a prefix that is not part of the sentence: a footnote mark, "[12]", or the address of
/// a link, "](address)".
fn aside_end(text: &str) -> usize {
    let window = text.as_bytes();
    let find = |mark: u8, most: usize| window.iter().take(most).position(|byte| *byte == mark);
    let is_mark = |note: &[u8]| {
        let is_count = |byte: &u8| byte.is_ascii_digit() || b" ,".contains(byte);
        note == b"citation needed"
            || note.iter().all(is_count) && note.iter().any(u8::is_ascii_digit)
            || note.len() == 1 && note[0].is_ascii_lowercase()
    };
    let end = match window {
        [b'[', ..] => find(b']', NOTE_BYTES_MAX).filter(|end| is_mark(&window[1..*end])),
        [b']', b'(', ..] => find(b')', LINK_BYTES_MAX),
        _ => None,
    };
    end.map_or(0, |end| end + 1)
}

fn is_letter(c: char) -> bool {
    is_word_char(c) || c == '_'
}

/// Returns the end of the word and the start of the next token, which comes after any possessive
/// ending.
fn word_end(text: &str, start: usize, to: usize) -> (usize, usize) {
    let mut before = '\0';
    let mut chars = text[start..to].char_indices().peekable();
    while let Some((offset, c)) = chars.next() {
        let at = start + offset;
        let is_first = offset == 0;
        if is_letter(c) {
            if !is_first && is_unspaced(c) != is_unspaced(before) {
                return (at, at);
            }
            before = c;
            continue;
        }
        let next = chars.peek().map(|(_, next)| *next).filter(|next| is_letter(*next));
        let Some(next) = next.filter(|_| joins(c) && !is_unspaced(before)) else { return (at, at) };
        if is_apostrophe(c) && matches!(next, 's' | 'S') {
            let end = at + c.len_utf8() + 1;
            if !text[end..to].starts_with(is_letter) {
                return (at, end);
            }
        }
        // A full stop inside a word: of initials, numbers, file names, but not between two
        // sentences.
        if c == '.' && before.is_lowercase() && next.is_uppercase() {
            return (at, at);
        }
        before = c;
    }
    (to, to)
}

fn joins(c: char) -> bool {
    is_apostrophe(c) || matches!(c, '-' | '\u{2010}' | '\u{2011}' | '.' | '&' | '@' | '/')
}

fn form(word: &str) -> Form {
    let first = word.chars().next().expect("a word has letters");
    if word.len() > WORD_BYTES_MAX {
        return if is_unspaced(first) { Form::Unspaced } else { Form::Lower };
    }
    let has = |rule: fn(char) -> bool| word.chars().any(rule);
    let is_joined = has(|c| matches!(c, '_' | '@' | '/')) || has_inner_stop(word);
    let uppers = word.chars().filter(|c| c.is_uppercase()).count();
    match first {
        _ if is_unspaced(first) => Form::Unspaced,
        _ if first.is_numeric() && !has(|c| matches!(c, '_' | '@')) => Form::Number,
        _ if word.contains('/') && !has(char::is_lowercase) && uppers > 1 => Form::Capitals,
        _ if is_compound_adjective(word) || is_contraction(word) => Form::Lower,
        _ if has(char::is_alphabetic) && is_joined => Form::Code,
        _ if !first.is_uppercase() && uppers == 0 => Form::Lower,
        _ if !first.is_uppercase() && !word.contains(['-', '\'']) => Form::Code,
        _ if !first.is_uppercase() => Form::Lower,
        _ if uppers == 1 && word.chars().nth(1).is_none() => Form::Initial,
        _ if has(char::is_lowercase) => Form::Capital,
        _ => Form::Capitals,
    }
}

/// Whether a name is part of an adjective: "Australia-based", "Ras-induced".
fn is_compound_adjective(word: &str) -> bool {
    let Some((_, last)) = word.rsplit_once(['-', '\u{2010}', '\u{2011}']) else { return false };
    let is_ending = ["ed", "ing", "ent", "ive", "able"].iter().any(|end| last.ends_with(end));
    let is_listed = ["like", "free", "style", "era", "born", "led", "wide", "only", "specific"];
    last.bytes().all(|b| b.is_ascii_lowercase())
        && (is_ending && last.len() > 3 || is_listed.contains(&last))
}

/// Whether the word is a contraction: "I'm", "They've".
fn is_contraction(word: &str) -> bool {
    let parts = word.rsplit_once(is_apostrophe);
    parts.is_some_and(|(_, last)| matches!(last, "m" | "re" | "ve" | "ll" | "d" | "t"))
}

/// Whether a full stop separates longer parts, as in a file name, as opposed to initials.
fn has_inner_stop(word: &str) -> bool {
    word.contains('.') && word.split('.').any(|part| part.chars().nth(1).is_some())
}
