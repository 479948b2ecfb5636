//! The entities of one chunk while it is read, merging names that mean the same thing.

use std::collections::HashMap;

use crate::key::{in_one_line, key};
use crate::row::{ENTITY_ALIASES_MAX, EntityKind, NAME_BYTES_MAX, ROW_ENTITIES_MAX, RowEntity};
use crate::words;

/// An entity with the votes for each kind.
#[derive(Debug, Clone)]
struct Draft {
    key: String,
    name: String,
    aliases: Vec<String>,
    votes: [u16; EntityKind::ALL.len()],
}

/// The entities found so far, indexed by key and by short form.
#[derive(Debug, Default)]
pub(super) struct Entities {
    drafts: Vec<Draft>,
    by_key: HashMap<String, usize>,
    /// Last words of persons' names; `None` if two persons share one.
    by_surname: HashMap<String, Option<usize>>,
    /// Company names without their legal form.
    by_company: HashMap<String, usize>,
}

impl Entities {
    /// Returns the entity with this name, creating it if needed. `None` if the name has no key, or
    /// the row is full.
    pub(super) fn named(&mut self, name: &str) -> Option<usize> {
        let name = name.trim();
        let key: String = key(name).into();
        if key.is_empty() || name.len() > NAME_BYTES_MAX {
            return None;
        }
        if let Some(at) = self.by_key.get(&key) {
            return Some(*at);
        }
        if self.drafts.len() == ROW_ENTITIES_MAX {
            return None;
        }
        let at = self.drafts.len();
        self.by_key.insert(key.clone(), at);
        let votes = [0; EntityKind::ALL.len()];
        self.drafts.push(Draft { key, name: in_one_line(name), aliases: Vec::new(), votes });
        Some(at)
    }

    /// Returns the entity with this name or, if the name can be a person's, with this short form.
    pub(super) fn known(&self, name: &str, can_be_person: bool) -> Option<usize> {
        let key = key(name);
        let is_single = can_be_person && !key.as_str().contains(' ');
        let surname = || self.by_surname.get(key.as_str()).copied().flatten();
        let known = self.by_key.get(key.as_str()).copied();
        let company = || {
            let short = company(key.as_str());
            let long = || self.by_company.get(key.as_str()).copied();
            short.and_then(|short| self.by_key.get(short).copied()).or_else(long)
        };
        known.or_else(|| if is_single { surname() } else { None }).or_else(company)
    }

    /// Registers the company's name without its legal form as a short form.
    pub(super) fn shorten_company(&mut self, at: usize) {
        let Some(short) = company(&self.drafts[at].key) else { return };
        if short.len() > 2 && !words::is_ordinary(short) && !words::is_place(short) {
            self.by_company.entry(short.to_owned()).or_insert(at);
        }
    }

    /// Registers the last word of a person's name as a short form.
    pub(super) fn shorten(&mut self, at: usize) {
        let Some((_, surname)) = self.drafts[at].key.rsplit_once(' ') else { return };
        let is_roman = surname.bytes().all(|b| b"ivx".contains(&b));
        let is_origin = self.drafts[at].key.contains(" of ");
        if surname.len() < 3 || is_roman || is_origin || words::is_ordinary(surname) {
            return;
        }
        let owner = self.by_surname.entry(surname.to_owned()).or_insert(Some(at));
        if *owner != Some(at) {
            *owner = None;
        }
    }

    /// Adds another name of an entity.
    pub(super) fn alias(&mut self, at: usize, name: &str) {
        let key: String = key(name).into();
        let draft = &mut self.drafts[at];
        let is_new = !key.is_empty() && key != draft.key && !draft.aliases.contains(&key);
        if is_new && draft.aliases.len() < ENTITY_ALIASES_MAX {
            draft.aliases.push(key.clone());
            self.by_key.entry(key).or_insert(at);
        }
    }

    /// Adds `weight` to the votes for a kind.
    pub(super) fn vote(&mut self, at: usize, kind: EntityKind, weight: u16) {
        let vote = &mut self.drafts[at].votes[kind as usize];
        *vote = vote.saturating_add(weight);
    }

    /// The kind with the most votes; the first one if tied.
    pub(super) fn kind(&self, at: usize) -> EntityKind {
        let votes = &self.drafts[at].votes;
        let best = (0..votes.len()).rev().max_by_key(|kind| votes[*kind]);
        match best {
            Some(best) if votes[best] > 0 => EntityKind::ALL[best],
            _ => EntityKind::Other,
        }
    }

    /// The key of an entity.
    pub(super) fn key(&self, at: usize) -> &str {
        &self.drafts[at].key
    }

    /// Converts the entities to their form in a row.
    pub(super) fn finish(self) -> Vec<RowEntity> {
        let kinds: Vec<EntityKind> = (0..self.drafts.len()).map(|at| self.kind(at)).collect();
        let rows = self.drafts.into_iter().zip(kinds).map(|(draft, kind)| {
            let Draft { key, name, mut aliases, .. } = draft;
            aliases.sort_unstable();
            RowEntity { key, name, kind, aliases }
        });
        rows.collect()
    }
}

/// The key of a company without its legal form.
fn company(key: &str) -> Option<&str> {
    let (short, form) = key.rsplit_once(' ')?;
    let forms = ["corporation", "corp", "incorporated", "inc", "limited", "ltd", "llc", "gmbh"];
    (forms.contains(&form) || matches!(form, "plc" | "ag" | "sa" | "co")).then_some(short)
}
