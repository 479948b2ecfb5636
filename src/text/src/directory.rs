//! Directories for the index library: a bundle read in place, and unnamed files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};
use tantivy::{Directory, HasLen};

use crate::bundle::{BundleBytes, Contents};

/// Maximum number of files of an index, which is one segment.
pub(super) const INDEX_FILES_MAX: usize = 6;

/// The files of a bundle, or those written by a merge.
#[derive(Debug, Clone, Default)]
pub(super) struct IndexDirectory(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    whole: BTreeMap<PathBuf, Stored>,
    /// Empty files for future writes.
    blank: Vec<File>,
}

#[derive(Debug, Clone)]
enum Stored {
    Bundled(Arc<Bundled>),
    Scratch(Arc<Scratch>),
}

/// A file inside a bundle, given by its byte range.
#[derive(Debug)]
struct Bundled {
    bundle: Arc<dyn BundleBytes>,
    place: Range<usize>,
}

impl HasLen for Bundled {
    fn len(&self) -> usize {
        self.place.len()
    }
}

impl FileHandle for Bundled {
    /// Reads a part of the file. The library reads dictionaries and field lengths once, when
    /// opening, and after that one posting list at a time.
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        if range.start > range.end || range.end > self.place.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bundle.read(self.place.start + range.start..self.place.start + range.end)
    }
}

/// An unnamed file and its length.
#[derive(Debug)]
struct Scratch {
    file: File,
    bytes: usize,
}

impl IndexDirectory {
    /// Creates the directory of a bundle. `contents` was read from the bundle, so every range is
    /// valid.
    pub(super) fn of_bundle(bundle: &Arc<dyn BundleBytes>, contents: &Contents) -> Self {
        let file = |(name, range): (&String, &Range<usize>)| {
            let file = Bundled { bundle: Arc::clone(bundle), place: range.clone() };
            (PathBuf::from(name), Stored::Bundled(Arc::new(file)))
        };
        let whole = contents.files.iter().map(file).collect();
        Self(Arc::new(Mutex::new(Files { whole, blank: Vec::new() })))
    }

    /// Creates an empty directory. Files written to it go to `blank`, empty unnamed files on disk,
    /// so that they take no memory.
    pub(super) fn on_disk(blank: Vec<File>) -> Self {
        Self(Arc::new(Mutex::new(Files { whole: BTreeMap::new(), blank })))
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self, path: &Path) -> Result<Stored, OpenReadError> {
        let missing = || OpenReadError::FileDoesNotExist(path.to_owned());
        self.files().whole.get(path).cloned().ok_or_else(missing)
    }
}

impl HasLen for Scratch {
    fn len(&self) -> usize {
        self.bytes
    }
}

impl FileHandle for Scratch {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        let mut bytes = vec![0; range.len()];
        self.file.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(OwnedBytes::new(bytes))
    }
}

/// A file of the index that is being written.
struct OpenFile {
    directory: IndexDirectory,
    path: PathBuf,
    /// `None` once it has been completed.
    file: Option<File>,
    bytes: usize,
}

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.file.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = file.write(bytes)?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for OpenFile {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let file = self.file.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let scratch = Stored::Scratch(Arc::new(Scratch { file, bytes: self.bytes }));
        self.directory.files().whole.insert(std::mem::take(&mut self.path), scratch);
        Ok(())
    }
}

impl Directory for IndexDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        Ok(match self.stored(path)? {
            Stored::Bundled(file) => file,
            Stored::Scratch(scratch) => scratch,
        })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.files().whole.contains_key(path))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let file = self.open_read(path)?;
        let bytes = file.read_bytes();
        bytes.map(|bytes| bytes.to_vec()).map_err(|error| OpenReadError::IoError {
            io_error: Arc::new(error),
            filepath: path.to_owned(),
        })
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let missing = || DeleteError::FileDoesNotExist(path.to_owned());
        self.files().whole.remove(path).map(|_| ()).ok_or_else(missing)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let blank = self.files().blank.pop();
        let Some(file) = blank else {
            let problem = io::Error::other("an index has no more files than these");
            let (io_error, filepath) = (Arc::new(problem), path.to_owned());
            return Err(OpenWriteError::IoError { io_error, filepath });
        };
        let (directory, path) = (self.clone(), path.to_owned());
        let open = OpenFile { directory, path, file: Some(file), bytes: 0 };
        Ok(BufWriter::new(Box::new(open)))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let bytes = OwnedBytes::new(data.to_vec());
        let bytes = Bundled { place: 0..bytes.len(), bundle: Arc::new(bytes) };
        let bytes = Stored::Bundled(Arc::new(bytes));
        self.files().whole.insert(path.to_owned(), bytes);
        Ok(())
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
