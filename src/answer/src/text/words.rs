//! Words that carry the form of a question rather than its subject, in a few languages.
//!
//! Each list is one string with bars between its entries. The lists are short on purpose: they
//! adjust scores and find follow-ups, and a language that is missing loses nothing else.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::numbers::is_number;
use crate::text::values::{is_calendar_word, weekdays};

/// Question words and the auxiliaries beside them: they show what is asked for and do not occur in
/// the text that answers. Lower case.
const INTERROGATIVES: &str = "\
    about|am|been|being|can|combien|comment|could|cual|cuando|cuantos|cuál|cuáles|cuándo|cuánta|\
    cuántas|cuánto|cuántos|cómo|did|do|does|dónde|est|had|has|have|how|i|ist|kann|many|me|much|my|\
    où|please|pourquoi|qu|quand|que|quel|quelle|quelles|quels|qui|quién|quiénes|quoi|qué|sind|\
    should|tell|wann|war|waren|warum|was|welche|welchem|welchen|welcher|welches|wem|wen|were|wer|\
    what|what's|when|where|which|who|who's|whom|whose|why|wie|wieviel|wieviele|wo|would|wurde|you|\
    your|где|как|какая|какие|каким|какова|какое|какой|каком|какую|когда|кого|кому|кто|почему|\
    сколько|чего|чей|чем|что";

/// Question words in scripts without spaces; a word that contains another one comes first.
const INTERROGATIVE_RUNS: &str = "\
    什么时候|为什么|什么|哪一年|哪年|哪里|哪些|哪个|哪|谁|何时|多少|怎么|怎样|如何|几|吗|呢|いつ|どこ|どの|なぜ|誰|何";

const NUMBER_QUESTIONS: &str = "\
    how many|how much|how long|how far|how tall|how old|how big|how large|how strong|how heavy|\
    how thick|how wide|how deep|how hot|how cold|how warm|what percentage|\
    what percent|what number|wie viel|wie viele|wieviel|wieviele|wie lange|cuánto|cuánta|cuántos|\
    cuántas|qué porcentaje|combien|сколько|多少|几";
/// Phrases that ask for the progress of work, not for a number.
pub(crate) const PROGRESS: &str = "how far along|how far advanced|how far on";
const DATE_QUESTIONS: &str = "\
    when|what year|which year|what date|which date|what day|which day|which weekday|what month|\
    which month|what time|which days|what days|wann|welchem tag|welcher tag|welchem jahr|\
    welches jahr|cuándo|qué año|quand|quelle année|когда|каком году|什么时候|何时|哪一年|哪年|いつ";
/// Phrases that ask for a day of the week.
const WEEKDAY_QUESTIONS: &str = "\
    which day of the week|what day of the week|which days of the week|what days of the week|\
    which weekday|what weekday|which weekdays|welchem wochentag|welchen wochentagen|\
    quel jour de la semaine|quels jours de la semaine|qué día de la semana|qué días de la semana";
/// Words that ask for a day or a year, but not for a time of day.
const DAY_QUESTIONS: &str = "year|date|day|month|jahr|tag|monat|année|jour|mois|año|día|mes";
/// Interrogatives that may also begin a statement: "I lost my key. How much is a new one?".
const STATING: &str = "i|my|you|your|please";
/// Date words that join clauses when they occur within a sentence.
const JOINTS: &str = "when|quand|cuando";
/// Words before such a word that keep it a question word.
const ASKED: &str = "\
    since|until|till|by|from|and|or|but|so|then|me|know|say|depuis|jusqu|et|ou|mais|de|desde|hasta|\
    y|o|pero";
const PERSON_QUESTIONS: &str = "\
    who|whom|whose|wer|wen|wem|wessen|quién|quiénes|qui|кто|кого|кому|кем|谁|誰";

/// Words of a text that states when something is or happens.
const TIMES: &str = "\
    second|seconds|minute|minutes|hour|hours|day|days|week|weeks|month|months|quarter|year|years|\
    century|season|spring|summer|autumn|winter|morning|noon|midday|afternoon|evening|night|\
    midnight|am|pm|o'clock|today|tomorrow|now|soon|immediately|daily|weekly|monthly|yearly|\
    annually|always|never|once|every|before|after|until|till|since|when|whenever|while|during|\
    christmas|easter|age|stunde|stunden|minuten|uhr|tag|tage|tagen|woche|wochen|monat|monate|\
    monaten|jahr|jahre|jahren|jahres|täglich|wöchentlich|monatlich|jährlich|morgens|mittags|abends|\
    nachts|vor|nach|bis|seit|sobald|wenn|während|bevor|jeden|jede|immer|nie|sofort|heure|\
    heures|h|minute|jour|jours|semaine|semaines|mois|an|ans|année|matin|soir|nuit|avant|après|\
    jusqu|jusqu'à|jusqu'au|depuis|dès|lorsque|pendant|chaque|toujours|jamais|día|días|semana|\
    semanas|mes|meses|año|años|hora|horas|minutos|mañana|tarde|noche|antes|después|hasta|desde|\
    cada|durante|siempre|nunca";
/// The first code point after the blocks of Latin letters.
pub(crate) const LATIN_END: u32 = 0x250;

/// Words for an edition of a document or a version of a thing.
pub(crate) const EDITIONS: &str = "\
    edition|editions|ed|version|versions|v|revision|rev|release|releases|issue|update|fassung|\
    ausgabe|auflage|édition|versión|edición";

/// Words for things that are not so or not allowed.
const NEGATIONS: &str = "\
    no|not|never|nobody|none|nothing|neither|nor|without|except|cannot|forbidden|prohibited|banned|\
    excluded|refuse|refused|kein|keine|keinen|keiner|nicht|nie|niemand|ohne|außer|verboten|\
    ausgeschlossen|pas|jamais|aucun|aucune|sans|sauf|interdit|interdite|nunca|ningún|ninguna|nadie|\
    sin|excepto|prohibido|prohibida";
/// Openings of a sentence that retracts the one before it.
const DENIALS: &str = "\
    that is wrong|this is wrong|that was wrong|this was wrong|that's wrong|that is not true|\
    this is not true|that's not true|that is not right|that is no longer|this is no longer|\
    that no longer|this no longer|not any more|not true|sorry wrong|sorry that was wrong|\
    sorry my mistake|my mistake|correction|scrap that|forget that|ignore that|sorry i meant|\
    i meant|oops|entschuldigung falsch|korrektur|ich meinte|erreur|je voulais dire|corrección|\
    quise decir|das ist falsch|das war falsch|\
    das stimmt nicht|das gilt nicht mehr|c'est faux|ce n'est plus|cela n'est plus|es falso|\
    eso es falso|eso ya no|ya no es así";
/// Characters within which such an opening lies.
const DENIAL_CHARS: usize = 40;
/// Minimum number of commas or semicolons in a sentence that enumerates.
const COMMAS_MIN: usize = 2;
/// First words that refer to the previous sentence. Lower case.
const REFERENCES: &str = "\
    he|she|it|they|this|these|that|those|his|her|hers|its|their|theirs|him|them|such|er|sie|es|\
    dies|diese|dieser|dieses|él|ella|ellos|ellas|este|esta|esto|estos|estas|il|elle|ils|elles|ce|\
    cette|ces|cela|он|она|оно|они|это|эта|этот|эти|его|её|их";

/// Those that precede a noun, and following words that refer to nothing named before.
const DEMONSTRATIVES: &str = "this|these";
const NOT_DEMONSTRATED: &str = "is|are|a|an|the|as|that|day|week|month|year|time|way";

/// References in scripts without spaces.
const REFERENCE_RUNS: &str = "\
    它|他|她|这|那|该|此|其|それ|これ|彼|この|その";

pub(crate) fn entries(list: &str) -> std::str::Split<'_, char> {
    list.split('|')
}

/// Whether a word is in a list, regardless of case.
pub(crate) fn is_entry(list: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    entries(list).any(|entry| entry == word)
}

/// English words that ask for a thing, words that ask for yes or no, and words after "how" that ask
/// for a size.
const THING_WORDS: &str = "who|whom|whose|when|where|why|which|what";
const YES_NO_WORDS: &str = "is|are|may|can|do|does|did|must|should|was|were|has|have|will";
const SIZES: &str = "\
    many|much|long|often|far|old|big|large|high|tall|heavy|late|early|soon|fast|deep|wide";
/// Whether the first question word among `spaced` words asks for a thing.
pub(crate) fn asks_for_thing(spaced: &str) -> bool {
    let mut words = spaced.split_whitespace();
    while let Some(word) = words.next() {
        if is_entry(THING_WORDS, word) {
            return true;
        }
        if word == "how" {
            return words.next().is_some_and(|next| is_entry(SIZES, next));
        }
        if is_entry(YES_NO_WORDS, word) {
            return false;
        }
    }
    false
}

/// Kind of thing that a question asks for, judged by its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Number,
    Date,
    Person,
    Other,
}

/// The kind of thing that a question asks for.
pub(crate) fn asked(question: &str) -> Asked {
    let question = spaced(question);
    let has = |list: &str| entries(list).any(|phrase| contains(&question, phrase));
    // "What do I do when it rains?" does not ask for a day.
    let joins = |joint: &str| {
        let before = question.split(&format!(" {joint} ")).next().unwrap_or_default();
        let is_inside = before.len() < question.len() && !before.trim().is_empty();
        let asks_there = before.split(' ').next_back().is_some_and(|word| is_entry(ASKED, word));
        is_inside && !asks_there
    };
    let is_joined = entries(JOINTS).any(joins);
    let is_dated = || {
        entries(DATE_QUESTIONS)
            .any(|phrase| contains(&question, phrase) && !(is_joined && is_entry(JOINTS, phrase)))
    };
    if is_dated() {
        Asked::Date
    } else if has(NUMBER_QUESTIONS) && !has(PROGRESS) && !is_number_inside(&question) {
        Asked::Number
    } else if has(PERSON_QUESTIONS) {
        Asked::Person
    } else {
        Asked::Other
    }
}

/// Whether the question for a number is embedded in another one: "how was it determined how many".
fn is_number_inside(question: &str) -> bool {
    let first = question.split_whitespace().next().unwrap_or_default();
    let is_inside = |phrase: &str| {
        let before = question.split_once(&format!(" {phrase} ")).map_or("", |(before, _)| before);
        let last = before.split(' ').next_back().unwrap_or_default();
        before.split_whitespace().count() > 1 && !is_entry(ASKED, last)
    };
    is_interrogative(first)
        && !is_entry(STATING, first)
        && !begins_with(question, NUMBER_QUESTIONS)
        && entries(NUMBER_QUESTIONS).any(is_inside)
}

/// Whether a text says that something is not so or not allowed.
pub(crate) fn tells_negation(text: &str) -> bool {
    text.unicode_words().any(|word| {
        let word = word.to_lowercase();
        is_entry(NEGATIONS, &word) || word.ends_with("n't") || word.ends_with("n\u{2019}t")
    })
}

/// Whether a text holds something of the kind asked for. `question` is in lower case.
pub(crate) fn holds(asked: Asked, text: &str, question: &str) -> bool {
    let is_new_number = |word: &str| word.contains(char::is_numeric) && !question.contains(word);
    match asked {
        Asked::Number => {
            text.unicode_words().any(is_new_number) || text.unicode_words().any(is_number)
        }
        Asked::Date if wants_weekday(question) => !weekdays(text).is_empty(),
        Asked::Date => {
            let is_year =
                |word: &str| word.len() == 4 && matches!(word.parse(), Ok(1000_u32..=2100));
            let wants_day = || entries(DAY_QUESTIONS).any(|word| question.contains(word));
            let in_run = text.contains("年") && text.contains(char::is_numeric);
            in_run
                || text.unicode_words().any(is_calendar_word)
                || (has_clock(text) && !wants_day())
                || text.unicode_words().any(|word| is_year(word) && is_new_number(word))
        }
        Asked::Person => has_new_name(text, question),
        Asked::Other => false,
    }
}

/// Whether a lower-case question asks for a day of the week.
pub(crate) fn wants_weekday(question: &str) -> bool {
    entries(WEEKDAY_QUESTIONS).any(|phrase| question.contains(phrase))
}

/// Whether a text states a time or a condition; texts with letters of other scripts always count.
pub(crate) fn tells_time(text: &str) -> bool {
    let is_time = |word: &str| is_entry(TIMES, word) || is_calendar_word(word);
    // "9-17", "6.30", "12.03."
    let has_pair = || {
        let chars: Vec<char> = text.chars().collect();
        chars.windows(3).any(|three| {
            three[0].is_ascii_digit()
                && matches!(three[1], ':' | '.' | '-' | '\u{2013}' | '/')
                && three[2].is_ascii_digit()
        })
    };
    let is_other = |c: char| c.is_alphabetic() && c as u32 >= LATIN_END;
    text.unicode_words().any(is_time) || has_pair() || text.contains(is_other)
}

/// Whether a text contains a time of day: "01:45".
fn has_clock(text: &str) -> bool {
    let digits = |part: &str| part.bytes().filter(u8::is_ascii_digit).count();
    let is_time = |word: &str| {
        word.split_once(':').is_some_and(|(hour, rest)| {
            let minutes = rest.get(..2).is_some_and(|minutes| digits(minutes) == 2);
            (1..=2).contains(&hour.len()) && digits(hour) == hour.len() && minutes
        })
    };
    text.split(|c: char| !(c.is_ascii_digit() || c == ':')).any(is_time)
}

/// Whether a text has a capitalised word after its first one that the question lacks.
fn has_new_name(text: &str, question: &str) -> bool {
    let is_name = |word: &str| {
        word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().nth(1).is_some_and(char::is_lowercase)
            && !question.contains(&word.to_lowercase())
            && !is_calendar_word(word)
    };
    let words: Vec<&str> = text.unicode_words().collect();
    // The number of a list item is not a word.
    let mut words = words.iter().skip_while(|word| !word.contains(char::is_alphabetic)).skip(1);
    words.any(|word| is_name(word))
}

/// Whether a sentence enumerates things.
pub(crate) fn enumerates(text: &str) -> bool {
    text.matches([',', ';']).count() >= COMMAS_MIN
}

/// Whether a text has two adjacent capitalised words.
pub(crate) fn has_full_name(text: &str) -> bool {
    let is_name = |word: &str| {
        word.starts_with(char::is_uppercase) && word.chars().skip(1).any(char::is_lowercase)
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|two| is_name(two[0]) && !two[0].ends_with(['.', ':']) && is_name(two[1]))
}

/// The question without its question words, so that the rest should occur in an answer; the
/// question itself if nothing remains.
pub(crate) fn matter(question: &str) -> String {
    let matter = bare_matter(question);
    if matter.contains(char::is_alphanumeric) { matter } else { question.to_owned() }
}

/// The question without its question words, even if nothing remains.
pub(crate) fn bare_matter(question: &str) -> String {
    let mut text = question.to_owned();
    for run in entries(INTERROGATIVE_RUNS) {
        text = text.replace(run, " ");
    }
    let words = text.split_word_bounds();
    words.map(|word| if is_interrogative(word) { " " } else { word }).collect()
}

/// Whether a word is a question word or an accompanying auxiliary.
pub(crate) fn is_interrogative(word: &str) -> bool {
    is_entry(INTERROGATIVES, word)
}

/// Whether a text begins with a word that refers back.
pub(crate) fn begins_with_reference(text: &str) -> bool {
    let first = text.unicode_words().next().unwrap_or_default();
    is_reference(first) || entries(REFERENCE_RUNS).any(|run| text.starts_with(run))
}

/// Whether "this" or "these" precedes a noun after the first word: "treated with these devices".
/// Times do not count: "this year".
pub(crate) fn has_demonstrative(text: &str) -> bool {
    let words: Vec<&str> = text.unicode_words().skip(1).collect();
    let points = |two: &[&str]| {
        is_entry(DEMONSTRATIVES, two[0])
            && !is_interrogative(two[1])
            && !is_entry(NOT_DEMONSTRATED, two[1])
    };
    words.windows(2).any(points)
}

/// Whether a text begins by denying what precedes it.
pub(crate) fn denies(text: &str) -> bool {
    let beginning: String = text.chars().take(DENIAL_CHARS).collect();
    let beginning = spaced(&beginning);
    begins_with(&beginning, DENIALS)
}

/// Whether a word refers to something named before. `IT` is a department.
pub(crate) fn is_reference(word: &str) -> bool {
    let is_acronym = word.len() > 1 && word.chars().all(char::is_uppercase);
    !is_acronym && is_entry(REFERENCES, word)
}

/// Whether a text contains a reference in a script without spaces.
pub(crate) fn has_reference_run(text: &str) -> bool {
    entries(REFERENCE_RUNS).any(|run| text.contains(run))
}

/// The words of a text in lower case, with a space around each.
pub(crate) fn spaced(text: &str) -> String {
    let mut words = String::from(" ");
    for word in text.unicode_words() {
        words.push_str(&word.to_lowercase());
        words.push(' ');
    }
    words
}

/// Whether a phrase occurs in text made by [`spaced`]. Text in scripts without spaces is compared
/// without them, because there each character counts as a word.
pub(crate) fn contains(spaced: &str, phrase: &str) -> bool {
    let is_run = phrase.chars().all(|c| c as u32 >= 0x3000);
    if is_run {
        return spaced.replace(' ', "").contains(phrase);
    }
    spaced.contains(&format!(" {phrase} "))
}

/// Whether text made by [`spaced`] begins with an entry of a list.
pub(crate) fn begins_with(spaced: &str, list: &str) -> bool {
    entries(list).any(|phrase| spaced.starts_with(&format!(" {phrase} ")))
}

/// Whether text made by [`spaced`] ends with an entry of a list.
pub(crate) fn ends_with(spaced: &str, list: &str) -> bool {
    entries(list).any(|phrase| spaced.ends_with(&format!(" {phrase} ")))
}

/// Whether an entry of a list occurs in text made by [`spaced`].
pub(crate) fn contains_any(spaced: &str, list: &str) -> bool {
    entries(list).any(|phrase| contains(spaced, phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_for_a_thing_are_told_from_those_for_yes_or_no() {
        for thing in ["Who locks the gate?", "In which room is it?", "how long does it take"] {
            assert!(asks_for_thing(&spaced(thing)), "{thing}");
        }
        for other in ["Is the room that is open heated?", "How do I lock it?", "gate key", "how"] {
            assert!(!asks_for_thing(&spaced(other)), "{other}");
        }
    }

    #[test]
    fn the_kind_of_answer_is_seen() {
        for (question, expected) in [
            ("How many points did they score?", Asked::Number),
            ("How strong is the brine?", Asked::Number),
            ("In what year was it built?", Asked::Date),
            ("Who wrote it?", Asked::Person),
            ("Wie viele Tore?", Asked::Number),
            ("¿Cuándo nació?", Asked::Date),
            ("Кто это сказал?", Asked::Person),
            ("这座塔是什么时候建成的？", Asked::Date),
            ("有多少人？", Asked::Number),
            ("What is a whole?", Asked::Other),
            ("What do I do when it leaks?", Asked::Other),
            ("And when does it open?", Asked::Date),
            ("things that are forbidden in the hall when it is hired", Asked::Other),
            ("Since when is it open?", Asked::Date),
            ("How was it decided how many each party sends?", Asked::Other),
            ("In how many halls do they play?", Asked::Number),
            ("I have lost my key. How much is a new one?", Asked::Number),
            ("How far along is the new hall?", Asked::Other),
            ("What is it, and how much does it weigh?", Asked::Number),
        ] {
            assert_eq!(asked(question), expected, "{question}");
        }
    }

    #[test]
    fn a_text_holds_what_is_asked() {
        let question = "who built the 1889 tower";
        assert!(holds(Asked::Person, "It was built by Gustave Eiffel.", question));
        assert!(!holds(Asked::Person, "The Tower stands.", question));
        assert!(holds(Asked::Date, "It opened in 1887.", question));
        assert!(!holds(Asked::Date, "The tower of 1889.", question));
        assert!(holds(Asked::Number, "It has twelve steps.", question));
        assert!(holds(Asked::Date, "建于1889年。", "x"));
    }

    #[test]
    fn the_matter_of_a_question_is_left() {
        assert_eq!(matter("How many points did it score?").split_whitespace().count(), 3);
        assert_eq!(matter("什么是机器学习").trim(), "是机器学习");
        assert_eq!(matter("What?"), "What?");
        assert_eq!(matter("call getUserName()").trim(), "call getUserName()");
    }

    #[test]
    fn references_are_seen_at_the_beginning() {
        assert!(begins_with_reference("They won."));
        assert!(begins_with_reference("它很大。"));
        assert!(!begins_with_reference("IT is a department."));
        assert!(!begins_with_reference("Item one."));
        assert!(has_demonstrative("Burns are treated with these creams."));
        assert!(
            !has_demonstrative("These creams treat burns."),
            "at the beginning it is a reference"
        );
        assert!(!has_demonstrative("The hall opens this year, and this is new."));
    }
}
