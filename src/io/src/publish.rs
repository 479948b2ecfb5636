//! The only operations that change the data directory: whole files are added or removed.
//!
//! ```text
//! publish           tmp/n: write, fsync -> rename to target     -> fsync directory of target
//! create_exclusive  tmp/n: write, fsync -> link to target, once -> fsync directory of target
//! remove_many                              unlink targets       -> fsync their directories
//! ```
//! Guarantees hold across power cuts, not only for killed processes: after `Ok` the change
//! survives; after an error, or a cut in the middle, the target is in its old or its new state,
//! never in between and never torn. Fsync counts are per call; each directory that has to be
//! created costs one more, for its parent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{DataDir, IoError, WriteContents};

/// Outcome of creating a file that must not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The name was free; it now refers to our bytes.
    Won,
    /// The name was taken; the existing bytes are durable.
    Exists,
}

/// A file in `tmp/`, removed on drop unless it has been moved to its target.
struct TemporaryFile<'a> {
    owner: &'a DataDir,
    path: PathBuf,
    is_moved: bool,
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_moved {
            // If removal fails now, the next open removes the file.
            let _ = self.owner.disk.remove(&self.path);
        }
    }
}

impl TemporaryFile<'_> {
    fn move_to(&mut self, target: &Path) -> Result<(), IoError> {
        self.owner.disk.rename(&self.path, target)?;
        self.is_moved = true;
        Ok(())
    }
}

impl DataDir {
    /// Creates or atomically replaces the file at `target`, along with missing directories. Returns
    /// its length in bytes. Two fsyncs.
    ///
    /// # Errors
    /// [`IoError::Poisoned`], or the error that `write` returned.
    pub fn publish(&self, target: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError> {
        self.check_not_poisoned()?;
        let directory = self.directory_of(target);
        self.ensure_directories(&BTreeSet::from([directory]))?;
        let (mut temporary, length) = self.write_temporary(write)?;
        let mut publish = || temporary.move_to(target);
        self.watch(self.disk.sync_dir_after(directory, &mut publish))?;
        Ok(length)
    }

    /// Publishes many small files like [`Self::publish`]. Not atomic as a whole: after a cut any of
    /// them may exist. One fsync per file and one per directory.
    ///
    /// # Errors
    /// Those of [`Self::publish`]; some of the files may exist afterwards.
    pub fn publish_many(&self, files: &[(PathBuf, &[u8])]) -> Result<(), IoError> {
        self.check_not_poisoned()?;
        let directories = files.iter().map(|(target, _)| self.directory_of(target)).collect();
        self.ensure_directories(&directories)?;
        let mut written = Vec::with_capacity(files.len());
        for (target, contents) in files {
            let (temporary, _) = self.write_temporary(&mut |out| out.write_all(contents))?;
            written.push((temporary, target));
        }
        for (mut temporary, target) in written {
            temporary.move_to(target)?;
        }
        self.sync_directories(&directories)
    }

    /// Creates a file at `target` only if the name is free; of concurrent callers exactly one wins.
    /// Two fsyncs, or one if the name is already taken. `Exists` is returned only for a durable
    /// name, which costs the loser a sync too.
    ///
    /// # Errors
    /// Those of [`Self::publish`]. After a failed sync it is unknown whether the name is taken.
    pub fn create_exclusive(
        &self,
        target: &Path,
        write: &mut WriteContents<'_>,
    ) -> Result<Created, IoError> {
        self.check_not_poisoned()?;
        let directory = self.directory_of(target);
        self.ensure_directories(&BTreeSet::from([directory]))?;
        if self.disk.exists(target)? {
            self.watch(self.disk.sync_dir(directory))?;
            return Ok(Created::Exists);
        }
        let (temporary, _) = self.write_temporary(write)?;
        let mut created = Created::Won;
        let mut create = || match self.disk.hard_link(&temporary.path, target) {
            Err(IoError::AlreadyExists { .. }) => {
                created = Created::Exists;
                Ok(())
            }
            linked => linked,
        };
        self.watch(self.disk.sync_dir_after(directory, &mut create))?;
        Ok(created)
    }

    /// Removes files; missing ones count as removed. One fsync per directory named, even if nothing
    /// was there: whoever removed the file may not have synced yet.
    ///
    /// # Errors
    /// [`IoError::Poisoned`]; after an error some of the files may be gone.
    pub fn remove_many(&self, targets: &[PathBuf]) -> Result<(), IoError> {
        self.check_not_poisoned()?;
        for target in targets {
            ignore_missing(self.disk.remove(target))?;
        }
        let directories: BTreeSet<_> = targets.iter().map(|t| self.directory_of(t)).collect();
        for directory in directories {
            ignore_missing(self.watch(self.disk.sync_dir(directory)))?;
        }
        Ok(())
    }

    /// Removes a directory and everything below it; a missing one counts as removed. No file may be
    /// created there concurrently. One fsync, of the parent, after which nothing below is
    /// reachable.
    ///
    /// # Errors
    /// [`IoError::Poisoned`]; after an error a part may be gone.
    pub fn remove_tree(&self, target: &Path) -> Result<(), IoError> {
        self.check_not_poisoned()?;
        if self.disk.exists(target)? {
            self.remove_contents(target)?;
            ignore_missing(self.disk.remove_dir(target))?;
        }
        ignore_missing(self.watch(self.disk.sync_dir(self.directory_of(target))))
    }

    /// Removes the contents of a directory without syncing it.
    pub(super) fn remove_contents(&self, directory: &Path) -> Result<(), IoError> {
        for entry in self.disk.list(directory)? {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                self.remove_contents(&path)?;
                ignore_missing(self.disk.remove_dir(&path))?;
            } else {
                ignore_missing(self.disk.remove(&path))?;
            }
        }
        Ok(())
    }

    fn directory_of<'a>(&self, target: &'a Path) -> &'a Path {
        assert!(target.starts_with(&self.root), "{target:?} lies in the data directory");
        target.parent().expect("a target has a name below the data directory")
    }

    fn write_temporary(
        &self,
        write: &mut WriteContents<'_>,
    ) -> Result<(TemporaryFile<'_>, u64), IoError> {
        let path = self.temporary_path();
        let temporary = TemporaryFile { owner: self, path, is_moved: false };
        let length = self.watch(self.disk.write_new(&temporary.path, write))?;
        Ok((temporary, length))
    }

    fn sync_directories(&self, directories: &BTreeSet<&Path>) -> Result<(), IoError> {
        for directory in directories {
            self.watch(self.disk.sync_dir(directory))?;
        }
        Ok(())
    }

    /// Creates missing directories and returns once each of them is durable.
    ///
    /// A directory that another thread has created but not yet synced exists for everybody, so
    /// existence alone guarantees nothing: it stays in `unsynced_directories` until its creator has
    /// synced the parent, and any other caller that finds it there syncs the parent too.
    /// Directories from before this process are durable, because opening ends with a sync of the
    /// file system.
    ///
    /// If one of them cannot be created, those created before it are synced all the same: nobody
    /// else would take them out of `unsynced_directories`.
    fn ensure_directories(&self, directories: &BTreeSet<&Path>) -> Result<(), IoError> {
        let (mut parents, mut made) = (BTreeSet::new(), Vec::new());
        let result = self.make_directories(directories, &mut parents, &mut made);
        self.sync_directories(&parents)?;
        let mut unsynced = self.unsynced_directories.lock();
        for step in made {
            unsynced.remove(step);
        }
        result
    }

    /// Creates missing directories; collects the parents to sync and the directories created.
    fn make_directories<'a>(
        &self,
        directories: &BTreeSet<&'a Path>,
        parents: &mut BTreeSet<&'a Path>,
        made: &mut Vec<&'a Path>,
    ) -> Result<(), IoError> {
        let mut unsynced = self.unsynced_directories.lock();
        for directory in directories {
            if unsynced.is_empty() && self.disk.exists(directory)? {
                continue;
            }
            let below_root = directory.ancestors().take_while(|step| *step != self.root);
            let mut steps: Vec<&Path> = below_root.collect();
            steps.reverse();
            for step in steps {
                if !self.disk.exists(step)? {
                    self.disk.create_dir(step)?;
                    unsynced.insert(step.to_path_buf());
                    made.push(step);
                }
                if unsynced.contains(step) {
                    parents.insert(self.directory_of(step));
                }
            }
        }
        Ok(())
    }
}

fn ignore_missing(result: Result<(), IoError>) -> Result<(), IoError> {
    match result {
        Err(IoError::NotFound { .. }) => Ok(()),
        other => other,
    }
}
