//! Splits a text into the units that an answer may quote, each in its section and group.
//!
//! ```text
//! # Keys                          section "Keys"
//! The spare key lies in the safe. sentence
//! To open it:                     lead of the list below
//! 1. Ring the office.             item of a list
//! | Code | Meaning |              header
//! | A1   | Low     |              row, cells Code: A1, Meaning: Low
//! | Pumps |     |    |           of several columns: lead of the rows below it
//!
//! turnover .... the whole volume  record with one cell, in a list of such lines
//!
//! name: Ada                       record, as rows of sheets and objects of JSON are extracted
//! room: 12
//!
//! server:                         settings: deeper lines belong to the line above
//!   port: 80   # behind a proxy   field under "server:"
//! 2025-01-02 10:00 started        stamped line of a log or chat
//! ```

mod above;
mod aligned;
mod asked;
mod counted;
mod forms;
mod labelled;
mod lines;
mod numbered;
mod prose;
mod quoted;
mod records;

use std::collections::BTreeSet;
use std::ops::Range;

use self::lines::{
    Line, heading, is_asked, is_contents, is_fence, is_reference, is_rule, is_stamped, lines,
};
use self::prose::PLAIN_LEVEL;
use crate::passages::keyed::repeated_names;
use crate::passages::tables::{Table, named_cells, tables};
use crate::text::{quotes, sentences};

/// A longer item is split into sentences.
const ITEM_CHARS_MAX: usize = 300;

/// Kind of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sentence,
    Item,
    Row,
    Record,
    Field,
    /// A line of a log, a chat or code.
    Line,
}

/// A named value of a row, a record or a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Name of the column; may be empty.
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A quotable unit of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) kind: Kind,
    /// Bytes of the unit in the text, without surrounding white space.
    pub(crate) bytes: Range<usize>,
    /// The line that names the unit's values: the header of a table, or the setting above.
    pub(crate) head: Option<Range<usize>>,
    /// The line that announces the unit: a question, or an introduction ending in a colon.
    pub(crate) lead: Option<Range<usize>>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) section: usize,
    pub(crate) group: usize,
    /// Whether the unit only announces what follows.
    pub(crate) is_lead: bool,
}

/// Form of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Paragraph,
    List,
    Table,
    Records,
    Settings,
    Lines,
}

/// A group of units that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) form: Form,
    /// Positions of its units in [`Blocks::units`].
    pub(crate) units: Range<usize>,
    /// Whether its items are numbered.
    pub(crate) is_numbered: bool,
}

/// A text split into units.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The units, in text order.
    pub(crate) units: Vec<Unit>,
    pub(crate) groups: Vec<Group>,
    /// The headings above each section, outermost first.
    pub(crate) sections: Vec<Vec<String>>,
}

/// Splits a text into units. If it does not begin its document, `above` has the lines above it that
/// it needs: headings, and the header of a table that it begins in.
pub(crate) fn blocks(text: &str, above: Option<&str>) -> Blocks {
    let lines = lines(text);
    let mut parser = Parser {
        text,
        names: repeated_names(lines.iter().map(|line| line.content)),
        lines,
        tables: tables(text),
        found: Blocks { sections: vec![Vec::new()], ..Blocks::default() },
        headings: Vec::new(),
        section: 0,
        number: None,
        lead: None,
    };
    let mut at = above.map_or(0, |above| parser.below(above));
    while at < parser.lines.len() {
        at = parser.block(at).max(at + 1);
    }
    parser.found
}

struct Parser<'t> {
    text: &'t str,
    lines: Vec<Line<'t>>,
    /// The names of values that several paragraphs repeat.
    names: BTreeSet<&'t str>,
    tables: Vec<Table>,
    found: Blocks,
    /// Level and text of the open headings.
    headings: Vec<(usize, String)>,
    section: usize,
    /// The number of the last numbered heading, until a marked heading follows.
    number: Option<u32>,
    /// The last announcing line, until a block other than its own follows.
    lead: Option<Range<usize>>,
}

impl Parser<'_> {
    /// Parses the block that begins at a line and returns the line after it.
    fn block(&mut self, at: usize) -> usize {
        let content = self.lines[at].content;
        if content.is_empty() || is_rule(content) {
            at + 1
        } else if is_fence(content) {
            self.code(at + 1)
        } else if let Some(table) = self.table_at(at) {
            self.table(at, &table)
        } else if let Some((level, heading)) = heading(content) {
            let heading = heading.to_owned();
            self.open_section(level, heading);
            self.fact(at);
            at + 1
        } else if let Some(end) = self.attribution_end(at) {
            end
        } else if let Some(end) = self.asked(at) {
            end
        } else if content.starts_with('|') && content.ends_with('|') && content.len() > 2 {
            self.rows(at, None, |content| content.starts_with('|'))
        } else if is_stamped(content) {
            self.lines_while(at, is_stamped)
        } else if self.is_numbered_heading(at) {
            self.numbered_section(at)
        } else if let Some(end) = self.entries_end(at) {
            self.entries(at, end);
            end
        } else if sentences::item_mark(content).is_some() {
            self.list(at)
        } else if let [_, .., last] = &self.counted(at)[..] {
            let end = last.end;
            self.counted_list(at);
            end
        } else if let [_, .., last] = self.labelled(at)[..] {
            self.labelled_list(at);
            last + 1
        } else {
            let run = self.keyed_run(at);
            match (run.len(), self.aligned(at)) {
                (0, 0) => self.paragraph(at),
                (0, count) => {
                    self.aligned_rows(at, count);
                    at + count
                }
                (count, _) => {
                    self.keyed(at, run);
                    at + count
                }
            }
        }
    }

    fn open_section(&mut self, level: usize, heading: String) {
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, heading));
        self.number = self.number.filter(|_| level >= PLAIN_LEVEL);
        self.lead = None;
        self.new_section();
    }

    fn new_section(&mut self) {
        self.section = self.found.sections.len();
        self.found.sections.push(self.headings.iter().map(|(_, text)| text.clone()).collect());
    }

    fn begin(&mut self, form: Form) -> usize {
        let units = self.found.units.len()..self.found.units.len();
        self.found.groups.push(Group { form, units, is_numbered: false });
        self.found.groups.len() - 1
    }

    fn push(&mut self, kind: Kind, bytes: Range<usize>) -> Option<&mut Unit> {
        let piece = &self.text[bytes.clone()];
        if !piece.contains(char::is_alphanumeric) || is_contents(piece) {
            return None;
        }
        let start = bytes.start + piece.len() - piece.trim_start().len();
        let is_prose = matches!(kind, Kind::Sentence | Kind::Item);
        let mark = if is_prose { quotes::mark_at(self.text, start) } else { 0 };
        let bytes = start + mark..start + piece.trim().len();
        let lead = self.lead.clone();
        let group = self.found.groups.len() - 1;
        let section = self.section;
        self.found.units.push(Unit {
            kind,
            bytes,
            head: None,
            lead,
            cells: Vec::new(),
            section,
            group,
            is_lead: false,
        });
        self.found.groups[group].units.end = self.found.units.len();
        self.found.units.last_mut()
    }

    /// Adds the lines of code from `at` on and returns the line after the fence that ends them.
    fn code(&mut self, at: usize) -> usize {
        let count = self.lines[at..].iter().take_while(|line| !is_fence(line.content)).count();
        self.begin(Form::Lines);
        for line in at..at + count {
            self.push_bounded(Kind::Line, self.lines[line].bytes.clone());
        }
        at + 1 + count
    }

    /// Parses a run of lines that are each a unit.
    fn lines_while(&mut self, at: usize, is_one: fn(&str) -> bool) -> usize {
        let count = self.lines[at..].iter().take_while(|line| is_one(line.content)).count();
        self.begin(Form::Lines);
        for line in at..at + count {
            let is_question = is_asked(self.lines[line].content);
            let bytes = self.lines[line].bytes.clone();
            if let Some(unit) = self.push(Kind::Line, bytes.clone()) {
                unit.is_lead = is_question;
            }
            self.lead = is_question.then_some(bytes);
        }
        self.lead = None;
        at + count
    }

    fn table_at(&self, at: usize) -> Option<Table> {
        let start = self.lines[at].bytes.start;
        self.tables.iter().find(|table| table.header.contains(&start)).cloned()
    }

    fn table(&mut self, at: usize, table: &Table) -> usize {
        let end = table.rows.end;
        let lines_before = |byte: usize| {
            self.lines[at..].iter().take_while(|line| line.bytes.start < byte).count()
        };
        // The header, and the delimiter line below it if there is one, are not rows.
        let (first, inside) = (lines_before(table.rows.start), lines_before(end));
        self.rows_between(at + first, at + inside, Some(self.lines[at].bytes.clone()));
        at + inside.max(first)
    }

    fn rows(&mut self, at: usize, head: Option<Range<usize>>, is_row: fn(&str) -> bool) -> usize {
        let count = self.lines[at..].iter().take_while(|line| is_row(line.content)).count();
        self.rows_between(at, at + count, head);
        at + count
    }

    fn rows_between(&mut self, from: usize, to: usize, head: Option<Range<usize>>) {
        let rows: Vec<_> = self.lines[from..to].iter().map(|line| line.bytes.clone()).collect();
        if self.form(head.clone(), &rows) {
            self.lead = None;
            return;
        }
        self.begin(Form::Table);
        let names = head.clone().map(|head| &self.text[head]);
        let is_divided = head.is_some() && self.are_divided(from..to);
        for line in from..to {
            let Line { bytes, content, .. } = self.lines[line].clone();
            if is_divided && let Some(name) = self.divider(line, to) {
                self.lead = Some(name);
                continue;
            }
            let cells = named_cells(names.unwrap_or_default(), content);
            if let Some(unit) = self.push(Kind::Row, bytes) {
                unit.head.clone_from(&head);
                unit.cells = cells;
            }
        }
        self.lead = None;
    }

    fn list(&mut self, at: usize) -> usize {
        self.leave_caption();
        let group = self.begin(Form::List);
        let is_numbered = self.lines[at].content.starts_with(|c: char| c.is_ascii_digit());
        self.found.groups[group].is_numbered = is_numbered;
        let continues = self.leave_numbered(at);
        let mut line = at;
        while let Some(end) = self.item_end(line) {
            if continues {
                self.number = self.numbered(line).map(|(number, _)| number).or(self.number);
            }
            let mark = sentences::item_mark(self.lines[line].content).unwrap_or(0);
            let bytes = self.lines[line].bytes.start + mark..self.lines[end - 1].bytes.end;
            self.push_item(bytes);
            line = self.behind_blank(line, end).unwrap_or(end);
        }
        self.lead = None;
        line
    }

    /// The line of the next item in the list of the item at `at`, after the blank lines from `end`
    /// on; `None` if something else follows.
    fn behind_blank(&self, at: usize, end: usize) -> Option<usize> {
        let next = (end..self.lines.len()).find(|line| !self.lines[*line].content.is_empty())?;
        let (one, other) = (&self.lines[at], &self.lines[next]);
        let is_next = next > end
            && one.indent == other.indent
            && sentences::follows(one.content, other.content);
        is_next.then_some(next)
    }

    /// Adds an item, or its sentences if it is long; works that the text refers to are left out.
    fn push_item(&mut self, bytes: Range<usize>) {
        let heading = self.headings.last().map_or("", |(_, heading)| heading);
        if is_reference(&self.text[bytes.clone()], heading) {
            return;
        }
        if self.text[bytes.clone()].chars().count() <= ITEM_CHARS_MAX {
            self.push(Kind::Item, bytes);
        } else {
            self.push_sentences(Kind::Item, bytes);
        }
    }

    /// The line after the item that begins at a line; `None` if none does.
    fn item_end(&self, at: usize) -> Option<usize> {
        let first = self.lines.get(at)?;
        sentences::item_mark(first.content)?;
        let mut end = at + 1;
        while let Some(line) = self.lines.get(end) {
            let goes_on = line.indent > first.indent
                || sentences::goes_on(self.lines[end - 1].content, line.content);
            let is_deeper = line.depth > first.depth;
            let is_next = line.content.is_empty() || sentences::item_mark(line.content).is_some();
            if is_next || is_deeper || !goes_on {
                break;
            }
            end += 1;
        }
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<(Kind, &str, String)> {
        let found = blocks(text, None);
        let section = |unit: &Unit| found.sections[unit.section].join(" / ");
        let units = found.units.iter().filter(|unit| !unit.is_lead);
        units.map(|unit| (unit.kind, &text[unit.bytes.clone()], section(unit))).collect()
    }

    #[test]
    fn sections_lists_and_sentences() {
        let text = "# Keys\n\nVersion 2, valid from 1 May 2025.\n\n## Spare\n\n\
            One lies there. It is red.\n\n\
            To open:\n1. Ring.\n2. Wait until\n   it opens.\n";
        let found = told(text);
        let spare = "Keys / Spare".to_owned();
        assert_eq!(
            found,
            [
                (Kind::Sentence, "Version 2, valid from 1 May 2025.", "Keys".to_owned()),
                (Kind::Sentence, "One lies there.", spare.clone()),
                (Kind::Sentence, "It is red.", spare.clone()),
                (Kind::Item, "1. Ring.", format!("{spare} / To open:")),
                (Kind::Item, "2. Wait until\n   it opens.", format!("{spare} / To open:")),
            ]
        );
        let blocks = blocks(text, None);
        let list = blocks.groups.iter().find(|group| group.form == Form::List).unwrap();
        assert!(list.is_numbered && list.units.len() == 2);
        let lead = blocks.units.last().unwrap().lead.clone().unwrap();
        assert_eq!(&text[lead], "To open:");
    }

    #[test]
    fn works_that_a_text_refers_to_are_left_out() {
        let works = "12. ^ Ada Moss. \"Ferns\". Retrieved 2012-12-23.\n13. Moss (2001). Mosses.\n\
            14. See [moss.example](https://moss.example).\n15. Ring Ada Moss before noon.";
        let told_below = |heading: &str| {
            let text = format!("# {heading}\n\n{works}\n");
            let numbers = told(&text).into_iter().map(|(_, item, _)| item[..2].to_owned());
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(told_below("Works cited:"), ["15"]);
        assert_eq!(told_below("References"), ["13", "14", "15"]);
    }

    #[test]
    fn lines_that_count_are_items() {
        let text = "HEADS 20.5.25\n\n1 radios: 231 of 240 answer\n2 outing moved to\n  12 July\n\
            3 tanker: clutch gone\n\nnext 8 july";
        let found = told(text);
        let items = found.iter().filter(|(kind, ..)| *kind == Kind::Item);
        let items: Vec<&str> = items.map(|(_, quoted, _)| *quoted).collect();
        assert_eq!(
            items,
            [
                "1 radios: 231 of 240 answer", "2 outing moved to\n  12 July",
                "3 tanker: clutch gone"
            ]
        );
        assert!(told("1 Mill Lane\n2 persons").iter().all(|(kind, ..)| *kind != Kind::Item));
    }

    #[test]
    fn drawn_lines_and_columns_part_what_stands_around_them() {
        let text = "RULE 1      BREAKS      (2021)\n--------\nA break is long\nenough for tea.\n\n\
            ACTIONS             WHO   DUE\n\
            1 other couplings   DW    30/04\n2 engraved signs    RO    18/04\n";
        let found = told(text);
        let quoted: Vec<&str> = found.iter().map(|(_, quoted, _)| *quoted).collect();
        assert_eq!(
            quoted,
            [
                "A break is long\nenough for tea.", "1 other couplings   DW    30/04",
                "2 engraved signs    RO    18/04"
            ]
        );
        assert_eq!(found[0].2, "RULE 1      BREAKS      (2021)");
    }

    #[test]
    fn values_have_their_names() {
        let text = "| Code | Meaning |\n|---|---|\n| A1 | Low |\n\n\
            name: Ada\nroom: 12\n\nname: Tom\nroom: 9\n\n\
            server:   # one\n  port: 80   # behind a proxy\n";
        let found = blocks(text, None);
        let cells: Vec<Vec<(&str, &str)>> = found
            .units
            .iter()
            .map(|unit| {
                let cells = unit.cells.iter();
                cells.map(|cell| (cell.name.as_str(), cell.value.as_str())).collect()
            })
            .collect();
        assert_eq!(
            cells,
            [
                vec![("Code", "A1"), ("Meaning", "Low")],
                vec![("name", "Ada"), ("room", "12")],
                vec![("name", "Tom"), ("room", "9")],
                vec![("server port", "80   # behind a proxy")],
            ]
        );
        assert_eq!(found.units[1].group, found.units[2].group, "records of one kind");
        assert_eq!(&text[found.units[3].head.clone().unwrap()], "server:   # one");
    }

    #[test]
    fn a_sentence_behind_a_word_is_prose() {
        let text = "# Hausordnung\n\nIm Bad gilt: R\u{FC}cksicht geht vor.\n\
            Dauer: Ein Besuch darf drei Stunden dauern.\n\
            Hinweis: Kinder baden nur mit Begleitung.\n\
            Die Duschen sind vor dem Baden zu benutzen.\nhinweis: Die Uhr geht oft nach.\n";
        let found = told(text);
        assert!(found.iter().all(|(kind, ..)| *kind == Kind::Sentence), "{found:?}");
        assert_eq!(found[1].1, "Dauer: Ein Besuch darf drei Stunden dauern.");
    }

    #[test]
    fn terms_with_explanations_are_records() {
        let text = "WORDS\n\nAFR ....... a grown-up who pays\nload . people at once\n\
            turnover .... the whole volume\n       goes through once\n\nThat is all.\n";
        let found = blocks(text, None);
        let cells: Vec<(&str, &str)> = found
            .units
            .iter()
            .flat_map(|unit| &unit.cells)
            .map(|cell| (cell.name.as_str(), cell.value.as_str()))
            .collect();
        assert_eq!(
            cells,
            [
                ("AFR", "a grown-up who pays"),
                ("load", "people at once"),
                ("turnover", "the whole volume goes through once"),
            ]
        );
    }

    #[test]
    fn questions_in_records_and_chats_announce() {
        let text = "items.q: How do I park?\nitems.a: Behind the house. Pay there.\n\n\
            [2025-03-20 15:21] ann: which form for horses\n[2025-03-20 15:50] bob: form E-7";
        let found = blocks(text, None);
        assert_eq!(found.sections[found.units[0].section], ["How do I park?"]);
        assert_eq!(&text[found.units[1].bytes.clone()], "Pay there.");
        assert!(found.units[2].is_lead);
        assert_eq!(found.units[3].lead, Some(found.units[2].bytes.clone()));
        let record = "ID: 7\nQuestion: May I park?\nAnswer: Yes.\nExtra: behind the old house\n";
        assert_eq!(told(record), [(Kind::Sentence, "Yes.", "May I park?".to_owned())]);
    }
}
