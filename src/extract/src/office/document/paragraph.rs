//! One paragraph being read, and how it is written as a block.

use crate::ExtractError;
use crate::flow::Flow;
use crate::office::document::numbering::{Mark, Numbering};
use crate::office::document::properties::Properties;
use crate::office::document::styles::Styles;
use lodestone_types::BlockKind;

/// Maximum characters of a heading; anything longer is body text with a heading style.
const HEADING_CHARS_MAX: usize = 400;

/// A paragraph being read.
#[derive(Debug, Default)]
pub(super) struct Paragraph {
    /// Its text so far.
    pub text: String,
    /// Its properties.
    pub properties: Properties,
}

impl Paragraph {
    /// Writes it as the kind of block given by its style and list.
    pub(super) fn write(
        &self,
        styles: &Styles,
        numbering: &mut Numbering,
        flow: &mut Flow,
    ) -> Result<(), ExtractError> {
        let text = self.text.trim();
        let effect =
            self.properties.style.as_deref().map(|id| styles.effect(id)).unwrap_or_default();
        let own_outline = self.properties.outline;
        let heading = match own_outline {
            Some(9..) => None,
            Some(level) => Some(level + 1),
            None => effect.heading,
        };
        let list = self.properties.list.clone().or(effect.list).filter(|id| id != "0");
        let level = self.properties.list_level.or(effect.list_level).unwrap_or(0);
        // An empty paragraph in a list shows no number and is not counted.
        let mark = match list {
            Some(id) if !text.is_empty() => Some(numbering.next(&id, level)),
            _ => None,
        };
        if effect.is_title {
            flow.set_title(text);
            return flow.heading(1, text);
        }
        if let Some(level) = heading.filter(|_| text.chars().count() <= HEADING_CHARS_MAX) {
            return match mark {
                Some(Mark::Number(number)) => flow.heading(level, &format!("{number} {text}")),
                _ => flow.heading(level, text),
            };
        }
        match mark {
            Some(Mark::Bullet) => flow.item(level, "-", text),
            Some(Mark::Number(number)) => flow.item(level, &number, text),
            Some(Mark::None) | None => flow.block(BlockKind::Paragraph, text),
        }
    }

    /// Appends a space unless the text already ends with whitespace.
    pub(super) fn space(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
            self.text.push(' ');
        }
    }
}
