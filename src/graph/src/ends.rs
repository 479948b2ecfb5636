//! The ends of a relation: the subject before a phrase, and the objects after it.

use std::ops::Range;

use crate::relations::{Reading, is_copula, is_preposition};
use crate::row::EntityKind;
use crate::tokens::Form;

/// Maximum words between a phrase and its object.
const OBJECT_GAP_MAX: usize = 4;
/// Maximum words between a phrase and its subject.
const SUBJECT_GAP_MAX: usize = 12;
/// Maximum objects of one phrase.
const OBJECTS_MAX: usize = 8;

impl Reading<'_> {
    /// Returns the subject of the clause around item `at`: the first name of the sentence, or of
    /// the part after the last semicolon, unless preceded by a preposition.
    pub(super) fn subject(&self, at: usize) -> Option<usize> {
        let opens = |at: &usize| matches!(self.word(*at), ";" | "while" | "whereas");
        let start = (0..at).rev().find(opens).map_or(0, |at| at + 1);
        let mut is_led = false;
        for here in start..at {
            if let Some(entity) = self.entity(here).filter(|entity| !self.is_date(*entity)) {
                if self.items[here].is_owner {
                    continue;
                }
                return (!is_led).then_some(entity);
            }
            match self.word(here) {
                "," => is_led = false,
                word if is_preposition(&word.to_lowercase()) => is_led = true,
                _ if self.token(here).is_some_and(|token| token.senses.is_verb()) => return None,
                "is" | "was" | "are" | "were" => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the source of a phrase that starts at item `at`.
    pub(super) fn source_of(&self, at: usize) -> Option<usize> {
        let mut here = at;
        for _ in 0..SUBJECT_GAP_MAX {
            here = here.checked_sub(1)?;
            if let Some(entity) = self.entity(here) {
                let item = self.items[here];
                if item.is_owner || self.is_date(entity) {
                    return self.subject(at);
                }
                if here + 1 < at && self.modifies(here) {
                    return self.subject(at).filter(|subject| *subject != entity);
                }
                // "X is a Hong Kong film directed by": the film is X, not the place.
                let has_copula = (0..here).any(|at| is_copula(self.word(at)));
                if here + 1 < at && has_copula {
                    return self.subject(here);
                }
                let is_led = here > 0 && is_preposition(&self.word(here - 1).to_lowercase());
                return if is_led { self.subject(here) } else { Some(entity) };
            }
            match self.word(here) {
                ")" => here = self.opening(here)?,
                "(" => {
                    let named = here.checked_sub(1).and_then(|before| self.entity(before));
                    return named.or_else(|| self.subject(here));
                }
                "," | "and" | "or" | "but" | "then" => {
                    let before =
                        here.checked_sub(1).and_then(|before| self.before_brackets(before));
                    let is_aside = self.word(here) == ",";
                    let named = before.and_then(|before| self.entity(before));
                    let is_date = named.is_some_and(|entity| self.is_date(entity));
                    let named = named.filter(|_| is_aside && !is_date);
                    if self.has_verb(here + 1..at) || !is_aside {
                        return self.subject(at);
                    }
                    // "Acme calendar, designed by": the calendar, not Acme.
                    let is_clause = is_date || self.has_verb(0..here);
                    return named.or_else(|| self.subject(at).filter(|_| is_clause));
                }
                "who" | "which" | "that" | "whose" => {
                    let comma = self.word(here.checked_sub(1)?) == ",";
                    let before = here.checked_sub(1 + usize::from(comma))?;
                    let before = self.before_brackets(before)?;
                    return self.entity(before).or_else(|| self.subject(at));
                }
                "is" | "was" | "are" | "were" | "be" | "been" | "has" | "had" | "have" => {}
                "as" => return self.subject(here),
                "it" => return self.subject(at).filter(|one| !self.is_person(*one)),
                "he" | "she" => return self.subject(at).filter(|one| self.is_person(*one)),
                "they" | "we" | "you" => return None,
                ";" | ":" => return None,
                _ => {}
            }
        }
        self.subject(at)
    }

    pub(super) fn has_verb(&self, items: Range<usize>) -> bool {
        items.into_iter().any(|at| self.is_verb(at))
    }

    pub(super) fn is_verb(&self, at: usize) -> bool {
        let Some(token) = self.token(at).filter(|token| token.form == Form::Lower) else {
            return false;
        };
        token.senses.is_verb() || is_copula(token.text(self.text))
    }

    /// The opening bracket that matches the closing one at item `at`.
    pub(super) fn opening(&self, at: usize) -> Option<usize> {
        (0..at).rev().take(40).find(|at| self.mark(*at) == Some('('))
    }

    pub(super) fn is_in_brackets(&self, at: usize) -> bool {
        let open = (0..at).rev().take(40).find(|at| matches!(self.mark(*at), Some('(' | ')')));
        open.is_some_and(|open| self.mark(open) == Some('('))
    }

    pub(super) fn before_brackets(&self, at: usize) -> Option<usize> {
        match self.mark(at) {
            Some(')') => self.opening(at)?.checked_sub(1),
            _ => Some(at),
        }
    }

    pub(super) fn behind_brackets(&self, at: usize) -> usize {
        if self.mark(at) != Some('(') {
            return at;
        }
        let close = (at..self.items.len()).take(40).find(|at| self.mark(*at) == Some(')'));
        close.map_or(at, |close| close + 1)
    }

    /// Returns the item of the first object after item `at`, skipping only determiners, adjectives
    /// and nouns.
    pub(super) fn object_item(&self, at: usize) -> Option<usize> {
        for here in (at..self.items.len()).take(OBJECT_GAP_MAX + 1) {
            if self.entity(here).is_some() {
                return Some(here);
            }
            let token = self.token(here)?;
            let word = token.text(self.text).to_lowercase();
            // "the daughter of an actor, Gottfried": a role and a comma introduce the name.
            let role = || self.token(here.checked_sub(1)?)?.senses.kind;
            let is_role = word == "," && here > at && role() == Some(EntityKind::Person);
            let is_fine = token.form != Form::Mark || word == "\"" || is_role;
            let blocks = is_preposition(&word) || is_copula(&word) || is_conjunction(&word);
            if !is_fine || blocks {
                return None;
            }
        }
        None
    }

    /// Returns the object at an item and any listed after it.
    pub(super) fn objects(&self, first: usize) -> Vec<usize> {
        let mut found: Vec<usize> = self.entity(first).into_iter().collect();
        if self.items[first].is_owner {
            return Vec::new();
        }
        let mut at = first;
        while found.len() < OBJECTS_MAX {
            let mut next = self.behind_brackets(at + 1);
            let mut is_listed = false;
            while matches!(self.word(next), "," | "and" | "&" | "or" | "as" | "well" | "the") {
                is_listed |= self.word(next) != "the";
                next += 1;
            }
            let Some(entity) = self.entity(next).filter(|_| is_listed) else { break };
            let is_owner = self.items[next].is_owner;
            let is_clause = self.is_verb(next + 1) || self.is_date(entity) || is_owner;
            if is_clause {
                break;
            }
            found.push(entity);
            at = next;
        }
        found
    }
}

fn is_conjunction(word: &str) -> bool {
    matches!(word, "and" | "or" | "but" | "who" | "which" | "that" | "where" | "when" | "while")
}
