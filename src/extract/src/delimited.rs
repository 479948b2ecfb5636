//! Tables of delimited values: each row becomes a record of `name: value` lines.
//!
//! A row with the names of its columns resembles a question about it; a row of bare values does
//! not.

use std::collections::BTreeMap;

use crate::flow::Flow;
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
/// Characters of a column's name at most; a longer cell is prose, not a name.
const NAME_CHARS_MAX: usize = 100;

/// Reads delimited values; without a `delimiter` it is detected.
pub(super) fn read(text: &str, delimiter: Option<u8>) -> Result<Extracted, ExtractError> {
    let (told, text) = strip_hint(text);
    let delimiter = delimiter.or(told).unwrap_or_else(|| sniff(text));
    let has_columns = agreement(text, delimiter).1 > 1;
    let mut reader = rows(text, delimiter);
    let mut row = csv::StringRecord::new();
    let mut flow = Flow::default();
    let mut names: Option<Vec<String>> = None;
    let mut has_rows = false;
    let mut content = String::new();
    let mut titles_left = TITLES_MAX;
    let mut is_first = true;
    loop {
        let more = reader.read_record(&mut row).map_err(|failure| ExtractError::Damaged {
            format: "table",
            line: failure
                .position()
                .map_or(1, |position| error::line_of(text, position.byte() as usize)),
            problem: failure.to_string(),
        })?;
        if !more {
            // A header without rows is all there is.
            if let Some(names) = names.filter(|_| !has_rows) {
                flow.block(BlockKind::Record, &names.join(", "))?;
            }
            return flow.finish();
        }
        if is_first
            && titles_left > 0
            && has_columns
            && let Some(title) = title(&row)
        {
            flow.block(BlockKind::Paragraph, &title)?;
            titles_left -= 1;
            continue;
        }
        if std::mem::take(&mut is_first) && is_header(&row) {
            names = Some(row.iter().map(|name| name.trim().to_owned()).collect());
            continue;
        }
        has_rows = true;
        content.clear();
        match &names {
            Some(names) => write_named(&row, names, &mut content),
            None => write_bare(&row, &mut content),
        }
        flow.block(BlockKind::Record, &content)?;
    }
}

/// The text of a row that is the title of a table: a single cell, or cells at its beginning that
/// are no more than half of it. `None` for any other row.
fn title(row: &csv::StringRecord) -> Option<String> {
    let cells: Vec<&str> = row.iter().map(str::trim).collect();
    let filled = cells.iter().take_while(|cell| !cell.is_empty()).count();
    let is_rest_empty = cells[filled..].iter().all(|cell| cell.is_empty());
    match cells.iter().filter(|cell| !cell.is_empty()).count() {
        1 => cells.into_iter().find(|cell| !cell.is_empty()).map(str::to_owned),
        count if count > 1 && is_rest_empty && filled * 2 <= cells.len() => {
            Some(cells[..filled].join(", "))
        }
        _ => None,
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
