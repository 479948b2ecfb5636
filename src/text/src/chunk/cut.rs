//! The packing: a single pass from left to right that picks the end of each chunk, then the start
//! of the next.

use unicode_segmentation::UnicodeSegmentation;

use crate::chunk::breaks::{self, Break, Strength};
use crate::chunk::ruler::Ruler;
use crate::chunk::{CHARS_PER_TOKEN_MAX, ChunkSizes, TokenOffsets};
use lodestone_types::script::is_unspaced;
use lodestone_types::{Block, BlockKind, ChunkDraft, ChunkPlace, PageRef};

/// Minimum fill of a chunk, in percent of its tokens, before a cut of this strength is taken.
/// Better cuts may come earlier.
const FILL_PERCENT: [(Strength, usize); 5] = [
    (Strength::Section, 30),
    (Strength::Heading, 50),
    (Strength::Block, 60),
    (Strength::Sentence, 50),
    (Strength::Line, 60),
];

/// Maximum bytes searched back for a grapheme boundary, so that a megabyte of combining marks costs
/// no more than prose.
const GRAPHEME_BYTES_MAX: usize = 128;

/// Splits `text` into chunks. `blocks` is its structure (see [`lodestone_types::Extracted`]); if
/// there is none, blank lines separate paragraphs.
///
/// Out-of-range sizes are clamped.
pub fn chunk(
    text: &str,
    blocks: &[Block],
    tokens: &dyn TokenOffsets,
    sizes: ChunkSizes,
) -> Vec<ChunkDraft> {
    let tokens_max = sizes.tokens.max(1);
    let cutter = Cutter {
        text,
        blocks,
        breaks: breaks::find(text, blocks),
        ruler: Ruler::new(text, tokens),
        tokens_max,
        overlap: sizes.overlap.min(tokens_max.saturating_sub(1) / 2),
    };
    let mut drafts = Vec::new();
    let mut place = CharPlace::default();
    let mut start = skip_space(text, 0);
    let mut covered = start;
    while covered < text.len() {
        let end = cutter.end(start, covered);
        let body = text[start..end].trim_end();
        debug_assert!(!body.is_empty());
        let document_start = place.at(text, start);
        let chars = body.chars().count() as u32;
        let page = PageRef::Whole;
        let place = ChunkPlace { document_start, page_start: document_start, chars, page };
        drafts.push(ChunkDraft { text: body.to_owned(), place });
        covered = skip_space(text, end);
        start = cutter.next_start(start, start + body.len(), covered);
    }
    drafts
}

/// A cursor that counts characters as it moves forward.
#[derive(Debug, Default)]
struct CharPlace {
    byte: usize,
    chars: u32,
}

impl CharPlace {
    /// Counts the characters before `byte`, which must not decrease between calls.
    fn at(&mut self, text: &str, byte: usize) -> u32 {
        self.chars += text[self.byte..byte].chars().count() as u32;
        self.byte = byte;
        self.chars
    }
}

struct Cutter<'a> {
    text: &'a str,
    blocks: &'a [Block],
    breaks: Vec<Break>,
    ruler: Ruler,
    tokens_max: usize,
    overlap: usize,
}

impl Cutter<'_> {
    /// Picks the end of the chunk that starts at `start`; it must exceed `covered`, the end of the
    /// previous chunk.
    fn end(&self, start: usize, covered: usize) -> usize {
        let limit = self.limit(start).max(next_char(self.text, covered));
        if self.text[limit..].trim_start().is_empty() {
            return self.text.len();
        }
        let first = self.breaks.partition_point(|b| b.at <= covered);
        let after = self.breaks.partition_point(|b| b.at <= limit);
        let first_token = self.ruler.before(start);
        for (strength, percent) in FILL_PERCENT {
            let earliest = self.ruler.start(first_token + self.tokens_max * percent / 100);
            let earliest = earliest.unwrap_or(start);
            let within = self.breaks[first..after].iter().rev().take_while(|b| b.at >= earliest);
            if let Some(found) = { within }.find(|b| b.strength >= strength) {
                return found.at;
            }
        }
        self.word_end(start, covered, limit)
    }

    /// The furthest permitted end of a chunk that starts at `start`, by tokens and by characters.
    fn limit(&self, start: usize) -> usize {
        let first = self.ruler.before(start);
        // The rest of a token that was cut counts as one.
        let is_inside = self.ruler.start(first) != Some(start);
        let tokens = self.tokens_max - usize::from(is_inside);
        let by_tokens = self.ruler.start(first + tokens).unwrap_or(self.text.len());
        let chars_max = self.tokens_max * CHARS_PER_TOKEN_MAX;
        let within = &self.text[start..by_tokens];
        match within.char_indices().nth(chars_max) {
            Some((length, _)) => start + length,
            None => by_tokens,
        }
    }

    /// The last word boundary in `covered..=limit`, or else the last grapheme boundary. In a script
    /// without spaces, a space in the first half of the chunk is not worth the rest of it.
    fn word_end(&self, start: usize, covered: usize, limit: usize) -> usize {
        let begins_word = self.text[..limit].ends_with(char::is_whitespace)
            || self.text[limit..].starts_with(char::is_whitespace);
        if begins_word {
            return limit;
        }
        let space = self.text[covered..limit].rfind(char::is_whitespace);
        let space = space.filter(|at| *at > 0).map(|at| covered + at);
        let is_run =
            |at: usize| at - start < limit - at && self.text[at..limit].chars().any(is_unspaced);
        match space.filter(|at| !is_run(*at)) {
            Some(at) => at,
            None => last_grapheme(self.text, covered, limit),
        }
    }

    /// Picks the start of the next chunk: `overlap` tokens before `end`, at a sentence or a word,
    /// but not inside a record that ends there; or `covered`, the first character not yet in a
    /// chunk, if a section starts there.
    fn next_start(&self, start: usize, end: usize, covered: usize) -> usize {
        if self.overlap == 0 || covered >= self.text.len() {
            return covered;
        }
        let upto = self.breaks.partition_point(|b| b.at <= covered);
        let behind = &self.breaks[..upto];
        if behind.last().is_some_and(|b| b.at == covered && b.strength == Strength::Section) {
            return covered;
        }
        let end_token = self.ruler.before(end);
        let back = |tokens: usize| {
            let at = end_token.checked_sub(tokens).and_then(|index| self.ruler.start(index));
            at.unwrap_or(0).max(self.chars_back(end, tokens * CHARS_PER_TOKEN_MAX))
        };
        let after_start = next_char(self.text, start);
        let earliest = back(self.overlap + self.overlap / 2).max(after_start);
        let latest = back(self.overlap - self.overlap / 2).max(after_start);
        let target = back(self.overlap).max(after_start);
        let mut nearest: Option<Break> = None;
        for candidate in behind.iter().rev().take_while(|b| b.at >= earliest) {
            if candidate.strength == Strength::Section && candidate.at < end {
                nearest = Some(*candidate);
                break;
            }
            let is_nearer =
                nearest.is_none_or(|n| n.at.abs_diff(target) > candidate.at.abs_diff(target));
            let is_inside = self.is_in_record(candidate.at, covered);
            if candidate.at <= latest && is_nearer && !is_inside {
                nearest = Some(*candidate);
            }
        }
        let found = match nearest {
            Some(found) => found.at,
            None if self.is_in_record(target, covered) => covered,
            None => self.word_start(start, target, end),
        };
        // After a long run of white space, nothing of the overlap fits into the next chunk.
        if found < end && self.limit(found) > covered { found } else { covered }
    }

    /// Whether `at` is behind the start of a record that ends before `covered`: the rest of such a
    /// record means nothing without its first lines.
    fn is_in_record(&self, at: usize, covered: usize) -> bool {
        let begun = self.blocks.partition_point(|block| block.range.start < at);
        let last = self.blocks[..begun].last().map(|block| (block.kind, block.range.end));
        last.is_some_and(|(kind, end)| kind == BlockKind::Record && at < end && end <= covered)
    }

    /// The first word start in `from..end`, or else the last grapheme boundary up to `from` and
    /// after `start`.
    fn word_start(&self, start: usize, from: usize, end: usize) -> usize {
        if self.text[..from].ends_with(char::is_whitespace) {
            return skip_space(self.text, from);
        }
        let space = self.text[from..end].find(char::is_whitespace);
        match space.map(|at| skip_space(self.text, from + at)) {
            Some(word) if word < end => word,
            _ => last_grapheme(self.text, start, from),
        }
    }

    /// Steps `chars` characters back from `end`, stopping at the start of the text. Cost is linear
    /// in `chars`.
    fn chars_back(&self, end: usize, chars: usize) -> usize {
        self.text[..end].char_indices().rev().nth(chars.saturating_sub(1)).map_or(0, |(at, _)| at)
    }
}

/// The first byte offset at or after `at` that is not white space.
fn skip_space(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}

/// The byte offset after the character at `at`.
fn next_char(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// The last nearby grapheme boundary in `after+1..=at`, or else `at` itself.
fn last_grapheme(text: &str, after: usize, at: usize) -> usize {
    let from = text.floor_char_boundary(at.saturating_sub(GRAPHEME_BYTES_MAX).max(after));
    let to = text.floor_char_boundary(at + GRAPHEME_BYTES_MAX);
    let boundaries = text[from..to].grapheme_indices(true).map(|(offset, _)| from + offset);
    boundaries.take_while(|&boundary| boundary <= at).filter(|&b| b > after).last().unwrap_or(at)
}
