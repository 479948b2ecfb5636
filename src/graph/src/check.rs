//! Checks of a stored section before it is read.

use crate::format::{Column, NAME_BITS};
use crate::index::GraphIndex;
use crate::row::{EntityKind, Predicate, ROW_ENTITIES_MAX};

impl GraphIndex {
    /// Walks all columns once. Afterwards, every position that a look-up follows is in range.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.check_strings()?;
        self.check_entities()?;
        self.check_rows()?;
        self.check_triplets()?;
        self.check_titles()
    }

    fn check_strings(&self) -> Result<(), &'static str> {
        let starts = self.column(Column::StringStarts);
        check_starts(starts, self.counts.text_bytes, "the strings of the graph do not add up")?;
        let text = std::str::from_utf8(self.text()).map_err(|_| "a string is not text")?;
        let is_boundary = |start: &u32| text.is_char_boundary(*start as usize);
        ensure(starts.iter().all(is_boundary), "a string is not text")?;
        let string = |at: usize| &text[starts[at] as usize..starts[at + 1] as usize];
        ensure(
            (1..starts.len() - 1).all(|at| string(at - 1) < string(at)),
            "the strings of the graph are out of order",
        )
    }

    fn check_entities(&self) -> Result<(), &'static str> {
        let counts = self.counts;
        let keys = self.column(Column::EntityKeys);
        if !keys.is_sorted_by(|a, b| a < b) || keys.last().is_some_and(|k| *k >= counts.strings) {
            return Err("the entities are out of order");
        }
        let starts = self.column(Column::EntityRowStarts);
        check_starts(starts, counts.mentions, "the rows of the entities do not add up")?;
        check_below(self.column(Column::EntityRows), counts.rows)?;
        let rows = self.column(Column::EntityRows);
        let of = |pair: &[u32]| &rows[pair[0] as usize..pair[1] as usize];
        let is_sorted = starts.windows(2).all(|pair| of(pair).is_sorted_by(|a, b| a < b));
        ensure(is_sorted, "the rows of an entity are out of order")?;
        let starts = self.column(Column::EntityTripletStarts);
        let ends = counts.triplets.saturating_mul(2);
        check_starts(starts, ends, "the triplets of the entities do not add up")?;
        check_below(self.column(Column::EntityTriplets), counts.triplets)
    }

    fn check_rows(&self) -> Result<(), &'static str> {
        let counts = self.counts;
        let starts = self.column(Column::RowStarts);
        check_starts(starts, counts.mentions, "the mentions of the rows do not add up")?;
        check_below(self.column(Column::MentionEntities), counts.entities)?;
        let mut named = Vec::new();
        for pair in self.column(Column::RowStarts).windows(2) {
            let of_row = pair[0] as usize..pair[1] as usize;
            named.clear();
            named.extend_from_slice(&self.column(Column::MentionEntities)[of_row]);
            named.sort_unstable();
            let is_sound = named.len() <= ROW_ENTITIES_MAX && named.is_sorted_by(|a, b| a < b);
            ensure(is_sound, "a row names an entity twice, or too many")?;
        }
        for word in self.column(Column::MentionNames) {
            let (name, kind) = (word & ((1 << NAME_BITS) - 1), word >> NAME_BITS);
            let is_known = name < counts.strings && (kind as usize) < EntityKind::ALL.len();
            ensure(is_known, "a mention has no name")?;
        }
        check_below(self.column(Column::AliasMentions), counts.mentions)?;
        check_below(self.column(Column::AliasKeys), counts.strings)?;
        check_below(self.column(Column::LookupKeys), counts.strings)?;
        check_below(self.column(Column::LookupEntities), counts.entities)?;
        let is_sorted = |column| self.column(column).is_sorted();
        ensure(
            is_sorted(Column::AliasMentions) && is_sorted(Column::LookupKeys),
            "the aliases are out of order",
        )
    }

    fn check_triplets(&self) -> Result<(), &'static str> {
        let starts = self.column(Column::RowTripletStarts);
        check_starts(starts, self.counts.triplets, "the triplets of the rows do not add up")?;
        let mentions = self.column(Column::RowStarts);
        let ends = self.column(Column::TripletEnds);
        for row in 0..self.counts.rows as usize {
            let count = mentions[row + 1] - mentions[row];
            for word in &ends[starts[row] as usize..starts[row + 1] as usize] {
                let [source, target, predicate, rest] = word.to_le_bytes();
                let is_sound = source != target
                    && u32::from(source.max(target)) < count
                    && usize::from(predicate) < Predicate::ALL.len()
                    && rest == 0;
                ensure(is_sound, "a triplet connects nothing")?;
            }
        }
        let (from, to) = (self.column(Column::TripletFrom), self.column(Column::TripletTo));
        ensure(from.iter().zip(to).all(|(from, to)| from <= to), "a triplet has no context")
    }

    fn check_titles(&self) -> Result<(), &'static str> {
        let (keys, sources) = (self.column(Column::TitleKeys), self.column(Column::TitleSources));
        check_below(keys, self.counts.strings)?;
        check_below(sources, self.counts.sources)?;
        let pairs: Vec<_> = keys.iter().zip(sources).collect();
        ensure(pairs.is_sorted_by(|a, b| a < b), "the titles are out of order")
    }
}

fn ensure(is_sound: bool, broken: &'static str) -> Result<(), &'static str> {
    if is_sound { Ok(()) } else { Err(broken) }
}

fn check_starts(starts: &[u32], end: u32, broken: &'static str) -> Result<(), &'static str> {
    let is_sound = starts.first() == Some(&0) && starts.last() == Some(&end) && starts.is_sorted();
    ensure(is_sound, broken)
}

fn check_below(values: &[u32], bound: u32) -> Result<(), &'static str> {
    ensure(values.iter().all(|value| *value < bound), "the graph names something that is not there")
}
