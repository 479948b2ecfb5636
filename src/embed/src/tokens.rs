//! Converts text to token ids, and tokens to byte ranges of the text.

use std::ops::Range;
use std::panic::catch_unwind;

use serde::de::IgnoredAny;
use tokenizers::{Encoding, Tokenizer, TruncationDirection};

use crate::EmbedError;

/// Maximum number of bytes tokenised at a time. The tokenizer needs several hundred bytes of memory
/// per input byte; working in pieces bounds that and keeps the time linear in the length of a text.
const PIECE_BYTES: usize = 16 << 10;

/// The model's tokenizer with its own truncation and padding disabled: files from
/// sentence-transformers truncate and pad to 128 tokens, which is not the model's window.
#[derive(Debug)]
pub(super) struct Tokeniser {
    inner: Tokenizer,
    /// Framing tokens of a passage.
    frame: usize,
    /// Maximum number of tokens of a passage, including framing tokens.
    window: usize,
    /// The token for unknown words, if the vocabulary has one.
    unknown: Option<u32>,
    /// Size of the vocabulary.
    size: usize,
}

impl Tokeniser {
    /// Parses `tokenizer.json` for a model with a vocabulary of `vocabulary` tokens and a window of
    /// `window`.
    pub fn parse(json: &[u8], vocabulary: usize, window: usize) -> Result<Self, EmbedError> {
        // The library panics on some unexpected parts, even if the JSON itself is malformed.
        catch_unwind(|| Self::parse_by_library(json, vocabulary, window)).unwrap_or_else(|_| {
            let syntax = serde_json::from_slice::<IgnoredAny>(json).err();
            let problem = syntax.map_or("a part has another form".to_owned(), |e| e.to_string());
            Err(malformed(problem))
        })
    }

    fn parse_by_library(json: &[u8], vocabulary: usize, window: usize) -> Result<Self, EmbedError> {
        let mut inner = Tokenizer::from_bytes(json).map_err(|e| malformed(e.to_string()))?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| malformed(e.to_string()))?;
        let size = inner.get_vocab_size(true);
        if size > vocabulary {
            return Err(malformed(format!("{size} tokens for a model of {vocabulary}")));
        }
        let framed = inner.encode("", true).map_err(|e| malformed(e.to_string()))?;
        let frame = framed.len();
        if frame == 0 || frame >= window {
            return Err(malformed(format!("{frame} framing tokens in a window of {window}")));
        }
        // Letters of Linear B, which are in no vocabulary: a tokenizer without an unknown token
        // fails here instead of in the middle of a document. A byte-level tokenizer encodes them
        // with different last bytes, others as their unknown token.
        let last_of = |letter: &str| -> Result<Option<u32>, EmbedError> {
            let found = inner.encode(letter, false).map_err(|e| malformed(e.to_string()))?;
            Ok(found.get_ids().last().copied())
        };
        let (first, second) = (last_of("\u{10000}")?, last_of("\u{10081}")?);
        let unknown = first.filter(|id| second == Some(*id));
        Ok(Self { inner, frame, window, unknown, size })
    }

    /// Returns the size of the vocabulary.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the id of a token of the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Returns the number of framing tokens of a passage.
    pub fn frame(&self) -> usize {
        self.frame
    }

    /// Returns the token ids that the model receives for `text`: with framing tokens, truncated to
    /// the window.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let content = self.content(text, self.window - self.frame)?;
        let framed = self.inner.post_process(content, None, true).map_err(failed)?;
        Ok(framed.get_ids().to_vec())
    }

    /// Counts the tokens of `text` that fit a passage, without framing tokens. Also returns whether
    /// the text is truncated.
    pub fn count(&self, text: &str) -> Result<(usize, bool), EmbedError> {
        let max = self.window - self.frame;
        let content = self.content(text, max + 1)?.len();
        Ok((content.min(max), content > max))
    }

    /// Decodes ids, skipping framing tokens; `None` if one of them is not in the vocabulary.
    pub fn text(&self, ids: &[u32]) -> Result<Option<String>, EmbedError> {
        if ids.iter().any(|id| self.inner.id_to_token(*id).is_none()) {
            return Ok(None);
        }
        self.inner.decode(ids, true).map(Some).map_err(failed)
    }

    /// Returns the first tokens of `text`, at most `max`, without framing tokens.
    pub fn content(&self, text: &str, max: usize) -> Result<Encoding, EmbedError> {
        let mut content = Encoding::default();
        let mut rest = text;
        while content.len() < max && !rest.is_empty() {
            let (piece, behind) = rest.split_at(piece_end(rest));
            content.merge_with(self.encode_fast(piece)?, true);
            rest = behind;
        }
        if content.len() > max {
            content.truncate(max, 0, TruncationDirection::Right);
            content.take_overflowing();
        }
        Ok(content)
    }

    /// Joins two encoded texts into one framed pair.
    pub fn pair(&self, first: Encoding, second: Encoding) -> Result<Encoding, EmbedError> {
        self.inner.post_process(first, Some(second), true).map_err(failed)
    }

    /// Returns the maximum number of tokens of a passage or pair, including framing tokens.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Returns the byte ranges of the tokens of the whole `text`, without framing tokens.
    pub fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, EmbedError> {
        self.offsets_where(text, |_| true)
    }

    /// Returns the byte ranges of the words of `text` that the vocabulary cannot represent.
    pub fn unknown(&self, text: &str) -> Result<Vec<Range<usize>>, EmbedError> {
        let Some(unknown) = self.unknown else { return Ok(Vec::new()) };
        self.offsets_where(text, |id| id == unknown)
    }

    fn offsets_where(
        &self,
        text: &str,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Result<Vec<Range<usize>>, EmbedError> {
        let mut ranges = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let end = start + piece_end(&text[start..]);
            let piece = self.inner.encode(&text[start..end], false).map_err(failed)?;
            let tokens = piece.get_offsets().iter().zip(piece.get_ids());
            let wanted = tokens.filter(|((from, to), id)| from < to && is_wanted(**id));
            ranges.extend(wanted.map(|((from, to), _)| start + from..start + to));
            start = end;
        }
        Ok(ranges)
    }

    fn encode_fast(&self, text: &str) -> Result<Encoding, EmbedError> {
        self.inner.encode_fast(text, false).map_err(failed)
    }
}

fn malformed(problem: String) -> EmbedError {
    EmbedError::Malformed { file: "tokenizer.json".to_owned(), problem }
}

fn failed(error: tokenizers::Error) -> EmbedError {
    EmbedError::Tokenise { problem: error.to_string() }
}

/// Returns the end of the first piece of `text`: before the last white space within
/// [`PIECE_BYTES`], otherwise after the last whole character. White space either starts a token or
/// belongs to none, so splitting there does not change the tokens.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let limit = text.floor_char_boundary(PIECE_BYTES);
    let head = &text[..limit];
    let last_space = head.char_indices().rev().find(|(_, c)| c.is_whitespace());
    last_space.map_or(limit, |(at, _)| if at > 0 { at } else { limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_text_and_end_before_white_space() {
        let text = "wörter und ".repeat(5_000);
        let mut start = 0;
        while start < text.len() {
            let end = start + piece_end(&text[start..]);
            assert!(end > start && end - start <= PIECE_BYTES);
            assert!(end == text.len() || text[end..].starts_with(' '));
            start = end;
        }
        let unbroken = "é".repeat(PIECE_BYTES);
        assert_eq!(piece_end(&unbroken), PIECE_BYTES);
        assert_eq!(piece_end(&format!(" {unbroken}")), PIECE_BYTES - 1);
    }
}
