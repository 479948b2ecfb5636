//! Knowledge of individual words: the word lists next to this file, read once.
//!
//! Words are in the form of keys: lower case, without diacritics.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::row::EntityKind;

/// Maximum bytes of a listed word.
pub(super) const LISTED_BYTES_MAX: usize = 24;

const MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];

/// The lists that a word is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Senses {
    bits: u8,
    /// Kind of thing that the word denotes: "river", "novelist".
    pub kind: Option<EntityKind>,
}

impl Senses {
    const GRAMMAR: u8 = 1;
    const ORDINARY: u8 = 2;
    const DEMONYM: u8 = 4;
    const HONORIFIC: u8 = 8;
    const GIVEN: u8 = 16;
    const VERB: u8 = 32;
    const MONTH: u8 = 64;
    const FOREIGN: u8 = 128;

    /// Whether the word is an article, pronoun, preposition, conjunction, auxiliary or one of the
    /// most common adverbs.
    pub(super) fn is_grammar(self) -> bool {
        self.bits & (Self::GRAMMAR | Self::FOREIGN) != 0
    }

    /// Whether the word is a function word in other languages only; in an English text it is part
    /// of a name.
    pub(super) fn is_foreign(self) -> bool {
        self.bits & (Self::GRAMMAR | Self::FOREIGN) == Self::FOREIGN
    }

    /// Whether the word is a common noun, adjective or verb, or a function word.
    pub(super) fn is_ordinary(self) -> bool {
        self.bits & (Self::GRAMMAR | Self::FOREIGN | Self::ORDINARY) != 0
    }

    /// Whether the word is like "American" or "Buddhist".
    pub(super) fn is_demonym(self) -> bool {
        self.bits & Self::DEMONYM != 0
    }

    /// Whether the word precedes the name of a person.
    pub(super) fn is_honorific(self) -> bool {
        self.bits & Self::HONORIFIC != 0
    }

    /// Whether the word is a given name.
    pub(super) fn is_given(self) -> bool {
        self.bits & Self::GIVEN != 0
    }

    /// Whether the word is a verb form that can connect a subject and an object.
    pub(super) fn is_verb(self) -> bool {
        self.bits & Self::VERB != 0
    }

    /// Whether the word is the name of a month.
    pub(super) fn is_month(self) -> bool {
        self.bits & Self::MONTH != 0
    }
}

static LISTS: LazyLock<HashMap<&'static str, Senses>> = LazyLock::new(|| {
    let mut words: HashMap<&'static str, Senses> = HashMap::new();
    let lists = [
        (include_str!("words/grammar.txt"), Senses::GRAMMAR),
        (include_str!("words/foreign.txt"), Senses::FOREIGN),
        (include_str!("words/ordinary.txt"), Senses::ORDINARY),
        (include_str!("words/demonyms.txt"), Senses::DEMONYM),
        (include_str!("words/honorifics.txt"), Senses::HONORIFIC),
        (include_str!("words/given.txt"), Senses::GIVEN),
        (include_str!("words/verbs.txt"), Senses::VERB),
    ];
    for (list, bit) in lists {
        for word in list.split_whitespace() {
            words.entry(word).or_default().bits |= bit;
        }
    }
    for month in MONTHS {
        words.entry(month).or_default().bits |= Senses::MONTH;
    }
    for line in include_str!("words/kinds.txt").lines() {
        let (kind, nouns) = line.split_once(": ").expect("a kind before its nouns");
        let kind = EntityKind::of_name(kind);
        for noun in nouns.split_whitespace() {
            let senses = words.entry(noun).or_default();
            senses.kind = senses.kind.or(kind);
        }
    }
    words
});

/// Size of a well-known place, determined by its line in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PlaceSize {
    City,
    /// A part of a country.
    State,
    Country,
    /// A continent, a sea, an empire.
    Region,
}

static PLACES: LazyLock<HashMap<&'static str, PlaceSize>> = LazyLock::new(|| {
    let sizes = [PlaceSize::Country, PlaceSize::State, PlaceSize::City, PlaceSize::Region];
    let lines = include_str!("words/places.txt").lines().zip(sizes);
    let places = lines.flat_map(|(line, size)| line.split(", ").map(move |place| (place, size)));
    // A name shared by several places means the smallest, the one that is usually qualified.
    let mut found = HashMap::new();
    for (place, size) in places {
        let kept = found.entry(place).or_insert(size);
        *kept = size.min(*kept);
    }
    found
});

/// Looks up the senses of a word in key form.
pub(super) fn senses(word: &str) -> Senses {
    LISTS.get(word).copied().unwrap_or_default()
}

/// Whether the key is that of a well-known place.
pub(super) fn is_place(key: &str) -> bool {
    PLACES.contains_key(key)
}

/// The size of the well-known place with this key.
pub(super) fn place_size(key: &str) -> Option<PlaceSize> {
    PLACES.get(key).copied()
}

pub(super) fn is_article(word: &str) -> bool {
    matches!(word, "the" | "a" | "an")
}

pub(super) fn is_grammar(word: &str) -> bool {
    senses(word).is_grammar()
}

/// Whether the word by itself names nothing in particular.
pub(super) fn is_ordinary(word: &str) -> bool {
    let senses = senses(word);
    senses.is_ordinary() || senses.is_demonym() || senses.is_honorific() || senses.kind.is_some()
}

/// Whether the word is a month or its first three or four letters.
pub(super) fn is_month(word: &str) -> bool {
    let is_short = (3..=4).contains(&word.len());
    MONTHS.iter().any(|month| *month == word || is_short && month.starts_with(word))
}
