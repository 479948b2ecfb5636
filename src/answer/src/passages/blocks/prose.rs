//! Paragraphs: sentences, headings by their form, remarks on the edition.

use std::ops::Range;

use super::lines::{has_columns, heading, is_edition, is_fence, is_rule, is_stamped};
use super::{Form, Kind, Parser};
use crate::text::sentences::{self, SENTENCE_CHARS_MAX};
use crate::text::words::entries;

/// A line without an end of sentence is taken for a heading up to this length in columns.
const HEADING_COLUMNS_MAX: usize = 80;
/// Words between what a sentence says and of what it is.
const OF_SOMETHING: &str = "for|at|in|on|from|with|für|bei|pour|para";
/// Level of a heading that is one by its form only, below all marked ones.
const PLAIN_LEVEL: usize = 7;

impl Parser<'_> {
    pub(super) fn paragraph(&mut self, at: usize) -> usize {
        let mut end = at + 1;
        while end < self.lines.len() && !self.begins_block(end) {
            end += 1;
        }
        let is_front = !self.headings.is_empty() && self.found.units.is_empty();
        self.begin(Form::Paragraph);
        let mut line = at;
        while line < end {
            let mut last = line;
            // "WHY" is no beginning of a sentence.
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

    /// Whether something else than a paragraph begins with the line.
    fn begins_block(&self, at: usize) -> bool {
        let content = self.lines[at].content;
        content.is_empty()
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
        let is_row = has_columns(content) && has_digit && !is_underlined;
        if is_row {
            self.push_bounded(Kind::Sentence, bytes);
            return;
        }
        let is_label = sentences::is_labelled(content);
        // "**Measures.**" right above a list is its name.
        let is_above_list = self
            .lines
            .get(end)
            .is_some_and(|line| is_one_line && sentences::item_mark(line.content).is_some());
        let bold = sentences::bold(content).filter(|_| is_above_list);
        if bold.is_some() || (is_one_line && is_short && !sentences::is_ended(content) && !is_label)
        {
            let heading = bold.unwrap_or(content).to_owned();
            if let Some(unit) = self.push(Kind::Sentence, bytes.clone()) {
                unit.is_lead = true;
            }
            if !is_last && !heading.ends_with([',', ';']) {
                let announces = sentences::announces(&heading);
                self.open_section(PLAIN_LEVEL, heading);
                self.lead = announces.then_some(bytes);
                self.begin(Form::Paragraph);
            }
            return;
        }
        // The parts of a remark on the edition say nothing without each other.
        match is_front && is_edition(content) {
            true => self.push_bounded(Kind::Sentence, bytes),
            false => self.push_sentences(Kind::Sentence, bytes),
        }
    }

    /// Sentences; one that announces something becomes the lead of those behind it, and words that
    /// open them and name their matter, of all but the first one.
    pub(super) fn push_sentences(&mut self, kind: Kind, bytes: Range<usize>) {
        let text = &self.text[bytes.clone()];
        let topic = sentences::topic(text, kind == Kind::Item);
        let mut pieces = sentences::pieces(text);
        // A topic alone says nothing.
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
            // An announcement speaks for a whole list, and for one sentence of prose.
            self.lead = announces.then_some(piece).or_else(|| topic.clone());
        }
        self.lead = self.lead.take().filter(|lead| Some(lead) != topic.as_ref());
    }

    /// The words of a sentence on something before its colon, and the word between both: "Meeting
    /// point" and "for" of "Meeting point for the hall: the oak."
    fn said_of(&self, piece: Range<usize>) -> Option<(&'static str, Range<usize>)> {
        let (label, _) = self.text[piece.clone()].split_once(": ")?;
        let place = |word| Some((word, label.find(&format!(" {word} "))?));
        let (word, end) = entries(OF_SOMETHING).find_map(place)?;
        Some((word, piece.start..piece.start + end))
    }

    /// A passage in pieces of [`SENTENCE_CHARS_MAX`] at most.
    pub(super) fn push_bounded(&mut self, kind: Kind, bytes: Range<usize>) {
        for piece in sentences::bounded(self.text, bytes, SENTENCE_CHARS_MAX) {
            self.push(kind, piece);
        }
    }
}

/// Whether a sentence says before a colon only of what it is, by a word: "For the hall: the oak."
fn begins_with(sentence: &str, word: &str) -> bool {
    let label = sentence.trim_start().split_once(": ").map(|(label, _)| label);
    let first = label.and_then(|label| label.split_once(' ')).map(|(first, _)| first);
    first.is_some_and(|first| first.to_lowercase() == word)
}

/// Whether a short line is in capitals alone, as headings of plain texts are.
fn is_capitals(content: &str) -> bool {
    sentences::columns(content) <= HEADING_COLUMNS_MAX
        && !sentences::is_ended(content)
        && content.contains(char::is_uppercase)
        && !content.contains(char::is_lowercase)
}
