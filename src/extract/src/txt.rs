//! Plain text reader: the text is kept as it is; blank lines separate paragraphs.

use crate::{ExtractError, TEXT_BYTES_MAX, outline};
use lodestone_types::{Block, BlockKind, Extracted};

/// Reads a plain text document.
pub(super) fn read(text: String) -> Result<Extracted, ExtractError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(outline::too_long());
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut is_open = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let is_blank = content.trim_start().is_empty();
        let end = at + content.len();
        match blocks.last_mut() {
            _ if is_blank => {}
            Some(last) if is_open => last.range.end = end,
            _ => blocks.push(Block { kind: BlockKind::Paragraph, range: at..end }),
        }
        is_open = !is_blank;
        at += line.len();
    }
    Ok(Extracted { text, blocks, ..Extracted::default() })
}
