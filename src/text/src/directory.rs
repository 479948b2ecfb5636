//! A bundle as a read-only directory of the index library.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::{Directory, HasLen};

use crate::bundle::Contents;

/// The files of a bundle.
#[derive(Debug, Clone)]
pub(super) struct BundleDirectory {
    files: Arc<BTreeMap<PathBuf, Bytes>>,
}

impl BundleDirectory {
    /// `contents` was read from `bundle`, so every range lies inside.
    pub(super) fn new(bundle: &Bytes, contents: &Contents) -> Self {
        let file = |(name, range): (&String, &Range<usize>)| {
            (PathBuf::from(name), bundle.slice(range.clone()))
        };
        Self { files: Arc::new(contents.files.iter().map(file).collect()) }
    }

    fn file(&self, path: &Path) -> Result<&Bytes, OpenReadError> {
        self.files.get(path).ok_or_else(|| OpenReadError::FileDoesNotExist(path.to_owned()))
    }
}

#[derive(Debug)]
struct File(Bytes);

impl HasLen for File {
    fn len(&self) -> usize {
        self.0.len()
    }
}

impl FileHandle for File {
    /// Copies the range. The library's buffer borrows only from a type that promises in `unsafe`
    /// code to stay in place, which `Bytes` does not. It asks for the dictionaries and the field
    /// lengths once, at opening, and for one posting list at a time after that.
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let bytes = self.0.get(range).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(OwnedBytes::new(bytes.to_vec()))
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a bundle is never written to")
}

impl Directory for BundleDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(Arc::new(File(self.file(path)?.clone())))
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files.contains_key(path))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        Ok(self.file(path)?.to_vec())
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(read_only()), filepath: path.to_owned() })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let (io_error, filepath) = (Arc::new(read_only()), path.to_owned());
        Err(OpenWriteError::IoError { io_error, filepath })
    }

    fn atomic_write(&self, _path: &Path, _data: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _lock: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}
