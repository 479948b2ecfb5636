//! The end of SQLite's write-ahead log, as far as it is committed.
//!
//! ```text
//! header, 32 bytes    magic 4 | version 4 | page size 4 | sequence 4 | salts 8 | checksums 8
//! frames              page 4 | pages of the file after a commit, else 0; 4 | salts 8 |
//!                     checksums 8 | the page
//! ```
//! Numbers are big-endian (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>). A lap
//! ends when the header gets other salts: whatever follows with the old ones is left over.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::entry::Frames;

const MAGIC: u32 = 0x377F_0682;
/// Bytes of the header of a lap.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes before the page of a frame.
pub(super) const FRAME_HEADER_BYTES: usize = 24;
/// Bytes of a page, a power of two.
const PAGE_BYTES: RangeInclusive<u32> = 512..=65536;
const FIRST_FRAME: u64 = HEADER_BYTES as u64;

/// The header of a lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    page_bytes: u32,
    salts: [u8; 8],
}

impl Header {
    /// None where the file has no header (yet).
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        if !is_read(file.read_exact_at(&mut bytes, 0))? {
            return Ok(None);
        }
        let foreign = || io::Error::new(ErrorKind::InvalidData, "it is not a write-ahead log");
        Self::parse(&bytes).ok_or_else(foreign).map(Some)
    }

    /// None where these are bytes of something else.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let salts = bytes[16..24].try_into().expect("eight bytes");
        let header = Self { page_bytes: number(&bytes[8..12]), salts };
        let has_pages =
            header.page_bytes.is_power_of_two() && PAGE_BYTES.contains(&header.page_bytes);
        // The last bit says in which order checksums take their bytes.
        (number(&bytes[..4]) & !1 == MAGIC && has_pages).then_some(header)
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(self) -> usize {
        self.page_bytes as usize
    }

    fn frame_bytes(self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes)
    }

    /// Offset behind the last commit.
    fn committed_end(self, file: &File) -> io::Result<u64> {
        let (mut at, mut end) = (FIRST_FRAME, FIRST_FRAME);
        let mut frame = [0; FRAME_HEADER_BYTES];
        while is_read(file.read_exact_at(&mut frame, at))? && frame[8..16] == self.salts {
            at += self.frame_bytes();
            if number(&frame[4..8]) != 0 {
                end = at;
            }
        }
        Ok(end)
    }
}

/// A number of four bytes.
pub(super) fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Whether there were as many bytes as wanted.
fn is_read(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Number of frames up to the last commit of the write-ahead log at `path`.
pub(super) fn committed_frames(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let Some(header) = Header::read(&file)? else { return Ok(0) };
    let end = header.committed_end(&file)?;
    Ok((end - FIRST_FRAME) / header.frame_bytes())
}

/// Committed bytes of the write-ahead log.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) place: Frames,
    pub(super) bytes: Vec<u8>,
}

/// Reads the write-ahead log of a catalog from its beginning to its end, lap by lap. A lap must
/// not begin before the one before it was read to its end: only a checkpoint makes that possible.
#[derive(Debug)]
pub(super) struct WalTail {
    path: PathBuf,
    file: Option<File>,
    lap: u64,
    salts: Option<[u8; 8]>,
    /// Offset of the next byte to read.
    offset: u64,
    /// The end of the last commit.
    committed: u64,
    piece_bytes: u64,
}

impl WalTail {
    /// The tail of the empty write-ahead log of the file at `database`, after lap `lap`.
    pub(super) fn new(database: &Path, lap: u64, piece_bytes: u64) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        let (file, salts) = (None, None);
        Self { path: path.into(), file, lap, salts, offset: 0, committed: 0, piece_bytes }
    }

    /// Bytes read of the present lap.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next committed bytes, whole frames; each is given once. `committed` is the number of
    /// frames up to the last commit, which the file does not tell: behind it may be whole commits
    /// that SQLite has taken back.
    pub(super) fn next(&mut self, committed: u64) -> io::Result<Option<Piece>> {
        let file = match &self.file {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => self.file.insert(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let Some(header) = Header::read(file)? else { return Ok(None) };
        if self.salts != Some(header.salts) {
            (self.salts, self.offset) = (Some(header.salts), 0);
        }
        let (start, frame) = (self.offset.max(FIRST_FRAME), header.frame_bytes());
        self.committed = FIRST_FRAME + committed * frame;
        if self.committed <= start {
            return Ok(None);
        }
        let frames = ((self.committed - start) / frame).min((self.piece_bytes / frame).max(1));
        let bytes = start + frames * frame - self.offset;
        self.lap += u64::from(self.offset == 0);
        let place = Frames { lap: self.lap, offset: self.offset, bytes };
        let mut piece = vec![0; bytes as usize];
        file.read_exact_at(&mut piece, self.offset)?;
        self.offset += bytes;
        Ok(Some(Piece { place, bytes: piece }))
    }

    /// Committed bytes that were not read yet.
    pub(super) fn waiting(&self) -> u64 {
        self.committed.saturating_sub(self.offset)
    }
}
