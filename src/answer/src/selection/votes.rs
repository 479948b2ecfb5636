//! Votes: the list of what was voted on and how, for questions that ask for all of it.
//!
//! ```text
//! New berths. The plan of the harbour master was voted on.
//! - West pier: carried, 5 to 2.
//! - Fuel dock: rejected.
//! ```

use std::collections::BTreeSet;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::{contains_any, spaced};

/// Words of a question about votes.
const VOTES: &str = "\
    vote|votes|voted|voting|ballot|ballots|put to the vote|abstimmung|abstimmungen|abgestimmt|\
    scrutin|voté|votés|votación|votaciones|votó|votado";
/// Words for how a vote ended.
const RESULTS: &str = "\
    passed|rejected|carried|adopted|approved|accepted|refused|lost|defeated|withdrawn|postponed|\
    in favour|unanimous|unanimously|angenommen|abgelehnt|vertagt|einstimmig|adopté|adoptée|rejeté|\
    rejetée|unanimité|aprobado|aprobada|rechazado|rechazada|unanimidad";
/// Maximum number of units from a sentence to the list that it announces.
const BEFORE_MAX: usize = 2;

impl Choice<'_> {
    /// For a question how votes went: the whole list of votes that the first passage is an item of,
    /// or stands right before. `None` if the question names one of them.
    pub(crate) fn of_votes(&self, first: usize) -> Option<Vec<usize>> {
        if !contains_any(&spaced(self.question.last()), VOTES) || self.question.is_computed() {
            return None;
        }
        let one = self.candidate(first);
        let is_near = |at: &usize| {
            let list = self.candidate(*at);
            let is_before = one.shape == Shape::Unit(Kind::Sentence)
                && list.shares_section(one)
                && (1..=BEFORE_MAX).contains(&list.unit.saturating_sub(one.unit));
            list.is_beside(one) || is_before
        };
        let list = self.lists().filter(is_near).find(|at| self.are_votes(*at))?;
        let known = &terms(&VOTES.replace('|', " ")) | &light_terms(self.question);
        let matter: BTreeSet<String> = &wanted_terms(self.question) - &known;
        // What the paragraph before the list says, its items share.
        let head = match one.is_beside(self.candidate(list)) {
            true => BTreeSet::new(),
            false => self.matches.own[first].clone(),
        };
        let own = &(&matter - &head) - &self.matches.above[list];
        let names_one = |at: usize| {
            self.candidate(at).is_beside(self.candidate(list))
                && at != list
                && !self.matches.own[at].is_disjoint(&own)
        };
        let is_of_one = (0..self.reading.candidates.len()).any(names_one);
        (!is_of_one).then(|| vec![list])
    }

    /// Whether every item of a list tells how a vote ended.
    fn are_votes(&self, list: usize) -> bool {
        let ended = |text: &str| contains_any(&spaced(text), RESULTS);
        self.candidate(list).parts.iter().all(|part| ended(&part.shown))
    }
}
