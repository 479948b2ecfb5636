//! A question's words in texts of other languages.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::text::terms::is_common;
use crate::text::words::is_interrogative;
use crate::translation::lexicon::{Concept, Unit};
use crate::translation::{Language, Lexicon};

/// Maximum number of translated words in a question.
const WORDS_MAX: usize = 24;

/// A word of the question that says something about its subject.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The word as the question has it.
    pub text: String,
    /// All its possible meanings; empty for names, codes and unknown words.
    pub concepts: Vec<Concept>,
}

/// A question prepared for texts in other languages.
#[derive(Debug)]
pub struct Gloss {
    language: Language,
    /// The question, with German compounds split where only their parts are known.
    question: String,
    wanted: Vec<Wanted>,
    /// The capitalised words of the question: names, which are spelt the same in other languages.
    capitals: BTreeSet<String>,
    /// The words of the question by meaning.
    by_concept: BTreeMap<Concept, String>,
}

impl Gloss {
    /// Translates a question word by word; `None` if none of its words can be translated.
    pub fn of(question: &str) -> Option<Self> {
        let lexicon = Lexicon::get();
        let language = lexicon.language_of(question).unwrap_or(Language::English);
        let mut gloss = Self {
            language,
            question: String::new(),
            wanted: Vec::new(),
            capitals: capitals(language, question),
            by_concept: BTreeMap::new(),
        };
        let units = lexicon.units(question, language);
        gloss.question = parted(question, &units);
        let mut units = units.into_iter().peekable();
        let mut end = 0;
        for (bytes, word) in language.words(question) {
            if bytes.start < end {
                continue;
            }
            let mut found = Vec::new();
            while let Some(unit) = units.next_if(|unit| unit.bytes.start < bytes.end) {
                end = end.max(unit.bytes.end);
                found.push(unit);
            }
            if found.is_empty() {
                gloss.want(word, Vec::new());
            }
            for Unit { bytes, concepts } in found {
                gloss.want(&question[bytes], concepts);
            }
        }
        gloss.wanted.truncate(WORDS_MAX);
        (!gloss.by_concept.is_empty()).then_some(gloss)
    }

    fn want(&mut self, text: &str, concepts: Vec<Concept>) {
        let lower = text.to_lowercase();
        let is_told = is_common(&lower) || is_interrogative(&lower);
        if is_told || self.language.is_function_word(&lower) {
            return;
        }
        for concept in &concepts {
            let words = self.by_concept.entry(*concept).or_default();
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(text);
        }
        self.wanted.push(Wanted { text: text.to_owned(), concepts });
    }

    /// Returns the language of the question.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the question in the form that is compared with glossed texts.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// Returns the words of the question that say something about its subject.
    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// Returns the words of the question that may be names: capitalised and unknown.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let is_name =
            |word: &&Wanted| word.concepts.is_empty() && word.text.starts_with(char::is_uppercase);
        self.wanted.iter().filter(is_name).map(|word| word.text.as_str())
    }

    /// Whether the question has this word, and the lexicon lacks it in the question's language: a
    /// name, or a word that two languages share.
    fn has_unknown(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        self.wanted.iter().any(|one| one.concepts.is_empty() && one.text.to_lowercase() == lower)
    }

    /// Renders a text of another language in words of the question's language as far as they are
    /// known, preferring the question's own words over the usual ones. A text of the question's
    /// language is returned as it is.
    pub fn text<'t>(&self, text: &'t str, language: Language) -> Cow<'t, str> {
        if language == self.language {
            return Cow::Borrowed(text);
        }
        let lexicon = Lexicon::get();
        let mut glossed = String::with_capacity(text.len());
        let mut at = 0;
        for Unit { bytes, concepts } in lexicon.units(text, language) {
            let word = &text[bytes.clone()];
            let is_kept = self.capitals.contains(word) || self.has_unknown(word);
            if is_kept || is_of_grammar(word, &concepts, language) {
                continue;
            }
            let own = concepts.iter().find_map(|concept| self.by_concept.get(concept));
            let usual = || lexicon.words(concepts[0], self.language).next().unwrap_or_default();
            glossed.push_str(&text[at..bytes.start]);
            // The parts of a compound become separate words.
            if glossed.ends_with(char::is_alphanumeric) {
                glossed.push(' ');
            }
            glossed.push_str(own.map_or_else(usual, String::as_str));
            at = bytes.end;
            if text[at..].starts_with(char::is_alphanumeric) {
                glossed.push(' ');
            }
        }
        glossed.push_str(&text[at..]);
        Cow::Owned(glossed)
    }
}

/// The capitalised words of a question after its first word.
fn capitals(language: Language, question: &str) -> BTreeSet<String> {
    let words = language.words(question).into_iter().skip(1).map(|(_, word)| word);
    words.filter(|word| word.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// Whether a word is a function word rather than the like-sounding noun that the lexicon knows, as
/// the French "est" is "is", seldom "east". English has "IT" and "May" instead.
fn is_of_grammar(word: &str, concepts: &[Concept], language: Language) -> bool {
    let is_content = |concept: &Concept| {
        let mut words = Lexicon::get().words(*concept, Language::English);
        !words.any(|word| is_common(word) || Language::English.is_function_word(word))
    };
    language != Language::English
        && language.is_function_word(&word.to_lowercase())
        && concepts.iter().all(is_content)
}

/// A text with spaces inserted between adjacent units.
fn parted(text: &str, units: &[Unit]) -> String {
    let mut parted = text.to_owned();
    for unit in units.iter().rev() {
        let at = unit.bytes.start;
        if text[..at].ends_with(char::is_alphanumeric) {
            parted.insert(at, ' ');
        }
    }
    parted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_told_in_the_words_of_the_question() {
        let gloss = Gloss::of("How long may the dog stay in the kitchen?").unwrap();
        assert_eq!(gloss.language(), Language::English);
        let told = gloss.text("Der Hund darf 24 Stunden in der Küche bleiben.", Language::German);
        for word in ["dog", "24", "hour", "kitchen", "stay"] {
            assert!(told.contains(word), "{word}: {told}");
        }
        let flan = Gloss::of("How long does the flan keep?").unwrap();
        assert!(flan.text("Le flan se garde deux jours.", Language::French).contains("flan"));
        let own = gloss.text("The dog sleeps.", Language::English);
        assert_eq!(own, "The dog sleeps.");
    }

    /// Goal: function words are not taken for nouns that sound alike, and people under age are
    /// known by their number of years.
    #[test]
    fn function_words_and_ages_are_understood() {
        let gloss = Gloss::of("When must pupils under 18 be home?").unwrap();
        let told = gloss.text("Le lac est ouvert du lundi au jeudi.", Language::French);
        assert!(!told.contains("east") && !told.contains("outstanding"), "{told}");
        let told = gloss.text("Minderjährige sind um neun zu Hause.", Language::German);
        assert!(told.contains("under 18") && told.contains("home"), "{told}");
        let parts = Gloss::of("Wo sind die Malkurse?").unwrap();
        assert!(parts.wanted().iter().any(|word| word.text == "kurse"), "{:?}", parts.wanted());
        let gloss = Gloss::of("¿Quién es responsable de la informática?").unwrap();
        let told = gloss.text("IT and phones", Language::English);
        assert!(told.contains("informática"), "{told}");
        let gloss = Gloss::of("How deep is the lake?").unwrap();
        let told = gloss.text("Le bord est peu profond.", Language::French);
        assert!(!told.contains("deep"), "{told}");
    }

    /// A word with several translations matches each of them.
    #[test]
    fn every_translation_is_the_word_of_the_question() {
        let gloss = Gloss::of("¿Cuál es el precio del coche?").unwrap();
        for (text, language) in [
            ("The price of the car", Language::English),
            ("Das Auto", Language::German),
            ("Der Wagen", Language::German),
            ("la voiture", Language::French),
        ] {
            assert!(gloss.text(text, language).contains("coche"), "{text}");
        }
    }

    #[test]
    fn what_asks_is_not_translated_and_names_stay() {
        let gloss = Gloss::of("Who is the manager of Zzyzx?").unwrap();
        let wanted: Vec<&str> = gloss.wanted().iter().map(|word| word.text.as_str()).collect();
        assert_eq!(wanted, ["manager", "Zzyzx"]);
        assert_eq!(gloss.names().collect::<Vec<_>>(), ["Zzyzx"]);
        assert!(Gloss::of("Zzyzx?").is_none());
        let parts = Gloss::of("Was kostet Hundefutter?").unwrap();
        assert_eq!(parts.question(), "Was kostet Hunde futter?");
    }
}
