//! Outcomes: who won something, or the mean of something, which a text must tell in words for it.
//!
//! A text that merely announces a race names no winner, and a text with some dates of examinations
//! tells no average mark.

use std::collections::BTreeSet;

use crate::question::phrases::MEANS;
use crate::question::wish::{Question, Total};
use crate::text::terms::terms;
use crate::text::words::{contains, contains_any, entries, is_entry, spaced};

/// Words before "won" in a question for a winner.
const WHO: &str = "who|which|what|wer|welche|welcher|welches|qui|quelle|quel|quién|qué|cuál";
const WON: &str = "won|wins|gewann|gewonnen|gagné|remporté|ganó|ganado";
/// Words of a text that tells who won.
const TELLS_WINNER: &str = "\
    won|win|wins|winner|winners|winning|victory|victories|victor|victorious|champion|champions|\
    title|first|1st|place|places|rank|prize|prizes|award|awards|awarded|medal|gold|cup|trophy|\
    beat|beats|beaten|defeated|came top|goes to|went to|gewann|gewonnen|gewinnt|sieger|siegerin|\
    sieg|erster|erste|platz|preis|pokal|gagné|gagne|gagnant|gagnante|remporté|vainqueur|premier|\
    première|prix|coupe|ganó|ganador|ganadora|ganado|vencedor|primero|premio|copa";

/// The outcome that a question asks for.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    asks_winner: bool,
    /// The terms of the thing whose mean it asks for: "the average mark".
    mean_of: BTreeSet<String>,
}

impl Outcomes {
    /// Finds the outcome that a question asks for.
    pub(crate) fn of(question: &Question) -> Self {
        let asked = spaced(question.last());
        let first = asked.split_whitespace().next().unwrap_or_default();
        let asks_mean = question.total == Some(Total::Mean);
        let behind = entries(MEANS).filter(|_| asks_mean);
        let behind = behind.filter_map(|mean| Some(asked.split_once(&format!(" {mean} "))?.1));
        let thing = behind.filter_map(|behind| behind.split_whitespace().next()).next();
        Self {
            asks_winner: is_entry(WHO, first) && contains_any(&asked, WON),
            mean_of: thing.map(terms).unwrap_or_default(),
        }
    }

    /// Whether a text, with the text above it, cannot tell that outcome: it has no word for a
    /// winner, or neither a word for a mean nor the thing whose mean is asked for.
    pub(crate) fn are_absent(&self, shown: &str, above: &str) -> bool {
        let text = spaced(&format!("{shown}\n{above}"));
        let lacks_mean = || {
            self.mean_of.is_disjoint(&terms(&text))
                && !entries(MEANS).any(|mean| contains(&text, mean))
        };
        (self.asks_winner && !contains_any(&text, TELLS_WINNER))
            || (!self.mean_of.is_empty() && lacks_mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an outcome is told by words for it.
    #[test]
    fn outcomes_are_told_in_words() {
        let lacks = |question: &str, text: &str| {
            Outcomes::of(&Question::new(question)).are_absent(text, "Regatta")
        };
        let won = "Who won the raft race in 2024?";
        assert!(lacks(won, "The raft race is on 3 May."));
        assert!(!lacks(won, "The cup of the raft race went to Ada."));
        assert!(!lacks("Who rows the raft?", "The raft race is on 3 May."));
        let mean = "What was the average speed on the upper lake?";
        assert!(lacks(mean, "The upper lake is open from 3 to 9 May."));
        assert!(!lacks(mean, "On average 6 knots."));
        assert!(!lacks(mean, "Speed: 6 knots."));
        assert!(!lacks("What was the speed?", "From 3 to 9 May."));
    }
}
