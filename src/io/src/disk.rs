//! The disk as an injectable component: the file system operations that the server needs, and the
//! real file system.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::{FileSlice, IoError, MappedFile, Operation};

/// Bytes buffered before they go to the operating system.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Writes the contents of a new file; called once. An error it returns fails the whole write.
pub type WriteContents<'a> = dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectoryEntry {
    /// The last component of the path.
    pub name: String,
    /// Whether the entry is a directory.
    pub is_directory: bool,
}

/// Total and free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Total size in bytes.
    pub total_bytes: u64,
    /// Bytes that this process can still allocate.
    pub free_bytes: u64,
    /// Files that this process can still create; `u64::MAX` if there is no limit.
    pub free_files: u64,
}

/// The file system operations that the product relies on, each with the durability it provides by
/// itself. Contents are durable once [`Disk::write_new`] returns, a name only once its directory
/// has been synced. Existing files are never opened for writing.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates one directory, mode 0700. Durable after a sync of its parent.
    ///
    /// # Errors
    /// [`IoError::AlreadyExists`]; [`IoError::NotFound`] if the parent is missing.
    fn create_dir(&self, path: &Path) -> Result<(), IoError>;

    /// Creates a file that must not exist, mode 0600, lets `write` fill it and syncs its contents;
    /// returns its length in bytes. The name is durable only after a sync of its directory. One
    /// fsync. After an error, part of the file may be left at `path`.
    ///
    /// # Errors
    /// [`IoError::AlreadyExists`], or the error that `write` returned.
    fn write_new(&self, path: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError>;

    /// Gives the file `from` the second name `to`, which must not exist: of concurrent callers
    /// exactly one wins. Durable after a sync of the directory of `to`.
    ///
    /// # Errors
    /// [`IoError::AlreadyExists`] if the name is taken.
    fn hard_link(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// Moves `from` to `to`, atomically replacing any file there. Durable after a sync of the
    /// directory of `to`.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError>;

    /// Unlinks a file; open readers and mappings keep its contents. Durable after a sync of its
    /// directory.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    fn remove(&self, path: &Path) -> Result<(), IoError>;

    /// Removes an empty directory. Durable after a sync of its parent.
    ///
    /// # Errors
    /// [`IoError::NotFound`]; the operating system's if the directory is not empty.
    fn remove_dir(&self, path: &Path) -> Result<(), IoError>;

    /// Makes the names in this directory durable, but not the contents of its files. One fsync.
    ///
    /// # Errors
    /// The operating system's; the caller must not retry (see [`IoError::must_poison`]).
    fn sync_dir(&self, path: &Path) -> Result<(), IoError>;

    /// Changes names in this directory, then syncs it as [`Self::sync_dir`] does. The descriptor
    /// for the sync is opened first, so a process that is out of descriptors changes nothing.
    ///
    /// # Errors
    /// The error of `change`, and those of [`Self::sync_dir`].
    fn sync_dir_after(
        &self,
        path: &Path,
        change: &mut dyn FnMut() -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        change()?;
        self.sync_dir(path)
    }

    /// Makes everything currently visible on the file system of `path` durable.
    fn sync_file_system(&self, path: &Path) -> Result<(), IoError>;

    /// Lists the names in a directory in byte order. Names that are not UTF-8 are omitted.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such directory.
    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, IoError>;

    /// Whether the name exists.
    fn exists(&self, path: &Path) -> Result<bool, IoError>;

    /// Length of a file in bytes.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    fn len(&self, path: &Path) -> Result<u64, IoError>;

    /// Reads a whole file.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError>;

    /// Opens a published file for reading piece by piece.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    fn open(&self, path: &Path) -> Result<FileSlice, IoError> {
        FileSlice::open(path)
    }

    /// Maps a whole published file.
    ///
    /// # Errors
    /// [`IoError::NotFound`] if there is no such file.
    fn map(&self, path: &Path) -> Result<MappedFile, IoError>;

    /// Total and free space of the file system that holds `path`.
    fn space(&self, path: &Path) -> Result<Space, IoError>;

    /// Bytes that this process can still write to the file system that holds `path`.
    fn free_bytes(&self, path: &Path) -> Result<u64, IoError> {
        Ok(self.space(path)?.free_bytes)
    }

    /// Creates `path` and any missing ancestors, and syncs the parent of each new directory, so
    /// that the result survives a power cut. One fsync per missing directory.
    fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        if path.as_os_str().is_empty() || self.exists(path)? {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        self.create_dir_all(parent)?;
        match self.create_dir(path) {
            // Another thread was faster but may not have synced yet, so both sync.
            Ok(()) | Err(IoError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
        self.sync_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
    }
}

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

/// Creates and fills a new file without syncing it; returns it and its length.
pub(super) fn write_unsynced(
    path: &Path,
    write: &mut WriteContents<'_>,
) -> Result<(File, u64), IoError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|e| IoError::new(Operation::Create, path, e))?;
    let mut buffered = BufWriter::with_capacity(WRITE_BUFFER_BYTES, file);
    let failed = |e| IoError::new(Operation::Write, path, e);
    write(&mut buffered).map_err(failed)?;
    let file = buffered.into_inner().map_err(|e| failed(e.into_error()))?;
    let length = file.metadata().map_err(|e| IoError::new(Operation::Inspect, path, e))?.len();
    Ok((file, length))
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> Result<(), IoError> {
        let made = fs::DirBuilder::new().mode(0o700).create(path);
        made.map_err(|e| IoError::new(Operation::CreateDirectory, path, e))
    }

    fn write_new(&self, path: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError> {
        let (file, length) = write_unsynced(path, write)?;
        file.sync_all().map_err(|e| IoError::new(Operation::SyncFile, path, e))?;
        Ok(length)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        fs::hard_link(from, to).map_err(|e| IoError::new(Operation::Link, to, e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        fs::rename(from, to).map_err(|e| IoError::new(Operation::Rename, to, e))
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        fs::remove_file(path).map_err(|e| IoError::new(Operation::Remove, path, e))
    }

    fn remove_dir(&self, path: &Path) -> Result<(), IoError> {
        fs::remove_dir(path).map_err(|e| IoError::new(Operation::Remove, path, e))
    }

    fn sync_dir(&self, path: &Path) -> Result<(), IoError> {
        self.sync_dir_after(path, &mut || Ok(()))
    }

    fn sync_dir_after(
        &self,
        path: &Path,
        change: &mut dyn FnMut() -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        let directory = File::open(path).map_err(|e| IoError::new(Operation::Open, path, e))?;
        change()?;
        directory.sync_all().map_err(|e| IoError::new(Operation::SyncDirectory, path, e))
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), IoError> {
        let directory = File::open(path).map_err(|e| IoError::new(Operation::Open, path, e))?;
        rustix::fs::syncfs(directory)
            .map_err(|e| IoError::new(Operation::SyncFileSystem, path, e.into()))
    }

    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, IoError> {
        let failed = |e| IoError::new(Operation::List, path, e);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().map_err(failed)?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirectoryEntry { name, is_directory });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        path.try_exists().map_err(|e| IoError::new(Operation::Inspect, path, e))
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        let metadata = fs::metadata(path).map_err(|e| IoError::new(Operation::Inspect, path, e))?;
        Ok(metadata.len())
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        fs::read(path).map_err(|e| IoError::new(Operation::Read, path, e))
    }

    fn map(&self, path: &Path) -> Result<MappedFile, IoError> {
        MappedFile::open(path)
    }

    fn space(&self, path: &Path) -> Result<Space, IoError> {
        let found = rustix::fs::statvfs(path)
            .map_err(|e| IoError::new(Operation::Inspect, path, e.into()))?;
        // A file system that does not count inodes reports a total of zero.
        let free_files = if found.f_files == 0 { u64::MAX } else { found.f_favail };
        Ok(Space {
            // Space reserved for others (root, quotas) counts as neither used nor free.
            total_bytes: (found.f_blocks - found.f_bfree + found.f_bavail) * found.f_frsize,
            free_bytes: found.f_bavail * found.f_frsize,
            free_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn files_are_made_once_listed_in_order_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let disk = RealDisk;
        for name in ["b", "a"] {
            let length = disk.write_new(&at(name), &mut |out| out.write_all(b"xyz")).unwrap();
            assert_eq!(length, 3);
        }
        let again = disk.write_new(&at("a"), &mut |out| out.write_all(b"other"));
        assert!(matches!(again, Err(IoError::AlreadyExists { .. })));
        assert_eq!(disk.read(&at("a")).unwrap(), b"xyz");
        disk.create_dir_all(&at("d/e/f")).unwrap();
        let names: Vec<_> = disk.list(directory.path()).unwrap();
        let names: Vec<_> = names.iter().map(|e| (e.name.as_str(), e.is_directory)).collect();
        assert_eq!(names, [("a", false), ("b", false), ("d", true)]);
        disk.remove(&at("a")).unwrap();
        assert!(!disk.exists(&at("a")).unwrap());
        assert!(disk.free_bytes(directory.path()).unwrap() > 0);
        disk.sync_file_system(directory.path()).unwrap();
    }

    /// Goal: the descriptor for the sync is opened before the change, and without one nothing
    /// changes. Method: a change that removes the directory itself.
    #[test]
    fn a_change_is_made_only_when_its_sync_has_what_it_needs() {
        let root = tempfile::tempdir().unwrap();
        let [from, to] = ["a", "b"].map(|name| root.path().join(name));
        RealDisk.create_dir(&from).unwrap();
        let mut changes = 0;
        let mut change = || {
            changes += 1;
            RealDisk.rename(&from, &to)
        };
        RealDisk.sync_dir_after(&from, &mut change).unwrap();
        assert!(RealDisk.sync_dir_after(&from, &mut change).is_err());
        assert_eq!(changes, 1);
    }

    #[test]
    fn an_error_of_the_writer_is_reported_with_the_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let full = || io::Error::from_raw_os_error(libc::ENOSPC);
        let error = RealDisk.write_new(&path, &mut |_| Err(full())).unwrap_err();
        assert!(matches!(error, IoError::StorageFull { operation: Operation::Write, .. }));
        assert!(error.to_string().contains(path.to_str().unwrap()));
    }

    #[test]
    fn names_that_are_not_utf8_are_not_listed() {
        let directory = tempfile::tempdir().unwrap();
        let foreign = std::ffi::OsStr::from_bytes(b"a\xff");
        fs::write(directory.path().join(foreign), "foreign").unwrap();
        fs::write(directory.path().join("b"), "ours").unwrap();
        let entries = RealDisk.list(directory.path()).unwrap();
        assert_eq!(entries, [DirectoryEntry { name: "b".to_owned(), is_directory: false }]);
    }

    /// Goal: a file system that does not count inodes is not mistaken for a full one.
    #[test]
    fn a_file_system_without_numbers_has_no_bound_of_files() {
        let space = RealDisk.space(Path::new("/proc")).unwrap();
        assert_eq!((space.total_bytes, space.free_files), (0, u64::MAX));
        let error = RealDisk.space(Path::new("/proc/none")).unwrap_err();
        assert!(matches!(error, IoError::NotFound { .. }), "{error}");
    }

    /// Goal: a relative path is in the working directory, which is synced like any other parent.
    /// Method: all other tests use absolute paths.
    #[test]
    fn a_relative_path_is_made_in_the_working_directory() {
        let (directory, before) = (tempfile::tempdir().unwrap(), std::env::current_dir().unwrap());
        std::env::set_current_dir(directory.path()).unwrap();
        let made = RealDisk.create_dir_all(Path::new("data/v1"));
        std::env::set_current_dir(before).unwrap();
        made.unwrap();
        assert!(directory.path().join("data/v1").is_dir());
    }
}
