//! From the text of a chunk to its graph.

use std::ops::Range;

use crate::code::{self, Role};
use crate::entities::Entities;
use crate::kinds;
use crate::lines::{Block, blocks};
use crate::names::{NameSpan, Surroundings, names};
use crate::relations::{Item, Reading, Statement};
use crate::row::{
    CONTEXT_BYTES_MAX, EntityKind, Predicate, ROW_TRIPLETS_MAX, RowGraph, RowTriplet,
};
use crate::sentences::sentences;
use crate::tokens::{Token, tokens};

/// Maximum bytes read of a chunk.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// Extracts the graph of one chunk: its entities, and the relations that its sentences state.
///
/// `title` is the title of the source. If it is a name, it becomes the first entity, to which
/// pronouns refer. The result depends on nothing but the two texts.
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

/// The context of a run of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnitKind {
    Sentence,
    Heading,
    /// The value of a field; the range is the field's name.
    Value(Range<usize>),
    /// A table cell.
    Cell,
    /// A table cell above the header rule.
    Header,
}

/// A run of tokens and the names in it.
pub(super) struct TextUnit {
    pub kind: UnitKind,
    pub tokens: Range<usize>,
    pub names: Vec<NameSpan>,
    /// The entity of each name.
    pub entities: Vec<Option<usize>>,
}

/// A chunk while it is read.
#[derive(Default)]
pub(super) struct Chunk<'a> {
    pub text: &'a str,
    pub tokens: Vec<Token>,
    pub units: Vec<TextUnit>,
    /// Table rows as ranges of units, without the rule below a header.
    pub rows: Vec<Range<usize>>,
    pub code: Vec<Range<usize>>,
    pub entities: Entities,
    /// The entity that the chunk is about.
    pub main: Option<usize>,
    /// The words of that entity's name.
    pub title: Vec<String>,
    pub triplets: Vec<(Statement, Range<usize>)>,
}

impl<'a> Chunk<'a> {
    fn read(text: &'a str) -> Self {
        let mut chunk = Self { text, ..Self::default() };
        for block in blocks(text) {
            match block {
                Block::Prose(range) => chunk.add_prose(range),
                Block::Heading(range) => chunk.add(range, UnitKind::Heading),
                Block::Field { name, value } => chunk.add(value, UnitKind::Value(name)),
                Block::Row(cells) => chunk.add_row(cells),
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
            self.units.push(unit(UnitKind::Sentence, tokens));
        }
    }

    pub(super) fn add(&mut self, range: Range<usize>, kind: UnitKind) {
        let first = self.tokens.len();
        tokens(self.text, range.start, range.end, &mut self.tokens);
        self.units.push(unit(kind, first..self.tokens.len()));
    }

    fn name_all(&mut self) {
        let mut around = Surroundings { title: &self.title, ..Surroundings::default() };
        for unit in &self.units {
            if unit.kind == UnitKind::Sentence {
                around.note(self.text, &self.tokens[unit.tokens.clone()]);
            }
        }
        around.settle();
        for unit in &mut self.units {
            let sentence = &self.tokens[unit.tokens.clone()];
            let is_heading = matches!(unit.kind, UnitKind::Heading | UnitKind::Header);
            unit.names = names(self.text, sentence, &around, is_heading);
            unit.entities = vec![None; unit.names.len()];
        }
        self.name_subject();
        self.name_acronyms();
        // Long names first, so that short forms can refer to them.
        for is_short in [false, true] {
            for unit in 0..self.units.len() {
                self.name_unit(unit, is_short);
            }
        }
    }

    fn name_unit(&mut self, at: usize, is_short: bool) {
        let unit = &mut self.units[at];
        let sentence = &self.tokens[unit.tokens.clone()];
        for (found, slot) in unit.names.iter().zip(&mut unit.entities) {
            let name = &self.text[found.bytes.clone()];
            let is_date = found.kind == Some(EntityKind::Date);
            if (!name.contains(' ') && !is_date) != is_short {
                continue;
            }
            // "in Strathmore" is a place, even after a person of that name.
            let before = found.tokens.start.checked_sub(1).map(|at| sentence[at].text(self.text));
            let is_place = matches!(before, Some("in" | "at" | "near" | "from" | "In" | "of"));
            let known = if is_date { None } else { self.entities.known(name, !is_place) };
            let Some(entity) = known.or_else(|| self.entities.named(name)) else { continue };
            if known.is_some() {
                self.entities.alias(entity, name);
            }
            kinds::judge(self.text, sentence, found, &mut self.entities, entity);
            if self.entities.kind(entity) == EntityKind::Person {
                self.entities.shorten(entity);
            }
            self.entities.shorten_company(entity);
            *slot = Some(entity);
        }
    }

    fn relate(&mut self) {
        for at in 0..self.units.len() {
            if self.units[at].kind == UnitKind::Sentence {
                self.relate_sentence(at);
            }
        }
        self.relate_fields();
        self.relate_rows();
    }

    fn relate_sentence(&mut self, at: usize) {
        let items = self.items(at);
        let unit = &self.units[at];
        let mut found = Vec::new();
        let sentence = &self.tokens[unit.tokens.clone()];
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

    /// Builds the sequence of words, punctuation and names of a sentence; leading pronouns refer to
    /// the main entity.
    fn items(&self, at: usize) -> Vec<Item> {
        let unit = &self.units[at];
        let sentence = &self.tokens[unit.tokens.clone()];
        let mut items = Vec::with_capacity(sentence.len());
        let mut names = unit.names.iter().zip(&unit.entities).peekable();
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

    /// States the declarations in code lines. Functions belong to the type declared last.
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
            let end = context.end.min(context.start + CONTEXT_BYTES_MAX);
            let context = context.start as u32..self.text.floor_char_boundary(end) as u32;
            let (source, target) = (source as u8, target as u8);
            let is_same = |one: &RowTriplet| {
                (one.source, one.target, one.predicate) == (source, target, predicate)
            };
            let is_full = triplets.len() == ROW_TRIPLETS_MAX;
            if source != target && !is_full && !triplets.iter().any(is_same) {
                triplets.push(RowTriplet { source, target, predicate, context });
            }
        }
        RowGraph { entities: self.entities.finish(), triplets }
    }
}

fn unit(kind: UnitKind, tokens: Range<usize>) -> TextUnit {
    TextUnit { kind, tokens, names: Vec::new(), entities: Vec::new() }
}
