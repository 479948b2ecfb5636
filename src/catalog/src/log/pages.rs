//! Applies frames of a write-ahead log as pages of the file.
//!
//! SQLite only accepts a complete write-ahead log, from its beginning. Here each commit is applied
//! as soon as it arrives: the pages of its frames are written to their positions in the file, which
//! nobody reads meanwhile. The entries that carry the frames are verified, so the frames' own
//! checksums, which depend on everything before them, need not be.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::entry::Frames;
use super::restore::local;
use super::wal::{FRAME_HEADER_BYTES, HEADER_BYTES, Header, number};
use crate::error::{CatalogError, Result};

/// Offset of the two bytes of a file that select the journal mode: 2 for a write-ahead log, 1 for
/// in-place writes.
const WRITE_VERSION: usize = 18;

/// Pages by number, from 1.
type Pages = BTreeMap<u32, Vec<u8>>;

/// Collects frames into complete commits.
#[derive(Debug, Default)]
pub(super) struct Commits {
    page_bytes: usize,
    /// Pages of frames after the last commit.
    open: Pages,
    /// Pages changed by complete commits.
    done: Pages,
    /// Pages of the file after the last commit; 0 if there has been none.
    file_pages: u32,
}

impl Commits {
    /// Adds frames, in log order.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if they are not complete frames.
    pub(super) fn add(&mut self, place: Frames, bytes: &[u8]) -> Result<()> {
        let not_whole = || CatalogError::corrupt("an entry of the log contains incomplete frames");
        let mut rest = bytes;
        if place.offset == 0 {
            let (header, frames) =
                rest.split_first_chunk::<HEADER_BYTES>().ok_or_else(not_whole)?;
            self.page_bytes = Header::parse(header).ok_or_else(not_whole)?.page_bytes();
            // An unfinished commit, which its process never acknowledged.
            self.open.clear();
            rest = frames;
        }
        let frame_bytes = FRAME_HEADER_BYTES + self.page_bytes;
        let frames = rest.chunks_exact(frame_bytes);
        if self.page_bytes == 0 || !frames.remainder().is_empty() {
            return Err(not_whole());
        }
        for frame in frames {
            let (header, page) = frame.split_at(FRAME_HEADER_BYTES);
            let page_number = number(&header[..4]);
            if page_number == 0 {
                return Err(CatalogError::corrupt("an entry of the log changes page 0"));
            }
            self.open.insert(page_number, page.to_vec());
            let file_pages = number(&header[4..8]);
            if file_pages != 0 {
                self.file_pages = file_pages;
                self.done.append(&mut self.open);
            }
        }
        Ok(())
    }

    /// Whether there are commits not yet written to the file.
    pub(super) fn is_ready(&self) -> bool {
        self.file_pages != 0
    }

    /// Writes the commits to the file, which nobody may read meanwhile. If this is interrupted, the
    /// file is unusable.
    ///
    /// # Errors
    /// Errors of the disk; a repeated call writes the same pages.
    pub(super) fn write(&mut self, path: &Path) -> Result<()> {
        if !self.is_ready() {
            return Ok(());
        }
        let file = OpenOptions::new().write(true).open(path).map_err(local(path))?;
        self.write_to(&file).map_err(local(path))?;
        self.done.clear();
        self.file_pages = 0;
        Ok(())
    }

    fn write_to(&mut self, file: &File) -> io::Result<()> {
        if let Some(first) = self.done.get_mut(&1) {
            first[WRITE_VERSION..WRITE_VERSION + 2].fill(1);
        }
        for (number, page) in &self.done {
            let at = u64::from(number - 1) * self.page_bytes as u64;
            file.write_all_at(page, at)?;
        }
        file.set_len(u64::from(self.file_pages) * self.page_bytes as u64)
    }
}

/// Switches a copy of the file to being read without a write-ahead log.
///
/// # Errors
/// Errors of the disk.
pub(super) fn read_in_place(path: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path).map_err(local(path))?;
    file.write_all_at(&[1, 1], WRITE_VERSION as u64).map_err(local(path))
}
