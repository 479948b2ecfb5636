//! Text that begins within a document: the headings above it, and the code or the table that it
//! goes on with.

use super::lines::is_fence;
use super::{Form, Kind, Line, Parser};
use crate::passages::tables::named_cells;
use crate::text::sentences::item_mark;

/// Level of headings above the text, whose own levels are unknown: any heading in it ends them.
const UNKNOWN_LEVEL: usize = usize::MAX;

impl Parser<'_> {
    /// Whether the text begins its document, as far as its headings tell.
    pub(super) fn begins_document(&self) -> bool {
        self.headings.first().is_none_or(|(level, _)| *level != UNKNOWN_LEVEL)
    }

    /// Opens the section that the text begins in, and reads what it begins with if that was cut: a
    /// sentence, code, or rows, which the header above the text names. Returns the line after it.
    pub(super) fn below(&mut self, above: &str) -> usize {
        let header = above.lines().next_back().filter(|line| line.starts_with('|'));
        let headings = above.lines().filter(|line| Some(*line) != header);
        let headings = headings.map(|line| (UNKNOWN_LEVEL, line.to_owned()));
        self.headings.extend(headings);
        if !self.headings.is_empty() {
            self.found.sections.clear();
            self.new_section();
        }
        let fences = self.lines.iter().filter(|line| is_fence(line.content));
        if begins_in_code(fences.map(|line| line.content)) {
            return self.code(0);
        }
        match header {
            Some(header) => self.rows_below(header),
            None => self.end_of_sentence(),
        }
    }

    /// Adds the paragraph that the text begins with if its first sentence was cut; that one counts
    /// as no more than an announcement of the next.
    fn end_of_sentence(&mut self) -> usize {
        let is_cut = |line: &Line<'_>| {
            line.content.starts_with(char::is_lowercase) && item_mark(line.content).is_none()
        };
        let goes_on = self.lines.get(1).is_some_and(|line| !line.content.is_empty());
        // A line of prose may look like a setting, but not several.
        let is_prose = match self.keyed_run(0).len() {
            0 => self.labelled(0).is_empty() && self.aligned(0) == 0,
            1 => goes_on && self.keyed_run(1).is_empty(),
            _ => false,
        };
        if !is_prose || !self.lines.first().is_some_and(is_cut) || self.entries_end(0).is_some() {
            return 0;
        }
        let end = self.paragraph(0);
        if let Some(unit) = self.found.units.first_mut() {
            unit.is_lead = true;
        }
        end
    }

    /// Adds the rows that the text begins with and returns the line after them; 0 if `header` does
    /// not name their values.
    fn rows_below(&mut self, header: &str) -> usize {
        // A long header is cut, and its last name with it.
        let names = match header.ends_with('|') {
            true => header,
            false => header.rsplit_once('|').map_or("", |(whole, _)| whole),
        };
        let is_title = names.split('|').filter(|name| !name.trim().is_empty()).count() < 2;
        let is_row = |line: &&Line<'_>| line.content.ends_with('|');
        let rows: Vec<Line<'_>> = self.lines.iter().take_while(is_row).cloned().collect();
        let lines: Vec<_> = rows.iter().map(|row| row.bytes.clone()).collect();
        if is_title || rows.is_empty() || self.table_at(0).is_some() {
            return 0;
        }
        if self.form(None, &lines) {
            return rows.len();
        }
        let bars = |row: &str| row.replace("\\|", "").matches('|').count();
        let most = rows.iter().map(|row| bars(row.content)).max().unwrap_or(0);
        let whole = if header.ends_with('|') { bars(header) } else { most };
        self.begin(Form::Table);
        // The part that the first rows belong to may be named in the text before.
        let is_divided = self.dividers(0..rows.len()).nth(1).is_some();
        for (line, row) in rows.iter().enumerate() {
            if is_divided && let Some(name) = self.divider(line, rows.len()) {
                self.lead = Some(name);
                continue;
            }
            // The first row may have been cut, and its values would get wrong names.
            let names = if bars(row.content) == whole { names } else { "" };
            let cells = named_cells(names, row.content);
            if let Some(unit) = self.push(Kind::Row, row.bytes.clone()) {
                unit.cells = cells;
            }
        }
        self.lead = None;
        rows.len()
    }
}

/// Whether a text begins within code, judged by its fences: only one that opens names a language.
fn begins_in_code<'a>(fences: impl Iterator<Item = &'a str>) -> bool {
    let named = fences.map(|fence| !fence.trim_start_matches(['`', '~']).is_empty());
    let named: Vec<bool> = named.collect();
    let has_named = |first: usize| named.iter().skip(first).step_by(2).any(|named| *named);
    !has_named(0) && has_named(1)
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::{Kind, blocks};

    #[test]
    fn what_was_cut_is_told_from_what_follows() {
        let text =
            "prefix: it holds the lock for a\nminute. The next process waits.\n\nThen it goes on.";
        let leads = |text| {
            let units = blocks(text, Some("Locks")).units;
            units.iter().map(|unit| (unit.kind, unit.is_lead)).collect::<Vec<_>>()
        };
        let prose = [(Kind::Sentence, true), (Kind::Sentence, false), (Kind::Sentence, false)];
        assert_eq!(leads(text), prose);
        assert_eq!(leads("The lock.\nIt holds."), [(Kind::Sentence, false); 2]);
        let settings = blocks("port: 80\nhost: a.example", Some("server:")).units;
        assert!(settings.iter().all(|unit| unit.kind != Kind::Sentence), "{settings:?}");
        let rows = "4 EUR | B2 |\n| Belt | 9 EUR | C1 |";
        let rows = blocks(rows, Some("| Part | Price | Stored |")).units;
        let names = |at: usize| rows[at].cells.iter().map(|cell| &*cell.name).collect::<Vec<_>>();
        assert_eq!((names(0), names(1)), (vec!["", ""], vec!["Part", "Price", "Stored"]));
    }

    #[test]
    fn code_that_the_text_begins_in_ends_at_its_fence() {
        let text = "\"size\": 4\n}\n```\n\n| Name | Use |\n| --- | --- |\n| size | of a page |\n\n\
                    ```sh\nls\n```\n\nThe end.";
        let kinds =
            |text| blocks(text, Some("")).units.iter().map(|unit| unit.kind).collect::<Vec<_>>();
        assert_eq!(kinds(text), [Kind::Line, Kind::Row, Kind::Line, Kind::Sentence]);
        let whole = "```\nls\n```\n\nThe end.\n\n```sh\nls\n```";
        assert_eq!(kinds(whole), [Kind::Line, Kind::Sentence, Kind::Line]);
    }

    #[test]
    fn text_within_a_document_keeps_headings_and_column_names() {
        let above = "Pumps\nSpare parts\n| Part | Price | Stored |";
        let found = blocks(
            "| Seal | 4 EUR | B2 |\n| Belt | 9 EUR | C1 |\n\n## Orders\n\nBy mail.",
            Some(above),
        );
        let first = &found.units[0];
        let named: Vec<_> = first.cells.iter().map(|cell| (&*cell.name, &*cell.value)).collect();
        assert_eq!(named, [("Part", "Seal"), ("Price", "4 EUR"), ("Stored", "B2")]);
        assert_eq!(found.sections[first.section], ["Pumps", "Spare parts"]);
        let last = found.units.last().unwrap();
        assert_eq!(found.sections[last.section], ["Orders"], "levels above are unknown");
        let cut = blocks("| Seal | 4 EUR | B2 |", Some("| Part | Price | Where it is st"));
        let names: Vec<_> = cut.units[0].cells.iter().map(|cell| &*cell.name).collect();
        assert_eq!(names, ["Part", "Price", ""]);
        let whole = blocks("| A | B |\n| --- | --- |\n| 1 | 2 |", Some("Pumps\n| C | D |"));
        assert_eq!(whole.units[0].cells[0].name, "A", "a header of its own counts");
        let boxed =
            blocks("| Family | Anatidae |\n| Order | Anseriformes |", Some("| Mallard |  |"));
        assert_eq!((boxed.units.len(), boxed.units[0].kind), (2, Kind::Row));
        assert!(boxed.units[0].cells.iter().all(|cell| cell.name.is_empty()), "a title names none");
    }
}
