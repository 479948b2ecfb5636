//! Actions: who has to do what after a meeting, from the table or the list in its minutes.
//!
//! ```text
//! | action      | who | until |    Actions
//! | order paint | Ada | 3 May |    - Ada: order paint, by 3 May
//! | book a slip | Bo  | June  |    - Bo books a slip
//! ```

use std::collections::BTreeSet;

use crate::passages::blocks::{Cell, Kind};
use crate::passages::candidates::{Candidate, Shape};
use crate::question::phrase::DETERMINERS;
use crate::relevance::weights::{light_terms, wanted_terms};
use crate::selection::choose::Choice;
use crate::selection::rows::SELECTED_MAX;
use crate::text::terms::{is_common, terms};
use crate::text::values::{is_calendar_word, month};
use crate::text::words::{contains, contains_any, is_entry, spaced};
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

/// Headings of lists of actions.
const HEADINGS: &str = "\
    action|actions|action items|action points|action list|to do|to dos|todo|todos|tasks|next steps|\
    who does what|who has to do what|aufgaben|maßnahmen|wer macht was|tâches|actions à mener|\
    tareas|acciones";
/// Marks between a name and what that person has to do.
const BEHIND_NAME: [&str; 5] = [":", " - ", " \u{2013} ", " \u{2014} ", " \u{2192} "];

impl Choice<'_> {
    /// All actions from the table or list in the document of the first passage, if the question
    /// asks for those of a meeting; those of one person, if it asks what that person has to do.
    pub(crate) fn of_actions(&self, first: usize) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        let has = |list: &str| contains_any(&asked, list);
        let (asks_all, asks_deeds) = (has(ACTIONS), has(HAS_TO_DO));
        let is_other = self.question.counts || self.question.selects_open();
        if !(asks_all || asks_deeds) || is_other || self.is_of_other_month(first) {
            return None;
        }
        let actions = self.action_rows(first).or_else(|| self.action_items(first))?;
        let of_person = actions.iter().copied().filter(|at| self.is_of_person(*at, &asked));
        let of_person: Vec<usize> = of_person.collect();
        let found = match () {
            () if !of_person.is_empty() => of_person,
            () if asks_all && !has(DUE) && self.are_of_nothing_else(&actions) => actions,
            () => return None,
        };
        (found.len() <= SELECTED_MAX).then_some(found)
    }

    /// Whether the question names a month, and the document of a passage is named after a day of
    /// another one.
    fn is_of_other_month(&self, at: usize) -> bool {
        let months: Vec<u32> = self.question.last().unicode_words().filter_map(month).collect();
        let Some(named) = self.editions.named_day(self.candidate(at).hit) else { return false };
        // "12-09" may be either in December or in September.
        let is_named = |month: &u32| [named.month, named.day].contains(month);
        !months.is_empty() && !months.iter().any(is_named)
    }

    /// The rows of the only table of actions in the document of the first passage.
    fn action_rows(&self, first: usize) -> Option<Vec<usize>> {
        let is_of = |list: &str, cell: &Cell| is_entry(list, spaced(&cell.name).trim());
        self.only_group(first, &|one| {
            let column = |list| one.cells.iter().position(|cell| is_of(list, cell));
            one.has_values() && column(WHAT).zip(column(WHO)).is_some_and(|(what, who)| what != who)
        })
    }

    /// The items of the only list below a heading for actions in the document of the first passage.
    fn action_items(&self, first: usize) -> Option<Vec<usize>> {
        self.only_group(first, &|one| {
            let announced = [&one.heading, &one.lead].map(|text| spaced(text));
            one.shape == Shape::Unit(Kind::Item)
                && announced.iter().any(|text| is_entry(HEADINGS, text.trim()))
        })
    }

    /// The passages that `is_one` accepts in the document of the first passage, if all of them
    /// belong to one table or list.
    fn only_group(&self, first: usize, is_one: &dyn Fn(&Candidate) -> bool) -> Option<Vec<usize>> {
        let stretch = self.candidate(first).stretch;
        let is_action = |at: &usize| {
            let one = self.candidate(*at);
            one.stretch == stretch && is_one(one)
        };
        let all: Vec<usize> = (0..self.reading.candidates.len()).filter(is_action).collect();
        let head = self.candidate(*all.first()?);
        let is_one_group = all.iter().all(|at| self.candidate(*at).is_beside(head));
        (is_one_group && all.len() >= ACTIONS_MIN).then_some(all)
    }

    /// Whether the question names the person, or one of the people, who have to do an action: those
    /// in their column, or at the beginning or in brackets at the end of an item.
    fn is_of_person(&self, at: usize, asked: &str) -> bool {
        let one = self.candidate(at);
        let is_who = |cell: &&Cell| is_entry(WHO, spaced(&cell.name).trim());
        let is_named = |name: &str| {
            let name = spaced(name);
            let name = name.trim();
            !name.is_empty() && !is_entry(EVERYBODY, name) && contains(asked, name)
        };
        let are_named = |names: &str| names.split([',', '/', '+', '&']).any(is_named);
        if one.has_values() {
            return one.cells.iter().find(is_who).is_some_and(|who| are_named(&who.value));
        }
        let item = one.shown();
        let labels = BEHIND_NAME.iter().filter_map(|mark| item.split_once(mark));
        let mut labels = labels.map(|(label, _)| label);
        let mut words = item.unicode_words();
        let opening = words.next().filter(|word| {
            word.starts_with(char::is_uppercase) && !is_common(&word.to_lowercase())
        });
        // "Clean the slip" begins with a verb.
        let opening = opening.filter(|_| !words.next().is_some_and(|it| is_entry(DETERMINERS, it)));
        let ending = item.trim_end_matches(['.', ' ']).strip_suffix(')');
        let ending = ending.and_then(|item| item.rsplit_once('(')).map(|(_, name)| name);
        labels.any(are_named) || opening.is_some_and(is_named) || ending.is_some_and(are_named)
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
