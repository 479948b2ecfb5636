//! A batch in the device's form: concatenated tokens, and the first token of each passage.

use bytemuck::{Pod, Zeroable};

use crate::cuda::DeviceError;
use crate::cuda::encoder::TOKENS_MAX;

/// Queries that one block of attention processes.
pub(super) const TILE: usize = 64;

/// A token: `Words2` of kernels/embed_norm.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Token {
    id: u32,
    position: u32,
}

/// The work of one block of attention: `QueryTile` of kernels/embed_attention.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct QueryTile {
    start: u32,
    length: u32,
    first: u32,
    unused: u32,
}

/// Packed passages; every id and position is within the model's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    tokens: Vec<Token>,
    starts: Vec<u32>,
    tiles: Vec<QueryTile>,
    vocabulary: usize,
    window: usize,
}

impl Packed {
    /// Packs the token ids of passages, for a model with a vocabulary of `vocabulary` tokens and
    /// passages of at most `window` tokens.
    ///
    /// # Errors
    /// [`DeviceError::Shape`] for a passage that is empty or too long, an id outside the
    /// vocabulary, no passages at all, or more than [`TOKENS_MAX`] tokens.
    pub fn new(batch: &[&[u32]], vocabulary: usize, window: usize) -> Result<Self, DeviceError> {
        let refused = |rule| DeviceError::Shape { kernel: "embed_gather", rule };
        let check = |holds: bool, rule| holds.then_some(()).ok_or_else(|| refused(rule));
        let count = batch.iter().map(|ids| ids.len()).sum();
        check((1..=TOKENS_MAX).contains(&count), "1 to 1048576 tokens")?;
        let mut packed = Self {
            tokens: Vec::with_capacity(count),
            starts: Vec::with_capacity(batch.len() + 1),
            tiles: Vec::with_capacity(batch.len() + count / TILE),
            vocabulary,
            window,
        };
        for ids in batch {
            check((1..=window).contains(&ids.len()), "a passage within the window")?;
            check(ids.iter().all(|id| (*id as usize) < vocabulary), "ids of the vocabulary")?;
            let (start, length) = (packed.tokens.len() as u32, ids.len() as u32);
            packed.starts.push(start);
            let tokens = ids.iter().zip(0..).map(|(id, position)| Token { id: *id, position });
            packed.tokens.extend(tokens);
            let tiles = (0..length).step_by(TILE);
            packed.tiles.extend(tiles.map(|first| QueryTile { start, length, first, unused: 0 }));
        }
        packed.starts.push(count as u32);
        Ok(packed)
    }

    /// Returns all tokens, at least one.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Returns the first token of each passage, and the end of the last.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns the work of attention, per head.
    pub fn tiles(&self) -> &[QueryTile] {
        &self.tiles
    }

    /// Returns the number of passages, at least one.
    pub fn passages(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the size of the vocabulary.
    pub(super) fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Returns the number of positions.
    pub(super) fn window(&self) -> usize {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_lie_one_behind_the_other() {
        let long = [5; 130];
        let packed = Packed::new(&[&[3, 1], &long, &[9]], 10, 130).unwrap();
        assert_eq!(packed.starts(), [0, 2, 132, 133]);
        assert_eq!((packed.tokens().len(), packed.passages()), (133, 3));
        assert_eq!(packed.tokens()[131], Token { id: 5, position: 129 });
        assert_eq!(packed.tokens()[132], Token { id: 9, position: 0 });
        let firsts: Vec<_> = packed.tiles().iter().map(|tile| (tile.start, tile.first)).collect();
        assert_eq!(firsts, [(0, 0), (2, 0), (2, 64), (2, 128), (132, 0)]);
    }

    #[test]
    fn what_the_tables_lack_is_refused() {
        let bad: [&[&[u32]]; 4] = [&[], &[&[1], &[]], &[&[1], &[10]], &[&[1; 4]]];
        for batch in bad {
            assert!(Packed::new(batch, 10, 3).is_err(), "{batch:?}");
        }
    }
}
