//! Actions: who has to do what after a meeting, from the table in its minutes.

use std::collections::BTreeSet;

use crate::passages::blocks::Cell;
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::selection::rows::SELECTED_MAX;
use crate::text::terms::terms;
use crate::text::values::is_calendar_word;
use crate::text::words::{contains, entries, is_entry, spaced};
use unicode_segmentation::UnicodeSegmentation;

/// Words that ask for the actions agreed.
const ACTIONS: &str = "\
    action items|action item|action points|action list|actions|to dos|to do list|todos|tasks|\
    assignments|aufgaben|aufgabenliste|maßnahmen|tâches|tareas|acciones";
/// Verbs beside them that tell nothing about them.
const AGREED: &str = "\
    agreed|decided|assigned|given|set|noted|recorded|listed|follow|follows|followed|result|\
    resulted|vereinbart|beschlossen|décidées|acordadas";
/// Words that ask what somebody has to do.
const HAS_TO_DO: &str = "\
    have to do|has to do|had to do|must do|need to do|needs to do|supposed to do|asked to do|\
    meant to do|going to do|wanted to do|promise to do|promised to do|muss tun|tun muss|\
    machen muss|zu tun|machen soll|tun soll|doit faire|devait faire|tiene que hacer|debe hacer";
/// Words that ask for the days of actions rather than the actions of a day.
const DUE: &str = "due|until|till|by|when|before|after|fällig|bis|wann|quand|cuándo";
/// Names of the columns of what is to be done, and of who does it.
const WHAT: &str = "\
    action|actions|action item|task|tasks|to do|todo|what|item|aufgabe|aufgaben|was|maßnahme|\
    quoi|tâche|action à mener|qué|tarea|acción";
const WHO: &str = "\
    who|owner|responsible|by whom|person|assignee|assigned to|resp|name|wer|verantwortlich|\
    zuständig|qui|responsable|quién|encargado";
/// Values for everybody, which name no person.
const EVERYBODY: &str = "all|everybody|everyone|alle|tous|todos";
/// Minimum number of actions in a table of them.
const ACTIONS_MIN: usize = 2;

impl Choice<'_> {
    /// All actions from the table in the document of the first passage, if the question asks for
    /// those of a meeting; those of one person, if it asks what that person has to do.
    pub(crate) fn of_actions(&self, first: usize) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        let has = |list: &str| entries(list).any(|phrase| contains(&asked, phrase));
        let (asks_all, asks_deeds) = (has(ACTIONS), has(HAS_TO_DO));
        if !asks_all && !asks_deeds || self.question.counts || self.question.selects_open() {
            return None;
        }
        let rows = self.action_rows(first)?;
        let of_person: Vec<usize> =
            rows.iter().copied().filter(|at| self.is_of_person(*at, &asked)).collect();
        let found = match () {
            () if !of_person.is_empty() => of_person,
            () if asks_all && !has(DUE) && self.are_of_nothing_else(&rows) => rows,
            () => return None,
        };
        (found.len() <= SELECTED_MAX).then_some(found)
    }

    /// The rows of the only table of actions in the document of the first passage.
    fn action_rows(&self, first: usize) -> Option<Vec<usize>> {
        let one = self.candidate(first);
        let is_of = |list: &str, cell: &Cell| is_entry(list, spaced(&cell.name).trim());
        let is_action = |at: &usize| {
            let other = self.candidate(*at);
            let column = |list| other.cells.iter().position(|cell| is_of(list, cell));
            other.stretch == one.stretch
                && other.has_values()
                && column(WHAT).zip(column(WHO)).is_some_and(|(what, who)| what != who)
        };
        let all: Vec<usize> = (0..self.reading.candidates.len()).filter(is_action).collect();
        let head = *all.first()?;
        let is_one_table = all.iter().all(|at| self.candidate(*at).is_beside(self.candidate(head)));
        (is_one_table && all.len() >= ACTIONS_MIN).then_some(all)
    }

    /// Whether the question names the person, or one of the people, who have to do an action.
    fn is_of_person(&self, at: usize, asked: &str) -> bool {
        let is_who = |cell: &&Cell| is_entry(WHO, spaced(&cell.name).trim());
        let who = self.candidate(at).cells.iter().find(is_who);
        let is_named = |name: &str| {
            let name = spaced(name);
            let name = name.trim();
            !name.is_empty() && !is_entry(EVERYBODY, name) && contains(asked, name)
        };
        who.is_some_and(|who| who.value.split([',', '/', '+', '&']).any(is_named))
    }

    /// Whether the question says nothing about `rows` but what their headings and title say.
    fn are_of_nothing_else(&self, rows: &[usize]) -> bool {
        let words = self.question.last().unicode_words();
        let of_days = words.filter(|word| is_calendar_word(word)).flat_map(terms);
        let mut known: BTreeSet<String> = terms(&format!("{ACTIONS}|{AGREED}").replace('|', " "));
        known.extend(of_days);
        known.extend(light_terms(self.question));
        let matter = &wanted_terms(self.question) - &known;
        rows.first().is_some_and(|row| matter.is_subset(&self.matches.above[*row]))
    }
}
