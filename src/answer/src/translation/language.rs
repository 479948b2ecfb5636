//! The languages of the lexicon: their words, stems and function words.

use std::ops::Range;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

/// Function words by language, as far as they distinguish it from the others. Lower case.
const FUNCTION_WORDS: [&str; 4] = [
    "the|of|and|to|is|are|was|were|for|with|that|this|it|you|your|we|our|they|their|he|she|his|her|\
     has|have|had|be|been|by|at|on|as|or|not|from|which|who|whom|whose|what|when|where|why|how|\
     does|do|did|can|could|should|would|must|may|will|if|there|any|all|i|my|an|into|than|before|\
     after|without|only",
    "der|die|das|den|dem|des|und|ist|sind|war|wird|werden|wurde|ein|eine|einen|einem|einer|eines|\
     nicht|mit|von|vom|zu|zum|zur|für|auf|im|am|bei|beim|nach|vor|aus|um|über|unter|durch|ohne|ich|\
     wir|sie|ihr|ihre|mein|meine|meinen|unser|wie|wer|wann|wo|warum|welche|welcher|welches|welchen|\
     welchem|wem|wen|wieviel|viel|viele|kann|können|darf|dürfen|muss|müssen|soll|sollte|hat|haben|\
     oder|wenn|dass|auch|nur|noch|kein|keine|bis|ab|es|er|man|sich|gibt|was|alle|pro|\
     mich|mir|ihm|ihn|ihnen",
    "le|la|les|des|du|de|et|est|sont|une|un|dans|pour|pas|vous|nous|je|il|elle|ils|elles|on|au|aux|\
     ce|cette|ces|qui|que|quoi|quand|où|comment|combien|pourquoi|quel|quelle|quels|quelles|avec|\
     sans|sur|sous|par|ne|se|sa|son|ses|mon|ma|mes|votre|vos|notre|nos|leur|leurs|être|avoir|faut|\
     peut|doit|dois|puis|sera|chez|après|avant|ou|si|plus|en|à|y|entre",
    "el|la|los|las|de|del|y|es|son|está|están|una|un|unos|en|para|por|con|sin|no|que|qué|se|su|sus|\
     mi|mis|nuestro|nuestra|al|lo|le|les|cuándo|cuánto|cuánta|cuántos|cuántas|cómo|dónde|quién|\
     quiénes|cuál|cuáles|hay|puede|puedo|pueden|debe|debo|deben|tiene|tengo|tienen|ser|estar|este|\
     esta|esto|estos|estas|si|pero|más|antes|después|hasta|desde|entre|cada|o|a|nunca|sobre",
];
/// Letters and signs typical of each language.
const LETTERS: [&str; 4] = ["", "äöüß", "àâçèêëîïôœù", "¿¡ñáíóú"];

/// A language of the lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// English.
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
}

impl Language {
    /// All languages, in the order of the lexicon's columns.
    pub const ALL: [Self; 4] = [Self::English, Self::German, Self::French, Self::Spanish];

    /// The ISO 639-1 code.
    pub fn code(self) -> &'static str {
        ["en", "de", "fr", "es"][self as usize]
    }

    /// The stem of a word without diacritics, by which inflected forms are compared.
    pub fn key(self, word: &str) -> String {
        let word = word.to_lowercase();
        plain(&stemmer(self).stem(&word))
    }

    /// The letters that nearly all forms of a word begin with.
    pub fn beginning(self, word: &str) -> String {
        let word = word.to_lowercase();
        let stem = stemmer(self).stem(&word);
        let both = word.chars().zip(stem.chars()).take_while(|(one, other)| one == other);
        both.map(|(letter, _)| letter).collect()
    }

    /// Whether a lower-case word is a function word in this language.
    pub fn is_function_word(self, word: &str) -> bool {
        FUNCTION_WORDS[self as usize].split('|').any(|other| other == word)
    }

    /// Whether a text has a letter or sign typical of this language.
    pub(crate) fn has_letter(self, text: &str) -> bool {
        text.chars().any(|c| !c.is_ascii() && LETTERS[self as usize].contains(c))
    }

    /// Splits a text into words with their byte ranges, French ones without an elided article or
    /// pronoun, English ones without an apostrophe and the letters after it.
    pub fn words(self, text: &str) -> Vec<(Range<usize>, &str)> {
        let bare = |(at, word): (usize, &'_ str)| {
            let mark = word.find(['\'', '\u{2019}']);
            let range = match (self, mark) {
                (Self::English, Some(mark)) => at..at + mark,
                (Self::French, Some(mark)) => {
                    let behind = word[mark..].chars().next().map_or(0, char::len_utf8);
                    at + mark + behind..at + word.len()
                }
                _ => at..at + word.len(),
            };
            (!range.is_empty()).then_some(range)
        };
        let ranges = text.unicode_word_indices().filter_map(bare);
        ranges.map(|range| (range.clone(), &text[range])).collect()
    }
}

fn stemmer(language: Language) -> Stemmer {
    Stemmer::new(match language {
        Language::English => Algorithm::English,
        Language::German => Algorithm::German,
        Language::French => Algorithm::French,
        Language::Spanish => Algorithm::Spanish,
    })
}

/// A word without diacritics.
fn plain(word: &str) -> String {
    if word.is_ascii() {
        return word.to_owned();
    }
    let word = word.replace('ß', "ss").replace('œ', "oe");
    word.nfd().filter(|c| !is_combining_mark(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inflected_forms_have_one_key() {
        for (language, one, other) in [
            (Language::German, "Hund", "Hunde"),
            (Language::German, "Arzt", "Ärzte"),
            (Language::French, "chiot", "chiots"),
            (Language::French, "ouvrir", "ouvre"),
            (Language::Spanish, "operación", "operaciones"),
            (Language::English, "puppy", "Puppies"),
        ] {
            assert_eq!(language.key(one), language.key(other), "{one} {other}");
        }
    }

    #[test]
    fn words_stand_without_what_is_joined_to_them() {
        let words = |language: Language, text| -> Vec<String> {
            language.words(text).into_iter().map(|(_, word)| word.to_owned()).collect()
        };
        assert_eq!(words(Language::French, "l'eau d’Arles"), ["eau", "Arles"]);
        assert_eq!(words(Language::English, "the dog's bed"), ["the", "dog", "bed"]);
    }
}
