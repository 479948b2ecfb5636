//! Chunk texts in compressed blocks of whole rows, so that reading one hit decompresses one block.
//!
//! ```text
//! u64 block_count
//! u64 text_start[n + 1]              start of a row's text in the uncompressed stream
//! (u64, u64) block[block_count + 1]  uncompressed start, compressed start after this table
//! zstd frames
//! ```
//! A reader rejects positions that do not ascend or are out of range, and frames that do not
//! decompress to exactly their length.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};

use crate::segment::section::LazySection;
use crate::segment::{Segment, SegmentError};
use lodestone_types::RowId;

/// Uncompressed bytes at which a block is closed: small enough that decompressing it for one hit
/// costs tens of microseconds, large enough for zstd to find repetition.
const BLOCK_BYTES: usize = 16 << 10;
/// The default level of zstd.
const LEVEL: i32 = 3;

thread_local! {
    /// One per thread, because creating one costs as much as decompressing a block: it allocates
    /// and clears 160 KB.
    static UNPACKER: RefCell<zstd::bulk::Decompressor<'static>> =
        RefCell::new(zstd::bulk::Decompressor::new().expect("memory for one decoder"));
}

/// Compresses texts in row order into `frames`. Returns the section's bytes that precede the
/// frames.
///
/// # Errors
/// Errors of `frames`; zstd failing to allocate.
pub fn encode<'a>(
    texts: impl Iterator<Item = Cow<'a, str>>,
    frames: &mut dyn Write,
) -> io::Result<Vec<u8>> {
    let mut starts = vec![0u64];
    let mut blocks = vec![(0u64, 0u64)];
    let mut packed = 0_u64;
    let mut open = Vec::with_capacity(BLOCK_BYTES * 2);
    let mut unpacked = 0u64;
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut close = |open: &mut Vec<u8>, unpacked: u64| -> io::Result<()> {
        let frame = compressor.compress(open)?;
        frames.write_all(&frame)?;
        packed += frame.len() as u64;
        blocks.push((unpacked, packed));
        open.clear();
        Ok(())
    };
    for text in texts {
        open.extend_from_slice(text.as_bytes());
        unpacked += text.len() as u64;
        starts.push(unpacked);
        if open.len() >= BLOCK_BYTES {
            close(&mut open, unpacked)?;
        }
    }
    if !open.is_empty() {
        close(&mut open, unpacked)?;
    }
    let mut bytes = Vec::with_capacity(8 + starts.len() * 8 + blocks.len() * 16);
    bytes.extend((blocks.len() as u64 - 1).to_le_bytes());
    starts.iter().for_each(|start| bytes.extend(start.to_le_bytes()));
    for (unpacked, packed) in blocks {
        bytes.extend(unpacked.to_le_bytes());
        bytes.extend(packed.to_le_bytes());
    }
    Ok(bytes)
}

/// The section, read in place.
#[derive(Debug, Clone)]
pub(super) struct TextStore {
    section: LazySection,
    rows: usize,
    blocks: usize,
}

/// Upper bound on the uncompressed bytes of a block, so that a wrong number is not trusted as a
/// length. A block ends with the text that fills it, and a text is no longer than its source.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;
/// Decompressed blocks that a reader keeps: enough for all texts of a small scope, whose rows are
/// adjacent.
const BLOCKS_KEPT: usize = 4;
const CUT: &str = "the text section is cut";
const UNREADABLE: &str = "a block of the text section is damaged";

impl TextStore {
    /// Checks lengths and the table of blocks. The starts of texts are checked individually, when
    /// they are used.
    ///
    /// # Errors
    /// The broken rule as a phrase.
    pub(super) fn open(section: LazySection, rows: u32) -> Result<Self, &'static str> {
        let rows = rows as usize;
        let count = section.read(0..section.len().min(8)).map_err(|_| UNREADABLE)?;
        let blocks = u64::from_le_bytes(count.try_into().map_err(|_| CUT)?);
        let blocks = usize::try_from(blocks).ok().filter(|blocks| *blocks <= rows).ok_or(CUT)?;
        let store = Self { section, rows, blocks };
        let packed_bytes = store.section.len().checked_sub(store.head_bytes()).ok_or(CUT)?;
        let table = store.table()?;
        let [first, total] = [store.starts(0..1)?[0], store.starts(rows..rows + 1)?[0]];
        let ascends =
            table.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][1] < pair[1][1]);
        if first != 0 || !ascends {
            return Err("positions of the text section do not ascend");
        }
        if table[0] != [0, 0] || table[blocks] != [total, packed_bytes as u64] {
            return Err("the text section does not add up");
        }
        Ok(store)
    }

    fn head_bytes(&self) -> usize {
        8 * (1 + self.rows + 1 + 2 * (self.blocks + 1))
    }

    /// Starts of the texts of a range of rows.
    fn starts(&self, rows: std::ops::Range<usize>) -> Result<&[u64], &'static str> {
        let bytes = self.section.read(8 * (1 + rows.start)..8 * (1 + rows.end));
        words(bytes.map_err(|_| UNREADABLE)?)
    }

    /// Uncompressed and compressed start of each block, followed by the ends.
    fn table(&self) -> Result<&[[u64; 2]], &'static str> {
        let bytes = self.section.read(8 * (self.rows + 2)..self.head_bytes());
        words(bytes.map_err(|_| UNREADABLE)?)
    }

    /// Reads the text of a row. Its block is taken from `kept`, or decompressed and added there.
    ///
    /// # Errors
    /// A phrase, if the block does not decompress to valid text of its length.
    pub(super) fn text(&self, row: RowId, kept: &mut KeptBlocks) -> Result<String, &'static str> {
        let row = row.0 as usize;
        if row >= self.rows {
            return Err("the text section has no such row");
        }
        let &[from, to] = self.starts(row..row + 2)? else { return Err(CUT) };
        if from == to {
            return Ok(String::new());
        }
        let table = self.table()?;
        let next = table.partition_point(|entry| entry[0] <= from);
        let block = next.checked_sub(1).and_then(|block| table.get(block..block + 2));
        let Some(&[[start, packed_from], [end, packed_to]]) = block else { return Err(CUT) };
        if to < from || to > end || end - start > UNPACKED_BYTES_MAX {
            return Err("a text crosses its block");
        }
        let unpack = || self.unpack(packed_from as usize..packed_to as usize, end - start);
        let unpacked = kept.block(start, unpack)?;
        let text = unpacked.get((from - start) as usize..(to - start) as usize);
        let text = text.ok_or("a text lies outside its block")?;
        String::from_utf8(text.to_vec()).map_err(|_| "a text is not UTF-8")
    }

    fn unpack(&self, range: std::ops::Range<usize>, bytes: u64) -> Result<Vec<u8>, &'static str> {
        let head = self.head_bytes();
        let range = head.saturating_add(range.start)..head.saturating_add(range.end);
        let packed = self.section.read(range).map_err(|_| UNREADABLE)?;
        let unpacked = UNPACKER
            .with_borrow_mut(|unpacker| unpacker.decompress(packed, bytes as usize))
            .map_err(|_| "a text block does not unpack")?;
        if unpacked.len() as u64 != bytes {
            return Err("a text block unpacks to another length");
        }
        Ok(unpacked)
    }
}

/// Reads texts of one segment. The most recent blocks stay decompressed, so that adjacent texts
/// cost one decompression altogether.
#[derive(Debug)]
pub struct TextReader<'a> {
    segment: &'a Segment,
    store: &'a TextStore,
    kept: KeptBlocks,
}

impl<'a> TextReader<'a> {
    pub(super) fn new(segment: &'a Segment, store: &'a TextStore) -> Self {
        Self { segment, store, kept: KeptBlocks::default() }
    }

    /// The chunk's text.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if the block does not decompress.
    pub fn text(&mut self, row: RowId) -> Result<String, SegmentError> {
        let text = self.store.text(row, &mut self.kept);
        let text = text.map_err(|problem| self.segment.damaged(problem))?;
        self.segment.check()?;
        Ok(text)
    }
}

/// The most recently decompressed blocks of a section, newest first, each with the position of its
/// first text in the uncompressed stream.
#[derive(Debug, Default)]
pub(super) struct KeptBlocks(VecDeque<(u64, Vec<u8>)>);

impl KeptBlocks {
    fn block(
        &mut self,
        start: u64,
        unpack: impl FnOnce() -> Result<Vec<u8>, &'static str>,
    ) -> Result<&[u8], &'static str> {
        let known = self.0.iter().position(|(known, _)| *known == start);
        if known.is_none() {
            let unpacked = unpack()?;
            self.0.truncate(BLOCKS_KEPT - 1);
            self.0.push_front((start, unpacked));
        }
        Ok(&self.0[known.unwrap_or(0)].1)
    }
}

fn words<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Result<&[T], &'static str> {
    bytemuck::try_cast_slice(bytes).map_err(|_| "the text section is not aligned")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<u8> {
        let mut frames = Vec::new();
        let head = encode(texts.map(Cow::Borrowed), &mut frames).unwrap();
        [head, frames].concat()
    }

    fn open(bytes: &[u8], rows: u32) -> Result<TextStore, &'static str> {
        TextStore::open(LazySection::of(bytes), rows)
    }

    #[test]
    fn texts_come_back_over_block_borders() {
        let texts: Vec<String> = (0..300).map(|n| format!("text {n} ").repeat(n % 40)).collect();
        let bytes = whole(texts.iter().map(String::as_str));
        let store = open(&bytes, 300).unwrap();
        let rows = (0..300).chain((0..300).rev()).chain((0..300).map(|n| n * 101 % 300));
        let mut kept = KeptBlocks::default();
        for row in rows {
            assert_eq!(store.text(RowId(row), &mut kept).unwrap(), texts[row as usize]);
            assert!(kept.0.len() <= BLOCKS_KEPT);
        }
    }

    #[test]
    fn no_rows_and_empty_texts() {
        let none = whole(std::iter::empty());
        assert!(open(&none, 0).is_ok());
        let empty = whole(["", ""].into_iter());
        let store = open(&empty, 2).unwrap();
        assert_eq!(store.text(RowId(1), &mut KeptBlocks::default()).unwrap(), "");
    }

    /// Goal: each change of one number is refused by its own rule, of the section or of the text.
    #[test]
    fn positions_that_do_not_fit_are_refused() {
        // A count, four starts, two entries in the table of blocks.
        let good = whole(["alpha", "bétá", "gamma"].into_iter());
        let (cut, ascend) = (CUT, "positions of the text section do not ascend");
        let (sum, crosses) = ("the text section does not add up", "a text crosses its block");
        for (changes, rule) in [
            (&[(0_usize, 9_u64)][..], cut),
            (&[(0, u64::MAX)], cut),
            (&[(1, 1)], ascend),
            (&[(7, 0)], ascend),
            (&[(8, 0)], ascend),
            (&[(5, 1)], sum),
            (&[(6, 1)], sum),
            (&[(4, 99)], sum),
            (&[(8, 99)], sum),
            (&[(3, 4)], crosses),
            (&[(3, 99)], crosses),
            (&[(4, 1 << 40), (7, 1 << 40)], crosses),
            (&[(4, 99), (7, 99)], "a text block unpacks to another length"),
            (&[(4, 14), (7, 14)], "a text block does not unpack"),
            (&[(3, 7)], "a text is not UTF-8"),
        ] {
            let mut bad = good.clone();
            for (word, value) in changes {
                bad[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
            }
            let read = open(&bad, 3).and_then(|store| {
                (0..3).try_for_each(|row| {
                    store.text(RowId(row), &mut KeptBlocks::default()).map(|_| ())
                })
            });
            assert_eq!(read, Err(rule), "{changes:?}");
        }
        let store = open(&good, 3).unwrap();
        let beyond = store.text(RowId(3), &mut KeptBlocks::default());
        assert_eq!(beyond, Err("the text section has no such row"));
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let texts = ["alpha", "beta", "gamma"];
        let good = whole(texts.into_iter());
        for cut in 0..good.len() {
            let mut kept = KeptBlocks::default();
            let _ = open(&good[..cut], 3).map(|store| store.text(RowId(0), &mut kept));
        }
        for position in 0..good.len() {
            let mut bad = good.clone();
            bad[position] ^= 0x10;
            if let Ok(store) = open(&bad, 3) {
                let mut kept = KeptBlocks::default();
                for row in 0..3 {
                    let _ = store.text(RowId(row), &mut kept);
                }
            }
        }
    }
}
