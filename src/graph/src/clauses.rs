//! Relations without a phrase in the table: classes, owners, places separated by commas, and verbs
//! missing from the table.

use crate::nouns;
use crate::relations::{Reading, is_copula, is_preposition};
use crate::row::{EntityKind, Predicate};
use crate::tokens::Form;
use crate::words;

/// Maximum words examined in a noun phrase.
const NOUN_WORDS_MAX: usize = 14;
/// Maximum items of an aside between a subject and its verb.
const ASIDE_ITEMS_MAX: usize = 30;
/// Maximum words between two names that a verb may connect.
const VERB_GAP_MAX: usize = 6;

impl Reading<'_> {
    /// Reads "X is an American novelist": the class of X.
    pub(super) fn read_copulas(&mut self) {
        for at in 0..self.items.len() {
            let Some(subject) = self.entity(at).filter(|_| !self.items[at].is_owner) else {
                continue;
            };
            let verb = self.behind_aside(at + 1);
            let is_first = at < 3 && self.leads(at);
            if is_first && is_copula(self.word(verb)) && self.is_article(verb + 1) {
                self.read_class(subject, verb + 2);
            }
        }
    }

    /// Whether only articles and punctuation precede the item.
    fn leads(&self, at: usize) -> bool {
        (0..at).all(|at| {
            let word = self.word(at);
            !word.is_empty()
                && (words::is_article(&word.to_lowercase())
                    || !word.starts_with(char::is_alphanumeric))
        })
    }

    fn is_article(&self, at: usize) -> bool {
        matches!(self.word(at), "a" | "an" | "the" | "one")
    }

    /// Skips brackets, alternative names and asides between a subject and its verb; returns the
    /// next item.
    fn behind_aside(&self, at: usize) -> usize {
        let mut at = self.behind_brackets(at);
        while matches!(self.word(at), "aka" | "or" | "also" | "known" | "as" | "called") {
            let names = (at + 1..self.items.len()).take(4);
            let Some(name) = names.into_iter().find(|at| self.entity(*at).is_some()) else {
                return at;
            };
            at = self.behind_brackets(name + 1);
        }
        if self.word(at) != "," {
            return at;
        }
        let mut here = at + 1;
        while here < self.items.len().min(at + ASIDE_ITEMS_MAX) {
            match self.word(here) {
                word if is_copula(word) => return here,
                "(" => here = self.behind_brackets(here).max(here + 1),
                _ if self.is_verb(here) => return at,
                _ => here += 1,
            }
        }
        at
    }

    /// States the classes named by the noun phrases at item `at`. Coordinated classes must be of
    /// the same kind: in "a film and theatre actor", film is not a class.
    fn read_class(&mut self, subject: usize, at: usize) {
        let mut phrases = Vec::new();
        let mut next = at;
        while let Some((first, head)) =
            self.noun_phrase(next).filter(|_| next - at < NOUN_WORDS_MAX)
        {
            phrases.push((first, head));
            if !matches!(self.word(head + 1), "," | "and" | "&") {
                break;
            }
            next = head + 2;
            next += usize::from(self.word(next) == "and");
            next += usize::from(self.is_article(next));
        }
        let kind = |head: usize| nouns::kind_of_noun(self.word(head));
        let Some(last) = phrases.last().and_then(|(_, head)| kind(*head)) else {
            return phrases.first().into_iter().for_each(|(first, head)| {
                self.state_class(subject, *first, *head);
            });
        };
        phrases.retain(|(_, head)| kind(*head) == Some(last));
        for (first, head) in phrases {
            self.state_class(subject, first, head);
            self.place_of_class(subject, head);
        }
    }

    /// Reads "X is a station in Y": the location of a thing of this class.
    fn place_of_class(&mut self, subject: usize, head: usize) {
        let kind = nouns::kind_of_noun(self.word(head));
        let is_fixed = matches!(kind, Some(EntityKind::Location | EntityKind::Organization));
        if !is_fixed || self.word(head + 1) != "in" {
            return;
        }
        let Some(item) = self.object_item(head + 2) else { return };
        let Some(first) = self.entity(item).filter(|place| !self.is_date(*place)) else { return };
        self.entities.vote(first, EntityKind::Location, 3);
        self.state(subject, Predicate::LocatedIn, first);
        self.nest_from(item);
    }

    /// Returns the first and last item of the class named by the noun phrase at `at`: the last noun
    /// before the next preposition, punctuation or verb, along with a preceding noun or adjective
    /// that denotes a kind.
    fn noun_phrase(&self, at: usize) -> Option<(usize, usize)> {
        let mut head = None;
        for here in at..self.items.len().min(at + NOUN_WORDS_MAX) {
            if self.entity(here).is_some() {
                head = None;
                continue;
            }
            let token = self.token(here)?;
            let word = token.text(self.text);
            let is_class =
                head.is_some_and(|head: usize| nouns::kind_of_noun(self.word(head)).is_some());
            let is_participle = is_participle(word);
            let is_stop = match token.form {
                Form::Mark => !matches!(word, "\"" | "-"),
                Form::Lower => {
                    is_class && (is_participle || word.ends_with("ly"))
                        || token.senses.is_grammar() && !is_degree(word)
                        || head.is_some()
                            && token.senses.is_verb()
                            && nouns::kind_of_noun(word).is_none()
                }
                _ => false,
            };
            if is_stop {
                break;
            }
            let can_be_head =
                token.form == Form::Lower && !is_degree(word) && !word.ends_with("ly");
            if can_be_head {
                head = Some(here);
            } else if token.form != Form::Lower {
                head = None;
            }
        }
        let head = head?;
        let word = self.word(head);
        let is_empty =
            ["one", "part", "kind", "type", "form", "number", "example", "result", "name"];
        let is_relative = family(word).is_some() || word.ends_with("est") || word == "elder";
        if is_empty.contains(&word) || word.len() < 3 || is_relative {
            return None;
        }
        let before = head.checked_sub(1).filter(|before| *before >= at && self.is_noun(*before));
        Some((before.unwrap_or(head), head))
    }

    /// Whether the word can be the first part of a two-word class.
    fn is_noun(&self, at: usize) -> bool {
        let Some(token) = self.token(at).filter(|token| token.form == Form::Lower) else {
            return false;
        };
        let word = token.text(self.text);
        let adjective = ["al", "ic", "ive", "ous", "est", "ed", "ern", "ant", "ent", "able", "ful"];
        let is_adjective = adjective.iter().any(|end| word.ends_with(end));
        let is_common = [
            "former", "popular", "small", "large", "major", "new", "old", "close", "young",
            "great", "early", "late", "main", "famous", "leading", "senior", "minor", "prolific",
            "big",
        ];
        !is_adjective && !is_common.contains(&word) && !token.senses.is_grammar() && word.len() > 2
    }

    fn state_class(&mut self, subject: usize, first: usize, head: usize) {
        let (start, end) = (self.items[first].token, self.items[head].token);
        if let Some(kind) = nouns::kind_of_noun(self.word(head)) {
            self.entities.vote(subject, kind, 12);
        }
        let name = &self.text[self.tokens[start].start..self.tokens[end].end];
        if let Some(class) = self.entities.named(name) {
            self.entities.vote(class, EntityKind::Term, 1);
            self.state(subject, Predicate::IsA, class);
        }
    }

    /// Reads "X's wife Y" and "his father was Y": a kinship noun between two names.
    pub(super) fn read_owners(&mut self) {
        for at in 0..self.items.len() {
            let Some(owner) = self.entity(at).filter(|_| self.items[at].is_owner) else { continue };
            self.state_owned(owner, at + 1);
            let mut noun = at + 1;
            while noun < at + 4 && self.is_filling(noun) {
                noun += 1;
            }
            let Some((predicate, is_reversed)) = family(self.word(noun)) else { continue };
            let mut object = noun + 1;
            while matches!(self.word(object), "," | "is" | "was" | "named" | "called" | "the") {
                object += 1;
            }
            let Some(object) = self.entity(object) else { continue };
            let ends = if is_reversed { [object, owner] } else { [owner, object] };
            if predicate != Predicate::DirectedBy {
                ends.into_iter().for_each(|end| self.entities.vote(end, EntityKind::Person, 4));
            }
            self.state(ends[0], predicate, ends[1]);
        }
    }

    /// Reads "IBM's Selectric" and "the church's General Board".
    fn state_owned(&mut self, owner: usize, at: usize) {
        let Some(owned) = self.entity(at) else { return };
        if self.entities.kind(owner) != EntityKind::Organization {
            return;
        }
        match self.entities.kind(owned) {
            EntityKind::Organization => self.state(owned, Predicate::PartOf, owner),
            EntityKind::Product => self.state(owned, Predicate::ProducedBy, owner),
            _ => {}
        }
    }

    fn is_filling(&self, at: usize) -> bool {
        let Some(token) = self.token(at) else { return false };
        token.form == Form::Lower && family(token.text(self.text)).is_none()
    }

    /// Reads "X, a novelist" and "X, the capital of Y": the class of X between commas.
    pub(super) fn read_appositions(&mut self) {
        for at in 0..self.items.len() {
            let Some(subject) = self.entity(at).filter(|_| !self.items[at].is_owner) else {
                continue;
            };
            let comma = self.behind_brackets(at + 1);
            let is_aside = self.word(comma) == "," && self.is_article(comma + 1);
            if !is_aside || self.is_date(subject) {
                continue;
            }
            let Some((first, head)) = self.noun_phrase(comma + 2) else { continue };
            let is_closed =
                ["", ",", ".", ")", ";", "of", "in", "from", "for", "who", "which", "that"]
                    .contains(&self.word(head + 1));
            if is_closed && nouns::kind_of_noun(self.word(head)).is_some() {
                self.state_class(subject, first, head);
            }
        }
    }

    /// Reads "Dhaka, Bangladesh" anywhere in the sentence.
    pub(super) fn read_places(&mut self) {
        for at in 0..self.items.len() {
            let (Some(inner), Some(outer)) = (self.entity(at), self.entity(at + 2)) else {
                continue;
            };
            let is_owner = self.items[at].is_owner || self.items[at + 2].is_owner;
            let [inner_size, outer_size] =
                [inner, outer].map(|place| words::place_size(self.entities.key(place)));
            let is_larger = match (inner_size, outer_size) {
                (None | Some(words::PlaceSize::City), Some(words::PlaceSize::City)) => false,
                (inner, Some(outer)) => inner.is_none_or(|inner| inner < outer),
                (_, None) => false,
            };
            let is_place = self.entities.kind(inner) == EntityKind::Location;
            let is_listed = inner_size.is_none() && self.goes_on(at + 2, outer_size);
            if self.word(at + 1) == "," && is_larger && is_place && !is_owner && !is_listed {
                self.state(inner, Predicate::LocatedIn, outer);
            }
        }
    }

    /// Whether a list continues after the place at an item with one that is not larger.
    fn goes_on(&self, at: usize, size: Option<words::PlaceSize>) -> bool {
        let (next, is_last) = match (self.word(at + 1), self.word(at + 2)) {
            (",", "and" | "or") => (at + 3, true),
            (",", _) => (at + 2, false),
            ("and" | "or", _) => (at + 2, true),
            _ => return false,
        };
        let next = self.entity(next).map(|next| words::place_size(self.entities.key(next)));
        next.is_some_and(|next| next <= size && (is_last || next.is_some()))
    }

    /// Reads a verb between the subject and the next name, if no phrase has said anything more
    /// specific.
    pub(super) fn read_verbs(&mut self) {
        for at in 1..self.items.len() {
            if !self.is_verb(at) || is_copula(self.word(at)) {
                continue;
            }
            let Some(subject) = self.subject(at) else { continue };
            let is_near = |item: usize| self.entity(item) == Some(subject);
            let from = (0..at).rev().take(VERB_GAP_MAX).find(|item| self.entity(*item).is_some());
            let is_direct = from.is_some_and(is_near);
            let to = (at + 1..self.items.len()).take(VERB_GAP_MAX).find(|item| {
                self.entity(*item).is_some() || matches!(self.word(*item), ";" | "," | ":" | ".")
            });
            let Some(object) = to.and_then(|item| self.entity(item)) else { continue };
            let between = at + 1..to.unwrap_or(at);
            let steps = between.filter(|item| is_preposition(self.word(*item))).count();
            let is_known = self.found.iter().any(|one| {
                let ends = [one.source, one.target];
                ends.contains(&subject) && ends.contains(&object)
            });
            if is_direct && steps <= 1 && !is_known && !self.is_date(object) && subject != object {
                self.state(subject, Predicate::RelatedTo, object);
            }
        }
    }
}

/// Whether the word is a function word that may occur inside a noun phrase.
fn is_degree(word: &str) -> bool {
    [
        "first", "second", "third", "fourth", "fifth", "last", "two", "three", "most", "least",
        "more", "very", "former", "well", "not", "also", "as",
    ]
    .contains(&word)
}

fn is_participle(word: &str) -> bool {
    let ends = ["ed", "ing", "written", "made"].iter().any(|end| word.ends_with(end));
    ends || matches!(word, "set" | "shot" | "held" | "built" | "led" | "born" | "told" | "sung")
}

/// The relation between an owner and the person that a kinship noun denotes, and whether it is
/// reversed.
fn family(noun: &str) -> Option<(Predicate, bool)> {
    Some(match noun {
        "wife" | "husband" | "spouse" | "widow" => (Predicate::SpouseOf, false),
        "father" | "mother" | "parents" => (Predicate::ChildOf, false),
        "son" | "daughter" | "child" | "children" | "sons" | "daughters" => {
            (Predicate::ChildOf, true)
        }
        "brother" | "sister" | "brothers" | "sisters" => (Predicate::SiblingOf, false),
        "uncle" | "aunt" | "nephew" | "niece" | "cousin" | "grandfather" | "grandmother"
        | "grandson" | "granddaughter" => (Predicate::RelativeOf, false),
        _ => return None,
    })
}
