//! Payers: the sentence that says who bears the cost, for "who pays for the crane?".

use std::collections::BTreeSet;

use crate::passages::blocks::Kind;
use crate::passages::candidates::{Candidate, Shape};
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::values::has_money;
use crate::text::words::{contains_any, spaced};

/// Phrases that ask who bears a cost.
const ASKS: &str = "\
    who pays|who will pay|who has to pay|who must pay|who should pay|who is paying|who paid|\
    who bears the cost|who bears the costs|who covers the cost|who covers the costs";
/// Words of a text that says who bears a cost, and words for the cost itself; other forms of them
/// count too.
const BEARS: &str = "\
    pay|paid|payer|payable|payment|bear|bore|borne|charge|chargeable|expense|cover|fund|finance|\
    invoice|bill|reimburse|reimbursement|refund|account|budget|sponsor|settle|responsible|liable|\
    insurance|insurer|owe|subsidy|subsidise|grant|share|deduct|deduction|contribute|contribution";
const COSTS: &str = "cost|fee|price|free|rent|include|inclusive";
/// First words of a sentence that goes on with the matter of one before it.
const GOES_ON: &str = "the|this|it|its|they|these|both|all";
/// Maximum number of units from the passage on a thing to the sentence on its cost.
const UNITS_MAX: usize = 8;

impl Choice<'_> {
    /// For a question who pays, if the first passage says nothing of it: that passage together with
    /// the next sentence of its section that does; otherwise another passage on its matter that
    /// does; otherwise nothing. `None` for other questions.
    pub(crate) fn of_payer(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let asks = contains_any(&spaced(self.question.last()), ASKS);
        if !asks || !one.cells.is_empty() {
            return None;
        }
        let bears = terms(&BEARS.replace('|', " "));
        let told = &bears | &terms(&COSTS.replace('|', " "));
        let tells = |one: &Candidate| tells_payer(one, &told);
        if tells(one) {
            return None;
        }
        let goes_on = |at: &usize| {
            let other = self.candidate(*at);
            let said = spaced(&other.shown());
            let first_word = said.split_whitespace().next().unwrap_or_default();
            is_sentence(other)
                && other.shares_section(one)
                && (1..=UNITS_MAX).contains(&other.unit.saturating_sub(one.unit))
                && GOES_ON.split('|').any(|word| word == first_word)
                // "The entrance fee is 4 EUR" would be the price of something else.
                && !bears.is_disjoint(&terms(&other.shown()))
        };
        if let Some(next) = (0..self.reading.candidates.len()).find(goes_on) {
            let is_whole = self.candidate(next).repeats(one);
            return Some(if is_whole { vec![next] } else { vec![first, next] });
        }
        let matter = &self.matches.own[first] - &told;
        let other = self.best(|at| {
            let is_sure = self.scores[at].confidence(&self.evidence) >= 1.0;
            let is_of_it = !matter.is_empty() && matter.is_subset(&self.matches.own[at]);
            let is_one = is_sure && is_of_it && is_sentence(self.candidate(at));
            (is_one && tells(self.candidate(at))).then(|| self.relevance(at))
        });
        Some(other.into_iter().collect())
    }
}

fn is_sentence(one: &Candidate) -> bool {
    matches!(one.shape, Shape::Unit(Kind::Sentence | Kind::Item)) && !one.is_lead
}

/// Whether a passage, or the text above it, says who bears a cost: it holds one of the `told` terms
/// or an amount of money.
fn tells_payer(one: &Candidate, told: &BTreeSet<String>) -> bool {
    let shown = one.shown();
    let text = format!("{shown}\n{}\n{}", one.lead, one.heading);
    !told.is_disjoint(&terms(&text)) || has_money(&shown)
}
