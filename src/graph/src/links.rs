//! Conditions on the words between a phrase and its ends that must hold for the phrase to state
//! anything.

use crate::nouns;
use crate::patterns::Pattern;
use crate::relations::{Reading, is_copula, is_preposition};
use crate::row::{EntityKind, Predicate};
use crate::tokens::Form;
use crate::words;

/// Maximum items between a noun and the name that it describes.
const LINK_ITEMS_MAX: usize = 8;

impl Reading<'_> {
    /// Whether the phrase from item `from` to `to` states its relation: a participle does not if it
    /// is passive or an adjective, nor an office if somebody else holds it.
    pub(super) fn is_stated(&self, pattern: &Pattern, from: usize, to: usize) -> bool {
        use Predicate::*;
        let is_word = to == from + 1 && !pattern.wants_date();
        if is_word && !matches!(pattern.predicate, AlsoKnownAs | SpouseOf | Won) {
            let is_adverb = |at: usize| self.word(at).ends_with("ly") || self.word(at) == "also";
            let before = (0..from).rev().find(|at| !is_adverb(*at));
            let word = before.map_or("", |before| self.word(before));
            if is_be(word) || words::is_article(&word.to_lowercase()) {
                return false;
            }
        }
        let is_office = pattern.predicate == LeaderOf && !self.is_verb(from);
        let is_part = pattern.predicate == LocatedIn
            && nouns::kind_of_noun(self.word(from)) == Some(EntityKind::Location);
        if (is_office || is_part) && !self.is_linked(from) {
            return false;
        }
        match pattern.predicate {
            Acquired | OwnedBy | CreatedBy | FoundedBy | Contains | ChildOf => {
                self.object_item(to).is_none_or(|object| !self.modifies(object))
            }
            AlsoKnownAs if !pattern.is_reversed => self.is_name_next(to),
            _ => true,
        }
    }

    /// Whether a noun at item `at` describes a name: it follows a copula, a comma or the name
    /// itself. "the main village of the tribe" does not describe a name.
    fn is_linked(&self, at: usize) -> bool {
        for here in (0..at).rev().take(LINK_ITEMS_MAX) {
            match self.word(here) {
                "" | "," | "(" | "as" => return true,
                word if is_copula(word) || is_made(word) => return true,
                word if is_preposition(&word.to_lowercase()) || self.is_verb(here) => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether the name at an item merely modifies a noun after it: "an East Coast headquarters".
    /// It does not if the noun denotes its kind: "the Java language" is Java.
    pub(super) fn modifies(&self, at: usize) -> bool {
        let mut head = None;
        for here in at + 1..self.items.len().min(at + 4) {
            let Some(token) = self.token(here).filter(|token| token.form == Form::Lower) else {
                break;
            };
            let word = token.text(self.text);
            let is_noun = !token.senses.is_grammar()
                && !token.senses.is_verb()
                && !["ly", "ed", "ing"].iter().any(|end| word.ends_with(end));
            if !is_noun {
                break;
            }
            head = Some(word);
        }
        head.is_some_and(|head| {
            matches!(nouns::kind_of_noun(head), None | Some(EntityKind::Person))
        })
    }

    /// Returns the thing that the phrase at item `at` gives another name to: the name right before
    /// it, with only a copula, adverbs, a comma or brackets in between.
    pub(super) fn renamed(&self, at: usize) -> Option<usize> {
        let is_naming = matches!(self.word(at), "called" | "nicknamed" | "renamed");
        let (mut is_apart, mut has_copula) = (false, false);
        let mut here = at;
        let entity = loop {
            here = here.checked_sub(1)?;
            if let Some(entity) = self.entity(here) {
                break entity;
            }
            match self.word(here) {
                "," | "(" => is_apart = true,
                ")" => here = self.opening(here)?,
                word if is_be(word) || matches!(word, "has" | "had" | "have") => has_copula = true,
                word if is_naming_adverb(word) => {}
                _ => return None,
            }
        };
        let article = |at: usize| words::is_article(&self.word(at).to_lowercase());
        let before = here.checked_sub(1).map(|at| at.saturating_sub(usize::from(article(at))));
        let word = before.map_or("", |before| self.word(before)).to_lowercase();
        let is_led = is_preposition(&word) || word.ends_with("ing");
        // "Gates called the shop", "Powell and Pressburger, known as", "a version of X, called".
        let is_other = is_naming && !is_apart && !has_copula
            || matches!(&*word, "and" | "or" | "&")
            || is_led && !is_apart;
        if is_other || self.items[here].is_owner || self.is_date(entity) {
            return None;
        }
        // "Ann, Duchess of Bedford, known as": a name after "of" is part of the thing being named.
        match &*word {
            "of" => self.subject(at).filter(|_| !self.has_verb(0..here)),
            _ => (!is_led || !is_naming).then_some(entity),
        }
    }

    /// Whether a name follows directly, apart from an article or a quotation mark.
    fn is_name_next(&self, at: usize) -> bool {
        let is_filling = |word: &str| {
            words::is_article(word) || matches!(word, "simply" | "just" | "\"" | "\u{201c}")
        };
        let name = (at..self.items.len()).take(3).find(|at| !is_filling(self.word(*at)));
        name.is_some_and(|name| self.entity(name).is_some())
    }

    pub(super) fn is_person(&self, entity: usize) -> bool {
        self.entities.kind(entity) == EntityKind::Person
    }
}

fn is_be(word: &str) -> bool {
    matches!(word, "is" | "was" | "are" | "were" | "be" | "been" | "being")
}

/// Whether a participle confers an office on somebody.
fn is_made(word: &str) -> bool {
    matches!(word, "elected" | "appointed" | "crowned" | "proclaimed" | "named" | "made")
}

fn is_naming_adverb(word: &str) -> bool {
    word.ends_with("ly")
        || [
            "also", "often", "better", "best", "most", "now", "then", "once", "sometimes", "or",
            "come", "came", "to",
        ]
        .contains(&word)
}
