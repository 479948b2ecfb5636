//! Menus among the blocks of a page: runs of short links before the first prose or after the last.
//!
//! Sites put navigation, language links and tags next to the text, often in elements without
//! semantics. Menus are therefore found by counting letters: a menu consists of links, prose does
//! not. The rule prefers to keep a menu over dropping a list that somebody wrote: a list of links
//! between two paragraphs stays, and so does everything on a page that is mostly links.

use std::ops::Range;

use crate::grid::Letters;

/// Minimum number of letters outside of links for a block to be prose.
const PROSE_LETTERS_MIN: usize = 80;
/// Minimum number of links in a run for it to be a menu.
const RUN_LINKS_MIN: usize = 5;
/// Minimum number of links in a run for it to be a menu in an uploaded file.
const LONG_RUN_LINKS_MIN: usize = 20;
/// Maximum number of letters per link in a menu, on average over a block.
const LINK_LETTERS_MAX: usize = 60;

/// The number of letters and digits in a text.
pub(super) fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

impl Letters {
    fn is_prose(self) -> bool {
        self.all.saturating_sub(self.linked) >= PROSE_LETTERS_MIN
    }

    /// Whether four fifths of the letters are in links, and the links are short.
    fn is_menu(self) -> bool {
        self.links > 0
            && self.linked * 5 >= self.all * 4
            && self.linked <= self.links * LINK_LETTERS_MAX
    }
}

/// Marks the blocks in the header of a page that are not prose; none if that would be half of the
/// page.
pub(super) fn found_above(blocks: &[Letters]) -> Vec<bool> {
    believed(blocks, in_header(blocks))
}

/// Marks long menus above the first prose; none if that would be half of the page.
pub(super) fn long_above(blocks: &[Letters]) -> Vec<bool> {
    let Some(first) = blocks.iter().position(|block| block.is_prose()) else {
        return Vec::new();
    };
    let mut found = vec![false; blocks.len()];
    mark_menus(blocks, LONG_RUN_LINKS_MIN, |run| run.end <= first, &mut found);
    believed(blocks, found)
}

/// Marks menus, and the blocks in the header of a page that are not prose; none if that would be
/// half of the page.
pub(super) fn found_in(blocks: &[Letters]) -> Vec<bool> {
    let Some(first) = blocks.iter().position(|block| block.is_prose()) else {
        return Vec::new();
    };
    let last = blocks.iter().rposition(|block| block.is_prose()).unwrap_or(first);
    let mut dropped = in_header(blocks);
    let is_outside = |run: &Range<usize>| run.end <= first || run.start > last;
    mark_menus(blocks, RUN_LINKS_MIN, is_outside, &mut dropped);
    believed(blocks, dropped)
}

fn in_header(blocks: &[Letters]) -> Vec<bool> {
    blocks.iter().map(|block| block.is_in_header && !block.is_prose()).collect()
}

/// Marks runs of at least this many links in menus, at positions that `counts` accepts.
fn mark_menus(
    blocks: &[Letters],
    links_min: usize,
    counts: impl Fn(&Range<usize>) -> bool,
    dropped: &mut [bool],
) {
    let mut start = 0;
    for run in blocks.chunk_by(|one, next| one.is_menu() == next.is_menu()) {
        let place = start..start + run.len();
        start = place.end;
        let links: usize = run.iter().map(|block| block.links).sum();
        if run[0].is_menu() && links >= links_min && counts(&place) {
            dropped[place].fill(true);
        }
    }
}

fn believed(blocks: &[Letters], dropped: Vec<bool>) -> Vec<bool> {
    let total: usize = blocks.iter().map(|block| block.all).sum();
    let pairs = blocks.iter().zip(&dropped).filter(|(_, is_dropped)| **is_dropped);
    let lost: usize = pairs.map(|(block, _)| block.all).sum();
    if lost * 2 > total { Vec::new() } else { dropped }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROSE: Letters = Letters { all: 400, linked: 40, links: 3, is_in_header: false };
    const ITEM: Letters = Letters { all: 10, linked: 10, links: 1, is_in_header: false };
    const NOTE: Letters = Letters { all: 12, linked: 0, links: 0, is_in_header: false };

    #[test]
    fn only_what_surrounds_the_prose_is_a_menu() {
        let page = [&[NOTE][..], &[ITEM; 6], &[PROSE], &[ITEM; 6], &[PROSE, NOTE], &[ITEM; 4]];
        let dropped = found_in(&page.concat());
        let numbers: Vec<usize> = (0..dropped.len()).filter(|&number| dropped[number]).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6], "the list between stays, and the short one");
        assert_eq!(found_in(&[ITEM; 50]), Vec::<bool>::new(), "a page of links is its links");
        let mostly = [&[ITEM; 50][..], &[PROSE]].concat();
        assert_eq!(found_in(&mostly), Vec::<bool>::new());
        let long = Letters { all: 90, linked: 90, links: 1, ..ITEM };
        assert!(!found_in(&[&[PROSE; 9][..], &[long; 9]].concat()).contains(&true));
        assert_eq!(found_in(&[]), Vec::<bool>::new());
        // In a file, only a long menu counts, and only above the text.
        let file = [&[ITEM; 6][..], &[NOTE], &[ITEM; 20], &[PROSE; 3], &[ITEM; 30]].concat();
        let found = long_above(&file);
        let numbers: Vec<usize> = (0..found.len()).filter(|&number| found[number]).collect();
        assert_eq!(numbers, (7..27).collect::<Vec<_>>());
        let above = [NOTE, PROSE].map(|block| Letters { is_in_header: true, ..block });
        assert_eq!(found_in(&[&above[..], &[PROSE, NOTE]].concat()), [true, false, false, false]);
    }
}
