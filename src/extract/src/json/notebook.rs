//! Notebooks: the source of their cells, and the text output of running them.

use crate::flow::Flow;
use crate::json::Sink;
use crate::outline::too_long;
use crate::{ExtractError, TEXT_BYTES_MAX, md};
use lodestone_types::{BlockKind, Extracted};

/// Nesting depth of a cell: the notebook, its array of cells, the cell.
const CELL_DEPTH: usize = 3;

/// Collects the cells.
#[derive(Debug, Default)]
pub(super) struct Writer {
    flow: Flow,
    /// The key of each open value.
    keys: Vec<String>,
    /// The key of the next value.
    key: String,
    cell_type: String,
    source: String,
    printed: String,
}

impl Writer {
    /// Finishes the document.
    pub(super) fn finish(self) -> Result<Extracted, ExtractError> {
        self.flow.finish()
    }

    fn cell(&mut self) -> Result<(), ExtractError> {
        let source = std::mem::take(&mut self.source);
        let printed = std::mem::take(&mut self.printed);
        let cell_type = std::mem::take(&mut self.cell_type);
        if cell_type != "markdown" {
            self.flow.block(BlockKind::Code, &source)?;
            return self.flow.block(BlockKind::Code, &printed);
        }
        let cell = md::read(source)?;
        for block in cell.blocks {
            let content = &cell.text[block.range];
            let above_last = content.rsplit_once('\n').map_or("", |(lines, _)| lines);
            match block.kind {
                // An underlined block of several lines is rather text above a rule.
                BlockKind::Heading { .. } if above_last.contains('\n') => {
                    self.flow.block(BlockKind::Paragraph, above_last)?
                }
                BlockKind::Heading { .. } => {
                    self.flow.block(block.kind, &md::heading_text(content))?
                }
                kind => self.flow.block(kind, content)?,
            }
        }
        Ok(())
    }
}

impl Sink for Writer {
    fn open(&mut self, _: bool) -> Result<(), ExtractError> {
        self.keys.push(std::mem::take(&mut self.key));
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExtractError> {
        let is_cell = self.keys.len() == CELL_DEPTH && self.keys[1] == "cells";
        self.keys.pop();
        if is_cell { self.cell() } else { Ok(()) }
    }

    fn key(&mut self, key: &str) {
        key.clone_into(&mut self.key);
    }

    fn scalar(&mut self, value: &str) -> Result<(), ExtractError> {
        if self.keys.get(1).is_none_or(|key| key != "cells") {
            return Ok(());
        }
        let kept = self.flow.len() + self.source.len() + self.printed.len();
        if kept + value.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        // Text is a single string, or an array of lines that include their line breaks.
        let inside = self.keys.get(CELL_DEPTH..).unwrap_or(&[]);
        let name = inside.last().filter(|name| !name.is_empty()).unwrap_or(&self.key);
        match (name.as_str(), inside.first().map(String::as_str)) {
            ("cell_type", None) => value.clone_into(&mut self.cell_type),
            ("source", _) => self.source.push_str(value),
            ("text" | "text/plain", Some("outputs")) => self.printed.push_str(value),
            _ => {}
        }
        Ok(())
    }
}
