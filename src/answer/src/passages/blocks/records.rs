//! Lines of the form `name: value`: records and settings.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lines::{Line, entry};
use super::{Cell, Form, Group, Kind, Parser};
use crate::passages::keyed::{self, KeyedLine};
use crate::text::sentences::SENTENCE_CHARS_MAX;
use crate::text::words::is_entry;

/// Names of the field that answers the question of a record. Without one, it is the longest.
const ANSWER_NAMES: &str =
    "a|answer|reply|response|antwort|réponse|reponse|respuesta|resposta|ответ";

/// The fields of a YAML flow mapping on one line, `{open: "9:00", seats: 4}`, and a trailing
/// comment as a field without a name. Empty if the value is not a flow mapping.
fn flow(value: &str) -> Vec<Cell> {
    let inside = value.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let Some((inside, behind)) = inside else { return Vec::new() };
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for c in inside.chars() {
        is_quoted ^= c == '"';
        match parts.last_mut() {
            Some(part) if c != ',' || is_quoted => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let field = |part: &String| {
        let (name, value) = part.split_once(':')?;
        let bare = |text: &str| text.trim().trim_matches('"').to_owned();
        Some(Cell { name: bare(name), value: bare(value) })
    };
    let Some(mut cells) = parts.iter().map(field).collect::<Option<Vec<Cell>>>() else {
        return Vec::new();
    };
    let remark = behind.trim().trim_start_matches('#').trim();
    if !remark.is_empty() {
        cells.push(Cell { name: String::new(), value: remark.to_owned() });
    }
    cells
}

impl Parser<'_> {
    /// The keyed lines of a record, or of settings, that begin at a line.
    pub(super) fn keyed_run(&self, at: usize) -> Vec<KeyedLine> {
        let before = at.checked_sub(1).map_or("", |above| self.lines[above].content);
        let lines = self.lines[at..].iter().map(|line| (line.indent, line.content));
        keyed::run(before, lines, &self.names)
    }

    pub(super) fn keyed(&mut self, at: usize, run: Vec<KeyedLine>) {
        if keyed::are_settings(&run) {
            self.settings(at, &run);
        } else {
            self.record(at, &run);
        }
    }

    /// Adds settings: a deeper line belongs to the last line above it that is less deep. Several
    /// flow mappings below the same name are rows.
    fn settings(&mut self, at: usize, run: &[KeyedLine]) {
        let (mut above, mut open): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::new());
        for (line, keyed) in run.iter().enumerate() {
            open.retain(|open| self.lines[at + open].indent < self.lines[at + line].indent);
            above.push(open.clone());
            if keyed.value.is_empty() {
                open.push(line);
            }
        }
        let flows: Vec<Vec<Cell>> = run.iter().map(|keyed| flow(&keyed.value)).collect();
        let kind = |line: usize| Some((above[line].last(), &flows[line].first()?.name));
        let mut alike: BTreeMap<_, usize> = BTreeMap::new();
        (0..run.len()).filter_map(kind).for_each(|kind| *alike.entry(kind).or_default() += 1);
        let is_row = |line: usize| kind(line).is_some_and(|kind| alike[&kind] > 1);
        let mut form = None;
        for (line, keyed) in run.iter().enumerate().filter(|(_, keyed)| !keyed.value.is_empty()) {
            let next = if is_row(line) { Form::Records } else { Form::Settings };
            if form != Some(next) {
                form = Some(next);
                self.begin(next);
            }
            let path = above[line].iter().map(|above| run[*above].key.as_str());
            let parent = above[line].last();
            let (kind, cells) = if next == Form::Records {
                let name = parent.map_or(String::new(), |parent| run[*parent].key.clone());
                let key = Cell { name, value: keyed.key.clone() };
                (Kind::Record, [key].into_iter().chain(flows[line].iter().cloned()).collect())
            } else {
                let path: Vec<&str> = path.chain([keyed.key.as_str()]).collect();
                (Kind::Field, vec![Cell { name: path.join(" "), value: keyed.value.clone() }])
            };
            let head = parent.map(|above| self.lines[at + above].bytes.clone());
            let bytes = self.lines[at + line].bytes.clone();
            if let Some(unit) = self.push(kind, bytes) {
                unit.head = head;
                unit.cells = cells;
            }
        }
    }

    /// Adds the fields of one record. A question among them is read together with its answer.
    fn record(&mut self, at: usize, run: &[KeyedLine]) {
        let whole = self.lines[at].bytes.start..self.lines[at + run.len() - 1].bytes.end;
        let value_of = |line: usize| {
            let end = self.lines[at + line].bytes.end;
            end - run[line].value.len()..end
        };
        let question = run.iter().position(|line| line.value.ends_with(['?', '\u{FF1F}']));
        let is_answer = |line: &usize| {
            !run[*line].value.is_empty() && is_entry(ANSWER_NAMES, keyed::leaf(&run[*line].key))
        };
        let longest = || (0..run.len()).max_by_key(|line| run[*line].value.len());
        let text = (0..run.len()).find(is_answer).or_else(longest);
        if let (Some(question), Some(text)) = (question, text)
            && question != text
        {
            let (question, text) = (value_of(question), value_of(text));
            self.section_below(question);
            self.begin(Form::Paragraph);
            self.push_sentences(Kind::Sentence, text);
            self.new_section();
            return;
        }
        let names: Vec<&str> = run.iter().map(|line| line.key.as_str()).collect();
        let is_same = |group: &Group| {
            let last = self.found.units[group.units.clone()].last();
            let first = last.and_then(|unit| unit.cells.first());
            group.form == Form::Records
                && first.is_some_and(|cell| keyed::leaf(names[0]) == cell.name)
                && last.is_some_and(|unit| unit.section == self.section)
        };
        if !self.found.groups.last().is_some_and(is_same) {
            self.begin(Form::Records);
        }
        let cells: Vec<Cell> = run
            .iter()
            .map(|line| Cell { name: keyed::leaf(&line.key).to_owned(), value: line.value.clone() })
            .collect();
        self.lead = self.parent_of(at, &names).or(self.lead.take());
        if self.text[whole.clone()].chars().count() <= SENTENCE_CHARS_MAX {
            self.push_record(whole, None, cells);
        } else {
            // A long record is quoted field by field, each together with the first, which names it.
            let first = self.lines[at].bytes.clone();
            for (line, cell) in cells.iter().enumerate().skip(1) {
                let bytes = self.lines[at + line].bytes.clone();
                let pair = vec![cells[0].clone(), cell.clone()];
                self.push_record(bytes, Some(first.clone()), pair);
            }
        }
        self.lead = None;
    }

    /// The name of the object that all fields of a record belong to, `birthdays` in
    /// `birthdays.price: 140`; `None` if other records have these fields too.
    fn parent_of(&self, at: usize, names: &[&str]) -> Option<Range<usize>> {
        let parent = |name: &str| name.strip_suffix(keyed::leaf(name)).map(str::len);
        let length = parent(names[0]).filter(|length| *length > 1)?;
        let own = &names[0][..length];
        let is_own = |name: &&str| parent(name) == Some(length) && name.starts_with(own);
        if self.names.contains(names[0]) || !names.iter().all(is_own) {
            return None;
        }
        let line = &self.lines[at];
        let start = line.bytes.start + self.text[line.bytes.clone()].find(own)?;
        Some(start..start + length - 1)
    }

    /// The line after the list of explained terms that begins at a line; `None` if none does. Two
    /// terms suffice if their form is unambiguous, otherwise three are needed.
    pub(super) fn entries_end(&self, at: usize) -> Option<usize> {
        let first = &self.lines[at];
        let is_marked = entry(first.content)?.is_marked;
        let goes_on = |line: &&Line<'_>| {
            let is_deeper = line.indent > first.indent && !line.content.is_empty();
            is_deeper || entry(line.content).is_some_and(|one| is_marked || !one.is_marked)
        };
        let inside: Vec<&Line<'_>> = self.lines[at + 1..].iter().take_while(goes_on).collect();
        let others = inside.iter().filter(|line| entry(line.content).is_some()).count();
        (others >= if is_marked { 1 } else { 2 }).then_some(at + 1 + inside.len())
    }

    /// Adds each term with its explanation, which may continue on deeper lines.
    pub(super) fn entries(&mut self, at: usize, end: usize) {
        self.begin(Form::Records);
        let starts: Vec<usize> =
            (at..end).filter(|line| entry(self.lines[*line].content).is_some()).collect();
        for (one, start) in starts.iter().enumerate() {
            let last = starts.get(one + 1).map_or(end, |next| *next) - 1;
            let bytes = self.lines[*start].bytes.start..self.lines[last].bytes.end;
            let Some(entry) = entry(self.lines[*start].content) else { continue };
            let value = &self.text[bytes.clone()][entry.value..];
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            let cell = Cell { name: entry.term.to_owned(), value };
            self.push_record(bytes, None, vec![cell]);
        }
        self.lead = None;
    }

    fn push_record(&mut self, bytes: Range<usize>, head: Option<Range<usize>>, cells: Vec<Cell>) {
        if let Some(unit) = self.push(Kind::Record, bytes) {
            unit.head = head;
            unit.cells = cells;
        }
    }

    /// Opens a section under a text that is not marked as a heading.
    fn section_below(&mut self, heading: Range<usize>) {
        let text = self.text[heading].to_owned();
        self.new_section();
        let section = self.section;
        self.found.sections[section].push(text);
    }
}
