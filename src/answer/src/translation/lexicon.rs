//! The lexicon: concepts of everyday and working life, and the words for them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation;

use crate::translation::Language;

/// One concept a line: `English | German | French | Spanish`, alternatives separated by commas, the
/// usual one first. Lines that begin with `#` are headings.
const TEXT: &str = include_str!("lexicon.txt");
/// Groups of words that stand for each other within a language, in the same form. They are too wide
/// to translate by.
const SYNONYMS: &str = include_str!("synonyms.txt");

/// Words of a phrase at most.
const PHRASE_WORDS_MAX: usize = 4;
/// Letters of a German word that may be a compound, and of each of its parts.
const COMPOUND_LETTERS_MIN: usize = 8;
const PART_LETTERS_MIN: usize = 3;
/// Letters of the last part of a compound whose other part is not known.
const LAST_PART_LETTERS_MIN: usize = 5;
/// Words of a text by which its language is told.
const TOLD_WORDS_MAX: usize = 120;
/// Function words by which a language must lead to be told by them alone.
const CLEAR_LEAD: usize = 4;
/// Weight of a function word against a word of the lexicon.
const FUNCTION_WEIGHT: usize = 2;

/// The number of a line of the lexicon.
pub type Concept = u32;

/// A word or phrase of a text, or a part of a compound, that the lexicon knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// Everything that it may mean.
    pub concepts: Vec<Concept>,
}

/// A word or phrase with the keys of its words.
#[derive(Debug)]
struct Phrase {
    text: &'static str,
    keys: Vec<String>,
}

/// Concepts and their words in the four languages.
#[derive(Debug)]
pub struct Lexicon {
    concepts: Vec<[Vec<Phrase>; 4]>,
    /// By language and the key of the first word.
    entries: [HashMap<String, Vec<(Concept, usize)>>; 4],
}

impl Lexicon {
    /// The lexicon of the program.
    pub fn get() -> &'static Self {
        static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::parse(TEXT));
        &LEXICON
    }

    /// The groups of words that stand for each other within a language.
    pub fn synonyms() -> &'static Self {
        static SYNONYMS_READ: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::parse(SYNONYMS));
        &SYNONYMS_READ
    }

    fn parse(text: &'static str) -> Self {
        let mut lexicon = Self { concepts: Vec::new(), entries: Default::default() };
        for line in text.lines().filter(|line| line.contains('|')) {
            let mut columns = line.split('|');
            let concept = Language::ALL.map(|language| {
                let phrases = columns.next().unwrap_or_default().split(',').map(str::trim);
                let phrases = phrases.filter(|phrase| !phrase.is_empty());
                let phrase = |text| Phrase { text, keys: keys(language, text) };
                phrases.map(phrase).collect::<Vec<_>>()
            });
            let number = lexicon.concepts.len() as Concept;
            for (entries, phrases) in lexicon.entries.iter_mut().zip(&concept) {
                for (at, phrase) in phrases.iter().enumerate() {
                    let Some(first) = phrase.keys.first() else { continue };
                    entries.entry(first.clone()).or_default().push((number, at));
                }
            }
            lexicon.concepts.push(concept);
        }
        lexicon
    }

    /// The words and phrases for a concept, the usual one first.
    pub fn words(
        &self,
        concept: Concept,
        language: Language,
    ) -> impl Iterator<Item = &'static str> {
        self.concepts[concept as usize][language as usize].iter().map(|phrase| phrase.text)
    }

    /// Whether a word in lower case is one of a language's, as far as is known.
    pub fn knows(&self, word: &str, language: Language) -> bool {
        language.is_function_word(word) || self.longest(&[language.key(word)], language).0 > 0
    }

    /// The words and phrases of a text that the lexicon knows, in its order: the longest ones; of
    /// a German compound that it does not know the parts.
    pub fn units(&self, text: &str, language: Language) -> Vec<Unit> {
        let words = language.words(text);
        let keys: Vec<String> = words.iter().map(|(_, word)| language.key(word)).collect();
        let mut units = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let (count, concepts) = self.longest(&keys[at..], language);
            if count > 0 {
                let bytes = words[at].0.start..words[at + count - 1].0.end;
                units.push(Unit { bytes, concepts });
            } else if language == Language::German {
                self.parts(words[at].1, words[at].0.start, &mut units);
            }
            at += count.max(1);
        }
        units
    }

    /// The words of the longest phrase with which the words of some keys begin, and its meanings.
    fn longest(&self, keys: &[String], language: Language) -> (usize, Vec<Concept>) {
        let mut found = (0, Vec::new());
        for (concept, at) in self.entries[language as usize].get(&keys[0]).into_iter().flatten() {
            let phrase = &self.concepts[*concept as usize][language as usize][*at].keys;
            if phrase.len() < found.0
                || phrase.len() > PHRASE_WORDS_MAX
                || !keys.starts_with(phrase)
            {
                continue;
            }
            if phrase.len() > found.0 {
                found = (phrase.len(), Vec::new());
            }
            if !found.1.contains(concept) {
                found.1.push(*concept);
            }
        }
        found
    }

    /// The parts of a German compound: two that are known, or the last one, which says what it is.
    fn parts(&self, word: &str, start: usize, units: &mut Vec<Unit>) {
        let letters = word.chars().count();
        if letters < COMPOUND_LETTERS_MIN || !word.chars().all(char::is_alphabetic) {
            return;
        }
        let concepts = |part: &str| self.longest(&[Language::German.key(part)], Language::German).1;
        let mut last = None;
        for (place, (at, _)) in word.char_indices().enumerate() {
            if place < PART_LETTERS_MIN || letters - place < PART_LETTERS_MIN {
                continue;
            }
            let (one, other) = word.split_at(at);
            let of_last = concepts(other);
            if of_last.is_empty() {
                continue;
            }
            let of_first = concepts(one);
            let unit = |bytes: Range<usize>, concepts| Unit {
                bytes: start + bytes.start..start + bytes.end,
                concepts,
            };
            let tail = unit(at..word.len(), of_last);
            if !of_first.is_empty() {
                units.extend([unit(0..at, of_first), tail]);
                return;
            }
            if letters - place >= LAST_PART_LETTERS_MIN {
                last.get_or_insert(tail);
            }
        }
        units.extend(last);
    }

    /// The language of a text by its function words and letters alone, which a misspelt word is not
    /// taken for.
    pub fn language_told(&self, text: &str) -> Option<Language> {
        likeliest(told_by(text).1, 1)
    }

    /// The language of a text, by its function words and letters, and where they do not tell by
    /// the words that are known; `None` where several are as likely.
    pub fn language_of(&self, text: &str) -> Option<Language> {
        let (words, told) = told_by(text);
        likeliest(told, CLEAR_LEAD).or_else(|| {
            let text = words.join(" ");
            let counts = Language::ALL.map(|language| {
                let is_known = |(_, word): &(Range<usize>, &str)| {
                    self.longest(&[language.key(word)], language).0 > 0
                };
                let known = language.words(&text).iter().filter(|word| is_known(word)).count();
                FUNCTION_WEIGHT * told[language as usize] + known
            });
            likeliest(counts, 1)
        })
    }
}

/// The words of a text, and how many of each language's function words and letters are there.
fn told_by(text: &str) -> (Vec<String>, [usize; 4]) {
    let words = text.unicode_words().take(TOLD_WORDS_MAX).map(str::to_lowercase);
    let words: Vec<String> = words.collect();
    let told = Language::ALL.map(|language| {
        let tells = |word: &&String| language.is_function_word(word) || language.has_letter(word);
        words.iter().filter(tells).count() + usize::from(language.has_letter(text))
    });
    (words, told)
}

/// The language of the highest count, where it leads by so much.
fn likeliest(counts: [usize; 4], lead: usize) -> Option<Language> {
    let mut counts = Language::ALL.map(|language| (counts[language as usize], language));
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    (counts[0].0 >= counts[1].0 + lead).then_some(counts[0].1)
}

fn keys(language: Language, text: &str) -> Vec<String> {
    language.words(text).into_iter().map(|(_, word)| language.key(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_words_in_four_languages_and_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        for line in TEXT
            .lines()
            .chain(SYNONYMS.lines())
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            assert!(columns.len() == 4 && columns.iter().all(|one| !one.is_empty()), "{line}");
            assert!(seen.insert(columns.clone()), "twice: {line}");
            for (language, column) in Language::ALL.into_iter().zip(columns) {
                for phrase in column.split(',') {
                    let words = language.words(phrase).len();
                    assert!((1..=PHRASE_WORDS_MAX).contains(&words), "{line}: {phrase}");
                }
            }
        }
        assert!(seen.len() > 1500, "{}", seen.len());
    }

    fn translated(text: &str, from: Language, to: Language) -> Vec<&'static str> {
        let lexicon = Lexicon::get();
        let first = |unit: Unit| lexicon.words(unit.concepts[0], to).next().unwrap();
        lexicon.units(text, from).into_iter().map(first).collect()
    }

    #[test]
    fn words_phrases_and_compounds_are_known() {
        use Language::{English, French, German, Spanish};
        assert_eq!(translated("Hunde und Katzen", German, English), ["dog", "and", "cat"]);
        assert_eq!(translated("first aid", English, French), ["premiers secours"]);
        assert_eq!(translated("los perros", Spanish, German), ["Hund"]);
        assert_eq!(translated("Hundefutter", German, English), ["dog", "feed"]);
        assert_eq!(translated("Zzyzxwerkstatt", German, English), ["workshop"]);
        assert_eq!(translated("qwertz", German, English), [""; 0]);
        let lexicon = Lexicon::get();
        assert!(lexicon.knows("kostet", German) && lexicon.knows("viel", German));
        assert!(!lexicon.knows("kostte", German) && !lexicon.knows("kostet", English));
    }

    #[test]
    fn the_language_of_a_text_is_told() {
        for (text, language) in [
            ("Was kostet ein Schlüssel?", Some(Language::German)),
            ("¿Cuántas bicicletas hay?", Some(Language::Spanish)),
            ("À quelle heure ouvre le magasin ?", Some(Language::French)),
            ("When does the shop open?", Some(Language::English)),
            ("service,price\nbicycle repair,30\nnew tyre,20", Some(Language::English)),
            ("X-12 4711", None),
        ] {
            assert_eq!(Lexicon::get().language_of(text), language, "{text}");
        }
    }
}
