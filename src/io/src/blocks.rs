//! Files of checksummed blocks: no byte is used before its block has been verified.
//!
//! Blocks are verified one at a time, when first needed, from a buffer filled with `pread`, where a
//! bad sector is an error rather than a signal. The data itself is then read in place from the
//! mapping.
//!
//! ```text
//! byte      0            65536         131072            data_len
//!           | block 0    | block 1     | block 2 (short) | not covered: table and footer
//!           | xxh3[0]    | xxh3[1]     | xxh3[2]         | of the format that owns the file
//! ```
//! The format that owns the file stores the table of checksums, which must be covered by a hash of
//! its own. xxh3-64 detects damage, not forgery: accidental damage goes unnoticed with a
//! probability of 2^-64. Anyone who can write to the data directory is trusted.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::{IoError, MappedFile};
use lodestone_types::ErrorKind;

/// Bytes per block; the last block of a file may be shorter.
pub const BLOCK_BYTES: usize = 64 << 10;

/// Maximum number of blocks read at once.
const BLOCKS_AT_ONCE: usize = 16;

/// Checksums a run of bytes (xxh3-64, seed 0); used for headers and footers too.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// Checksums the blocks of `data`, in order; empty for empty data.
pub fn checksums(data: &[u8]) -> Vec<u64> {
    data.chunks(BLOCK_BYTES).map(xxh3_64).collect()
}

/// A writer that forwards everything and computes the checksum of each block.
pub struct BlockHasher<W> {
    inner: W,
    block: Xxh3,
    written: u64,
    checksums: Vec<u64>,
}

impl<W: Write> BlockHasher<W> {
    /// Creates a writer at byte 0 of the file.
    pub fn new(inner: W) -> Self {
        Self { inner, block: Xxh3::new(), written: 0, checksums: Vec::new() }
    }

    /// Bytes written so far, that is, the offset of the next byte.
    pub fn position(&self) -> u64 {
        self.written
    }

    /// Pads with zeros until the position is a multiple of `alignment`; returns the position.
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

    /// Completes the last block; returns the inner writer, the bytes written and the checksums.
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

/// The checksummed data of a mapped file, shared by all its readers.
#[derive(Debug)]
pub struct BlockFile {
    mapped: MappedFile,
    data_len: usize,
    checksums: Box<[u64]>,
    /// One bit per block, set once the block has been verified.
    verified: Box<[AtomicU64]>,
    /// Bytes read for verification.
    read_bytes: AtomicU64,
    /// The first damage found.
    damage: OnceLock<String>,
}

impl BlockFile {
    /// Opens the blocks in the first `data_len` bytes of `mapped`, verifying nothing yet.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if the file is shorter than that or the table has the wrong length.
    pub fn open(mapped: MappedFile, data_len: usize, checksums: Vec<u64>) -> Result<Self, IoError> {
        let blocks = data_len.div_ceil(BLOCK_BYTES);
        let problem = if data_len > mapped.len() {
            format!("{data_len} bytes of data in a file of {} bytes", mapped.len())
        } else if checksums.len() != blocks {
            format!("{} checksums for {blocks} blocks", checksums.len())
        } else {
            return Ok(Self {
                mapped,
                data_len,
                checksums: checksums.into(),
                verified: (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
                read_bytes: AtomicU64::new(0),
                damage: OnceLock::new(),
            });
        };
        Err(IoError::CorruptFile { path: mapped.path().to_path_buf(), problem })
    }

    /// The underlying mapped file.
    pub fn mapped(&self) -> &MappedFile {
        &self.mapped
    }

    /// Bytes read for verification so far, including scrubs.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Verifies the blocks that `range` touches, each once in the lifetime of this value. For a
    /// block that has already been verified this costs one bit test.
    ///
    /// # Errors
    /// [`IoError::CorruptBlock`] for the first damaged block, other errors for a block that cannot
    /// be read, and [`IoError::CorruptFile`] for a range outside the data, since ranges come from
    /// files.
    #[inline]
    pub fn verify(&self, range: Range<usize>) -> Result<(), IoError> {
        if self.is_verified(&range) { Ok(()) } else { self.verify_unseen(range) }
    }

    /// Whether all blocks that `range` touches have been verified.
    #[inline]
    pub fn is_verified(&self, range: &Range<usize>) -> bool {
        range.start <= range.end
            && range.end <= self.data_len
            && blocks_of(range).all(|block| self.has_verified(block))
    }

    /// Verifies `range` and returns its bytes without copying.
    ///
    /// # Errors
    /// As [`Self::verify`].
    pub fn verified(&self, range: Range<usize>) -> Result<Bytes, IoError> {
        self.verify(range.clone())?;
        Ok(self.mapped.bytes(range))
    }

    /// Returns the bytes of `range` unverified and without copying. The caller must call
    /// [`Self::verify`] on each part before reading it.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] for a range outside the data.
    pub fn unverified(&self, range: Range<usize>) -> Result<Bytes, IoError> {
        self.check_range(&range)?;
        Ok(self.mapped.bytes(range))
    }

    /// Checks that everything read so far was intact. To be called before passing on what was read:
    /// a page may become unreadable after its block was verified, and readers that could not return
    /// an error may have carried on over damage.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`], permanently, once any damage to the file was found.
    pub fn check(&self) -> Result<(), IoError> {
        let corrupt = |problem: &str| {
            let (path, problem) = (self.mapped.path().to_path_buf(), problem.to_owned());
            Err(IoError::CorruptFile { path, problem })
        };
        match self.damage.get() {
            Some(problem) => corrupt(problem),
            None if self.mapped.has_faulted() => corrupt("part of it could not be read"),
            None if !self.mapped.is_whole() => corrupt("it is shorter than when it was opened"),
            None => Ok(()),
        }
    }

    /// Whether the bytes of `range` currently in the mapping match their checksums.
    pub fn is_intact(&self, range: Range<usize>) -> bool {
        let matches = |block| xxh3_64(&self.mapped[self.bytes_of(block)]) == self.checksums[block];
        range.end <= self.data_len && blocks_of(&range).all(matches)
    }

    /// Scrubs the file: reads every block again, verified or not.
    ///
    /// # Errors
    /// Those of [`Self::verify`] and [`Self::check`].
    pub fn verify_all(&self) -> Result<(), IoError> {
        self.verify_slowly(&mut |_| true).map(|_| ())
    }

    /// Like [`Self::verify_all`], but in pieces: `go_on` receives the size of each piece in bytes
    /// and stops the scrub by returning false. Returns whether every block was read.
    ///
    /// # Errors
    /// Those of [`Self::verify_all`].
    pub fn verify_slowly(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Result<bool, IoError> {
        let mut buffer = Vec::new();
        for first in (0..self.checksums.len()).step_by(BLOCKS_AT_ONCE) {
            let last = self.checksums.len().min(first + BLOCKS_AT_ONCE);
            self.verify_blocks(first..last, &mut buffer)?;
            if !go_on(buffer.len() as u64) {
                return Ok(false);
            }
        }
        self.check().map(|()| true)
    }

    /// Marks the file as damaged, for damage found outside of its blocks.
    pub fn condemn(&self, problem: &str) {
        self.damage.get_or_init(|| problem.to_owned());
    }

    fn check_range(&self, range: &Range<usize>) -> Result<(), IoError> {
        if range.start <= range.end && range.end <= self.data_len {
            return Ok(());
        }
        let problem = format!("range {range:?} lies outside of {} bytes", self.data_len);
        Err(IoError::CorruptFile { path: self.mapped.path().into(), problem })
    }

    // Relaxed is enough: the bit is about bytes that never change and does not publish them.
    #[inline]
    fn has_verified(&self, block: usize) -> bool {
        self.verified[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    fn bytes_of(&self, block: usize) -> Range<usize> {
        let start = block * BLOCK_BYTES;
        start..self.data_len.min(start + BLOCK_BYTES)
    }

    #[cold]
    fn verify_unseen(&self, range: Range<usize>) -> Result<(), IoError> {
        self.check_range(&range)?;
        self.check()?;
        let mut unseen = blocks_of(&range).filter(|block| !self.has_verified(*block)).peekable();
        let mut buffer = Vec::new();
        while let Some(first) = unseen.next() {
            let mut end = first + 1;
            while end - first < BLOCKS_AT_ONCE && unseen.next_if_eq(&end).is_some() {
                end += 1;
            }
            self.verify_blocks(first..end, &mut buffer)?;
        }
        Ok(())
    }

    /// Reads consecutive blocks and compares each with its checksum.
    fn verify_blocks(&self, blocks: Range<usize>, buffer: &mut Vec<u8>) -> Result<(), IoError> {
        let bytes = self.bytes_of(blocks.start).start..self.bytes_of(blocks.end - 1).end;
        buffer.resize(bytes.len(), 0);
        let found = self.mapped.read_at(bytes.start, buffer).and_then(|()| {
            self.read_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            blocks.zip(buffer.chunks(BLOCK_BYTES)).try_for_each(|(block, bytes)| {
                let (found, expected) = (xxh3_64(bytes), self.checksums[block]);
                if found != expected {
                    let path = self.mapped.path().to_path_buf();
                    return Err(IoError::CorruptBlock { path, block, expected, found });
                }
                self.verified[block / 64].fetch_or(1 << (block % 64), Ordering::Relaxed);
                Ok(())
            })
        });
        if let Err(error) = &found
            && error.kind() == ErrorKind::Corrupt
        {
            self.damage.get_or_init(|| error.to_string());
        }
        found
    }
}

/// The indexes of the blocks that a range touches; none for an empty range.
#[inline]
fn blocks_of(range: &Range<usize>) -> Range<usize> {
    if range.is_empty() { 0..0 } else { range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES) }
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

    /// A writer that accepts at most 1000 bytes at a time, as a pipe might.
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
            let open = || open(&damaged, data.len(), sums.clone()).unwrap();
            let bad = flipped / BLOCK_BYTES;
            let file = open();
            for block in (0..3).filter(|block| *block != bad) {
                let start = block * BLOCK_BYTES;
                file.verified(start..start + 10).unwrap();
            }
            file.check().unwrap();
            let whole = file.verified(0..data.len()).unwrap_err();
            assert!(matches!(whole, IoError::CorruptBlock { block, .. } if block == bad));
            assert!(file.check().unwrap_err().to_string().contains("block"), "it is remembered");
            assert!(file.verified(bad * BLOCK_BYTES..bad * BLOCK_BYTES + 1).is_err());
            assert!(open().verify_all().is_err());
            assert!(!file.is_intact(0..data.len()));
            let good = (bad + 1) % 3 * BLOCK_BYTES;
            assert!(file.is_intact(good..good + 1));
        }
    }

    /// Goal: everything that is read is verified exactly once, and nothing else is.
    #[test]
    fn as_many_bytes_are_verified_as_blocks_are_touched() {
        let data = pattern(40 * BLOCK_BYTES);
        let file = open(&data, data.len(), checksums(&data)).unwrap();
        let mut blocks = 0;
        for (range, fresh) in [
            (0..0, 0),
            (5..6, 1),
            (0..BLOCK_BYTES, 0),
            (BLOCK_BYTES - 1..BLOCK_BYTES + 1, 1),
            (10 * BLOCK_BYTES..30 * BLOCK_BYTES, 20),
            (9 * BLOCK_BYTES..31 * BLOCK_BYTES, 2),
            (39 * BLOCK_BYTES + 1..40 * BLOCK_BYTES, 1),
        ] {
            file.verify(range.clone()).unwrap();
            assert!(file.is_verified(&range));
            blocks += fresh;
            assert_eq!(file.read_bytes(), (blocks * BLOCK_BYTES) as u64, "{range:?}");
        }
        assert!(!file.is_verified(&(0..data.len())));
        file.verify(0..data.len()).unwrap();
        assert_eq!(file.read_bytes(), data.len() as u64);
    }

    /// Goal: a file truncated after verification is reported as damaged to those who read it.
    #[test]
    fn a_file_that_is_cut_after_verification_is_damaged() {
        let (data, directory) = (pattern(4 * BLOCK_BYTES), tempfile::tempdir().unwrap());
        let path = directory.path().join("f");
        std::fs::write(&path, &data).unwrap();
        let open = || {
            let mapped = MappedFile::open(&path).unwrap();
            BlockFile::open(mapped, data.len(), checksums(&data)).unwrap()
        };
        let (read, unread) = (open(), open());
        let bytes = read.verified(0..data.len()).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(BLOCK_BYTES as u64).unwrap();
        let error = read.check().unwrap_err();
        assert!(error.to_string().contains("shorter"), "{error}");
        assert_eq!(bytes[3 * BLOCK_BYTES], 0, "the process goes on");
        assert_eq!(read.check().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read.verify_all().unwrap_err().kind(), ErrorKind::Corrupt);
        assert!(read.is_intact(0..1) && !read.is_intact(0..data.len()));
        let error = unread.verify(2 * BLOCK_BYTES..2 * BLOCK_BYTES + 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
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

    /// Goal: a range that a damaged file names is an error, not a panic.
    #[test]
    fn ranges_that_contradict_themselves_are_damage() {
        let data = pattern(100);
        let file = open(&data, data.len(), checksums(&data)).unwrap();
        file.verify_all().unwrap();
        let (start, end) = (9, 3);
        for range in [start..end, 90..101, 101..101] {
            assert!(!file.is_verified(&range), "{range:?}");
            let error = file.verify(range.clone()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let error = file.unverified(range.clone()).unwrap_err();
            assert!(error.to_string().contains(&format!("{range:?}")), "{error}");
        }
        assert!(!file.is_intact(90..101), "no checksum covers it");
        assert_eq!(file.unverified(90..100).unwrap(), &data[90..]);
        file.check().unwrap();
    }

    #[test]
    fn what_is_flushed_reaches_the_writer_beneath() {
        let mut hasher = BlockHasher::new(io::BufWriter::new(Vec::new()));
        hasher.write_all(b"abc").unwrap();
        assert!(hasher.inner.get_ref().is_empty(), "it is held back");
        hasher.flush().unwrap();
        assert_eq!(hasher.inner.get_ref(), b"abc");
    }
}
