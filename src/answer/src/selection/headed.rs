//! Whole lists found by the headings above them: the steps below "Steps", the list below a heading
//! that the question repeats, and all below the heading of a version.

use crate::passages::blocks::{Form, Kind};
use crate::passages::candidates::Shape;
use crate::passages::candidates::context::{is_edition, names_edition};
use crate::question::wish::Wanted;
use crate::relevance::weights::matter;
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::values::is_calendar_word;
use crate::text::words::{
    Asked, begins_with, contains, contains_any, is_entry, is_interrogative, spaced, tells_negation,
};

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
/// Words that begin questions that several things may answer.
const OPENINGS: &str = "\
    what|which|who|was|welche|welches|wer|que|quel|quelle|quels|quelles|qui|qué|cuál|cuáles|quién|\
    quiénes";
/// Minimum share of a question in the heading of a list that answers as a whole.
const HEADED_SHARE_MIN: f32 = 0.5;
/// Words that ask what a version changed, and words beside them.
const CHANGED: &str = "\
    changed|changes|change|new|geändert|änderungen|neu|neues|changé|changements|nouveau|nouveautés|\
    cambió|cambiado|cambios|nuevo|novedades";
const CHANGES: &str = "\
    changed|changes|change|new|what's|is|are|was|were|did|has|have|been|list|version|release|\
    update|geändert|änderungen|neu|neues|hat|wurde|changé|changements|nouveau|nouveautés|a|\
    cambió|cambiado|cambios|nuevo|novedades|ha|versión|quoi";
/// Maximum number of passages below a version that are told together.
const CHANGES_MAX: usize = 20;
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
            let told = &self.matches.above[*at] | &self.matches.own[*at];
            above.is_some_and(|(heading, above)| is_of_steps(heading) && path.starts_with(above))
                && matter.is_subset(&told)
                && !matter.is_disjoint(&self.matches.above[*at])
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
        let begins = begins_with(&asked, ASKING);
        let is_other = !matches!(question.wanted, Wanted::Fact | Wanted::List)
            || question.asked != Asked::Other
            || question.is_negated
            || question.is_of_past
            || question.asks_where;
        if !begins || question.is_computed() || is_other {
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

    /// The list right below a heading that asks what the question asks, with the same first word:
    /// "Who should not ride?" above a list, for "who should not ride the raft". `None` if several
    /// texts have such a list.
    pub(crate) fn list_of_asked(&self) -> Option<usize> {
        let question = self.question;
        let is_fit = matches!(question.wanted, Wanted::Fact | Wanted::List)
            && matches!(question.asked, Asked::Other | Asked::Person)
            && !question.is_computed();
        let matter = matter(question);
        if !is_fit || matter.is_empty() {
            return None;
        }
        let opening = |text: &str| {
            let words = spaced(text);
            words
                .split_whitespace()
                .next()
                .filter(|word| is_entry(OPENINGS, word))
                .map(str::to_owned)
        };
        let asked = opening(question.last())?;
        let is_one = |at: &usize| {
            let list = self.candidate(*at);
            list.opens_section
                && opening(&list.heading).as_ref() == Some(&asked)
                && tells_negation(&list.heading) == question.is_negated
                && !terms(&list.heading).is_disjoint(&matter)
                && matter.is_subset(&self.matches.above[*at])
        };
        let mut found = self.lists().filter(is_one);
        let one = found.next()?;
        found.next().is_none().then_some(one)
    }

    /// The whole list that the first passage is an item of, if the heading makes every item an
    /// answer: it says most of what the question asks for, and the items say nothing of it.
    pub(crate) fn list_of_items(&self, first: usize) -> Option<usize> {
        let (question, one) = (self.question, self.candidate(first));
        let matter = matter(question);
        let asked = spaced(question.last());
        let begins = begins_with(&asked, OPENINGS);
        let is_fit = begins
            && one.shape == Shape::Unit(Kind::Item)
            && question.wanted == Wanted::Fact
            && question.asked == Asked::Other
            && !question.is_computed()
            && !question.asks_where;
        if !is_fit || matter.is_empty() {
            return None;
        }
        let list = self.lists().find(|at| self.candidate(*at).is_beside(one))?;
        let is_below = self.candidate(list).opens_section || !self.candidate(list).lead.is_empty();
        let held = matter.intersection(&self.matches.above[list]);
        let is_told = self.matches.weights.share(held) >= HEADED_SHARE_MIN;
        let is_bare = self.matches.own[list].is_disjoint(&matter);
        (is_below && is_told && is_bare).then_some(list)
    }

    /// All that is below the heading of a version, if the first passage is there and the question
    /// only asks what changed in that version.
    pub(crate) fn of_version(&self, first: usize) -> Option<Vec<usize>> {
        let question = self.question.last();
        let asked = spaced(question);
        let one = self.candidate(first);
        let path = &self.reading.blocks[one.stretch].sections[one.section];
        let is_named = |heading: &String| is_edition(heading) && names_edition(question, heading);
        let depth = path.iter().position(is_named)?;
        let title = spaced(&self.editions.names(one.hit).join(" "));
        let is_of_form = |word: &str| {
            is_common(word)
                || is_interrogative(word)
                || is_entry(CHANGES, word)
                || word.contains(|c: char| c.is_ascii_digit())
                || is_calendar_word(word)
                || contains(&title, word)
        };
        if !contains_any(&asked, CHANGED) || !asked.split_whitespace().all(is_of_form) {
            return None;
        }
        let is_below = |at: &usize| {
            let other = self.candidate(*at);
            let sections = &self.reading.blocks[other.stretch].sections;
            other.stretch == one.stretch
                && sections[other.section].starts_with(&path[..=depth])
                && matches!(other.shape, Shape::Unit(Kind::Sentence | Kind::Item))
                && !other.is_lead
        };
        let found: Vec<usize> = (0..self.reading.candidates.len()).filter(is_below).collect();
        let found = self.without_widened(found);
        (2..=CHANGES_MAX).contains(&found.len()).then_some(found)
    }

    /// The lists that may be quoted whole.
    pub(crate) fn lists(&self) -> impl Iterator<Item = usize> {
        let all = self.reading.candidates.iter().enumerate();
        all.filter(|(_, one)| one.shape == Shape::Whole(Form::List)).map(|(at, _)| at)
    }
}

/// Whether a heading announces steps without saying what they achieve.
fn is_of_steps(heading: &str) -> bool {
    let words = spaced(heading);
    let words = words.trim().trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    is_entry(STEP_HEADINGS, words)
}
