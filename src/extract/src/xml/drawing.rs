//! SVG: the text of a drawing, in drawing order. Geometry is left out.

use crate::flow::Flow;
use crate::outline::too_long;
use crate::xml::Sink;
use crate::{ExtractError, TEXT_BYTES_MAX};
use lodestone_types::{BlockKind, Extracted};

/// Elements with text.
const WORDS: [&str; 4] = ["title", "desc", "text", "foreignObject"];

/// Writes the text of each element as a paragraph.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    /// The number of open elements.
    depth: usize,
    /// Depth and text so far of the open text element.
    words: Option<(usize, String)>,
    has_title: bool,
}

impl Writer {
    /// Returns the finished document.
    pub(super) fn finish(self) -> Result<Extracted, ExtractError> {
        self.flow.finish()
    }
}

impl Sink for Writer {
    fn open(&mut self, name: &str, _: &[(String, String)]) -> Result<(), ExtractError> {
        self.depth += 1;
        match &mut self.words {
            // Separates parts of a text with a space.
            Some((_, words)) => words.push(' '),
            None if WORDS.contains(&name) => self.words = Some((self.depth, String::new())),
            None => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), ExtractError> {
        let ended = self.words.take_if(|(depth, _)| *depth == self.depth);
        self.depth = self.depth.saturating_sub(1);
        let Some((_, words)) = ended else { return Ok(()) };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        // The first title is that of the drawing; later ones title its parts.
        if name == "title" && !std::mem::replace(&mut self.has_title, true) {
            self.flow.set_title(&words);
        }
        self.flow.block(BlockKind::Paragraph, &words)
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        let Some((_, words)) = &mut self.words else { return Ok(()) };
        if self.flow.len() + words.len() + text.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        words.push_str(text);
        Ok(())
    }
}
