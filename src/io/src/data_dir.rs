//! The data directory: its process lock, its permissions and its temporary files.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{Disk, IoError, Operation, raise_file_limit, reserve};

const LOCK_NAME: &str = "LOCK";
const TEMPORARY_NAME: &str = "tmp";

/// An open data directory, held exclusively by this process until the value is dropped.
///
/// All changes go through the methods in `publish.rs`. The first failed sync poisons the value:
/// from then on every change is refused with [`IoError::Poisoned`], because the state on the device
/// is unknown; reads still work. Reopening the directory is the only way to recover.
#[derive(Debug)]
pub struct DataDir {
    pub(super) root: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    /// Directories that exist but whose names may not survive a power cut yet.
    pub(super) unsynced_directories: Mutex<BTreeSet<PathBuf>>,
    temporary: PathBuf,
    temporary_next: AtomicU64,
    is_poisoned: AtomicBool,
    _lock: File,
}

impl DataDir {
    /// Locks the directory at `root`, creates it (mode 0700) if it is missing, and empties `tmp/`.
    /// Reads nothing else, so the time does not grow with the amount of stored data.
    ///
    /// Ends with one sync of the file system: a process that was killed may have left names that
    /// are visible but not durable, and recovery must not build on something that a power cut could
    /// still undo.
    ///
    /// # Errors
    /// [`IoError::InUse`] while another process holds the directory; [`IoError::Unsupported`] if
    /// the file system has no hard links.
    pub fn open(root: &Path, disk: Arc<dyn Disk>) -> Result<Self, IoError> {
        // Each mapped file keeps a descriptor open, for reads that bypass the mapping.
        raise_file_limit();
        disk.create_dir_all(root)?;
        let root = root.canonicalize().map_err(|e| IoError::new(Operation::Inspect, root, e))?;
        restrict(&root)?;
        let lock = take_lock(&root, &*disk)?;
        let temporary = root.join(TEMPORARY_NAME);
        let opened = Self {
            root,
            disk,
            unsynced_directories: Mutex::default(),
            temporary,
            temporary_next: AtomicU64::new(0),
            is_poisoned: AtomicBool::new(false),
            _lock: lock,
        };
        opened.clear_temporary()?;
        opened.check_hard_links()?;
        opened.disk.sync_file_system(&opened.root)?;
        Ok(opened)
    }

    /// Checks that no other process holds the directory. Creates and locks nothing, so another
    /// process may still take it right afterwards.
    ///
    /// # Errors
    /// [`IoError::InUse`] if another process holds it.
    pub fn check_free(root: &Path) -> Result<(), IoError> {
        match File::open(root.join(LOCK_NAME)) {
            Ok(mut lock) => {
                let taken = lock.try_lock_shared();
                check_taken(root, &mut lock, taken)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(IoError::new(Operation::Open, &root.join(LOCK_NAME), error)),
        }
    }

    /// Identifies a directory by device and inode, regardless of the path it is mounted at.
    ///
    /// # Errors
    /// The operating system's, if the directory does not exist.
    pub fn identity(directory: &Path) -> std::io::Result<String> {
        let found = std::fs::metadata(directory)?;
        Ok(format!("{}:{}", found.dev(), found.ino()))
    }

    /// The absolute path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The disk that the directory is on.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Whether a sync has failed, so that changes are refused.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::SeqCst)
    }

    /// Returns a fresh name on the same file system. Files left under it are removed on the next
    /// open.
    pub fn temporary_path(&self) -> PathBuf {
        let number = self.temporary_next.fetch_add(1, Ordering::Relaxed);
        self.temporary.join(format!("{number:016x}"))
    }

    /// Creates an empty unnamed file on the same file system, whose contents disappear when it is
    /// closed. No fsync.
    ///
    /// # Errors
    /// [`IoError::Poisoned`] after a failed sync.
    pub fn scratch(&self) -> Result<File, IoError> {
        self.check_not_poisoned()?;
        let path = self.temporary_path();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|e| IoError::new(Operation::Create, &path, e))?;
        fs::remove_file(&path).map_err(|e| IoError::new(Operation::Remove, &path, e))?;
        Ok(file)
    }

    pub(super) fn check_not_poisoned(&self) -> Result<(), IoError> {
        if self.is_poisoned() {
            return Err(IoError::Poisoned { path: self.root.clone() });
        }
        Ok(())
    }

    /// Passes a result through, and poisons the directory if it is a failed sync.
    pub(super) fn watch<T>(&self, result: Result<T, IoError>) -> Result<T, IoError> {
        if result.as_ref().is_err_and(IoError::must_poison) {
            self.is_poisoned.store(true, Ordering::SeqCst);
        }
        result
    }

    fn clear_temporary(&self) -> Result<(), IoError> {
        match self.disk.create_dir(&self.temporary) {
            Ok(()) => Ok(()),
            Err(IoError::AlreadyExists { .. }) => self.remove_contents(&self.temporary),
            Err(error) => Err(error),
        }
    }

    /// Checks for hard links, which commits need; FAT and some network and FUSE file systems lack
    /// them.
    fn check_hard_links(&self) -> Result<(), IoError> {
        let (first, second) = (self.temporary_path(), self.temporary_path());
        self.disk.write_new(&first, &mut |_| Ok(()))?;
        let linked = self.disk.hard_link(&first, &second);
        self.disk.remove(&first)?;
        match linked {
            Ok(()) => self.disk.remove(&second),
            Err(IoError::Failed { source, .. }) if is_refusal(&source) => {
                Err(IoError::Unsupported { path: self.root.clone(), feature: "hard links" })
            }
            Err(error) => Err(error),
        }
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported)
}

/// Restricts the directory to its owner. If the mode cannot be changed, as on a volume that a
/// container platform mounts with another owner, only logs a warning.
fn restrict(root: &Path) -> Result<(), IoError> {
    let failed = |e| IoError::new(Operation::Inspect, root, e);
    let mode = fs::metadata(root).map_err(failed)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    match fs::set_permissions(root, Permissions::from_mode(0o700)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(path = %root.display(), "other users can access the data directory");
            Ok(())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Takes the flock, which the kernel releases however the process ends, and writes the pid to the
/// file.
fn take_lock(root: &Path, disk: &dyn Disk) -> Result<File, IoError> {
    let path = root.join(LOCK_NAME);
    let failed = |e| IoError::new(Operation::Lock, &path, e);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut lock = options.open(&path).map_err(failed)?;
    let taken = lock.try_lock();
    check_taken(root, &mut lock, taken)?;
    // The first write of a start; all later ones find the space that is freed here.
    reserve::make_room(disk, root);
    lock.set_len(0).map_err(failed)?;
    writeln!(lock, "{}", std::process::id()).map_err(failed)?;
    Ok(lock)
}

/// Converts the result of an attempt to lock; the error names the process that holds the lock.
fn check_taken(
    root: &Path,
    lock: &mut File,
    taken: Result<(), TryLockError>,
) -> Result<(), IoError> {
    match taken {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let was_read = lock.read_to_string(&mut text).is_ok();
            let holder = was_read.then(|| text.trim().parse().ok()).flatten();
            Err(IoError::InUse { path: root.to_path_buf(), holder })
        }
        Err(TryLockError::Error(error)) => {
            Err(IoError::new(Operation::Lock, &root.join(LOCK_NAME), error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RealDisk, StandInDisk};

    fn open(root: &Path) -> Result<DataDir, IoError> {
        DataDir::open(root, Arc::new(RealDisk))
    }

    #[test]
    fn a_second_opening_is_refused_until_the_first_ends() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("a/data");
        DataDir::check_free(&root).unwrap();
        assert!(!root.exists());
        let first = open(&root).unwrap();
        assert!(matches!(DataDir::check_free(&root), Err(IoError::InUse { .. })));
        let refused = open(&root).unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, IoError::InUse { .. }), "{text}");
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        drop(first);
        DataDir::check_free(&root).unwrap();
        open(&root).unwrap();
    }

    #[test]
    fn the_directory_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let (made, found) = (parent.path().join("made"), parent.path().join("found"));
        fs::create_dir(&found).unwrap();
        fs::set_permissions(&found, Permissions::from_mode(0o755)).unwrap();
        for root in [made, found] {
            let _open = open(&root).unwrap();
            assert_eq!(fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(files.current, files.maximum, "as many open files as the process may have");
    }

    #[test]
    fn opening_empties_the_temporary_directory_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        drop(open(root.path()).unwrap());
        fs::create_dir_all(root.path().join("tmp/a/b")).unwrap();
        fs::write(root.path().join("tmp/a/b/c"), "left over").unwrap();
        fs::write(root.path().join("tmp/0000000000000000"), "left over").unwrap();
        fs::write(root.path().join("kept"), "kept").unwrap();
        let _open = open(root.path()).unwrap();
        assert_eq!(fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
        assert!(root.path().join("kept").exists());
    }

    /// Goal: a process that has the lock but has not written its pid yet counts as holder too.
    #[test]
    fn a_holder_without_a_number_is_a_holder() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(LOCK_NAME), "no number").unwrap();
        let other = File::open(root.path().join(LOCK_NAME)).unwrap();
        other.try_lock().unwrap();
        for refused in [open(root.path()).map(drop), DataDir::check_free(root.path())] {
            let error = refused.unwrap_err();
            assert!(matches!(error, IoError::InUse { holder: None, .. }), "{error}");
            assert!(error.to_string().ends_with("is in use by another process"), "{error}");
        }
        assert!(!root.path().join(TEMPORARY_NAME).exists(), "nothing was touched");
        drop(other);
        open(root.path()).unwrap();
    }

    #[test]
    fn what_cannot_be_a_data_directory_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "kept").unwrap();
        for refused in [open(&file).map(drop), DataDir::check_free(&file)] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains(file.to_str().unwrap()), "{error}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"kept");
        // No directory can be created there.
        let error = open(Path::new("/proc/self/data")).unwrap_err().to_string();
        assert!(error.starts_with("making directory \"/proc/self/data\""), "{error}");
    }

    /// Goal: a start on a file system without hard links reports that, rather than the first
    /// commit.
    #[test]
    fn a_file_system_without_hard_links_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for errno in [libc::EPERM, libc::EOPNOTSUPP, libc::EIO] {
            let disk = Arc::new(StandInDisk::default());
            disk.refuse_links(errno);
            let error = DataDir::open(root.path(), disk).unwrap_err();
            let is_unsupported = matches!(error, IoError::Unsupported { .. });
            assert_eq!(is_unsupported, errno != libc::EIO, "{error}");
            assert_eq!(fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
        }
        open(root.path()).unwrap();
    }

    /// Method: the mode of a directory that the kernel provides for a process cannot be changed,
    /// like that of a volume owned by another user.
    #[test]
    fn a_directory_whose_mode_is_another_users_is_taken_as_it_is() {
        let volume = Path::new("/proc/self");
        let mode = || fs::metadata(volume).unwrap().permissions().mode();
        let before = mode();
        assert_ne!(before & 0o077, 0, "others can enter");
        restrict(volume).unwrap();
        assert_eq!(mode(), before);
    }

    #[test]
    fn a_directory_is_the_same_under_every_path() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other, alias] = ["one", "other", "alias"].map(|name| parent.path().join(name));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&one, &alias).unwrap();
        let identity = |path: &Path| DataDir::identity(path).unwrap();
        assert_eq!(identity(&one), identity(&alias));
        assert_ne!(identity(&one), identity(&other));
        assert!(DataDir::identity(&parent.path().join("none")).is_err());
    }
}
