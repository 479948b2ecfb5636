//! Detects headings by the size and weight of their letters.

use std::collections::BTreeMap;

use crate::pdf::page_block::{Kind, PageBlock};

/// Minimum ratio of heading size to body size.
const LARGER: f32 = 1.12;
/// Maximum characters of a heading in larger letters and of one in bold.
const CHARS_MAX: usize = 200;
const BOLD_CHARS_MAX: usize = 120;
/// Maximum heading levels by size; bold text in body size is one level below.
const SIZE_LEVELS_MAX: usize = 4;
/// Sizes are compared in steps of half a point.
const STEPS_PER_POINT: f32 = 2.0;

/// Marks the blocks that are headings.
pub(super) fn mark<'a>(blocks: impl Iterator<Item = &'a mut PageBlock>) {
    let mut blocks: Vec<&mut PageBlock> = blocks.collect();
    let Some(body) = body_size(&blocks) else { return };
    let mut levels: Vec<i32> = Vec::new();
    for block in blocks.iter().filter(|block| is_large(block, body)) {
        levels.push(step(block.size));
    }
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    levels.truncate(SIZE_LEVELS_MAX);
    let bold = levels.len() as u8 + 1;
    for block in &mut blocks {
        if is_large(block, body) {
            let above = levels.iter().filter(|level| **level > step(block.size)).count();
            let level = (above + 1).min(SIZE_LEVELS_MAX) as u8;
            block.kind = Kind::Heading { level };
        } else if is_bold(block, body) {
            block.kind = Kind::Heading { level: bold };
        }
    }
}

fn step(size: f32) -> i32 {
    (size * STEPS_PER_POINT).round() as i32
}

/// The size in which most of the text is set.
fn body_size(blocks: &[&mut PageBlock]) -> Option<f32> {
    let mut letters: BTreeMap<i32, usize> = BTreeMap::new();
    for block in blocks {
        if matches!(block.kind, Kind::Prose | Kind::Item) {
            *letters.entry(step(block.size)).or_default() += block.text.len();
        }
    }
    let most = letters.into_iter().max_by_key(|(_, letters)| *letters)?;
    Some(most.0 as f32 / STEPS_PER_POINT)
}

fn is_large(block: &PageBlock, body: f32) -> bool {
    block.size >= LARGER * body && is_title(block, CHARS_MAX)
}

fn is_bold(block: &PageBlock, body: f32) -> bool {
    block.is_bold
        && block.size > 0.9 * body
        && !block.text.ends_with(':')
        && is_title(block, BOLD_CHARS_MAX)
}

/// Whether a block could be a title: short, made of words, not ending like a sentence, and not a
/// running head.
fn is_title(block: &PageBlock, chars_max: usize) -> bool {
    let letters = block.text.chars().filter(|c| c.is_alphabetic()).count();
    let chars = block.text.chars().filter(|c| !c.is_whitespace()).count();
    // Numbered headings look like list items.
    let is_kind = matches!(block.kind, Kind::Prose)
        || (block.kind == Kind::Item && block.text.starts_with(|c: char| c.is_ascii_digit()));
    is_kind
        && !block.is_running
        && letters >= 3
        && letters * 2 >= chars
        && chars <= chars_max
        && !block.text.ends_with(['.', ',', ';'])
}
