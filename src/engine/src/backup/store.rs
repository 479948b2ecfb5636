//! The store of backups: a trait, and its implementation by a folder.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::BackupError;
use lodestone_io::{Disk, RealDisk};

/// Size of the buffer for copying a file.
pub(super) const BUFFER_BYTES: usize = 256 << 10;
pub(super) const MARKER: &str = "lodestone-backups";
pub(super) const OBJECTS: &str = "objects";

/// The content of a file, identified by its hash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Object {
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Length in bytes.
    pub bytes: u64,
}

impl Object {
    /// The object that would hold `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { sha256: hex::encode(Sha256::digest(bytes)), bytes: bytes.len() as u64 }
    }
}

/// Reads bytes at an offset into the buffer; returns 0 at the end. Repeated reads yield equal
/// bytes.
pub type ReadAt<'a> = dyn FnMut(u64, &mut [u8]) -> Result<usize, BackupError> + Send + 'a;
/// Receives the next bytes.
pub type TakeNext<'a> = dyn FnMut(&[u8]) -> Result<(), BackupError> + 'a;

/// A store of contents under their hashes, and of small files under two-part names.
pub trait BackupStore: Send + Sync + fmt::Debug {
    /// The name of the store for people.
    fn name(&self) -> String;

    /// Stores the content that `read` yields under its hash, replacing an existing object. Durable
    /// after [`Self::sync`].
    ///
    /// # Errors
    /// Errors of `read` and of the store.
    fn put_object(&self, read: &mut ReadAt<'_>) -> Result<Object, BackupError>;

    /// The length of an object, if it exists. Its content is not read.
    ///
    /// # Errors
    /// Errors of the store.
    fn object_len(&self, sha256: &str) -> Result<Option<u64>, BackupError>;

    /// Passes an object to `take` and compares it with its hash and length along the way.
    ///
    /// # Errors
    /// [`BackupError::Damaged`], which names the file; whatever `take` has received is then
    /// invalid.
    fn read_object(&self, object: &Object, take: &mut TakeNext<'_>) -> Result<(), BackupError>;

    /// The hashes of all objects.
    ///
    /// # Errors
    /// Errors of the store.
    fn objects(&self) -> Result<Vec<String>, BackupError>;

    /// Removes an object, if it exists.
    ///
    /// # Errors
    /// Errors of the store.
    fn remove_object(&self, sha256: &str) -> Result<(), BackupError>;

    /// Makes everything stored so far durable.
    ///
    /// # Errors
    /// Errors of the store.
    fn sync(&self) -> Result<(), BackupError>;

    /// Stores a small file atomically and durably.
    ///
    /// # Errors
    /// Errors of the store.
    fn put(&self, group: &str, name: &str, bytes: &[u8]) -> Result<(), BackupError>;

    /// Reads a small file, if it exists.
    ///
    /// # Errors
    /// Errors of the store.
    fn get(&self, group: &str, name: &str) -> Result<Option<Vec<u8>>, BackupError>;

    /// The names of the small files of a group, in ascending order.
    ///
    /// # Errors
    /// Errors of the store.
    fn names(&self, group: &str) -> Result<Vec<String>, BackupError>;

    /// Removes a small file, if it exists.
    ///
    /// # Errors
    /// Errors of the store.
    fn remove(&self, group: &str, name: &str) -> Result<(), BackupError>;
}

/// Compares bytes with the hash and length of an object.
pub(super) struct Compared<'a> {
    object: &'a Object,
    file: String,
    hash: Sha256,
    bytes: u64,
}

impl<'a> Compared<'a> {
    pub(super) fn new(object: &'a Object, file: String) -> Self {
        Self { object, file, hash: Sha256::new(), bytes: 0 }
    }

    fn damaged(&self, problem: &str) -> BackupError {
        BackupError::Damaged { file: self.file.clone(), problem: problem.to_owned() }
    }

    pub(super) fn missing(&self) -> BackupError {
        self.damaged("the file is missing")
    }

    pub(super) fn see(&mut self, piece: &[u8]) -> Result<(), BackupError> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        self.check_len(self.bytes <= self.object.bytes)
    }

    fn check_len(&self, is_right: bool) -> Result<(), BackupError> {
        let expected = self.object.bytes;
        match is_right {
            true => Ok(()),
            false => Err(self.damaged(&format!("its length is not {expected} bytes"))),
        }
    }

    pub(super) fn finish(self) -> Result<(), BackupError> {
        self.check_len(self.bytes == self.object.bytes)?;
        match hex::encode(self.hash.clone().finalize()) == self.object.sha256 {
            true => Ok(()),
            false => Err(self.damaged("its content does not match its hash")),
        }
    }
}

/// A folder of backups.
///
/// ```text
/// lodestone-backups     marks the folder; locked while backups are made or removed
/// objects/ab/<sha256>   contents, each stored once
/// started/<id>          a backup that was begun; removed when it is finished
/// backups/<id>          its manifest, written last
/// tmp/<process>-<n>     files being written
/// ```
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    next: AtomicU64,
    _lock: Option<File>,
}

impl Folder {
    /// Opens a folder for adding or removing backups, and creates it if it is missing.
    ///
    /// # Errors
    /// [`BackupError::Busy`] while another process does so; [`BackupError::Refused`] for a folder
    /// that holds other things.
    pub fn create(root: &Path) -> Result<Self, BackupError> {
        if root.is_file() {
            let problem = format!("{} is a file: choose a folder for backups", root.display());
            return Err(BackupError::Refused { problem });
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(BackupError::file(root))?;
        let marker = root.join(MARKER);
        let mut entries = fs::read_dir(root).map_err(BackupError::file(root))?;
        if !marker.exists() && entries.next().is_some() {
            let root = root.display();
            let problem =
                format!("{root} is not empty and contains no backups: choose another folder");
            return Err(BackupError::Refused { problem });
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(&marker).map_err(BackupError::file(&marker))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(BackupError::Busy),
            Err(fs::TryLockError::Error(error)) => return Err(BackupError::file(&marker)(error)),
        }
        let folder = Self { root: root.to_owned(), next: AtomicU64::new(0), _lock: Some(lock) };
        // Nobody else is writing, so these files were left by a process that was killed.
        match fs::remove_dir_all(folder.root.join("tmp")) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BackupError::file(&folder.root.join("tmp"))(error));
            }
            _ => {}
        }
        for name in ["tmp", OBJECTS, "started", "backups"] {
            folder.make_directory(&folder.root.join(name))?;
        }
        Ok(folder)
    }

    /// Opens a folder with backups for reading.
    ///
    /// # Errors
    /// [`BackupError::Refused`] for a folder without backups.
    pub fn open(root: &Path) -> Result<Self, BackupError> {
        if !root.join(MARKER).exists() {
            let root = root.display();
            let problem = format!("{root} is not a backup folder: there is no file {MARKER}");
            return Err(BackupError::Refused { problem });
        }
        Ok(Self { root: root.to_owned(), next: AtomicU64::new(0), _lock: None })
    }

    fn make_directory(&self, path: &Path) -> Result<(), BackupError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(BackupError::file(path)(error))
            }
            _ => Ok(()),
        }
    }

    fn object(&self, sha256: &str) -> PathBuf {
        self.root.join(OBJECTS).join(sha256.get(..2).unwrap_or("")).join(sha256)
    }

    fn temporary(&self) -> Result<(PathBuf, File), BackupError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.root.join("tmp").join(format!("{}-{number}", std::process::id()));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = made.map_err(BackupError::file(&path))?;
        Ok((path, file))
    }

    fn sync_directory(&self, path: &Path) -> Result<(), BackupError> {
        File::open(path).and_then(|file| file.sync_all()).map_err(BackupError::file(path))
    }
}

impl BackupStore for Folder {
    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn put_object(&self, read: &mut ReadAt<'_>) -> Result<Object, BackupError> {
        let (path, mut file) = self.temporary()?;
        let mut copy = || {
            let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; BUFFER_BYTES]);
            loop {
                let length = read(bytes, &mut buffer)?;
                if length == 0 {
                    return Ok(Object { sha256: hex::encode(hash.finalize()), bytes });
                }
                hash.update(&buffer[..length]);
                bytes += length as u64;
                file.write_all(&buffer[..length]).map_err(BackupError::file(&path))?;
            }
        };
        let moved = copy().and_then(|object| {
            let target = self.object(&object.sha256);
            self.make_directory(target.parent().unwrap_or(&self.root))?;
            fs::rename(&path, &target).map_err(BackupError::file(&target))?;
            Ok(object)
        });
        if moved.is_err() {
            // The next backup removes what could not be removed now.
            let _ = fs::remove_file(&path);
        }
        moved
    }

    fn object_len(&self, sha256: &str) -> Result<Option<u64>, BackupError> {
        let path = self.object(sha256);
        match fs::metadata(&path) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BackupError::file(&path)(error)),
        }
    }

    fn read_object(&self, object: &Object, take: &mut TakeNext<'_>) -> Result<(), BackupError> {
        let path = self.object(&object.sha256);
        let mut compared = Compared::new(object, path.display().to_string());
        let mut file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => compared.missing(),
            _ => BackupError::file(&path)(error),
        })?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let length = file.read(&mut buffer).map_err(BackupError::file(&path))?;
            if length == 0 {
                return compared.finish();
            }
            compared.see(&buffer[..length])?;
            take(&buffer[..length])?;
        }
    }

    fn objects(&self) -> Result<Vec<String>, BackupError> {
        let mut found = Vec::new();
        let root = self.root.join(OBJECTS);
        for group in names_in(&root)? {
            found.extend(names_in(&root.join(group))?);
        }
        Ok(found)
    }

    fn remove_object(&self, sha256: &str) -> Result<(), BackupError> {
        remove_file(&self.object(sha256))
    }

    fn sync(&self) -> Result<(), BackupError> {
        Ok(RealDisk.sync_file_system(&self.root)?)
    }

    fn put(&self, group: &str, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let (path, mut file) = self.temporary()?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(BackupError::file(&path))?;
        let directory = self.root.join(group);
        let target = directory.join(name);
        fs::rename(&path, &target).map_err(BackupError::file(&target))?;
        self.sync_directory(&directory)
    }

    fn get(&self, group: &str, name: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let path = self.root.join(group).join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BackupError::file(&path)(error)),
        }
    }

    fn names(&self, group: &str) -> Result<Vec<String>, BackupError> {
        names_in(&self.root.join(group))
    }

    fn remove(&self, group: &str, name: &str) -> Result<(), BackupError> {
        let directory = self.root.join(group);
        remove_file(&directory.join(name))?;
        self.sync_directory(&directory)
    }
}

fn remove_file(path: &Path) -> Result<(), BackupError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(BackupError::file(path)(error)),
        _ => Ok(()),
    }
}

/// The names in a directory, in ascending order; none if it does not exist.
fn names_in(path: &Path) -> Result<Vec<String>, BackupError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BackupError::file(path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(BackupError::file(path))?;
        names.extend(entry.file_name().into_string().ok());
    }
    names.sort_unstable();
    Ok(names)
}
