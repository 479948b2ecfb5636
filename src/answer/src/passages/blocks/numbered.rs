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
    /// with the next or the previous number, or it continues the headings before it.
    pub(super) fn is_numbered_heading(&self, at: usize) -> bool {
        if self.continues_headings(at) && self.is_further_title(at) {
            return true;
        }
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
        self.number = self.numbered(at).map(|(number, _)| number);
        at + 1
    }

    /// Ends the section of the last numbered heading at a list whose first item continues its
    /// numbers: it stands beside that section, not in it. Returns whether it does.
    pub(super) fn leave_numbered(&mut self, at: usize) -> bool {
        let Some(last) = self.number.filter(|_| self.continues_headings(at)) else { return false };
        let own = last.to_string();
        let is_own =
            |(level, text): &(usize, String)| *level == PLAIN_LEVEL && text.starts_with(&own);
        if let Some(open) = self.headings.iter().position(is_own) {
            self.headings.truncate(open);
            self.new_section();
        }
        true
    }

    /// Whether a line that stands apart has the number after that of the last numbered heading.
    fn continues_headings(&self, at: usize) -> bool {
        let Some((number, _)) = self.numbered(at) else { return false };
        self.number.is_some_and(|last| last + 1 == number)
    }

    /// Whether a line has the form of a heading with a number, above a list, a table or a line that
    /// does not continue it.
    fn is_further_title(&self, at: usize) -> bool {
        let Some((_, title)) = self.numbered(at) else { return false };
        let Some(next) = self.next_text(at) else { return false };
        let (content, below) = (self.lines[at].content, self.lines[next].content);
        let is_above = title.ends_with(':')
            || sentences::item_mark(below).is_some()
            || self.table_at(next).is_some()
            || (next == at + 1 && !sentences::goes_on(content, below));
        is_title(title.trim_end_matches(':')) && is_above && !sentences::follows(content, below)
    }

    /// The number of a line that stands apart, and the text after it.
    pub(super) fn numbered(&self, at: usize) -> Option<(u32, &str)> {
        let content = self.lines[at].content;
        let (number, text) = content.split_once(". ").or(content.split_once(") "))?;
        let number = number.parse().ok().filter(|_| number.len() <= 2)?;
        let is_apart = at.checked_sub(1).is_none_or(|above| self.lines[above].content.is_empty());
        is_apart.then_some((number, text))
    }

    /// The number of a line that has the form of such a heading and stands above prose.
    fn numbered_title(&self, at: usize) -> Option<u32> {
        let (number, title) = self.numbered(at)?;
        (is_title(title) && self.is_above_prose(at)).then_some(number)
    }

    /// The next line after a line that is not empty.
    fn next_text(&self, at: usize) -> Option<usize> {
        (at + 1..self.lines.len()).find(|line| !self.lines[*line].content.is_empty())
    }

    /// Whether the next text below a line is a paragraph of sentences as little indented.
    fn is_above_prose(&self, at: usize) -> bool {
        let Some(next) = self.next_text(at) else { return false };
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

/// Whether the text after a number has the form of a heading.
fn is_title(text: &str) -> bool {
    text.starts_with(char::is_uppercase)
        && !text.contains(": ")
        && !text.ends_with([':', ',', ';'])
        && !sentences::is_ended(text)
        && sentences::columns(text) <= COLUMNS_MAX
        && text.split_whitespace().count() <= WORDS_MAX
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
    fn what_continues_the_numbers_leaves_the_section_before() {
        let text = "1. Hours\nThe gate is open from nine to five.\n\n2. What is forbidden\n\
                    Riding on the belt is forbidden.\n\n3. What to bring:\n- helmet\n- boots\n\n\
                    4. Dogs are kept on the lead.\n\n5. No smoking\n";
        let expected = [
            (Kind::Sentence, "The gate is open from nine to five.", "1. Hours".to_owned()),
            (Kind::Sentence, "Riding on the belt is forbidden.", "2. What is forbidden".to_owned()),
            (Kind::Item, "helmet", "3. What to bring:".to_owned()),
            (Kind::Item, "boots", "3. What to bring:".to_owned()),
            (Kind::Item, "4. Dogs are kept on the lead.", String::new()),
            (Kind::Item, "5. No smoking", String::new()),
        ];
        assert_eq!(told(text), expected);
    }

    #[test]
    fn steps_within_a_section_stay_in_it() {
        let text = "1. Hours\nThe gate is open from nine to five.\n\n2. Leaving\n\
                    The last one does this at night.\n\n1. Lock it.\n\n2. Ring Ada.\n\n3. Go.\n";
        let sections: Vec<String> = told(text).into_iter().map(|(.., section)| section).collect();
        assert_eq!(sections, ["1. Hours", "2. Leaving", "2. Leaving", "2. Leaving", "2. Leaving"]);
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
