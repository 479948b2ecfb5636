//! The main entity of a chunk: the name in its title, other forms of that name, and acronyms.

use crate::extract::{Chunk, UnitKind};
use crate::key::key;
use crate::kinds;
use crate::nouns::senses_of;
use crate::row::EntityKind;
use crate::tokens::{Form, Token, tokens};

impl Chunk<'_> {
    /// Uses the first heading as the title of a text without one.
    pub(super) fn name_heading(&mut self) {
        let Some(first) = self.units.first().filter(|one| one.kind == UnitKind::Heading) else {
            return;
        };
        let words = &self.tokens[first.tokens.clone()];
        let (Some(start), Some(end)) = (words.first(), words.last()) else { return };
        let heading = &self.text[start.start..end.end];
        let is_loud = words.iter().all(|word| word.form == Form::Capitals) && words.len() > 1;
        if start.is_capital() && !is_loud && !heading.ends_with(':') {
            self.name_title(heading);
        }
    }

    /// Makes the title the main entity if it is a name; returns whether it is.
    pub(super) fn name_title(&mut self, title: &str) -> bool {
        let title = without_site(title.trim(), self.text);
        let mut words = Vec::new();
        let plain = title.find('(').filter(|at| *at > 0).map_or(title, |at| &title[..at]);
        tokens(plain, 0, plain.len(), &mut words);
        let letters = key(title).as_str().bytes().filter(|b| b.is_ascii_digit()).count();
        let is_code = words.len() == 1 && (words[0].form == Form::Code || letters > 0);
        if is_code || !words.iter().any(Token::is_word) {
            return false;
        }
        let Some(main) = self.entities.named(title) else { return false };
        let entities = &mut self.entities;
        kinds::judge_title(plain, &words, plain, &mut |kind, weight| {
            entities.vote(main, kind, weight);
        });
        self.main = Some(main);
        self.title = words.iter().map(|word| word.text(plain).to_owned()).collect();
        true
    }

    /// Registers other forms of the title's name: the form that the text begins with, and its
    /// initials. A title of several words that the text never repeats is treated as that of a work.
    pub(super) fn name_subject(&mut self) {
        let Some(main) = self.main else { return };
        let title = key(&self.title.join(" "));
        let whole = self.title.split(|word| word == ",").next().unwrap_or_default().join(" ");
        let front = key(&whole);
        let is_styled = self.title.len() > 1 && senses_of(&self.title[0]).is_honorific();
        let plain = key(&self.title[usize::from(is_styled)..].join(" "));
        let capitals = self.title.iter().filter_map(|word| word.chars().next());
        let initials: String = capitals.filter(|c| c.is_uppercase()).collect();
        let mut is_named = false;
        let mut is_first = true;
        for unit in &self.units {
            if unit.kind != UnitKind::Sentence {
                continue;
            }
            for found in &unit.names {
                let name = &self.text[found.bytes.clone()];
                let other = key(name);
                let leads = is_first && found.tokens.start <= 1;
                is_first = false;
                is_named |= other == title;
                let is_acronym = initials.len() > 2 && name == initials;
                let is_same = other == front
                    || other == plain
                    || is_acronym
                    || leads && is_form(other.as_str(), title.as_str())
                    || name.ends_with(|c: char| c.is_uppercase())
                        && other.as_str().contains(' ')
                        && title.as_str().starts_with(other.as_str());
                if is_same && other != title && !other.as_str().is_empty() {
                    self.entities.alias(main, name);
                    is_named = true;
                }
            }
        }
        let kind = self.entities.kind(main);
        let is_open = matches!(kind, EntityKind::Other | EntityKind::Product | EntityKind::Work);
        if !is_named && self.title.len() > 3 && is_open || self.title.len() > 7 {
            self.entities.vote(main, EntityKind::Work, 9);
        }
    }

    /// Registers acronyms: "International Business Machines (IBM)", "polymerase chain reaction
    /// (PCR)".
    pub(super) fn name_acronyms(&mut self) {
        for at in 0..self.units.len() {
            let tokens = self.units[at].tokens.clone();
            for short in tokens.clone().skip(2) {
                let (open, token) = (&self.tokens[short - 1], &self.tokens[short]);
                let is_enclosed = token.form == Form::Capitals && open.text(self.text) == "(";
                if !is_enclosed {
                    continue;
                }
                let letters = token.text(self.text);
                let words = &self.tokens[tokens.start..short - 1];
                let Some(start) = expansion(self.text, words, letters) else { continue };
                let long = words[start].start..words[words.len() - 1].end;
                let is_term = words[words.len() - 1].form == Form::Lower;
                let Some(entity) = self.entities.named(&self.text[long]) else { continue };
                self.entities.alias(entity, letters);
                if is_term {
                    self.entities.vote(entity, EntityKind::Term, 9);
                }
            }
        }
    }
}

/// Strips the name of the site from a title, if the text only repeats the part before it: "Heron |
/// Birds of the North".
fn without_site<'a>(title: &'a str, text: &str) -> &'a str {
    let separators = [" | ", " - ", " \u{2013} ", " \u{2014} ", " \u{b7} "];
    let cut = separators.iter().filter_map(|separator| title.rfind(separator)).max();
    let Some(front) = cut.map(|cut| title[..cut].trim()) else { return title };
    let is_in_text = front.len() > 2 && text.contains(front) && !text.contains(title);
    if is_in_text { front } else { title }
}

/// Whether a name that begins a text is another form of its title: the same first and last word, or
/// the same leading words.
fn is_form(name: &str, title: &str) -> bool {
    let (mut names, mut titles) = (name.split(' '), title.split(' '));
    let is_same_first = names.next().is_some_and(|first| {
        let given = titles.next().unwrap_or_default();
        let shorter = first.len().min(given.len());
        first == given || shorter >= 3 && first.as_bytes()[..3] == given.as_bytes()[..3]
    });
    let common = name.split(' ').zip(title.split(' ')).take_while(|(a, b)| a == b).count();
    let last = |text: &str| text.rsplit(' ').next().unwrap_or_default().to_owned();
    let has_more = names.next().is_some() && titles.next().is_some();
    is_same_first && has_more && (last(name) == last(title) || common >= 2)
}

/// Returns the first of the trailing words whose initials spell an acronym, which may skip small
/// words between them.
fn expansion(text: &str, words: &[Token], letters: &str) -> Option<usize> {
    let mut wanted: Vec<char> = letters.chars().filter(|c| c.is_alphabetic()).collect();
    if wanted.len() < 2 {
        return None;
    }
    let mut first = None;
    for (at, token) in words.iter().enumerate().rev().take(2 * wanted.len() + 2) {
        if wanted.is_empty() {
            break;
        }
        let parts = token.text(text).split('-').rev();
        let is_small = token.senses.is_grammar();
        let before = wanted.len();
        for part in parts {
            let initial = part.chars().next().and_then(|c| c.to_uppercase().next());
            if initial.is_some() && initial == wanted.last().copied() {
                wanted.pop();
            }
        }
        let is_used = wanted.len() < before;
        if !is_used && !is_small {
            return None;
        }
        if is_used {
            first = Some(at);
        }
    }
    first.filter(|_| wanted.is_empty())
}
