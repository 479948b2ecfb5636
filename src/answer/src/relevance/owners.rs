//! Owners: the thing whose attribute or deed a question asks for ("the head of Tarn", "Tarn's
//! head", "who founded Tarn"), and passages that state that of another thing.
//!
//! The owner must be met where the fact stands: in the passage, above it, or in the title. If it is
//! elsewhere in the document, it counts only if the passage does not say the same of another name,
//! and the document is not one about another name.

use std::collections::BTreeMap;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::candidates::Candidate;
use crate::question::named::{is_no_name, names, written};
use crate::question::phrase::is_be;
use crate::question::wish::Question;
use crate::text::terms::is_common;
use crate::text::words::{is_interrogative, is_reference, spaced};
use lodestone_text::HybridQuery;
use lodestone_types::{RetrievedChunk, SourceRecord};

/// Confidence and relevance lost by a passage about another owner, more than any evidence weighs.
pub(crate) const OTHER_OWNER_MALUS: f32 = 1.0;

/// Words between an attribute and its owner, and articles before a name.
const OF: [&str; 2] = ["of", "at"];
const ARTICLES: [&str; 4] = ["the", "a", "an", "our"];
/// Forms of "have" before a participle.
const HAVE: [&str; 3] = ["has", "have", "had"];
/// Subjects whose name stands elsewhere.
const SUBJECTS: [&str; 8] = ["he", "she", "it", "they", "who", "that", "which", "we"];
/// Maximum number of words from an owner to its attribute: "Tarn's first chief engineer".
const ATTRIBUTE_WORDS_MAX: usize = 3;
/// Maximum number of words in a label before a value.
const LABEL_WORDS_MAX: usize = 3;
/// Words that end an attribute.
const ENDS: [&str; 10] = ["in", "on", "at", "of", "for", "from", "during", "since", "before", "by"];

/// Marks between a title and the name of its collection.
const TITLE_JOINTS: [&str; 3] = [" - ", " | ", " \u{2013} "];

/// The owner that a question names.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    /// The words of its name, in lower case.
    words: Vec<String>,
    /// The term of the attribute or the deed.
    role: String,
    is_deed: bool,
    has_article: bool,
}

/// The passages that state the fact asked for of another owner.
pub(crate) struct Owners<'c> {
    owner: Option<Owner>,
    chunks: &'c [&'c RetrievedChunk],
    /// For each text and section, the first unit that names the owner.
    named: BTreeMap<(usize, usize), usize>,
    /// For each source, whether its document is about another name.
    subjects: BTreeMap<(&'c str, &'c str), bool>,
}

impl<'c> Owners<'c> {
    /// Finds the owner that a question names, and its mentions.
    pub(crate) fn of(
        question: &Question,
        candidates: &[Candidate],
        chunks: &'c [&'c RetrievedChunk],
    ) -> Self {
        let mut found = Self {
            owner: owner(question.last()).filter(|_| !question.compares),
            chunks,
            named: BTreeMap::new(),
            subjects: BTreeMap::new(),
        };
        let Some(owner) = &found.owner else { return found };
        for one in candidates.iter().filter(|one| owner.is_in(&one.shown())) {
            let first = found.named.entry((one.stretch, one.section)).or_insert(one.unit);
            *first = one.unit.min(*first);
        }
        found
    }

    /// Whether a passage states the fact of another owner. `above` is the text above it.
    pub(crate) fn are_others(&mut self, passage: &Candidate, above: &str) -> bool {
        let chunk = self.chunks[passage.hit];
        let Some(owner) = &self.owner else { return false };
        let shown = passage.shown();
        let title = [above, &chunk.source.title, &chunk.source.filename];
        if owner.is_in(&shown) || title.iter().any(|text| owner.is_in(text)) {
            return false;
        }
        if owner.is_told_of_another(&shown) {
            return true;
        }
        let place = (passage.stretch, passage.section);
        if self.named.get(&place).is_some_and(|first| *first < passage.unit) {
            return false;
        }
        let source = &chunk.source;
        let key = (source.sub_tenant.as_str(), source.id.as_str());
        let chunks = self.chunks;
        let is_of_another =
            *self.subjects.entry(key).or_insert_with(|| is_of_another(owner, source, chunks));
        is_of_another && (passage.has_values() || is_labelled(&shown) || owner.is_role_in(&shown))
    }
}

impl Owner {
    fn is_in(&self, text: &str) -> bool {
        let said = spaced(text).replace('_', " ");
        let is_word = |word: &str| {
            self.words.iter().any(|own| {
                word.strip_prefix(own.as_str())
                    .is_some_and(|rest| matches!(rest, "" | "'s" | "\u{2019}s" | "'" | "\u{2019}"))
            })
        };
        said.split(' ').any(is_word)
    }

    fn is_role(&self, word: &str) -> bool {
        HybridQuery::analyse(word).terms().last() == Some(&self.role)
    }

    fn is_role_in(&self, text: &str) -> bool {
        text.unicode_words().any(|word| self.is_role(word))
    }

    /// Whether a text without the owner says the same of another name: "the head of Fell", "Fell's
    /// head", "founded Fell", "Fell was founded".
    fn is_told_of_another(&self, text: &str) -> bool {
        let words: Vec<&str> = text.unicode_words().collect();
        let lower = |at: usize| words.get(at).map(|word| word.to_lowercase()).unwrap_or_default();
        let is_one = |at: usize| self.is_another(&words, at);
        // "The board" is no name, but "the Fell" may be asked about as "the Tarn".
        let name_at = |at: usize| match ARTICLES.contains(&lower(at).as_str()) {
            true => self.has_article && is_one(at + 1),
            false => is_one(at),
        };
        (0..words.len()).filter(|at| self.is_role(words[*at])).any(|at| {
            if !self.is_deed {
                let is_of = OF.contains(&lower(at + 1).as_str());
                let is_owner = |at: usize| bare(words[at]).len() < words[at].len() && is_one(at);
                let owners = at.saturating_sub(ATTRIBUTE_WORDS_MAX)..at;
                return (is_of && name_at(at + 2)) || owners.into_iter().any(is_owner);
            }
            let before = at.checked_sub(1).map(lower).unwrap_or_default();
            let is_passive = is_be(&before);
            let is_pronoun = SUBJECTS.contains(&before.as_str());
            let is_done = at >= 2 && is_passive && is_one(at - 2);
            is_done || (!is_passive && !is_pronoun && name_at(at + 1))
        })
    }

    /// Whether another name stands at `at`, which is not short or long for the owner.
    fn is_another(&self, words: &[&str], at: usize) -> bool {
        let Some(word) = words.get(at).copied().filter(|word| is_name(word)) else { return false };
        let run = words[at..].iter().take_while(|word| word.starts_with(char::is_uppercase));
        let initials: String = run.filter_map(|word| word.chars().next()).collect();
        let word = bare(word).to_lowercase();
        let is_alias = |own: &String| {
            own.starts_with(&word)
                || word.starts_with(own.as_str())
                || initials.to_lowercase() == *own
        };
        !self.words.iter().any(is_alias)
    }
}

/// The owner that a question names, and what it asks of it.
fn owner(question: &str) -> Option<Owner> {
    let all = names(question);
    let (written, words) = (written(question, &all), question.unicode_words().collect::<Vec<_>>());
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let is_owner =
        |at: usize| is_name(words[at]) && written.contains(&bare(words[at]).to_lowercase());
    let is_last = |at: usize| lower.get(at + 1).is_none_or(|it| ENDS.contains(&it.as_str()));
    let starts = (1..words.len()).filter(|at| is_owner(*at));
    starts.filter(|at| !is_owner(at - 1) || bare(words[at - 1]) != words[at - 1]).find_map(|from| {
        let length = words[from..].iter().enumerate().take_while(|(at, _)| is_owner(from + at));
        // "Ada's Tarn": the possessive ends a name.
        let mut end = from + length.count();
        let owned = (from..end).find(|at| bare(words[*at]).len() < words[*at].len());
        end = owned.map_or(end, |at| at + 1);
        let has_article = ARTICLES.contains(&lower[from - 1].as_str());
        let before = if has_article { from.checked_sub(2)? } else { from - 1 };
        let (role, is_deed) = match () {
            () if owned.is_some() => (attribute(&lower[end..])?, false),
            () if OF.contains(&lower[before].as_str()) => {
                (lower.get(before.checked_sub(1)?)?, false)
            }
            () if is_asked_for_doer(&lower[..=before]) => (&lower[before], true),
            // "When was Tarn founded?"
            () if before == 1 && is_be(&lower[1]) && is_last(end) => (lower.get(end)?, true),
            () => return None,
        };
        let is_role = !is_common(role) && !is_interrogative(role) && role.len() > 1;
        let term = HybridQuery::analyse(role).terms().last().cloned().filter(|_| is_role)?;
        let words = words[from..end].iter().map(|word| bare(word).to_lowercase()).collect();
        Some(Owner { words, role: term, is_deed, has_article })
    })
}

/// The attribute in the words after an owner: the last of a few before a preposition or verb.
fn attribute(behind: &[String]) -> Option<&String> {
    let is_end = |word: &&String| ENDS.contains(&word.as_str()) || is_interrogative(word);
    behind.iter().take_while(|word| !is_end(word)).take(ATTRIBUTE_WORDS_MAX).last()
}

/// Whether words are "who" and a verb.
fn is_asked_for_doer(words: &[String]) -> bool {
    match words {
        [who, verb] => who == "who" && !is_be(verb),
        [who, have, _] => who == "who" && HAVE.contains(&have.as_str()),
        _ => false,
    }
}

/// Whether the document of a source has a proper name for its title which is not the owner's.
fn is_of_another(owner: &Owner, source: &SourceRecord, chunks: &[&RetrievedChunk]) -> bool {
    let title = if source.title.is_empty() { &source.filename } else { &source.title };
    let is_type = |end: &str| !end.contains(' ');
    let title = title.rsplit_once('.').filter(|(_, end)| is_type(end)).map_or(&**title, |it| it.0);
    // "Fell - The free encyclopedia"
    let title =
        TITLE_JOINTS.iter().find_map(|joint| title.split_once(joint)).map_or(title, |it| it.0);
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
    let words: Vec<&str> = words.collect();
    let is_own = |one: &RetrievedChunk| {
        one.source.id == source.id && one.source.sub_tenant == source.sub_tenant
    };
    let own = chunks.iter().filter(|one| is_own(one));
    let said: Vec<Vec<&str>> = own.map(|one| one.text.unicode_words().collect()).collect();
    // Names stand within sentences without an article, and always with a capital.
    let is_proper = |word: &&str| {
        let is_it = |said: &str| bare(said).to_lowercase() == word.to_lowercase();
        let is_small = |said: &&str| is_it(said) && said.starts_with(char::is_lowercase);
        let is_inside = |two: &[&str]| {
            two[0].starts_with(char::is_lowercase)
                && !ARTICLES.contains(&two[0])
                && is_it(two[1])
                && two[1].starts_with(char::is_uppercase)
        };
        !is_common(&word.to_lowercase())
            && word.chars().all(char::is_alphabetic)
            && !said.iter().flatten().any(is_small)
            && said.iter().any(|words| words.windows(2).any(is_inside))
    };
    let initials: String = words.iter().filter_map(|word| word.chars().next()).collect();
    !words.is_empty()
        && words.iter().all(is_proper)
        && !owner.is_in(title)
        && !owner.words.contains(&initials.to_lowercase())
}

/// Whether a text begins with a label: "Founders: Ada Holm".
fn is_labelled(text: &str) -> bool {
    let label = text.split_once(": ").map(|(label, _)| label.unicode_words().count());
    label.is_some_and(|words| (1..=LABEL_WORDS_MAX).contains(&words))
}

/// Whether a word is a name: capitalised, not a month or a pronoun.
fn is_name(word: &str) -> bool {
    let lower = bare(word).to_lowercase();
    word.starts_with(char::is_uppercase)
        && lower.chars().count() > 1
        && !is_no_name(&lower)
        && !is_common(&lower)
        && !is_interrogative(&lower)
        && !is_reference(word)
}

/// A word without a possessive ending.
fn bare(word: &str) -> &str {
    word.split(['\'', '\u{2019}']).next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_what_is_asked_of_it_are_seen() {
        let of = |question: &str| owner(question).map(|one| (one.words.join(" "), one.role));
        let told = |name: &str, role: &str| Some((name.to_owned(), role.to_owned()));
        assert_eq!(of("Who is the CEO of Tarn Ropes?"), told("tarn ropes", "ceo"));
        assert_eq!(of("What is Tarn's total revenue in 2023?"), told("tarn", "revenu"));
        assert_eq!(of("Who founded Tarn?"), told("tarn", "found"));
        assert_eq!(of("When was Tarn founded?"), told("tarn", "found"));
        for question in
            ["Who is Ada Holm?", "How heavy is the Tarn?", "Where is the key to Tarn House?"]
        {
            assert_eq!(of(question), None, "{question}");
        }
    }

    #[test]
    fn only_the_same_said_of_another_name_counts() {
        let is_of_another = |question: &str, text: &str| {
            owner(question).is_some_and(|owner| owner.is_told_of_another(text))
        };
        for (question, text) in [
            ("Who is the head of Tarn?", "Ada is the head of Fell."),
            ("Who is Tarn's head?", "Fell's first head was Ada."),
            ("Who founded Tarn?", "Ada and Bo founded Fell in 1975."),
            ("Who founded Tarn?", "Fell was founded by Ada."),
            ("When was Tarn founded?", "Fell was founded in 1975."),
        ] {
            assert!(is_of_another(question, text), "{question} {text}");
        }
        for (question, text) in [
            ("Who is the head of Tarn?", "Ada is the head of the company."),
            ("Who is the head of Tarn?", "Ada is the head of the Board."),
            ("Who is the head of Tarn?", "The head has an office in Fell."),
            ("Who is the head of TFC?", "Ada is the head of Tarn Ferry Company."),
            ("Who founded Tarn?", "It was founded in May by Ada Holm."),
            ("Who married Ada?", "In 1990 she married Bo."),
        ] {
            assert!(!is_of_another(question, text), "{question} {text}");
        }
    }
}
