//! The words of a sentence, and the phrases to look for among them.

use std::sync::LazyLock;

/// Maximum number of words that `*` in a phrase matches.
const WILD_WORDS_MAX: usize = 3;

/// All phrases, parsed once.
pub(super) static PHRASES: LazyLock<Phrases> =
    LazyLock::new(|| Phrases::read(include_str!("phrases.txt")));

/// The phrases of `phrases.txt`, by section.
#[derive(Debug, Default)]
pub(super) struct Phrases {
    pub(super) openers: PhraseSet,
    pub(super) reminders: PhraseSet,
    pub(super) requests: PhraseSet,
    pub(super) small_talk: PhraseSet,
    pub(super) statements: PhraseSet,
}

impl Phrases {
    fn read(text: &'static str) -> Self {
        let mut phrases = Self::default();
        let mut section = "";
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix('[') {
                Some(name) => section = name.trim_end_matches(']'),
                None => phrases.section(section).add(line),
            }
        }
        phrases
    }

    fn section(&mut self, name: &str) -> &mut PhraseSet {
        match name {
            "openers" => &mut self.openers,
            "reminders" => &mut self.reminders,
            "requests" => &mut self.requests,
            "small talk" => &mut self.small_talk,
            "statements" => &mut self.statements,
            other => unreachable!("phrases.txt has a section {other}"),
        }
    }
}

/// A word of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Byte offset of the word in its sentence.
    pub(super) start: usize,
    /// The word in lower case, without surrounding punctuation.
    pub(super) key: String,
}

impl Word {
    /// Splits a sentence into words. Parts that are only punctuation are skipped.
    pub(super) fn all(sentence: &str) -> Vec<Self> {
        let mut words = Vec::new();
        for part in sentence.split_whitespace() {
            let key = part.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            if !key.is_empty() {
                let start = part.as_ptr() as usize - sentence.as_ptr() as usize;
                let key = key.replace('\u{2019}', "'");
                words.push(Self { start, key });
            }
        }
        words
    }
}

/// The phrases of one section, each as its words.
#[derive(Debug, Default)]
pub(super) struct PhraseSet(Vec<Vec<&'static str>>);

impl PhraseSet {
    fn add(&mut self, phrase: &'static str) {
        self.0.push(phrase.split(' ').collect());
    }

    /// Number of words matched by the longest phrase at the beginning of `words`.
    pub(super) fn length_at(&self, words: &[Word]) -> Option<usize> {
        self.0.iter().filter_map(|phrase| length(phrase, words)).max()
    }

    /// Whether any phrase occurs anywhere in `words`.
    pub(super) fn is_in(&self, words: &[Word]) -> bool {
        let is_at = |at: usize| self.0.iter().any(|phrase| length(phrase, &words[at..]).is_some());
        (0..words.len()).any(is_at)
    }
}

/// Number of words that a phrase matches at the beginning of `words`; the fewest if `*` allows
/// several.
fn length(phrase: &[&str], words: &[Word]) -> Option<usize> {
    let Some((first, rest)) = phrase.split_first() else { return Some(0) };
    if *first == "*" {
        let taken = 1..=WILD_WORDS_MAX.min(words.len());
        return taken.into_iter().find_map(|n| Some(n + length(rest, &words[n..])?));
    }
    let word = words.first().filter(|word| word.key == *first)?;
    debug_assert!(!word.key.is_empty(), "words hold letters or digits");
    Some(1 + length(rest, &words[1..])?)
}
