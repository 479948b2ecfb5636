//! Openers: polite words around a question that are not part of its matter, as in "could you tell
//! me which, please?". Without them, the question begins with its question word.

use unicode_segmentation::UnicodeSegmentation;

use crate::question::phrases::COMPARATIVES;
use crate::text::words::{begins_with, entries, is_entry};

/// Greetings and other words before the opener.
const GREETINGS: &str = "\
    hello|hi|hey|hi there|hello there|good morning|good afternoon|good evening|excuse me|sorry|\
    dear all|dear team|hi all|hi team|quick question|just a quick question|i have a question|\
    please|so|well|hallo|guten tag|guten morgen|entschuldigung|bitte|eine frage|bonjour|pardon|\
    excusez moi|hola|buenos días|perdón|por favor";
/// Openers of an indirect question.
const OPENERS: &str = "\
    could you tell me|could you please tell me|could you kindly tell me|can you tell me|\
    can you please tell me|would you tell me|would you please tell me|will you tell me|\
    could you let me know|can you let me know|please tell me|please let me know|tell me|\
    let me know|could you explain|can you explain|could you explain to me|could you|can you|\
    would you|would you please|could you please|can you please|would you be so kind as to|\
    would you be so kind to|would you be so kind and|would you mind telling me|\
    would you mind|would it be possible to|can someone tell me|can somebody tell me|\
    can anyone tell me|could someone tell me|could anyone tell me|does anyone know|\
    does anybody know|does someone know|do you know|do you happen to know|do we know|\
    would you know|any idea|i need to know|we need to know|i want to know|we want to know|\
    i'd like to know|i would like to know|we would like to know|we'd like to know|\
    i would love to know|i'd love to know|i have to know|i must know|i was wondering|\
    i am wondering|i'm wondering|i wonder|just wondering|wondering|may i ask|could i ask|\
    can i ask|i'm trying to find out|i am trying to find out|i'm not sure|i am not sure|\
    i don't know|it is not clear to me|remind me|\
    können sie mir sagen|könnten sie mir sagen|kannst du mir sagen|könntest du mir sagen|\
    können sie mir bitte sagen|kannst du mir bitte sagen|sagen sie mir|sag mir|\
    ich möchte wissen|ich würde gerne wissen|ich wüsste gern|ich wüsste gerne|ich muss wissen|\
    wissen sie|weißt du|wisst ihr|weiß jemand|\
    pouvez vous me dire|pourriez vous me dire|peux tu me dire|dites moi|dis moi|\
    je voudrais savoir|j'aimerais savoir|je veux savoir|savez vous|sais tu|\
    puede decirme|puedes decirme|podría decirme|podrías decirme|me puede decir|me puedes decir|\
    dígame|dime|quisiera saber|quiero saber|me gustaría saber|sabe usted|sabes";
/// First words of a question after an opener.
const ASKING: &str = "\
    who|whom|whose|what|what's|which|when|where|why|how|whether|if|since|until|from|at|in|list|\
    name|enumerate|explain|describe|wer|wen|wem|wessen|was|welche|welcher|welches|welchen|wann|wo|\
    warum|weshalb|wieso|wie|wieviel|ob|nenne|qui|que|quoi|quel|quelle|quels|quelles|quand|où|\
    pourquoi|comment|combien|si|liste|quién|quiénes|qué|cuál|cuáles|cuándo|dónde|cómo|cuánto|\
    cuánta|cuántos|cuántas|por";
/// Openings of indirect questions for steps: "how the pump is started".
pub(crate) const INDIRECT_STEPS: &str = "\
    how the|how a|how an|how my|how our|how your|how i|how we|how you|how one|wie man|wie ich|\
    wie wir|wie die|wie der|wie das|comment on|cómo se";
/// Verbs of search terms that ask for instructions, words between such a verb and its object, and
/// final words that ask for instructions too.
const ORDERS: &str = "\
    set|setup|install|reset|change|create|add|remove|delete|cancel|connect|configure|export|import|\
    mount|replace|update|upgrade|print|restore|register|activate|enable|disable|return|renew|pair|\
    clean|start|stop|restart|calibrate|assemble|setting|installing|resetting|changing|creating|\
    adding|removing|deleting|cancelling|connecting|configuring|exporting|importing|mounting|\
    replacing|updating|upgrading|printing|restoring|registering|activating|returning|renewing|\
    pairing|cleaning|starting|restarting";
const BEHIND_ORDER: &str = "a|an|the|my|our|your|up";
const INSTRUCTIONS: &str =
    "instructions|step by step guide|anleitung|mode d'emploi|instrucciones|paso a paso";
/// Openings that ask how something is done, or what somebody does if a word of the third list
/// follows "do".
const HOW: &str = "how does|how do";
const WHAT: &str = "what does|what do|what must|what should|what did";
const BEHIND_DO: &str = "before|after|when|if|during|with|in|at|on|first|about";
/// Words of questions that do not ask for a procedure.
const NO_DEEDS: &str = "work|know|mean|feel|matter|help|look";
/// Words that a "how" question for a procedure must exceed.
const HOW_WORDS_MIN: usize = 4;
/// Minimum number of words in a statement before a comma or full stop that a question follows.
const BEFORE_ASKING_MIN: usize = 3;
/// Words that begin a question.
pub(crate) const QUESTION_WORDS: &str = "\
    who|whom|whose|what|what's|when|where|which|why|how|wer|wen|wem|was|welche|welcher|welches|\
    welchen|wann|wo|warum|wie|qui|que|quel|quelle|quels|quelles|quand|où|pourquoi|comment|\
    combien|quién|qué|cuál|cuáles|cuándo|dónde|cómo|cuánto|cuánta|cuántos|cuántas";
/// Words of thanks after a question.
const CLOSERS: &str = "\
    please|thanks|thank you|thank you very much|many thanks|thanks in advance|thanks a lot|cheers|\
    bitte|danke|vielen dank|danke schön|s'il vous plaît|s'il te plaît|merci|merci beaucoup|\
    por favor|gracias|muchas gracias";
/// Words that ask nothing alone.
const IDLE: &str = "\
    ok|okay|k|alright|all right|got it|i see|understood|thx|ty|thank you so much|thanks so much|\
    thanks again|thank you again|good day|good night|greetings|yo|bye|goodbye|good bye|bye bye|\
    see you|grüß gott|moin|servus|grüezi|guten abend|danke sehr|vielen herzlichen dank|tschüss|\
    auf wiedersehen|salut|bonsoir|au revoir|buenas tardes|buenas noches|adiós|ciao|buongiorno|\
    grazie|obrigado|obrigada";
/// Words typed to try a search; with a question mark they may ask for a test.
const TRIALS: &str = "test|testing|test test|just testing|just a test";
/// Maximum number of words in a text that asks nothing.
const IDLE_WORDS_MAX: usize = 12;
/// Maximum number of words in an entry in these lists.
const WORDS_MAX: usize = 8;
/// Maximum number of greetings and openers before a question.
const OPENERS_MAX: usize = 16;

/// Returns the question without greetings, openers and thanks. Greetings and openers are removed
/// only if there is an opener and the rest begins like a question.
pub(crate) fn without_openers(question: &str) -> &str {
    let rest = without_closers(question);
    let mut asked = rest;
    let mut is_opened = false;
    for _ in 0..OPENERS_MAX {
        if let Some(behind) = behind(asked, GREETINGS) {
            asked = behind;
        } else if let Some(behind) = behind(asked, OPENERS) {
            (asked, is_opened) = (behind, true);
        } else {
            break;
        }
    }
    let first = asked.unicode_words().next().unwrap_or_default();
    if is_opened && is_entry(ASKING, first) { asked } else { rest }
}

/// Whether a text consists only of greetings, thanks and the like, and so asks nothing.
pub(crate) fn asks_nothing(question: &str) -> bool {
    let words: Vec<(usize, &str)> =
        question.unicode_word_indices().take(IDLE_WORDS_MAX + 1).collect();
    let is_idle = |words: &[(usize, &str)]| {
        let phrase = joined(words);
        [GREETINGS, CLOSERS, IDLE].into_iter().any(|list| is_entry(list, &phrase))
            || (is_entry(TRIALS, &phrase) && !question.contains('?'))
    };
    let mut rest = &words[..];
    while !rest.is_empty() {
        let counts = (1..=WORDS_MAX.min(rest.len())).rev();
        let Some(count) = counts.into_iter().find(|count| is_idle(&rest[..*count])) else {
            return false;
        };
        rest = &rest[count..];
    }
    (1..=IDLE_WORDS_MAX).contains(&words.len())
}

/// Whether words ask for instructions without forming a question: "set up a printer".
pub(crate) fn is_order(opening: &str) -> bool {
    let mut words = opening.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let ends = |phrase: &str| opening.ends_with(&format!(" {phrase} "));
    (is_entry(ORDERS, first) && is_entry(BEHIND_ORDER, second)) || entries(INSTRUCTIONS).any(ends)
}

/// Whether words beginning with "how does" ask for a procedure rather than a comparison.
pub(crate) fn asks_how(opening: &str) -> bool {
    let words: Vec<&str> = opening.split_whitespace().collect();
    let is_how = begins_with(opening, HOW);
    let is_other = |word: &&str| is_entry(COMPARATIVES, word) || is_entry(NO_DEEDS, word);
    is_how && words.len() > HOW_WORDS_MIN && !words.iter().any(is_other)
}

/// Whether words beginning with "what does" ask what somebody does on some occasion.
pub(crate) fn asks_deeds(opening: &str) -> bool {
    let words: Vec<&str> = opening.split_whitespace().collect();
    let is_what = begins_with(opening, WHAT);
    is_what && words.windows(2).skip(2).any(|two| two[0] == "do" && is_entry(BEHIND_DO, two[1]))
}

/// The part of a question that asks, after a statement: "It is for 30 people. Which hall fits?";
/// all of it if it asks from the beginning.
pub(crate) fn asking(question: &str) -> &str {
    if asks_first(question) {
        return question;
    }
    let is_statement = |text: &str| text.split_whitespace().nth(BEFORE_ASKING_MIN - 1).is_some();
    let mut marks = question.rmatch_indices([',', '.', '!', ':', ';']);
    let behind = marks.find_map(|(at, mark)| {
        let rest = question[at + mark.len()..].strip_prefix(' ')?;
        // "In a fire: what do I do?"
        (asks_first(rest) && (mark == ":" || is_statement(&question[..at]))).then_some(rest)
    });
    behind.map_or(question, str::trim_start)
}

/// Whether a text begins with a question word.
fn asks_first(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| {
        is_entry(QUESTION_WORDS, word.trim_matches(|c: char| !c.is_alphanumeric()))
    })
}

/// The text after the longest entry that it begins with, including any punctuation.
fn behind<'t>(text: &'t str, list: &str) -> Option<&'t str> {
    let words: Vec<(usize, &str)> = text.unicode_word_indices().take(WORDS_MAX + 1).collect();
    let longest = (1..words.len()).rev().find(|count| is_entry(list, &joined(&words[..*count])))?;
    Some(&text[words[longest].0..])
}

/// The text before words of thanks at its end.
fn without_closers(question: &str) -> &str {
    let words: Vec<(usize, &str)> = question.unicode_word_indices().collect();
    let counts = (1..=WORDS_MAX.min(words.len().saturating_sub(1))).rev();
    let mut ends = counts.map(|count| words.len() - count);
    match ends.find(|at| is_entry(CLOSERS, &joined(&words[*at..]))) {
        Some(at) => question[..words[at].0].trim_end_matches([' ', ',', '-', '\u{2013}', '(', '.']),
        None => question,
    }
}

fn joined(words: &[(usize, &str)]) -> String {
    let words: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
    words.join(" ").replace('\u{2019}', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polite_words_are_no_part_of_a_question() {
        for (question, asked) in [
            ("Could you tell me which bowls I may bring, please?", "which bowls I may bring"),
            ("I need to know how the pump is started", "how the pump is started"),
            ("Hi, do you know when the hall opens? Thanks", "when the hall opens?"),
            ("Would you be so kind as to list what was corrected?", "list what was corrected?"),
            ("Können Sie mir sagen, wann die Halle öffnet?", "wann die Halle öffnet?"),
            ("Je voudrais savoir quand la salle ouvre", "quand la salle ouvre"),
            ("When does the hall open, please?", "When does the hall open"),
        ] {
            assert_eq!(without_openers(question), asked);
        }
    }

    #[test]
    fn greetings_and_thanks_ask_nothing() {
        for text in
            ["hello", "Thanks!", "OK, thank you very much", "test", "Hi there :)", "Vielen Dank!"]
        {
            assert!(asks_nothing(text), "{text}");
        }
        for text in [
            "", "?", "test?", "the test", "Thanks, who signs?", "hello kitty", "Why?",
            "thanks Ada", "How do I say thank you?",
        ] {
            assert!(!asks_nothing(text), "{text}");
        }
    }

    #[test]
    fn a_question_asks_behind_a_statement() {
        for (question, asked) in [
            ("It is for 30 people. Which hall fits?", "Which hall fits?"),
            ("There is a mistake in my pay, whom do I ask?", "whom do I ask?"),
            ("Which hall is it, and who pays?", "Which hall is it, and who pays?"),
            ("Ada, who signs?", "Ada, who signs?"),
        ] {
            assert_eq!(asking(question), asked);
        }
    }

    #[test]
    fn what_does_not_ask_behind_them_stays() {
        for question in [
            "Tell me about the pump", "Do you know Ada?", "I don't know",
            "Can you open the hall on Sunday?", "Please", "", "Who signs?",
        ] {
            assert_eq!(without_openers(question), question);
        }
    }
}
