//! Words that carry the form of a question and not its matter, in a handful of languages.
//!
//! Lists are kept as one text each, their entries between bars. They are short on purpose. They
//! nudge scores and find follow-ups; a language that is not here loses a nudge and nothing else.

use unicode_segmentation::UnicodeSegmentation;

/// Question words and the auxiliaries beside them: they say what is asked for and do not occur in
/// the text that answers. Lower case.
const INTERROGATIVES: &str = "\
    about|am|been|being|can|combien|comment|could|cual|cuando|cuantos|cu\u{E1}l|cu\u{E1}les|\
    cu\u{E1}ndo|cu\u{E1}nta|cu\u{E1}ntas|cu\u{E1}nto|cu\u{E1}ntos|c\u{F3}mo|did|do|does|\
    d\u{F3}nde|est|had|has|have|how|i|ist|kann|many|me|much|my|o\u{F9}|please|pourquoi|qu|quand|\
    que|quel|quelle|quelles|quels|qui|qui\u{E9}n|qui\u{E9}nes|quoi|qu\u{E9}|sind|should|tell|\
    wann|war|waren|warum|was|welche|welchem|welchen|welcher|welches|wem|wen|were|wer|what|\
    what's|when|where|which|who|who's|whom|whose|why|wie|wieviel|wieviele|wo|would|wurde|you|\
    your|\u{433}\u{434}\u{435}|\u{43A}\u{430}\u{43A}|\u{43A}\u{430}\u{43A}\u{430}\u{44F}|\
    \u{43A}\u{430}\u{43A}\u{438}\u{435}|\u{43A}\u{430}\u{43A}\u{438}\u{43C}|\
    \u{43A}\u{430}\u{43A}\u{43E}\u{432}\u{430}|\u{43A}\u{430}\u{43A}\u{43E}\u{435}|\
    \u{43A}\u{430}\u{43A}\u{43E}\u{439}|\u{43A}\u{430}\u{43A}\u{43E}\u{43C}|\
    \u{43A}\u{430}\u{43A}\u{443}\u{44E}|\u{43A}\u{43E}\u{433}\u{434}\u{430}|\
    \u{43A}\u{43E}\u{433}\u{43E}|\u{43A}\u{43E}\u{43C}\u{443}|\u{43A}\u{442}\u{43E}|\
    \u{43F}\u{43E}\u{447}\u{435}\u{43C}\u{443}|\
    \u{441}\u{43A}\u{43E}\u{43B}\u{44C}\u{43A}\u{43E}|\u{447}\u{435}\u{433}\u{43E}|\
    \u{447}\u{435}\u{439}|\u{447}\u{435}\u{43C}|\u{447}\u{442}\u{43E}";

/// The same in scripts without spaces, longest first where one holds another.
const INTERROGATIVE_RUNS: &str = "\
    \u{4EC0}\u{4E48}\u{65F6}\u{5019}|\u{4E3A}\u{4EC0}\u{4E48}|\u{4EC0}\u{4E48}|\
    \u{54EA}\u{4E00}\u{5E74}|\u{54EA}\u{5E74}|\u{54EA}\u{91CC}|\u{54EA}\u{4E9B}|\
    \u{54EA}\u{4E2A}|\u{54EA}|\u{8C01}|\u{4F55}\u{65F6}|\u{591A}\u{5C11}|\u{600E}\u{4E48}|\
    \u{600E}\u{6837}|\u{5982}\u{4F55}|\u{51E0}|\u{5417}|\u{5462}|\u{3044}\u{3064}|\
    \u{3069}\u{3053}|\u{3069}\u{306E}|\u{306A}\u{305C}|\u{8AB0}|\u{4F55}";

const NUMBER_QUESTIONS: &str = "\
    how many|how much|how long|how far|how tall|how old|how big|how large|what percentage|\
    what percent|what number|wie viel|wie viele|wieviel|wieviele|wie lange|cu\u{E1}nto|\
    cu\u{E1}nta|cu\u{E1}ntos|cu\u{E1}ntas|qu\u{E9} porcentaje|combien|\
    \u{441}\u{43A}\u{43E}\u{43B}\u{44C}\u{43A}\u{43E}|\u{591A}\u{5C11}|\u{51E0}";
const DATE_QUESTIONS: &str = "\
    when|what year|which year|what date|what day|what month|what time|wann|welchem jahr|\
    welches jahr|cu\u{E1}ndo|qu\u{E9} a\u{F1}o|quand|quelle ann\u{E9}e|\
    \u{43A}\u{43E}\u{433}\u{434}\u{430}|\
    \u{43A}\u{430}\u{43A}\u{43E}\u{43C} \u{433}\u{43E}\u{434}\u{443}|\
    \u{4EC0}\u{4E48}\u{65F6}\u{5019}|\u{4F55}\u{65F6}|\u{54EA}\u{4E00}\u{5E74}|\u{54EA}\u{5E74}|\
    \u{3044}\u{3064}";
const PERSON_QUESTIONS: &str = "\
    who|whom|whose|wer|wen|wem|wessen|qui\u{E9}n|qui\u{E9}nes|qui|\u{43A}\u{442}\u{43E}|\
    \u{43A}\u{43E}\u{433}\u{43E}|\u{43A}\u{43E}\u{43C}\u{443}|\u{43A}\u{435}\u{43C}|\u{8C01}|\
    \u{8AB0}";

/// Names of months, lower case, and what else makes a date without a number.
const DATE_WORDS: &str = "\
    abril|agosto|april|ao\u{FB}t|august|avril|dezember|december|diciembre|d\u{E9}cembre|enero|\
    febrero|februar|february|f\u{E9}vrier|januar|january|janvier|juillet|juin|juli|julio|july|\
    june|juni|junio|mai|march|mars|marzo|mayo|monday|friday|m\u{E4}rz|noviembre|november|\
    novembre|octobre|october|octubre|oktober|saturday|septembre|september|septiembre|sunday|\
    thursday|tuesday|wednesday|yesterday|today|tomorrow|\
    \u{430}\u{432}\u{433}\u{443}\u{441}\u{442}\u{430}|\
    \u{430}\u{43F}\u{440}\u{435}\u{43B}\u{44F}|\
    \u{434}\u{435}\u{43A}\u{430}\u{431}\u{440}\u{44F}|\u{438}\u{44E}\u{43B}\u{44F}|\
    \u{438}\u{44E}\u{43D}\u{44F}|\u{43C}\u{430}\u{440}\u{442}\u{430}|\u{43C}\u{430}\u{44F}|\
    \u{43D}\u{43E}\u{44F}\u{431}\u{440}\u{44F}|\
    \u{43E}\u{43A}\u{442}\u{44F}\u{431}\u{440}\u{44F}|\
    \u{441}\u{435}\u{43D}\u{442}\u{44F}\u{431}\u{440}\u{44F}|\
    \u{444}\u{435}\u{432}\u{440}\u{430}\u{43B}\u{44F}|\u{44F}\u{43D}\u{432}\u{430}\u{440}\u{44F}";

/// Numbers written as words.
const NUMBER_WORDS: &str = "\
    one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|\
    fifty|hundred|thousand|million|billion|half|twice|third|zwei|drei|vier|f\u{FC}nf|sechs|\
    sieben|acht|neun|zehn|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|deux|trois|quatre|\
    cinq|sept|huit|neuf|dix|\u{434}\u{432}\u{430}|\u{434}\u{432}\u{435}|\u{442}\u{440}\u{438}|\
    \u{447}\u{435}\u{442}\u{44B}\u{440}\u{435}|\u{43F}\u{44F}\u{442}\u{44C}|\
    \u{448}\u{435}\u{441}\u{442}\u{44C}|\u{441}\u{435}\u{43C}\u{44C}|\
    \u{432}\u{43E}\u{441}\u{435}\u{43C}\u{44C}|\u{434}\u{435}\u{432}\u{44F}\u{442}\u{44C}|\
    \u{434}\u{435}\u{441}\u{44F}\u{442}\u{44C}";

/// First words that point to what the sentence before spoke of. Lower case.
const REFERENCES: &str = "\
    he|she|it|they|this|these|that|those|his|her|hers|its|their|theirs|him|them|such|er|sie|es|\
    dies|diese|dieser|dieses|\u{E9}l|ella|ellos|ellas|este|esta|esto|estos|estas|il|elle|ils|\
    elles|ce|cette|ces|cela|\u{43E}\u{43D}|\u{43E}\u{43D}\u{430}|\u{43E}\u{43D}\u{43E}|\
    \u{43E}\u{43D}\u{438}|\u{44D}\u{442}\u{43E}|\u{44D}\u{442}\u{430}|\
    \u{44D}\u{442}\u{43E}\u{442}|\u{44D}\u{442}\u{438}|\u{435}\u{433}\u{43E}|\u{435}\u{451}|\
    \u{438}\u{445}";

/// Beginnings of the same kind in scripts without spaces.
const REFERENCE_RUNS: &str = "\
    \u{5B83}|\u{4ED6}|\u{5979}|\u{8FD9}|\u{90A3}|\u{8BE5}|\u{6B64}|\u{5176}|\u{305D}\u{308C}|\
    \u{3053}\u{308C}|\u{5F7C}|\u{3053}\u{306E}|\u{305D}\u{306E}";

fn entries(list: &str) -> std::str::Split<'_, char> {
    list.split('|')
}

/// Whether the word, without case, is in the list.
fn is_entry(list: &str, word: &str) -> bool {
    let word = word.to_lowercase();
    entries(list).any(|entry| entry == word)
}

/// What a question asks for, as far as its words tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Number,
    Date,
    Person,
    Other,
}

/// What the question asks for.
pub(super) fn asked(question: &str) -> Asked {
    let question = spaced(question);
    let has = |list: &str| entries(list).any(|phrase| contains(&question, phrase));
    if has(DATE_QUESTIONS) {
        Asked::Date
    } else if has(NUMBER_QUESTIONS) {
        Asked::Number
    } else if has(PERSON_QUESTIONS) {
        Asked::Person
    } else {
        Asked::Other
    }
}

/// Whether the text holds something of the kind that is asked for. `question` is lower case.
pub(super) fn holds(asked: Asked, text: &str, question: &str) -> bool {
    let in_list = |list: &str| text.unicode_words().any(|word| is_entry(list, word));
    let is_new_number = |word: &str| word.contains(char::is_numeric) && !question.contains(word);
    match asked {
        Asked::Number => text.unicode_words().any(is_new_number) || in_list(NUMBER_WORDS),
        Asked::Date => {
            let is_year =
                |word: &str| word.len() == 4 && matches!(word.parse(), Ok(1000_u32..=2100));
            let in_run = text.contains("\u{5E74}") && text.contains(char::is_numeric);
            in_run
                || in_list(DATE_WORDS)
                || text.unicode_words().any(|word| is_year(word) && is_new_number(word))
        }
        Asked::Person => has_new_name(text, question),
        Asked::Other => false,
    }
}

/// Whether a capitalised word that the question does not hold stands inside the text; the first
/// word is always capitalised.
fn has_new_name(text: &str, question: &str) -> bool {
    let is_name = |word: &str| {
        word.chars().next().is_some_and(char::is_uppercase)
            && word.chars().nth(1).is_some_and(char::is_lowercase)
            && !question.contains(&word.to_lowercase())
    };
    let words: Vec<&str> = text.unicode_words().collect();
    words.iter().skip(1).any(|word| is_name(word))
}

/// The question without its question words, so that what is left should occur in an answer;
/// the question itself when nothing would be left.
pub(super) fn matter(question: &str) -> String {
    let matter = bare_matter(question);
    if matter.contains(char::is_alphanumeric) { matter } else { question.to_owned() }
}

/// The question without its question words, even when nothing is left.
pub(super) fn bare_matter(question: &str) -> String {
    let mut text = question.to_owned();
    for run in entries(INTERROGATIVE_RUNS) {
        text = text.replace(run, " ");
    }
    let words = text.split_word_bounds();
    words.map(|word| if is_interrogative(word) { " " } else { word }).collect()
}

/// Whether the word asks, or is an auxiliary beside one that does.
pub(super) fn is_interrogative(word: &str) -> bool {
    is_entry(INTERROGATIVES, word)
}

/// Whether the text begins with a word that points backwards.
pub(super) fn begins_with_reference(text: &str) -> bool {
    let first = text.unicode_words().next().unwrap_or_default();
    is_reference(first) || entries(REFERENCE_RUNS).any(|run| text.starts_with(run))
}

/// Whether the word points to something named before. `IT` is a department.
pub(super) fn is_reference(word: &str) -> bool {
    let is_acronym = word.len() > 1 && word.chars().all(char::is_uppercase);
    !is_acronym && is_entry(REFERENCES, word)
}

/// Whether one of the references of scripts without spaces stands in the text.
pub(super) fn has_reference_run(text: &str) -> bool {
    entries(REFERENCE_RUNS).any(|run| text.contains(run))
}

/// Words in lower case, a space around each.
pub(super) fn spaced(text: &str) -> String {
    let mut words = String::from(" ");
    for word in text.unicode_words() {
        words.push_str(&word.to_lowercase());
        words.push(' ');
    }
    words
}

/// Whether a phrase stands in text made by [`spaced`]. Runs without spaces are compared without
/// them, for each of their characters counts as a word there.
pub(super) fn contains(spaced: &str, phrase: &str) -> bool {
    let is_run = phrase.chars().all(|c| c as u32 >= 0x3000);
    if is_run {
        return spaced.replace(' ', "").contains(phrase);
    }
    spaced.contains(&format!(" {phrase} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_answer_is_seen() {
        for (question, expected) in [
            ("How many points did they score?", Asked::Number),
            ("In what year was it built?", Asked::Date),
            ("Who wrote it?", Asked::Person),
            ("Wie viele Tore?", Asked::Number),
            ("¿Cuándo nació?", Asked::Date),
            ("Кто это сказал?", Asked::Person),
            ("这座塔是什么时候建成的？", Asked::Date),
            ("有多少人？", Asked::Number),
            ("What is a whole?", Asked::Other),
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
    }
}
