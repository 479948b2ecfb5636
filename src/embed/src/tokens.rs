//! Text to token ids and back to byte ranges.

use std::ops::Range;
use std::panic::catch_unwind;

use serde::de::IgnoredAny;
use tokenizers::{Encoding, Tokenizer, TruncationDirection};

use crate::EmbedError;

/// Bytes that are tokenised at once. The tokenizer keeps some hundred bytes of bookkeeping for
/// each byte of its input; pieces keep that small and the time linear for a text of any length.
const PIECE_BYTES: usize = 16 << 10;

/// The model's tokenizer with its own truncation and padding switched off: files from
/// sentence-transformers cut at 128 tokens and pad to 128, which is neither the model's window
/// nor wanted here.
#[derive(Debug)]
pub(super) struct Tokeniser {
    inner: Tokenizer,
    /// Tokens that frame a passage.
    frame: usize,
    /// Tokens of one passage at most, framing included.
    window: usize,
    /// The token of words that the vocabulary does not hold, if it has one.
    unknown: Option<u32>,
    /// Tokens of the vocabulary.
    size: usize,
}

impl Tokeniser {
    /// Reads `tokenizer.json` for a model of `vocabulary` words and a window of `window` tokens.
    pub fn parse(json: &[u8], vocabulary: usize, window: usize) -> Result<Self, EmbedError> {
        // The library panics on some parts of other forms, also where the JSON itself is broken.
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
        // Letters of Linear B, which no vocabulary holds: a tokenizer without an unknown token
        // fails here and not in the middle of a document. Byte-level tokenizers end them in
        // different bytes, others in their unknown token.
        let last_of = |letter: &str| -> Result<Option<u32>, EmbedError> {
            let found = inner.encode(letter, false).map_err(|e| malformed(e.to_string()))?;
            Ok(found.get_ids().last().copied())
        };
        let (first, second) = (last_of("\u{10000}")?, last_of("\u{10081}")?);
        let unknown = first.filter(|id| second == Some(*id));
        Ok(Self { inner, frame, window, unknown, size })
    }

    /// Tokens of the vocabulary.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The id of a token of the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// Tokens that frame one passage.
    pub fn frame(&self) -> usize {
        self.frame
    }

    /// The ids that the model gets for `text`: framed, cut at the window.
    pub fn ids(&self, text: &str) -> Result<Vec<u32>, EmbedError> {
        let content = self.content(text, self.window - self.frame)?;
        let framed = self.inner.post_process(content, None, true).map_err(failed)?;
        Ok(framed.get_ids().to_vec())
    }

    /// Tokens of `text` in a passage, framing left out, and whether more are cut.
    pub fn count(&self, text: &str) -> Result<(usize, bool), EmbedError> {
        let max = self.window - self.frame;
        let content = self.content(text, max + 1)?.len();
        Ok((content.min(max), content > max))
    }

    /// The text of ids without framing tokens; `None` where the vocabulary lacks one of them.
    pub fn text(&self, ids: &[u32]) -> Result<Option<String>, EmbedError> {
        if ids.iter().any(|id| self.inner.id_to_token(*id).is_none()) {
            return Ok(None);
        }
        self.inner.decode(ids, true).map(Some).map_err(failed)
    }

    /// The first tokens of `text`, `max` of them at most, without framing.
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

    /// Two contents as one framed pair.
    pub fn pair(&self, first: Encoding, second: Encoding) -> Result<Encoding, EmbedError> {
        self.inner.post_process(first, Some(second), true).map_err(failed)
    }

    /// Tokens of one passage, or of one pair, at most, framing included.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Byte ranges of the tokens of all of `text`, without framing.
    pub fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, EmbedError> {
        self.offsets_where(text, |_| true)
    }

    /// Byte ranges of the words of `text` that the vocabulary does not hold.
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

/// End of the first piece of `text`: before the last white space within [`PIECE_BYTES`], else
/// behind the last character there. White space is no part of a token, or begins one, so cutting
/// there changes nothing.
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
