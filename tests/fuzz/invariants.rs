//! Invariants of the text of any document, and of its chunks.

use std::ops::Range;

use lodestone_text::chunk::{ChunkSizes, TokenOffsets, chunk};
use lodestone_types::{Extracted, PageRef};

/// Length of a text in bytes up to which chunks are checked: readers may expand an input, and the
/// chunker has its own tests for long texts.
const CHUNKED_BYTES_MAX: usize = 1 << 20;
const SMALL: ChunkSizes = ChunkSizes { tokens: 20, overlap: 6 };

/// The words of a text: runs of non-whitespace characters.
struct Words;

impl TokenOffsets for Words {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        let start = |word: &str| word.as_ptr().addr() - text.as_ptr().addr();
        text.split_whitespace().map(|word| start(word)..start(word) + word.len()).collect()
    }
}

/// Panics if `extracted` violates an invariant.
pub fn check(extracted: &Extracted) {
    check_blocks(extracted);
    check_pages(extracted);
    check_geometry(extracted);
    if extracted.text.len() <= CHUNKED_BYTES_MAX {
        check_chunks(extracted, ChunkSizes::default());
        check_chunks(extracted, SMALL);
    }
}

fn check_blocks(extracted: &Extracted) {
    let text = &extracted.text;
    assert!(!text.contains(['\0', '\r']), "a character that texts do not have");
    assert!(!text.trim().is_empty(), "a blank text is no text");
    let mut done = 0;
    for block in &extracted.blocks {
        assert!(block.range.start >= done, "blocks ascend");
        assert!(text.get(done..block.range.start).is_some(), "blocks begin at characters");
        assert!(text[done..block.range.start].trim().is_empty(), "text between blocks");
        let content = text.get(block.range.clone()).expect("blocks end at characters");
        assert!(!content.trim().is_empty(), "a blank block");
        assert!(!content.starts_with('\n') && !content.ends_with('\n'), "blank lines in a block");
        done = block.range.end;
    }
    assert!(text[done..].trim().is_empty(), "text behind the blocks");
}

fn check_pages(extracted: &Extracted) {
    let number = |page: PageRef| match page {
        PageRef::Whole => 0,
        PageRef::Page(number) | PageRef::Slide(number) | PageRef::Sheet(number) => number,
    };
    let pages = &extracted.pages;
    assert!(pages.iter().all(|page| number(page.page) > 0), "pages count from 1");
    let is_after = |pair: &[_]| matches!(pair, [a, b] if number(*a) < number(*b));
    let numbers: Vec<PageRef> = pages.iter().map(|page| page.page).collect();
    assert!(numbers.windows(2).all(is_after), "pages ascend");
    assert!(pages.is_sorted_by(|a, b| a.start < b.start), "pages begin one after the other");
    let starts = |start: usize| {
        let blocks = &extracted.blocks;
        blocks.binary_search_by_key(&start, |block| block.range.start).is_ok()
    };
    assert!(pages.iter().all(|page| starts(page.start)), "a page begins with a block");
}

fn check_geometry(extracted: &Extracted) {
    let mut done = 0;
    for line in extracted.geometry.lines() {
        assert!(line.range.start >= done && !line.range.is_empty(), "lines ascend");
        assert!(extracted.text.get(line.range.clone()).is_some(), "lines are text");
        let area = line.area;
        let sides = [area.x, area.y, area.width, area.height];
        assert!(sides.iter().all(|side| side.is_finite()), "a place without a place: {area:?}");
        assert!(area.width >= 0.0 && area.height >= 0.0, "a place inside out: {area:?}");
        let before = extracted.pages.partition_point(|page| page.start <= line.range.start);
        let page = before.checked_sub(1).map(|at| extracted.pages[at].page);
        assert_eq!(page, Some(PageRef::Page(line.page)), "a line on another page");
        done = line.range.end;
    }
}

fn check_chunks(extracted: &Extracted, sizes: ChunkSizes) {
    let text = &extracted.text;
    let (mut character, mut byte) = (0, 0);
    for draft in chunk(text, &extracted.blocks, &Words, sizes) {
        let start = draft.place.document_start as usize;
        assert!(start >= character, "chunks ascend");
        byte += text[byte..].chars().take(start - character).map(char::len_utf8).sum::<usize>();
        character = start;
        assert!(text[byte..].starts_with(&draft.text), "a chunk is the text at its place");
        assert_eq!(draft.text.chars().count(), draft.place.chars as usize);
        assert!(!draft.text.trim().is_empty(), "a blank chunk");
    }
}
