//! Read-only mappings of published files.

use std::fmt;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use memmap2::Mmap;

use crate::{FileSlice, IoError, Operation};

/// A whole file, mapped read-only. Clones and slices share the mapping; it ends with the last of
/// them, also where the file has lost its name by then.
#[derive(Clone)]
pub struct MappedFile {
    path: Arc<Path>,
    contents: Bytes,
}

impl MappedFile {
    /// Maps the file at `path`, which must be one that this process or an earlier one published
    /// (see `publish.rs`). The mapping begins on a page, so offsets keep their alignment up to
    /// 4 KiB.
    ///
    /// # Errors
    /// [`IoError::NotFound`], or errors of opening and mapping.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let file = File::open(path).map_err(|e| IoError::new(Operation::Map, path, e))?;
        // SAFETY: a mapping is sound while the file beneath it is neither changed nor shortened.
        // Files are published complete under a temporary name and renamed or linked into place
        // (publish.rs guarantees it: nothing in this crate opens an existing file for writing);
        // they are never modified or truncated afterwards, replaced only by another inode, and
        // unlinked only after the last snapshot drops, which leaves the inode to this mapping.
        // The flock on LOCK keeps other instances of the server out, and mode 0700 other users.
        // What remains: a person with our rights who truncates a file by hand raises SIGBUS,
        // and one who edits it changes bytes after their checksum was taken.
        #[allow(unsafe_code)]
        let mapping = unsafe { Mmap::map(&file) };
        let mapping = mapping.map_err(|e| IoError::new(Operation::Map, path, e))?;
        Ok(Self { path: path.into(), contents: Bytes::from_owner(mapping) })
    }

    /// Maps a file without a name that is written no more.
    ///
    /// # Errors
    /// Errors of mapping.
    pub(super) fn of_unnamed(file: &FileSlice) -> Result<Self, IoError> {
        // SAFETY: the file was made without a name by this process, nobody else can open it, and
        // its one handle is inside of the slice, which only reads: it is neither changed nor
        // shortened while the mapping lives.
        #[allow(unsafe_code)]
        let mapping = unsafe { Mmap::map(file.file()) };
        let mapping = mapping.map_err(|e| IoError::new(Operation::Map, file.path(), e))?;
        Ok(Self { path: file.path().into(), contents: Bytes::from_owner(mapping) })
    }

    /// The file's name when it was mapped; for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of `range` without a copy; they keep the mapping alive. Unverified: data goes
    /// through [`crate::BlockFile::verified`].
    ///
    /// # Panics
    /// If the range does not lie within the file, as slicing does.
    pub fn bytes(&self, range: Range<usize>) -> Bytes {
        self.contents.slice(range)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.contents
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, contents } = self;
        f.debug_struct("MappedFile").field("path", path).field("bytes", &contents.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_outlive_the_mapping_and_the_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"0123456789").unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        let part = mapped.bytes(2..5);
        assert_eq!(part.as_ptr(), mapped[2..].as_ptr(), "not a copy");
        std::fs::remove_file(&path).unwrap();
        drop(mapped);
        assert_eq!(&part[..], b"234");
    }

    #[test]
    fn empty_files_map_to_nothing_and_missing_ones_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(MappedFile::open(&path).unwrap().is_empty());
        let missing = MappedFile::open(&directory.path().join("none")).unwrap_err();
        assert!(matches!(missing, IoError::NotFound { .. }), "{missing}");
    }
}
