//! Postings of one term of a sparse model, read window by window.

use tantivy::TERMINATED;
use tantivy::directory::OwnedBytes;

use crate::mask::{WINDOW_ROWS, Window};

/// Weight of one impact step.
pub(super) const STEP: f32 = 1.0 / 64.0;
/// Bytes of a block entry.
pub(super) const ENTRY_BYTES: usize = 12;
/// Bytes of a posting.
pub(super) const POSTING_BYTES: usize = 3;
/// Maximum postings per block.
pub(super) const BLOCK_POSTINGS: usize = 128;

/// Number of postings of a window per row of its mask above which the rows are looked up one by one
/// instead of scanning the postings.
const SEEK_RATIO: u64 = 32;

/// A decoded block entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub first_row: u32,
    pub first_posting: u32,
    pub reach: u16,
    pub most: u8,
    pub postings: usize,
}

impl Block {
    pub fn of(entry: &[u8]) -> Self {
        let word = |at| word(entry, at);
        Self {
            first_row: word(0),
            first_posting: word(1),
            reach: u16::from_le_bytes([entry[8], entry[9]]),
            most: entry[10],
            postings: usize::from(entry[11]) + 1,
        }
    }

    pub fn last_row(&self) -> u32 {
        self.first_row.saturating_add(u32::from(self.reach))
    }
}

/// Reads the `u32` at index `at` of a table.
pub(super) fn word(table: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(table[4 * at..4 * at + 4].try_into().expect("four bytes"))
}

/// A cursor over the postings of one term.
#[derive(Debug, Clone)]
pub(crate) struct Impacts {
    entries: OwnedBytes,
    postings: OwnedBytes,
    /// The block of the next posting, and the posting's index within it.
    at: (usize, usize),
    /// The first block that may extend into the next window whose bound is requested.
    bound_at: usize,
    most: u8,
    in_window: u64,
}

impl Impacts {
    /// Creates a cursor before the first posting. `entries` are the term's block entries, at least
    /// one.
    pub fn new(entries: OwnedBytes, postings: OwnedBytes, rows: u32) -> Self {
        let count = (postings.len() / POSTING_BYTES) as u64;
        let most = entries.chunks_exact(ENTRY_BYTES).map(|entry| Block::of(entry).most).max();
        Self {
            at: (0, 0),
            bound_at: 0,
            most: most.unwrap_or(0),
            in_window: count * WINDOW_ROWS as u64 / u64::from(rows.max(1)),
            entries,
            postings,
        }
    }

    /// Number of rows that have the term.
    pub fn rows(&self) -> u64 {
        (self.postings.len() / POSTING_BYTES) as u64
    }

    /// Mean number of postings per window.
    pub fn in_window(&self) -> u64 {
        self.in_window
    }

    /// Maximum weight in any row.
    pub fn most(&self) -> f32 {
        f32::from(self.most) * STEP
    }

    fn block(&self, at: usize) -> Option<Block> {
        let entry = self.entries.get(at * ENTRY_BYTES..(at + 1) * ENTRY_BYTES)?;
        Some(Block::of(entry))
    }

    /// The rows of a block, relative to its first row, and their impacts.
    fn postings_of(&self, block: Block) -> (&[[u8; 2]], &[u8]) {
        let first = Block::of(&self.entries).first_posting;
        let from = (block.first_posting - first) as usize * POSTING_BYTES;
        let bytes = &self.postings[from..from + block.postings * POSTING_BYTES];
        let (rows, impacts) = bytes.split_at(2 * block.postings);
        (rows.as_chunks::<2>().0, impacts)
    }

    /// The next row that has the term; [`TERMINATED`] at the end.
    pub fn row(&self) -> u32 {
        let Some(block) = self.block(self.at.0) else { return TERMINATED };
        let (rows, _) = self.postings_of(block);
        block.first_row + u32::from(u16::from_le_bytes(rows[self.at.1]))
    }

    /// Upper bound of the weight in any row of the window. Windows must be requested in ascending
    /// order.
    pub fn bound(&mut self, window: &Window) -> f32 {
        while self.block(self.bound_at).is_some_and(|block| block.last_row() < window.start()) {
            self.bound_at += 1;
        }
        let mut most = 0;
        for at in self.bound_at.. {
            let Some(block) = self.block(at).filter(|block| block.first_row < window.end()) else {
                break;
            };
            most = most.max(block.most);
        }
        f32::from(most) * STEP
    }

    /// Calls `each` with the position in the window and the weight of every row that has the term,
    /// and advances past the window. Reports all matching rows of the window's mask, and possibly
    /// others.
    pub fn each_in(&mut self, window: &Window, mut each: impl FnMut(u32, f32)) {
        if u64::from(window.count()) * SEEK_RATIO < self.in_window {
            window.for_each(|row| {
                if let Some(weight) = self.seek(row) {
                    each(row - window.start(), weight);
                }
            });
            return;
        }
        self.skip_to(window.start());
        while let Some(block) = self.block(self.at.0).filter(|it| it.first_row < window.end()) {
            let (rows, impacts) = self.postings_of(block);
            let from = self.at.1;
            let postings = rows.iter().zip(impacts).enumerate().skip(from);
            let mut stopped = None;
            for (at, (row, impact)) in postings {
                let row = block.first_row + u32::from(u16::from_le_bytes(*row));
                if row >= window.end() {
                    stopped = Some(at);
                    break;
                }
                // For a row before the window, the position wraps around and is out of range.
                each(row.wrapping_sub(window.start()), f32::from(*impact) * STEP);
            }
            if let Some(at) = stopped {
                self.at.1 = at;
                return;
            }
            self.at = (self.at.0 + 1, 0);
        }
    }

    /// Returns the weight of a row; rows must be requested in ascending order.
    fn seek(&mut self, row: u32) -> Option<f32> {
        self.skip_to(row);
        let block = self.block(self.at.0).filter(|block| block.first_row <= row)?;
        let (rows, impacts) = self.postings_of(block);
        let offset = row - block.first_row;
        let before = |it: &[u8; 2]| u32::from(u16::from_le_bytes(*it)) < offset;
        let at = rows.partition_point(before);
        let is_there = u32::from(u16::from_le_bytes(*rows.get(at)?)) == offset;
        let weight = f32::from(impacts[at]) * STEP;
        self.at.1 = at;
        is_there.then_some(weight)
    }

    /// Advances to the first block that extends to `row`.
    fn skip_to(&mut self, row: u32) {
        while self.block(self.at.0).is_some_and(|block| block.last_row() < row) {
            self.at = (self.at.0 + 1, 0);
        }
    }

    /// Calls `each` with every row and its impact, in ascending order.
    pub fn each(&self, mut each: impl FnMut(u32, u8)) {
        for entry in self.entries.chunks_exact(ENTRY_BYTES) {
            let block = Block::of(entry);
            let (rows, impacts) = self.postings_of(block);
            for (row, impact) in rows.iter().zip(impacts) {
                each(block.first_row + u32::from(u16::from_le_bytes(*row)), *impact);
            }
        }
    }
}

const _: () = assert!(BLOCK_POSTINGS <= 1 << 8, "the number in a block is one byte");
