//! Places where a text may be cut, by quality.
//!
//! Sentences are found by rule, not by UAX #29: that algorithm breaks at every line end, which is
//! wrong for hard-wrapped prose, and may look ahead without bound.

use crate::chunk::marks::{is_closer, is_wide_end};
use lodestone_types::{Block, BlockKind};

/// The quality of a place, worst first. Cuts between words and inside them are not listed: `cut`
/// finds those when nothing better is near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// A line begins inside a paragraph.
    Line,
    /// A sentence begins, or a line of code or of a table.
    Sentence,
    /// A block begins.
    Block,
    /// A heading begins.
    Heading,
    /// A heading of a high level begins; nothing is repeated across it.
    Section,
}

/// Headings up to this level open a section.
const SECTION_LEVEL_MAX: u8 = 2;

/// A place to cut: a chunk may begin here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Break {
    /// Byte of the text.
    pub at: usize,
    /// Its quality.
    pub strength: Strength,
}

/// Lines from which on a paragraph can be a listing, and among so many of them one may begin as a
/// line of prose does.
const LISTING_LINES_MIN: usize = 4;
const PROSE_LINES: usize = 8;
/// Bytes of a short form at most, quotes and brackets before it included.
const ABBREVIATION_BYTES_MAX: usize = 12;

/// All places of `text` from good to best, ascending, one for each byte at most.
pub(super) fn find(text: &str, blocks: &[Block]) -> Vec<Break> {
    let mut breaks = Vec::new();
    let mut done = 0;
    let (mut after_heading, mut after_lead) = (false, false);
    for block in blocks {
        debug_assert!(done <= block.range.start && block.range.end <= text.len());
        let Some(inner) = text.get(block.range.clone()) else { continue };
        if !after_heading {
            scan(text, done, block.range.start, Lines::Wrapped, &mut breaks);
            // A line that announces a list or a table says nothing without it.
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

/// Whether the lines of a paragraph stand for themselves, as those of logs and of code do: hardly
/// any begins with a small letter or a letter without case, as the lines of wrapped prose do.
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

/// The lines of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Prose goes on from one to the next.
    Wrapped,
    /// Each is a part of its own, as good to cut at as a sentence.
    Parts,
    /// Each is a whole of its own, whatever sentences are in it.
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

/// A possible end of a sentence, while the scan waits for the character behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    /// A full stop: a sentence ends only if white space and no small letter follow.
    Stop,
    /// A mark that ends a sentence where white space follows.
    Mark,
    /// A mark of a script without spaces: it ends a sentence whatever follows.
    Wide,
}

/// Finds the breaks inside `from..to`: after sentences, at lines, at blank lines.
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

/// Whether a full stop after `word` does not end a sentence: initials and common short forms.
fn is_abbreviation(word: &str) -> bool {
    const SHORT: [&str; 18] = [
        "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "fig", "al", "cf", "eq", "vol",
        "pp", "ca", "approx", "dept",
    ];
    // A longer word is none of them, and must not be looked through at each full stop in it.
    if word.len() > ABBREVIATION_BYTES_MAX {
        return false;
    }
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut characters = word.chars();
    let is_initial =
        characters.next().is_some_and(char::is_uppercase) && characters.next().is_none();
    is_initial || SHORT.iter().any(|short| word.eq_ignore_ascii_case(short))
}
