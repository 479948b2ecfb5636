//! Learned sparse vectors of rows: for each term of a model's vocabulary, the rows whose text the
//! term represents, with its weight in each, called impact.
//!
//! ```text
//! little-endian; t terms, b blocks, p postings
//! 0     model, 32 bytes: its fingerprint
//! 32    u32 rows, u32 t, u32 b, u32 p
//! 48    u32 term[t]            ascending
//!       u32 first[t + 1]       first block of a term; the last is b
//!       b x { u32 first row, u32 first posting, u16 last row - first row,
//!             u8 greatest impact, u8 postings - 1 }
//!       of each block: u16 row - first row, ascending, of each posting; then u8 impact of each
//! ```
//! A block has at most 128 postings, of rows less than 65,536 apart. An impact is a weight in steps
//! of 1/64, rounded and at most 255: 3.98, which log(1 + x) reaches at x = 53. Steps are the same
//! in all segments, so a row's score does not depend on its segment, and merging copies impacts. A
//! posting takes 3 bytes, a block 12, a term 8.
//!
//! A reader must reject a different number of rows, inconsistent lengths, and terms, blocks or
//! their postings that are out of order. Rows and impacts inside blocks are not checked up front.
//!
//! - `write`: new rows, and merging; `impact_postings`: the postings of one term

mod write;

use std::sync::Arc;

use roaring::RoaringBitmap;
use tantivy::directory::OwnedBytes;

use crate::impact_postings::{Block, ENTRY_BYTES, Impacts, POSTING_BYTES, STEP, word};
use crate::mask::RowMask;
use crate::postings::Group;
use crate::score::{self, Worth};
use crate::top::{self, ScoreThreshold};
use crate::{BundleBytes, RowScores, TextError};
pub use write::{ImpactMerge, write_impacts};

/// The fingerprint (SHA-256) of a sparse model.
pub type SparseModelId = [u8; 32];

const HEADER_BYTES: usize = 48;

/// The impacts of a segment's rows, read in place.
#[derive(Debug, Clone)]
pub struct ImpactIndex {
    bytes: Arc<dyn BundleBytes>,
    model: SparseModelId,
    rows: u32,
    terms: OwnedBytes,
    firsts: OwnedBytes,
    entries: OwnedBytes,
    /// Offset of the first posting.
    postings_at: usize,
}

impl ImpactIndex {
    /// Reads and checks the tables; postings are read on demand.
    ///
    /// # Errors
    /// [`TextError::Damaged`] with the violated rule.
    pub fn open(bytes: Arc<dyn BundleBytes>, rows: u32) -> Result<Self, TextError> {
        let damaged = |problem: &str| TextError::damaged(format!("impacts: {problem}"));
        if bytes.byte_count() < HEADER_BYTES {
            return Err(damaged("shorter than their header"));
        }
        let header = bytes.read(0..HEADER_BYTES).map_err(TextError::damaged)?;
        let [own_rows, terms, blocks, postings] = [0, 1, 2, 3].map(|at| word(&header, 8 + at));
        if own_rows != rows {
            return Err(damaged("they are of another number of rows"));
        }
        let (terms, blocks) = (terms as usize, blocks as usize);
        let terms_at = HEADER_BYTES;
        let firsts_at = terms_at + 4 * terms;
        let entries_at = firsts_at + 4 * (terms + 1);
        let postings_at = entries_at + ENTRY_BYTES * blocks;
        if bytes.byte_count() != postings_at + POSTING_BYTES * postings as usize {
            return Err(damaged("their length does not fit their tables"));
        }
        let part = |range| bytes.read(range).map_err(TextError::damaged);
        let index = Self {
            terms: part(terms_at..firsts_at)?,
            firsts: part(firsts_at..entries_at)?,
            entries: part(entries_at..postings_at)?,
            model: header[..32].try_into().expect("a header holds it"),
            rows,
            postings_at,
            bytes,
        };
        match index.is_in_order(terms, postings) {
            true => Ok(index),
            false => Err(damaged("their tables are out of order")),
        }
    }

    fn is_in_order(&self, terms: usize, postings: u32) -> bool {
        let ascends = (1..terms).all(|at| word(&self.terms, at - 1) < word(&self.terms, at));
        let firsts = || (0..=terms).map(|at| word(&self.firsts, at) as usize);
        let has_blocks = firsts().is_sorted_by(|a, b| a < b)
            && firsts().next() == Some(0)
            && firsts().next_back() == Some(self.entries.len() / ENTRY_BYTES);
        let mut next = 0_u64;
        let follows = self.entries.chunks_exact(ENTRY_BYTES).all(|entry| {
            let block = Block::of(entry);
            let is_next = u64::from(block.first_posting) == next && block.last_row() < self.rows;
            next += block.postings as u64;
            is_next
        });
        ascends && has_blocks && follows && next == u64::from(postings)
    }

    /// The model that produced the impacts.
    pub fn model(&self) -> &SparseModelId {
        &self.model
    }

    /// Number of rows, including those without impacts.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Returns the postings of the term at index `at`.
    fn impacts_at(&self, at: usize) -> Result<Impacts, TextError> {
        let [from, to] = [at, at + 1].map(|at| word(&self.firsts, at) as usize * ENTRY_BYTES);
        let entries = self.entries.slice(from..to);
        let first = Block::of(&entries[..ENTRY_BYTES]);
        let last = Block::of(&entries[entries.len() - ENTRY_BYTES..]);
        let byte = |posting: usize| self.postings_at + posting * POSTING_BYTES;
        let end = last.first_posting as usize + last.postings;
        let range = byte(first.first_posting as usize)..byte(end);
        let postings = self.bytes.read(range).map_err(TextError::damaged)?;
        Ok(Impacts::new(entries, postings, self.rows))
    }

    /// Returns the query terms that occur, in ascending order of their ids, each with its postings.
    /// The fixed order gives a row the same sum in any segment.
    fn scored(&self, query: &[(u32, f32)]) -> Result<Vec<(Group, Worth<'_>)>, TextError> {
        let mut query: Vec<(u32, f32)> =
            query.iter().copied().filter(|(_, weight)| *weight > 0.0).collect();
        query.sort_unstable_by_key(|(term, _)| *term);
        let mut scored = Vec::with_capacity(query.len());
        for (term, weight) in query {
            if let Some(at) = self.position(term) {
                let group = Group::Impacts(Box::new(self.impacts_at(at)?));
                scored.push((group, Worth::of_impacts(weight)));
            }
        }
        Ok(scored)
    }

    fn position(&self, term: u32) -> Option<usize> {
        let (mut from, mut to) = (0, self.terms.len() / 4);
        while from < to {
            let middle = usize::midpoint(from, to);
            match word(&self.terms, middle).cmp(&term) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// Returns the rows of `among` (`None`: all rows) that may be among the best over all segments
    /// that share the threshold, with the scores of [`Self::score`]. Contains every row at or above
    /// the common threshold, and few others. `query` is a list of terms and weights.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn best(
        &self,
        query: &[(u32, f32)],
        among: Option<&RoaringBitmap>,
        threshold: &ScoreThreshold,
    ) -> Result<RowScores, TextError> {
        let mask = RowMask::new(self.rows, among);
        if mask.count() == 0 {
            return Ok(RowScores::default());
        }
        Ok(top::best_of(self.scored(query)?, &mask, threshold, 0))
    }

    /// Scores the rows of `among` (`None`: all rows) that have a term of the query: the sum of
    /// query weight times row weight.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read.
    pub fn score(
        &self,
        query: &[(u32, f32)],
        among: Option<&RoaringBitmap>,
    ) -> Result<RowScores, TextError> {
        let mask = RowMask::new(self.rows, among);
        if mask.count() == 0 {
            return Ok(RowScores::default());
        }
        Ok(score::all_of(self.scored(query)?, &mask, 0))
    }
}

/// Quantises a weight; impacts of 0 are omitted.
fn impact(weight: f32) -> u8 {
    (weight / STEP).round() as u8
}

#[cfg(test)]
mod tests;
