//! A part of an open file, read piece by piece.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::{IoError, Operation};

/// Bytes per piece of [`FileSlice::pieces`].
const PIECE_BYTES: usize = 64 << 10;

/// Consecutive bytes of an open file, read with `pread`: a reader needs memory for one piece only,
/// and an unreadable sector is an error rather than a signal. Clones share the open file, which
/// stays readable after it is unlinked.
#[derive(Debug, Clone)]
pub struct FileSlice {
    path: Arc<Path>,
    file: Arc<File>,
    start: u64,
    length: u64,
}

impl FileSlice {
    /// Opens the whole file at `path`.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    pub fn open(path: &Path) -> std::result::Result<Self, IoError> {
        let file = File::open(path).map_err(|e| IoError::new(Operation::Open, path, e))?;
        Self::of(file, path)
    }

    /// Wraps the whole of an open file; `path` is for messages.
    pub fn of(file: File, path: &Path) -> std::result::Result<Self, IoError> {
        let metadata = file.metadata().map_err(|e| IoError::new(Operation::Inspect, path, e))?;
        let (path, file) = (path.into(), Arc::new(file));
        Ok(Self { path, file, start: 0, length: metadata.len() })
    }

    /// Returns the slice without its first `bytes`.
    #[must_use]
    pub fn after(&self, bytes: u64) -> Self {
        let bytes = bytes.min(self.length);
        Self { start: self.start + bytes, length: self.length - bytes, ..self.clone() }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether the slice is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Reads from offset `at` as many bytes as are available and fit into `buffer`; returns their
    /// number.
    ///
    /// # Errors
    /// The operating system's; also if the file is shorter than when it was opened.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> std::result::Result<usize, IoError> {
        let wanted = self.length.saturating_sub(at).min(buffer.len() as u64) as usize;
        let read = self.read_exact_at(&mut buffer[..wanted], at);
        read.map_err(|e| IoError::new(Operation::Read, &self.path, e))?;
        Ok(wanted)
    }

    /// Passes all bytes to `see`, piece by piece.
    ///
    /// # Errors
    /// Those of [`Self::read_at`].
    pub fn pieces(&self, mut see: impl FnMut(&[u8])) -> std::result::Result<(), IoError> {
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < self.length {
            let read = self.read_at(at, &mut buffer)?;
            see(&buffer[..read]);
            at += read as u64;
        }
        Ok(())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> Result<()> {
        self.file.read_exact_at(buffer, self.start + at).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => std::io::Error::other("the file is shorter than it was"),
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_read_in_pieces_and_a_shortened_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let whole = FileSlice::open(&path).unwrap();
        let slice = whole.after(7);
        let mut seen = Vec::new();
        slice.pieces(|piece| seen.extend_from_slice(piece)).unwrap();
        assert_eq!((slice.len(), &seen[..]), (199_993, &bytes[7..]));
        let mut buffer = [0; 8];
        assert_eq!(slice.read_at(199_990, &mut buffer).unwrap(), 3);
        assert_eq!(slice.read_at(500_000, &mut buffer).unwrap(), 0);
        assert!(whole.after(500_000).is_empty());
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
        let error = whole.pieces(|_| ()).unwrap_err();
        assert!(error.to_string().contains("shorter than it was"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let slice = FileSlice::open(directory.path()).unwrap();
        let error = slice.read_at(0, &mut [0; 1]).unwrap_err();
        assert!(error.to_string().contains(directory.path().to_str().unwrap()), "{error}");
        assert!(!error.to_string().contains("shorter"), "{error}");
    }
}
