//! Tables of delimited values: each row becomes a record of `name: value` lines.
//!
//! A row with the names of its columns resembles a question about it; a row of bare values does
//! not.

use std::collections::BTreeMap;

use crate::flow::Flow;
use crate::sheet::names_columns;
use crate::{ExtractError, error};
use lodestone_types::{BlockKind, Extracted};

/// Delimiters that are tried; of equally good ones the first wins.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Rows that are read to choose a delimiter.
const SNIFF_ROWS: usize = 50;
/// Bytes that are read to choose a delimiter.
const SNIFF_BYTES: usize = 64 << 10;
/// Rows of a single cell that may stand above a table as its titles.
const TITLES_MAX: usize = 4;
/// Rows that are read before it is decided which one names the columns.
const HEAD_ROWS: usize = 12;
/// Characters of a column's name at most; a longer cell is prose, not a name.
const NAME_CHARS_MAX: usize = 100;

/// Reads delimited values; without a `delimiter` it is detected.
pub(super) fn read(text: &str, delimiter: Option<u8>) -> Result<Extracted, ExtractError> {
    let (told, text) = strip_hint(text);
    let delimiter = delimiter.or(told).unwrap_or_else(|| sniff(text));
    let has_columns = agreement(text, delimiter).1 > 1;
    let mut reader = rows(text, delimiter);
    let mut read = || {
        let mut row = csv::StringRecord::new();
        let more = reader.read_record(&mut row).map_err(|failure| ExtractError::Damaged {
            format: "table",
            line: failure
                .position()
                .map_or(1, |position| error::line_of(text, position.byte() as usize)),
            problem: failure.to_string(),
        })?;
        Ok::<_, ExtractError>(more.then_some(row))
    };
    let mut first = Vec::new();
    while first.len() < HEAD_ROWS
        && let Some(row) = read()?
    {
        first.push(row);
    }
    let mut flow = Flow::default();
    let above = if has_columns { titles(&first) } else { 0 };
    let mut first = first.into_iter();
    for row in first.by_ref().take(above) {
        let cells = row.iter().map(str::trim).filter(|cell| !cell.is_empty());
        flow.block(BlockKind::Paragraph, &cells.collect::<Vec<_>>().join(", "))?;
    }
    let names = first.as_slice().first().filter(|row| is_header(row));
    let names: Option<Vec<String>> =
        names.map(|row| row.iter().map(|name| name.trim().to_owned()).collect());
    if names.is_some() {
        first.next();
    }
    let mut has_rows = false;
    let mut content = String::new();
    loop {
        let Some(row) = first.next().map_or_else(&mut read, |row| Ok(Some(row)))? else {
            // A header without rows is all there is.
            if let Some(names) = names.filter(|_| !has_rows) {
                flow.block(BlockKind::Record, &names.join(", "))?;
            }
            return flow.finish();
        };
        has_rows = true;
        content.clear();
        match &names {
            Some(names) => write_named(&row, names, &mut content),
            None => write_bare(&row, &mut content),
        }
        flow.block(BlockKind::Record, &content)?;
    }
}

/// The number of rows above a table, of its first ones: titles, and behind such a row or one with
/// gaps all rows up to a fuller one that names the columns.
fn titles(rows: &[csv::StringRecord]) -> usize {
    let titles = rows.iter().take(TITLES_MAX).take_while(|row| is_title(row)).count();
    let has_gaps = |row: &csv::StringRecord| row.iter().any(|cell| cell.trim().is_empty());
    if titles == 0 && !rows.first().is_some_and(has_gaps) {
        return 0;
    }
    let kinds: Vec<Vec<Option<bool>>> = rows.iter().map(kinds).collect();
    let is_names = |at: &usize| is_header(&rows[*at]) && names_columns(&kinds, *at);
    (titles + 1..rows.len().min(TITLES_MAX + 1)).find(is_names).unwrap_or(titles)
}

/// For each cell whether a number stands in it; `None` for an empty one.
fn kinds(row: &csv::StringRecord) -> Vec<Option<bool>> {
    let kind = |cell: &str| cell.contains(|c: char| c.is_ascii_digit());
    row.iter().map(|cell| (!cell.trim().is_empty()).then(|| kind(cell))).collect()
}

/// Whether a row is the title of a table: a single cell, or cells at its beginning that are no more
/// than half of it.
fn is_title(row: &csv::StringRecord) -> bool {
    let cells: Vec<&str> = row.iter().map(str::trim).collect();
    let filled = cells.iter().take_while(|cell| !cell.is_empty()).count();
    let is_rest_empty = cells[filled..].iter().all(|cell| cell.is_empty());
    match cells.iter().filter(|cell| !cell.is_empty()).count() {
        1 => true,
        count => count > 1 && is_rest_empty && filled * 2 <= cells.len(),
    }
}

fn rows(text: &str, delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
}

/// The first line `sep=;`, by which spreadsheets name the delimiter.
fn strip_hint(text: &str) -> (Option<u8>, &str) {
    let Some(rest) = text.strip_prefix("sep=") else { return (None, text) };
    match rest.split_once('\n') {
        Some((told, rest)) if told.len() == 1 => (Some(told.as_bytes()[0]), rest),
        _ => (None, text),
    }
}

/// The delimiter by which most rows have the same number of cells, more than one.
fn sniff(text: &str) -> u8 {
    let best = DELIMITERS.iter().rev().copied().max_by_key(|&delimiter| agreement(text, delimiter));
    best.unwrap_or(b',')
}

/// The share of the first rows, in hundredths, that have the most frequent number of cells, and
/// that number; nothing where it is one.
fn agreement(text: &str, delimiter: u8) -> (usize, usize) {
    let text = &text[..text.floor_char_boundary(SNIFF_BYTES)];
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut total = 0;
    for row in rows(text, delimiter).records().take(SNIFF_ROWS).flatten() {
        *counts.entry(row.len()).or_default() += 1;
        total += 1;
    }
    match counts.into_iter().max_by_key(|(width, count)| (*count, *width)) {
        Some((width, count)) if width > 1 => (count * 100 / total, width),
        _ => (0, 0),
    }
}

/// Whether the first row names the columns: short, different words, none of them a number.
fn is_header(row: &csv::StringRecord) -> bool {
    let mut names: Vec<&str> = row.iter().map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_name = |name: &str| {
        name.parse::<f64>().is_err()
            && name.chars().any(char::is_alphabetic)
            && name.chars().count() <= NAME_CHARS_MAX
    };
    if names.is_empty() || names.len() * 2 < row.len() || !names.iter().all(|name| is_name(name)) {
        return false;
    }
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

fn write_named(row: &csv::StringRecord, names: &[String], content: &mut String) {
    for (column, value) in row.iter().enumerate() {
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        match names.get(column).filter(|name| !name.is_empty()) {
            Some(name) => content.push_str(name),
            None => content.push_str(&format!("column {}", column + 1)),
        }
        content.push_str(": ");
        content.push_str(value);
        content.push('\n');
    }
}

fn write_bare(row: &csv::StringRecord, content: &mut String) {
    for value in row.iter().map(str::trim).filter(|value| !value.is_empty()) {
        if !content.is_empty() {
            content.push_str(", ");
        }
        content.push_str(value);
    }
}
