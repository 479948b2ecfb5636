//! Text to chunks: pieces that fit the embedding model, overlap, and know where they stand.
//!
//! This module knows neither formats nor models: it sees text, its blocks, and the places where
//! the model's tokens begin. It never rewrites: a chunk is exactly a slice of the text.
//!
//! ```text
//! text, blocks -> breaks: places to cut, by quality
//! text         -> ruler:  start of each model token
//! both         -> cut:    greedy packing, one pass from left to right
//!
//!   | heading . sentence . sentence | sentence . sentence | heading ...
//!   [------------ chunk 0 ---------------]
//!                        [overlap][------- chunk 1 -------]
//!                                                         [- chunk 2: a section has no overlap
//! ```
//!
//! Invariants (property tests in `tests.rs`):
//! - every character that is not white space is in at least one chunk; no chunk is empty;
//! - a chunk begins and ends with a character that is not white space;
//! - a chunk has at most [`ChunkSizes::tokens`] tokens of the text's own tokenisation, where a word
//!   that is spelt letter by letter counts as 4/3, and at most [`CHARS_PER_TOKEN_MAX`] characters
//!   for each of them. Only where one word alone is longer than
//!   that is it cut inside a word, and there a tokenizer may count its pieces differently;
//! - begins and ends ascend; equal input gives equal chunks; the cost is linear in the text.
//!
//! - `breaks`: places to cut, from structure, sentences and lines
//! - `marks`: characters at the end of sentences
//! - `cut`: the packing itself, overlap, characters and offsets
//! - `ruler`: tokens counted between two places
//! - `outline`: headings and header rows that stand over a chunk
//! - `passage`: a chunk with the words of its source, as models read it

mod breaks;
mod cut;
pub mod marks;
mod outline;
mod passage;
mod ruler;
#[cfg(test)]
mod tests;

use std::ops::Range;

use lodestone_types::limits;

pub use cut::chunk;
pub use outline::contexts;
pub use passage::{Surroundings, passage};

/// Characters that a chunk may have for each of its tokens.
///
/// English has about 4.5 characters a token with white space, German and Finnish up to 6. The bound
/// binds only where a tokenizer gives up, such as one unknown token for a megabyte without spaces.
pub const CHARS_PER_TOKEN_MAX: usize = 8;

/// The tokens of a model.
pub trait TokenOffsets {
    /// The tokens of `text` in order, as ranges of bytes, without those that frame a passage.
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>>;
}

/// The size of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSizes {
    /// Tokens of one chunk at most; at least 1.
    pub tokens: usize,
    /// Tokens, about, that a chunk repeats from the one before it; less than half of `tokens`.
    pub overlap: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { tokens: limits::CHUNK_TOKENS, overlap: limits::CHUNK_OVERLAP_TOKENS }
    }
}
