//! Builds the stored section from the graphs of rows.

use std::collections::HashMap;

use crate::format::{Counts, NAME_BITS};
use crate::key::{is_telling, key};
use crate::row::{EntityKind, ROW_ENTITIES_MAX, RowEntity, RowGraph, RowTriplet};

/// Collects the graphs of a segment's rows. Rows that are not added have an empty graph.
#[derive(Debug, Default)]
pub struct GraphWriter {
    strings: HashMap<String, u32>,
    /// Entities by the string of their key, numbered in order of appearance.
    entities: HashMap<u32, u32>,
    entity_keys: Vec<u32>,
    rows: Vec<u32>,
    mentions: Vec<Mention>,
    aliases: Vec<(u32, u32)>,
    row_triplets: Vec<u32>,
    triplets: Vec<RowTriplet>,
    titles: Vec<(u32, u32)>,
    sources: u32,
}

#[derive(Debug, Clone, Copy)]
struct Mention {
    entity: u32,
    name: u32,
    kind: EntityKind,
}

impl GraphWriter {
    /// Creates a writer of an empty section.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing has been added, so that no section is needed.
    pub fn is_empty(&self) -> bool {
        self.mentions.is_empty() && self.titles.is_empty()
    }

    /// Adds the graph of a row. Rows must be added in ascending order.
    ///
    /// # Panics
    /// If `row` does not follow the previous one, or the graph is not as [`crate::extract`] makes
    /// it: it mentions an entity twice, or a triplet refers to a missing one.
    pub fn add(&mut self, row: u32, graph: &RowGraph) {
        assert!(row as usize >= self.rows.len(), "rows ascend");
        assert!(graph.entities.len() <= ROW_ENTITIES_MAX, "the row is bounded");
        self.rows.resize(row as usize, self.mentions.len() as u32);
        self.row_triplets.resize(row as usize, self.triplets.len() as u32);
        let first = self.mentions.len();
        for entity in &graph.entities {
            self.add_entity(entity);
        }
        let mut named: Vec<u32> = self.mentions[first..].iter().map(|one| one.entity).collect();
        named.sort_unstable();
        assert!(named.is_sorted_by(|a, b| a < b), "an entity is named once");
        for triplet in &graph.triplets {
            let (source, target) = (triplet.source as usize, triplet.target as usize);
            assert!(source != target && source.max(target) < graph.entities.len(), "ends exist");
            assert!(triplet.context.start <= triplet.context.end, "contexts are ranges");
            self.triplets.push(triplet.clone());
        }
        self.rows.push(self.mentions.len() as u32);
        self.row_triplets.push(self.triplets.len() as u32);
    }

    /// Adds the title of a source, under which its rows can be found. Titles that are not specific
    /// enough are ignored.
    pub fn add_title(&mut self, source: u32, title: &str) {
        self.sources = self.sources.max(source + 1);
        let key = key(title);
        if is_telling(key.as_str()) {
            let key = self.string(key.as_str());
            self.titles.push((key, source));
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if let Some(id) = self.strings.get(text) {
            return *id;
        }
        let id = self.strings.len() as u32;
        assert!(id < 1 << NAME_BITS, "a segment's rows are bounded");
        self.strings.insert(text.to_owned(), id);
        id
    }

    fn add_entity(&mut self, entity: &RowEntity) {
        let RowEntity { key, name, kind, aliases } = entity;
        let (key, name) = (self.string(key), self.string(name));
        let entity = *self.entities.entry(key).or_insert_with(|| {
            self.entity_keys.push(key);
            self.entity_keys.len() as u32 - 1
        });
        for alias in aliases {
            let alias = self.string(alias);
            self.aliases.push((self.mentions.len() as u32, alias));
        }
        self.mentions.push(Mention { entity, name, kind: *kind });
    }

    /// Builds the section of a segment with `rows` rows and `sources` sources.
    ///
    /// # Panics
    /// If a row or a source outside of these was added.
    pub fn finish(mut self, rows: u32, sources: u32) -> Vec<u8> {
        assert!(self.rows.len() <= rows as usize && self.sources <= sources, "rows are counted");
        self.rows.resize(rows as usize, self.mentions.len() as u32);
        self.row_triplets.resize(rows as usize, self.triplets.len() as u32);
        let (mut strings, ids): (Vec<String>, Vec<u32>) = self.strings.drain().unzip();
        let mut order: Vec<usize> = (0..strings.len()).collect();
        order.sort_unstable_by(|a, b| strings[*a].cmp(&strings[*b]));
        let mut ranks = vec![0; ids.len()];
        for (rank, at) in order.iter().enumerate() {
            ranks[ids[*at] as usize] = rank as u32;
        }
        strings.sort_unstable();
        self.rename(&ranks);
        self.encode(&strings, sources)
    }

    /// Renumbers strings by their sort order, and entities by that of their keys.
    fn rename(&mut self, ranks: &[u32]) {
        let string = |id: &mut u32| *id = ranks[*id as usize];
        self.entity_keys.iter_mut().for_each(string);
        self.aliases.iter_mut().for_each(|(_, key)| string(key));
        self.titles.iter_mut().for_each(|(key, _)| string(key));
        let mut order: Vec<u32> = (0..self.entity_keys.len() as u32).collect();
        order.sort_unstable_by_key(|entity| self.entity_keys[*entity as usize]);
        let mut places = vec![0; order.len()];
        for (place, entity) in order.into_iter().enumerate() {
            places[entity as usize] = place as u32;
        }
        for mention in &mut self.mentions {
            string(&mut mention.name);
            mention.entity = places[mention.entity as usize];
        }
        self.entity_keys.sort_unstable();
        self.titles.sort_unstable();
    }

    /// Returns the other keys, each with the entities it may refer to.
    fn lookups(&self) -> Vec<(u32, u32)> {
        let entity = |mention: u32| self.mentions[mention as usize].entity;
        let mut found: Vec<(u32, u32)> =
            self.aliases.iter().map(|(mention, key)| (*key, entity(*mention))).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn encode(self, strings: &[String], sources: u32) -> Vec<u8> {
        let lookups = self.lookups();
        let counts = Counts {
            rows: self.rows.len() as u32,
            sources,
            strings: strings.len() as u32,
            entities: self.entity_keys.len() as u32,
            mentions: self.mentions.len() as u32,
            aliases: self.aliases.len() as u32,
            triplets: self.triplets.len() as u32,
            titles: self.titles.len() as u32,
            lookups: lookups.len() as u32,
            text_bytes: strings.iter().map(|text| text.len() as u32).sum(),
        };
        let mut words: Vec<u32> = counts.header().to_vec();
        words.push(0);
        words.extend(ends(strings.iter().map(|text| text.len() as u32)));
        words.extend(&self.entity_keys);
        words.extend(grouped(self.entity_keys.len(), self.rows_by_entity()));
        words.extend(grouped(self.entity_keys.len(), self.triplets_by_entity()));
        words.push(0);
        words.extend(&self.rows);
        words.extend(self.mentions.iter().map(|one| one.entity));
        words.extend(self.mentions.iter().map(|one| one.name | (one.kind as u32) << NAME_BITS));
        for pairs in [&self.aliases, &lookups] {
            words.extend(pairs.iter().map(|pair| pair.0));
            words.extend(pairs.iter().map(|pair| pair.1));
        }
        words.push(0);
        words.extend(&self.row_triplets);
        let triplet_ends =
            |one: &RowTriplet| u32::from_le_bytes([one.source, one.target, one.predicate as u8, 0]);
        words.extend(self.triplets.iter().map(triplet_ends));
        words.extend(self.triplets.iter().map(|one| one.context.start));
        words.extend(self.triplets.iter().map(|one| one.context.end));
        words.extend(self.titles.iter().map(|(key, _)| *key));
        words.extend(self.titles.iter().map(|(_, source)| *source));
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        strings.iter().for_each(|text| bytes.extend(text.as_bytes()));
        bytes
    }

    fn rows_by_entity(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::with_capacity(self.mentions.len());
        let mut first = 0;
        for (row, end) in self.rows.iter().enumerate() {
            let mentions = &self.mentions[first..*end as usize];
            pairs.extend(mentions.iter().map(|one| (one.entity, row as u32)));
            first = *end as usize;
        }
        pairs
    }

    fn triplets_by_entity(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::with_capacity(2 * self.triplets.len());
        let (mut first, mut first_mention) = (0, 0);
        for (end, mention_end) in self.row_triplets.iter().zip(&self.rows) {
            for at in first..*end {
                let RowTriplet { source, target, .. } = self.triplets[at as usize];
                for position in [source, target] {
                    let mention = first_mention + u32::from(position);
                    pairs.push((self.mentions[mention as usize].entity, at));
                }
            }
            (first, first_mention) = (*end, *mention_end);
        }
        pairs
    }
}

/// Running sums.
fn ends(lengths: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    })
}

/// Returns the start of each group, followed by all values ordered by group.
fn grouped(groups: usize, mut pairs: Vec<(u32, u32)>) -> Vec<u32> {
    pairs.sort_unstable();
    let mut words = vec![0; groups + 1];
    for (group, _) in &pairs {
        words[*group as usize + 1] += 1;
    }
    for group in 0..groups {
        words[group + 1] += words[group];
    }
    words.extend(pairs.into_iter().map(|(_, value)| value));
    words
}
