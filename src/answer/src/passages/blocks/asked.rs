//! Questions in bold that stand alone, as in a list of frequent questions: each is the heading of
//! what follows.

use super::prose::PLAIN_LEVEL;
use super::{Line, Parser};
use crate::text::sentences::item_mark;
use crate::text::words::is_entry;

/// Maximum number of lines that such a question is wrapped to.
const LINES_MAX: usize = 3;
/// Marks around bold text, the longest first.
const BOLD: [&str; 3] = ["***", "**", "__"];
/// Labels of a question.
const LABELS: &str = "q|question|frage|pregunta";
const QUESTION_MARKS: [char; 3] = ['?', '\u{FF1F}', '\u{61F}'];

impl Parser<'_> {
    /// Opens the section of the question in bold that begins at a line. Returns the line after it;
    /// `None` if none does.
    pub(super) fn asked(&mut self, at: usize) -> Option<usize> {
        let (question, end) = self.bold_question(at)?;
        self.open_section(PLAIN_LEVEL, question);
        Some(end)
    }

    /// The question in bold that begins at a line, and the line after it. A list item that goes on,
    /// or that another item follows, is no heading.
    pub(super) fn bold_question(&self, at: usize) -> Option<(String, usize)> {
        let first = &self.lines[at];
        if !BOLD.iter().any(|mark| first.content.contains(mark)) {
            return None;
        }
        let lines_to = |count: usize| {
            let lines = self.lines.get(at..at + count)?;
            let is_blank = lines.iter().any(|line| line.content.is_empty());
            (!is_blank).then(|| lines.iter().map(|line| line.content).collect::<Vec<_>>().join(" "))
        };
        let (question, end) = (1..=LINES_MAX).find_map(|count| {
            let joined = lines_to(count)?;
            Some((question_in_bold(&joined)?.to_owned(), at + count))
        })?;
        let is_item = item_mark(first.content).is_some();
        (!is_item || self.is_apart(first, end)).then_some((question, end))
    }

    /// Whether what follows an item is neither part of it nor another item.
    fn is_apart(&self, item: &Line<'_>, end: usize) -> bool {
        let inside = self.lines.get(end).filter(|line| !line.content.is_empty());
        let next = self.lines[end..].iter().find(|line| !line.content.is_empty());
        inside.is_none_or(|line| line.indent <= item.indent)
            && next.is_some_and(|line| item_mark(line.content).is_none())
    }

    /// Whether a text from a line up to `end` is all that stands below a question in a heading, so
    /// that it answers however short it is.
    pub(super) fn is_whole_answer(&self, end: usize) -> bool {
        let is_asked = |heading: &String| heading.ends_with(QUESTION_MARKS);
        let is_first = self.found.units.last().is_none_or(|unit| unit.section != self.section);
        let next = (end..self.lines.len()).find(|line| !self.lines[*line].content.is_empty());
        let is_next_asked = |line: usize| {
            let heading = super::heading(self.lines[line].content);
            heading.is_some_and(|(_, heading)| heading.ends_with(QUESTION_MARKS))
                || self.bold_question(line).is_some()
        };
        is_first
            && self.found.sections[self.section].last().is_some_and(is_asked)
            && next.is_none_or(is_next_asked)
    }
}

/// The question that a text consists of, if it is in bold or has a label in bold:
/// "**3. Who pays?**", "2. __Who pays?__", "**Q:** Who pays?".
fn question_in_bold(content: &str) -> Option<&str> {
    // A backslash at its end breaks the line.
    let content = content.trim_end_matches(['\\', ' ']);
    let bare = unnumbered(content[item_mark(content).unwrap_or(0)..].trim_start());
    let whole = |mark: &&str| {
        let inside = bare.strip_prefix(*mark)?.strip_suffix(*mark)?;
        (!inside.contains(*mark)).then(|| unnumbered(inside.trim()))
    };
    let labelled = || {
        let (label, rest) = bare.strip_prefix("**")?.split_once("**")?;
        let word = label.trim_end_matches(|c: char| !c.is_alphabetic());
        is_entry(LABELS, word).then(|| rest.trim_start_matches([':', '.', ' ']))
    };
    let question = BOLD.iter().find_map(whole).or_else(labelled)?;
    (question.ends_with(QUESTION_MARKS) && question.contains(char::is_alphabetic))
        .then_some(question)
}

/// A question without its number or label: "3. Who pays?", "Q3: Who pays?".
fn unnumbered(text: &str) -> &str {
    let behind = text.strip_prefix('Q').unwrap_or(text);
    let behind = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = behind.strip_prefix(['.', ')', ':']).filter(|_| behind.len() < text.len());
    rest.filter(|rest| rest.starts_with([' ', '*', '_'])).map_or(text, str::trim_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passages::blocks::blocks;

    #[test]
    fn questions_in_bold_are_seen() {
        for content in [
            "**Who pays?**", "__Who pays?__", "***Who pays?***", "**3. Who pays?**",
            "3. **Who pays?**", "- **Who pays?**", "**Q: Who pays?**", "**Q2:** Who pays?",
            "**Q**: Who pays?", "**Who pays?**\\",
        ] {
            assert_eq!(question_in_bold(content), Some("Who pays?"), "{content}");
        }
        for content in [
            "**Payment**", "**Who pays?** The guest.", "Who pays?", "**Who** pays **what?**",
            "**Note:** Who pays?", "**?**",
        ] {
            assert_eq!(question_in_bold(content), None, "{content}");
        }
    }

    #[test]
    fn a_question_in_bold_is_a_heading() {
        let text = "## Shearing\n\n**Who shears the\nrams?**\nThe day crew. They begin at six.\n\n\
            **Where does the wool go?**\n\nTo the loft\n\n3. **How long does it take?**\n\n   Two \
            days.\n\n## Rest\n\nNone is due.\n\n- **Why?**\n- **How?**\n";
        let found = blocks(text, None);
        let told: Vec<(&str, String)> = found
            .units
            .iter()
            .filter(|unit| !unit.is_lead)
            .map(|unit| (&text[unit.bytes.clone()], found.sections[unit.section].join(" / ")))
            .collect();
        let below = |asked: &str| format!("Shearing / {asked}");
        assert_eq!(
            told,
            [
                ("The day crew.", below("Who shears the rams?")),
                ("They begin at six.", below("Who shears the rams?")),
                ("To the loft", below("Where does the wool go?")),
                ("Two days.", below("How long does it take?")),
                ("None is due.", "Rest".to_owned()),
                ("**Why?**", "Rest".to_owned()),
                ("**How?**", "Rest".to_owned()),
            ]
        );
    }
}
