//! Things that earlier turns name, which a pronoun may stand for: the named thing of a question,
//! and the one name in an answer.
//!
//! If several could be meant, none is returned: a wrong thing does more harm than none.

use std::collections::HashSet;
use std::ops::Range;

use crate::question::phrase::{
    AUXILIARIES, DETERMINERS, PREPOSITIONS, Phrase, Word, bare_plural, is_be, is_name, phrases,
    words,
};
use crate::question::pointers::language_of;
use crate::question::several::is_plural;
use crate::question::wish::last_of;
use crate::text::shown::ABSTENTION;
use crate::text::values::is_calendar_word;
use crate::text::words::{Asked, asked, is_entry, is_interrogative};
use crate::translation::{Language, Lexicon};

/// Persons who act on what their verb is followed by: "how do I reset passwords".
const ACTORS: &str = "i|we|you|one";
const WHICH: &str = "which|what|whose";
/// Words before places, and words between names of which both are meant.
const BEFORE_PLACES: &str = "in|at|from|to|near|im|aus|nach|à|en|desde";
const JOINTS: &str = "and|or|und|oder|et|ou|y|o|&";
/// Words before a name that do not belong to it.
const BEFORE_NAMES: &str = "\
    ask|see|contact|call|tell|email|mail|write|phone|inform|notify|consult|visit|only|please|both|\
    the|our|your|by|mr|mrs|ms|dr|prof|frau|herr|madame|monsieur";
/// Words within the name of a person.
const PARTICLES: &str = "van|von|de|der|den|del|di|da|bin|al";
/// Maximum number of words in the name of a row's value.
const LABEL_WORDS_MAX: usize = 4;
/// Maximum number of characters in a referent.
const CHARS_MAX: usize = 60;
/// Number of a question's last parts, and of an answer's first characters, that are read.
const PARTS_MAX: usize = 16;
const ANSWER_CHARS_MAX: usize = 2000;
/// Distance, in words, that punctuation between a name and a word of the question adds.
const BREAK: usize = 10;
/// Minimum number of letters that a word of the question and its other forms begin with.
const STEM_LETTERS: usize = 5;

/// A thing named by a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) text: String,
    pub(crate) is_plural: bool,
    pub(crate) is_named: bool,
    pub(crate) is_full_name: bool,
    /// Whether it is a plural without a determiner.
    pub(crate) is_bare: bool,
}

/// The thing that a question is about: its name or, failing that, its first noun with a determiner.
pub(crate) fn thing(question: &str) -> Option<Thing> {
    // A follow-up comes after the questions that it was joined to.
    let parts: Vec<&str> = question.split_inclusive("? ").collect();
    parts.into_iter().rev().take(PARTS_MAX).find_map(|part| thing_of_one(part.trim()))
}

fn thing_of_one(question: &str) -> Option<Thing> {
    let language = language_of(question)?;
    let words = words(question);
    let found = phrases(&words, language);
    let told = |from: usize, to: usize, phrase: &Phrase| {
        let (first, last) = (words.get(from)?, words.get(to.checked_sub(1)?)?);
        let text = definite(&question[first.start..last.start + last.text.len()]);
        (text.chars().count() <= CHARS_MAX).then_some(Thing {
            text,
            is_plural: phrase.is_plural,
            is_named: phrase.is_named,
            is_full_name: phrase.is_full_name,
            is_bare: false,
        })
    };
    let whole = |phrase: &Phrase| told(phrase.words.start, phrase.words.end, phrase);
    let named = |is_behind: bool| {
        found.iter().filter(move |one| one.is_named && one.is_behind == is_behind)
    };
    if let Some(first) = named(false).next() {
        // "When did Ada Brown join Acme?" may be about both.
        let mut things = named(false).filter(|one| !one.is_full_name);
        return match (named(false).count(), things.next(), things.next()) {
            (1, ..) => whole(first),
            (_, Some(thing), None) => whole(thing),
            _ => None,
        };
    }
    let plain = found.iter().find(|one| !one.is_named && !one.is_behind);
    let behind = named(true).find(|one| one.is_owner).or_else(|| named(true).next());
    match (plain, behind) {
        (_, Some(owner)) if owner.is_owner => return whole(owner),
        (Some(plain), Some(place)) if plain.words.end + 1 == place.words.start => {
            return told(plain.words.start, place.words.end, plain);
        }
        (None, Some(place)) => return whole(place),
        _ => (),
    }
    if asks_which(&words) {
        return None;
    }
    let Some(plain) = plain.or(found.first()) else {
        let is_english = language == Language::English;
        return object(question, &words).or_else(|| bare(question, &words).filter(|_| is_english));
    };
    let owner = found.iter().find(|one| one.is_owner && one.words.start == plain.words.end + 1);
    match owner {
        Some(owner) => whole(owner),
        // "The head of sales".
        None if words.get(plain.words.end).is_some_and(|word| word.text == "of") => {
            told(plain.words.start, words.len().min(plain.words.end + 2), plain)
        }
        None => whole(plain),
    }
}

/// The thing that "I" or "we" act on, without a determiner.
fn object(question: &str, words: &[Word<'_>]) -> Option<Thing> {
    let actor = words.iter().position(|word| is_entry(ACTORS, word.text))?;
    let is_end = |word: &Word<'_>| {
        is_entry(PREPOSITIONS, word.text)
            || is_entry(DETERMINERS, word.text)
            || is_entry(JOINTS, word.text)
            || is_interrogative(word.text)
            || is_entry("it|them|if|that|this|up|out|off|in|on", word.text)
    };
    let behind = words.get(actor + 2..)?;
    let count = behind.iter().take_while(|word| !is_end(word)).count().min(3);
    let (first, last) = (behind.first()?, behind.get(count.checked_sub(1)?)?);
    let text = question[first.start..last.start + last.text.len()].to_owned();
    let is_plural = is_plural(last.text);
    Some(Thing { text, is_plural, ..Thing::default() })
}

/// The plural subject without a determiner.
fn bare(question: &str, words: &[Word<'_>]) -> Option<Thing> {
    let range = bare_plural(words)?;
    let (first, last) = (&words[range.start], &words[range.end - 1]);
    let text = question[first.start..last.start + last.text.len()].to_owned();
    Some(Thing { text, is_plural: true, is_bare: true, ..Thing::default() })
}

/// Whether a question asks which of several things is meant, so that only the answer names it.
fn asks_which(words: &[Word<'_>]) -> bool {
    let [first, second, ..] = words else { return false };
    is_entry(WHICH, first.text) && !is_be(second.text) && !is_interrogative(second.text)
}

fn definite(phrase: &str) -> String {
    match phrase.split_once(' ') {
        Some(("a" | "an" | "A" | "An", noun)) => format!("the {noun}"),
        _ => phrase.to_owned(),
    }
}

/// A name in an answer, as a range of its words.
struct Name {
    first: usize,
    end: usize,
    is_place: bool,
    text: String,
}

/// The person that an answer names to a question: the only one, or the one beside the words of the
/// question. A name of two words goes before a single one.
pub(crate) fn person(question: &str, answer: &str) -> Option<String> {
    let words = words_of(answer);
    let names: Vec<Name> = names(question, &words, false);
    let is_full = |name: &&Name| name.end - name.first > 1;
    let full: Vec<&Name> = names.iter().filter(is_full).filter(|name| !name.is_place).collect();
    if !full.is_empty() {
        return one_of(question, &words, &full);
    }
    // In German, every noun is capitalised.
    let is_german = Lexicon::get().language_of(answer) == Some(Language::German);
    let single: Vec<&Name> = names.iter().filter(|name| !name.is_place && !is_german).collect();
    one_of(question, &words, &single)
}

/// The only thing that an answer names, for a question that asks which.
pub(crate) fn thing_told(question: &str, answer: &str) -> Option<String> {
    if !asks_which(&words(last_of(question)))
        || Lexicon::get().language_of(answer) == Some(Language::German)
    {
        return None;
    }
    let words = words_of(answer);
    let mut names = names(question, &words, true);
    names.dedup_by(|one, other| one.text == other.text);
    match names.as_slice() {
        [only] => Some(only.text.clone()),
        _ => None,
    }
}

/// The words of the beginning of an answer; none if it abstains.
fn words_of(answer: &str) -> Vec<Word<'_>> {
    if answer == ABSTENTION {
        return Vec::new();
    }
    let read = match answer.char_indices().nth(ANSWER_CHARS_MAX) {
        // Part of a word would be another name.
        Some((end, _)) => answer[..end].rsplit_once(char::is_whitespace).map_or("", |two| two.0),
        None => answer,
    };
    words(read)
}

/// The names of an answer that the question lacks.
fn names(question: &str, words: &[Word<'_>], with_codes: bool) -> Vec<Name> {
    let labels = labels(words);
    let is_part = |at: usize| {
        let word = &words[at];
        let mut letters = word.text.chars();
        let is_capital = letters.next().is_some_and(char::is_uppercase);
        let second = letters.next();
        let is_initial = is_capital && second.is_none() && word.after.starts_with('.');
        let is_code = with_codes && word.is_code() && is_name(words, at);
        let is_word = is_capital && second.is_some_and(char::is_lowercase);
        !labels[at] && !is_calendar_word(word.text) && (is_word || is_initial || is_code)
    };
    let mut names = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let mut first = at;
        let mut end = at;
        while end < words.len() && (is_part(end) || is_inside(words, end, first, &is_part)) {
            end += 1;
            if breaks(&words[end - 1]) {
                break;
            }
        }
        at = end.max(at + 1);
        let begins = first == 0 || ends_sentence(&words[first - 1]);
        let count = end - first;
        while first < end && is_before_name(words[first].text, end - first) {
            first += 1;
        }
        // A single capital may only begin a sentence.
        let is_only_first = begins && count == 1 && !words[end - 1].is_code();
        if first == end || is_only_first {
            continue;
        }
        let before = first.checked_sub(1).map_or("", |before| words[before].text);
        let parts: Vec<&str> = words[first..end].iter().map(|word| word.text).collect();
        let text = parts.join(" ");
        if !question.contains(&text) && text.chars().count() <= CHARS_MAX {
            names.push(Name { first, end, is_place: is_entry(BEFORE_PLACES, before), text });
        }
    }
    names
}

/// Whether the word at `at` joins two parts of a name.
fn is_inside(words: &[Word<'_>], at: usize, first: usize, is_part: &dyn Fn(usize) -> bool) -> bool {
    let particle = |at: usize| words.get(at).is_some_and(|word| is_entry(PARTICLES, word.text));
    let next = if particle(at + 1) { at + 2 } else { at + 1 };
    at > first && particle(at) && next < words.len() && is_part(next)
}

/// Whether the first of `count` capitalised words is no part of a name: a verb or title, a function
/// word or, before a name of two words, one that the lexicon knows.
fn is_before_name(word: &str, count: usize) -> bool {
    let lower = word.to_lowercase();
    is_entry(BEFORE_NAMES, &lower)
        || is_interrogative(word)
        || (count > 1 && Language::ALL.iter().any(|one| one.is_function_word(&lower)))
        || (count > 2 && Lexicon::get().knows(&lower, Language::English))
}

/// Whether a name cannot go on behind a word.
fn breaks(word: &Word<'_>) -> bool {
    let is_short = word.text.chars().nth(1).is_none() || is_entry(BEFORE_NAMES, word.text);
    !(word.after.is_empty() || is_short && word.after == ".")
}

fn ends_sentence(word: &Word<'_>) -> bool {
    word.after.contains(['.', '!', '?', ']', ':'])
}

/// Whether each word belongs to the name of a row's value: "Pump" in "Pump: Ada; Litres: 3".
fn labels(words: &[Word<'_>]) -> Vec<bool> {
    let mut labels = vec![false; words.len()];
    let mut named = 0;
    let mut start = 0;
    while start < words.len() {
        let ends = |word: &Word<'_>| word.after.contains(';');
        let end = words[start..].iter().position(ends).map_or(words.len(), |at| start + at + 1);
        let label = words[start..end].iter().position(|word| word.after.ends_with(':'));
        if let Some(last) = label.filter(|last| *last < LABEL_WORDS_MAX) {
            labels[start..=start + last].fill(true);
            named += 1;
        }
        start = end;
    }
    if named > 1 { labels } else { vec![false; labels.len()] }
}

/// The only name, or the one nearest to a word of the question, unless it stands beside another one
/// of which the same is said.
fn one_of(question: &str, words: &[Word<'_>], names: &[&Name]) -> Option<String> {
    let (first, others) = names.split_first()?;
    if others.iter().all(|other| other.text == first.text) {
        return Some(first.text.clone());
    }
    let said = said(question, words);
    let distances = Distances::new(words);
    let far = |name: &Name| distances.to_nearest(name, &said);
    let nearest = names.iter().filter_map(|name| Some((far(name)?, *name)));
    // A name before the word goes before one behind it.
    let (_, nearest) = nearest.min_by_key(|(far, _)| *far)?;
    let joined = |at: Option<usize>| {
        at.and_then(|at| words.get(at)).is_some_and(|word| is_entry(JOINTS, word.text))
    };
    let beside = |other: &&Name| {
        (joined(nearest.first.checked_sub(1)) && other.end + 1 == nearest.first)
            || (joined(Some(nearest.end)) && other.first == nearest.end + 1)
    };
    (!names.iter().any(beside)).then(|| nearest.text.clone())
}

/// The positions of the words of an answer that occur in the question, possibly in another form.
fn said(question: &str, words: &[Word<'_>]) -> Vec<usize> {
    let stem = |word: &str| word.chars().take(STEM_LETTERS).collect::<String>();
    let asked: HashSet<String> = crate::question::phrase::words(question)
        .iter()
        .filter(|word| !is_interrogative(word.text) && word.text.chars().count() > 3)
        .map(|word| word.text.to_lowercase())
        .collect();
    let long = asked.iter().filter(|word| word.len() > STEM_LETTERS);
    let stems: HashSet<String> = long.map(|word| stem(word)).collect();
    let is_said = |at: &usize| {
        let word = words[*at].text.to_lowercase();
        asked.contains(&word) || stems.contains(&stem(&word))
    };
    (0..words.len()).filter(is_said).collect()
}

/// Distances between the words of an answer.
struct Distances {
    /// The number of words before each position that punctuation follows.
    breaks: Vec<usize>,
}

impl Distances {
    fn new(words: &[Word<'_>]) -> Self {
        let mut breaks = Vec::with_capacity(words.len() + 1);
        let mut count = 0;
        for word in words {
            breaks.push(count);
            count += usize::from(word.after.contains(['.', ',', ';', ']']));
        }
        breaks.push(count);
        Self { breaks }
    }

    /// The distance of a name to the nearest of the words at `said`, which are in order.
    fn to_nearest(&self, name: &Name, said: &[usize]) -> Option<usize> {
        let (before, behind) = said.split_at(said.partition_point(|at| *at < name.first));
        let last = name.end - 1;
        let before = before.last().map(|at| self.over(*at..name.first));
        // A word within the name is next to it.
        let behind = behind.first().map(|at| self.over(last..last.max(*at)));
        before.into_iter().chain(behind).min()
    }

    /// The number of words in a range, more across punctuation.
    fn over(&self, words: Range<usize>) -> usize {
        words.len() + BREAK * (self.breaks[words.end] - self.breaks[words.start])
    }
}

/// Whether a question asks where one does something with a thing of one's own, so that "it" may be
/// that place: "where do I moor my boat?".
pub(crate) fn asks_place_for(own: &Thing, question: &str) -> bool {
    let is_own = own.text.split(' ').next().is_some_and(|first| is_entry("my|our", first));
    let asks = |three: &[Word<'_>]| {
        is_entry("where", three[0].text)
            && is_entry(AUXILIARIES, three[1].text)
            && is_entry(ACTORS, three[2].text)
    };
    is_own && words(last_of(question)).windows(3).any(asks)
}

/// Whether a question asks who has a role: "who is the treasurer?".
pub(crate) fn asks_role(question: &str) -> bool {
    let words = words(last_of(question));
    let [first, second, third, ..] = words.as_slice() else { return false };
    is_entry("who|who's", first.text)
        && (is_be(second.text) && is_entry(DETERMINERS, third.text)
            || is_entry(DETERMINERS, second.text))
}

/// Whether a question asks for a person.
pub(crate) fn asks_person(question: &str) -> bool {
    asked(last_of(question)) == Asked::Person
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_named_thing_of_a_question_is_found() {
        for (question, expected) in [
            ("Who owns Kestrel?", "Kestrel"),
            ("When was Kestrel founded?", "Kestrel"),
            ("What is the LK-40?", "the LK-40"),
            ("How much does the LK-40 weigh?", "the LK-40"),
            ("How much does the LK-40 kiln weigh?", "the LK-40 kiln"),
            ("What is the price of the LK-40 in Norway?", "the LK-40"),
            ("How do I request a GPS tracker?", "the GPS tracker"),
            ("How do I request leave?", "leave"),
            ("Who is the head of glazing?", "the head of glazing"),
            ("When does the choir rehearse?", "the choir"),
            ("When is the red kiln open?", "the red kiln"),
            ("How tall is the lift in Winnock Tower 1?", "the lift in Winnock Tower 1"),
            ("What is the height of the tower?", "the tower"),
            ("What does the boat lift do?", "the boat lift"),
            ("When will the boat lift be closed?", "the boat lift"),
            ("What does the boat lift still carry?", "the boat lift"),
            ("What does the boat lift carry?", "the boat lift"),
            ("What does the LK-40 test kiln do?", "the LK-40 test kiln"),
            ("When is the next keepers' outing?", "the next keepers' outing"),
            ("What is the keeper's number?", "the keeper"),
            ("When did Tom Reed join Kestrel?", "Kestrel"),
            ("What is Kestrel's turnover?", "Kestrel"),
            ("Wie hoch ist der Turm?", "der Turm"),
            ("Wer hat Kestrel gegründet?", "Kestrel"),
            ("Combien coûte la carte ?", "la carte"),
            ("¿Quién es la tesorera?", "la tesorera"),
        ] {
            assert_eq!(
                thing(question).map(|one| one.text).as_deref(),
                Some(expected),
                "{question}"
            );
        }
        for (question, expected) in [
            ("How long do passes have to be?", "passes"),
            ("Where do guests park?", "guests"),
            ("When are closed paths swept?", ""),
            ("When are glass bottles taken back?", "glass bottles"),
            ("How many are guests?", ""),
            ("Who has keys?", ""),
            ("What can guests see?", ""),
            ("Why do people use tickets?", ""),
            ("Where do guests park in Tarn?", "Tarn"),
        ] {
            let found = thing(question).map(|one| one.text).unwrap_or_default();
            assert_eq!(found, expected, "{question}");
        }
        for question in
            ["When did Kestrel buy Marlow?", "Which kiln is the hottest?", "Why?", "Who pays?"]
        {
            assert_eq!(thing(question), None, "{question}");
        }
    }

    #[test]
    fn one_person_of_an_answer_is_found() {
        let minutes = "Present: Ada Calloway (chair), Marta Oyelaran (treasurer), Piet Low. [1]";
        for (question, answer, expected) in [
            ("Who is the treasurer?", minutes, Some("Marta Oyelaran")),
            ("Who is the chair?", "Chair: Ada Low; Treasurer: Jo Marr. [1]", Some("Ada Low")),
            ("Who is the cook?", "Jonas Vik is the cook at the Old Mill. [1]", Some("Jonas Vik")),
            ("Who is the cook?", "Ask Jonas Vik. [1] Stock is counted. [2]", Some("Jonas Vik")),
            ("Who is the cook?", "The cook is Piet van der Meer. [1]", Some("Piet van der Meer")),
            ("Who built Kestrel?", "Ada Low and Jo Marr built Kestrel. [1]", None),
            ("Who is the cook?", "The cook lives in New Haven. [1]", None),
            ("Who is the boss?", "Boss Ab met Boss Cd. [1]", Some("Boss Ab")),
        ] {
            assert_eq!(person(question, answer).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn only_the_beginning_of_an_answer_is_read() {
        let told = |words: usize| format!("Jo Marr pays. {}Piet Low pays too.", "x ".repeat(words));
        assert_eq!(person("Who signs?", &told(10)), None, "one of two");
        assert_eq!(person("Who signs?", &told(2000)).as_deref(), Some("Jo Marr"));
    }

    proptest! {
        /// Goal: looking up distances finds what comparing all pairs finds.
        #[test]
        fn the_nearest_word_is_found(
            (one, other) in ("[a-c]{1,2}[.,]?", "[a-c]{1,2}[.;]?"),
            count in 1..200_usize,
            said in proptest::collection::btree_set(0..400_usize, 0..20),
            (first, length) in (0..400_usize, 1..4_usize),
        ) {
            let answer = format!("{one} {other} ").repeat(count);
            let words = words(&answer);
            let first = first.min(words.len() - 1);
            let end = words.len().min(first + length);
            let said: Vec<usize> = said.into_iter().filter(|at| *at < words.len()).collect();
            let name = Name { first, end, is_place: false, text: String::new() };
            let distance = |at: &usize| {
                let between = if *at < first { *at..first } else { end - 1..(end - 1).max(*at) };
                let breaks = |word: &&Word<'_>| word.after.contains(['.', ',', ';', ']']);
                between.len() + BREAK * words[between].iter().filter(breaks).count()
            };
            let expected = said.iter().map(distance).min();
            prop_assert_eq!(Distances::new(&words).to_nearest(&name, &said), expected);
        }
    }

    #[test]
    fn the_thing_of_an_answer_is_found_if_it_was_asked_for() {
        let answer = "The LK-40 is the hottest kiln. [1]";
        assert_eq!(thing_told("Which kiln is the hottest?", answer).as_deref(), Some("LK-40"));
        assert_eq!(thing_told("Is a kiln hot?", answer), None);
        assert_eq!(thing_told("Which kiln is hot?", "The LK-40 and the LK-50. [1]"), None);
    }
}
