//! Opposites: passages that use the words of a question to say the opposite of what it asks, "we
//! bought" for "we sold".

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::terms::terms;
use crate::text::words::{contains_any, is_entry, spaced};

/// Confidence lost by a passage that says the opposite. It must be this large because most such
/// passages share many words with the question.
pub(crate) const OPPOSITE_MALUS: f32 = 1.0;

/// Words with opposite meanings.
const OPPOSITES: &[(&str, &str)] = &[
    (
        "buy|buys|bought|buying|purchase|purchased|kaufen|kauft|gekauft|acheter|acheté|comprar",
        "sell|sells|sold|selling|verkaufen|verkauft|vendre|vendu|vender|vendido",
    ),
    // Who wants to borrow is told by those who lend; only what was done is of one side.
    ("lent|verliehen", "borrowed|ausgeliehen"),
    ("win|wins|won|winning|gewinnen|gewonnen", "lose|loses|lost|losing|verlieren|verloren"),
    ("arrive|arrives|arrived|arrival|ankunft", "depart|departs|departed|departure|abfahrt"),
    ("import|imports|imported", "export|exports|exported"),
    ("minimum|mindestens", "maximum|höchstens"),
    ("summer|sommer|été|verano", "winter|hiver|invierno"),
    ("indoor|indoors", "outdoor|outdoors"),
];

/// Words that distinguish kinds of things in lists, but have other uses in sentences: "every single
/// day".
const KINDS: &[(&str, &str)] = &[("single|einzel", "double|tandem|doppel|doble")];

/// Qualifiers of which a thing has only one of each list.
const QUALIFIERS: &[&str] = &[
    "red|blue|green|yellow|pink|black|white|grey|gray|orange|purple|brown|silver|golden",
    "left|right",
    "upper|lower",
    "northern|southern|eastern|western",
    "north|south|east|west",
    "front|rear|back",
    "small|medium|large",
];

/// Opposites of the words of a question, with those that only count in lists apart.
pub(crate) struct Opposites {
    pairs: Vec<(&'static str, &'static str)>,
    kinds: Vec<(&'static str, &'static str)>,
    qualified: Vec<Qualified>,
}

/// A qualifier and the noun right after it: "blue ink".
struct Qualified {
    /// The list of qualifiers.
    of: &'static str,
    qualifier: String,
    noun: BTreeSet<String>,
}

impl Opposites {
    /// Finds the words of a question that have opposites.
    pub(crate) fn of(question: &str) -> Self {
        let text = spaced(question);
        let asked = |&(one, other): &(&'static str, &'static str)| match (
            contains_any(&text, one),
            contains_any(&text, other),
        ) {
            (true, false) => Some((one, other)),
            (false, true) => Some((other, one)),
            _ => None,
        };
        let of = |list: &[(&'static str, &'static str)]| list.iter().filter_map(asked).collect();
        Self { pairs: of(OPPOSITES), kinds: of(KINDS), qualified: qualified(question) }
    }

    /// Whether a passage names the thing of the question only with another qualifier: "black ink"
    /// for "blue ink".
    pub(crate) fn are_qualifiers_in(&self, passage: &str) -> bool {
        if self.qualified.is_empty() {
            return false;
        }
        let text = spaced(passage);
        let told = qualified(passage);
        let is_other = |asked: &Qualified| {
            told.iter().any(|one| one.of == asked.of && one.noun == asked.noun)
                && !contains_any(&text, &asked.qualifier)
        };
        self.qualified.iter().any(is_other)
    }

    /// Whether a passage says an opposite, and not the word of the question.
    pub(crate) fn are_in(&self, passage: &str) -> bool {
        let text = spaced(passage);
        self.pairs
            .iter()
            .any(|(asked, opposite)| contains_any(&text, opposite) && !contains_any(&text, asked))
    }

    /// Whether the first value of a row says an opposite, and not the word of the question.
    pub(crate) fn are_in_key(&self, key: &str) -> bool {
        let text = spaced(key);
        let mut all = self.pairs.iter().chain(&self.kinds);
        all.any(|(asked, opposite)| contains_any(&text, opposite) && !contains_any(&text, asked))
    }
}

/// The qualifiers in a text, each with the noun after it.
fn qualified(text: &str) -> Vec<Qualified> {
    let words: Vec<String> = text.unicode_words().map(str::to_lowercase).collect();
    let one = |two: &[String]| {
        let of = QUALIFIERS.iter().copied().find(|list| is_entry(list, &two[0]))?;
        let noun = Some(terms(&two[1])).filter(|noun| !noun.is_empty())?;
        Some(Qualified { of, qualifier: two[0].clone(), noun })
    };
    words.windows(2).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a thing of another colour, side or size is another thing, and only the thing itself.
    #[test]
    fn another_qualifier_of_the_thing_is_seen() {
        let is_other = |question: &str, text: &str| Opposites::of(question).are_qualifiers_in(text);
        assert!(is_other("Where is the blue ink?", "Black ink; shelf 4"));
        assert!(is_other("Who has the key to the left lockers?", "Right locker: Ada"));
        for text in ["Black ink next to the blue one", "Ink; black lid", "Blue ink; black lid"] {
            assert!(!is_other("Where is the blue ink?", text), "{text}");
        }
        assert!(!is_other("Where is the ink?", "Black ink; shelf 4"));
    }

    #[test]
    fn the_opposite_is_seen() {
        let is_in = |question: &str, passage: &str| Opposites::of(question).are_in(passage);
        assert!(is_in("How many helmets were sold?", "We bought twelve helmets."));
        assert!(!is_in("How many helmets were sold?", "We sold what we bought, twelve helmets."));
        assert!(!is_in("What was bought and sold?", "We bought twelve helmets."));
        let is_key = |question: &str, key: &str| Opposites::of(question).are_in_key(key);
        assert!(is_key("How much is a double room?", "Single room, per night"));
        assert!(!is_key("How much is a double room?", "Double room, single use"));
        assert!(!is_in("How much is a double room?", "Every single room has a bath."));
    }
}
