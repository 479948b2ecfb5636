//! Merges neighboring chunks: those of one source become one result, and the results that this
//! frees are filled from the ranking.
//!
//! ```text
//! ranking   a2 b7 a3 c0 a1 b9   (source and index)
//! results   a1+a2+a3  b7  c0  b9
//! ```
//! A merged result has the rank, id, score and score parts of its best chunk. Its text is that of
//! its chunks in reading order, with each character once.

use std::collections::HashMap;

use crate::query::hydrate::Ranked;
use crate::query::request::Join;
use lodestone_types::{LineBox, PageBox, RetrievedChunk, limits};

/// Maximum chunks per result: about two pages, so that a long document still yields several
/// results.
const RESULT_CHUNKS_MAX: usize = 8;
/// Maximum white space kept between two chunks, in characters; none of it was part of a chunk.
const GAP_CHARS_MAX: u32 = 80;

/// Neighboring chunks that form one result.
#[derive(Debug, Clone)]
pub(super) struct MergedResult {
    /// The chunk that ranked highest.
    pub(super) best: Ranked,
    /// All chunks of the result, ascending by index.
    pub(super) chunks: Vec<Ranked>,
}

/// Position of a chunk, from which its neighbors are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ChunkPosition {
    /// Segment, and source within it.
    pub(super) source: (usize, u32),
    /// Number of chunks of that source.
    pub(super) source_chunks: usize,
    /// Index of the chunk in the source.
    pub(super) index: u32,
}

/// The first `wanted` merged results of a ranking, best first.
pub(super) fn merged(
    ranked: &[Ranked],
    wanted: usize,
    join: Join,
    position: impl Fn(&Ranked) -> ChunkPosition,
) -> Vec<MergedResult> {
    let mut results: Vec<MergedResult> = Vec::new();
    let mut result_of: HashMap<((usize, u32), u32), usize> = HashMap::new();
    let mut filled = 0;
    for row in ranked {
        let ChunkPosition { source, source_chunks, index } = position(row);
        let is_joined = match join {
            Join::Never => false,
            Join::Always => true,
            Join::Auto => source_chunks <= limits::SHORT_SOURCE_CHUNKS,
        };
        let beside = [index.checked_sub(1), index.checked_add(1)].into_iter().flatten();
        let known = beside.filter_map(|index| result_of.get(&(source, index)).copied());
        let is_open = |at: &usize| is_joined && results[*at].chunks.len() < RESULT_CHUNKS_MAX;
        let mut near: Vec<usize> = known.filter(is_open).collect();
        near.sort_unstable();
        let Some(&home) = near.first() else {
            if filled == wanted {
                break;
            }
            filled += 1;
            result_of.insert((source, index), results.len());
            results.push(MergedResult { best: *row, chunks: vec![*row] });
            continue;
        };
        result_of.insert((source, index), home);
        results[home].chunks.push(*row);
        let other = near.get(1).copied();
        let fits = |other: &usize| {
            results[home].chunks.len() + results[*other].chunks.len() <= RESULT_CHUNKS_MAX
        };
        if let Some(other) = other.filter(fits) {
            let moved = std::mem::take(&mut results[other].chunks);
            for row in &moved {
                result_of.insert((source, position(row).index), home);
            }
            results[home].chunks.extend(moved);
            filled -= 1;
        }
    }
    results.retain(|result| !result.chunks.is_empty());
    for result in &mut results {
        result.chunks.sort_unstable_by_key(|row| position(row).index);
    }
    results
}

/// Joins consecutive chunks into one result; `best` is the position of the highest-ranked one.
pub(super) fn joined(mut chunks: Vec<RetrievedChunk>, best: usize) -> RetrievedChunk {
    if chunks.len() == 1 {
        return chunks.remove(0);
    }
    let uuids = chunks.iter().map(|chunk| chunk.uuid.clone()).collect();
    let (mut text, mut boxes) = (String::new(), Vec::new());
    let mut lines: Vec<LineBox> = Vec::new();
    let mut place = chunks[0].place;
    let above = std::mem::take(&mut chunks[0].above);
    let mut end = place.document_start;
    for chunk in &chunks {
        append(&mut text, chunk, end);
        end = chunk.place.document_start + chunk.place.chars;
        chunk.boxes.iter().for_each(|area| surround(&mut boxes, *area));
        // Where chunks overlap, both have the same lines.
        let known = lines.last().map_or(0, |line| line.end);
        lines.extend(chunk.lines.iter().filter(|line| line.end > known));
    }
    place.chars = end - place.document_start;
    let best = chunks.swap_remove(best);
    RetrievedChunk { text, above, place, boxes, lines, joined: uuids, ..best }
}

/// Appends the part of a chunk from character `end` on, where the text ends so far. Chunks that do
/// not overlap are separated by white space that no chunk contains: a single blank, or else a
/// paragraph break padded to the original length.
fn append(text: &mut String, chunk: &RetrievedChunk, end: u32) {
    let start = chunk.place.document_start;
    match start.saturating_sub(end).min(GAP_CHARS_MAX) {
        0 => {}
        1 => text.push(' '),
        gap => {
            text.push_str("\n\n");
            text.extend(std::iter::repeat_n(' ', gap as usize - 2));
        }
    }
    text.extend(chunk.text.chars().skip(end.saturating_sub(start) as usize));
}

/// Adds a rectangle to those of a result, keeping one bounding box per page.
fn surround(boxes: &mut Vec<PageBox>, added: PageBox) {
    match boxes.iter_mut().find(|known| known.page == added.page) {
        Some(known) => known.area = known.area.around(added.area),
        None => boxes.push(added),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::legs::RowAddress;
    use lodestone_answer::testing::chunk;
    use lodestone_types::{PageArea, RowId, ScoreParts};

    /// Chunk `row % 100` of source `row / 100`, which has as many chunks as its number.
    fn row(row: u32) -> Ranked {
        let address = RowAddress { segment: 0, row: RowId(row) };
        Ranked { address, score: 0.5, parts: ScoreParts::default() }
    }

    fn position(row: &Ranked) -> ChunkPosition {
        let (source, index) = (row.address.row.0 / 100, row.address.row.0 % 100);
        ChunkPosition { source: (0, source), source_chunks: source as usize, index }
    }

    fn rows_of(results: &[MergedResult]) -> Vec<Vec<u32>> {
        let rows =
            |result: &MergedResult| result.chunks.iter().map(|row| row.address.row.0).collect();
        results.iter().map(rows).collect()
    }

    fn merged_rows(ranked: &[u32], wanted: usize, join: Join) -> Vec<Vec<u32>> {
        let ranked: Vec<Ranked> = ranked.iter().map(|at| row(*at)).collect();
        rows_of(&merged(&ranked, wanted, join, position))
    }

    #[test]
    fn neighbours_become_one_result_and_free_others() {
        let ranked = [902, 907, 903, 500, 901, 909, 908];
        assert_eq!(merged_rows(&ranked, 3, Join::Never), [[902], [907], [903]]);
        let joined = merged_rows(&ranked, 3, Join::Always);
        assert_eq!(joined, [vec![901, 902, 903], vec![907], vec![500]]);
        let bridged = merged_rows(&ranked, 9, Join::Always);
        assert_eq!(bridged, [vec![901, 902, 903], vec![907, 908, 909], vec![500]]);
        assert_eq!(merged_rows(&ranked, 9, Join::Auto).len(), ranked.len(), "a long source");
        assert_eq!(merged_rows(&[301, 902, 302, 903], 2, Join::Auto), [vec![301, 302], vec![902]]);
        assert_eq!(merged_rows(&[102, 203, 204], 9, Join::Always), [vec![102], vec![203, 204]]);
    }

    proptest! {
        /// Goal: no row is lost or duplicated. There are at most as many results as wanted, each a
        /// bounded run of one source, in the order of the ranking; without joins it is the ranking.
        #[test]
        fn results_hold_the_first_rows_once(
            ranked in prop::collection::btree_set((1_u32..6, 0_u32..20), 0..60),
            order in any::<prop::sample::Index>(),
            wanted in 1_usize..20,
            join in prop::sample::select(vec![Join::Never, Join::Always, Join::Auto]),
        ) {
            let mut ranked: Vec<u32> = ranked.iter().map(|(s, i)| s * 100 + i).collect();
            let by = order.index(997) as u32 + 1;
            ranked.sort_by_key(|row| row.wrapping_mul(2_654_435_761).rotate_left(by % 31));
            let found = merged_rows(&ranked, wanted, join);
            let mut rows: Vec<u32> = found.concat();
            prop_assert!(found.len() <= wanted);
            prop_assert!(found.len() == wanted || rows.len() == ranked.len());
            for run in &found {
                prop_assert!(run.len() <= RESULT_CHUNKS_MAX);
                prop_assert!(run.windows(2).all(|pair| pair[1] == pair[0] + 1));
                prop_assert!(run[0] / 100 == run[run.len() - 1] / 100);
            }
            let first: Vec<usize> = found.iter().map(|run| {
                run.iter().map(|row| ranked.iter().position(|at| at == row).unwrap()).min()
            }).map(Option::unwrap).collect();
            prop_assert!(first.is_sorted());
            rows.sort_unstable();
            let mut expected = ranked[..rows.len()].to_vec();
            expected.sort_unstable();
            prop_assert_eq!(rows, expected, "a prefix of the ranking");
        }

        /// Goal: however a text is cut into chunks, joining them restores it.
        #[test]
        fn joined_text_is_the_slice(
            text in "([a-zé\u{4e00}]{1,9}[ \n]{1,3}){4,40}",
            tokens in 3_usize..12,
            overlap in 0_usize..5,
        ) {
            let sizes = lodestone_text::chunk::ChunkSizes { tokens, overlap };
            struct Words;
            impl lodestone_text::chunk::TokenOffsets for Words {
                fn token_offsets(&self, text: &str) -> Vec<std::ops::Range<usize>> {
                    let words = text.split_whitespace();
                    let at = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
                    words.map(|word| at(word)..at(word) + word.len()).collect()
                }
            }
            let drafts = lodestone_text::chunk::chunk(&text, &[], &Words, sizes);
            let chunks: Vec<RetrievedChunk> = drafts.iter().zip(0..).map(|(draft, index)| {
                let above = index.to_string();
                RetrievedChunk { place: draft.place, above, ..chunk("s", index, &draft.text, 0.5) }
            }).collect();
            let whole = joined(chunks.clone(), chunks.len() / 2);
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&whole.text), words(&text));
            prop_assert_eq!(whole.above, "0", "what is above the first is above them all");
            prop_assert_eq!(whole.place.chars as usize, whole.text.chars().count());
            prop_assert_eq!(whole.uuid, chunks[chunks.len() / 2].uuid.clone());
            prop_assert_eq!(whole.joined.len(), if chunks.len() > 1 { chunks.len() } else { 0 });
        }
    }

    #[test]
    fn rectangles_of_a_page_become_one() {
        let area = |x| PageArea { x, y: 0.0, width: 10.0, height: 5.0 };
        let mut boxes = Vec::new();
        for (page, x) in [(1, 0.0), (1, 20.0), (2, 4.0)] {
            surround(&mut boxes, PageBox { page, area: area(x) });
        }
        let shown: Vec<(u32, f32)> = boxes.iter().map(|one| (one.page, one.area.width)).collect();
        assert_eq!(shown, [(1, 30.0), (2, 10.0)]);
    }
}
