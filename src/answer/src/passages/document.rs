//! Neighbouring chunks put together again, so that a list or table that a border cuts is whole.

use std::collections::BTreeMap;
use std::ops::Range;

use lodestone_types::RetrievedChunk;

/// Chunks that were found and are read; later ones cost time and hardly ever hold the answer.
pub(crate) const HITS_MAX: usize = 8;
/// Chunks that are read for a question for rows, which have few of its words.
pub(crate) const HITS_OF_ROWS_MAX: usize = 12;
/// Chunks of one source that are read, those found among them.
pub const CHUNKS_A_SOURCE_MAX: usize = 24;
/// Bytes of text that are read beside the chunks found.
pub const BYTES_AROUND_MAX: usize = 64 << 10;
/// Bytes of the longest chunk: where less is left, one more may not have been read.
const MARGIN_BYTES: usize = 8 << 10;
/// Characters, white space that stands in no chunk, between two chunks that are neighbours.
const GAP_CHARS_MAX: usize = 4;

/// Text of one source without a gap, as its chunks make it up.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// Whether it surely is all of the source.
    pub(crate) is_whole: bool,
    /// The text.
    pub(crate) text: String,
    /// First character in the text of the source.
    pub(crate) document_start: usize,
    /// Position of the source's best chunk in the chunks given.
    pub(crate) best: usize,
    /// Its chunks and the characters of the text where each stands.
    pieces: Vec<(usize, Range<usize>)>,
    /// Chunks from here on were not found, but stand beside those that were.
    hits: usize,
}

/// A passage in a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Position in the chunks given.
    pub(crate) chunk: usize,
    /// Its characters in the chunk's text.
    pub(crate) in_chunk: Range<usize>,
}

impl Stretch {
    /// A chunk that holds the characters, and their place in it. One that was found goes before one
    /// beside it. Of a passage that no chunk holds as a whole, the largest part is placed.
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

    /// The best found chunk that holds some of the characters.
    pub(crate) fn hit(&self, chars: &Range<usize>) -> Option<usize> {
        let holds = |stands: &Range<usize>| stands.start < chars.end && chars.start < stands.end;
        let held = self.pieces.iter().filter(|(chunk, at)| *chunk < self.hits && holds(at));
        held.map(|(chunk, _)| *chunk).min()
    }
}

/// The texts of the sources, that of the best chunk first. The first `hits` of the chunks were
/// found, best first, of which the first `opened` say what is read; the others stand beside them.
pub(crate) fn stretches(chunks: &[&RetrievedChunk], hits: usize, opened: usize) -> Vec<Stretch> {
    let mut order: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (position, chunk) in chunks.iter().enumerate() {
        let key = (chunk.source.sub_tenant.as_str(), chunk.source.id.as_str());
        // A later one completes the text of a source that is read, and opens none.
        if (opened..hits).contains(&position) && !known.contains_key(&key) {
            continue;
        }
        let at = *known.entry(key).or_insert_with(|| {
            order.push(Vec::new());
            order.len() - 1
        });
        order[at].push(position);
    }
    // Sources of which nothing was read among the best chunks are not read further.
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
                document_start: start,
                best,
                is_whole: false,
                pieces: vec![(position, 0..text.chars().count())],
                hits,
            });
        }
    }
    // Text beside the best hits comes before text that is only in the same source.
    found.sort_by_key(|stretch| stretch.pieces.iter().map(|(chunk, _)| *chunk).min());
    found
}

impl Stretch {
    /// Adds the chunk behind the others; false where it is not their neighbour.
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
