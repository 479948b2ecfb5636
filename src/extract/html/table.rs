//! A table while it is read, and its rows as Markdown.

/// Characters of a cell above which a table is a layout of text, not a table of values.
const CELL_CHARS_MAX: usize = 600;

/// A table that is open.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Whether every cell of the first row names a column.
    is_header_first: bool,
    /// Whether the table only arranges text: its cells are blocks of their own.
    pub is_layout: bool,
}

impl Table {
    /// Begins a row.
    pub(super) fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Adds a cell to the last row.
    pub(super) fn cell(&mut self, content: &str, is_header: bool) {
        if self.rows.is_empty() {
            self.row();
        }
        let is_first_row = self.rows.len() == 1;
        let row = self.rows.last_mut().expect("there is a row");
        if is_first_row {
            self.is_header_first = is_header && (row.is_empty() || self.is_header_first);
        }
        row.push(content.replace('\n', " ").replace('|', "\\|"));
    }

    /// Whether a cell is so long that this is no table of values.
    pub(super) fn is_too_long(content: &str) -> bool {
        content.len() > CELL_CHARS_MAX && content.chars().count() > CELL_CHARS_MAX
    }

    /// The rows so far as Markdown, or as lines where there is one column. They are taken out.
    pub(super) fn take_markdown(&mut self) -> String {
        let rows = std::mem::take(&mut self.rows);
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut markdown = String::new();
        for (number, row) in rows.iter().enumerate() {
            if row.iter().all(|cell| cell.is_empty()) {
                continue;
            }
            if width < 2 {
                markdown.push_str(&row.join(" "));
            } else {
                markdown.push_str("| ");
                markdown.push_str(&row.join(" | "));
                markdown.push_str(" |");
            }
            markdown.push('\n');
            if number == 0 && width > 1 && self.is_header_first && row.len() > 1 {
                markdown.push_str(&"| --- ".repeat(row.len()));
                markdown.push_str("|\n");
            }
        }
        markdown
    }
}
