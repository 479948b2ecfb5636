//! The real disk with hooks for tests: callbacks before each read, each whole-file read, each
//! removal and each query of free space, simulated free space, and refusal of hard links.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    DirectoryEntry, Disk, FileSlice, IoError, MappedFile, Operation, RealDisk, Space, WriteContents,
};

type Act = dyn Fn(&Path) + Send + Sync;

/// A disk with hooks for tests; see the module.
#[derive(Default)]
pub struct StandInDisk {
    before_read: Mutex<Option<Arc<Act>>>,
    before_whole_read: Mutex<Option<Arc<Act>>>,
    before_remove: Mutex<Option<Arc<Act>>>,
    before_space: Mutex<Option<Arc<Act>>>,
    space: Mutex<Option<Space>>,
    links: Mutex<Option<i32>>,
}

impl StandInDisk {
    /// Calls `act` with the path of each file about to be read, from now on.
    pub fn before_read(&self, act: impl Fn(&Path) + Send + Sync + 'static) {
        *self.before_read.lock() = Some(Arc::new(act));
    }

    /// Calls `act` with the path of each file about to be read into memory as a whole, from now on.
    pub fn before_whole_read(&self, act: impl Fn(&Path) + Send + Sync + 'static) {
        *self.before_whole_read.lock() = Some(Arc::new(act));
    }

    /// Calls `act` with the path of each file about to be removed, from now on.
    pub fn before_remove(&self, act: impl Fn(&Path) + Send + Sync + 'static) {
        *self.before_remove.lock() = Some(Arc::new(act));
    }

    /// Calls `act` before each query of free space, from now on.
    pub fn before_space(&self, act: impl Fn(&Path) + Send + Sync + 'static) {
        *self.before_space.lock() = Some(Arc::new(act));
    }

    /// Reports this space from now on.
    pub fn pretend(&self, space: Space) {
        *self.space.lock() = Some(space);
    }

    /// Refuses hard links with this errno from now on.
    pub fn refuse_links(&self, errno: i32) {
        *self.links.lock() = Some(errno);
    }

    fn act(&self, path: &Path) {
        let act = self.before_read.lock().clone();
        if let Some(act) = act {
            act(path);
        }
    }
}

impl fmt::Debug for StandInDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandInDisk").finish_non_exhaustive()
    }
}

impl Disk for StandInDisk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.act(path);
        let act = self.before_whole_read.lock().clone();
        if let Some(act) = act {
            act(path);
        }
        RealDisk.read(path)
    }
    fn open(&self, path: &Path) -> Result<FileSlice, IoError> {
        self.act(path);
        RealDisk.open(path)
    }
    fn space(&self, path: &Path) -> Result<Space, IoError> {
        let act = self.before_space.lock().clone();
        if let Some(act) = act {
            act(path);
        }
        let pretended = *self.space.lock();
        pretended.map_or_else(|| RealDisk.space(path), Ok)
    }
    fn create_dir(&self, path: &Path) -> Result<(), IoError> {
        RealDisk.create_dir(path)
    }
    fn write_new(&self, path: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError> {
        RealDisk.write_new(path, write)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        let refused = self.links.lock().map(io::Error::from_raw_os_error);
        refused.map_or_else(
            || RealDisk.hard_link(from, to),
            |error| Err(IoError::new(Operation::Link, to, error)),
        )
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<(), IoError> {
        let act = self.before_remove.lock().clone();
        if let Some(act) = act {
            act(path);
        }
        RealDisk.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<(), IoError> {
        RealDisk.remove_dir(path)
    }
    fn sync_dir(&self, path: &Path) -> Result<(), IoError> {
        RealDisk.sync_dir(path)
    }
    fn sync_dir_after(
        &self,
        path: &Path,
        change: &mut dyn FnMut() -> Result<(), IoError>,
    ) -> Result<(), IoError> {
        RealDisk.sync_dir_after(path, change)
    }
    fn sync_file_system(&self, path: &Path) -> Result<(), IoError> {
        RealDisk.sync_file_system(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, IoError> {
        RealDisk.list(path)
    }
    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        RealDisk.exists(path)
    }
    fn len(&self, path: &Path) -> Result<u64, IoError> {
        RealDisk.len(path)
    }
    fn map(&self, path: &Path) -> Result<MappedFile, IoError> {
        RealDisk.map(path)
    }
}
