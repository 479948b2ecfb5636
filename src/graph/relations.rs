//! Reads the relations out of one sentence.

use std::ops::Range;

use crate::graph::entities::Entities;
use crate::graph::patterns::{PHRASE_WORDS_MAX, Pattern, patterns, words_from};
use crate::graph::row::{EntityKind, Predicate};
use crate::graph::sentences::mark;
use crate::graph::tokens::{Form, Token};

/// Words between a phrase and its object.
const OBJECT_GAP_MAX: usize = 4;
/// Words between a phrase and its subject.
const SUBJECT_GAP_MAX: usize = 12;
/// Objects of one phrase.
const OBJECTS_MAX: usize = 8;

/// A word, a mark or a name of a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Its first token in the sentence.
    pub token: usize,
    /// The entity that is named.
    pub entity: Option<usize>,
    /// A possessive ending follows.
    pub is_owner: bool,
}

/// A statement, by entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub source: usize,
    pub target: usize,
    pub predicate: Predicate,
}

/// One sentence while it is read.
pub(super) struct Reading<'a> {
    pub text: &'a str,
    pub tokens: &'a [Token],
    pub items: &'a [Item],
    pub entities: &'a mut Entities,
    pub found: &'a mut Vec<Statement>,
}

impl Reading<'_> {
    pub(super) fn read(&mut self) {
        self.read_spans();
        self.read_copulas();
        self.read_owners();
        let mut at = 0;
        while at < self.items.len() {
            at += self.read_phrase(at).max(1);
        }
        self.read_appositions();
        self.read_places();
        self.read_verbs();
    }

    pub(super) fn word(&self, at: usize) -> &str {
        match self.items.get(at) {
            Some(Item { token, entity: None, .. }) => self.tokens[*token].text(self.text),
            _ => "",
        }
    }

    pub(super) fn mark(&self, at: usize) -> Option<char> {
        let item = self.items.get(at).filter(|item| item.entity.is_none())?;
        mark(self.text, &self.tokens[item.token])
    }

    pub(super) fn entity(&self, at: usize) -> Option<usize> {
        self.items.get(at)?.entity
    }

    pub(super) fn token(&self, at: usize) -> Option<&Token> {
        let item = self.items.get(at).filter(|item| item.entity.is_none())?;
        Some(&self.tokens[item.token])
    }

    pub(super) fn is_date(&self, entity: usize) -> bool {
        self.entities.kind(entity) == EntityKind::Date
    }

    pub(super) fn state(&mut self, source: usize, predicate: Predicate, target: usize) {
        let statement = Statement { source, target, predicate };
        if source != target && !self.found.contains(&statement) {
            self.found.push(statement);
        }
    }

    /// What the clause around item `at` is about: the first name of the sentence or of the part
    /// behind the last semicolon, unless a preposition stands before it.
    pub(super) fn subject(&self, at: usize) -> Option<usize> {
        let start = (0..at).rev().find(|at| self.mark(*at) == Some(';')).map_or(0, |at| at + 1);
        let mut is_led = false;
        for here in start..at {
            if let Some(entity) = self.entity(here).filter(|entity| !self.is_date(*entity)) {
                match self.items[here].is_owner {
                    true => continue,
                    false => return (!is_led).then_some(entity),
                }
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

    /// The source of a phrase that begins at item `at`.
    fn source_of(&self, at: usize) -> Option<usize> {
        let mut here = at;
        for _ in 0..SUBJECT_GAP_MAX {
            here = here.checked_sub(1)?;
            if let Some(entity) = self.entity(here) {
                let item = self.items[here];
                if item.is_owner || self.is_date(entity) {
                    return self.subject(at);
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
                    let named = named.filter(|entity| is_aside && !self.is_date(*entity));
                    return match self.has_verb(here + 1..at) || !is_aside {
                        true => self.subject(at),
                        false => named.or_else(|| self.subject(at)),
                    };
                }
                "who" | "which" | "that" | "whose" => {
                    let comma = self.word(here.checked_sub(1)?) == ",";
                    let before = here.checked_sub(1 + usize::from(comma))?;
                    let before = self.before_brackets(before)?;
                    return self.entity(before).or_else(|| self.subject(at));
                }
                "is" | "was" | "are" | "were" | "be" | "been" | "has" | "had" | "have" => {}
                ";" | ":" => return None,
                _ => {}
            }
        }
        self.subject(at)
    }

    fn has_verb(&self, items: Range<usize>) -> bool {
        items.into_iter().any(|at| self.is_verb(at))
    }

    pub(super) fn is_verb(&self, at: usize) -> bool {
        let Some(token) = self.token(at).filter(|token| token.form == Form::Lower) else {
            return false;
        };
        token.senses.is_verb() || is_copula(token.text(self.text))
    }

    /// The opening bracket of the closing one at item `at`.
    fn opening(&self, at: usize) -> Option<usize> {
        (0..at).rev().take(40).find(|at| self.mark(*at) == Some('('))
    }

    fn is_in_brackets(&self, at: usize) -> bool {
        let open = (0..at).rev().take(40).find(|at| matches!(self.mark(*at), Some('(' | ')')));
        open.is_some_and(|open| self.mark(open) == Some('('))
    }

    fn before_brackets(&self, at: usize) -> Option<usize> {
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

    /// The first object behind item `at`, by item: only determiners, adjectives and nouns between.
    pub(super) fn object_item(&self, at: usize) -> Option<usize> {
        for here in (at..self.items.len()).take(OBJECT_GAP_MAX + 1) {
            if self.entity(here).is_some() {
                return Some(here);
            }
            let token = self.token(here)?;
            let word = token.text(self.text).to_lowercase();
            let is_fine = token.form != Form::Mark || word == "\"";
            let blocks = is_preposition(&word) || is_copula(&word) || is_conjunction(&word);
            if !is_fine || blocks {
                return None;
            }
        }
        None
    }

    /// The object at an item and those that are listed behind it.
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

    /// States what the longest phrase at item `at` says. Returns its words, 0 for no phrase.
    fn read_phrase(&mut self, at: usize) -> usize {
        let Some(token) = self.token(at) else { return 0 };
        // Offices are often written with capitals: "Count of Hanau".
        let is_office = token.form == Form::Capital && token.senses.is_honorific();
        if token.form != Form::Lower && !is_office {
            return 0;
        }
        let first = token.text(self.text).to_lowercase();
        let longest = words_from(&first).min(PHRASE_WORDS_MAX);
        for length in (1..=longest).rev() {
            let Some(known) = self.phrase(at, length) else { continue };
            for pattern in known {
                if self.apply(pattern, at, at + length) {
                    return length;
                }
            }
        }
        0
    }

    fn phrase(&self, at: usize, length: usize) -> Option<&'static [Pattern]> {
        let mut phrase = String::new();
        for here in at..at + length {
            let token = self.token(here).filter(|token| token.is_word())?;
            if here > at {
                phrase.push(' ');
            }
            phrase.push_str(token.text(self.text));
        }
        phrase.make_ascii_lowercase();
        let known = patterns(&phrase);
        (!known.is_empty()).then_some(known)
    }

    fn apply(&mut self, pattern: &Pattern, from: usize, to: usize) -> bool {
        let Some(first) = self.object_item(to) else { return false };
        let is_date = self.entity(first).is_some_and(|entity| self.is_date(entity));
        if is_date != pattern.wants_date() {
            return false;
        }
        let Some(source) = self.source_of(from) else { return false };
        if self.is_in_brackets(from) && !is_bracketed(pattern.predicate) {
            return false;
        }
        let is_place = pattern.kinds[1] == Some(EntityKind::Location);
        let objects = self.objects(first);
        let count = if is_date || is_place { 1 } else { objects.len() };
        for object in objects.iter().take(count) {
            let ends = if pattern.is_reversed { [*object, source] } else { [source, *object] };
            let is_person = self.entities.kind(*object) == EntityKind::Person;
            if pattern.predicate == Predicate::LeaderOf && is_person && *object != objects[0] {
                continue;
            }
            if ends.contains(&source) && self.fits(pattern, ends) {
                self.state(ends[0], pattern.predicate, ends[1]);
                if pattern.predicate == Predicate::AlsoKnownAs {
                    self.entities.vote(ends[1], self.entities.kind(ends[0]), 3);
                }
            }
        }
        if is_place {
            self.nest(&objects);
        }
        if is_date && matches!(pattern.predicate, Predicate::BornOn | Predicate::DiedOn) {
            self.place_of_life(source, pattern.predicate, first + 1);
        }
        true
    }

    /// Whether the ends can be what the pattern takes them for; lets them be that.
    fn fits(&mut self, pattern: &Pattern, ends: [usize; 2]) -> bool {
        let fits = |kind: EntityKind, wanted: Option<EntityKind>| match wanted {
            None | Some(EntityKind::Date) => kind != EntityKind::Date || wanted.is_some(),
            Some(EntityKind::Person) => {
                !matches!(kind, EntityKind::Location | EntityKind::Work | EntityKind::Date)
            }
            Some(EntityKind::Location) => {
                !matches!(kind, EntityKind::Person | EntityKind::Work | EntityKind::Date)
            }
            Some(_) => kind != EntityKind::Date,
        };
        let is_fitting = ends
            .iter()
            .zip(pattern.kinds)
            .all(|(end, wanted)| fits(self.entities.kind(*end), wanted));
        if is_fitting {
            for (end, wanted) in ends.into_iter().zip(pattern.kinds) {
                if let Some(kind) = wanted {
                    self.entities.vote(end, kind, 3);
                }
            }
        }
        is_fitting
    }

    /// "Manchester, Iowa": places in a row contain each other.
    pub(super) fn nest(&mut self, places: &[usize]) {
        for pair in places.windows(2) {
            let is_place = |at: usize| {
                matches!(self.entities.kind(at), EntityKind::Location | EntityKind::Other)
            };
            if is_place(pair[0]) && self.entities.kind(pair[1]) == EntityKind::Location {
                self.entities.vote(pair[0], EntityKind::Location, 3);
                self.state(pair[0], Predicate::LocatedIn, pair[1]);
            }
        }
    }

    /// The place behind the date of a birth or a death.
    fn place_of_life(&mut self, person: usize, date: Predicate, at: usize) {
        if !matches!(self.word(at), "in" | "at" | ",") {
            return;
        }
        let Some(place) = self.entity(at + 1) else { return };
        if matches!(self.entities.kind(place), EntityKind::Location | EntityKind::Other) {
            let is_birth = date == Predicate::BornOn;
            let predicate = if is_birth { Predicate::BornIn } else { Predicate::DiedIn };
            self.entities.vote(place, EntityKind::Location, 3);
            self.state(person, predicate, place);
            let places = self.objects(at + 1);
            self.nest(&places);
        }
    }

    /// "X (3 May 1950 - 4 June 2001)".
    fn read_spans(&mut self) {
        for at in 0..self.items.len() {
            let Some(person) = self.entity(at).filter(|_| self.mark(at + 1) == Some('(')) else {
                continue;
            };
            let Some(born) = self.entity(at + 2).filter(|date| self.is_date(*date)) else {
                continue;
            };
            let is_span = matches!(self.mark(at + 3), Some('-' | '\u{2013}' | '\u{2014}'));
            let died = self.entity(at + 4).filter(|date| is_span && self.is_date(*date));
            let Some(died) = died else { continue };
            // "Mary, Countess of Strathmore (1749 - 1800)": the dates are those of the subject.
            let person = self.subject(at + 1).unwrap_or(person);
            let can_be_person =
                matches!(self.entities.kind(person), EntityKind::Person | EntityKind::Other);
            if can_be_person {
                self.entities.vote(person, EntityKind::Person, 6);
                self.state(person, Predicate::BornOn, born);
                self.state(person, Predicate::DiedOn, died);
                self.place_of_life(person, Predicate::DiedOn, at + 5);
            }
        }
    }
}

pub(super) fn is_copula(word: &str) -> bool {
    matches!(word, "is" | "was" | "are" | "were" | "became" | "remains")
}

/// What is stated of a name in brackets behind it.
fn is_bracketed(predicate: Predicate) -> bool {
    use Predicate::*;
    matches!(
        predicate,
        BornOn
            | BornIn
            | DiedOn
            | DiedIn
            | AlsoKnownAs
            | CreatedBy
            | FoundedOn
            | FoundedBy
            | PublishedOn
            | RelativeOf
            | ChildOf
            | SiblingOf
            | SpouseOf
    )
}

pub(super) fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "of" | "in"
            | "on"
            | "at"
            | "by"
            | "to"
            | "from"
            | "with"
            | "for"
            | "into"
            | "under"
            | "during"
            | "after"
            | "before"
            | "since"
            | "until"
            | "between"
            | "among"
            | "about"
            | "against"
            | "through"
            | "within"
            | "near"
            | "over"
            | "as"
            | "than"
            | "like"
            | "without"
            | "via"
            | "upon"
            | "onto"
            | "across"
            | "including"
            | "despite"
    )
}

fn is_conjunction(word: &str) -> bool {
    matches!(word, "and" | "or" | "but" | "who" | "which" | "that" | "where" | "when" | "while")
}
