//! Whole lists found by the headings above them: the steps below "Steps".

use std::collections::BTreeSet;

use crate::passages::blocks::Form;
use crate::passages::candidates::Shape;
use crate::question::wish::{Question, Wanted};
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::text::words::{is_entry, spaced};

/// Headings of steps that do not say what the steps achieve; a heading above them does.
const STEP_HEADINGS: &str = "\
    steps|the steps|step by step|procedure|the procedure|process|instructions|directions|method|\
    what to do|how to|how to do it|how it is done|how to proceed|sequence|workflow|\
    schritte|die schritte|schritt für schritt|ablauf|vorgehen|vorgehensweise|verfahren|anleitung|\
    durchführung|so geht's|was zu tun ist|was ist zu tun|zubereitung|\
    étapes|les étapes|procédure|marche à suivre|mode opératoire|méthode|déroulement|que faire|\
    pas à pas|comment faire|\
    pasos|los pasos|procedimiento|instrucciones|método|qué hacer|cómo hacerlo|paso a paso";

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
