//! Tables of delimited values: each row becomes a record of `name: value` lines.
//!
//! A row with the names of its columns resembles a question about it; a row of bare values does
//! not.

use crate::flow::Flow;
use crate::{ExtractError, error};
use lodestone_types::{BlockKind, Extracted};

/// Delimiters that are tried; of equally good ones the first wins.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Rows that are read to choose a delimiter.
const SNIFF_ROWS: usize = 50;
/// Bytes that are read to choose a delimiter.
const SNIFF_BYTES: usize = 64 << 10;
/// Characters of a column's name at most; a longer cell is prose, not a name.
const NAME_CHARS_MAX: usize = 100;

/// Reads delimited values; without a `delimiter` it is detected.
pub(super) fn read(text: &str, delimiter: Option<u8>) -> Result<Extracted, ExtractError> {
    let (told, text) = strip_hint(text);
    let delimiter = delimiter.or(told).unwrap_or_else(|| sniff(text));
    let mut reader = rows(text, delimiter);
    let mut row = csv::StringRecord::new();
    let mut flow = Flow::default();
    let mut names: Option<Vec<String>> = None;
    let mut content = String::new();
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
            if let Some(names) = names.filter(|_| flow.len() == 0) {
                flow.block(BlockKind::Record, &names.join(", "))?;
            }
            return flow.finish();
        }
        if std::mem::take(&mut is_first) && is_header(&row) {
            names = Some(row.iter().map(|name| name.trim().to_owned()).collect());
            continue;
        }
        content.clear();
        match &names {
            Some(names) => write_named(&row, names, &mut content),
            None => write_bare(&row, &mut content),
        }
        flow.block(BlockKind::Record, &content)?;
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
    let text = &text[..text.floor_char_boundary(SNIFF_BYTES)];
    let agreement = |delimiter: u8| {
        let mut counts: Vec<usize> = Vec::new();
        let mut reader = rows(text, delimiter);
        for row in reader.records().take(SNIFF_ROWS).flatten() {
            counts.push(row.len());
        }
        let width = counts.first().copied().unwrap_or(1);
        let same = counts.iter().filter(|&&count| count == width).count();
        if width > 1 { (same * 100 / counts.len().max(1), width) } else { (0, 0) }
    };
    let best = DELIMITERS.iter().rev().copied().max_by_key(|&delimiter| agreement(delimiter));
    best.unwrap_or(b',')
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
