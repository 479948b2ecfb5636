//! Detects tables from rows with aligned cells.
//!
//! Only word positions count, since many tables have no rules; those with rules have already been
//! gathered by [`ruled`](crate::pdf::ruled). Consecutive lines are a table if they share the same
//! gutters. A wrong table costs more than a missed one, so doubtful ones stay
//! lines.

use std::ops::Range;

use crate::pdf::lines::Line;
use crate::pdf::marks;
use crate::pdf::page_block::{Kind, PageBlock};
use crate::pdf::pieces::Piece;

/// Minimum rows of a table with two columns; with more columns, one row less is enough.
const ROWS_MIN: usize = 3;
/// Minimum gutter between columns, in em.
const STRIP_EM: f32 = 0.3;
/// Maximum distance between rows, in em.
const ROW_EM_MAX: f32 = 3.5;
/// Average letters per cell above which columns are prose side by side.
const CELL_LETTERS_MAX: usize = 60;
/// A continuation line must be closer to its row than this share of the row distance.
const CONTINUED: f32 = 0.85;

/// Minimum ratio of row distance to line distance if cells have several lines.
const ROWS_APART: f32 = 1.25;
/// Maximum distance between lines of one cell, in em.
const LEADING_EM: f32 = 1.45;
/// Minimum row distances needed to tell them from line distances.
const ROWS_APART_MIN: usize = 2;

/// If a rejected table has more lines than this, none of them is tried again as a start.
const RETRIED_MAX: usize = 8;

/// A table: its lines and the left and right edges of its columns.
#[derive(Debug)]
pub(super) struct Table {
    pub lines: Range<usize>,
    columns: Vec<(f32, f32)>,
}

/// The tables among the lines of a column, in order.
pub(super) fn find(lines: &[Line]) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if lines[at].table().is_some() {
            tables.push(Table { lines: at..at + 1, columns: Vec::new() });
            at += 1;
            continue;
        }
        let Some(table) = grow(lines, at) else {
            at += 1;
            continue;
        };
        let rows = table.lines.clone();
        if is_table(&lines[rows.clone()], table.columns.len()) {
            at = rows.end;
            tables.push(table);
        } else {
            // The lines of a long run that is not a table are not each tried again.
            at = if rows.len() > RETRIED_MAX { rows.end } else { at + 1 };
        }
    }
    tables
}

/// The lines from `first` that share the same gutters, if it has several cells.
fn grow(lines: &[Line], first: usize) -> Option<Table> {
    if lines[first].pieces.len() < 2 {
        return None;
    }
    let mut columns = spans(&lines[first].pieces, &[], lines[first].size);
    let mut end = first + 1;
    // The last line with several cells: lines after it are not part of the table.
    let mut last = first;
    while let Some(line) = lines.get(end) {
        let step = line.baseline - lines[end - 1].baseline;
        if step > ROW_EM_MAX * line.size || step < 0.0 || line.table().is_some() {
            break;
        }
        let wider = spans(&line.pieces, &columns, line.size);
        if wider.len() < 2 || wider.len() < columns.len() {
            break;
        }
        // A line with one cell belongs to the row above, or ends the table, as a title or following
        // text.
        let is_title = line.left <= columns[0].1 || wider.len() > columns.len();
        let is_wrapped = wraps(lines, end);
        if line.pieces.len() == 1 && !is_wrapped && (is_title || end - last > 2) {
            break;
        }
        if line.pieces.len() > 1 || is_wrapped {
            last = end;
        }
        columns = wider;
        end += 1;
    }
    Some(Table { lines: first..last + 1, columns })
}

/// Whether a line with one cell continues the row above, because that is closer than the next row.
fn wraps(lines: &[Line], at: usize) -> bool {
    let (line, Some(next)) = (&lines[at], lines.get(at + 1)) else { return false };
    let (above, below) = (line.baseline - lines[at - 1].baseline, next.baseline - line.baseline);
    next.pieces.len() > 1
        && above < LEADING_EM * line.size
        && below > ROWS_APART * above
        && below <= ROW_EM_MAX * line.size
        && line.left >= next.left - line.size
        && !line.pieces[0].text.contains(|c: char| c.is_ascii_digit())
}

/// The columns after adding `pieces`: horizontal ranges with gutters between them.
pub(super) fn spans(pieces: &[Piece], columns: &[(f32, f32)], size: f32) -> Vec<(f32, f32)> {
    let own = pieces.iter().map(|piece| (piece.left, piece.right));
    let mut all: Vec<(f32, f32)> = columns.iter().copied().chain(own).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut joined: Vec<(f32, f32)> = Vec::new();
    for (left, right) in all {
        match joined.last_mut() {
            Some(last) if left - last.1 < STRIP_EM * size => last.1 = last.1.max(right),
            _ => joined.push((left, right)),
        }
    }
    joined
}

fn is_table(lines: &[Line], columns: usize) -> bool {
    let rows = || lines.iter().filter(|line| line.pieces.len() > 1);
    let count = rows().count();
    let is_large = count >= ROWS_MIN || (columns >= ROWS_MIN && count + 1 >= ROWS_MIN);
    if columns < 2 || !is_large {
        return false;
    }
    let marked = rows().filter(|line| marks::is_only_mark(&line.pieces[0].text)).count();
    let pieces = lines.iter().flat_map(|line| &line.pieces);
    let letters: usize = pieces.clone().map(|piece| piece.letters).sum();
    let full = rows().map(|line| line.pieces.len()).sum::<usize>();
    // Bulleted lists, two columns of prose and a few scattered words are not tables.
    marked * 2 < count
        && letters <= CELL_LETTERS_MAX * pieces.count()
        && full * 5 >= count * columns * 2
        && !lines.iter().all(Line::is_mono)
}

/// The table as Markdown. `is_compound` recognises compounds written with a hyphen.
pub(super) fn block(
    lines: &[Line],
    table: &Table,
    is_compound: &dyn Fn(&str) -> bool,
) -> PageBlock {
    let lines = &lines[table.lines.clone()];
    if let Some(table) = lines[0].table() {
        return table.clone();
    }
    let mut steps: Vec<f32> =
        lines.windows(2).map(|pair| pair[1].baseline - pair[0].baseline).collect();
    steps.sort_by(f32::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    let rows_apart = rows_apart(&steps);
    let mut rows: Vec<Vec<Vec<&Piece>>> = Vec::new();
    let mut last: Option<&Line> = None;
    for line in lines {
        let mut cells: Vec<Vec<&Piece>> = vec![Vec::new(); table.columns.len()];
        for piece in &line.pieces {
            let column = table.columns.partition_point(|(left, _)| *left <= piece.left);
            cells[column.saturating_sub(1)].push(piece);
        }
        let step = last.map_or(f32::MAX, |last| line.baseline - last.baseline);
        let is_continued = line.pieces.len() == 1 || step < CONTINUED * usual;
        let is_near = rows_apart.is_some_and(|apart| step < apart);
        let is_same = (cells[0].is_empty() && is_continued)
            || rows.last().is_some_and(|row| is_near && is_rest(&cells, row));
        match rows.last_mut().filter(|_| is_same) {
            Some(row) => {
                for (cell, more) in row.iter_mut().zip(cells) {
                    cell.extend(more);
                }
            }
            None => rows.push(cells),
        }
        last = Some(line);
    }
    markdown(&rows, lines[0].size, is_compound)
}

/// Rows of cells, all of the same number, as Markdown.
pub(super) fn markdown(
    rows: &[Vec<Vec<&Piece>>],
    size: f32,
    is_compound: &dyn Fn(&str) -> bool,
) -> PageBlock {
    let mut block = PageBlock::new(Kind::Table, size, false);
    for (number, row) in rows.iter().enumerate() {
        write_row(&mut block, row, is_compound);
        if number == 0 {
            block.text.push_str("\n|");
            block.text.push_str(&" --- |".repeat(row.len()));
        }
    }
    block
}

/// The minimum distance of two rows if cells have several lines, so that the distances fall into
/// two groups. `steps` are the distances, ascending.
fn rows_apart(steps: &[f32]) -> Option<f32> {
    let apart = ROWS_APART * steps.first()?;
    let count = steps.iter().filter(|step| **step >= apart).count();
    (count >= ROWS_APART_MIN).then_some(apart)
}

/// Whether the cells of a line may continue those of a row: words, and either fewer of them or in
/// mid-sentence. A separate row has numbers or all cells.
fn is_rest(cells: &[Vec<&Piece>], row: &[Vec<&Piece>]) -> bool {
    let filled = |cells: &[Vec<&Piece>]| cells.iter().filter(|cell| !cell.is_empty()).count();
    let is_number = |piece: &&Piece| !piece.text.contains(char::is_alphabetic);
    let is_within = cells.iter().zip(row).all(|(cell, above)| cell.is_empty() || !above.is_empty());
    let mut pieces = cells.iter().flatten();
    let is_inner = pieces.next().is_some_and(|piece| piece.text.starts_with(char::is_lowercase));
    is_within && (is_inner || filled(cells) < filled(row)) && !cells.iter().flatten().any(is_number)
}

fn write_row(block: &mut PageBlock, row: &[Vec<&Piece>], is_compound: &dyn Fn(&str) -> bool) {
    block.text.push_str(if block.text.is_empty() { "|" } else { "\n|" });
    for cell in row {
        let mut last: Option<&Piece> = None;
        for piece in cell {
            let text = piece.text.replace('|', "\\|");
            match last {
                Some(last) if piece.baseline - last.baseline > 0.5 * piece.size => {
                    block.separate(&text, is_compound);
                }
                _ => block.text.push(' '),
            }
            block.put(&text, piece.area());
            last = Some(*piece);
        }
        block.text.push_str(if cell.is_empty() { "  |" } else { " |" });
    }
}
