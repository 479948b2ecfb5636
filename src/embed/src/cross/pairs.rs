//! Encodes two texts as the token ids of one pair, with the position of the second.
//!
//! The queue carries lists of ids. The list of a pair starts with the number of tokens of the first
//! token type; all after them are of the second. It is therefore one element longer than the pair.

use tokenizers::Encoding;

use crate::EmbedError;
use crate::tokens::Tokeniser;

/// The tokenizer of a model that reads pairs.
#[derive(Debug)]
pub(super) struct Pairs {
    tokeniser: Tokeniser,
    /// Framing tokens of a pair.
    frame: usize,
}

impl Pairs {
    /// Determines how `tokeniser` frames pairs for a model with `token_types` token types.
    ///
    /// # Errors
    /// [`EmbedError::Malformed`] if it does not frame pairs, or if the window is too small.
    pub fn new(tokeniser: Tokeniser, token_types: usize) -> Result<Self, EmbedError> {
        let (first, second) = (tokeniser.content("", 1)?, tokeniser.content("", 1)?);
        let framed = tokeniser.pair(first, second)?;
        let (frame, window) = (framed.len(), tokeniser.window());
        let types = framed.get_type_ids();
        // Two framing tokens surround the first text, or one follows it; one follows the second. A
        // model with one token type needs no types, but a larger frame for pairs than for single
        // texts.
        let is_told = match token_types {
            1 => frame > tokeniser.frame(),
            _ => types.first() == Some(&0) && types.last() == Some(&1),
        };
        if frame < 2 || frame + 2 > window || !is_told {
            let problem = format!("no pairs: frame {types:?} in a window of {window}");
            return Err(EmbedError::Malformed { file: "tokenizer.json".to_owned(), problem });
        }
        Ok(Self { tokeniser, frame })
    }

    /// Tokenises a query, truncated to half of a pair so that the other half remains for the
    /// passage.
    pub fn query(&self, text: &str) -> Result<Encoding, EmbedError> {
        self.tokeniser.content(text, self.content_max() / 2)
    }

    /// Returns the list of a pair, with the passage truncated to the window.
    pub fn ids(&self, query: &Encoding, passage: &str) -> Result<Vec<u32>, EmbedError> {
        let passage = self.tokeniser.content(passage, self.content_max() - query.len())?;
        let pair = self.tokeniser.pair(query.clone(), passage)?;
        let first = pair.get_type_ids().iter().take_while(|kind| **kind == 0).count();
        let mut list = Vec::with_capacity(1 + pair.len());
        list.push(first as u32);
        list.extend_from_slice(pair.get_ids());
        Ok(list)
    }

    /// Returns the maximum number of tokens of both texts together.
    fn content_max(&self) -> usize {
        self.tokeniser.window() - self.frame
    }
}

/// Splits a list into the position of the second token type and the ids of the pair.
pub(super) fn split(list: &[u32]) -> (usize, &[u32]) {
    list.split_first().map_or((0, list), |(first, ids)| (*first as usize, ids))
}
