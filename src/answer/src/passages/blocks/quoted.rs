//! Lines that announce a quoted mail: "On Tue, 12 May 2026 at 17:20, Ada Moss wrote:".

use super::Parser;
use crate::text::words::{begins_with, contains_any, spaced};

/// Maximum number of lines that such an announcement is wrapped to.
const LINES_MAX: usize = 3;
/// Words that it begins with, and verbs that it contains.
const OPENERS: &str = "on|am|le|el|il";
const WROTE: &str = "wrote|schrieb|a écrit|escribió|ha scritto";

impl Parser<'_> {
    /// The line after the announcement of a quoted mail that begins at a line; `None` if none does.
    /// It says nothing that the mail says, so it is no unit.
    pub(super) fn attribution_end(&self, at: usize) -> Option<usize> {
        let is_last = |count: &usize| self.lines.get(at + count - 1).is_some_and(closes);
        let count = (1..=LINES_MAX).find(is_last)?;
        let lines = &self.lines[at..at + count];
        let mut below = self.lines[at + count..].iter().filter(|line| !line.content.is_empty());
        let is_above_quoted = below.next().is_some_and(|line| line.depth > lines[0].depth);
        let joined: Vec<&str> = lines.iter().map(|line| line.content).collect();
        let is_whole = joined.iter().all(|content| !content.is_empty());
        (is_whole && is_attribution(&joined.join(" "), is_above_quoted && count == 1))
            .then_some(at + count)
    }
}

fn closes(line: &super::Line<'_>) -> bool {
    line.content.ends_with(':')
}

/// Whether a text names the writer of a mail: with its day and time, or with an address above the
/// quoted mail.
fn is_attribution(text: &str, is_above_quoted: bool) -> bool {
    let said = spaced(text);
    let is_opened = begins_with(&said, OPENERS);
    let has_address = text.contains('@');
    let is_dated = is_opened && text.contains(|c: char| c.is_ascii_digit());
    contains_any(&said, WROTE)
        && ((is_dated && (has_clock(text) || has_address)) || (is_above_quoted && has_address))
}

/// Whether a text holds a time of day such as 17:20 or 17h20.
fn has_clock(text: &str) -> bool {
    let is_digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    (1..bytes.len()).any(|at| {
        matches!(bytes[at], b':' | b'h')
            && is_digit(bytes.get(at - 1))
            && is_digit(bytes.get(at + 1))
    })
}

#[cfg(test)]
mod tests {
    use crate::passages::blocks::blocks;

    fn told(text: &str) -> Vec<&str> {
        blocks(text, None).units.into_iter().map(|unit| &text[unit.bytes]).collect()
    }

    #[test]
    fn announcements_of_quoted_mails_are_left_out() {
        for line in [
            "On Tue, 12 May 2026 at 17:20, Ada Moss wrote:",
            "On Tue, 12 May 2026 at 17:20, Ada Moss <ada@moss.example>\nwrote:",
            "Am Di., 12. Mai 2026 um 17:20 Uhr schrieb Ada Moss <ada@moss.example>:",
            "Le mar. 12 mai 2026 à 17:20, Ada Moss a écrit :",
            "El mar, 12 may 2026 a las 17:20, Ada Moss escribió:",
            "Ada Moss <ada@moss.example> wrote:",
        ] {
            let text =
                format!("The kiln is fixed.\n\n{line}\n> The kiln is cold\n> again.\n>\n> A.");
            let told = told(&text);
            assert_eq!(told[..2], ["The kiln is fixed.", "The kiln is cold\n> again."], "{line}");
        }
        let letter = "On 3 May 1843 Ada Moss wrote:\n\n> The kiln is cold.\n";
        assert_eq!(told(letter), ["On 3 May 1843 Ada Moss wrote:", "The kiln is cold."]);
    }

    #[test]
    fn quoted_lines_are_read_without_their_marks() {
        let text = "Good news about the old kiln in the yard of the pottery\n> Fire it.\n> Then\n\
            > wait. Then open it.\n>\n> 1. Cool it.\n> 2. Sweep it.\n\n```\n> ls\n```\n\n> ```\n\
            > cat\n> ```\n> End.";
        let expected = [
            "Good news about the old kiln in the yard of the pottery",
            "Fire it.",
            "Then\n> wait.",
            "Then open it.",
            "1. Cool it.",
            "2. Sweep it.",
            "> ls",
            "cat",
            "End.",
        ];
        assert_eq!(told(text), expected);
    }
}
