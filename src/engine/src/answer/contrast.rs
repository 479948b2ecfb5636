//! Contrasts: passages that say in the words of the question something of another thing, "the trees
//! behind the shed" of "the hedges behind the shed", or of the opposite, "we sold" of "we bought".
//! That words before a noun differ tells nothing: "house meters" are water meters.

use unicode_segmentation::UnicodeSegmentation;

use crate::answer::terms::is_common;
use crate::answer::words::{contains, entries, is_entry, is_interrogative, spaced};
use lodestone_text::HybridQuery;

/// Confidence that a passage loses that is of another thing or the opposite: most have so many
/// words of the question that less would not decline them.
pub(super) const CONTRAST_MALUS: f32 = 1.0;

/// Words that mean opposites.
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
/// Words that join a thing to what stands behind it, and the words there that both have.
const JOINTS: &str = "\
    behind|beside|near|above|below|opposite|in|at|on|of|for|from|with|by|under|over|between|hinter|\
    neben|vor|über|unter|von|vom|im|am|für|derrière|devant|de|du|dans|sur|pour|del|en|para";
const CONTEXT_WORDS_MAX: usize = 4;

/// Things of which a question speaks, with the words behind each.
pub(super) struct Contrasts {
    things: Vec<Thing>,
    /// The opposites of words of the question.
    opposites: Vec<&'static str>,
    asked: Vec<String>,
}

struct Thing {
    term: String,
    /// The terms of the words behind it, the last one of which tells of the matter.
    context: Vec<String>,
}

impl Contrasts {
    /// Those of the last question.
    pub(super) fn of(question: &str) -> Self {
        let text = spaced(question);
        let words: Vec<&str> = question.unicode_words().collect();
        let thing = |at: usize| {
            let behind = &words[at + 1..];
            behind.first().filter(|word| is_entry(JOINTS, word))?;
            let count = 1 + behind.iter().take(CONTEXT_WORDS_MAX).position(|word| tells(word))?;
            let context = behind[..count].iter().map(|word| term(word)).collect();
            tells(words[at]).then(|| Thing { term: term(words[at]), context })
        };
        let has = |list: &str| entries(list).any(|word| contains(&text, word));
        let pairs = OPPOSITES.iter().filter_map(|(one, other)| match (has(one), has(other)) {
            (true, false) => Some(*other),
            (false, true) => Some(*one),
            _ => None,
        });
        Self {
            things: (0..words.len()).filter_map(thing).collect(),
            opposites: pairs.collect(),
            asked: words.iter().map(|word| term(word)).collect(),
        }
    }

    /// Whether a passage is of another thing or of the opposite. `is_met` says whether a term of
    /// the question stands in it or around it, or another word for it.
    pub(super) fn are_in(&self, passage: &str, is_met: &dyn Fn(&String) -> bool) -> bool {
        let mut lost = self
            .things
            .iter()
            .filter(|thing| !is_met(&thing.term) && thing.context.last().is_some_and(is_met));
        let mut is_of_another = || {
            let words: Vec<&str> = passage.unicode_words().collect();
            let terms: Vec<String> = words.iter().map(|word| term(word)).collect();
            lost.any(|thing| {
                (1..terms.len()).any(|at| {
                    terms[at..].starts_with(&thing.context)
                        && tells(words[at - 1])
                        && !self.asked.contains(&terms[at - 1])
                })
            })
        };
        let is_opposite = || {
            let text = spaced(passage);
            let has = |list: &str| entries(list).any(|word| contains(&text, word));
            let meant = |list: &&str| {
                let pair = OPPOSITES.iter().find(|(one, other)| one == list || other == list);
                pair.is_some_and(|(one, other)| !has(if one == list { other } else { one }))
            };
            self.opposites.iter().any(|list| has(list) && meant(list))
        };
        is_of_another() || is_opposite()
    }
}

/// Whether a word tells of the matter: no name and no number, and none of those that are in every
/// text.
fn tells(word: &str) -> bool {
    word.starts_with(char::is_lowercase)
        && word.chars().all(char::is_alphabetic)
        && word.chars().count() > 2
        && !is_common(word)
        && !is_entry(JOINTS, word)
        && !is_interrogative(word)
}

fn term(word: &str) -> String {
    let analysed = HybridQuery::analyse(word);
    analysed.terms().last().cloned().unwrap_or_else(|| word.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::terms::terms;

    #[test]
    fn another_thing_in_the_same_words_is_seen() {
        let is_in = |question: &str, passage: &str| {
            let own = terms(passage);
            Contrasts::of(question).are_in(passage, &|term| own.contains(term))
        };
        assert!(!is_in("How often are house meters read?", "Water meters are read in May."));
        assert!(is_in(
            "When are the hedges behind the shed cut?",
            "The trees behind the shed are cut in May."
        ));
        assert!(is_in("How many helmets were sold?", "We bought twelve helmets."));
        assert!(!is_in("How many helmets were sold?", "We sold what we bought, twelve helmets."));
    }
}
