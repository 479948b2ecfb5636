//! Extracts the statements of a message that are worth keeping, by rules.
//!
//! A statement is a sentence in which somebody expresses a preference, a fact or a decision. This
//! module reads plain text and knows neither memories nor models. It recognizes simple statements
//! in five languages (English, German, Spanish, French, Russian) and misses the rest: keeping too
//! little is better than keeping what was never said.
//!
//! ```text
//! message -> sentences -> words -> strip openers
//!         -> a reminder?  keep what follows it
//!         -> a question, a request, small talk?  drop it
//!         -> a phrase that states something?  keep the sentence
//!         -> in the third person, where that is safe -> deduplicate
//! ```
//! Invariants: a statement is a sentence of the message, possibly without its first words or with
//! these changed to the third person. Statements keep their order. The result is deterministic.
//!
//! - `sentences`: splits a message; `phrases`: the phrases of the rules (`phrases.txt`)
//! - `third_person`: changes "I like" to a name and "likes"

mod phrases;
mod sentences;
mod third_person;

#[cfg(test)]
mod tests;

use phrases::{PHRASES, Word};

/// Returns the statements of `message` in their order. `name` is the speaker; without it,
/// statements stay in the first person.
pub fn worth_keeping(message: &str, name: Option<&str>) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for sentence in sentences::split(message) {
        let Some(kept) = statement(sentence) else { continue };
        let told = name.and_then(|name| third_person::told(kept, name.trim()));
        let statement = told.unwrap_or_else(|| capitalised(kept));
        if !statements.contains(&statement) {
            statements.push(statement);
        }
    }
    statements
}

/// The part of a sentence that is worth keeping, if any.
fn statement(sentence: &str) -> Option<&str> {
    if sentence.ends_with(['?', '\u{ff1f}']) {
        return None;
    }
    let words = Word::all(sentence);
    let mut words = words.as_slice();
    while let Some(len) = PHRASES.openers.length_at(words) {
        words = &words[len..];
    }
    if let Some(len) = PHRASES.reminders.length_at(words) {
        let first = words.get(len)?;
        return Some(&sentence[first.start..]);
    }
    let is_idle = PHRASES.requests.length_at(words).is_some() || PHRASES.small_talk.is_in(words);
    // The last word is left out: a phrase with nothing after it states nothing.
    let (_, before_last) = words.split_last()?;
    let is_kept = !is_idle && PHRASES.statements.is_in(before_last);
    is_kept.then(|| &sentence[words[0].start..])
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    match rest.next() {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => String::new(),
    }
}
