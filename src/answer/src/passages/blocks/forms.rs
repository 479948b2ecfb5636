//! Forms and fact boxes: tables that consist of labels, each followed by its value.
//!
//! ```text
//! | Order:   | 2024-56  | Contact: | Ada Moss |      form: labels end in colons
//! | -------- | -------- | -------- | -------- |
//! | Terms:   | 30 days  |          |          |
//!
//! | Mallard  |          |                           fact box: a title, then two cells a line
//! | -------- | -------- |
//! | A drake  |          |                           caption, a sentence without the title
//! | Family   | Anatidae |
//! ```

use std::ops::Range;

use super::{Cell, Form, Kind, Parser};

/// Maximum number of characters in a label.
const LABEL_CHARS_MAX: usize = 40;
/// Minimum number of labels with values in a form.
const PAIRS_MIN: usize = 2;
/// Maximum number of words in the value of a heading.
const FACT_WORDS_MAX: usize = 4;
/// Characters that end a label.
const COLONS: [char; 2] = [':', '\u{FF1A}'];

/// A label and its value, as byte ranges in a line.
type Pair = (Range<usize>, Range<usize>);

impl Parser<'_> {
    /// Adds the heading in a line if it is a label with a number: "## Total: $12,500".
    pub(super) fn fact(&mut self, at: usize) {
        let line = self.lines[at].clone();
        let mark = line.content.len() - line.content.trim_start_matches(['#', ' ']).len();
        let is_fact = |(label, value): (&str, &str)| {
            label.contains(char::is_alphabetic)
                && !label.contains(|c: char| c.is_ascii_digit())
                && value.contains(|c: char| c.is_ascii_digit())
                && value.split_whitespace().count() <= FACT_WORDS_MAX
        };
        if line.content[mark..].split_once(": ").is_some_and(is_fact) {
            self.begin(Form::Paragraph);
            self.push(Kind::Sentence, line.bytes.start + mark..line.bytes.end);
        }
    }

    /// Adds a table as a form, value by value, if it is one; returns whether it is. `head` is its
    /// first line if it has a header.
    pub(super) fn form(&mut self, head: Option<Range<usize>>, rows: &[Range<usize>]) -> bool {
        let content = |line: &Range<usize>| &self.text[line.clone()];
        let lines: Vec<Range<usize>> = head.into_iter().chain(rows.iter().cloned()).collect();
        let of_form = || lines.iter().map(|line| labelled(content(line))).collect();
        let is_box = lines.len() > rows.len() && is_title(content(&lines[0]));
        let of_box = || lines.iter().map(|line| captioned(content(line))).collect();
        let found: Option<Vec<Vec<Pair>>> = if is_box { of_box() } else { of_form() };
        let Some(found) = found else { return false };
        let pairs: usize = found.iter().map(Vec::len).sum();
        // The first line of any other table names its columns.
        let is_form = is_box || found.first().is_some_and(|pairs| !pairs.is_empty());
        if !is_form || pairs < PAIRS_MIN || (is_box && 2 * pairs < rows.len()) {
            return false;
        }
        self.begin(Form::Settings);
        for (line, pairs) in lines.iter().zip(found) {
            let is_caption = is_box && pairs.is_empty() && *line != lines[0];
            if let [caption] = &filled(&self.text[line.clone()])[..]
                && is_caption
            {
                self.push(Kind::Sentence, line.start + caption.start..line.start + caption.end);
            }
            for (label, value) in pairs {
                let bytes = line.start + label.start..line.start + value.end;
                let text = &self.text[line.clone()];
                let name = text[label].trim_end_matches(COLONS).trim_end().to_owned();
                let cell = Cell { name, value: text[value].replace("\\|", "|") };
                if let Some(unit) = self.push(Kind::Field, bytes) {
                    unit.cells = vec![cell];
                }
            }
        }
        true
    }

    /// Whether rows are set apart by some that only name those below them. The first is one, and so
    /// is another: a row without values among others with them tells that it has none.
    pub(super) fn are_divided(&self, rows: Range<usize>) -> bool {
        self.divider(rows.start, rows.end).is_some() && self.dividers(rows).nth(1).is_some()
    }

    pub(super) fn dividers(&self, rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        rows.clone().filter_map(move |line| self.divider(line, rows.end))
    }

    /// The text of a row that only names the rows below it, up to `end`.
    pub(super) fn divider(&self, line: usize, end: usize) -> Option<Range<usize>> {
        let (row, below) = (self.lines.get(line)?, self.lines[..end].get(line + 1)?);
        let name = text_alone(row.content, below.content)?;
        Some(row.bytes.start + name.start..row.bytes.start + name.end)
    }
}

/// The labels of a line with their values; labels without a value are left out. `None` if a value
/// has no label.
fn labelled(line: &str) -> Option<Vec<Pair>> {
    let (mut label, mut pairs) = (None, Vec::new());
    for cell in filled(line) {
        let name = line[cell.clone()].strip_suffix(COLONS);
        if name.is_some_and(|name| name.contains(char::is_alphabetic)) && is_short(line, &cell) {
            label = Some(cell);
        } else {
            pairs.push((label.take()?, cell));
        }
    }
    Some(pairs)
}

/// The two cells of a line of a fact box; none for a caption. `None` for any other line.
fn captioned(line: &str) -> Option<Vec<Pair>> {
    match &filled(line)[..] {
        [] | [_] => Some(Vec::new()),
        [label, value] if is_short(line, label) => Some(vec![(label.clone(), value.clone())]),
        _ => None,
    }
}

fn is_short(line: &str, label: &Range<usize>) -> bool {
    line[label.clone()].chars().count() <= LABEL_CHARS_MAX
}

/// The text of a row that names the rows below it: the only one in the row, in the first of three
/// or more columns, above a row with values.
fn text_alone(row: &str, below: &str) -> Option<Range<usize>> {
    let all: Vec<Range<usize>> = cells(row).collect();
    let (from, to) = (usize::from(row.starts_with('|')), usize::from(row.ends_with('|')));
    let (first, others) = all.get(from..all.len() - to)?.split_first()?;
    let is_one = others.len() > 1
        && row[first.clone()].contains(char::is_alphabetic)
        && others.iter().all(Range::is_empty)
        && filled(below).len() > 1;
    is_one.then(|| first.clone())
}

/// Whether a line has one cell with a text, and others without.
fn is_title(line: &str) -> bool {
    filled(line).len() == 1 && cells(line).filter(Range::is_empty).count() > 2
}

fn filled(line: &str) -> Vec<Range<usize>> {
    cells(line).filter(|cell| !cell.is_empty()).collect()
}

/// The texts between the bars of a line, and before and after them, without surrounding white
/// space; `\|` is no bar.
fn cells(line: &str) -> impl Iterator<Item = Range<usize>> {
    let is_bar = |at: &usize| !line[..*at].ends_with('\\');
    let bars: Vec<usize> = line.match_indices('|').map(|(at, _)| at).filter(is_bar).collect();
    let starts = std::iter::once(0).chain(bars.clone().into_iter().map(|at| at + 1));
    let ends = bars.into_iter().chain([line.len()]);
    starts.zip(ends).map(|(start, end)| {
        let cell = &line[start..end];
        let start = start + cell.len() - cell.trim_start().len();
        start..start + cell.trim().len()
    })
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::{Kind, Unit, blocks};

    fn told(text: &str) -> Vec<String> {
        let fields = blocks(text, None).units.into_iter().filter(|unit| unit.kind == Kind::Field);
        let cell = |unit: Unit| format!("{}={}", unit.cells[0].name, unit.cells[0].value);
        fields.map(cell).collect()
    }

    #[test]
    fn values_of_a_form_stand_behind_their_labels() {
        let form = "| Order: | 2024-56 | Contact: | Ada |\n| --- | --- | --- | --- |\n\
            | Terms: | 30 days |  |  |\n|  |  | Fee: | |\n| Paid by\u{FF1A} |  | Bo \\| Co | |\n";
        let all = ["Order=2024-56", "Contact=Ada", "Terms=30 days", "Paid by=Bo | Co"];
        assert_eq!(told(form), all);
        let rest = "| Terms: | 30 days |\n| Fee: | none |\n";
        assert_eq!(told(rest), ["Terms=30 days", "Fee=none"]);
    }

    #[test]
    fn a_fact_box_has_captions_and_values() {
        let facts = "| Duck | |\n| --- | --- |\n| A drake |  |\n| Order: | Anseriformes |\n\
            | Family | Anatidae |\n";
        assert_eq!(told(facts), ["Order=Anseriformes", "Family=Anatidae"]);
        let first = &blocks(facts, None).units[0];
        assert_eq!((first.kind, &facts[first.bytes.clone()]), (Kind::Sentence, "A drake"));
    }

    #[test]
    fn a_heading_with_a_label_and_a_number_is_a_fact() {
        let text = "# Orders\n\n## Total revenue: $12,500.00\n\n## Step 2: wait 3 days\n\n\
            ## Note: for members\n\nAda pays.\n";
        let found = blocks(text, None);
        let units: Vec<_> = found.units.iter().map(|unit| &text[unit.bytes.clone()]).collect();
        assert_eq!(units, ["Total revenue: $12,500.00", "Ada pays."]);
        assert_eq!(found.sections[found.units[0].section][0], "Orders");
    }

    #[test]
    fn other_tables_are_no_forms() {
        for table in [
            "| Pump: | Litres: |\n| --- | --- |\n| A | 42 |\n| B | 7 |\n",
            "| Pump: | A |\n| --- | --- |\n| B | 7 |\n",
            "| Note: | one |\n| --- | --- |\n",
            "| Members | |\n| --- | --- |\n| Ada | |\n| Bo | 7 |\n| Cy | |\n| Di | 8 |\n| Ed | |\n",
            "| Pump | | |\n| --- | --- | --- |\n| A | 42 | x |\n| B | 7 | y |\n",
        ] {
            assert!(told(table).is_empty(), "{table}");
        }
    }
}
