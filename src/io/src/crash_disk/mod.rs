//! A disk that loses power on demand, for tests of all crates.
//!
//! Wraps a real directory and tracks what a power cut could undo: directory entries whose directory
//! has not been synced since, and contents that have not been synced. [`CrashDisk::crash`] puts the
//! real directory into one of the states that a power cut may leave behind, chosen by a seed.
//!
//! ```text
//! let disk = Arc::new(CrashDisk::new(temporary.path()));
//! disk.fail_at(n);                       // cut the power at sync number n
//! let _ = workload(disk.clone());        // runs into errors from there on
//! disk.crash(seed, CrashMode::Hostile);  // restore the power
//! verify(disk.clone());                  // everything acknowledged must be there
//! ```
//! A single run can cover all its cuts: [`CrashDisk::record`] captures the moment before each
//! change and each sync, [`CrashDisk::after_cut`] derives a state that a cut at such a moment may
//! leave behind, and [`CrashDisk::restore`] puts the real directory into that state.
//!
//! Files created without going through this disk (LOCK, the catalog) are left alone. A torn file
//! keeps a prefix of its length, and each 4 KiB page of that is either intact or zero. No flush is
//! issued to the real device, so thousands of cuts take seconds. Directories can only be renamed
//! within their parent.
//!
//! - `model`: tracks which names and contents have reached the device
//! - `operations`: the operations of [`crate::Disk`], on the real directory and on the model

mod model;
mod operations;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use self::model::{Choices, Inode, Namespace, Node};
use crate::{IoError, Operation};

/// Granularity of torn contents.
const PAGE_BYTES: usize = 4096;

/// Selects the unsynced operations that survive a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashMode {
    /// In each directory the oldest ones up to some point, as with a journalling file system.
    Prefix,
    /// Any subset: the worst that POSIX allows.
    Hostile,
}

/// The operation that an injected fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The n-th new file, counted from 0 like [`CrashDisk::writes`].
    Write(u64),
    /// The n-th sync, counted from 0 like [`CrashDisk::syncs`].
    Sync(u64),
}

/// The error that an injected fault reports.
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

/// The state of the disk at one moment: what is visible, and what of that a power cut could undo.
#[derive(Debug, Clone)]
pub struct Moment(Namespace);

impl Moment {
    /// Hashes all visible names and contents; equal states have equal hashes.
    pub fn fingerprint(&self) -> u64 {
        self.0.fingerprint()
    }
}

#[derive(Debug)]
struct State {
    namespace: Namespace,
    /// Moments before each change and sync, while recording.
    recorded: Option<Vec<Moment>>,
    /// Number of the next file in the vault.
    kept: u64,
    syncs: u64,
    writes: u64,
    fail_at: Option<u64>,
    is_power_gone: bool,
    faults: Vec<(Fault, FaultKind)>,
}

/// A disk that loses power on demand. Shared by reference; no other thread may be inside it during
/// [`CrashDisk::crash`].
#[derive(Debug)]
pub struct CrashDisk {
    root: PathBuf,
    /// Holds a hard link to every file for as long as that file can reappear.
    vault: PathBuf,
    state: Mutex<State>,
}

impl CrashDisk {
    /// Creates a disk that keeps its files in `base/disk`; `base/vault` is internal.
    ///
    /// # Panics
    /// If the two directories cannot be created.
    pub fn new(base: &Path) -> Self {
        let base = base.canonicalize().expect("the directory of a crash disk exists");
        let (root, vault) = (base.join("disk"), base.join("vault"));
        for directory in [&root, &vault] {
            fs::create_dir(directory).expect("the directory of a crash disk is empty");
        }
        let state = State {
            namespace: Namespace::new(),
            recorded: None,
            kept: 0,
            syncs: 0,
            writes: 0,
            fail_at: None,
            is_power_gone: false,
            faults: Vec::new(),
        };
        Self { root, vault, state: Mutex::new(state) }
    }

    /// The directory in which the server keeps its files, at any depth.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Syncs of files, directories and file systems so far.
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// New files so far, including failed ones.
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Plans a power cut at sync number `n` (counted from 0 since the disk was created): that sync
    /// and every operation after it fail until [`CrashDisk::crash`].
    pub fn fail_at(&self, n: u64) {
        self.state.lock().fail_at = Some(n);
    }

    /// Makes one operation fail, once, while the power stays on. Data that a failed sync should
    /// have written is lost, even if a second sync of the same thing reports success.
    pub fn inject(&self, fault: Fault, kind: FaultKind) {
        self.state.lock().faults.push((fault, kind));
    }

    /// Starts recording moments and discards those recorded before.
    pub fn record(&self) {
        self.state.lock().recorded = Some(Vec::new());
    }

    /// Number of moments recorded so far.
    pub fn recorded(&self) -> usize {
        self.state.lock().recorded.as_ref().map_or(0, Vec::len)
    }

    /// Stops recording; returns the moments before each change and each sync, and the current one.
    pub fn take_recorded(&self) -> Vec<Moment> {
        let mut state = self.state.lock();
        let mut moments = state.recorded.take().unwrap_or_default();
        moments.push(Moment(state.namespace.clone()));
        moments
    }

    /// Derives a legal state after a power cut at `moment`; deterministic in `seed`.
    ///
    /// # Panics
    /// If the vault cannot be read or written.
    pub fn after_cut(&self, moment: &Moment, seed: u64, mode: CrashMode) -> Moment {
        let choices = Choices::new(seed);
        let mut left = moment.0.clone();
        left.cut_power(&choices, mode, |whole| self.torn(whole, &choices));
        Moment(left)
    }

    /// Cuts and restores the power: the real directory takes a legal state after a cut at this
    /// moment, deterministic in `seed`. Planned faults are discarded, counters continue. Values
    /// that use the disk (a data directory) must be dropped before and opened again afterwards.
    ///
    /// # Panics
    /// If the real directory cannot be changed.
    pub fn crash(&self, seed: u64, mode: CrashMode) {
        let now = Moment(self.state.lock().namespace.clone());
        self.restore(&self.after_cut(&now, seed, mode));
    }

    /// Puts the real directory into a recorded state, with the power on. Otherwise like
    /// [`Self::crash`].
    ///
    /// # Panics
    /// If the real directory cannot be changed.
    pub fn restore(&self, moment: &Moment) {
        let mut state = self.state.lock();
        let (before, after) = (state.namespace.walk(), moment.0.walk());
        for (path, node) in before.iter().rev().filter(|named| !is_among(*named, &after)) {
            let full = self.root.join(path);
            let cleared = match node {
                Node::File(_) => fs::remove_file(&full),
                Node::Directory(_) => fs::remove_dir_all(&full),
            };
            match cleared {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    panic!("clearing {full:?} failed: {error}")
                }
                _ => {}
            }
        }
        for (path, node) in after.iter().filter(|named| !is_among(*named, &before)) {
            let full = self.root.join(path);
            match node {
                Node::File(file) => fs::hard_link(file.kept(), &full),
                Node::Directory(_) => fs::create_dir(&full),
            }
            .expect("the name is free, and its directory is there");
        }
        state.namespace = moment.0.clone();
        state.is_power_gone = false;
        state.fail_at = None;
        state.faults.clear();
    }

    /// Allocates a new file in the vault.
    fn new_file(&self, state: &mut State) -> Arc<Inode> {
        state.kept += 1;
        Inode::new(self.vault.join(state.kept.to_string()))
    }

    /// Makes a random remnant of unsynced contents after a power cut. Existing mappings of the
    /// whole file stay intact.
    fn torn(&self, whole: &Inode, choices: &Choices) -> Arc<Inode> {
        let mut contents = whole.contents();
        contents.truncate(choices.below(contents.len() as u64 + 1) as usize);
        for page in contents.chunks_mut(PAGE_BYTES) {
            if choices.below(2) == 0 {
                page.fill(0);
            }
        }
        let torn = self.new_file(&mut self.state.lock());
        fs::write(torn.kept(), contents).expect("the vault is writable");
        torn
    }

    /// The components of a path below the root.
    ///
    /// # Panics
    /// If the path lies outside the disk.
    fn names<'a>(&self, path: &'a Path) -> Vec<&'a str> {
        let inside = path.strip_prefix(&self.root).expect("the path lies on the crash disk");
        let name = |component: Component<'a>| match component {
            Component::Normal(name) => name.to_str().expect("names are UTF-8"),
            _ => panic!("{path:?} has components other than names"),
        };
        inside.components().map(name).collect()
    }

    /// Looks up the node at `path`; one that exists on the disk but not in the model is added to
    /// the model.
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
                        Node::File(self.keep(state, &real))
                    };
                    state.namespace.adopt(directory, name, found.clone());
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

    /// Splits `path` into its directory in the model and its name there.
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

    fn keep(&self, state: &mut State, path: &Path) -> Arc<Inode> {
        let file = self.new_file(state);
        fs::hard_link(path, file.kept()).expect("disk and vault share a file system");
        file
    }

    /// Locks the state for a change, after recording the moment before it.
    fn begin(&self, operation: Operation, path: &Path) -> Result<MutexGuard<'_, State>, IoError> {
        let mut state = self.state.lock();
        check_power(&state, operation, path)?;
        note(&mut state);
        Ok(state)
    }

    /// Counts a sync, and fails it if a fault was planned.
    fn barrier(state: &mut State, operation: Operation, path: &Path) -> Result<(), IoError> {
        check_power(state, operation, path)?;
        note(state);
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

/// Whether `others` has the same node under the same path.
fn is_among((path, node): (&PathBuf, &Node), others: &BTreeMap<PathBuf, Node>) -> bool {
    others.get(path).is_some_and(|other| other.is_same(node))
}

/// Records the current moment if recording is on.
fn note(state: &mut State) {
    if let Some(recorded) = &mut state.recorded {
        recorded.push(Moment(state.namespace.clone()));
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
