//! Tables whose columns are separated only by white space, as in mails and plain texts.
//!
//! ```text
//! Pump      Litres   Since      header, where its fields are as many and have no digits
//! North     42       2019       row, cells Pump: North, Litres: 42, Since: 2019
//! South     7        2021       without a header: item of a list
//! ```

use super::{Cell, Form, Kind, Parser};

/// Minimum number of lines in such a table.
const LINES_MIN: usize = 3;
/// Maximum number of lines examined to recognise one.
const LINES_MAX: usize = 8;
/// Punctuation that prose may follow with two spaces.
const ENDS: [char; 6] = ['.', '?', '!', ':', ';', ','];

impl Parser<'_> {
    /// Number of lines of the table that begins at a line; 0 if none does.
    pub(super) fn aligned(&self, at: usize) -> usize {
        let lines = || self.lines[at..].iter().map(|line| line.content);
        let is_row = |content: &&str| fields(content).len() > 1;
        let is_wide = |content: &&str| content.contains("   ") || content.contains('\t');
        // A few lines must suffice, because any line of a text may be examined.
        let first: Vec<&str> = lines().take(LINES_MAX).take_while(is_row).collect();
        let wide = first.iter().filter(|content| is_wide(content)).count();
        let is_table = first.len() >= LINES_MIN && wide * 2 > first.len();
        if is_table { lines().take_while(is_row).count() } else { 0 }
    }

    /// Adds the rows of such a table, or list items if it has no header.
    pub(super) fn aligned_rows(&mut self, at: usize, count: usize) {
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
}
