//! The columns of the stored section: their order and lengths, for the writer and the reader.

/// "LDGR" as a little-endian word.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"LDGR");
/// Version of the format.
pub(super) const VERSION: u32 = 1;
/// Words of the header.
pub(super) const HEADER_WORDS: usize = 12;
/// Bits of a mention's name column that are the string; the rest is the kind.
pub(super) const NAME_BITS: u32 = 28;

/// How many there are of each thing, as the header tells.
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
    EntityBest,
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
        let counts = [rows, sources, strings, entities, mentions, aliases];
        let [a, b, c, d, e, f] = counts;
        [MAGIC, VERSION, a, b, c, d, e, f, triplets, titles, lookups, text_bytes]
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

    /// Words of each column, in the order of [`Column`].
    fn lengths(&self) -> [u64; COLUMNS] {
        let wide = |count: u32| u64::from(count);
        let (entities, mentions) = (wide(self.entities), wide(self.mentions));
        let (aliases, triplets) = (wide(self.aliases), wide(self.triplets));
        let (lookups, titles) = (wide(self.lookups), wide(self.titles));
        let row_starts = wide(self.rows) + 1;
        [
            wide(self.strings) + 1,
            entities,
            entities,
            entities + 1,
            mentions,
            entities + 1,
            2 * triplets,
            row_starts,
            mentions,
            mentions,
            aliases,
            aliases,
            lookups,
            lookups,
            row_starts,
            triplets,
            triplets,
            triplets,
            titles,
            titles,
        ]
    }

    /// Where each column begins, in words from the start of the section; the last is the end.
    pub(super) fn starts(&self) -> [u64; COLUMNS + 1] {
        let mut starts = [HEADER_WORDS as u64; COLUMNS + 1];
        for (column, length) in self.lengths().into_iter().enumerate() {
            starts[column + 1] = starts[column] + length;
        }
        starts
    }
}
