//! Joins neighbouring chunks again, so that a list or table cut by a chunk boundary is whole.

use std::collections::BTreeMap;
use std::ops::Range;

use lodestone_types::RetrievedChunk;

/// Maximum number of retrieved chunks that open a source; later ones cost time and hardly ever hold
/// the answer.
pub(crate) const HITS_MAX: usize = 8;
/// Limit for questions about rows, whose chunks share few words with the question.
pub(crate) const HITS_OF_ROWS_MAX: usize = 12;
/// Maximum number of chunks read per source, including retrieved ones.
pub const CHUNKS_A_SOURCE_MAX: usize = 24;
/// Maximum number of bytes read in addition to the retrieved chunks.
pub const BYTES_AROUND_MAX: usize = 64 << 10;
/// Bytes of the longest chunk: with less budget left, another chunk may have been skipped.
const MARGIN_BYTES: usize = 8 << 10;
/// Maximum number of characters between neighbouring chunks: white space that belongs to no chunk.
const GAP_CHARS_MAX: usize = 4;

/// A contiguous text of one source, joined from its chunks.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// Whether it is certainly the whole source.
    pub(crate) is_whole: bool,
    /// The joined text.
    pub(crate) text: String,
    /// The headings above it, and the header of the table that it begins in, one per line; `None`
    /// if it begins its source, perhaps behind white space.
    pub(crate) above: Option<String>,
    /// Character offset of the text in its source.
    pub(crate) document_start: usize,
    /// Position of the source's best chunk among those given.
    pub(crate) best: usize,
    /// Its chunks, with the range of characters of each in the text.
    pieces: Vec<(usize, Range<usize>)>,
    /// Number of retrieved chunks; later positions are their neighbours.
    hits: usize,
}

/// The location of a passage in a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Position among the given chunks.
    pub(crate) chunk: usize,
    /// Range in the chunk's text, in characters.
    pub(crate) in_chunk: Range<usize>,
}

impl Stretch {
    /// Locates characters of the text in a chunk: the one that holds most of them, and among equals
    /// the best retrieved one.
    pub(crate) fn place(&self, chars: &Range<usize>) -> Option<Placed> {
        let held = |stands: &Range<usize>| {
            let start = chars.start.max(stands.start);
            start..chars.end.min(stands.end).max(start)
        };
        let pieces = self.pieces.iter().filter(|(_, stands)| !held(stands).is_empty());
        let (chunk, stands) =
            pieces.min_by_key(|(chunk, stands)| (chars.len() - held(stands).len(), *chunk))?;
        let part = held(stands);
        let in_chunk = part.start - stands.start..part.end - stands.start;
        Some(Placed { chunk: *chunk, in_chunk })
    }

    /// The best retrieved chunk that holds some of the characters.
    pub(crate) fn hit(&self, chars: &Range<usize>) -> Option<usize> {
        let holds = |stands: &Range<usize>| stands.start < chars.end && chars.start < stands.end;
        let held = self.pieces.iter().filter(|(chunk, at)| *chunk < self.hits && holds(at));
        held.map(|(chunk, _)| *chunk).min()
    }
}

/// Joins chunks into texts, those of the best chunk's source first. The first `hits` chunks were
/// retrieved, best first, and only sources among the first `opened` are read; the other chunks are
/// neighbours.
pub(crate) fn stretches(chunks: &[&RetrievedChunk], hits: usize, opened: usize) -> Vec<Stretch> {
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (position, chunk) in chunks.iter().enumerate() {
        let key = (chunk.source.sub_tenant.as_str(), chunk.source.id.as_str());
        // Further hits complete sources that are being read, but open no new ones.
        if (opened..hits).contains(&position) && !known.contains_key(&key) {
            continue;
        }
        let at = *known.entry(key).or_insert_with(|| {
            order.push(Vec::new());
            order.len() - 1
        });
        order[at].push(position);
    }
    // Neighbours of sources that were not opened are dropped.
    order.retain(|positions| positions[0] < hits);
    let beside: usize = chunks[hits..].iter().map(|chunk| chunk.text.len()).sum();
    let is_cut = beside + MARGIN_BYTES > BYTES_AROUND_MAX;
    let mut stretches: Vec<Stretch> = Vec::new();
    for positions in order {
        let is_read = !is_cut && positions.len() < CHUNKS_A_SOURCE_MAX;
        let mut found = of_source(chunks, positions, hits);
        if let [one] = found.as_mut_slice() {
            one.is_whole = is_read;
        }
        stretches.append(&mut found);
    }
    stretches
}

fn of_source(chunks: &[&RetrievedChunk], mut positions: Vec<usize>, hits: usize) -> Vec<Stretch> {
    let best = positions[0];
    let start_of = |position: usize| chunks[position].place.document_start as usize;
    positions.sort_by_key(|position| (start_of(*position), chunks[*position].index, *position));
    let mut found: Vec<Stretch> = Vec::new();
    for position in positions {
        let (start, text) = (start_of(position), chunks[position].text.as_str());
        if !found.last_mut().is_some_and(|stretch| stretch.append(position, start, text)) {
            found.push(Stretch {
                text: text.to_owned(),
                above: (start > 0 && chunks[position].index > 0)
                    .then(|| chunks[position].above.clone()),
                document_start: start,
                best,
                is_whole: false,
                pieces: vec![(position, 0..text.chars().count())],
                hits,
            });
        }
    }
    // Text around the best hits precedes text merely of the same source.
    found.sort_by_key(|stretch| stretch.pieces.iter().map(|(chunk, _)| *chunk).min());
    found
}

impl Stretch {
    /// Appends the next chunk; returns false if it is not adjacent to the others.
    fn append(&mut self, chunk: usize, document_start: usize, text: &str) -> bool {
        let from = document_start - self.document_start;
        let end = self.pieces.iter().map(|(_, stands)| stands.end).max().unwrap_or(0);
        if from > end + GAP_CHARS_MAX {
            return false;
        }
        let chars = text.chars().count();
        let shared = end.saturating_sub(from).min(chars);
        let head = text.char_indices().nth(shared).map_or(text.len(), |(at, _)| at);
        let stands = self.text.chars().skip(from).take(shared);
        if !stands.eq(text[..head].chars()) {
            return false;
        }
        self.text.extend(std::iter::repeat_n('\n', from.saturating_sub(end)));
        self.text.push_str(&text[head..]);
        self.pieces.push((chunk, from..from + chars));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chunk;

    fn at(source: &str, index: u32, start: u32, text: &str) -> RetrievedChunk {
        let mut made = chunk(source, index, text, 0.5);
        made.place.document_start = start;
        made
    }

    #[test]
    fn neighbours_make_one_text() {
        let chunks = [
            at("a", 1, 5, "two. Three."),
            at("b", 0, 0, "Other."),
            at("a", 0, 0, "One, two."),
            at("a", 2, 18, "Four."),
            at("a", 9, 90, "Far."),
        ];
        let given: Vec<&RetrievedChunk> = chunks.iter().collect();
        let found = stretches(&given, 2, HITS_MAX);
        let texts: Vec<&str> = found.iter().map(|stretch| stretch.text.as_str()).collect();
        assert_eq!(texts, ["One, two. Three.\n\nFour.", "Far.", "Other."]);
        let first = &found[0];
        let place = |chars| first.place(&chars).map(|placed| (placed.chunk, placed.in_chunk));
        assert_eq!(place(5..9), Some((0, 0..4)), "a found chunk goes before others");
        assert_eq!(place(0..9), Some((2, 0..9)), "only one holds the whole");
        assert_eq!((first.hit(&(0..3)), first.hit(&(5..9))), (None, Some(0)));
    }

    #[test]
    fn late_chunks_complete_what_is_read() {
        let mut chunks: Vec<RetrievedChunk> =
            (0..HITS_MAX as u32).map(|n| at(&format!("s{n}"), 0, 0, "One, two.")).collect();
        chunks.extend([at("s0", 1, 9, " Three."), at("late", 0, 0, "Late.")]);
        let given: Vec<&RetrievedChunk> = chunks.iter().collect();
        let found = stretches(&given, given.len(), HITS_MAX);
        assert_eq!((found.len(), found[0].text.as_str()), (HITS_MAX, "One, two. Three."));
    }
}
