//! Positions where a text may be cut, graded by quality.
//!
//! Sentence ends are found by rule, not by UAX #29: that algorithm breaks at every line end, which
//! is wrong for hard-wrapped prose, and may look ahead without bound.

use crate::chunk::marks::{is_closer, is_wide_end};
use lodestone_types::{Block, BlockKind};

/// The quality of a position, worst first. Cuts between and inside words are not listed; `cut`
/// finds those when there is nothing better nearby.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// A line starts inside a paragraph.
    Line,
    /// A sentence starts, or a line of code or of a table.
    Sentence,
    /// A block starts.
    Block,
    /// A heading starts.
    Heading,
    /// A top-level heading starts; overlap never crosses it.
    Section,
}

/// Headings up to this level open a section.
const SECTION_LEVEL_MAX: u8 = 2;

/// A position at which a chunk may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Break {
    /// Byte offset in the text.
    pub at: usize,
    /// Quality of the position.
    pub strength: Strength,
}

/// Minimum number of lines of a listing, and the number of lines among which one may start like a
/// line of prose.
const LISTING_LINES_MIN: usize = 4;
const PROSE_LINES: usize = 8;
/// Maximum bytes of an abbreviation, including leading quotes and brackets.
const ABBREVIATION_BYTES_MAX: usize = 12;

/// Finds all positions graded [`Strength::Line`] or better, in ascending order and without
/// duplicates.
pub(super) fn find(text: &str, blocks: &[Block]) -> Vec<Break> {
    let mut breaks = Vec::new();
    let mut done = 0;
    let (mut after_heading, mut after_lead) = (false, false);
    for block in blocks {
        debug_assert!(done <= block.range.start && block.range.end <= text.len());
        let Some(inner) = text.get(block.range.clone()) else { continue };
        if !after_heading {
            scan(text, done, block.range.start, Lines::Wrapped, &mut breaks);
            // A line that introduces a list or a table means nothing without it.
            let is_announced = after_lead && strength_of(block.kind) == Strength::Block;
            let strength = if is_announced { Strength::Line } else { strength_of(block.kind) };
            push(&mut breaks, block.range.start, strength);
        }
        let lines = lines_of(block.kind, inner);
        after_lead = block.kind == BlockKind::Paragraph && inner.ends_with([':', '\u{FF1A}']);
        after_heading = matches!(block.kind, BlockKind::Heading { .. });
        if !after_heading {
            scan(text, block.range.start, block.range.start + inner.len(), lines, &mut breaks);
        }
        done = block.range.end;
    }
    if !after_heading {
        scan(text, done, text.len(), Lines::Wrapped, &mut breaks);
    }
    breaks
}

fn strength_of(kind: BlockKind) -> Strength {
    match kind {
        BlockKind::Heading { level } if level <= SECTION_LEVEL_MAX => Strength::Section,
        BlockKind::Heading { .. } => Strength::Heading,
        BlockKind::Paragraph
        | BlockKind::ListItem
        | BlockKind::Table
        | BlockKind::Code
        | BlockKind::Record => Strength::Block,
    }
}

/// Whether the lines of a paragraph are independent, as in logs and code: hardly any starts with a
/// lower-case or caseless letter, as lines of wrapped prose do.
fn is_listing(paragraph: &str) -> bool {
    let is_prose = |line: &str| {
        let first = line.trim_start().chars().next();
        first.is_some_and(|c| c.is_alphabetic() && !c.is_uppercase())
    };
    let (mut lines, mut prose) = (0, 0);
    for line in paragraph.lines() {
        lines += 1;
        prose += usize::from(is_prose(line));
    }
    lines >= LISTING_LINES_MIN && prose * PROSE_LINES <= lines
}

/// Relation between the lines of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Prose that continues across lines.
    Wrapped,
    /// Separate parts, each as good a cut as a sentence.
    Parts,
    /// Separate entries, which are kept whole whatever sentences they contain.
    Entries,
}

fn lines_of(kind: BlockKind, content: &str) -> Lines {
    match kind {
        BlockKind::Code | BlockKind::Table | BlockKind::Record | BlockKind::ListItem => {
            Lines::Parts
        }
        BlockKind::Paragraph if is_listing(content) => Lines::Entries,
        BlockKind::Paragraph | BlockKind::Heading { .. } => Lines::Wrapped,
    }
}

fn push(breaks: &mut Vec<Break>, at: usize, strength: Strength) {
    match breaks.last_mut() {
        Some(last) if last.at == at => last.strength = last.strength.max(strength),
        Some(last) if last.at > at => {}
        _ => breaks.push(Break { at, strength }),
    }
}

/// A possible sentence end, pending the next character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A full stop: ends a sentence only if followed by white space and no lower-case letter.
    Stop,
    /// A mark that ends a sentence if followed by white space.
    Mark,
    /// A mark of a script without spaces, which always ends a sentence.
    Wide,
}

/// Finds the breaks inside `from..to`: after sentences, at lines and at blank lines.
fn scan(text: &str, from: usize, to: usize, own: Lines, breaks: &mut Vec<Break>) {
    let mut pending = Pending::Nothing;
    let mut lines = 0_u32;
    let mut spaced = false;
    let mut word_start = from;
    for (offset, c) in text[from..to].char_indices() {
        let at = from + offset;
        if c.is_whitespace() {
            lines += u32::from(c == '\n');
            spaced = true;
            continue;
        }
        let sentence_begins = match pending {
            Pending::Nothing => false,
            Pending::Wide => !is_closer(c) && !is_wide_end(c),
            Pending::Mark => spaced,
            Pending::Stop => spaced && !c.is_lowercase(),
        };
        if lines > 1 {
            push(breaks, at, Strength::Block);
        } else if (lines == 1 && own != Lines::Wrapped)
            || (sentence_begins && own != Lines::Entries)
        {
            push(breaks, at, Strength::Sentence);
        } else if sentence_begins || lines == 1 {
            push(breaks, at, Strength::Line);
        }
        if spaced || sentence_begins {
            word_start = at;
            pending = Pending::Nothing;
        }
        lines = 0;
        spaced = false;
        pending = match c {
            '.' if is_abbreviation(&text[word_start..at]) => Pending::Nothing,
            '.' => Pending::Stop,
            '!' | '?' | '\u{2026}' | '\u{0964}' | '\u{0965}' | '\u{061F}' | '\u{06D4}'
            | '\u{0589}' => Pending::Mark,
            _ if is_wide_end(c) => Pending::Wide,
            _ if is_closer(c) => pending,
            _ => Pending::Nothing,
        };
    }
}

/// Whether a full stop after `word` does not end a sentence: initials and common abbreviations.
fn is_abbreviation(word: &str) -> bool {
    const SHORT: [&str; 18] = [
        "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "fig", "al", "cf", "eq", "vol",
        "pp", "ca", "approx", "dept",
    ];
    // Longer words are not in the list, and must not be rescanned at each full stop inside them.
    if word.len() > ABBREVIATION_BYTES_MAX {
        return false;
    }
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut characters = word.chars();
    let is_initial =
        characters.next().is_some_and(char::is_uppercase) && characters.next().is_none();
    is_initial || SHORT.iter().any(|short| word.eq_ignore_ascii_case(short))
}
