//! The lexicon: concepts of everyday and working life, and the words for them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation;

use crate::translation::Language;

/// One concept per line: `English | German | French | Spanish`, alternatives separated by commas,
/// the usual one first. Lines that begin with `#` are headings.
const TEXT: &str = include_str!("lexicon.txt");
/// Groups of synonyms within a language, in the same format; columns may be empty. They are too
/// loose for translation.
const SYNONYMS: &str = include_str!("synonyms.txt");

/// Maximum number of words in a phrase.
const PHRASE_WORDS_MAX: usize = 4;
/// Number of letters in a German word that may be a compound, and the minimum in each of its parts.
/// Taking a word apart takes time quadratic in its length.
const COMPOUND_LETTERS: std::ops::RangeInclusive<usize> = 8..=80;
const PART_LETTERS_MIN: usize = 3;
/// Minimum number of letters in the last part of a compound whose first part is unknown.
const LAST_PART_LETTERS_MIN: usize = 5;
/// Number of letters by which a form may agree less with a word than the best form of the same
/// stem: "sold" and "soldier" are not alike.
const AGREEMENT_LOST_MAX: usize = 1;
/// Words of a text examined to recognise its language.
const TOLD_WORDS_MAX: usize = 120;
/// Lead in function words that is needed to decide the language by them alone.
const CLEAR_LEAD: usize = 4;
/// Weight of a function word relative to a word of the lexicon.
const FUNCTION_WEIGHT: usize = 2;

/// Index of a concept in the lexicon.
pub type Concept = u32;

/// A word or phrase of a text, or a part of a compound, that the lexicon knows.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Byte range in the text.
    pub bytes: Range<usize>,
    /// All its possible meanings.
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
    /// Concepts and phrase positions, by language and key of the first word.
    entries: [HashMap<String, Vec<(Concept, usize)>>; 4],
}

impl Lexicon {
    /// Returns the built-in lexicon.
    pub fn get() -> &'static Self {
        static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::parse(TEXT));
        &LEXICON
    }

    /// Returns the built-in groups of synonyms within each language.
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

    /// Whether a lower-case word is known to belong to a language.
    pub fn knows(&self, word: &str, language: Language) -> bool {
        language.is_function_word(word) || self.longest(&[language.key(word)], language).0 > 0
    }

    /// Finds the words and phrases of a text that the lexicon knows, in text order, preferring the
    /// longest. Unknown German compounds are split into parts.
    pub fn units(&self, text: &str, language: Language) -> Vec<Unit> {
        let words = language.words(text);
        let keys: Vec<String> = words.iter().map(|(_, word)| language.key(word)).collect();
        let mut units = Vec::new();
        let mut at = 0;
        while at < words.len() {
            let (count, mut concepts) = self.longest(&keys[at..], language);
            if count > 0 {
                let bytes = words[at].0.start..words[at + count - 1].0.end;
                self.keep_closest(&mut concepts, words[at].1, language);
                units.push(Unit { bytes, concepts });
            } else if language == Language::German {
                self.parts(words[at].1, words[at].0.start, &mut units);
            }
            at += count.max(1);
        }
        units
    }

    /// The longest phrase at the start of `keys`, as its number of words and its meanings.
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

    /// Drops concepts of which each form agrees with the word by fewer letters than the best does.
    fn keep_closest(&self, concepts: &mut Vec<Concept>, word: &str, language: Language) {
        let key = language.key(word);
        let word = word.to_lowercase();
        let agreement = |concept: &Concept| {
            let forms = self.concepts[*concept as usize][language as usize].iter();
            let forms = forms.filter(|form| form.keys.first() == Some(&key));
            let alike = |form: &Phrase| {
                let letters = form.text.chars().flat_map(char::to_lowercase);
                letters.zip(word.chars()).take_while(|(one, other)| one == other).count()
            };
            forms.map(alike).max().unwrap_or_default()
        };
        let agreements: Vec<usize> = concepts.iter().map(agreement).collect();
        let best = agreements.iter().copied().max().unwrap_or_default();
        let mut agreements = agreements.into_iter();
        concepts.retain(|_| agreements.next().is_some_and(|one| one + AGREEMENT_LOST_MAX >= best));
    }

    /// Adds the parts of a German compound: two known ones, or only the last, which carries the
    /// meaning.
    fn parts(&self, word: &str, start: usize, units: &mut Vec<Unit>) {
        let letters = word.chars().count();
        if !COMPOUND_LETTERS.contains(&letters) || !word.chars().all(char::is_alphabetic) {
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

    /// Recognises the language of a text by function words and letters alone, which misspelt words
    /// do not distort.
    pub fn language_told(&self, text: &str) -> Option<Language> {
        likeliest(told_by(text).1, 1)
    }

    /// Recognises the language of a text by function words and letters and, if these do not decide,
    /// by known words; `None` if several are equally likely.
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

/// The words of a text, and the evidence for each language in function words and letters.
fn told_by(text: &str) -> (Vec<String>, [usize; 4]) {
    let words = text.unicode_words().take(TOLD_WORDS_MAX).map(str::to_lowercase);
    let words: Vec<String> = words.collect();
    let told = Language::ALL.map(|language| {
        let tells = |word: &&String| language.is_function_word(word) || language.has_letter(word);
        words.iter().filter(tells).count() + usize::from(language.has_letter(text))
    });
    (words, told)
}

/// The language with the highest count, if it leads by `lead`.
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
    fn every_line_has_words_in_four_columns_and_stands_once() {
        let mut seen = std::collections::BTreeSet::new();
        let entries = |text: &'static str| {
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
        };
        let lines = entries(TEXT).map(|line| (line, 4));
        for (line, least) in lines.chain(entries(SYNONYMS).map(|line| (line, 1))) {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(columns.len(), 4, "{line}");
            assert!(seen.insert(columns.clone()), "twice: {line}");
            let filled = Language::ALL.into_iter().zip(columns).filter(|(_, one)| !one.is_empty());
            assert!(filled.clone().count() >= least, "{line}");
            for (language, column) in filled {
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
        assert_eq!(translated(&"werkstatt".repeat(2000), German, English), [""; 0]);
        assert_eq!(translated("teñir", Spanish, English), ["dye"]);
        let tener = Lexicon::get().units("tener", Spanish).remove(0).concepts;
        assert!(tener.iter().all(|one| !Lexicon::get().words(*one, English).any(|it| it == "dye")));
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
