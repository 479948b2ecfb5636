//! Tables whose columns are separated only by white space, as in mails and plain texts.
//!
//! ```text
//! Pump      Litres   Since      header, where its fields are as many and have no digits
//! North     42       2019       row, cells Pump: North, Litres: 42, Since: 2019
//! South     7        2021       without a header: item of a list
//!
//! East      closed in frost;    item of a list of two columns,
//!           opens in May        whose second one goes on
//! ```

use std::ops::Range;

use super::{Cell, Form, Kind, Parser};

/// Minimum number of lines in such a table.
const LINES_MIN: usize = 3;
/// Maximum number of lines examined to recognise one.
const LINES_MAX: usize = 8;
/// Maximum number of lines of one with two columns, the second of which may be wrapped.
const WRAPPED_LINES_MAX: usize = 200;
/// Punctuation that prose may follow with two spaces.
const ENDS: [char; 6] = ['.', '?', '!', ':', ';', ','];

impl Parser<'_> {
    /// Number of lines of the table that begins at a line; 0 if none does.
    pub(super) fn aligned(&self, at: usize) -> usize {
        let wrapped = self.wrapped(at);
        let plain = self.plain(at);
        wrapped.last().map_or(plain, |row| plain.max(row.end - at))
    }

    /// Number of lines of the table whose rows are one line each.
    fn plain(&self, at: usize) -> usize {
        let lines = || self.lines[at..].iter().map(|line| line.content);
        let is_row = |content: &&str| fields(content).len() > 1;
        let is_wide = |content: &&str| content.contains("   ") || content.contains('\t');
        // A few lines must suffice, because any line of a text may be examined.
        let first: Vec<&str> = lines().take(LINES_MAX).take_while(is_row).collect();
        let wide = first.iter().filter(|content| is_wide(content)).count();
        let is_table = first.len() >= LINES_MIN && wide * 2 > first.len();
        if is_table { lines().take_while(is_row).count() } else { 0 }
    }

    /// The rows of two columns that begin at a line, where the second column begins at the same
    /// place in all lines and goes on in lines without the first. Empty if there are few.
    fn wrapped(&self, at: usize) -> Vec<Range<usize>> {
        let Some(first) = self.lines.get(at) else { return Vec::new() };
        let Some(column) = second_column(first.content) else { return Vec::new() };
        let mut rows: Vec<Range<usize>> = Vec::new();
        let mut wide = 0;
        for (line, one) in self.lines.iter().enumerate().skip(at).take(WRAPPED_LINES_MAX) {
            let at_column = one.content.char_indices().nth(column);
            let before = at_column.map_or("", |(byte, _)| &one.content[..byte]);
            let is_filled = at_column.is_some_and(|(_, c)| c != ' ');
            let is_row = one.indent == first.indent && is_filled && before.ends_with(' ');
            match rows.last_mut() {
                _ if is_row => {
                    wide += usize::from(before.ends_with("  "));
                    rows.push(line..line + 1);
                }
                Some(row) if !one.content.is_empty() && one.indent == first.indent + column => {
                    row.end = line + 1;
                }
                _ => break,
            }
        }
        if rows.len() >= LINES_MIN && wide * 2 > rows.len() { rows } else { Vec::new() }
    }

    /// Adds the rows of such a table, or list items if it has no header.
    pub(super) fn aligned_rows(&mut self, at: usize, count: usize) {
        let wrapped = self.wrapped(at);
        if self.plain(at) < count {
            self.begin(Form::List);
            for row in wrapped {
                let bytes = self.lines[row.start].bytes.start..self.lines[row.end - 1].bytes.end;
                self.push(Kind::Item, bytes);
            }
            self.lead = None;
            return;
        }
        let names = self.header_of(at, count);
        self.begin(if names.is_empty() { Form::List } else { Form::Table });
        let header = self.lines[at].bytes.clone();
        for line in at + usize::from(!names.is_empty())..at + count {
            let bytes = self.lines[line].bytes.clone();
            if names.is_empty() {
                self.push(Kind::Item, bytes);
                continue;
            }
            let values = fields(self.lines[line].content).into_iter().map(str::to_owned);
            let cells = names.iter().cloned().zip(values);
            let cells = cells.map(|(name, value)| Cell { name, value }).collect();
            if let Some(unit) = self.push(Kind::Row, bytes) {
                unit.head = Some(header.clone());
                unit.cells = cells;
            }
        }
        self.lead = None;
    }

    /// The column names; empty if the first line is a row like the others.
    fn header_of(&self, at: usize, count: usize) -> Vec<String> {
        let digits = |text: &str| text.contains(|c: char| c.is_ascii_digit());
        let names = fields(self.lines[at].content);
        let is_row = |line: usize| {
            let content = self.lines[line].content;
            fields(content).len() == names.len() && digits(content)
        };
        let has_header = !digits(self.lines[at].content) && (at + 1..at + count).all(is_row);
        if has_header { names.into_iter().map(str::to_owned).collect() } else { Vec::new() }
    }
}

/// The number of characters before the second of two fields of a line; `None` for prose and for
/// lines with more or fewer fields.
fn second_column(content: &str) -> Option<usize> {
    let [first, _] = fields(content)[..] else { return None };
    let behind = content.get(first.len()..).filter(|_| content.starts_with(first))?;
    let byte = content.len() - behind.trim_start().len();
    (!content.contains('\t')).then(|| content[..byte].chars().count())
}

/// The fields of a line, separated by tabs or by two or more spaces; empty for prose.
fn fields(content: &str) -> Vec<&str> {
    let pieces = content.split('\t').flat_map(|part| part.split("  "));
    let fields: Vec<&str> = pieces.map(str::trim).filter(|field| !field.is_empty()).collect();
    let is_prose = fields.iter().rev().skip(1).any(|field| field.ends_with(ENDS));
    if is_prose { Vec::new() } else { fields }
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::{Form, Kind, blocks};

    #[test]
    fn columns_of_white_space_are_rows() {
        let text = "The rates:\n\n  Ada & Co    Loft    104 EUR\n  Bo          Attic   98 EUR\n  \
                    Cy Ltd      Cellar  79 EUR   (from 5: 70)\n\nBefore. That was.";
        let found = blocks(text, None);
        let list = found.groups.iter().find(|group| group.form == Form::List).unwrap();
        let items = &found.units[list.units.clone()];
        assert_eq!(items.len(), 3);
        assert!(items.iter().all(|item| item.kind == Kind::Item && item.lead.is_some()));
        let text = "Pump     Litres\nNorth    42\nSouth    7\nWest     12";
        let found = blocks(text, None);
        let cells = |at: usize| {
            found.units[at].cells.iter().map(|cell| (cell.name.as_str(), cell.value.as_str()))
        };
        assert_eq!(cells(1).collect::<Vec<_>>(), [("Pump", "South"), ("Litres", "7")]);
        let prose = "It rains.  We stay.\nIt snows.  We go.\nIt thaws.  We swim.";
        assert!(blocks(prose, None).groups.iter().all(|group| group.form == Form::Paragraph));
    }

    #[test]
    fn rows_of_two_columns_go_on_in_the_second() {
        let text = "The ferries\n\nNorth shore (A)     hourly\n\
                    East shore (B)      hourly from May to September,\n\
                    \x20                   otherwise every two hours\n\
                    South and west (C)  at nine, noon and four\n\nTickets are sold on board.\n";
        let found = blocks(text, None);
        let items = found.units.iter().filter(|unit| unit.kind == Kind::Item);
        let items: Vec<String> = items
            .map(|item| text[item.bytes.clone()].split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            items,
            [
                "North shore (A) hourly",
                "East shore (B) hourly from May to September, otherwise every two hours",
                "South and west (C) at nine, noon and four",
            ]
        );
        let prose = "It rains on the moor.  We stay in\nthe hut until noon.  We go on then\n\
                     and reach the lake.  It is cold\n";
        assert!(blocks(prose, None).units.iter().all(|unit| unit.kind == Kind::Sentence));
    }
}
