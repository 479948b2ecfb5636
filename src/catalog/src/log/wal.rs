//! The committed tail of SQLite's write-ahead log.
//!
//! ```text
//! header, 32 bytes    magic 4 | version 4 | page size 4 | sequence 4 | salts 8 | checksums 8
//! frames              page 4 | pages of the file after a commit, else 0; 4 | salts 8 |
//!                     checksums 8 | the page
//! ```
//! Numbers are big-endian (<https://www.sqlite.org/fileformat2.html#the_write_ahead_log>). A lap
//! ends when the header gets new salts: anything that follows with the old salts is stale.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::entry::Frames;

const MAGIC: u32 = 0x377F_0682;
/// Bytes of the header of a lap.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes of a frame's header, before its page.
pub(super) const FRAME_HEADER_BYTES: usize = 24;
/// Valid page sizes, all powers of two.
const PAGE_BYTES: RangeInclusive<u32> = 512..=65536;
const FIRST_FRAME: u64 = HEADER_BYTES as u64;

/// The header of a lap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    page_bytes: u32,
    salts: [u8; 8],
}

impl Header {
    /// Reads the header; `None` if the file does not have one (yet).
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; HEADER_BYTES];
        if !is_read(file.read_exact_at(&mut bytes, 0))? {
            return Ok(None);
        }
        let foreign = || io::Error::new(ErrorKind::InvalidData, "it is not a write-ahead log");
        Self::parse(&bytes).ok_or_else(foreign).map(Some)
    }

    /// Parses a header; `None` if these bytes are not one.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let salts = bytes[16..24].try_into().expect("eight bytes");
        let header = Self { page_bytes: number(&bytes[8..12]), salts };
        let has_pages =
            header.page_bytes.is_power_of_two() && PAGE_BYTES.contains(&header.page_bytes);
        // The last bit gives the byte order of the checksums.
        (number(&bytes[..4]) & !1 == MAGIC && has_pages).then_some(header)
    }

    /// The page size.
    pub(super) fn page_bytes(self) -> usize {
        self.page_bytes as usize
    }

    fn frame_bytes(self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.page_bytes)
    }

    /// Offset just after the last commit.
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

/// Decodes a big-endian 32-bit number.
pub(super) fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// Whether enough bytes were available.
fn is_read(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Counts the frames up to the last commit of the write-ahead log at `path`.
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

/// Reads the write-ahead log of a catalog from beginning to end, lap by lap. A new lap must not
/// begin before the previous one has been read completely; only a checkpoint lets one begin.
#[derive(Debug)]
pub(super) struct WalTail {
    path: PathBuf,
    file: Option<File>,
    lap: u64,
    salts: Option<[u8; 8]>,
    /// Offset of the next byte to read.
    offset: u64,
    /// End of the last commit.
    committed: u64,
    piece_bytes: u64,
}

impl WalTail {
    /// Creates a reader for the empty write-ahead log of the file at `database`, after lap `lap`.
    pub(super) fn new(database: &Path, lap: u64, piece_bytes: u64) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        let (file, salts) = (None, None);
        Self { path: path.into(), file, lap, salts, offset: 0, committed: 0, piece_bytes }
    }

    /// Bytes read of the current lap.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next committed bytes, in whole frames, each exactly once. `committed` is the
    /// number of frames up to the last commit; the file does not tell, as complete commits that
    /// SQLite has rolled back may follow.
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

    /// Committed bytes not yet read.
    pub(super) fn waiting(&self) -> u64 {
        self.committed.saturating_sub(self.offset)
    }
}
