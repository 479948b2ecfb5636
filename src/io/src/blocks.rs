//! Files of checksummed blocks: no byte is used before its block was verified.
//!
//! ```text
//! byte      0            65536         131072            data_len
//!           | block 0    | block 1     | block 2 (short) | not covered: table and footer
//!           | xxh3[0]    | xxh3[1]     | xxh3[2]         | of the format that owns the file
//! ```
//! The table of checksums is kept by the format that owns the file; it must be covered by a hash
//! of its own. xxh3-64 finds damage, not forgery: two blocks that differ by accident collide with
//! a chance of 2^-64. Anyone who can write into the data directory is trusted.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{IoError, MappedFile};

/// Bytes of a block; the last one of a file may be shorter.
pub const BLOCK_BYTES: usize = 64 << 10;

/// The checksum of one run of bytes (xxh3-64, seed 0), for headers and footers too.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The checksums of the blocks of `data`, in order; none for no data.
pub fn checksums(data: &[u8]) -> Vec<u64> {
    data.chunks(BLOCK_BYTES).map(xxh3_64).collect()
}

/// A writer that forwards everything and collects the checksum of each block.
pub struct BlockHasher<W> {
    inner: W,
    block: Xxh3,
    written: u64,
    checksums: Vec<u64>,
}

impl<W: Write> BlockHasher<W> {
    /// Starts at byte 0 of the file.
    pub fn new(inner: W) -> Self {
        Self { inner, block: Xxh3::new(), written: 0, checksums: Vec::new() }
    }

    /// Bytes written so far: the offset of the next one.
    pub fn position(&self) -> u64 {
        self.written
    }

    /// Writes zeros until the position is a multiple of `alignment`; returns the position.
    ///
    /// # Errors
    /// Errors of the inner writer.
    pub fn align(&mut self, alignment: u64) -> io::Result<u64> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut missing = self.written.next_multiple_of(alignment) - self.written;
        while missing > 0 {
            let part = missing.min(ZEROS.len() as u64);
            self.write_all(&ZEROS[..part as usize])?;
            missing -= part;
        }
        Ok(self.written)
    }

    /// Closes the last block; returns the inner writer, the bytes written and the checksums.
    pub fn finish(mut self) -> (W, u64, Vec<u64>) {
        if !self.written.is_multiple_of(BLOCK_BYTES as u64) {
            self.checksums.push(self.block.digest());
        }
        (self.inner, self.written, self.checksums)
    }
}

impl<W: Write> Write for BlockHasher<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let into_block = (self.written % BLOCK_BYTES as u64) as usize;
        let part = &bytes[..bytes.len().min(BLOCK_BYTES - into_block)];
        let taken = self.inner.write(part)?;
        self.block.update(&part[..taken]);
        self.written += taken as u64;
        if into_block + taken == BLOCK_BYTES {
            self.checksums.push(self.block.digest());
            self.block.reset();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The data of a mapped file behind its checksums. Shared by all readers of the file.
#[derive(Debug)]
pub struct BlockFile {
    mapped: MappedFile,
    data_len: usize,
    checksums: Box<[u64]>,
    /// One bit for each block that was found good.
    verified: Box<[AtomicU64]>,
}

impl BlockFile {
    /// Blocks over the first `data_len` bytes of `mapped`. Nothing is verified yet.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if the file is shorter or the table has another length.
    pub fn open(mapped: MappedFile, data_len: usize, checksums: Vec<u64>) -> Result<Self, IoError> {
        let blocks = data_len.div_ceil(BLOCK_BYTES);
        let problem = if data_len > mapped.len() {
            format!("{data_len} bytes of data in a file of {} bytes", mapped.len())
        } else if checksums.len() != blocks {
            format!("{} checksums for {blocks} blocks", checksums.len())
        } else {
            let verified = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            return Ok(Self { mapped, data_len, checksums: checksums.into(), verified });
        };
        Err(IoError::CorruptFile { path: mapped.path().to_path_buf(), problem })
    }

    /// The file beneath.
    pub fn mapped(&self) -> &MappedFile {
        &self.mapped
    }

    /// Bytes of data.
    pub fn data_len(&self) -> usize {
        self.data_len
    }

    /// The bytes of `range`, after each block that they touch was verified; a block is verified
    /// once in the life of this value. No copy.
    ///
    /// # Errors
    /// [`IoError::CorruptBlock`] names the first damaged block; [`IoError::CorruptFile`] for a
    /// range outside the data, because ranges come out of files.
    pub fn verified(&self, range: Range<usize>) -> Result<Bytes, IoError> {
        if range.start > range.end || range.end > self.data_len {
            let problem = format!("range {range:?} lies outside of {} bytes", self.data_len);
            return Err(IoError::CorruptFile { path: self.mapped.path().into(), problem });
        }
        if !range.is_empty() {
            for block in range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) {
                // Relaxed: the bit is about bytes that never change; it does not publish them.
                let is_verified =
                    self.verified[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1;
                if is_verified == 0 {
                    self.verify_block(block)?;
                }
            }
        }
        Ok(self.mapped.bytes(range))
    }

    /// Reads every block again, whether or not it was verified before; the scrub.
    ///
    /// # Errors
    /// [`IoError::CorruptBlock`] names the first damaged block.
    pub fn verify_all(&self) -> Result<(), IoError> {
        for block in 0..self.checksums.len() {
            self.verify_block(block)?;
        }
        Ok(())
    }

    fn verify_block(&self, block: usize) -> Result<(), IoError> {
        let start = block * BLOCK_BYTES;
        let end = self.data_len.min(start + BLOCK_BYTES);
        let found = xxh3_64(&self.mapped[start..end]);
        let expected = self.checksums[block];
        if found != expected {
            let path = self.mapped.path().to_path_buf();
            return Err(IoError::CorruptBlock { path, block, expected, found });
        }
        self.verified[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 251) as u8).collect()
    }

    fn open(contents: &[u8], data_len: usize, sums: Vec<u64>) -> Result<BlockFile, IoError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), contents).unwrap();
        BlockFile::open(MappedFile::open(file.path())?, data_len, sums)
    }

    const LENGTHS: [usize; 7] =
        [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES, 200_001];

    /// A writer that takes at most 1000 bytes at a time, as a pipe might.
    struct Sips(Vec<u8>);

    impl Write for Sips {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(1000);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn streaming_and_whole_checksums_agree_for_any_split() {
        for len in LENGTHS {
            let data = pattern(len);
            for step in [1 + len / 3, 7919, usize::MAX] {
                let mut hasher = BlockHasher::new(Sips(Vec::new()));
                for part in data.chunks(step.min(len.max(1))) {
                    hasher.write_all(part).unwrap();
                }
                let (sink, written, sums) = hasher.finish();
                assert_eq!((sink.0, written as usize), (data.clone(), len));
                assert_eq!(sums, checksums(&data), "length {len} step {step}");
            }
        }
    }

    #[test]
    fn alignment_is_made_of_zeros() {
        let mut hasher = BlockHasher::new(Vec::new());
        assert_eq!(hasher.align(4096).unwrap(), 0);
        hasher.write_all(b"abc").unwrap();
        assert_eq!(hasher.align(8192).unwrap(), 8192);
        assert_eq!(hasher.position(), 8192);
        let (bytes, _, sums) = hasher.finish();
        assert!(bytes[3..].iter().all(|b| *b == 0));
        assert_eq!(sums, checksums(&bytes));
    }

    /// Goal: every flipped bit is found, and only by readers of its block.
    #[test]
    fn damage_is_found_in_its_block_and_nowhere_else() {
        let data = pattern(2 * BLOCK_BYTES + 500);
        let sums = checksums(&data);
        for flipped in [0, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 499] {
            let mut damaged = data.clone();
            damaged[flipped] ^= 1;
            let file = open(&damaged, data.len(), sums.clone()).unwrap();
            for block in 0..3 {
                let start = block * BLOCK_BYTES;
                let read = file.verified(start..start + 10);
                assert_eq!(read.is_err(), block == flipped / BLOCK_BYTES);
            }
            let whole = file.verified(0..data.len()).unwrap_err();
            assert!(matches!(whole, IoError::CorruptBlock { block, .. }
                if block == flipped / BLOCK_BYTES));
            assert!(file.verify_all().is_err());
        }
    }

    #[test]
    fn good_data_is_read_as_written_and_ranges_are_checked() {
        for len in LENGTHS {
            let data = pattern(len);
            let mut contents = data.clone();
            contents.extend_from_slice(b"footer");
            let file = open(&contents, len, checksums(&data)).unwrap();
            assert_eq!(&file.verified(0..len).unwrap()[..], &data[..]);
            assert_eq!(&file.verified(len / 2..len).unwrap()[..], &data[len / 2..]);
            assert!(file.verified(len..len).unwrap().is_empty());
            assert!(file.verified(0..len + 1).is_err(), "the footer is not data");
            file.verify_all().unwrap();
        }
        let data = pattern(10);
        assert!(open(&data, 11, checksums(&data)).is_err());
        assert!(open(&data, 10, vec![]).is_err());
    }

    #[test]
    fn a_verified_block_is_not_read_again_but_a_scrub_reads_all() {
        let data = pattern(BLOCK_BYTES + 1);
        let mut file = open(&data, data.len(), checksums(&data)).unwrap();
        file.verified(0..1).unwrap();
        file.checksums = vec![0, 0].into();
        assert!(file.verified(5..9).is_ok(), "verified once");
        assert!(file.verified(BLOCK_BYTES..data.len()).is_err());
        assert!(file.verify_all().is_err());
    }
}
