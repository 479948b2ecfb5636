//! Prices of things: the thing whose price a question asks for must occur where a row answers it.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::currencies::is_currency;
use crate::text::words::is_entry;

/// Words for a price before "of" or "for" and the thing, and verbs after the thing.
const PRICES: &str = "price|prices|cost|costs|fee|fees|charge|charges|rate|rates";
const OF: &str = "of|for";
const COST: &str = "cost|costs";
/// Words that open a question whose verb follows the thing.
const DOES: &str = "does|do|did|will|would";
const ARTICLES: &str = "a|an|the|one|our|your|my|some";
/// Words that end the name of the thing.
const BEHIND: &str = "\
    of|for|in|at|on|per|with|without|from|during|to|under|by|when|if|and|or|than|after|before|as|\
    is|are|was|were|we|i|you|they|that|which|who|now|today|here|there|each|every";
/// Maximum number of words between the opening and the verb.
const THING_WORDS_MAX: usize = 10;

/// The noun of the thing whose price a question asks for: "tent" for "what does a large tent for
/// the yard cost".
pub(super) fn priced(question: &str) -> Option<String> {
    let words: Vec<String> = question.unicode_words().map(str::to_lowercase).collect();
    let begin = begin_of(&words)?;
    let thing = words[begin..].iter().skip_while(|word| is_entry(ARTICLES, word));
    let thing = thing.take_while(|word| !is_entry(BEHIND, word) && !is_entry(COST, word));
    // "A price of 40 EUR" names none.
    let is_thing = |word: &&String| word.chars().all(char::is_alphabetic) && !is_currency(word);
    thing.last().filter(is_thing).cloned()
}

/// The position of the first word of the thing.
fn begin_of(words: &[String]) -> Option<usize> {
    let is_of = |at: &usize| is_entry(PRICES, &words[*at]) && is_entry(OF, &words[*at + 1]);
    let behind = (0..words.len().saturating_sub(1)).find(is_of).map(|at| at + 2);
    let between = || {
        let does = words.iter().position(|word| is_entry(DOES, word))?;
        let mut near = words[does + 1..].iter().take(THING_WORDS_MAX);
        near.any(|word| is_entry(COST, word)).then_some(does + 1)
    };
    behind.or_else(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the noun of the thing is found before its own attributes.
    #[test]
    fn the_thing_with_the_price_is_told() {
        for (question, thing) in [
            ("price of a canopy in the shop", Some("canopy")),
            ("What does a large tent for the yard cost?", Some("tent")),
            ("What did the tents cost in May?", Some("tents")),
            ("what does it cost", Some("it")),
            ("Which tent is the cheapest?", None),
            ("price of the M-12", None),
            ("Which cake has a price of 40 EUR?", None),
        ] {
            assert_eq!(priced(question).as_deref(), thing, "{question}");
        }
    }
}
