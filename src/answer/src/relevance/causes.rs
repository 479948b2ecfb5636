//! Words that state a cause.

use crate::text::words::{contains, entries, is_entry, spaced};
use crate::translation::{Language, Lexicon};

const CAUSE_WORDS: &str = "\
    because|due to|since|reason|caused|cause|causes|therefore|as a result|owing to|so that|\
    thanks to|weil|grund|ursache|wegen|deshalb|denn|aufgrund|parce que|en raison|à cause|\
    motif|raison|grâce à|porque|debido|causa|motivo|a causa|ya que";

/// Conjunctions after a comma, in their languages; elsewhere, a car is a vehicle.
const CONJUNCTIONS: [(Language, &str); 2] = [(Language::German, "da"), (Language::French, "car")];

/// Phrases that refer to a cause stated elsewhere.
const CAUSES_ELSEWHERE: &str = "\
    same cause|same reason|same root cause|gleiche ursache|selbe ursache|gleicher grund|\
    même cause|même raison|misma causa";

/// Labels before a sentence that states a cause.
pub(crate) const CAUSE_LABELS: &str = "\
    cause|causes|root cause|reason|reasons|why|why it happened|why it could happen|\
    how it happened|how it could happen|how could it happen|why did it happen|what caused it|\
    ursache|ursachen|grund|wie es dazu kam|motif|raison|causa|motivo";

/// Whether the text contains a word that states a cause.
pub(crate) fn tells_cause(text: &str) -> bool {
    let lower = text.to_lowercase();
    let is_joined = |(language, word): &(Language, &str)| {
        lower.contains(&format!(", {word} ")) && Lexicon::get().language_of(text) == Some(*language)
    };
    if CONJUNCTIONS.iter().any(is_joined) {
        return true;
    }
    // "The same cause as K-12" tells none.
    let text = spaced(text);
    let text = entries(CAUSES_ELSEWHERE).fold(text, |text, words| text.replace(words, ""));
    CAUSE_WORDS.split('|').any(|words| contains(&text, words))
}

/// Whether the text begins with a label that announces a cause: "Cause. A cable", "Reason: it
/// rained".
pub(crate) fn is_labelled_cause(text: &str) -> bool {
    text.split_once(['.', ':']).is_some_and(|(label, rest)| {
        let label = label.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        rest.contains(char::is_alphabetic) && is_entry(CAUSE_LABELS, &label)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: conjunctions of French and German state causes in these languages only.
    #[test]
    fn a_car_is_no_cause() {
        assert!(tells_cause("Le lait est perdu, car la cuve était ouverte."));
        assert!(tells_cause("Die Milch ist verloren, da der Kessel offen war."));
        assert!(!tells_cause("Visitors of the dairy come by bus, car or bike."));
    }
}
