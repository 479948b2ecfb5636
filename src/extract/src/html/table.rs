//! A table while it is read, and its rows as Markdown.

/// Characters of a cell above which a table is a layout of text, not a table of values.
const CELL_CHARS_MAX: usize = 600;
/// Columns up to which cells may span others.
const COLUMNS_MAX: usize = 256;
/// Bytes of a cell above which it is not repeated in the rows that it spans.
const REPEATED_BYTES_MAX: usize = 100;

/// A table that is open.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Whether every cell of the first row names a column.
    is_header_first: bool,
    /// Whether the table only arranges text: its cells are blocks of their own.
    pub is_layout: bool,
    /// For each column how many rows more the cell above covers, and what it says.
    covered: Vec<(usize, String)>,
}

impl Table {
    /// Begins a row.
    pub(super) fn row(&mut self) {
        self.fill();
        self.rows.push(Vec::new());
    }

    /// Repeats the cells above that reach into the place of the next one, so that a row can be
    /// read on its own.
    fn fill(&mut self) {
        let Some(row) = self.rows.last_mut() else { return };
        while let Some((rows, text)) = self.covered.get_mut(row.len()).filter(|c| c.0 > 0) {
            *rows -= 1;
            row.push(text.clone());
        }
    }

    /// Adds a cell to the last row.
    /// `span` is what it covers beyond its own column and row.
    pub(super) fn cell(&mut self, content: &str, is_header: bool, span: (usize, usize)) {
        if self.rows.is_empty() {
            self.row();
        }
        self.fill();
        let is_first_row = self.rows.len() == 1;
        let row = self.rows.last_mut().expect("there is a row");
        if is_first_row {
            self.is_header_first = is_header && (row.is_empty() || self.is_header_first);
        }
        let column = row.len();
        row.push(content.replace('\n', " ").replace('|', "\\|"));
        // Beyond this many columns a row is no row of values, and spans only cost.
        if column + span.0 >= COLUMNS_MAX {
            return;
        }
        row.resize(column + span.0 + 1, String::new());
        if span.1 > 0 {
            let repeated = if content.len() <= REPEATED_BYTES_MAX {
                row[column].clone()
            } else {
                String::new()
            };
            self.covered.resize(self.covered.len().max(column + span.0 + 1), (0, String::new()));
            self.covered[column] = (span.1, repeated);
            for covered in &mut self.covered[column + 1..=column + span.0] {
                *covered = (span.1, String::new());
            }
        }
    }

    /// Whether a cell is so long that this is no table of values.
    pub(super) fn is_too_long(content: &str) -> bool {
        content.len() > CELL_CHARS_MAX && content.chars().count() > CELL_CHARS_MAX
    }

    /// The rows so far as Markdown, or as lines where there is one column. They are taken out.
    pub(super) fn take_markdown(&mut self) -> String {
        self.fill();
        self.covered.clear();
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
