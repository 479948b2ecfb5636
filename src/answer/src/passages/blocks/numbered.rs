//! Numbered headings of plain texts: "3. Opening hours" above a paragraph.

use super::prose::PLAIN_LEVEL;
use super::{Form, Kind, Parser};
use crate::text::sentences;

/// Maximum number of columns and words in such a heading.
const COLUMNS_MAX: usize = 60;
const WORDS_MAX: usize = 8;
/// Minimum number of words in the line of prose below it.
const PROSE_WORDS_MIN: usize = 4;
/// Maximum distance, in lines, of the heading with the next or previous number.
const LINES_MAX: usize = 200;

impl Parser<'_> {
    /// Whether a line is a numbered heading: it stands apart above a paragraph, and so does a line
    /// with the next or the previous number.
    pub(super) fn is_numbered_heading(&self, at: usize) -> bool {
        let Some(number) = self.numbered_title(at) else { return false };
        let near = at.saturating_sub(LINES_MAX)..(at + LINES_MAX).min(self.lines.len());
        near.filter_map(|line| self.numbered_title(line)).any(|other| number.abs_diff(other) == 1)
    }

    /// Opens the section of the numbered heading at a line and returns the line after it.
    pub(super) fn numbered_section(&mut self, at: usize) -> usize {
        let (bytes, heading) = (self.lines[at].bytes.clone(), self.lines[at].content.to_owned());
        self.begin(Form::Paragraph);
        if let Some(unit) = self.push(Kind::Sentence, bytes) {
            unit.is_lead = true;
        }
        self.open_section(PLAIN_LEVEL, heading);
        at + 1
    }

    /// The number of a line that has the form of such a heading and stands above prose.
    fn numbered_title(&self, at: usize) -> Option<u32> {
        let line = &self.lines[at];
        let (number, title) = line.content.split_once(". ").or(line.content.split_once(") "))?;
        let number = number.parse().ok().filter(|_| number.len() <= 2)?;
        let is_title = title.starts_with(char::is_uppercase)
            && !title.contains(": ")
            && !title.ends_with([':', ',', ';'])
            && !sentences::is_ended(title)
            && sentences::columns(title) <= COLUMNS_MAX
            && title.split_whitespace().count() <= WORDS_MAX;
        let is_apart = at.checked_sub(1).is_none_or(|above| self.lines[above].content.is_empty());
        (is_title && is_apart && self.is_above_prose(at)).then_some(number)
    }

    /// Whether the next text below a line is a paragraph of sentences as little indented.
    fn is_above_prose(&self, at: usize) -> bool {
        let is_text = |line: &usize| !self.lines[*line].content.is_empty();
        let Some(next) = (at + 1..self.lines.len()).find(is_text) else { return false };
        let (line, below) = (&self.lines[at], &self.lines[next]);
        let paragraph = self.lines[next..].iter().take_while(|line| {
            !line.content.is_empty() && sentences::item_mark(line.content).is_none()
        });
        let is_ended = paragraph.last().is_some_and(|last| sentences::is_ended(last.content));
        below.depth == line.depth
            && below.indent <= line.indent
            && below.content.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
            && below.content.split_whitespace().count() >= PROSE_WORDS_MIN
            && is_ended
    }
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::{Kind, blocks};

    fn told(text: &str) -> Vec<(Kind, &str, String)> {
        let found = blocks(text, None);
        let section = |at: usize| found.sections[at].last().cloned().unwrap_or_default();
        let units = found.units.iter().filter(|unit| !unit.is_lead);
        units.map(|unit| (unit.kind, &text[unit.bytes.clone()], section(unit.section))).collect()
    }

    #[test]
    fn numbered_lines_above_paragraphs_are_headings() {
        let text = "Choir rules\n\n1. Rehearsals\nWe sing on Mondays at seven. Bring a pencil.\n\n\
                    2. Robes\n\nRobes are washed by the choir.\n";
        let expected = [
            (Kind::Sentence, "We sing on Mondays at seven.", "1. Rehearsals".to_owned()),
            (Kind::Sentence, "Bring a pencil.", "1. Rehearsals".to_owned()),
            (Kind::Sentence, "Robes are washed by the choir.", "2. Robes".to_owned()),
        ];
        assert_eq!(told(text), expected);
    }

    #[test]
    fn numbered_items_stay_items() {
        for text in [
            "1. Open the lid\n2. Take out the comb\n\nThe bees are calm in the morning.\n",
            "1. Open the lid\nTurn it left by hand.\n2. Take out the comb\nHold it level now.\n",
            "1. Open the lid\n\nThe bees are calm in the morning.\n",
        ] {
            let first = &told(text)[0];
            assert_eq!((first.0, first.1), (Kind::Item, "1. Open the lid"), "{text}");
        }
    }
}
