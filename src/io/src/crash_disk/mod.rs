//! A disk that loses power on demand, for tests of all crates.
//!
//! It wraps a real directory and remembers what a power cut could take back: names whose
//! directory was not synced since, and contents that were not synced. [`CrashDisk::crash`] puts
//! the real directory into one of the states that a cut may leave, chosen by a seed.
//!
//! ```text
//! let disk = Arc::new(CrashDisk::new(temporary.path()));
//! disk.fail_at(n);                       // the power goes at sync number n
//! let _ = workload(disk.clone());        // runs into errors from there on
//! disk.crash(seed, CrashMode::Hostile);  // power is back
//! verify(disk.clone());                  // everything that was acknowledged must be there
//! ```
//! Files that were not made through it (LOCK, the catalog) are left alone. A torn file keeps a
//! prefix of its length, and each page of 4 KiB of it is either there or zero. No barrier is
//! issued to the real device, so thousands of cuts take seconds. Directories can be renamed inside
//! their parent only.
//!
//! - `model`: which names and contents have reached the device
//! - `operations`: the operations of [`crate::Disk`], on the real directory and the model

mod model;
mod operations;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use parking_lot::Mutex;

use self::model::{Choices, Namespace, Node};
use crate::{IoError, Operation};

/// Grain of torn contents.
const PAGE_BYTES: usize = 4096;

/// Choice of the unsynced operations that survive a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashMode {
    /// Of each directory the oldest ones, up to a point: a journalling file system.
    Prefix,
    /// Any of them: the most that POSIX allows.
    Hostile,
}

/// Operation that an injected fault makes fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The new file with this number, counted from 0 as [`CrashDisk::writes`] counts.
    Write(u64),
    /// The sync with this number, counted from 0 as [`CrashDisk::syncs`] counts.
    Sync(u64),
}

/// Error that an injected fault reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// EIO: the device failed.
    Device,
    /// ENOSPC: the device is full.
    Full,
}

impl FaultKind {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Self::Device => libc::EIO,
            Self::Full => libc::ENOSPC,
        })
    }
}

#[derive(Debug)]
struct State {
    namespace: Namespace,
    syncs: u64,
    writes: u64,
    fail_at: Option<u64>,
    is_power_gone: bool,
    faults: Vec<(Fault, FaultKind)>,
}

/// The disk. Shared by reference; no other thread may be inside it during [`CrashDisk::crash`].
#[derive(Debug)]
pub struct CrashDisk {
    root: PathBuf,
    /// Every file ever written has a link here, named by its inode, so that it can come back.
    vault: PathBuf,
    state: Mutex<State>,
}

impl CrashDisk {
    /// A disk with its files in `base/disk`; `base/vault` is internal.
    ///
    /// # Panics
    /// If the two cannot be made.
    pub fn new(base: &Path) -> Self {
        let base = base.canonicalize().expect("the directory of a crash disk exists");
        let (root, vault) = (base.join("disk"), base.join("vault"));
        for directory in [&root, &vault] {
            fs::create_dir(directory).expect("the directory of a crash disk is empty");
        }
        let state = State {
            namespace: Namespace::new(),
            syncs: 0,
            writes: 0,
            fail_at: None,
            is_power_gone: false,
            faults: Vec::new(),
        };
        Self { root, vault, state: Mutex::new(state) }
    }

    /// The directory for the files of the server, at any depth.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Syncs of files, directories and file systems so far.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// New files so far, those that failed included.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// The power goes at sync number `n` (counted from 0 since the disk was made): that one and
    /// everything after it fails until [`CrashDisk::crash`].
    pub fn fail_at(&self, n: u64) {
        self.state.lock().fail_at = Some(n);
    }

    /// Lets one operation fail, once, while the power stays. What a failed sync should have
    /// written is lost even if a second sync of the same thing reports success.
    pub fn inject(&self, fault: Fault, kind: FaultKind) {
        self.state.lock().faults.push((fault, kind));
    }

    /// Cuts the power and restores it: the real directory takes a state that is legal after a
    /// cut at this moment, the same for the same seed. Planned failures are forgotten, counts go
    /// on. Values that hold the disk (a data directory) must be dropped before and opened again.
    ///
    /// # Panics
    /// If the real directory cannot be changed.
    pub fn crash(&self, seed: u64, mode: CrashMode) {
        let mut state = self.state.lock();
        let choices = Choices::new(seed);
        let before = state.namespace.walk();
        state.namespace.cut_power(&choices, mode);
        let after = state.namespace.walk();
        self.clear(&before, &after);
        for (path, node) in after {
            let path = self.root.join(path);
            match node {
                Node::Directory(_) if path.is_dir() => {}
                Node::Directory(_) => fs::create_dir(&path).expect("the parent was made before"),
                Node::File(file) => {
                    if !state.namespace.is_durable(file) {
                        self.tear(file, &choices);
                        state.namespace.sync_file(file);
                    }
                    fs::hard_link(self.kept(file), &path).expect("the name was cleared before");
                }
            }
        }
        state.is_power_gone = false;
        state.fail_at = None;
        state.faults.clear();
    }

    /// Removes every file of the old state, and the directories that the new one lacks.
    fn clear(&self, before: &[(PathBuf, Node)], after: &[(PathBuf, Node)]) {
        for (path, node) in before.iter().rev() {
            let full = self.root.join(path);
            let cleared = match node {
                Node::File(_) => fs::remove_file(&full),
                Node::Directory(_) if after.contains(&(path.clone(), *node)) => continue,
                Node::Directory(_) => fs::remove_dir_all(&full),
            };
            match cleared {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    panic!("clearing {full:?} failed: {error}")
                }
                _ => {}
            }
        }
    }

    fn kept(&self, file: usize) -> PathBuf {
        self.vault.join(file.to_string())
    }

    /// Replaces the kept contents by a torn copy; mappings of the old inode stay as they are.
    fn tear(&self, file: usize, choices: &Choices) {
        let kept = self.kept(file);
        let mut contents = fs::read(&kept).expect("the vault keeps every file");
        contents.truncate(choices.below(contents.len() as u64 + 1) as usize);
        for page in contents.chunks_mut(PAGE_BYTES) {
            if choices.below(2) == 0 {
                page.fill(0);
            }
        }
        fs::remove_file(&kept).expect("the vault is writable");
        fs::write(&kept, contents).expect("the vault is writable");
    }

    /// The names of a path below the root.
    ///
    /// # Panics
    /// If the path leaves the disk.
    fn names<'a>(&self, path: &'a Path) -> Vec<&'a str> {
        let inside = path.strip_prefix(&self.root).expect("the path lies on the crash disk");
        let name = |component: Component<'a>| match component {
            Component::Normal(name) => name.to_str().expect("names are UTF-8"),
            _ => panic!("{path:?} has components other than names"),
        };
        inside.components().map(name).collect()
    }

    /// The node at `path`; one that the disk has and the model lacks is added to the model.
    fn find(&self, state: &mut State, path: &Path) -> Option<Node> {
        let mut node = Node::Directory(Namespace::ROOT);
        let mut real = self.root.clone();
        for name in self.names(path) {
            let Node::Directory(directory) = node else { return None };
            real.push(name);
            node = match state.namespace.look_up(directory, name) {
                Some(known) => known,
                None => {
                    let is_directory = fs::symlink_metadata(&real).ok()?.is_dir();
                    let found = if is_directory {
                        Node::Directory(state.namespace.new_directory())
                    } else {
                        Node::File(self.keep(state, &real, true))
                    };
                    state.namespace.adopt(directory, name, found);
                    found
                }
            };
        }
        Some(node)
    }

    fn find_directory(
        &self,
        state: &mut State,
        operation: Operation,
        path: &Path,
    ) -> Result<usize, IoError> {
        match self.find(state, path) {
            Some(Node::Directory(directory)) => Ok(directory),
            _ => Err(IoError::NotFound { operation, path: path.to_path_buf() }),
        }
    }

    /// The directory in which `path` is a name, and that name.
    fn place(
        &self,
        state: &mut State,
        operation: Operation,
        path: &Path,
    ) -> Result<(usize, String), IoError> {
        let name = self.names(path).last().copied().expect("the root is not a target").to_owned();
        let parent = path.parent().expect("a name has a parent");
        Ok((self.find_directory(state, operation, parent)?, name))
    }

    fn keep(&self, state: &mut State, path: &Path, is_durable: bool) -> usize {
        let file = state.namespace.new_file(is_durable);
        fs::hard_link(path, self.kept(file)).expect("disk and vault share a file system");
        file
    }

    /// Counts a sync and lets it fail where that was planned.
    fn barrier(state: &mut State, operation: Operation, path: &Path) -> Result<(), IoError> {
        check_power(state, operation, path)?;
        let number = state.syncs;
        if state.fail_at.is_some_and(|planned| number >= planned) {
            state.is_power_gone = true;
            return check_power(state, operation, path);
        }
        state.syncs += 1;
        match take_fault(state, Fault::Sync(number)) {
            Some(kind) => Err(IoError::new(operation, path, kind.error())),
            None => Ok(()),
        }
    }

    fn powered(&self, operation: Operation, path: &Path) -> Result<(), IoError> {
        check_power(&self.state.lock(), operation, path)
    }
}

fn check_power(state: &State, operation: Operation, path: &Path) -> Result<(), IoError> {
    if state.is_power_gone {
        let source = io::Error::other("the power is gone");
        return Err(IoError::Failed { operation, path: path.to_path_buf(), source });
    }
    Ok(())
}

fn take_fault(state: &mut State, fault: Fault) -> Option<FaultKind> {
    let position = state.faults.iter().position(|(planned, _)| *planned == fault)?;
    Some(state.faults.swap_remove(position).1)
}
