//! The passages that may answer: sentences, items, rows, records and whole lists, without
//! duplicates.

pub(crate) mod context;

use std::collections::BTreeMap;
use std::ops::Range;

use self::context::Above;
use crate::passages::blocks::{Blocks, Cell, Form, Kind, Unit, blocks};
use crate::passages::document::{Stretch, stretches};
use crate::passages::offsets::CharOffsets;
use crate::passages::registers;
use crate::passages::tables::{bare, told};
use crate::text::notes;
use crate::text::quotes;
use crate::text::sentences;
use crate::text::shown;
use crate::text::words::{begins_with_reference, denies, has_demonstrative};
use lodestone_types::{RequestContext, RetrievedChunk, Stopped};

/// Maximum number of passages examined. Bounds the work for one answer.
const CANDIDATES_MAX: usize = 1200;
/// Maximum number of bytes in a sentence together with the one it is widened to.
const PASSAGE_CHARS_MAX: usize = 600;
/// Maximum number of items in a list quoted whole, or sentences of a procedure in prose.
const ITEMS_MAX: usize = 20;
/// Maximum number of characters in a list quoted whole.
const LIST_CHARS_MAX: usize = 2400;

/// One quoted passage of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// Position among the given chunks.
    pub(crate) chunk: usize,
    /// Range in the chunk's text, in characters; if a chunk boundary cuts the passage, the larger
    /// part.
    pub(crate) chars: Range<usize>,
    /// The line that names its values, if it is shown with it: the chunk, and the range of
    /// characters in it.
    pub(crate) head: Option<(usize, Range<usize>)>,
    /// The text as an answer shows it, without the headings above.
    pub(crate) shown: String,
    /// The headings that an answer shows before it, outermost first.
    pub(crate) above: Vec<Above>,
    /// Range in the text of the source, in characters.
    pub(crate) document_chars: Range<usize>,
}

impl Part {
    /// Whether both have text in common.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        let meet = self.chars.start < other.chars.end && other.chars.start < self.chars.end;
        (self.chunk == other.chunk && meet)
            || self.shown.contains(&other.shown)
            || other.shown.contains(&self.shown)
    }
}

/// Shape of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A single unit.
    Unit(Kind),
    /// All items of a list, rows of a table, or sentences of a paragraph.
    Whole(Form),
}

/// A passage that may answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) shape: Shape,
    /// The quoted passages, in order; never empty.
    pub(crate) parts: Vec<Part>,
    /// Index of its text among the texts read.
    pub(crate) stretch: usize,
    /// Indices of its section and its group in that text.
    pub(crate) section: usize,
    pub(crate) group: usize,
    /// Index of its main unit among the units of its text.
    pub(crate) unit: usize,
    /// Number of units that it spans.
    pub(crate) units: usize,
    /// Named values of a row or record.
    pub(crate) cells: Vec<Cell>,
    /// The text that is compared with the question, including the lead and the heading.
    pub(crate) compared: String,
    /// The text that announces it: a question above it, or an introduction.
    pub(crate) lead: String,
    /// The nearest heading, which may be empty, and all headings together.
    pub(crate) heading: String,
    pub(crate) context: String,
    /// Whether it is the first unit below its heading.
    pub(crate) opens_section: bool,
    /// Whether it announces a text instead of being one.
    pub(crate) is_lead: bool,
    /// Whether the next sentence denies it without giving a correction.
    pub(crate) is_denied: bool,
    /// Whether the next sentence denies it and gives a correction: "sorry, wrong: 600 g".
    pub(crate) is_put_right: bool,
    /// Whether another entry of its text says that it no longer holds.
    pub(crate) is_ended: bool,
    /// The best retrieved chunk that holds some of it; else the best chunk of its source.
    pub(crate) hit: usize,
    /// Whether a retrieved chunk holds some of it.
    pub(crate) is_hit: bool,
}

impl Candidate {
    /// The text of all parts, as an answer shows it.
    pub(crate) fn shown(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().map(|part| part.shown.as_str()).collect();
        parts.join(" ")
    }

    /// The words above it: headings, the text that announces it, the `title`, the names of its
    /// values.
    pub(crate) fn above(&self, title: &str) -> String {
        let names = self.cells.iter().map(|cell| cell.name.as_str());
        let above = [self.context.as_str(), &self.lead, title];
        above.into_iter().chain(names).collect::<Vec<_>>().join("\n")
    }

    /// Whether both have text in common: a sentence is a candidate by itself and, if the next one
    /// refers to it, also part of that one's candidate.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        self.parts.iter().any(|a| other.parts.iter().any(|b| a.repeats(b)))
    }

    /// Whether its text states elsewhere what holds instead.
    pub(crate) fn is_taken_back(&self) -> bool {
        self.is_ended || self.is_put_right
    }

    /// Whether both are in one group: rows of a table, items of a list.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (self.stretch, self.group) == (other.stretch, other.group)
    }

    /// Whether both are in one section.
    pub(crate) fn shares_section(&self, other: &Self) -> bool {
        (self.stretch, self.section) == (other.stretch, other.section)
    }

    /// Whether it is a row, a record or a setting.
    pub(crate) fn has_values(&self) -> bool {
        matches!(self.shape, Shape::Unit(Kind::Row | Kind::Record | Kind::Field))
    }
}

/// The texts that were read, and the passages in them.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The passages, ordered by text and position.
    pub(crate) candidates: Vec<Candidate>,
    /// The units of each text.
    pub(crate) blocks: Vec<Blocks>,
    /// Whether each text is its whole source.
    pub(crate) are_whole: Vec<bool>,
}

/// Reads chunks into passages. The first `hits` chunks were retrieved, best first; the rest are
/// their neighbours. Only sources among the first `opened` chunks are read, and of these only texts
/// whose best chunk `is_quoted` accepts by position.
///
/// # Errors
/// [`Stopped`] if the request is over.
pub(crate) fn read(
    context: &RequestContext,
    chunks: &[&RetrievedChunk],
    (hits, opened): (usize, usize),
    is_quoted: impl Fn(usize) -> bool,
) -> Result<Reading, Stopped> {
    let mut reading = Reading::default();
    let stretches = stretches(chunks, hits, opened);
    let quoted = stretches.iter().filter(|stretch| is_quoted(stretch.best));
    for (position, stretch) in quoted.enumerate() {
        context.check()?;
        let reader = Reader {
            position,
            stretch,
            blocks: blocks(&stretch.text, stretch.above.as_deref()),
            has_marks: notes::are_in(&stretch.text),
            offsets: CharOffsets::new(&stretch.text),
        };
        let from = reading.candidates.len();
        reader.read(&mut reading.candidates);
        mark_ended(&mut reading.candidates[from..]);
        reading.blocks.push(reader.blocks);
        reading.are_whole.push(stretch.is_whole);
    }
    distinct(&mut reading.candidates);
    reading.candidates.truncate(CANDIDATES_MAX);
    Ok(reading)
}

struct Reader<'t> {
    position: usize,
    stretch: &'t Stretch,
    blocks: Blocks,
    has_marks: bool,
    offsets: CharOffsets,
}

impl Reader<'_> {
    fn read(&self, found: &mut Vec<Candidate>) {
        for at in 0..self.blocks.units.len() {
            let first = self.widened(at);
            found.extend(self.candidate(
                Shape::Unit(self.blocks.units[at].kind),
                first,
                at + 1,
                at,
            ));
        }
        for group in &self.blocks.groups {
            let is_whole = matches!(group.form, Form::List | Form::Paragraph | Form::Table);
            if is_whole && (2..=ITEMS_MAX).contains(&group.units.len()) {
                let Range { start, end } = group.units;
                found.extend(self.candidate(Shape::Whole(group.form), start, end, start));
            }
        }
    }

    /// The unit at which the passage around this one begins: the previous sentence, if this one
    /// refers back to it, or tells the vote on it.
    fn widened(&self, at: usize) -> usize {
        let units = &self.blocks.units;
        let unit = &units[at];
        let Some(before) = at.checked_sub(1).map(|at| &units[at]) else { return at };
        let text = &self.stretch.text[unit.bytes.clone()];
        let refers = begins_with_reference(text)
            || (unit.kind == Kind::Sentence && (has_demonstrative(text) || context::is_vote(text)));
        let points_back = refers
            && matches!(unit.kind, Kind::Sentence | Kind::Item)
            && before.section == unit.section
            && matches!(before.kind, Kind::Sentence | Kind::Item)
            && unit.bytes.end - before.bytes.start <= PASSAGE_CHARS_MAX;
        if points_back { at - 1 } else { at }
    }

    /// Makes the candidate of the units `from..to`; `main` is the unit it is about.
    fn candidate(&self, shape: Shape, from: usize, to: usize, main: usize) -> Option<Candidate> {
        let units = &self.blocks.units[from..to];
        let unit = &self.blocks.units[main];
        let parts: Vec<Part> = match shape {
            Shape::Unit(_) => self.passage(units, unit).into_iter().collect(),
            Shape::Whole(_) => {
                let told = units.iter().filter(|unit| !unit.is_lead);
                told.filter_map(|unit| self.passage(std::slice::from_ref(unit), unit)).collect()
            }
        };
        let chars: usize = parts.iter().map(|part| part.chars.len()).sum();
        // A single part with its announcement is not a list.
        let fewest = if matches!(shape, Shape::Whole(_)) { 2 } else { 1 };
        if parts.len() < fewest || chars > LIST_CHARS_MAX {
            return None;
        }
        let text = &self.stretch.text;
        let path = &self.blocks.sections[unit.section];
        let lead = unit.lead.clone().map_or("", |lead| &text[lead]);
        let joined: Vec<&str> = parts.iter().map(|part| part.shown.as_str()).collect();
        let above = path.last().map_or("", String::as_str);
        let compared = [above, lead, &joined.join(" ")];
        let compared: Vec<&str> = compared.into_iter().filter(|part| !part.is_empty()).collect();
        let is_asked = |heading: &&String| sentences::announces(heading) && lead.is_empty();
        let question = path.last().filter(is_asked).map_or(lead, String::as_str);
        let place = self.offsets.chars(text, &(units[0].bytes.start..unit.bytes.end));
        let hit = self.stretch.hit(&place);
        // A candidate that ends with the denial still begins with the denied statement.
        let mut behind = self.blocks.units[from + 1..].iter().take(to - from);
        let denial = behind.find_map(|next| {
            let said = said_in(next.kind, &text[next.bytes.clone()]);
            (next.section == unit.section && denies(said)).then_some(said)
        });
        Some(Candidate {
            shape,
            stretch: self.position,
            section: unit.section,
            group: unit.group,
            unit: main,
            units: to - from,
            cells: match shape {
                Shape::Unit(_) => unit.cells.clone(),
                Shape::Whole(_) => Vec::new(),
            },
            compared: compared.join(" "),
            lead: question.to_owned(),
            heading: above.to_owned(),
            context: path.join(" "),
            opens_section: !above.is_empty()
                && from
                    .checked_sub(1)
                    .is_none_or(|at| self.blocks.units[at].section != unit.section),
            is_lead: unit.is_lead && matches!(shape, Shape::Unit(_)),
            is_denied: denial.is_some_and(|denial| !tells_number(denial)),
            is_put_right: denial.is_some_and(tells_number),
            is_ended: false,
            hit: hit.unwrap_or(self.stretch.best),
            is_hit: hit.is_some(),
            parts,
        })
    }

    /// Makes one passage of adjacent units.
    fn passage(&self, units: &[Unit], unit: &Unit) -> Option<Part> {
        let text = &self.stretch.text;
        let bytes = units[0].bytes.start..unit.bytes.end;
        let (shown, head) = match unit.kind {
            Kind::Row => (self.row(unit)?, unit.head.clone()),
            Kind::Record => (self.record(units, unit), unit.head.clone()),
            Kind::Field => (self.field(unit), unit.head.clone()),
            Kind::Sentence | Kind::Item | Kind::Line => {
                (quotes::unquoted(text, bytes.clone()).into_owned(), None)
            }
        };
        let stands = self.offsets.chars(text, &bytes);
        let placed = self.stretch.place(&stands)?;
        let head = head.and_then(|head| self.stretch.place(&self.offsets.chars(text, &head)));
        Some(Part {
            chunk: placed.chunk,
            chars: placed.in_chunk,
            head: head.map(|head| (head.chunk, head.in_chunk)),
            shown: shown::shown(&shown, self.has_marks),
            above: self.needed_above(&units[0]),
            document_chars: self.stretch.document_start + stands.start
                ..self.stretch.document_start + stands.end,
        })
    }

    fn row(&self, unit: &Unit) -> Option<String> {
        if unit.cells.iter().any(|cell| !cell.name.is_empty()) {
            return Some(told(&unit.cells));
        }
        bare(&self.stretch.text[unit.bytes.clone()])
    }

    /// The fields of a record on one line; settings of the form `name = value` as written.
    fn record(&self, units: &[Unit], unit: &Unit) -> String {
        let lines = self.stretch.text[units[0].bytes.start..unit.bytes.end].lines().map(str::trim);
        let lines: Vec<&str> = lines.collect();
        match lines.iter().all(|line| line.contains(" = ")) {
            true => lines.join("; "),
            false => told(&unit.cells),
        }
    }

    /// A setting, prefixed with the name of the part it belongs to, or a value of a form.
    fn field(&self, unit: &Unit) -> String {
        let text = &self.stretch.text;
        let own = &text[unit.bytes.clone()];
        if unit.head.is_none() && own.contains('|') {
            return told(&unit.cells);
        }
        let above = unit.head.clone().map_or("", |head| &text[head]);
        // A comment after the name remains accessible at its place in the document.
        let above = above.split('#').next().unwrap_or_default().trim();
        if above.is_empty() { own.to_owned() } else { format!("{above} {own}") }
    }
}

/// The text of a unit, without the sender's name before a chat message.
pub(crate) fn said_in(kind: Kind, text: &str) -> &str {
    match kind {
        Kind::Line => text.split_once(": ").map_or(text, |(_, message)| message),
        _ => text,
    }
}

fn tells_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
}

/// Marks the entries of a text that another of its entries ends.
fn mark_ended(candidates: &mut [Candidate]) {
    let texts: Vec<String> = candidates.iter().map(Candidate::shown).collect();
    let ended = registers::ended(texts.iter().map(String::as_str));
    if ended.is_empty() {
        return;
    }
    for (one, text) in candidates.iter_mut().zip(&texts) {
        one.is_ended = matches!(one.shape, Shape::Unit(_))
            && registers::code_of(text).is_some_and(|code| ended.contains(&code));
    }
}

/// Drops passages that another source or version already contains word for word, except the first.
fn distinct(found: &mut Vec<Candidate>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut position = 0;
    let folded: Vec<String> = found.iter().map(|one| one.shown().to_lowercase()).collect();
    found.retain(|candidate| {
        position += 1;
        let known = *seen.entry(folded[position - 1].clone()).or_insert(position);
        // A whole list stays complete even if another source has the same one.
        known == position || matches!(candidate.shape, Shape::Whole(_))
    });
}
