//! Paragraphs: sentences, headings recognised by form, and remarks on the edition.

use std::ops::Range;

use super::lines::{Line, has_columns, heading, is_edition, is_fence, is_rule, is_stamped};
use super::{Form, Kind, Parser};
use crate::text::sentences::{self, SENTENCE_CHARS_MAX};
use crate::text::words::entries;

/// Maximum width, in columns, of a line that is taken for a heading because no sentence ends in it.
const HEADING_COLUMNS_MAX: usize = 80;
/// Maximum width of a line above records or a table that says what they are about, and minimum
/// number of fields in the first of these records.
const CAPTION_COLUMNS_MAX: usize = 200;
const CAPTIONED_MIN: usize = 2;
/// Words between a label and the thing it belongs to.
const OF_SOMETHING: &str = "for|at|in|on|from|with|für|bei|pour|para";
/// Level of headings recognised only by form, below all marked ones.
pub(super) const PLAIN_LEVEL: usize = 7;
/// Level of captions, which stand below such a heading.
const CAPTION_LEVEL: usize = PLAIN_LEVEL + 1;

impl Parser<'_> {
    pub(super) fn paragraph(&mut self, at: usize) -> usize {
        self.leave_caption();
        let mut end = at + 1;
        while end < self.lines.len() && !self.begins_block(end) {
            end += 1;
        }
        let is_front =
            self.begins_document() && !self.headings.is_empty() && self.found.units.is_empty();
        self.begin(Form::Paragraph);
        let mut line = at;
        while line < end {
            let mut last = line;
            // "WHY" in capitals does not begin a sentence.
            let goes_on = |last: usize| {
                let content = self.lines[last].content;
                !(last == at && is_capitals(content))
                    && sentences::goes_on(content, self.lines[last + 1].content)
            };
            while last + 1 < end && goes_on(last) {
                last += 1;
            }
            let bytes = self.lines[line].bytes.start..self.lines[last].bytes.end;
            self.part_of_paragraph(bytes, line == last, is_front, end);
            line = last + 1;
        }
        end
    }

    /// Whether a block other than a paragraph begins at a line.
    fn begins_block(&self, at: usize) -> bool {
        let content = self.lines[at].content;
        content.is_empty()
            || self.lines[at].depth > self.lines[at - 1].depth
            || self.attribution_end(at).is_some()
            || self.bold_question(at).is_some()
            || is_rule(content)
            || is_fence(content)
            || heading(content).is_some()
            || content.starts_with('|')
            || self.table_at(at).is_some()
            || is_stamped(content)
            || self.entries_end(at).is_some()
            || sentences::item_mark(content).is_some()
            || !self.counted(at).is_empty()
            || !self.labelled(at).is_empty()
            || self.aligned(at) > 0
            || !self.keyed_run(at).is_empty()
    }

    fn part_of_paragraph(
        &mut self,
        bytes: Range<usize>,
        is_one_line: bool,
        is_front: bool,
        end: usize,
    ) {
        let content = &self.text[bytes.clone()];
        let is_short = sentences::columns(content) <= HEADING_COLUMNS_MAX;
        let is_last = self.lines[end..].iter().all(|line| line.content.is_empty());
        let is_underlined = self.lines.get(end).is_some_and(|line| is_rule(line.content));
        let has_digit = content.contains(|c: char| c.is_ascii_digit());
        let is_row = has_columns(content)
            && has_digit
            && !is_underlined
            && !(is_one_line && self.is_above_deeper_list(end));
        if is_row {
            self.push_bounded(Kind::Sentence, bytes);
            return;
        }
        if is_one_line && !is_short && self.is_caption(content, end) {
            let caption = content.to_owned();
            self.push(Kind::Sentence, bytes);
            self.open_section(CAPTION_LEVEL, caption);
            return;
        }
        let is_label = sentences::is_labelled(content);
        // "**Measures.**" right above a list is its heading.
        let is_above_list = self
            .lines
            .get(end)
            .is_some_and(|line| is_one_line && sentences::item_mark(line.content).is_some());
        let bold = sentences::bold(content).filter(|_| is_above_list);
        let is_open = is_one_line && is_short && !sentences::is_ended(content) && !is_label;
        if bold.is_some() || (is_open && !self.is_whole_answer(end)) {
            let heading = sentences::bold(content).unwrap_or(content).to_owned();
            // "[server]" names a part of settings and tells nothing.
            // "LEVEL 2   below -10 degrees" also says what level 2 is.
            let is_told = has_columns(content) && has_digit && self.is_above_deeper_list(end);
            if !is_bracketed(&heading)
                && let Some(unit) = self.push(Kind::Sentence, bytes.clone())
            {
                unit.is_lead = !is_told;
            }
            if !is_last && !heading.ends_with([',', ';']) {
                let announces = sentences::announces(&heading);
                self.open_section(PLAIN_LEVEL, heading);
                self.lead = announces.then_some(bytes);
                self.begin(Form::Paragraph);
            }
            return;
        }
        // The parts of an edition remark make no sense without each other.
        match is_front && is_edition(content) {
            true => self.push_bounded(Kind::Sentence, bytes),
            false => self.push_sentences(Kind::Sentence, bytes),
        }
    }

    /// Whether an indented list begins at `end`, right below a line that is less indented.
    fn is_above_deeper_list(&self, end: usize) -> bool {
        let is_item = |line: &Line<'_>| sentences::item_mark(line.content).is_some();
        let next = self.lines.get(end).filter(|line| is_item(line));
        next.is_some_and(|next| next.indent > self.lines[end - 1].indent)
    }

    /// Whether a long line that no sentence ends in, right above records or a table, names what
    /// their rows are about: "Accounts 2026, Mole Street 4, flat 12, Ada Moss, ...".
    fn is_caption(&self, content: &str, end: usize) -> bool {
        let next = (end..self.lines.len()).find(|line| !self.lines[*line].content.is_empty());
        let is_above_rows = |line: usize| {
            self.table_at(line).is_some() || self.keyed_run(line).len() >= CAPTIONED_MIN
        };
        sentences::columns(content) <= CAPTION_COLUMNS_MAX
            && !sentences::is_ended(content)
            && !sentences::is_labelled(content)
            && !content.ends_with([',', ';', ':'])
            && !is_edition(content)
            && next.is_some_and(is_above_rows)
    }

    /// Ends the section of a caption, which holds only rows, at other text.
    pub(super) fn leave_caption(&mut self) {
        if self.headings.last().is_some_and(|(level, _)| *level == CAPTION_LEVEL) {
            self.headings.pop();
            self.new_section();
        }
    }

    /// Adds sentences. One that announces something becomes the lead of the next; an opening topic,
    /// or the label that a later sentence refers back to, becomes the lead of all but the first.
    pub(super) fn push_sentences(&mut self, kind: Kind, bytes: Range<usize>) {
        let text = &self.text[bytes.clone()];
        let topic = sentences::topic(text, kind == Kind::Item);
        let mut pieces = sentences::pieces(text);
        // A topic makes no sense alone, so it is joined to the sentence after it.
        if let (Some(topic), [first, next, ..]) = (&topic, &mut pieces[..])
            && topic.end == first.end
        {
            next.start = first.start;
            pieces.remove(0);
        }
        let topic = topic.map(|topic| bytes.start + topic.start..bytes.start + topic.end);
        let mut of_first: Option<(&str, Range<usize>)> = None;
        for piece in pieces {
            let piece = bytes.start + piece.start..bytes.start + piece.end;
            of_first = self.said_of(piece.clone()).or(of_first).filter(|(word, said)| {
                said.start == piece.start || begins_with(&self.text[piece.clone()], word)
            });
            if let Some((_, said)) = of_first.as_ref().filter(|(_, said)| said.start < piece.start)
            {
                self.lead = Some(said.clone());
            }
            let announces = sentences::announces(&self.text[piece.clone()]);
            let from = self.found.units.len();
            self.push_bounded(kind, piece.clone());
            if announces {
                for unit in &mut self.found.units[from..] {
                    unit.is_lead = true;
                }
            }
            // An announcement leads a whole list, but only one sentence of prose.
            self.lead = announces.then_some(piece).or_else(|| topic.clone());
        }
        self.lead = self.lead.take().filter(|lead| Some(lead) != topic.as_ref());
    }

    /// The start of a sentence's label and the preposition that ends it: "Meeting point" and "for"
    /// in "Meeting point for the hall: the oak."
    fn said_of(&self, piece: Range<usize>) -> Option<(&'static str, Range<usize>)> {
        let (label, _) = self.text[piece.clone()].split_once(": ")?;
        let place = |word| Some((word, label.find(&format!(" {word} "))?));
        let (word, end) = entries(OF_SOMETHING).find_map(place)?;
        Some((word, piece.start..piece.start + end))
    }

    /// Adds a passage in pieces of at most [`SENTENCE_CHARS_MAX`].
    pub(super) fn push_bounded(&mut self, kind: Kind, bytes: Range<usize>) {
        for piece in sentences::bounded(self.text, bytes, SENTENCE_CHARS_MAX) {
            self.push(kind, piece);
        }
    }
}

/// Whether the label of a sentence begins with the given preposition: "For the hall: the oak."
fn begins_with(sentence: &str, word: &str) -> bool {
    let label = sentence.trim_start().split_once(": ").map(|(label, _)| label);
    let first = label.and_then(|label| label.split_once(' ')).map(|(first, _)| first);
    first.is_some_and(|first| first.to_lowercase() == word)
}

/// Whether a line is the name of a part of settings: "[server]".
fn is_bracketed(line: &str) -> bool {
    let inside = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|name| !name.contains([' ', '[', ']']))
}

/// Whether a short line is all in capitals, like headings in plain texts.
fn is_capitals(content: &str) -> bool {
    sentences::columns(content) <= HEADING_COLUMNS_MAX
        && !sentences::is_ended(content)
        && content.contains(char::is_uppercase)
        && !content.contains(char::is_lowercase)
}
