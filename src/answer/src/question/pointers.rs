//! Words of a question that refer to earlier turns.
//!
//! Not every pronoun does: "Which employees get their laptops replaced?" names what it means, and
//! the "it" of "How long does it take to fly?" means nothing, nor does the "there" of "Which boats
//! are there?". The rules are fullest for English; in German, French and Spanish, pronouns and
//! possessives point back unless they are formal ("Sie"), part of a phrase ("est-ce que") or name
//! a time of now ("diese Woche").

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::phrase::{self, Word, bare_plural, bare_singular, is_be};
use crate::question::several::is_plural;
use crate::text::words::{self, is_entry};
use crate::translation::{Language, Lexicon};

/// A longer question names what its pronouns refer to.
const POINTING_WORDS_MAX: usize = 12;

const PERSONS: &[&str] = &["he", "she", "him", "his", "her", "hers"];
const THINGS: &[&str] = &["it", "its", "they", "them", "their", "theirs"];
/// Words before a noun that a later pronoun may refer to.
const DETERMINERS: &[&str] =
    &["the", "a", "an", "my", "our", "your", "each", "every", "all", "any", "some"];
/// Further words before such a noun, unless the pronoun is the subject: "which employees get their
/// laptops".
const QUESTION_DETERMINERS: &[&str] = &["which", "what", "whose", "many"];
const AUXILIARIES: &[&str] = &[
    "do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "can", "could", "will",
    "would", "should", "may", "must",
];
/// Words after a meaningful "it" even though "to" follows: "is it going to open".
const VERBS_OF_THINGS: &[&str] = &[
    "going", "able", "supposed", "used", "likely", "about", "due", "need", "needs", "have", "has",
    "want", "belong", "apply", "lead", "connect", "relate", "refer", "compare", "happen", "close",
    "next",
];

/// Nouns of time that a "that" before them refers to: "who is on call that week". "This week" is
/// the current one.
const TIMES: &[&str] = &[
    "day", "night", "week", "weekend", "month", "quarter", "season", "year", "morning", "evening",
    "afternoon", "date", "time", "period", "shift",
];
const OTHER_TIMES: &str = "\
    tag|tage|woche|wochen|wochenende|monat|quartal|saison|jahr|morgen|abend|nacht|jour|semaine|\
    mois|année|matin|soir|soirée|nuit|saison|trimestre|semana|mes|año|mañana|tarde|noche|temporada";
/// Words beside a "there" that says that something exists.
const EXISTING: &str = "is|are|was|were|be|been|will|isn't|aren't|should|exist|exists";
/// Possessives before a noun. "Her" is one only if a noun follows.
const POSSESSIVES: &str = "\
    its|their|theirs|his|her|hers|sein|seine|seinen|seinem|seiner|seines|ihr|ihre|ihren|ihrem|\
    ihrer|ihres|son|sa|ses|leur|leurs|su|sus";
/// Words after an object "her": "is told about her by the coach".
const BEHIND_OBJECT: &str = "\
    in|at|on|to|for|from|by|with|about|of|and|or|but|if|when|during|after|before|as|is|are|was|the|\
    a|an|again|then|now|today";
/// Persons whom "they" may stand for, words before the subject of a clause, words between two
/// questions, and words before a "their" that is of others: "may guests park in their garden".
const PEOPLE: &str =
    "everyone|everybody|anyone|anybody|someone|somebody|nobody|people|children|staff";
const CLAUSES: &str = "if|when|while|before|after|until|unless|because|that";
const JOINTS: &str = "and|or|but";
const BEFORE_OTHERS: &str = "at|in|on|of|from|near|by|to";
/// German words before a clause, its pronouns, and possessives that may follow their noun.
const GERMAN_CLAUSES: &str = "wenn|falls|weil|bevor|nachdem|bis|sobald|dass|ob";
const GERMAN_PRONOUNS: &str = "er|sie|es|ihm|ihn";
const GERMAN_GENITIVES: &str = "seiner|seines|ihrer|ihres";
/// References in the other languages, apart from possessives.
const GERMAN: &str = "er|sie|es|ihm|ihn|dies|diese|dieser|dieses|diesen|diesem|dort";
const FRENCH: &str = "il|elle|ils|elles|ce|cet|cette|ces|cela|ça|là";
const SPANISH: &str = "él|ella|ellos|ellas|este|esta|esto|estos|estas|ese|esa|eso|allí|ahí";
/// References that precede a noun, and those for places and for several things.
const NEAR: &str = "\
    dies|diese|dieser|dieses|diesen|diesem|ce|cet|cette|ces|este|esta|estos|estas|ese|esa";
const PLACES: &str = "there|dort|là|allí|ahí";
const SEVERAL: &str = "\
    they|them|their|theirs|these|those|ils|elles|leur|leurs|ellos|ellas|ces|estos|estas";
/// German words beside an "es" that means nothing, and French words near such an "il".
const BESIDE_ES: &str = "gibt|gab|geht|regnet|möglich";
const BESIDE_IL: &str = "y|faut|possible|nécessaire|pleut";
/// French articles before a noun that a later pronoun repeats: "la tour est-elle ouverte".
const FRENCH_ARTICLES: &str = "le|la|les|un|une|des|mon|ma|mes|notre|nos|votre|vos";

/// The kind of thing that a pointer stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Person,
    Thing,
    Several,
    /// A person or thing, in languages in which nouns have a gender.
    Either,
    Place,
    /// A time that an earlier question names: "that week", "then".
    Time,
}

/// A word that points to an earlier turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) bytes: Range<usize>,
    pub(crate) kind: Kind,
    pub(crate) is_possessive: bool,
}

/// The language of a question, by its words; English if they tell none and it is in ASCII.
pub(crate) fn language_of(question: &str) -> Option<Language> {
    let told = Lexicon::get().language_of(question);
    told.or(question.is_ascii().then_some(Language::English))
}

/// The words of a question that point to earlier turns, in order.
pub(crate) fn pointers(question: &str) -> Vec<Pointer> {
    let placed: Vec<(usize, &str)> = question.unicode_word_indices().collect();
    if placed.is_empty() || placed.len() > POINTING_WORDS_MAX {
        return Vec::new();
    }
    let words: Vec<&str> = placed.iter().map(|(_, word)| *word).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let language = language_of(question);
    let whole = phrase::words(question);
    let start_of = |word: Option<usize>| word.map(|word| whole[word].start);
    let (one, several) = (start_of(bare_singular(&whole)), start_of(several_named(&whole)));
    let is_behind =
        |start: Option<usize>, at: usize| start.is_some_and(|start| start < placed[at].0);
    let is_named = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| lower[before]);
        let is_of_others = is_entry(BEFORE_OTHERS, before);
        let joins = |joint: usize| is_behind(one, joint) && is_entry(JOINTS, lower[joint]);
        match lower[at] {
            "they" | "their" | "theirs" => is_behind(several, at) && !is_of_others,
            "its" => is_behind(one, at) && !is_of_others,
            // The subject of a second question; "how much is repair if I break it" points back.
            "it" => AUXILIARIES.contains(&before) && (0..at).any(joins),
            _ => false,
        }
    };
    let pointer = |at: usize| {
        let kind = match language {
            Some(Language::English) if is_named(at) => None,
            Some(Language::English) => english(&words, &lower, at),
            Some(Language::German) => german(&words, &lower, at),
            Some(Language::French) => french(&words, &lower, at),
            Some(Language::Spanish) => spanish(&words, &lower, at),
            None => words::is_reference(words[at]).then_some(Kind::Either),
        }?;
        let next = lower.get(at + 1);
        let has_noun =
            lower[at] != "her" || next.is_some_and(|next| !is_entry(BEHIND_OBJECT, next));
        let is_possessive = is_entry(POSSESSIVES, lower[at]) && has_noun;
        let bytes = placed[at].0..placed[at].0 + words[at].len();
        Some(Pointer { bytes, kind, is_possessive })
    };
    (0..words.len()).filter_map(pointer).collect()
}

/// The subject of an English question or clause in the plural that does something, which "they" and
/// "their" behind it stand for: "do members have to renew their passes".
fn several_named(words: &[Word<'_>]) -> Option<usize> {
    let begins_clause = |at: usize| {
        let before = at.checked_sub(1).map(|before| words[before].text);
        before.is_some_and(|before| is_entry(CLAUSES, before)) && is_plural(words[at].text)
    };
    let is_named = |at: &usize| is_entry(PEOPLE, words[*at].text) || begins_clause(*at);
    let is_verb = |word: &&Word<'_>| is_be(word.text) || is_entry(phrase::AUXILIARIES, word.text);
    let acts = words.iter().find(is_verb).is_some_and(|verb| !is_be(verb.text));
    let subject = bare_plural(words).filter(|_| acts).map(|range| range.end - 1);
    subject.into_iter().chain((0..words.len()).find(is_named)).min()
}

/// The kind of an English pointer at `at` that has no antecedent within the question.
fn english(words: &[&str], lower: &[&str], at: usize) -> Option<Kind> {
    let before = at.checked_sub(1).map_or("", |before| lower[before]);
    let next = lower.get(at + 1).copied().unwrap_or_default();
    let is_subject = AUXILIARIES.contains(&before);
    let is_time = TIMES.contains(&next);
    let is_acronym = !words::is_reference(words[at]);
    let several = if is_entry(SEVERAL, lower[at]) { Kind::Several } else { Kind::Thing };
    match lower[at] {
        // "Who is on duty then?"
        "then" => (at > 0 && at + 1 == words.len()).then_some(Kind::Time),
        "there" => {
            let exists = is_entry(EXISTING, before) || is_entry(EXISTING, next);
            (at > 0 && !exists && !has_name(&words[..at])).then_some(Kind::Place)
        }
        _ if is_acronym => None,
        // Inside a sentence, "that" mostly joins clauses: "the team that won".
        "that" | "such" if is_time => Some(Kind::Time),
        "that" | "such" => (at == 0 || at + 1 == words.len() || is_subject).then_some(Kind::Thing),
        "this" | "these" if is_time => None,
        "those" if is_entry("who|that|which", next) => None,
        word if PERSONS.contains(&word) => (!has_name(&words[..at])).then_some(Kind::Person),
        "it" if means_nothing(lower, at) => None,
        word if THINGS.contains(&word) => {
            let is_named = has_name(&words[..at]) || has_noun(&lower[..at], is_subject);
            (before == "of" || !is_named).then_some(several)
        }
        "this" | "these" | "those" => Some(several),
        _ => None,
    }
}

/// The kind of a German pointer. Inside a question, "Sie" and "Ihr" address the reader.
fn german(words: &[&str], lower: &[&str], at: usize) -> Option<Kind> {
    let is_capital =
        |at: usize| words.get(at).is_some_and(|word| word.starts_with(char::is_uppercase));
    if at > 0 && is_capital(at) {
        return None;
    }
    let beside = |list: &str| {
        let next = lower.get(at + 1).copied().unwrap_or_default();
        at.checked_sub(1).is_some_and(|before| is_entry(list, lower[before]))
            || is_entry(list, next)
    };
    let before = at.checked_sub(1).map_or("", |before| lower[before]);
    let is_in_clause = is_entry(GERMAN_CLAUSES, before) && has_name(&words[..at]);
    match lower[at] {
        "es" if beside(BESIDE_ES) => None,
        // "Was zahlen Leute, wenn sie absagen?"
        word if is_in_clause && is_entry(GERMAN_PRONOUNS, word) => None,
        word if is_entry(NEAR, word) && beside(OTHER_TIMES) => None,
        word if is_entry(PLACES, word) => Some(Kind::Place),
        word if is_entry(GERMAN, word) => Some(Kind::Either),
        // "Sein" is also a verb, and "ihr" also means "you".
        word if is_entry(POSSESSIVES, word) => {
            // "Wollen Kunden ihre Hunde mitbringen?", but not "der Umsatz ihrer Firma".
            let is_named = at > 1 && is_capital(at - 1) && !is_entry(GERMAN_GENITIVES, word);
            let has_noun = is_capital(at + 1) || is_capital(at + 2);
            (has_noun && !is_named).then_some(Kind::Either)
        }
        _ => None,
    }
}

/// The kind of a French pointer.
fn french(words: &[&str], lower: &[&str], at: usize) -> Option<Kind> {
    let next = lower.get(at + 1).copied().unwrap_or_default();
    let before = at.checked_sub(1).map_or("", |before| lower[before]);
    let near = &lower[at.saturating_sub(3)..lower.len().min(at + 3)];
    let is_article = |word: &&str| is_entry(FRENCH_ARTICLES, word) || word.starts_with("l'");
    match lower[at] {
        "il" if near.iter().any(|word| is_entry(BESIDE_IL, word)) => None,
        // "Est-ce que", "qu'est-ce que".
        "ce" if before.ends_with("est") || is_entry("que|qui|qu", next) => None,
        word if is_entry(NEAR, word) && is_entry(OTHER_TIMES, next) => None,
        "il" | "elle" | "ils" | "elles" if lower[..at].iter().any(is_article) => None,
        word if is_entry(PLACES, word) => Some(Kind::Place),
        word if is_entry(FRENCH, word) || is_entry("son|sa|ses|leur|leurs", word) => {
            (!has_name(&words[..at])).then_some(Kind::Either)
        }
        _ => None,
    }
}

/// The kind of a Spanish pointer.
fn spanish(words: &[&str], lower: &[&str], at: usize) -> Option<Kind> {
    let next = lower.get(at + 1).copied().unwrap_or_default();
    match lower[at] {
        word if is_entry(NEAR, word) && is_entry(OTHER_TIMES, next) => None,
        word if is_entry(PLACES, word) => Some(Kind::Place),
        word if is_entry(SPANISH, word) || is_entry("su|sus", word) => {
            (!has_name(&words[..at])).then_some(Kind::Either)
        }
        _ => None,
    }
}

/// Whether a capitalised word occurs after the first one.
fn has_name(words: &[&str]) -> bool {
    let is_name = |word: &&str| word.starts_with(char::is_uppercase) && word.len() > 1;
    words.iter().skip(1).any(is_name)
}

/// Whether a noun occurs after a determiner.
fn has_noun(before: &[&str], is_subject: bool) -> bool {
    let opens = |word: &&str| {
        DETERMINERS.contains(word) || (!is_subject && QUESTION_DETERMINERS.contains(word))
    };
    let Some(at) = before.iter().position(opens) else { return false };
    before[at + 1..].iter().any(|word| !words::is_interrogative(word) && !opens(word))
}

/// Whether the "it" at `at` is an expletive: "is it possible to", "does it take to".
fn means_nothing(lower: &[&str], at: usize) -> bool {
    let (Some(verb), Some(joint)) = (lower.get(at + 1), lower.get(at + 2)) else { return false };
    matches!(*joint, "to" | "that") && !VERBS_OF_THINGS.contains(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points_back(question: &str) -> bool {
        !pointers(question).is_empty()
    }

    #[test]
    fn pronouns_without_a_noun_of_their_own_point_back() {
        for question in [
            "When did he become CEO?", "How tall is it?", "How many litres does it lift?",
            "Which parts do they sell?", "What is the height of its tower?",
            "What did the critics say about her?", "Does that apply to contractors?",
            "When is it going to open?", "Wann wurde er geboren?",
            "Who is second on call that week?", "Who is the porter on duty then?",
            "How many people work there?", "Wo ist sein Lager?", "Quel est son prix ?",
            "¿Cuál es su precio?", "Quand a-t-elle été construite ?", "Where do guests keep them?",
            "What is their number?", "Are dogs allowed in their garden?",
            "May guests park in their garden?", "Are spare parts sold if they break?",
            "What is wrong and how is it mended?", "How much is repair if I break it?",
            "Was passiert, wenn er ausfällt?", "Wie hoch ist der Umsatz ihrer Firma?",
        ] {
            assert!(points_back(question), "{question}");
        }
    }

    #[test]
    fn pronouns_with_a_noun_of_their_own_do_not() {
        for question in [
            "Which employees get their laptops replaced?",
            "What happens to the deposit if I cancel it?",
            "When did Microsoft open its Berlin office?",
            "Is it possible to cancel a subscription?",
            "How much does it cost to send a parcel?",
            "Which team that won was blue?",
            "When did Ada Brown sell her house?",
            "Which kilns are there?",
            "Is there a cloakroom?",
            "What is on the menu this week?",
            "What happens to those who are late?",
            "Wie lange haben Sie geöffnet?",
            "Wie viele Brennöfen gibt es?",
            "Wer hat diese Woche Dienst?",
            "Est-ce que la salle est ouverte ?",
            "Quand la tour est-elle ouverte ?",
            "¿Cuánto es el BX-1?",
            "Do members have to renew their passes?",
            "Can guests bring their dogs?",
            "How do visitors pay for their tickets?",
            "Does everyone get their own locker?",
            "What happens when guests lose their key?",
            "If guests lose their card, what do they pay?",
            "What is glazing and how long does it take?",
            "How does sick leave work and when does it end?",
            "Is parking free or does it cost extra?",
            "How does glazing get its colour?",
            "Können Gäste ihre Hunde mitbringen?",
            "Was zahlen Gäste, wenn sie absagen?",
        ] {
            assert!(!points_back(question), "{question}");
        }
    }
}
