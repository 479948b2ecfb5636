//! Tables of delimited values: each row becomes a record of `name: value` lines.
//!
//! A row with its column names resembles a question about it; a row of bare values does not.

use std::collections::BTreeMap;

use crate::flow::Flow;
use crate::sheet::names::{
    are_above, are_rare_names, in_two_lines, is_like_below, is_repeated, is_word, is_year,
};
use crate::sheet::names_columns;
use crate::{ExtractError, error};
use lodestone_types::{BlockKind, Extracted};

/// Delimiters to try besides the comma, which wins a tie with them; of these, the first does.
const DELIMITERS: [u8; 3] = [b';', b'\t', b'|'];
/// Rows read to choose a delimiter.
const SNIFF_ROWS: usize = 50;
/// Bytes read to choose a delimiter.
const SNIFF_BYTES: usize = 64 << 10;
/// Maximum number of single-cell title rows above a table.
const TITLES_MAX: usize = 4;
/// Maximum number of multi-cell rows above the column names: banks write a dozen.
const PREAMBLE_MAX: usize = 14;
/// Rows read before deciding which one holds the column names.
const HEAD_ROWS: usize = 20;

/// Minimum number of columns of a table with notes, and of words in a note.
const NOTE_COLUMNS_MIN: usize = 3;
const NOTE_WORDS_MIN: usize = 5;
/// Columns considered when deciding which row holds the column names.
const WIDTH_MAX: usize = 1024;
/// Maximum columns of a table, as in spreadsheet programs.
const COLUMNS_MAX: usize = 16_384;

/// Reads delimited values; detects the delimiter if it is not given.
pub(super) fn read(text: &str, delimiter: Option<u8>) -> Result<Extracted, ExtractError> {
    let (told, text) = strip_hint(text);
    let delimiter = delimiter.or(told).unwrap_or_else(|| sniff(text));
    if is_too_wide(text, delimiter) {
        let what = "columns of a table";
        return Err(ExtractError::BeyondLimit { what, max: COLUMNS_MAX });
    }
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
    let (lines, names) = names(first.as_slice());
    first.by_ref().take(lines).for_each(drop);
    let has_notes = may_have_notes(first.as_slice());
    let mut has_rows = false;
    let mut content = String::new();
    loop {
        let Some(row) = first.next().map_or_else(&mut read, |row| Ok(Some(row)))? else {
            // A header without rows is all the content.
            if let Some(names) = names.filter(|_| !has_rows) {
                flow.block(BlockKind::Record, &names.join(", "))?;
            }
            return flow.finish();
        };
        let names_above = names.as_ref().filter(|_| has_notes);
        if let Some(note) = names_above.and_then(|names| note(&row, names.len())) {
            flow.block(BlockKind::Paragraph, note)?;
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

/// Whether a sentence alone in the first column is a note: in the first rows with other cells, that
/// column holds no sentences.
fn may_have_notes(rows: &[csv::StringRecord]) -> bool {
    let is_full = |row: &&csv::StringRecord| row.iter().skip(1).any(|cell| !cell.trim().is_empty());
    let mut full = rows.iter().filter(is_full).filter_map(|row| row.get(0)).peekable();
    full.peek().is_some() && full.all(|cell| cell.split_whitespace().count() < NOTE_WORDS_MIN)
}

/// The text of a row that is a note on the table: a sentence alone in the first of several columns.
fn note(row: &csv::StringRecord, columns: usize) -> Option<&str> {
    let mut cells = row.iter().map(str::trim);
    let first = cells.next()?;
    let is_note = columns >= NOTE_COLUMNS_MIN
        && first.split_whitespace().count() >= NOTE_WORDS_MIN
        && cells.all(str::is_empty);
    is_note.then_some(first)
}

/// Number of leading rows that are above the table: titles and, if there is such a row or one with
/// gaps, all rows up to a fuller one with the column names.
fn titles(rows: &[csv::StringRecord]) -> usize {
    let titles = rows.iter().take(TITLES_MAX).take_while(|row| is_title(row)).count();
    let has_gaps = |row: &csv::StringRecord| row.iter().any(|cell| cell.trim().is_empty());
    let width = rows.iter().map(csv::StringRecord::len).max().unwrap_or(0);
    let width = width.min(WIDTH_MAX);
    let is_partial = |row: &csv::StringRecord| row.len() < width || has_gaps(row);
    let is_whole = titles == 0 && !rows.first().is_some_and(is_partial);
    if is_whole || in_two_lines(&texts(&rows[titles..])).is_some() {
        return titles;
    }
    let mut kinds: Vec<Vec<Option<bool>>> = rows.iter().map(kinds).collect();
    kinds.iter_mut().for_each(|row| row.resize(width, None));
    let is_names = |at: &usize| is_header(&rows[*at..]) && names_columns(&kinds, *at);
    (titles + 1..rows.len().min(PREAMBLE_MAX + 1)).find(is_names).unwrap_or(titles)
}

/// The column names, and the number of rows that they occupy.
fn names(rows: &[csv::StringRecord]) -> (usize, Option<Vec<String>>) {
    if let Some(names) = in_two_lines(&texts(rows)) {
        return (2, Some(names));
    }
    let Some(row) = rows.first().filter(|_| is_header(rows)) else { return (0, None) };
    (1, Some(row.iter().map(|name| name.trim().to_owned()).collect()))
}

/// The cells of rows, padded to the width of the widest.
fn texts(rows: &[csv::StringRecord]) -> Vec<Vec<&str>> {
    let width = rows.iter().map(csv::StringRecord::len).max().unwrap_or(0).min(WIDTH_MAX);
    let cells = |row| {
        let cells = csv::StringRecord::iter(row).map(str::trim);
        cells.chain(std::iter::repeat("")).take(width).collect()
    };
    rows.iter().map(cells).collect()
}

/// For each cell, whether it contains a number; `None` for an empty one.
fn kinds(row: &csv::StringRecord) -> Vec<Option<bool>> {
    let kind = |cell: &str| cell.contains(|c: char| c.is_ascii_digit());
    row.iter().map(|cell| (!cell.trim().is_empty()).then(|| kind(cell))).collect()
}

/// Whether a row is the title of a table: a single cell, or leading cells that fill at most half of
/// the row.
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

/// Whether a row has more cells than a table may have columns. The reader holds a whole row, with
/// eight bytes per cell. A quote begins a cell, or continues it directly after the closing one.
fn is_too_wide(text: &str, delimiter: u8) -> bool {
    let (mut cells, mut is_quoted, mut may_quote) = (1, false, true);
    for b in text.bytes() {
        if is_quoted {
            is_quoted = b != b'"';
            continue;
        }
        match b {
            b'"' if may_quote => is_quoted = true,
            _ if b == delimiter => (cells, may_quote) = (cells + 1, true),
            b'\n' => (cells, may_quote) = (1, true),
            _ => may_quote = false,
        }
        if cells > COLUMNS_MAX {
            return true;
        }
    }
    false
}

/// Strips the first line `sep=;`, with which spreadsheets declare the delimiter.
fn strip_hint(text: &str) -> (Option<u8>, &str) {
    let Some(rest) = text.strip_prefix("sep=") else { return (None, text) };
    match rest.split_once('\n') {
        Some((told, rest)) if told.len() == 1 => (Some(told.as_bytes()[0]), rest),
        _ => (None, text),
    }
}

/// The delimiter for which most rows have the same number of cells, more than one. Commas between
/// digits do not count if another delimiter divides most rows, unless commas divide the row of
/// column names into more cells.
fn sniff(text: &str) -> u8 {
    let text = &text[..text.floor_char_boundary(SNIFF_BYTES)];
    let others = DELIMITERS.into_iter().rev().map(|other| (agreement(text, other), other));
    let Some((agreed, other)) = others.max_by_key(|(agreed, _)| *agreed) else { return b',' };
    let is_decimal = agreed.0 > 50 && names_width(text, other) >= names_width(text, b',');
    let commas = match is_decimal {
        true => agreement(&without_decimal_commas(text), b','),
        false => agreement(text, b','),
    };
    if agreed > commas { other } else { b',' }
}

/// The usual number of cells of a row, if there is a row of as many of which none is a number, as
/// column names are; otherwise zero.
fn names_width(text: &str, delimiter: u8) -> usize {
    let (_, width) = agreement(text, delimiter);
    let is_number =
        |cell: &str| cell.trim().starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
    let are_names = |row: csv::StringRecord| row.len() == width && !row.iter().any(is_number);
    let mut reader = rows(text, delimiter);
    if reader.records().take(SNIFF_ROWS).flatten().any(are_names) { width } else { 0 }
}

/// Removes the commas between two digits.
fn without_decimal_commas(text: &str) -> String {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let is_decimal = |at: usize| at > 0 && is_digit(at - 1) && is_digit(at + 1);
    let kept = text.char_indices().filter(|(at, c)| *c != ',' || !is_decimal(*at));
    kept.map(|(_, c)| c).collect()
}

/// The percentage of the first rows that have the most frequent number of cells, and that number;
/// zero if the number is one.
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

/// Whether the first row holds the column names: short words and no numbers. Consecutive years,
/// repeated names, and a few signs, long texts and counted columns only count as names above values
/// of another kind.
fn is_header(rows: &[csv::StringRecord]) -> bool {
    let width = rows.first().map_or(0, csv::StringRecord::len).min(WIDTH_MAX);
    let rows = texts(rows);
    let Some((row, below)) = rows.split_first() else { return false };
    let names: Vec<&str> = row.iter().copied().filter(|name| !name.is_empty()).collect();
    let (years, others): (Vec<&str>, Vec<&str>) =
        names.iter().copied().partition(|name| is_year(name));
    let (words, rare): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|name| is_word(name));
    let has_words = !words.is_empty() && words.len() >= rare.len();
    if !has_words || names.len() * 2 < width || !are_rare_names(&rare) {
        return false;
    }
    if !rare.is_empty() && is_like_below(row, below) {
        return false;
    }
    let is_sure = years.is_empty() && rare.is_empty() && !is_repeated(&names);
    let in_order = years.len() != 1 && (years.is_sorted() || years.iter().rev().is_sorted());
    is_sure || (in_order && are_above(row, below))
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
