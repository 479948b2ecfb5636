//! Tokens counted between two places of a text.

use crate::chunk::TokenOffsets;

/// Bytes that are tokenised at once. A tokenizer keeps some hundred bytes for each token while it
/// works, so that a whole book at once would cost gigabytes.
const WINDOW_BYTES: usize = 64 << 10;

/// Starts of the tokens of a text, in bytes, ascending. Four bytes each: a text of 32 MiB may
/// have as many tokens as characters.
#[derive(Debug)]
pub(super) struct Ruler {
    starts: Vec<u32>,
}

impl Ruler {
    /// Tokenises `text`, window by window.
    pub(super) fn new(text: &str, tokens: &dyn TokenOffsets) -> Self {
        assert!(u32::try_from(text.len()).is_ok(), "a text is smaller than 4 GiB");
        let mut starts: Vec<u32> = Vec::with_capacity(text.len() / 4);
        let mut from = 0;
        while from < text.len() {
            let window = &text[from..window_end(text, from)];
            for token in tokens.token_offsets(window) {
                // Byte-level tokenizers may begin inside a character, or two tokens in one place.
                let start = from + window.floor_char_boundary(token.start);
                let is_after_last = starts.last().is_none_or(|&last| (last as usize) < start);
                if is_after_last && !token.is_empty() {
                    starts.push(start as u32);
                }
            }
            from += window.len();
        }
        Self { starts }
    }

    /// Tokens that begin before `place`.
    pub(super) fn before(&self, place: usize) -> usize {
        self.starts.partition_point(|&start| (start as usize) < place)
    }

    /// Start of token `index`; `None` past the last.
    pub(super) fn start(&self, index: usize) -> Option<usize> {
        self.starts.get(index).map(|&start| start as usize)
    }
}

/// The last line end of the window that begins at `from`, else its last white space, else a
/// character boundary. Tokens do not span white space.
fn window_end(text: &str, from: usize) -> usize {
    if text.len() - from <= WINDOW_BYTES {
        return text.len();
    }
    let full = &text[from..text.floor_char_boundary(from + WINDOW_BYTES)];
    let after_line = full.rfind('\n').map(|at| at + 1);
    // Before the white space, not after it: a tokenizer may glue a space to the word it precedes.
    let before_space = || full.rfind(char::is_whitespace).filter(|&at| at > 0);
    from + after_line.or_else(before_space).unwrap_or(full.len())
}
