//! The question mark, which people often leave out when they type.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::openers::{QUESTION_WORDS, asking};
use crate::question::wish::last_of;
use crate::text::words::is_entry;

/// First words of a question for yes or no.
const YES_NO: &str = "\
    is|are|am|was|were|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had|\
    isn't|aren't|don't|doesn't|can't|won't";
/// Words before a question word: "until when", "and in which week".
const BEFORE: &str = "\
    until|till|since|from|by|to|up|in|on|at|for|with|of|under|after|before|about|and|but|or|so|\
    bis|seit|ab|von|mit|in|an|auf|für|zu|und|oder|à|de|depuis|jusqu|en|pour|avec|et|desde|hasta|\
    a|para|con|y";
/// Maximum number of such words.
const BEFORE_MAX: usize = 3;

/// The question with one question mark at its end. A text that does not begin like a question is
/// left as it is: search terms are no question.
pub fn with_mark(question: &str) -> Cow<'_, str> {
    let bare = question.trim_end();
    let text = bare.trim_end_matches(['?', '!', '.', ' ', '\u{A0}']);
    let end = &bare[text.len()..];
    let is_marked = end.contains('?');
    // A statement may follow the question: "When is it shut? I come by train."
    let is_statement = end.starts_with('.') && !is_marked && has_sentences(text);
    if text.is_empty() || end == "?" || is_statement || !(is_marked || asks(text)) {
        return Cow::Borrowed(question);
    }
    if !text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '"' | '\'' | '%')) {
        return Cow::Borrowed(question);
    }
    Cow::Owned(format!("{text}?"))
}

/// Whether a text has a sentence before its last one.
fn has_sentences(text: &str) -> bool {
    ["? ", ". ", "! "].iter().any(|end| text.contains(end))
}

/// Whether a text without its final mark asks.
fn asks(text: &str) -> bool {
    let part = asking(last_of(text));
    let words = part.unicode_words().map(|word| match word.split_once(['\'', '\u{2019}']) {
        // "What's", but not "don't".
        Some((word, "s")) => word,
        _ => word,
    });
    let words: Vec<&str> = words.take(BEFORE_MAX + 1).collect();
    let before = words.iter().take_while(|word| is_entry(BEFORE, word)).count();
    words.first().is_some_and(|word| is_entry(YES_NO, word))
        || words.get(before).is_some_and(|word| is_entry(QUESTION_WORDS, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_end_in_one_mark() {
        for (question, expected) in [
            ("when does the kiln cool", "when does the kiln cool?"),
            ("when does the kiln cool?", "when does the kiln cool?"),
            ("when does the kiln cool ?", "when does the kiln cool?"),
            ("When does the kiln cool??", "When does the kiln cool?"),
            ("when does the kiln cool.", "when does the kiln cool?"),
            ("until when is glaze sold", "until when is glaze sold?"),
            ("and in which week is it fired", "and in which week is it fired?"),
            ("what's fired in week 3", "what's fired in week 3?"),
            ("can I bring clay (red)", "can I bring clay (red)?"),
            ("It is for 30 people, which kiln fits", "It is for 30 people, which kiln fits?"),
            ("Who fires it? where is the kiln", "Who fires it? where is the kiln?"),
            ("wie lange brennt der Ofen", "wie lange brennt der Ofen?"),
        ] {
            assert_eq!(with_mark(question), expected);
        }
    }

    #[test]
    fn what_is_no_question_is_left() {
        for text in [
            "", "?", "kiln hours", "test", "Kiln 3.", "things to bring when it is fired",
            "Who fires it? I come at noon.", "List the glazes.", "窑什么时候冷却？",
            "Who fires it? Ada Tarn",
        ] {
            assert_eq!(with_mark(text), text);
        }
    }
}
