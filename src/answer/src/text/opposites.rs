//! Opposites: passages that use the words of a question to say the opposite of what it asks, "we
//! bought" for "we sold".

use crate::text::words::{contains_any, spaced};

/// Confidence lost by a passage that says the opposite. It must be this large because most such
/// passages share many words with the question.
pub(crate) const OPPOSITE_MALUS: f32 = 1.0;

/// Words with opposite meanings.
const OPPOSITES: &[(&str, &str)] = &[
    (
        "buy|buys|bought|buying|purchase|purchased|kaufen|kauft|gekauft|acheter|acheté|comprar",
        "sell|sells|sold|selling|verkaufen|verkauft|vendre|vendu|vender|vendido",
    ),
    ("lend|lends|lent|lending|verleihen", "borrow|borrows|borrowed|borrowing|ausleihen"),
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

/// Opposites of the words of a question, with those that only count in lists apart.
pub(crate) struct Opposites {
    pairs: Vec<(&'static str, &'static str)>,
    kinds: Vec<(&'static str, &'static str)>,
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
        Self { pairs: of(OPPOSITES), kinds: of(KINDS) }
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

#[cfg(test)]
mod tests {
    use super::*;

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
