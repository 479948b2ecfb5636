//! Extracts the relations from one sentence.

use crate::entities::Entities;
use crate::patterns::{PHRASE_WORDS_MAX, Pattern, patterns, words_from};
use crate::row::{EntityKind, Predicate};
use crate::sentences::mark;
use crate::tokens::{Form, Token};

/// Minimum years between a birth and a death given as bare years.
const LIFE_YEARS_MIN: u32 = 30;
/// Maximum items between the place of a birth or death and its date: two larger places in between.
const LIFE_ITEMS_MAX: usize = 7;

/// A word, punctuation mark or name of a sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Its first token in the sentence.
    pub token: usize,
    /// The entity that it names, if any.
    pub entity: Option<usize>,
    /// Whether a possessive ending follows.
    pub is_owner: bool,
}

/// A statement between two entities.
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

    /// States the relation of the longest phrase at item `at`. Returns its word count, or 0 if
    /// there is none.
    fn read_phrase(&mut self, at: usize) -> usize {
        let Some(token) = self.token(at) else { return 0 };
        // Offices are often capitalised: "Count of Hanau".
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
        if !self.is_stated(pattern, from, to) {
            return false;
        }
        let Some(mut first) = self.object_item(to) else { return false };
        let mut is_date = self.entity(first).is_some_and(|entity| self.is_date(entity));
        // "won the 1999 Golden Horse Award"
        if is_date && !pattern.wants_date() && self.entity(first + 1).is_some() {
            first += 1;
            is_date = self.entity(first).is_some_and(|entity| self.is_date(entity));
        }
        if is_date != pattern.wants_date() {
            return false;
        }
        let Some(source) = self.source(pattern, from) else { return false };
        if self.is_in_brackets(from) && !is_bracketed(pattern.predicate) {
            return false;
        }
        let is_place = pattern.kinds[1] == Some(EntityKind::Location);
        let objects = self.objects(first);
        // "Count of Flanders and Ann of Bar", "mayor of Kawit, Cavite": an office has a single
        // object.
        let is_office = pattern.predicate == Predicate::LeaderOf;
        let count = if is_date || is_place || is_office { 1 } else { objects.len() };
        for object in objects.iter().take(count) {
            let ends = if pattern.is_reversed { [*object, source] } else { [source, *object] };
            if ends.contains(&source) && self.fits(pattern, ends) {
                self.state(ends[0], pattern.predicate, ends[1]);
                if pattern.predicate == Predicate::AlsoKnownAs {
                    self.entities.vote(ends[1], self.entities.kind(ends[0]), 3);
                }
            }
        }
        if is_place {
            self.nest_from(first);
            self.date_of_life(source, pattern.predicate, first + 1);
        }
        if is_date && matches!(pattern.predicate, Predicate::BornOn | Predicate::DiedOn) {
            self.place_of_life(source, pattern.predicate, first + 1);
        }
        true
    }

    /// Returns the source required by a phrase at item `from`.
    fn source(&self, pattern: &Pattern, from: usize) -> Option<usize> {
        if pattern.predicate == Predicate::AlsoKnownAs && !pattern.is_reversed {
            return self.renamed(from);
        }
        let source = self.source_of(from)?;
        let wanted = pattern.kinds[usize::from(pattern.is_reversed)];
        let can_be = can_be(self.entities.kind(source), wanted);
        if can_be { Some(source) } else { self.subject(from).or(Some(source)) }
    }

    /// Whether the ends can be of the kinds that the pattern requires; if so, votes for these
    /// kinds.
    fn fits(&mut self, pattern: &Pattern, ends: [usize; 2]) -> bool {
        let kinds = ends.map(|end| self.entities.kind(end));
        let can_be_bought = |kind| !matches!(kind, EntityKind::Person | EntityKind::Location);
        let is_fitting =
            kinds.iter().zip(pattern.kinds).all(|(kind, wanted)| can_be(*kind, wanted))
                && (pattern.predicate != Predicate::Acquired
                    || can_be_bought(kinds[1]) && kinds[0] != EntityKind::Location);
        if is_fitting {
            for (end, wanted) in ends.into_iter().zip(pattern.kinds) {
                if let Some(kind) = wanted {
                    self.entities.vote(end, kind, 3);
                }
            }
        }
        is_fitting
    }

    /// Reads "Manchester, Iowa" from item `at` on: places separated by commas contain each other.
    pub(super) fn nest_from(&mut self, at: usize) {
        let mut at = at;
        while let (Some(inner), Some(outer)) = (self.entity(at), self.entity(at + 2)) {
            let is_listed = matches!(self.word(at + 3), "and" | "or");
            let is_place =
                matches!(self.entities.kind(inner), EntityKind::Location | EntityKind::Other);
            let is_outer = self.entities.kind(outer) == EntityKind::Location;
            if self.word(at + 1) != "," || is_listed || !is_place || !is_outer {
                return;
            }
            self.entities.vote(inner, EntityKind::Location, 3);
            self.state(inner, Predicate::LocatedIn, outer);
            at += 2;
        }
    }

    /// Reads the date after the place of a birth or death, which may be followed by larger places:
    /// "born in Uppsala, Sweden, on 3 May 1950".
    fn date_of_life(&mut self, person: usize, place: Predicate, at: usize) {
        let predicate = match place {
            Predicate::BornIn => Predicate::BornOn,
            Predicate::DiedIn => Predicate::DiedOn,
            _ => return,
        };
        for at in at..self.items.len().min(at + LIFE_ITEMS_MAX) {
            match self.entity(at) {
                Some(entity) if self.is_date(entity) => {
                    return self.state(person, predicate, entity);
                }
                Some(entity) if self.entities.kind(entity) != EntityKind::Location => return,
                Some(_) => {}
                None if matches!(self.word(at), "," | "on" | "in") => {}
                None => return,
            }
        }
    }

    /// Reads the place after the date of a birth or death.
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
            self.nest_from(at + 1);
        }
    }

    /// Whether two bare years are too close for a lifetime: in "Bill Gates (1975 - 2000)" they are
    /// the years at the head of a company.
    fn is_term_of_office(&self, first: usize, last: usize) -> bool {
        let year = |date: usize| self.entities.key(date).parse::<u32>().ok();
        let years = year(first).zip(year(last));
        years.is_some_and(|(first, last)| last.saturating_sub(first) < LIFE_YEARS_MIN)
    }

    /// Reads "X (3 May 1950 - 4 June 2001)".
    fn read_spans(&mut self) {
        for at in 0..self.items.len() {
            let Some(person) = self.entity(at).filter(|_| self.mark(at + 1) == Some('(')) else {
                continue;
            };
            let close = self.behind_brackets(at + 1);
            let is_span = |at: &usize| {
                let is_dash = matches!(self.mark(at + 1), Some('-' | '\u{2013}' | '\u{2014}'));
                let is_date = |at| self.entity(at).is_some_and(|date| self.is_date(date));
                is_dash && is_date(*at) && is_date(at + 2)
            };
            let Some(first) = (at + 2..close).find(is_span) else { continue };
            let (Some(born), Some(died)) = (self.entity(first), self.entity(first + 2)) else {
                continue;
            };
            // "Mary, Countess of Strathmore (1749 - 1800)": the dates are those of the subject.
            // "the son of Gustav I (1496 - 1560)": not those of the son.
            let is_naming = |at: usize| matches!(self.word(at), "known" | "called" | "named");
            let has_clause = (0..at).any(|at| self.is_verb(at) && !is_naming(at));
            let is_led = at > 0 && self.word(at - 1) == "of";
            let person = self.subject(at + 1).filter(|_| !has_clause).unwrap_or(person);
            // The dates in "the Count of Holm (1540 - 1574)" are not those of Holm.
            let is_place = has_clause && is_led && !self.is_person(person);
            if is_place || self.is_term_of_office(born, died) {
                continue;
            }
            let can_be_person =
                matches!(self.entities.kind(person), EntityKind::Person | EntityKind::Other);
            if can_be_person {
                self.entities.vote(person, EntityKind::Person, 6);
                self.state(person, Predicate::BornOn, born);
                self.state(person, Predicate::DiedOn, died);
                self.place_of_life(person, Predicate::DiedOn, first + 3);
            }
        }
    }
}

pub(super) fn is_copula(word: &str) -> bool {
    matches!(word, "is" | "was" | "are" | "were" | "became" | "remains")
}

/// Whether an entity of this kind can be what a pattern requires.
fn can_be(kind: EntityKind, wanted: Option<EntityKind>) -> bool {
    use EntityKind::*;
    match wanted {
        Some(Date) => kind == Date,
        Some(Person) => !matches!(kind, Location | Work | Date),
        Some(Location) => !matches!(kind, Person | Work | Date),
        Some(Work) => !matches!(kind, Person | Location | Date),
        Some(_) | None => kind != Date,
    }
}

/// Whether the relation may be stated in brackets after a name.
fn is_bracketed(predicate: Predicate) -> bool {
    use Predicate::*;
    [
        BornOn, BornIn, DiedOn, DiedIn, AlsoKnownAs, CreatedBy, FoundedOn, FoundedBy, PublishedOn,
        RelativeOf, ChildOf, SiblingOf, SpouseOf,
    ]
    .contains(&predicate)
}

pub(super) fn is_preposition(word: &str) -> bool {
    [
        "of", "in", "on", "at", "by", "to", "from", "with", "for", "into", "under", "during",
        "after", "before", "since", "until", "between", "among", "about", "against", "through",
        "within", "near", "over", "as", "than", "like", "without", "via", "upon", "onto", "across",
        "including", "despite", "outside", "inside", "along", "around", "behind", "beyond",
        "toward", "towards", "below", "above", "alongside", "throughout",
    ]
    .contains(&word)
}
