//! Assembles the lines of a column into paragraphs, list items and code listings.

use crate::pdf::lines::Line;
use crate::pdf::marks;
use crate::pdf::page_block::{Kind, PageBlock};
use crate::pdf::tables;

/// Factor of the usual line spacing above which lines are separate paragraphs.
const APART: f32 = 1.3;
/// Line spacing, in em, up to which lines are always one paragraph.
const LEADING_EM: f32 = 1.45;
/// Line spacing above this, in em, is ignored when finding the usual one.
const LEADING_EM_MAX: f32 = 2.6;
/// Maximum relative difference of equal sizes.
const SAME_SIZE: f32 = 0.08;
/// Minimum indentation of a paragraph, in em.
const INDENT_EM: f32 = 0.9;
/// Minimum letters of a line whose right edge shows the column width.
const FULL_LETTERS_MIN: usize = 20;
/// Maximum spaces of indentation in a listing.
const INDENT_SPACES_MAX: f32 = 200.0;

/// Margins and line spacing of a column.
#[derive(Debug)]
struct Usual {
    /// The left edge of most lines.
    left: f32,
    right: f32,
    /// The right edge of the current paragraph.
    edge: f32,
    /// Distance between baselines.
    leading: Option<f32>,
}

/// The blocks of a column. `is_compound` recognises compounds written with a hyphen.
pub(super) fn blocks(lines: &[Line], is_compound: &dyn Fn(&str) -> bool) -> Vec<PageBlock> {
    let mut blocks = Vec::new();
    let tables = tables::find(lines);
    let is_outside = |line: &usize| !tables.iter().any(|table| table.lines.contains(line));
    let outside: Vec<&Line> =
        (0..lines.len()).filter(is_outside).map(|line| &lines[line]).collect();
    let usual = usual(&outside);
    let mut at = 0;
    for table in &tables {
        flowing(&lines[at..table.lines.start], &usual, is_compound, &mut blocks);
        blocks.push(tables::block(lines, table, is_compound));
        at = table.lines.end;
    }
    flowing(&lines[at..], &usual, is_compound, &mut blocks);
    blocks
}

fn usual(lines: &[&Line]) -> Usual {
    let mut steps: Vec<f32> = Vec::new();
    for pair in lines.windows(2) {
        let (step, size) = (pair[1].baseline - pair[0].baseline, pair[1].size);
        if is_same_size(pair[0], pair[1]) && step > 0.5 * size && step < LEADING_EM_MAX * size {
            steps.push(step);
        }
    }
    steps.sort_by(f32::total_cmp);
    let full = lines.iter().filter(|line| line.letters() >= FULL_LETTERS_MIN);
    let right = full.map(|line| line.right).reduce(f32::max);
    let right = right.or_else(|| lines.iter().map(|line| line.right).reduce(f32::max));
    let mut lefts: Vec<i32> = lines.iter().map(|line| (line.left / 2.0).round() as i32).collect();
    lefts.sort_unstable();
    let common = lefts.chunk_by(|a, b| a == b).max_by_key(|group| (group.len(), -group[0]));
    Usual {
        left: common.map_or(0.0, |group| group[0] as f32 * 2.0),
        right: right.unwrap_or(0.0),
        edge: right.unwrap_or(0.0),
        // The lower quartile: in a column of short paragraphs half of the distances are between
        // them.
        leading: steps.get(steps.len() / 4).copied(),
    }
}

fn is_same_size(a: &Line, b: &Line) -> bool {
    (a.size - b.size).abs() <= SAME_SIZE * a.size.max(b.size)
}

/// The separation of two lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// None: the sentence continues.
    Space,
    /// A line break, since the next word would have fitted.
    Break,
    /// The end of a paragraph.
    Paragraph,
}

/// Builds blocks from lines outside tables.
fn flowing(
    lines: &[Line],
    usual: &Usual,
    is_compound: &dyn Fn(&str) -> bool,
    blocks: &mut Vec<PageBlock>,
) {
    let mut at = 0;
    while at < lines.len() {
        let listing = listing_end(&lines[at..]);
        if listing > 1 {
            blocks.push(code(&lines[at..at + listing], usual));
            at += listing;
            continue;
        }
        let mut end = at + 1;
        let text = lines[at].text();
        let item = marks::split(&text);
        let kind = if item.is_some() { Kind::Item } else { Kind::Prose };
        let mut block = PageBlock::new(kind, lines[at].size, lines[at].is_bold());
        block.is_running = lines[at].is_running();
        match item {
            Some((mark, rest)) => {
                let mark = format!("{mark} ");
                block.put(&format!("{mark}{rest}"), lines[at].area());
            }
            None => block.put(&text, lines[at].area()),
        }
        // The second line reveals the width of a paragraph that is narrower than its column, such
        // as an abstract or a quotation.
        let mut edge = usual.right;
        let mut widest = lines[at].right;
        while let Some(line) = lines.get(end) {
            widest = widest.max(line.right);
            if end > at + 1 {
                edge = widest;
            }
            if listing_end(&lines[end..lines.len().min(end + 2)]) > 1 {
                break;
            }
            let text = line.text();
            match between(&lines[at..end], line, &text, kind, &Usual { edge, ..*usual }) {
                Between::Paragraph => break,
                Between::Break => block.text.push('\n'),
                Between::Space => block.separate(&text, is_compound),
            }
            block.put(&text, line.area());
            block.is_bold &= line.is_bold();
            end += 1;
        }
        blocks.push(block);
        at = end;
    }
}

/// The separation of `line` from the last line of `above`, which form one block.
fn between(above: &[Line], line: &Line, text: &str, kind: Kind, usual: &Usual) -> Between {
    let last = &above[above.len() - 1];
    let size = last.size.max(line.size);
    let step = line.baseline - last.baseline;
    let leading = usual.leading.unwrap_or(1.2 * size);
    let is_apart = step > (APART * leading).max(LEADING_EM * size) || step < 0.0;
    if is_apart || !is_same_size(last, line) || begins_item(last, line, text, kind, usual) {
        return Between::Paragraph;
    }
    if line.is_from_right() || last.is_from_right() {
        return Between::Space;
    }
    let middle = |line: &Line| (line.left + line.right) / 2.0;
    let is_centred = (middle(last) - middle(line)).abs() < 0.2 * size
        && (line.left - last.left).abs() > 0.3 * size
        && last.left > usual.left + 0.5 * size;
    let indent = line.left - last.left;
    if !is_centred && is_indented(above, line, indent, size, kind, usual) {
        return Between::Paragraph;
    }
    if !would_fit(last, line, text, usual.edge) {
        return Between::Space;
    }
    // The next word would have fitted, so the line was ended on purpose.
    let ends = above.last().is_some_and(|line| line.text().ends_with(is_end));
    match last.is_bold() != line.is_bold() || (ends && !is_centred) {
        true => Between::Paragraph,
        false => Between::Break,
    }
}

/// Whether a line starts a list item. A number or dash in the middle of a sentence does not: "as
/// shown in section\n2. The next one".
fn begins_item(last: &Line, line: &Line, text: &str, kind: Kind, usual: &Usual) -> bool {
    marks::split(text).is_some()
        && (marks::has_bullet(text)
            || kind == Kind::Item
            || would_fit(last, line, text, usual.right)
            || last.text().ends_with(is_end)
            || (line.left - last.left).abs() > INDENT_EM * line.size)
}

fn is_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | ':' | ';' | '\u{2026}' | '\u{201D}' | '"' | ')')
}

/// Whether the indentation of a line shows that it starts a paragraph.
fn is_indented(
    above: &[Line],
    line: &Line,
    indent: f32,
    size: f32,
    kind: Kind,
    usual: &Usual,
) -> bool {
    let is_first = above.len() == 1;
    if indent > INDENT_EM * size {
        // The text of an item is indented after its marker, and a paragraph may have a hanging
        // indent.
        let hangs = is_first && (line.left - usual.left).abs() < 0.5 * size;
        let is_item = is_first && kind == Kind::Item;
        return !hangs && !is_item;
    }
    // A hanging indent starts after the first line; further down, an outdent starts a new
    // paragraph.
    -indent > INDENT_EM * size && !is_first
}

/// Whether the first word of a line would have fitted on the previous line.
fn would_fit(last: &Line, line: &Line, text: &str, right: f32) -> bool {
    let word = text.split(' ').next().unwrap_or("").chars().count();
    let width = (line.right - line.left) * word as f32 / text.chars().count().max(1) as f32;
    right - last.right > width + 0.8 * line.size
}

/// The number of lines from the start that are a listing: monospaced and closely set.
fn listing_end(lines: &[Line]) -> usize {
    let mut end = 0;
    for line in lines {
        let step = if end == 0 { 0.0 } else { line.baseline - lines[end - 1].baseline };
        if !line.is_mono() || !(0.0..2.0 * LEADING_EM_MAX * line.size).contains(&step) {
            break;
        }
        end += 1;
    }
    end
}

/// A listing, with its indentation and the gaps in its lines.
fn code(lines: &[Line], usual: &Usual) -> PageBlock {
    let mut block = PageBlock::new(Kind::Code, lines[0].size, false);
    let left = lines.iter().map(|line| line.left).fold(f32::MAX, f32::min);
    let leading = usual.leading.unwrap_or(1.2 * lines[0].size);
    let mut last: Option<&Line> = None;
    for line in lines {
        if let Some(last) = last {
            let is_apart = line.baseline - last.baseline > 1.6 * leading;
            block.text.push_str(if is_apart { "\n\n" } else { "\n" });
        }
        let mut end = left;
        for piece in &line.pieces {
            let advance = piece.advance.max(0.1 * piece.size);
            let spaces = ((piece.left - end) / advance).round().clamp(0.0, INDENT_SPACES_MAX);
            block.text.push_str(&" ".repeat(spaces as usize));
            block.put(&piece.text, piece.area());
            end = piece.right;
        }
        last = Some(line);
    }
    block
}
