//! The stored section, version 1: the order and the lengths of its columns.
//!
//! ```text
//! u32 each, little-endian, read in place: the section begins on a boundary of 4 bytes
//! header  "LDGR", version, rows n, sources, strings s, entities e, mentions m, aliases a,
//!         triplets t, titles p, look-ups l, bytes of text b
//! string_starts[s+1]   first byte of each string in the text; they ascend and differ
//! entity_keys[e]       string of each key; ascending, so that an entity is the rank of its key
//! entity_row_starts[e+1], entity_rows[m]               rows of an entity, ascending
//! entity_triplet_starts[e+1], entity_triplets[2t]      triplets at an entity, ascending
//! row_starts[n+1], mention_entities[m]                 entities of a row, by first mention
//! mention_names[m]     28 bits of string, 4 bits of kind
//! alias_mentions[a], alias_keys[a]                     other keys of a mention, by mention
//! lookup_keys[l], lookup_entities[l]                   the same, by key, each pair once
//! row_triplet_starts[n+1]                              triplets of a row
//! triplet_ends[t]      bytes: position of source and of target in the row, predicate, zero
//! triplet_from[t], triplet_to[t]                       context, as bytes of the row's text
//! title_keys[p], title_sources[p]                      sources by title, ascending pairs
//! text                 b bytes of UTF-8
//! ```
//! A reader rejects: another magic, version, number of rows or sources; a length other than the
//! sum; columns of starts that do not run from 0 to the end in order; strings, keys, rows, aliases
//! and titles out of order; ids, kinds and predicates out of range; a row that names a thing twice;
//! a triplet from a thing to itself. Codes of kinds and predicates are positions in their lists,
//! which only grow.

/// "LDGR" as a little-endian word.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"LDGR");
/// Version of the format.
pub(super) const VERSION: u32 = 1;
/// Words of the header.
pub(super) const HEADER_WORDS: usize = 12;
/// Bits of a mention's name column that are the string; the rest is the kind.
pub(super) const NAME_BITS: u32 = 28;

/// Number of things of each sort, as the header tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub rows: u32,
    pub sources: u32,
    pub strings: u32,
    pub entities: u32,
    pub mentions: u32,
    pub aliases: u32,
    pub triplets: u32,
    pub titles: u32,
    pub lookups: u32,
    pub text_bytes: u32,
}

/// A column of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Column {
    StringStarts,
    EntityKeys,
    EntityRowStarts,
    EntityRows,
    EntityTripletStarts,
    EntityTriplets,
    RowStarts,
    MentionEntities,
    MentionNames,
    AliasMentions,
    AliasKeys,
    LookupKeys,
    LookupEntities,
    RowTripletStarts,
    TripletEnds,
    TripletFrom,
    TripletTo,
    TitleKeys,
    TitleSources,
}

pub(super) const COLUMNS: usize = Column::TitleSources as usize + 1;

impl Counts {
    pub(super) fn header(&self) -> [u32; HEADER_WORDS] {
        let Self { rows, sources, strings, entities, mentions, aliases, .. } = *self;
        let Self { triplets, titles, lookups, text_bytes, .. } = *self;
        [
            MAGIC, VERSION, rows, sources, strings, entities, mentions, aliases, triplets, titles,
            lookups, text_bytes,
        ]
    }

    pub(super) fn read(header: &[u32]) -> Result<Self, &'static str> {
        let &[magic, version, rows, sources, strings, entities, mentions, aliases, ref rest @ ..] =
            header
        else {
            return Err("the graph has no header");
        };
        let &[triplets, titles, lookups, text_bytes] = rest else {
            return Err("the graph has no header");
        };
        if magic != MAGIC || version != VERSION {
            return Err("the graph has another format");
        }
        let first = Self { rows, sources, strings, entities, mentions, aliases, ..Self::default() };
        Ok(Self { triplets, titles, lookups, text_bytes, ..first })
    }

    /// Words of each column, in the order of [`Column`]; letters as in the drawing above.
    fn lengths(&self) -> [u64; COLUMNS] {
        let Self { rows, strings, entities, mentions, aliases, .. } = *self;
        let Self { triplets, titles, lookups, .. } = *self;
        let [n, s, e, m, a, t, p, l] =
            [rows, strings, entities, mentions, aliases, triplets, titles, lookups].map(u64::from);
        [s + 1, e, e + 1, m, e + 1, 2 * t, n + 1, m, m, a, a, l, l, n + 1, t, t, t, p, p]
    }

    /// Start of each column, in words from the start of the section; the last one is the end.
    pub(super) fn starts(&self) -> [u64; COLUMNS + 1] {
        let mut starts = [HEADER_WORDS as u64; COLUMNS + 1];
        for (column, length) in self.lengths().into_iter().enumerate() {
            starts[column + 1] = starts[column] + length;
        }
        starts
    }
}
