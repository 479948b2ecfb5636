//! Splits a message into sentences: at a mark followed by white space, and at line ends.

use lodestone_text::chunk::marks;

/// Abbreviations in lower case, after which a full stop does not end a sentence.
const ABBREVIATIONS: &[&str] =
    &["dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "etc", "no", "nr", "z.b", "bzw"];

/// Splits `message` into trimmed, non-empty sentences that keep their final marks.
pub(super) fn split(message: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in message.lines() {
        let line = line.trim_start_matches(['-', '*', '\u{2022}', '>', ' ', '\t']);
        let mut start = 0;
        for (at, mark) in line.char_indices() {
            let end = at + mark.len_utf8();
            if ends_sentence(&line[start..at], mark, &line[end..]) {
                sentences.push(line[start..end].trim());
                start = end;
            }
        }
        sentences.push(line[start..].trim());
    }
    sentences.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    sentences
}

fn ends_sentence(before: &str, mark: char, after: &str) -> bool {
    if marks::is_wide_end(mark) {
        return true;
    }
    if !matches!(mark, '.' | '!' | '?' | '\u{2026}') || !after.starts_with(char::is_whitespace) {
        return false;
    }
    if mark != '.' {
        return true;
    }
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let is_short = ABBREVIATIONS.contains(&word.to_lowercase().as_str());
    let goes_on = after.trim_start().starts_with(char::is_lowercase);
    !(is_initial && word != "I" || is_short || goes_on)
}
