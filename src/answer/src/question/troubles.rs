//! Troubles: texts that state that something does not work, as questions and as headings.

use crate::text::words::{contains_any, is_entry, spaced, tells_negation};

/// Words for something that fails, and negated verbs without their apostrophe.
const TROUBLES: &str = "\
    wont|cant|doesnt|dont|didnt|isnt|arent|fails|failed|failing|fault|broken|broke|stuck|jammed|\
    jams|tripped|stopped|\
    crashes|crashed|frozen|freezes|out of order|defekt|kaputt|klemmt|hängt|streikt|gestört|\
    störung|en panne|cassé|cassée|bloqué|bloquée|roto|rota|averiado|averiada|atascado|atascada";
/// Words of a question that asks for something, wherever they stand in it.
const ASKING: &str = "\
    what|what's|which|who|who's|whose|whom|how|why|where|when|whether|was|welche|welcher|welches|\
    wer|wen|wem|wie|warum|weshalb|wo|wann|que|quoi|quel|quelle|qui|comment|pourquoi|où|quand|\
    combien|qué|cuál|quién|cómo|por qué|dónde|cuándo|cuánto";
/// First words of a question for yes or no.
const FIRST: &str = "\
    is|are|was|were|do|does|did|can|could|may|must|will|would|shall|should|has|have|had|am|ist|\
    sind|kann|darf|muss|soll|wird|hat|habe|est|sont|peut|puis|faut|es|son|puede|puedo|hay";

/// Verbs of a sentence about something that is so or has happened, with their subject if joined.
const STATING: &str = "\
    is|are|am|was|were|has|have|had|just|i'm|i've|we're|we've|it's|there's|something's|somebody's|\
    someone's|that's|he's|she's|they're|ist|sind|bin|hat|habe|haben|gerade|est|sont|j'ai|il y a|\
    está|están|hay|acaba";
/// Minimum number of words in a statement.
const STATED_WORDS_MIN: usize = 4;

/// Whether a text says that something does not work.
pub(crate) fn tells_trouble(text: &str) -> bool {
    tells_negation(text) || contains_any(&spaced(text), TROUBLES)
}

/// Whether a question only states a trouble: "the pump won't start in the cold".
pub(crate) fn states_trouble(question: &str) -> bool {
    tells_trouble(question) && asks_nothing_of(question)
}

/// Whether a question only states what is so or has happened: "something is burning in the bin".
pub(crate) fn states_situation(question: &str) -> bool {
    let words = spaced(question);
    let is_whole = words.split_whitespace().nth(STATED_WORDS_MIN - 1).is_some();
    is_whole && contains_any(&words, STATING) && asks_nothing_of(question)
}

fn asks_nothing_of(question: &str) -> bool {
    let words = spaced(question);
    let first = words.split_whitespace().next().unwrap_or_default();
    !question.contains('?') && !contains_any(&words, ASKING) && !is_entry(FIRST, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a bare statement of a trouble is told from a question about it.
    #[test]
    fn a_trouble_is_stated_or_asked_about() {
        for stated in ["the pump won't start", "pump wont start", "Pumpe kaputt", "radio en panne"]
        {
            assert!(states_trouble(stated), "{stated}");
        }
        for other in [
            "why won't the pump start",
            "Is the pump broken?",
            "pump of the north well",
            "what do I do when the pump does not start",
        ] {
            assert!(!states_trouble(other), "{other}");
        }
        for stated in ["Smoke is coming out of the oven", "a guest has fallen on the stairs"] {
            assert!(states_situation(stated), "{stated}");
        }
        for other in ["Is smoke bad for the oven", "price of the oven", "The oven is on, may I go?"]
        {
            assert!(!states_situation(other), "{other}");
        }
    }
}
