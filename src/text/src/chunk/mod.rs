//! Text to chunks: pieces that fit the embedding model, overlap, and know their position.
//!
//! This module knows neither formats nor models: it sees text, its blocks, and the token offsets of
//! the model. It never rewrites text: a chunk is always an exact slice of it.
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
//! - a chunk starts and ends with a character that is not white space;
//! - a chunk has at most [`ChunkSizes::tokens`] tokens of the text's own tokenisation, where a word
//!   spelt out letter by letter counts as 4/3, and at most [`CHARS_PER_TOKEN_MAX`] characters per
//!   token. A word is cut only if it is longer than that by itself, and then a tokenizer may count
//!   its pieces differently;
//! - starts and ends are ascending; equal input yields equal chunks; cost is linear in the text.
//!
//! - `breaks`: positions to cut, from structure, sentences and lines
//! - `marks`: sentence-ending characters
//! - `cut`: the packing itself, overlap, characters and offsets
//! - `ruler`: token counts between two positions
//! - `outline`: headings and header rows above a chunk
//! - `passage`: a chunk with context from its source, as models read it

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

/// Maximum characters of a chunk per token.
///
/// English has about 4.5 characters per token including white space, German and Finnish up to 6.
/// The limit only matters where a tokenizer gives up, for instance with one unknown token for a
/// megabyte without spaces.
pub const CHARS_PER_TOKEN_MAX: usize = 8;

/// The tokenizer of a model.
pub trait TokenOffsets {
    /// Returns the byte ranges of the tokens of `text`, in order, without special tokens.
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>>;
}

/// Sizes of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkSizes {
    /// Maximum number of tokens of a chunk; at least 1.
    pub tokens: usize,
    /// Approximate number of tokens repeated from the previous chunk; less than half of `tokens`.
    pub overlap: usize,
}

impl Default for ChunkSizes {
    fn default() -> Self {
        Self { tokens: limits::CHUNK_TOKENS, overlap: limits::CHUNK_OVERLAP_TOKENS }
    }
}
