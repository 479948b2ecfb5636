//! From the text of a chunk to its graph.

use std::ops::Range;

use crate::graph::code::{self, Role};
use crate::graph::entities::Entities;
use crate::graph::key::key;
use crate::graph::kinds;
use crate::graph::lines::{Block, blocks};
use crate::graph::names::{Found, Surroundings, names};
use crate::graph::patterns::field_predicate;
use crate::graph::relations::{Item, Reading, Statement};
use crate::graph::row::{
    CONTEXT_BYTES_MAX, EntityKind, Predicate, ROW_TRIPLETS_MAX, RowGraph, RowTriplet,
};
use crate::graph::sentences::sentences;
use crate::graph::tokens::{Form, Token, tokens};

/// Bytes of a chunk that are read.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// What one chunk says: its entities, and how its sentences relate them.
///
/// `title` is that of the source; it is the first entity where it is a name, and what pronouns
/// mean where the text speaks of it. The result depends on nothing but the two texts.
pub fn extract(title: &str, text: &str) -> RowGraph {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    let mut chunk = Chunk::read(text);
    if !chunk.name_title(title) {
        chunk.name_heading();
    }
    chunk.name_all();
    chunk.relate();
    chunk.read_code();
    chunk.finish()
}

/// Where a run of tokens stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Sentence,
    Heading,
    /// The value of a field; its name.
    Value(Range<usize>),
    /// A cell: its row and column.
    Cell(usize, usize),
}

struct Passage {
    place: Place,
    tokens: Range<usize>,
    names: Vec<Found>,
    /// The entity of each name.
    entities: Vec<Option<usize>>,
}

struct Chunk<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    passages: Vec<Passage>,
    code: Vec<Range<usize>>,
    entities: Entities,
    /// The entity that the chunk is about, and whether the text itself speaks of it.
    main: Option<usize>,
    /// The words of its name.
    title: Vec<String>,
    triplets: Vec<(Statement, Range<usize>)>,
}

impl<'a> Chunk<'a> {
    fn read(text: &'a str) -> Self {
        let mut chunk = Self {
            text,
            tokens: Vec::new(),
            passages: Vec::new(),
            code: Vec::new(),
            entities: Entities::default(),
            main: None,
            title: Vec::new(),
            triplets: Vec::new(),
        };
        for (row, block) in blocks(text).into_iter().enumerate() {
            match block {
                Block::Prose(range) => chunk.add_prose(range),
                Block::Heading(range) => chunk.add(range, Place::Heading),
                Block::Field { name, value } => chunk.add(value, Place::Value(name)),
                Block::Row(cells) => {
                    for (column, cell) in cells.into_iter().enumerate() {
                        chunk.add(cell, Place::Cell(row, column));
                    }
                }
                Block::Code(range) => chunk.code.push(range),
            }
        }
        chunk
    }

    fn add_prose(&mut self, range: Range<usize>) {
        let first = self.tokens.len();
        tokens(self.text, range.start, range.end, &mut self.tokens);
        for sentence in sentences(self.text, &self.tokens[first..]) {
            let tokens = first + sentence.start..first + sentence.end;
            self.passages.push(passage(Place::Sentence, tokens));
        }
    }

    fn add(&mut self, range: Range<usize>, place: Place) {
        let first = self.tokens.len();
        tokens(self.text, range.start, range.end, &mut self.tokens);
        self.passages.push(passage(place, first..self.tokens.len()));
    }

    /// A text without a title may begin with one.
    fn name_heading(&mut self) {
        let Some(first) = self.passages.first().filter(|one| one.place == Place::Heading) else {
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

    /// The title is the main entity, if it is a name at all.
    fn name_title(&mut self, title: &str) -> bool {
        let title = title.trim();
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

    fn name_all(&mut self) {
        let mut around = Surroundings { title: &self.title, ..Surroundings::default() };
        for passage in &self.passages {
            if passage.place == Place::Sentence {
                around.note(self.text, &self.tokens[passage.tokens.clone()]);
            }
        }
        around.settle();
        for passage in &mut self.passages {
            let sentence = &self.tokens[passage.tokens.clone()];
            let is_heading = passage.place == Place::Heading;
            passage.names = names(self.text, sentence, &around, is_heading);
            passage.entities = vec![None; passage.names.len()];
        }
        self.name_subject();
        self.name_acronyms();
        // Long names first, so that short forms find them.
        for is_short in [false, true] {
            for passage in 0..self.passages.len() {
                self.name_passage(passage, is_short);
            }
        }
    }

    /// Other forms of the title's name: that with which the text begins, and initials. A title of
    /// several words that the text never repeats is that of a work.
    fn name_subject(&mut self) {
        let Some(main) = self.main else { return };
        let title = key(&self.title.join(" "));
        let whole = self.title.split(|word| word == ",").next().unwrap_or_default().join(" ");
        let front = key(&whole);
        let mut is_named = false;
        let mut is_first = true;
        for passage in &self.passages {
            if passage.place != Place::Sentence {
                continue;
            }
            for found in &passage.names {
                let name = &self.text[found.bytes.clone()];
                let other = key(name);
                let leads = is_first && found.tokens.start <= 1;
                is_first = false;
                is_named |= other == title;
                let is_same = other == front
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

    /// "International Business Machines (IBM)", "polymerase chain reaction (PCR)".
    fn name_acronyms(&mut self) {
        for at in 0..self.passages.len() {
            let tokens = self.passages[at].tokens.clone();
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

    fn name_passage(&mut self, at: usize, is_short: bool) {
        let passage = &mut self.passages[at];
        let sentence = &self.tokens[passage.tokens.clone()];
        for (found, slot) in passage.names.iter().zip(&mut passage.entities) {
            let name = &self.text[found.bytes.clone()];
            let is_single = !name.contains(' ') && found.kind != Some(EntityKind::Date);
            if is_single != is_short {
                continue;
            }
            let is_date = found.kind == Some(EntityKind::Date);
            // "in Strathmore" is a place, even after a person called so.
            let before = found.tokens.start.checked_sub(1).map(|at| sentence[at].text(self.text));
            let is_place = matches!(before, Some("in" | "at" | "near" | "from" | "In" | "of"));
            let known = match is_date {
                true => None,
                false => self.entities.known(name, !is_place),
            };
            let Some(entity) = known.or_else(|| self.entities.named(name)) else { continue };
            if known.is_some() {
                self.entities.alias(entity, name);
            }
            kinds::judge(self.text, sentence, found, &mut self.entities, entity);
            if self.entities.kind(entity) == EntityKind::Person {
                self.entities.shorten(entity);
            }
            *slot = Some(entity);
        }
    }

    fn relate(&mut self) {
        for at in 0..self.passages.len() {
            match self.passages[at].place.clone() {
                Place::Sentence => self.relate_sentence(at),
                Place::Value(name) => self.relate_value(at, name),
                Place::Heading | Place::Cell(..) => {}
            }
        }
    }

    fn relate_sentence(&mut self, at: usize) {
        let items = self.items(at);
        let passage = &self.passages[at];
        let mut found = Vec::new();
        let sentence = &self.tokens[passage.tokens.clone()];
        Reading {
            text: self.text,
            tokens: sentence,
            items: &items,
            entities: &mut self.entities,
            found: &mut found,
        }
        .read();
        let (Some(first), Some(last)) = (sentence.first(), sentence.last()) else { return };
        let context = first.start..last.end;
        self.triplets.extend(found.into_iter().map(|one| (one, context.clone())));
    }

    /// The words, marks and names of a sentence; pronouns in front stand for the main entity.
    fn items(&self, at: usize) -> Vec<Item> {
        let passage = &self.passages[at];
        let sentence = &self.tokens[passage.tokens.clone()];
        let mut items = Vec::with_capacity(sentence.len());
        let mut names = passage.names.iter().zip(&passage.entities).peekable();
        let mut token = 0;
        while token < sentence.len() {
            match names.peek() {
                Some((found, entity)) if found.tokens.start == token => {
                    let end = found.tokens.end;
                    let is_owner = sentence[end - 1].is_owner;
                    items.push(Item { token, entity: **entity, is_owner });
                    token = end;
                    names.next();
                }
                _ => {
                    let (entity, is_owner) = self.pronoun(sentence, token);
                    items.push(Item { token, entity, is_owner });
                    token += 1;
                }
            }
        }
        items
    }

    fn pronoun(&self, sentence: &[Token], at: usize) -> (Option<usize>, bool) {
        let Some(main) = self.main.filter(|_| at < 2 || sentence[at].senses.is_grammar()) else {
            return (None, false);
        };
        let is_person = matches!(self.entities.kind(main), EntityKind::Person);
        let is_thing = !is_person && self.entities.kind(main) != EntityKind::Other;
        match sentence[at].text(self.text) {
            "He" | "She" if is_person && at == 0 => (Some(main), false),
            "His" | "Her" if is_person && at == 0 => (Some(main), true),
            "It" if is_thing && at == 0 => (Some(main), false),
            "Its" if is_thing && at == 0 => (Some(main), true),
            _ => (None, false),
        }
    }

    fn relate_value(&mut self, at: usize, name: Range<usize>) {
        let Some(main) = self.main else { return };
        let predicate = field_predicate(&self.text[name.clone()]);
        let passage = &self.passages[at];
        let Some(last) = passage.tokens.clone().last() else { return };
        let context = name.start..self.tokens[last].end;
        for target in passage.entities.iter().flatten().copied().filter(|one| *one != main) {
            let statement = Statement { source: main, target, predicate };
            self.triplets.push((statement, context.clone()));
        }
    }

    /// What lines of programs declare. Functions belong to the type that was declared last.
    fn read_code(&mut self) {
        let mut holder = None;
        for line in std::mem::take(&mut self.code) {
            let mut named = None;
            for (range, role) in code::symbols(&self.text[line.clone()]) {
                let range = line.start + range.start..line.start + range.end;
                let Some(entity) = self.entities.named(&self.text[range]) else { continue };
                self.entities.vote(entity, EntityKind::Identifier, 9);
                let statement = match role {
                    Role::Holder => {
                        holder = Some(entity);
                        None
                    }
                    Role::Function => holder.map(|holder| (holder, Predicate::Defines, entity)),
                    Role::Method => named.map(|named| (named, Predicate::Defines, entity)),
                    Role::Base => holder.map(|holder| (holder, Predicate::Extends, entity)),
                    Role::Use => None,
                };
                named = Some(entity);
                if let Some((source, predicate, target)) = statement {
                    let statement = Statement { source, target, predicate };
                    self.triplets.push((statement, line.clone()));
                }
            }
        }
    }

    fn finish(self) -> RowGraph {
        let mut triplets: Vec<RowTriplet> = Vec::new();
        for (Statement { source, target, predicate }, context) in self.triplets {
            if triplets.len() == ROW_TRIPLETS_MAX {
                break;
            }
            let end = context.end.min(context.start + CONTEXT_BYTES_MAX);
            let end = self.text.floor_char_boundary(end);
            let context = context.start as u32..end as u32;
            let (source, target) = (source as u8, target as u8);
            if source == target {
                continue;
            }
            let is_known = triplets
                .iter()
                .any(|one| (one.source, one.target, one.predicate) == (source, target, predicate));
            if !is_known {
                triplets.push(RowTriplet { source, target, predicate, context });
            }
        }
        RowGraph { entities: self.entities.finish(), triplets }
    }
}

/// Whether a name with which a text begins is another form of its title: the same first and last
/// word, or the same words up to some place.
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

/// The first of the last words whose initials are the letters of an acronym. Small words between
/// them may be left out of it.
fn expansion(text: &str, words: &[Token], letters: &str) -> Option<usize> {
    let mut wanted: Vec<char> = letters.chars().filter(|c| c.is_alphabetic()).collect();
    if wanted.len() < 2 {
        return None;
    }
    let mut first = None;
    for (at, token) in words.iter().enumerate().rev().take(2 * wanted.len() + 2) {
        let Some(letter) = wanted.last() else { break };
        let parts = token.text(text).split('-').rev();
        let is_small = token.senses.is_grammar();
        let before = wanted.len();
        let letter = *letter;
        for part in parts {
            let initial = part.chars().next().and_then(|c| c.to_uppercase().next());
            if initial.is_some() && initial == wanted.last().copied() {
                wanted.pop();
            }
        }
        let is_used = wanted.len() < before;
        if !is_used && !(is_small && letter.is_alphabetic()) {
            return None;
        }
        if is_used {
            first = Some(at);
        }
    }
    first.filter(|_| wanted.is_empty())
}

fn passage(place: Place, tokens: Range<usize>) -> Passage {
    Passage { place, tokens, names: Vec::new(), entities: Vec::new() }
}
