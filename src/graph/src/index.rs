//! Reads the stored section in place.

use std::ops::Range;

use bytes::Bytes;

use crate::format::{COLUMNS, Column, Counts, HEADER_WORDS, NAME_BITS};
use crate::row::{EntityKind, Predicate, RowEntity, RowGraph, RowTriplet};
use crate::strings::{Strings, Titles, equal, landmarks};

/// An entity of one segment: the rank of its key among all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub u32);

/// A triplet of one segment; triplets are numbered by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TripletId(pub u32);

/// A triplet and the entities that it connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TripletView {
    /// The row that states it.
    pub row: u32,
    /// Its source.
    pub source: EntityId,
    /// Its target.
    pub target: EntityId,
    /// The relation.
    pub predicate: Predicate,
    /// The supporting sentence as a byte range of the row's text; empty if the title supports it.
    /// The range is not validated against that text, so readers of the text must check it.
    pub context: Range<u32>,
}

/// The graph section of one segment.
#[derive(Debug, Clone)]
pub struct GraphIndex {
    bytes: Bytes,
    pub(super) counts: Counts,
    starts: [u64; COLUMNS + 1],
    title_landmarks: Box<[u64]>,
}

impl GraphIndex {
    /// Opens a section and checks all of its numbers, so that no later look-up can fail.
    ///
    /// # Errors
    /// The violated rule, as a phrase.
    pub fn open(bytes: Bytes, rows: u32, sources: u32) -> Result<Self, &'static str> {
        let header_bytes = HEADER_WORDS * 4;
        if bytes.len() < header_bytes {
            return Err("the graph is cut");
        }
        let header: &[u32] = bytemuck::try_cast_slice(&bytes[..header_bytes])
            .map_err(|_| "the graph is not aligned")?;
        let counts = Counts::read(header)?;
        if (counts.rows, counts.sources) != (rows, sources) {
            return Err("the graph is of other rows");
        }
        let starts = counts.starts();
        if starts[COLUMNS] * 4 + u64::from(counts.text_bytes) != bytes.len() as u64 {
            return Err("the graph has another length");
        }
        let mut index = Self { bytes, counts, starts, title_landmarks: Box::default() };
        index.check()?;
        index.title_landmarks = landmarks(index.strings(), index.column(Column::TitleKeys));
        Ok(index)
    }

    pub(super) fn column(&self, column: Column) -> &[u32] {
        let (start, end) = (self.starts[column as usize], self.starts[column as usize + 1]);
        bytemuck::cast_slice(&self.bytes[start as usize * 4..end as usize * 4])
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[self.starts[COLUMNS] as usize * 4..]
    }

    /// Returns the range of values that belong to item `at`, according to a column of starts.
    fn group(&self, starts: Column, at: u32) -> Range<usize> {
        let starts = self.column(starts);
        starts[at as usize] as usize..starts[at as usize + 1] as usize
    }

    fn strings(&self) -> Strings<'_> {
        Strings { starts: self.column(Column::StringStarts), text: self.text() }
    }

    fn string(&self, id: u32) -> &str {
        std::str::from_utf8(self.strings().bytes(id)).expect("strings are checked on opening")
    }

    /// Whether nothing is known about any row.
    pub fn is_empty(&self) -> bool {
        self.counts.entities == 0 && self.counts.titles == 0
    }

    /// Returns the graph of a row, as it was added.
    pub fn row(&self, row: u32) -> RowGraph {
        let mentions = self.group(Column::RowStarts, row);
        let entities = mentions.map(|mention| self.row_entity(mention)).collect();
        let triplets = self.group(Column::RowTripletStarts, row);
        RowGraph { entities, triplets: triplets.map(|at| self.row_triplet(at)).collect() }
    }

    fn row_entity(&self, mention: usize) -> RowEntity {
        let entity = self.column(Column::MentionEntities)[mention];
        let (name, kind) = self.mention(mention);
        RowEntity {
            key: self.string(self.column(Column::EntityKeys)[entity as usize]).to_owned(),
            name: name.to_owned(),
            kind,
            aliases: self.aliases(mention).iter().map(|key| self.string(*key).to_owned()).collect(),
        }
    }

    /// The strings of a mention's other keys.
    fn aliases(&self, mention: usize) -> &[u32] {
        let owners = self.column(Column::AliasMentions);
        let first = owners.partition_point(|owner| (*owner as usize) < mention);
        let last = owners.partition_point(|owner| (*owner as usize) <= mention);
        &self.column(Column::AliasKeys)[first..last]
    }

    fn mention(&self, mention: usize) -> (&str, EntityKind) {
        let word = self.column(Column::MentionNames)[mention];
        let kind = EntityKind::ALL[(word >> NAME_BITS) as usize];
        (self.string(word & ((1 << NAME_BITS) - 1)), kind)
    }

    fn row_triplet(&self, at: usize) -> RowTriplet {
        let [source, target, predicate, _] = self.column(Column::TripletEnds)[at].to_le_bytes();
        let context = self.column(Column::TripletFrom)[at]..self.column(Column::TripletTo)[at];
        RowTriplet { source, target, predicate: Predicate::ALL[predicate as usize], context }
    }

    /// Finds the entity with this key.
    pub fn find(&self, key: &str) -> Option<EntityId> {
        self.entity_of(self.strings().find(key)?)
    }

    fn entity_of(&self, string: u32) -> Option<EntityId> {
        let entity = self.column(Column::EntityKeys).binary_search(&string).ok()?;
        Some(EntityId(entity as u32))
    }

    /// Finds the entity with this key, like [`Self::find`], and the entities that some row also
    /// calls by this key, in ascending order. Check the row with [`Self::calls`]: a row that must
    /// not be visible must not give names to anything either.
    pub fn called(&self, key: &str) -> (Option<EntityId>, impl Iterator<Item = EntityId> + '_) {
        let string = self.strings().find(key);
        let keys = self.column(Column::LookupKeys);
        let range = string.map_or(0..0, |string| equal(keys, |key| key.cmp(&string)));
        let others = self.column(Column::LookupEntities)[range].iter();
        (string.and_then(|string| self.entity_of(string)), others.map(|id| EntityId(*id)))
    }

    /// Whether a row calls an entity by another key than its own.
    pub fn calls(&self, row: u32, id: EntityId, key: &str) -> bool {
        let mention = self.mention_in(row, id);
        mention.is_some_and(|mention| {
            self.aliases(mention).iter().any(|alias| self.string(*alias) == key)
        })
    }

    /// The key of an entity.
    ///
    /// # Panics
    /// If the id is not of this segment; likewise for the methods below.
    pub fn key(&self, id: EntityId) -> &str {
        self.string(self.column(Column::EntityKeys)[id.0 as usize])
    }

    /// Name and kind of an entity in a row; `None` if the row does not mention it.
    pub fn named_in(&self, row: u32, id: EntityId) -> Option<(&str, EntityKind)> {
        self.mention_in(row, id).map(|mention| self.mention(mention))
    }

    fn mention_in(&self, row: u32, id: EntityId) -> Option<usize> {
        let mut mentions = self.group(Column::RowStarts, row);
        let entities = self.column(Column::MentionEntities);
        mentions.find(|mention| entities[*mention] == id.0)
    }

    /// Rows that mention an entity, in ascending order.
    pub fn rows_of(&self, id: EntityId) -> &[u32] {
        let range = self.group(Column::EntityRowStarts, id.0);
        &self.column(Column::EntityRows)[range]
    }

    /// Entities of a row, in order of first mention.
    pub fn entities_of_row(&self, row: u32) -> impl Iterator<Item = EntityId> + '_ {
        let range = self.group(Column::RowStarts, row);
        self.column(Column::MentionEntities)[range].iter().map(|entity| EntityId(*entity))
    }

    /// The sources of the segment by title.
    pub fn titles(&self) -> Titles<'_> {
        let (keys, sources) = (self.column(Column::TitleKeys), self.column(Column::TitleSources));
        Titles { strings: self.strings(), keys, sources, landmarks: &self.title_landmarks }
    }

    /// Triplets of a row, in text order.
    pub fn triplets_of_row(&self, row: u32) -> impl Iterator<Item = TripletId> + use<> {
        let range = self.group(Column::RowTripletStarts, row);
        range.map(|at| TripletId(at as u32))
    }

    /// Triplets with an entity at either end, in ascending order.
    pub fn triplets_of_entity(&self, id: EntityId) -> impl Iterator<Item = TripletId> + '_ {
        let range = self.group(Column::EntityTripletStarts, id.0);
        self.column(Column::EntityTriplets)[range].iter().map(|at| TripletId(*at))
    }

    /// Returns a triplet and its ends.
    pub fn triplet(&self, id: TripletId) -> TripletView {
        let starts = self.column(Column::RowTripletStarts);
        let row = starts.partition_point(|start| *start <= id.0) as u32 - 1;
        let first = self.column(Column::RowStarts)[row as usize];
        let entity = |position: u8| {
            let mention = first as usize + usize::from(position);
            EntityId(self.column(Column::MentionEntities)[mention])
        };
        let RowTriplet { source, target, predicate, context } = self.row_triplet(id.0 as usize);
        TripletView { row, source: entity(source), target: entity(target), predicate, context }
    }
}
