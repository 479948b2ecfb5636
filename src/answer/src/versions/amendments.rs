//! Amendments: documents that change numbered parts of an older one and leave the rest in force, as
//! in "changes sections 2 and 4 of the rules of 14 March 2023".

use unicode_segmentation::UnicodeSegmentation;

use crate::text::dates::{self, Dated};
use crate::text::words::{contains, is_entry, spaced};

/// Verbs of change, names of document parts, and words between their numbers.
const CHANGES: &str = "\
    changes|changed|amends|amended|replaces|replaced|modifies|supersedes|rewrites|ändert|ersetzt|\
    modifie|remplace|modifica|sustituye|reemplaza";
pub(crate) const PARTS: &str = "\
    section|sections|clause|clauses|point|points|article|articles|paragraph|paragraphs|rule|rules|\
    item|items|no|abschnitt|abschnitte|ziffer|ziffern|punkt|punkte|artikel|absatz|paragraphen|\
    artículo|artículos|sección|secciones|punto|puntos|cláusula|cláusulas";
const JOINS: &str = "and|und|et|y|to|bis";
/// Names of documents that only tell the changes of another one.
const AMENDMENTS: &str = "\
    amendment|amendments|addendum|nachtrag|änderungsvertrag|änderungssatzung|avenant|enmienda|\
    adenda";
/// Words by which the amendments of one document are counted.
const ORDINALS: &str = "\
    first|second|third|fourth|fifth|sixth|erster|zweiter|dritter|vierter|fünfter|premier|deuxième|\
    troisième|quatrième|primera|segunda|tercera|cuarta";
/// Words before the number of a paragraph within a section.
const PARAGRAPHS: &str = "abs|absatz|para|paragraph|satz|alinéa|apartado";
/// The sign before the number of a section.
const SECTION_SIGN: char = '\u{A7}';
/// Maximum number of words between the verb and the name of the parts.
const WORDS_BETWEEN_MAX: usize = 2;
/// Maximum number of bytes in a number such as `4a` or `12.3`.
const NUMBER_CHARS_MAX: usize = 6;
/// Minimum number of letters in a word that identifies the document.
const NAME_LETTERS_MIN: usize = 4;

/// The parts of an older document that a newer one changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Numbers of the changed parts.
    pub(crate) parts: Vec<String>,
    /// The words after the numbers, in lower case, and the day found among them.
    document: String,
    of: Option<Dated>,
}

impl Changes {
    /// Finds the changes stated in one of the sentences.
    pub(crate) fn told_by(sentences: &[String]) -> Option<Self> {
        sentences.iter().find_map(|sentence| {
            let words: Vec<&str> = sentence.split_whitespace().collect();
            let verb = words.iter().position(|word| is_entry(CHANGES, &bare(word)))?;
            let is_name = |at: &usize| {
                words[*at].starts_with(SECTION_SIGN) || is_entry(PARTS, &bare(words[*at]))
            };
            let mut between = (verb + 1..words.len()).take(WORDS_BETWEEN_MAX + 1);
            let name = between.find(is_name)?;
            let mut at = name + usize::from(!is_number(&bare(words[name])));
            let mut parts = Vec::new();
            while let Some(word) = words.get(at).map(|word| bare(word)) {
                if is_number(&word) {
                    parts.push(word);
                } else if !(word.is_empty() || is_entry(JOINS, &word)) {
                    break;
                }
                at += 1;
            }
            let rest = words[at..].join(" ");
            let of = dates::first(&rest);
            (!parts.is_empty()).then(|| Self { parts, document: spaced(&rest), of })
        })
    }

    /// Whether the changes apply to a document with these names, in force `since` a day: the stated
    /// day, if any, must match, and a word of a name must occur.
    pub(crate) fn are_of(&self, since: Option<Dated>, names: [&String; 2]) -> bool {
        let is_of_day = self.of.is_none_or(|of| since.is_some_and(|since| of.meets(since)));
        let mut words = names.into_iter().flat_map(|name| name.split(' '));
        let is_named =
            |word: &str| word.chars().count() >= NAME_LETTERS_MIN && contains(&self.document, word);
        is_of_day && words.any(is_named)
    }
}

/// Whether a heading begins with the name of an amendment: "Addendum of 1 October 2025".
pub(crate) fn is_addendum(heading: &str) -> bool {
    let mut words = heading.unicode_words().map(str::to_lowercase);
    let first = words.find(|word| !word.chars().all(char::is_numeric) && !is_entry(ORDINALS, word));
    first.is_some_and(|word| is_entry(AMENDMENTS, &word))
}

/// Whether the file names and titles of two documents are those of amendments of one document.
pub(crate) fn are_of_one(one: [&str; 2], other: [&str; 2]) -> bool {
    let words = |names: [&str; 2]| names.join(" ").unicode_words().map(str::to_lowercase).collect();
    let (one, other): (Vec<String>, Vec<String>) = (words(one), words(other));
    let is_amendment = |words: &[String]| words.iter().any(|word| is_entry(AMENDMENTS, word));
    let is_name = |word: &&String| {
        word.chars().count() >= NAME_LETTERS_MIN
            && !is_entry(AMENDMENTS, word)
            && !is_entry(ORDINALS, word)
    };
    is_amendment(&one)
        && is_amendment(&other)
        && one.iter().filter(is_name).any(|word| other.contains(word))
}

/// The section whose change a sentence tells, with its paragraph: `11 2` of "in section 11 (2) the
/// fee becomes".
pub(crate) fn section_told(sentence: &str) -> Option<String> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let is_part = |word: &&str| word.starts_with(SECTION_SIGN) || is_entry(PARTS, &bare(word));
    let name = words.iter().position(is_part)?;
    let at = name + usize::from(!is_number(&bare(words[name])));
    let mut section = words.get(at).map(|word| bare(word)).filter(|word| is_number(word))?;
    for word in &words[at + 1..] {
        let number = bare(word);
        if word.starts_with('(') || is_number(&number) {
            section = format!("{section} {number}");
        }
        if !(word.starts_with('(') || is_entry(PARAGRAPHS, &number)) {
            break;
        }
    }
    Some(section)
}

/// The number at the start of a heading or an item: "3 Booking", "Section 3.2: Food".
pub(crate) fn part_number(text: &str) -> Option<String> {
    let mut words = text.split_whitespace().map(bare).filter(|word| !word.is_empty());
    let first = words.next()?;
    let number = if is_entry(PARTS, &first) { words.next()? } else { first };
    is_number(&number).then_some(number)
}

/// Whether a text, which might also begin with an amount, begins with the number of a part.
pub(crate) fn is_numbered(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    text.starts_with(SECTION_SIGN) || first.ends_with(['.', ')'])
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit()) && word.len() <= NUMBER_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changed_parts_are_told() {
        let parts = |text: &str| Changes::told_by(&[text.to_owned()]).map(|told| told.parts);
        let told = |parts: &[&str]| Some(parts.iter().map(|part| (*part).to_owned()).collect());
        assert_eq!(parts("Changes sections 1, 3 and 6 of the rules"), told(&["1", "3", "6"]));
        assert_eq!(parts("Changes \u{A7}\u{A7} 2 and 4 of the rules"), told(&["2", "4"]));
        assert_eq!(parts("It replaces clause 4.2 of the contract"), told(&["4.2"]));
        assert_eq!(parts("Replaces the policy of 1 June 2022 entirely"), None);
        assert_eq!(parts("The rate changes every 3 months"), None);
    }

    #[test]
    fn sections_are_told_with_their_paragraphs() {
        for (sentence, section) in [
            ("4. In section 8 (3) the deposit becomes 90 francs.", Some("8 3")),
            ("Section 8 (3) as amended in 2023: the deposit is 95 francs.", Some("8 3")),
            ("In \u{A7} 8 Abs. 3 wird die Zahl ersetzt.", Some("8 3")),
            ("Clause 4.2 is struck out, 30 days remain.", Some("4.2")),
            ("In section 8 30 days become 20.", Some("8 30")),
            ("The deposit is 90 francs.", None),
        ] {
            assert_eq!(section_told(sentence).as_deref(), section, "{sentence}");
        }
    }

    #[test]
    fn amendments_of_one_document_share_its_name() {
        let first = ["lease amendment", "first amendment to the lease of mill lane"];
        assert!(are_of_one(first, ["lease amendment", "second amendment to the lease"]));
        assert!(!are_of_one(first, ["car rules amendment", "second amendment to the car rules"]));
        assert!(!are_of_one(first, ["lease", "lease of mill lane"]));
    }

    #[test]
    fn parts_begin_with_their_numbers() {
        assert_eq!(part_number("3 Booking").as_deref(), Some("3"));
        assert_eq!(part_number("\u{A7} 4a Transfers").as_deref(), Some("4a"));
        assert_eq!(part_number("Section 3.2: Food").as_deref(), Some("3.2"));
        assert_eq!(part_number("Food for 3 days"), None);
        assert!(is_numbered("2. Quiet from 22:00") && !is_numbered("2 keys are needed."));
    }
}
