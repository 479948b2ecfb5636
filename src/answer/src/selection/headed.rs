//! Whole lists found by the headings above them: the steps below "Steps", and the list below a
//! heading that the question repeats.

use std::collections::BTreeSet;

use crate::passages::blocks::Form;
use crate::passages::candidates::Shape;
use crate::question::wish::{Question, Wanted};
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::text::terms::terms;
use crate::text::words::{Asked, contains, entries, is_entry, spaced};

/// Headings of steps that do not say what the steps achieve; a heading above them does.
const STEP_HEADINGS: &str = "\
    steps|the steps|step by step|procedure|the procedure|process|instructions|directions|method|\
    what to do|how to|how to do it|how it is done|how to proceed|sequence|workflow|\
    schritte|die schritte|schritt für schritt|ablauf|vorgehen|vorgehensweise|verfahren|anleitung|\
    durchführung|so geht's|was zu tun ist|was ist zu tun|zubereitung|\
    étapes|les étapes|procédure|marche à suivre|mode opératoire|méthode|déroulement|que faire|\
    pas à pas|comment faire|\
    pasos|los pasos|procedimiento|instrucciones|método|qué hacer|cómo hacerlo|paso a paso";
/// Words that begin a question for the list below a heading.
const ASKING: &str = "\
    what|what's|which|list|show|was|welche|welches|que|quel|quelle|quels|quelles|qu'est|qué|cuál|\
    cuáles";
/// Minimum number of words in a heading that a question may repeat.
const HEADING_WORDS_MIN: usize = 2;

impl Choice<'_> {
    /// For a question for steps: the list below a heading such as "Steps" in the part of the text
    /// that the first passage is in, if the headings and the title above it say what the question
    /// asks for. A numbered list goes before others; a passage in one needs no other.
    pub(crate) fn steps_below(&self, first: usize) -> Option<usize> {
        if self.question.wanted != Wanted::Steps {
            return None;
        }
        let one = self.candidate(first);
        let blocks = &self.reading.blocks[one.stretch];
        let is_numbered = |at: usize| blocks.groups[self.candidate(at).group].is_numbered;
        let is_in_steps = blocks.groups[one.group].form == Form::List && is_numbered(first);
        let path = &blocks.sections[one.section];
        let matter = matter(self.question);
        let is_one = |at: &usize| {
            let list = self.candidate(*at);
            let above = blocks.sections[list.section].split_last();
            above.is_some_and(|(heading, above)| is_of_steps(heading) && path.starts_with(above))
                && matter.is_subset(&self.matches.above[*at])
        };
        let lists = self.lists().filter(|at| self.candidate(*at).stretch == one.stretch);
        let found = lists.filter(is_one).min_by_key(|at| (!is_numbered(*at), *at));
        found.filter(|_| !is_in_steps && !matter.is_empty())
    }

    /// The list right below a heading that the question repeats, if it asks for nothing beyond the
    /// headings and the title above it: "What is in the box of the BX-2?". `None` if several texts
    /// have such a list.
    pub(crate) fn named_list(&self) -> Option<usize> {
        let question = self.question;
        let asked = spaced(question.last());
        let begins = entries(ASKING).any(|word| asked.starts_with(&format!(" {word} ")));
        let is_computed = question.extreme.is_some()
            || question.total.is_some()
            || question.counts
            || question.compares
            || !question.conditions.is_empty();
        let is_other = !matches!(question.wanted, Wanted::Fact | Wanted::List)
            || question.asked != Asked::Other
            || question.is_negated
            || question.is_of_past
            || question.asks_where;
        if !begins || is_computed || is_other {
            return None;
        }
        let matter = matter(question);
        let is_one = |at: &usize| {
            let list = self.candidate(*at);
            let heading = spaced(&list.heading);
            list.opens_section
                && heading.split_whitespace().count() >= HEADING_WORDS_MIN
                && contains(&asked, heading.trim())
                && !terms(&list.heading).is_disjoint(&matter)
                && matter.is_subset(&self.matches.above[*at])
        };
        let mut found = self.lists().filter(is_one);
        let one = found.next()?;
        found.next().is_none().then_some(one)
    }

    /// The lists that may be quoted whole.
    fn lists(&self) -> impl Iterator<Item = usize> {
        let all = self.reading.candidates.iter().enumerate();
        all.filter(|(_, one)| one.shape == Shape::Whole(Form::List)).map(|(at, _)| at)
    }
}

/// The terms of a question that say what it is about.
fn matter(question: &Question) -> BTreeSet<String> {
    &wanted_terms(question) - &light_terms(question)
}

/// Whether a heading announces steps without saying what they achieve.
fn is_of_steps(heading: &str) -> bool {
    let words = spaced(heading);
    let words = words.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    is_entry(STEP_HEADINGS, words)
}
