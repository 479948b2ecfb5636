//! Irregular verbs of English, whose forms share no stem: "when are we paid" and "when is the pay".

use unicode_segmentation::UnicodeSegmentation;

use crate::text::words::{entries, is_entry};

/// The forms of verbs that are not also words for something else, such as "left" and "found".
const VERBS: &[&str] = &[
    "pay|pays|paid", "sell|sells|sold", "buy|buys|bought", "send|sends|sent", "spend|spends|spent",
    "bring|brings|brought", "teach|teaches|taught", "catch|catches|caught", "lose|loses|lost",
    "build|builds|built", "meet|meets|met", "drive|drives|drove|driven",
    "write|writes|wrote|written", "choose|chooses|chose|chosen", "break|breaks|broke|broken",
    "steal|steals|stole|stolen", "begin|begins|began|begun", "swim|swims|swam|swum",
    "eat|eats|ate|eaten", "grow|grows|grew|grown", "wear|wears|wore|worn",
    "withdraw|withdraws|withdrew|withdrawn", "forbid|forbids|forbade|forbidden",
    "freeze|freezes|froze|frozen", "feed|feeds|fed", "sleep|sleeps|slept", "hang|hangs|hung",
];

/// For each past form of a verb in a text: the word, and the verb itself, which is often a noun
/// too. Not the reverse, because "was worn" tells less of what to wear.
pub(super) fn forms(text: &str) -> impl Iterator<Item = (&str, &'static str)> {
    let verb = |word: &str| VERBS.iter().find(|verb| is_entry(verb, word));
    text.unicode_words().filter_map(move |word| {
        let lower = word.to_lowercase();
        let base = verb(word).and_then(|verb| entries(verb).next());
        base.filter(|base| *base != lower).map(|base| (word, base))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the verb of an irregular form is told.
    #[test]
    fn the_verb_of_a_form_is_told() {
        let told: Vec<(&str, &str)> = forms("When are we Paid?").collect();
        assert_eq!(told, [("Paid", "pay")]);
        assert_eq!(forms("Who left when we pay?").count(), 0);
        assert_eq!(forms("Who mends a spoke of the cheese cart?").count(), 0);
    }
}
