//! A reserve of bytes and inodes that deletions and starts can use when the disk is full.
//!
//! `<data>/reserve/` holds a file of incompressible bytes, and empty directories, each of which
//! takes an inode. When hardly anything is free, a start or a deletion releases the reserve, and
//! background work restores it once there is room. It is safe to delete by hand.

use std::io;
use std::path::Path;

use crate::{DataDir, Disk, IoError};

const NAME: &str = "reserve";
const BYTES_NAME: &str = "bytes";
/// Several times what a deletion writes: tombstones, a manifest, pages of the catalog's log.
const BYTES: usize = 4 << 20;
const FILES: u64 = 32;
/// Free bytes and inodes required before the reserve is created.
const FREE_BYTES_TO_MAKE: u64 = 4 * BYTES as u64;
const FREE_FILES_TO_MAKE: u64 = 1024;

impl DataDir {
    /// Creates the reserve if it is missing or incomplete and there is room for it. One fsync if it
    /// is created.
    ///
    /// # Errors
    /// [`IoError::Poisoned`]; after an error nothing is left of the reserve.
    pub fn keep_reserve(&self) -> Result<(), IoError> {
        let (disk, reserve) = (self.disk(), self.root().join(NAME));
        let space = disk.space(self.root())?;
        let has_room =
            space.free_bytes >= FREE_BYTES_TO_MAKE && space.free_files >= FREE_FILES_TO_MAKE;
        let bytes = reserve.join(BYTES_NAME);
        let is_there = disk.exists(&bytes)?;
        if !has_room || (is_there && disk.len(&bytes)? == BYTES as u64) {
            return Ok(());
        }
        self.check_not_poisoned()?;
        if is_there {
            // A partial file left by a process that was killed.
            disk.remove(&bytes)?;
        }
        let made = (|| {
            make_directory(&**disk, &reserve)?;
            for number in 0..FILES {
                make_directory(&**disk, &reserve.join(number.to_string()))?;
            }
            self.watch(disk.write_new(&bytes, &mut write_noise))
        })();
        made.map(drop).inspect_err(|_| drop(give_up(&**disk, self.root())))
    }

    /// Releases the reserve if hardly anything is free.
    pub fn make_room(&self) {
        make_room(&**self.disk(), self.root());
    }
}

/// Releases the reserve below `root` if hardly anything is free.
pub(super) fn make_room(disk: &dyn Disk, root: &Path) {
    // If the file system reports no sizes, keep the reserve: a write that does not fit fails by
    // itself.
    let is_full = disk.space(root).is_ok_and(|space| {
        let has_no_bytes = space.total_bytes > 0 && space.free_bytes < BYTES as u64 / 2;
        has_no_bytes || space.free_files < FILES / 2
    });
    if !is_full {
        return;
    }
    match give_up(disk, root) {
        Ok(true) => tracing::warn!("the disk is full: released the reserve for deletions"),
        Ok(false) => {}
        Err(error) => tracing::warn!(%error, "the disk is full, and releasing the reserve for \
            deletions failed"),
    }
}

/// Removes the reserve; returns whether there was one.
fn give_up(disk: &dyn Disk, root: &Path) -> Result<bool, IoError> {
    let reserve = root.join(NAME);
    if !disk.exists(&reserve)? {
        return Ok(false);
    }
    for entry in disk.list(&reserve)? {
        let path = reserve.join(&entry.name);
        match entry.is_directory {
            true => disk.remove_dir(&path)?,
            false => disk.remove(&path)?,
        }
    }
    disk.remove_dir(&reserve)?;
    Ok(true)
}

fn make_directory(disk: &dyn Disk, path: &Path) -> Result<(), IoError> {
    match disk.create_dir(path) {
        Ok(()) | Err(IoError::AlreadyExists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes the output of a linear congruential generator: incompressible, but not secret.
fn write_noise(out: &mut dyn io::Write) -> io::Result<()> {
    let mut state = 1_u64;
    for _ in 0..BYTES / 4 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.write_all(&((state >> 32) as u32).to_le_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Space, StandInDisk};

    /// Goal: the reserve exists while there is room, is released when nothing is free, and comes
    /// back.
    #[test]
    fn the_reserve_follows_the_free_space() {
        let root = tempfile::tempdir().unwrap();
        let disk = Arc::<StandInDisk>::default();
        let data = DataDir::open(root.path(), Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        let bytes = root.path().join("reserve/bytes");
        let ample = Space { total_bytes: 1 << 40, free_bytes: 1 << 39, free_files: 1 << 20 };
        let nearly_full = [Space { free_bytes: 9, ..ample }, Space { free_files: 1, ..ample }];
        for full in nearly_full {
            disk.pretend(ample);
            data.keep_reserve().unwrap();
            data.make_room();
            assert_eq!(std::fs::metadata(&bytes).unwrap().len(), BYTES as u64);
            let entries = std::fs::read_dir(root.path().join("reserve")).unwrap();
            assert_eq!(entries.count() as u64, FILES + 1);
            disk.pretend(full);
            data.make_room();
            data.keep_reserve().unwrap();
            assert!(!root.path().join("reserve").exists());
        }
    }

    fn pretended(space: Space) -> (tempfile::TempDir, Arc<StandInDisk>, DataDir) {
        let (root, disk) = (tempfile::tempdir().unwrap(), Arc::<StandInDisk>::default());
        let data = DataDir::open(root.path(), Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        disk.pretend(space);
        (root, disk, data)
    }

    const AMPLE: Space = Space { total_bytes: 1 << 40, free_bytes: 1 << 39, free_files: 1 << 20 };

    /// Goal: a reserve left incomplete by a kill is completed.
    #[test]
    fn a_part_of_a_reserve_does_not_pass_for_it() {
        let (root, _disk, data) = pretended(AMPLE);
        data.keep_reserve().unwrap();
        let bytes = root.path().join("reserve/bytes");
        std::fs::write(&bytes, "a part").unwrap();
        data.keep_reserve().unwrap();
        assert_eq!(std::fs::metadata(&bytes).unwrap().len(), BYTES as u64);
    }

    /// Goal: a file system that reports no sizes is not mistaken for a full one.
    #[test]
    fn a_disk_without_numbers_keeps_the_reserve() {
        let (root, disk, data) = pretended(AMPLE);
        data.keep_reserve().unwrap();
        disk.pretend(Space { total_bytes: 0, free_bytes: 0, free_files: u64::MAX });
        data.make_room();
        data.keep_reserve().unwrap();
        assert!(root.path().join("reserve/bytes").exists());
    }

    /// Goal: something else under the name of the reserve is not ours to delete, and a start on a
    /// full disk proceeds without the space that cannot be released.
    #[test]
    fn what_is_no_reserve_stays() {
        let (root, disk, data) = pretended(AMPLE);
        let place = root.path().join(NAME);
        std::os::unix::fs::symlink("nowhere", &place).unwrap();
        let error = data.keep_reserve().unwrap_err().to_string();
        assert!(error.starts_with("making directory") && error.contains("reserve/0"), "{error}");
        assert!(place.is_symlink() && !data.is_poisoned());
        std::fs::remove_file(&place).unwrap();
        std::fs::write(&place, "foreign").unwrap();
        disk.pretend(Space { free_bytes: 9, ..AMPLE });
        data.make_room();
        drop(data);
        DataDir::open(root.path(), Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"foreign");
    }
}
