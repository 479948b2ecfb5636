//! The stored section, version 1: the order and lengths of its columns.
//!
//! ```text
//! u32 each, little-endian, read in place: the section starts on a 4-byte boundary
//! header  "LDGR", version, rows n, sources, strings s, entities e, mentions m, aliases a,
//!         triplets t, titles p, look-ups l, bytes of text b
//! string_starts[s+1]   offset of each string in the text; strings are ascending and distinct
//! entity_keys[e]       string of each key; ascending, so an entity is the rank of its key
//! entity_row_starts[e+1], entity_rows[m]               rows of an entity, ascending
//! entity_triplet_starts[e+1], entity_triplets[2t]      triplets at an entity, ascending
//! row_starts[n+1], mention_entities[m]                 entities of a row, by first mention
//! mention_names[m]     28 bits of string, 4 bits of kind
//! alias_mentions[a], alias_keys[a]                     other keys of a mention, by mention
//! lookup_keys[l], lookup_entities[l]                   the same, by key, each pair once
//! row_triplet_starts[n+1]                              triplets of a row
//! triplet_ends[t]      bytes: position of source and of target in the row, predicate, zero
//! triplet_from[t], triplet_to[t]                       context, as byte range of the row's text
//! title_keys[p], title_sources[p]                      sources by title, ascending pairs
//! text                 b bytes of UTF-8
//! ```
//! A reader must reject: another magic, version, number of rows or sources; a length other than the
//! sum of the columns; start columns that do not ascend from 0 to the end; strings, keys, rows,
//! aliases and titles out of order; ids, kinds and predicates out of range; a row that names an
//! entity twice; a triplet from an entity to itself. Codes of kinds and predicates are indexes into
//! their lists, which are append-only.

/// "LDGR" as a little-endian word.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"LDGR");
/// Version of the format.
pub(super) const VERSION: u32 = 1;
/// Length of the header in words.
pub(super) const HEADER_WORDS: usize = 12;
/// Number of bits of a mention's name column that hold the string; the rest is the kind.
pub(super) const NAME_BITS: u32 = 28;

/// Numbers of items of each sort, as stored in the header.
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

/// A column of 32-bit words.
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

    /// Length of each column in words, in the order of [`Column`]; variables are named as in the
    /// drawing above.
    fn lengths(&self) -> [u64; COLUMNS] {
        let Self { rows, strings, entities, mentions, aliases, .. } = *self;
        let Self { triplets, titles, lookups, .. } = *self;
        let [n, s, e, m, a, t, p, l] =
            [rows, strings, entities, mentions, aliases, triplets, titles, lookups].map(u64::from);
        [s + 1, e, e + 1, m, e + 1, 2 * t, n + 1, m, m, a, a, l, l, n + 1, t, t, t, p, p]
    }

    /// Start of each column, in words from the start of the section, followed by the end of the
    /// last one.
    pub(super) fn starts(&self) -> [u64; COLUMNS + 1] {
        let mut starts = [HEADER_WORDS as u64; COLUMNS + 1];
        for (column, length) in self.lengths().into_iter().enumerate() {
            starts[column + 1] = starts[column] + length;
        }
        starts
    }
}
