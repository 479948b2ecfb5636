//! Rows of tables and records, shown so that they can be understood on their own.
//!
//! A row without column names is a list of bare values. Tables arrive here as Markdown, whatever
//! their original format (`extract`), records as lines of `name: value`.
//!
//! ```text
//! | Pump | Litres |                 header
//! | ---- | ------ |
//! | A    | 42     |                 row -> "Pump: A; Litres: 42"
//! ```

use std::ops::Range;

use crate::passages::blocks::Cell;

/// A table with a header, as byte ranges in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The line with the column names.
    pub(crate) header: Range<usize>,
    /// The lines below the header.
    pub(crate) rows: Range<usize>,
}

/// Minimum number of rows in a table typed with bars alone.
const TYPED_ROWS_MIN: usize = 2;

/// The tables of a text that have a header, in text order.
pub(crate) fn tables(text: &str) -> Vec<Table> {
    let mut tables = ruled(text);
    let typed = typed(text);
    let is_new = |one: &Table| {
        tables
            .iter()
            .all(|other| other.rows.end <= one.header.start || one.rows.end <= other.header.start)
    };
    let typed: Vec<Table> = typed.into_iter().filter(is_new).collect();
    tables.extend(typed);
    tables.sort_by_key(|table| table.header.start);
    tables
}

/// Tables as people type them: lines with the same number of bars, and no delimiter line below the
/// header.
///
/// ```text
/// pump | litres
/// A    | 42
/// B    | 7
/// ```
fn typed(text: &str) -> Vec<Table> {
    let mut found: Vec<(usize, Table)> = Vec::new();
    let mut open = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.trim_end().len();
        at += line.len();
        let content = line.trim();
        let bars = content.matches(" | ").count();
        let is_row = bars > 0 && !content.starts_with('|') && !is_delimiter(content);
        match found.last_mut().filter(|_| is_row && bars == open) {
            Some((rows, table)) => {
                *rows += 1;
                table.rows.end = range.end;
            }
            // A first row with digits holds values, not names.
            None if is_row && !content.contains(|c: char| c.is_ascii_digit()) => {
                open = bars;
                found.push((0, Table { header: range.clone(), rows: range.end..range.end }));
            }
            None => open = 0,
        }
    }
    let tables = found.into_iter().filter(|(rows, _)| *rows >= TYPED_ROWS_MIN);
    tables.map(|(_, table)| table).collect()
}

/// Tables with a delimiter line below their header.
fn ruled(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut before: Option<Range<usize>> = None;
    let mut is_open = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.trim_end().len();
        at += line.len();
        let content = line.trim();
        if !content.contains('|') || content.len() < 2 {
            (before, is_open) = (None, false);
        } else if is_delimiter(content) && !is_open {
            if let Some(header) = before.take() {
                tables.push(Table { header, rows: range.end..range.end });
                is_open = true;
            }
        } else {
            if let Some(table) = tables.last_mut().filter(|_| is_open) {
                table.rows.end = range.end;
            }
            before = Some(range);
        }
    }
    tables
}

/// Values prefixed with their names: `Pump: A; Litres: 42`. A value without a name stands alone.
pub(crate) fn told(cells: &[Cell]) -> String {
    let told = cells.iter().map(|Cell { name, value }| match name.as_str() {
        "" => value.clone(),
        name => format!("{name}: {value}"),
    });
    told.collect::<Vec<_>>().join("; ")
}

/// A row between bars whose header is missing: a name with its value if it has two cells, as in
/// fact boxes; otherwise its values. `None` for any other line.
pub(crate) fn bare(row: &str) -> Option<String> {
    let row = row.trim();
    if !(row.len() > 2 && row.starts_with('|') && row.ends_with('|')) {
        return None;
    }
    let cells: Vec<String> = cells(row).into_iter().filter(|cell| !cell.is_empty()).collect();
    match cells.as_slice() {
        [] => None,
        [name, value] => Some(format!("{}: {value}", name.trim_end_matches(':'))),
        values => Some(values.join("; ")),
    }
}

/// The non-empty values of a row, with the names of their columns.
pub(crate) fn named_cells(header: &str, row: &str) -> Vec<Cell> {
    let names = cells(header);
    let name_of = |column: usize| names.get(column).map_or("", |name| name.trim_end_matches(':'));
    let values = cells(row).into_iter().enumerate().filter(|(_, value)| !value.is_empty());
    values.map(|(column, value)| Cell { name: name_of(column).to_owned(), value }).collect()
}

/// The cells of a line between bars; `\|` is a bar within a cell.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in line.chars() {
        match c {
            '|' if !is_escaped => cells.push(String::new()),
            '\\' if !is_escaped => {
                is_escaped = true;
                continue;
            }
            _ => {
                let cell = cells.last_mut().expect("there is a cell from the beginning");
                if is_escaped && c != '|' {
                    cell.push('\\');
                }
                cell.push(c);
            }
        }
        is_escaped = false;
    }
    // Blank space after the last bar is not a cell.
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Whether a line separates the header of a table from its rows.
fn is_delimiter(content: &str) -> bool {
    content.contains('-') && content.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_below_their_header() {
        let text = "Pumps:\n| Pump | Litres |\n| --- | ---: |\n| A | 42 |\n| B | 7 |\n\nNo | table";
        let found = tables(text);
        assert_eq!(found.len(), 1);
        assert_eq!(&text[found[0].header.clone()], "| Pump | Litres |");
        assert_eq!(text[found[0].rows.clone()].trim(), "| A | 42 |\n| B | 7 |");
        let typed =
            "Pumps:\n\npump | litres | since\nA | 42 | 2019\nB | 7 | 2021\nOld | 3 | none\n";
        let found = tables(typed);
        assert_eq!((found.len(), &typed[found[0].header.clone()]), (1, "pump | litres | since"));
        assert_eq!(typed[found[0].rows.clone()].trim().lines().count(), 3);
        assert!(tables("Imprint | Privacy\n\nA | B\n").is_empty(), "footers are no tables");
        assert!(tables("09:00 | start\n09:10 | stop\n09:12 | on\n").is_empty(), "nor are logs");
        assert!(tables("| A | 42 |\n| B | 7 |").is_empty(), "the rest of a table has no header");
        assert!(tables("--- | ---\n| A | 1 |").is_empty());
    }

    #[test]
    fn values_stand_behind_the_names_of_their_columns() {
        let header = "| Pump | Litres: | | Note |";
        let labelled = |header, row| told(&named_cells(header, row));
        assert_eq!(labelled(header, "| A | 42 | x \\| y |  |"), "Pump: A; Litres: 42; x | y");
        assert_eq!(labelled(header, "A | 7"), "Pump: A; Litres: 7");
        assert_eq!(labelled("| a |", "| 1 | 2 | C:\\x |"), "a: 1; 2; C:\\x");
        assert_eq!(bare("| Founded: | 1975 |").as_deref(), Some("Founded: 1975"));
        assert_eq!(bare("| A | 42 | x \\| y | |").as_deref(), Some("A; 42; x | y"));
        assert!(
            [bare("a | b"), bare("| |"), bare("||"), bare("|"), bare("")] == [const { None }; 5]
        );
    }
}
