//! The operations of the disk, applied to the real directory first and then to the model.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::model::Node;
use super::{CrashDisk, Fault, FaultKind, check_power, take_fault};
use crate::WriteContents;
use crate::disk::write_unsynced;
use crate::{DirectoryEntry, Disk, FileSlice, IoError, MappedFile, Operation, RealDisk, Space};

/// A writer that accepts one byte and then fails.
struct FailingWriter<'a> {
    inner: &'a mut dyn Write,
    kind: FaultKind,
    has_taken: bool,
}

impl Write for FailingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.has_taken || bytes.is_empty() {
            return Err(self.kind.error());
        }
        self.has_taken = true;
        self.inner.write(&bytes[..1])
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.kind.error())
    }
}

impl Disk for CrashDisk {
    fn create_dir(&self, path: &Path) -> Result<(), IoError> {
        let operation = Operation::CreateDirectory;
        let mut state = self.begin(operation, path)?;
        let (parent, name) = self.place(&mut state, operation, path)?;
        RealDisk.create_dir(path)?;
        let made = Node::Directory(state.namespace.new_directory());
        state.namespace.change(parent, vec![(name, Some(made))]);
        Ok(())
    }

    fn write_new(&self, path: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError> {
        let fault = {
            let mut state = self.begin(Operation::Create, path)?;
            let number = state.writes;
            state.writes += 1;
            take_fault(&mut state, Fault::Write(number))
        };
        // The lock is not held while `write` runs: it may read from this disk.
        let mut is_made = false;
        let written = write_unsynced(path, &mut |out| {
            is_made = true;
            let Some(kind) = fault else { return write(out) };
            write(&mut FailingWriter { inner: out, kind, has_taken: false })?;
            Err(kind.error())
        });
        if !is_made {
            return written.map(|(_, length)| length);
        }
        let mut state = self.state.lock();
        let (parent, name) = self.place(&mut state, Operation::Create, path)?;
        let file = self.keep(&mut state, path);
        state.namespace.add_unsynced(Arc::clone(&file));
        state.namespace.change(parent, vec![(name, Some(Node::File(Arc::clone(&file))))]);
        let (_, length) = written?;
        Self::barrier(&mut state, Operation::SyncFile, path)?;
        state.namespace.sync_file(&file);
        Ok(length)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        let mut state = self.begin(Operation::Link, to)?;
        let node = self.find(&mut state, from);
        let (directory, name) = self.place(&mut state, Operation::Link, to)?;
        RealDisk.hard_link(from, to)?;
        state.namespace.change(directory, vec![(name, node)]);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        let operation = Operation::Rename;
        let mut state = self.begin(operation, to)?;
        let node = self.find(&mut state, from);
        let (old_directory, old_name) = self.place(&mut state, operation, from)?;
        let (new_directory, new_name) = self.place(&mut state, operation, to)?;
        RealDisk.rename(from, to)?;
        let is_directory = matches!(node, Some(Node::Directory(_)));
        let (gone, come) = ((old_name, None), (new_name, node));
        if old_directory == new_directory {
            state.namespace.change(new_directory, vec![gone, come]);
        } else {
            assert!(!is_directory, "not modelled: {from:?} to {to:?}");
            state.namespace.change(new_directory, vec![come]);
            state.namespace.change(old_directory, vec![gone]);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<(), IoError> {
        let mut state = self.begin(Operation::Remove, path)?;
        self.find(&mut state, path);
        let (directory, name) = self.place(&mut state, Operation::Remove, path)?;
        RealDisk.remove(path)?;
        state.namespace.change(directory, vec![(name, None)]);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<(), IoError> {
        let mut state = self.begin(Operation::Remove, path)?;
        self.find(&mut state, path);
        let (directory, name) = self.place(&mut state, Operation::Remove, path)?;
        RealDisk.remove_dir(path)?;
        state.namespace.change(directory, vec![(name, None)]);
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> Result<(), IoError> {
        let operation = Operation::SyncDirectory;
        let mut state = self.state.lock();
        check_power(&state, operation, path)?;
        let directory = self.find_directory(&mut state, operation, path)?;
        match Self::barrier(&mut state, operation, path) {
            Ok(()) => state.namespace.sync_directory(directory),
            Err(error) => {
                state.namespace.lose_directory(directory);
                return Err(error);
            }
        }
        Ok(())
    }

    fn sync_file_system(&self, path: &Path) -> Result<(), IoError> {
        let mut state = self.state.lock();
        Self::barrier(&mut state, Operation::SyncFileSystem, path)?;
        state.namespace.sync_everything();
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, IoError> {
        self.powered(Operation::List, path)?;
        RealDisk.list(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        self.powered(Operation::Inspect, path)?;
        RealDisk.exists(path)
    }

    fn len(&self, path: &Path) -> Result<u64, IoError> {
        self.powered(Operation::Inspect, path)?;
        RealDisk.len(path)
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.powered(Operation::Read, path)?;
        RealDisk.read(path)
    }

    fn open(&self, path: &Path) -> Result<FileSlice, IoError> {
        self.powered(Operation::Open, path)?;
        RealDisk.open(path)
    }

    fn map(&self, path: &Path) -> Result<MappedFile, IoError> {
        self.powered(Operation::Map, path)?;
        RealDisk.map(path)
    }

    fn space(&self, path: &Path) -> Result<Space, IoError> {
        self.powered(Operation::Inspect, path)?;
        RealDisk.space(path)
    }
}
