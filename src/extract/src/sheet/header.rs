//! One table of a sheet: its titles, header row and data rows.

use crate::ExtractError;
use crate::flow::Flow;
use crate::grid::write_row;
use crate::sheet::names::{NAME_CHARS_MAX, in_two_lines};
use crate::sheet::{Cell, text_of};
use lodestone_types::BlockKind;

/// Maximum single-cell rows above a table that count as titles.
const TITLES_MAX: usize = 4;
/// Rows considered when looking for the header row.
const HEAD_ROWS: usize = 12;
/// Minimum columns for a row of text above rows of text to count as a header. A two-column form
/// (label, answer) looks the same but has no header: some of its answers are words.
const WORDY_COLUMNS_MIN: usize = 3;
/// Maximum columns of a Markdown table; wider tables are scattered cells.
const WIDTH_MAX: u32 = 512;

/// Column headers.
#[derive(Debug, Clone)]
pub(super) struct Header {
    names: Vec<(u32, String)>,
}

impl Header {
    fn name(&self, column: u32) -> Option<&str> {
        let found = self.names.binary_search_by_key(&column, |(column, _)| *column);
        found.ok().map(|index| self.names[index].1.as_str())
    }

    fn is_over(&self, left: u32, right: u32) -> bool {
        self.name(left).is_some() && self.name(right).is_some()
    }
}

/// Writes a table. `above` is the header of the previous table, which also applies to this one if
/// an empty row splits a table. Returns the header that may apply to the next table.
pub(super) fn write(
    rows: &[&[Cell]],
    text: &str,
    above: Option<Header>,
    flow: &mut Flow,
) -> Result<Option<Header>, ExtractError> {
    let columns = || rows.iter().copied().flatten().map(|cell| cell.column);
    let (Some(left), Some(right)) = (columns().min(), columns().max()) else { return Ok(above) };
    if left == right {
        for cell in rows.iter().copied().flatten() {
            flow.block(BlockKind::Paragraph, text_of(cell, text))?;
        }
        return Ok(above);
    }
    let titles = rows.iter().take(TITLES_MAX).take_while(|row| row.len() == 1).count();
    let titles = if titles == rows.len() { 0 } else { titles };
    let two_lines = header_in_two_lines(&rows[titles..], text, left, right);
    let titles = match &two_lines {
        Some(_) => titles,
        None => titles_above(rows, titles, text, left, right),
    };
    for row in &rows[..titles] {
        let cells: Vec<&str> = row.iter().map(|cell| text_of(cell, text)).collect();
        flow.block(BlockKind::Paragraph, &cells.join(", "))?;
    }
    let rows = &rows[titles..];
    let header = two_lines.map(|header| (2, header));
    let header = header.or_else(|| Some((1, header_of(rows, text, left, right)?)));
    if let Some((lines, header)) = header {
        for row in &rows[lines..] {
            record(row, text, &header, flow)?;
        }
        return Ok(Some(header));
    }
    if let Some(header) = above.filter(|header| titles == 0 && header.is_over(left, right)) {
        for row in rows {
            record(row, text, &header, flow)?;
        }
        return Ok(Some(header));
    }
    markdown(rows, text, left, right, flow)?;
    Ok(None)
}

/// The number of rows above the header row, if a fuller header row follows `titles` or a first row
/// with gaps.
fn titles_above(rows: &[&[Cell]], titles: usize, text: &str, left: u32, right: u32) -> usize {
    let width = (right - left + 1) as usize;
    if width > WIDTH_MAX as usize || (titles == 0 && rows[0].len() == width) {
        return titles;
    }
    let kinds = |row: &&[Cell]| {
        let mut kinds = vec![None; width];
        for cell in *row {
            let has_digit = || text_of(cell, text).contains(|c: char| c.is_ascii_digit());
            kinds[(cell.column - left) as usize] = Some(cell.is_value || has_digit());
        }
        kinds
    };
    let kinds: Vec<Vec<Option<bool>>> = rows.iter().take(HEAD_ROWS).map(kinds).collect();
    let is_names = |at: &usize| {
        names_columns(&kinds, *at) && header_of(&rows[*at..], text, left, right).is_some()
    };
    (titles + 1..kinds.len().min(TITLES_MAX + 1)).find(is_names).unwrap_or(titles)
}

/// Whether the row at `at` is the header although other rows precede it: it is complete, fuller
/// than each of them, and differs in kind from all rows below it in some column. Rows are given as
/// whether each cell is a number, `None` for an empty one.
pub(crate) fn names_columns(rows: &[Vec<Option<bool>>], at: usize) -> bool {
    let Some((row, below)) = rows.get(at).map(|row| (row, &rows[at + 1..])) else { return false };
    let filled = |row: &Vec<Option<bool>>| row.iter().flatten().count();
    let is_fullest =
        filled(row) == row.len() && rows[..at].iter().all(|other| filled(other) < row.len());
    let is_unlike = |(column, kind): (usize, &Option<bool>)| {
        let others = below.iter().filter_map(|other| other.get(column).copied().flatten());
        others.clone().count() >= 2 && others.clone().all(|other| Some(other) != *kind)
    };
    is_fullest && row.iter().enumerate().any(is_unlike)
}

/// The first row, if it is a header: short, distinct words over most of the width, no numbers, with
/// rows of a different kind below.
fn header_of(rows: &[&[Cell]], text: &str, left: u32, right: u32) -> Option<Header> {
    let (first, below) = rows.split_first()?;
    if below.is_empty() {
        return None;
    }
    let width = (right - left + 1) as usize;
    let is_name = |cell: &Cell| {
        let name = text_of(cell, text);
        !cell.is_value
            && name.chars().any(char::is_alphabetic)
            && name.chars().count() <= NAME_CHARS_MAX
    };
    if first.len() < 2 || first.len() * 2 < width || !first.iter().all(is_name) {
        return None;
    }
    let mut names: Vec<&str> = first.iter().map(|cell| text_of(cell, text)).collect();
    names.sort_unstable();
    let is_repeated = names.windows(2).any(|pair| pair[0] == pair[1]);
    let has_values = |column: u32| {
        let mut cells = below.iter().copied().flatten().filter(|cell| cell.column == column);
        cells.next().is_some_and(|cell| cell.is_value) && cells.all(|cell| cell.is_value)
    };
    let has_values = || first.iter().any(|name| has_values(name.column));
    if is_repeated || !(first.len() >= WORDY_COLUMNS_MIN || has_values()) {
        return None;
    }
    let names = first.iter().map(|cell| (cell.column, text_of(cell, text).to_owned()));
    Some(Header { names: names.collect() })
}

/// The first two rows, if together they form the header.
fn header_in_two_lines(rows: &[&[Cell]], text: &str, left: u32, right: u32) -> Option<Header> {
    if right - left >= WIDTH_MAX {
        return None;
    }
    let texts = |row: &&[Cell]| {
        let mut texts = vec![""; (right - left + 1) as usize];
        for cell in *row {
            texts[(cell.column - left) as usize] = text_of(cell, text);
        }
        texts
    };
    let rows: Vec<Vec<&str>> = rows.iter().take(HEAD_ROWS).map(texts).collect();
    let names = (left..).zip(in_two_lines(&rows)?).filter(|(_, name)| !name.is_empty());
    Some(Header { names: names.collect() })
}

fn record(row: &[Cell], text: &str, header: &Header, flow: &mut Flow) -> Result<(), ExtractError> {
    let mut lines = String::new();
    for cell in row {
        if let Some(name) = header.name(cell.column) {
            lines.push_str(name);
            lines.push_str(": ");
        }
        lines.push_str(text_of(cell, text));
        lines.push('\n');
    }
    flow.block(BlockKind::Record, &lines)
}

fn markdown(
    rows: &[&[Cell]],
    text: &str,
    left: u32,
    right: u32,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let width = right - left + 1;
    let is_wide = width > WIDTH_MAX;
    let mut table = String::new();
    let mut texts: Vec<String> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        texts.clear();
        if is_wide {
            texts.extend(row.iter().map(|cell| text_of(cell, text).to_owned()));
        } else {
            let reach = row.last().map_or(0, |cell| cell.column - left + 1);
            let reach = if number == 0 { width } else { reach };
            texts.resize(reach as usize, String::new());
            for cell in *row {
                texts[(cell.column - left) as usize] = text_of(cell, text).to_owned();
            }
        }
        write_row(&texts, number == 0, &mut table);
        if table.len() > crate::TEXT_BYTES_MAX {
            return Err(crate::outline::too_long());
        }
    }
    flow.block(BlockKind::Table, &table)
}
