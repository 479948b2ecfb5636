//! Headings told from prose by the size and weight of their letters.

use std::collections::BTreeMap;

use crate::pdf::passage::{Kind, Passage};

/// A heading is larger than the text below it by this.
const LARGER: f32 = 1.12;
/// Characters of the longest heading, of larger letters and of bold ones.
const CHARS_MAX: usize = 200;
const BOLD_CHARS_MAX: usize = 120;
/// Levels that sizes can give; bold text in the usual size is one level below.
const SIZE_LEVELS_MAX: usize = 4;
/// Sizes are told apart in steps of half a point.
const STEPS_PER_POINT: f32 = 2.0;

/// Makes headings of the passages that are.
pub(super) fn mark<'a>(passages: impl Iterator<Item = &'a mut Passage>) {
    let mut passages: Vec<&mut Passage> = passages.collect();
    let Some(body) = body_size(&passages) else { return };
    let mut levels: Vec<i32> = Vec::new();
    for passage in passages.iter().filter(|passage| is_large(passage, body)) {
        levels.push(step(passage.size));
    }
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    levels.truncate(SIZE_LEVELS_MAX);
    let bold = levels.len() as u8 + 1;
    for passage in &mut passages {
        if is_large(passage, body) {
            let above = levels.iter().filter(|level| **level > step(passage.size)).count();
            let level = (above + 1).min(SIZE_LEVELS_MAX) as u8;
            passage.kind = Kind::Heading { level };
        } else if is_bold(passage, body) {
            passage.kind = Kind::Heading { level: bold };
        }
    }
}

fn step(size: f32) -> i32 {
    (size * STEPS_PER_POINT).round() as i32
}

/// The size in which most of the text is set.
fn body_size(passages: &[&mut Passage]) -> Option<f32> {
    let mut letters: BTreeMap<i32, usize> = BTreeMap::new();
    for passage in passages {
        if matches!(passage.kind, Kind::Prose | Kind::Item) {
            *letters.entry(step(passage.size)).or_default() += passage.text.len();
        }
    }
    let most = letters.into_iter().max_by_key(|(_, letters)| *letters)?;
    Some(most.0 as f32 / STEPS_PER_POINT)
}

fn is_large(passage: &Passage, body: f32) -> bool {
    passage.size >= LARGER * body && is_title(passage, CHARS_MAX)
}

fn is_bold(passage: &Passage, body: f32) -> bool {
    passage.is_bold
        && passage.size > 0.9 * body
        && !passage.text.ends_with(':')
        && is_title(passage, BOLD_CHARS_MAX)
}

/// Whether a passage could be a title: short, of words, without the end of a sentence.
fn is_title(passage: &Passage, chars_max: usize) -> bool {
    let letters = passage.text.chars().filter(|c| c.is_alphabetic()).count();
    let chars = passage.text.chars().filter(|c| !c.is_whitespace()).count();
    // Numbered headings look like items.
    let is_kind = matches!(passage.kind, Kind::Prose)
        || (passage.kind == Kind::Item && passage.text.starts_with(|c: char| c.is_ascii_digit()));
    is_kind
        && letters >= 3
        && letters * 2 >= chars
        && chars <= chars_max
        && !passage.text.ends_with(['.', ',', ';'])
}
