//! Drops the reasoning that a model writes before its answer.
//!
//! Servers that know a reasoning model put its reasoning into a separate member; others send it as
//! `<think>...</think>` before the text.

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// State of a reply.
#[derive(Debug, Default)]
pub(super) enum Thinking {
    /// Only white space so far.
    #[default]
    Unknown,
    /// A prefix of the opening tag, held back.
    Begun(String),
    /// Within the reasoning; holds the end of the input, which may begin the closing tag.
    Inside(String),
    /// In the text itself.
    Over,
}

impl Thinking {
    /// Feeds the next piece of a reply and returns the text in it.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let state = std::mem::take(self);
        let (next, text) = match state {
            Self::Over => (Self::Over, piece.to_owned()),
            Self::Unknown => begin(piece.trim_start().to_owned()),
            Self::Begun(held) => begin(held + piece),
            Self::Inside(held) => inside(held + piece),
        };
        *self = next;
        text
    }

    /// Ends the reply and returns text held back for an opening tag that did not come.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Begun(held) => held,
            Self::Unknown | Self::Inside(_) | Self::Over => String::new(),
        }
    }
}

fn begin(held: String) -> (Thinking, String) {
    if let Some(rest) = held.strip_prefix(OPENING) {
        inside(rest.to_owned())
    } else if held.is_empty() {
        (Thinking::Unknown, held)
    } else if OPENING.starts_with(&held) {
        (Thinking::Begun(held), String::new())
    } else {
        (Thinking::Over, held)
    }
}

fn inside(held: String) -> (Thinking, String) {
    if let Some((_, text)) = held.split_once(CLOSING) {
        return (Thinking::Over, text.to_owned());
    }
    // Only the end can still become the closing tag.
    let from = held.ceil_char_boundary(held.len().saturating_sub(CLOSING.len() - 1));
    (Thinking::Inside(held[from..].to_owned()), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[&str]) -> String {
        let mut thinking = Thinking::default();
        let mut text: String = pieces.iter().map(|piece| thinking.push(piece)).collect();
        text += &thinking.finish();
        text
    }

    #[test]
    fn thoughts_are_dropped_wherever_they_are_cut() {
        let reply = "\n<think>\u{1F914} hm < /think </thin</think>It is <think>blue</think>.";
        let cuts: Vec<usize> = (0..=reply.len()).filter(|at| reply.is_char_boundary(*at)).collect();
        for cut in cuts {
            let said = text(&[&reply[..cut], &reply[cut..]]);
            assert_eq!(said, "It is <think>blue</think>.", "cut at {cut}");
        }
        for plain in ["<th", "<p>x", "plain", "", "<think"] {
            assert_eq!(text(&[plain]), plain);
        }
        assert_eq!(text(&["<think>never ends"]), "");
    }
}
