//! Parts: several questions in one, "what time do you open, and can my dog come too?".

use unicode_segmentation::UnicodeSegmentation;

use crate::question::session::contextualise;
use crate::text::words::is_entry;
use lodestone_types::{RequestContext, Stopped};

/// Words that join two questions, by language.
const AND: &str = "and|also|plus|then";
const AND_OTHER: &str = "und|et|y|sowie";
/// Words that begin a question in English.
const ASKING: &str = "what|what's|whats|when|where|who|who's|whom|whose|which|why|how";
/// Verbs that begin a question in English if one of these subjects follows.
const VERBS: &str = "can|could|do|does|did|is|are|may|must|should|will|would|has|have|am|was|were";
const SUBJECTS: &str = "\
    i|we|you|they|he|she|it|my|our|your|the|a|an|there|this|that|these|those|any|anyone|someone";
/// Words that begin a question in other languages.
const ASKING_OTHER: &str = "\
    wie|was|wann|wo|wer|wen|welche|welcher|welches|warum|wieso|weshalb|kann|darf|muss|gibt|\
    combien|quand|où|qui|comment|pourquoi|quel|quelle|quels|quelles|est-ce|\
    cuánto|cuánta|cuántos|cuándo|dónde|quién|cómo|cuál|cuáles|qué|hay|puedo";
/// Minimum number of words before a word that joins two questions, and maximum number of questions.
const BEFORE_MIN: usize = 4;
const PARTS_MAX: usize = 4;
/// Maximum number of words of a text that is split.
const WORDS_MAX: usize = 200;
/// Maximum number of words of a thing in a list of what is asked for: "course: fee, start, end".
const THING_WORDS_MAX: usize = 4;

/// Returns the questions that a text asks, each as it would be asked after those before it; empty
/// if it asks only one.
///
/// # Errors
/// [`Stopped`] if the request ends meanwhile.
pub fn questions_of(
    text: &str,
    past: &[(String, String)],
    context: &RequestContext,
) -> Result<Vec<String>, Stopped> {
    let things = things(text);
    if !things.is_empty() {
        return Ok(things);
    }
    let split = split(text);
    if split.len() < 2 {
        return Ok(Vec::new());
    }
    let mut past = past.to_vec();
    let mut parts = Vec::with_capacity(split.len());
    for part in split {
        let asked = contextualise(part, &past, context)?;
        past.push((asked.clone(), String::new()));
        parts.push(asked);
    }
    Ok(parts)
}

/// A word of a text with its position.
struct Word<'t> {
    start: usize,
    end: usize,
    lower: String,
    /// The text between the word before and this one.
    between: &'t str,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut last = 0;
    let all = text.unicode_word_indices().map(|(start, word)| {
        let between = &text[last..start];
        last = start + word.len();
        Word { start, end: last, lower: word.to_lowercase(), between }
    });
    all.collect()
}

/// Whether a question begins at a word.
fn begins(words: &[Word<'_>], at: usize) -> bool {
    let word = words[at].lower.as_str();
    let has_subject = || words.get(at + 1).is_some_and(|next| is_entry(SUBJECTS, &next.lower));
    is_entry(ASKING, word) || (is_entry(VERBS, word) && has_subject())
}

/// Splits a text where a further question begins.
fn split(text: &str) -> Vec<&str> {
    let words = words(text);
    if words.len() > WORDS_MAX {
        return vec![text];
    }
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    // Beginnings behind a mere comma, which count if a joined question follows.
    let mut loose: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    for at in 1..words.len() {
        let (word, before) = (&words[at], &words[at - 1]);
        let is_other = is_entry(ASKING_OTHER, &word.lower);
        let asks = begins(&words, at);
        let opens = || asks || is_other || is_entry(VERBS, &word.lower) || is_and(&words, at);
        if word.between.contains('?') && opens() {
            cuts.append(&mut loose);
            cuts.push((word.start, before.end));
            from = at;
            continue;
        }
        let has_mark = word.between.contains('&');
        let is_joined = (asks && (has_mark || is_entry(AND, &before.lower)))
            || (is_other && is_entry(AND_OTHER, &before.lower));
        let asks_before =
            || (from..at - 1).any(|one| begins(&words, one) || asks_in_other(&words, one));
        let end = if has_mark { before.end } else { before.start };
        if is_joined && at - from > BEFORE_MIN && asks_before() {
            cuts.append(&mut loose);
            cuts.push((word.start, end));
            from = at;
        } else if asks && word.between.contains([',', ';']) && begins(&words, from) {
            loose.push((word.start, before.end));
        }
    }
    cuts.truncate(PARTS_MAX - 1);
    let mut parts = Vec::new();
    let mut begin = 0;
    for (next, end) in cuts {
        parts.push(trimmed(&text[begin..end.max(begin)]));
        begin = next;
    }
    parts.push(trimmed(&text[begin..]));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether a word begins a question in another language than English, where "was" within a sentence
/// is a verb.
fn asks_in_other(words: &[Word<'_>], at: usize) -> bool {
    is_entry(ASKING_OTHER, &words[at].lower) && (at == 0 || words[at].lower != "was")
}

/// Whether a further question begins with a joining word: "And can I bring my dog?".
fn is_and(words: &[Word<'_>], at: usize) -> bool {
    let word = words[at].lower.as_str();
    (is_entry(AND, word) || is_entry(AND_OTHER, word))
        && words
            .get(at + 1)
            .is_some_and(|next| is_entry(ASKING_OTHER, &next.lower) || begins(words, at + 1))
}

fn trimmed(part: &str) -> &str {
    part.trim_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '-' | '\u{2013}'))
}

/// The questions of keywords with a list of what is asked for: "diving course: price, days".
fn things(text: &str) -> Vec<String> {
    let Some((topic, list)) = text.split_once(": ") else { return Vec::new() };
    if text.unicode_words().nth(WORDS_MAX).is_some() {
        return Vec::new();
    }
    let is_bare = |text: &str| {
        let words = words(text);
        !text.contains(['?', ':', '.'])
            && !(0..words.len()).any(|at| begins(&words, at) || asks_in_other(&words, at))
    };
    let list = list.trim_end_matches(['?', ' ']);
    let things: Vec<&str> = list
        .split([',', ';'])
        .flat_map(|part| part.split(" and ").flat_map(|part| part.split(" & ")))
        .map(str::trim)
        .collect();
    let is_thing = |thing: &&str| {
        let count = thing.unicode_words().count();
        (1..=THING_WORDS_MAX).contains(&count) && thing.starts_with(char::is_alphabetic)
    };
    let is_list = (2..=PARTS_MAX).contains(&things.len()) && things.iter().all(is_thing);
    let is_topic = topic.unicode_words().count() >= 2 && is_bare(topic) && is_bare(list);
    if !is_list || !is_topic {
        return Vec::new();
    }
    things.iter().map(|thing| format!("{thing} {}", topic.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a text is split where another question begins, and nowhere else.
    #[test]
    fn a_text_is_split_into_its_questions() {
        for (text, parts) in [
            (
                "what time do you open on sunday and can my dog come too",
                &["what time do you open on sunday", "can my dog come too"][..],
            ),
            (
                "How deep is the harbour, who pilots large ships and how long before do I ring?",
                &[
                    "How deep is the harbour", "who pilots large ships",
                    "how long before do I ring?",
                ],
            ),
            (
                "When is low tide? And is there a lock?",
                &["When is low tide", "And is there a lock?"],
            ),
            (
                "Was kostet ein Boot und wann ist es frei?",
                &["Was kostet ein Boot", "wann ist es frei?"],
            ),
            ("When and where is the regatta?", &["When and where is the regatta?"]),
            (
                "We sailed yesterday and was told to wait",
                &["We sailed yesterday and was told to wait"],
            ),
            ("Who is the pilot, who came in May?", &["Who is the pilot, who came in May?"]),
            ("I lost a rope. What now?", &["I lost a rope. What now?"]),
        ] {
            assert_eq!(split(text), parts, "{text}");
        }
    }

    /// Goal: things listed behind a topic are asked for one by one.
    #[test]
    fn listed_things_are_asked_for() {
        let of = |text: &str| things(text);
        assert_eq!(
            of("sailing course: fee, start and number of days"),
            ["fee sailing course", "start sailing course", "number of days sailing course"]
        );
        assert_eq!(of("harbour round: who drives it, when"), [""; 0]);
        assert_eq!(of("Re: the mast"), [""; 0]);
    }
}
