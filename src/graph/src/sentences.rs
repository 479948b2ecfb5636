//! Sentence boundaries among the tokens of a paragraph.

use std::ops::Range;

use crate::tokens::{Form, Token};

/// Maximum tokens of a sentence. Longer ones are split: no rule needs more, and this bounds time.
const SENTENCE_TOKENS_MAX: usize = 256;

/// Splits tokens into sentences, as consecutive ranges.
pub(super) fn sentences(text: &str, tokens: &[Token]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut first = 0;
    for at in 0..tokens.len() {
        if at < first {
            continue;
        }
        let is_long = at + 1 - first >= SENTENCE_TOKENS_MAX;
        let end = sentence_end(text, tokens, at).or(is_long.then_some(at + 1));
        if let Some(end) = end {
            found.push(first..end);
            first = end;
        }
    }
    if first < tokens.len() {
        found.push(first..tokens.len());
    }
    found
}

/// Returns the end of the sentence whose final punctuation may be at `at`; `None` if it does not
/// end there.
fn sentence_end(text: &str, tokens: &[Token], at: usize) -> Option<usize> {
    let mark = mark(text, &tokens[at])?;
    if matches!(mark, '。' | '\u{ff01}' | '\u{ff1f}') {
        return Some(at + 1);
    }
    if !matches!(mark, '.' | '!' | '?') || mark == '.' && at > 0 && is_short(text, tokens, at) {
        return None;
    }
    let is_closer = |c| matches!(c, '"' | '\u{201d}' | '\u{2019}' | ')' | ']' | '\'');
    let closes = |token: &&Token| !token.is_apart && self::mark(text, token).is_some_and(is_closer);
    let end = at + 1 + tokens[at + 1..].iter().take(2).take_while(closes).count();
    match tokens.get(end) {
        Some(next) if !next.is_apart || next.form == Form::Lower => None,
        _ => Some(end),
    }
}

/// Whether the full stop belongs to an initial or an abbreviation.
fn is_short(text: &str, tokens: &[Token], at: usize) -> bool {
    let before = &tokens[at - 1];
    let word = before.text(text);
    let is_title = before.senses.is_honorific() && word.len() <= 5 && before.is_capital();
    let is_listed = ["no", "vs", "ca", "approx", "fig", "e.g", "i.e", "al", "cf", "vol", "pp"]
        .iter()
        .any(|short| word.eq_ignore_ascii_case(short));
    let is_last = tokens[at + 1..].is_empty();
    !is_last && (before.form == Form::Initial || word.contains('.') || is_title || is_listed)
}

/// The character of a punctuation token.
pub(super) fn mark(text: &str, token: &Token) -> Option<char> {
    match token.form {
        Form::Mark => token.text(text).chars().next(),
        _ => None,
    }
}

/// Whether most words of the sentence are in capitals, so that capitals carry no information.
pub(super) fn is_shouted(sentence: &[Token]) -> bool {
    let words = sentence.iter().filter(|token| token.is_word()).count();
    let loud = sentence.iter().filter(|token| token.form == Form::Capitals).count();
    loud >= 3 && loud * 2 > words
}
