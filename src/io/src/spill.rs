//! Requests and responses that are too large to be buffered in memory for a slow client.
//!
//! ```text
//! bytes -> 64 KiB in memory -> an unnamed file in tmp/ -> mapped, or read piece by piece
//! ```
//! The file is private to this process and disappears with its last user or with the process. The
//! total size of all files is limited, and so are those of one owner, which may also take no more
//! than remains free for others. None is written while the disk is full.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{DataDir, FileSlice, Fullness, IoError, MappedFile, Operation, SpaceGauge};

/// Bytes that wait in memory before they go to the file.
pub const SPILL_MEMORY_BYTES: usize = 64 << 10;
/// Limit on the size of all files together.
const BYTES_MAX: u64 = 16 << 30;
/// Limit on the files of one owner: enough for a few of the largest requests.
const OWNER_BYTES_MAX: u64 = 4 << 30;

/// The spill files of requests and responses in flight.
#[derive(Debug)]
pub struct Spills {
    data: Arc<DataDir>,
    gauge: Arc<SpaceGauge>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    owners: HashMap<Arc<str>, u64>,
}

impl Spills {
    /// Creates an empty set whose files go to the file system of `data`.
    pub fn new(data: Arc<DataDir>, gauge: Arc<SpaceGauge>) -> Arc<Self> {
        Arc::new(Self { data, gauge, held: Mutex::default() })
    }

    /// Starts buffering a request or response of `owner`.
    pub fn begin(self: &Arc<Self>, owner: &Arc<str>) -> Spill {
        let (spills, owner) = (Arc::clone(self), Arc::clone(owner));
        Spill { memory: Vec::new(), file: None, share: Share { spills, owner, bytes: 0 } }
    }

    /// Total bytes in the files of all owners.
    pub fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }
}

/// One owner's share of the file bytes; released on drop.
#[derive(Debug)]
struct Share {
    spills: Arc<Spills>,
    owner: Arc<str>,
    bytes: u64,
}

impl Share {
    fn grow(&mut self, bytes: u64) -> io::Result<()> {
        let mut held = self.spills.held.lock();
        let of_owner = held.owners.get(&self.owner).copied().unwrap_or(0) + bytes;
        let free = BYTES_MAX.saturating_sub(held.bytes + bytes);
        if of_owner > OWNER_BYTES_MAX.min(free) {
            let message = format!(
                "one tenant or key may have {OWNER_BYTES_MAX} bytes in flight, and no more than \
                 remain free of {BYTES_MAX}; try again later"
            );
            return Err(io::Error::new(ErrorKind::QuotaExceeded, message));
        }
        held.bytes += bytes;
        held.owners.insert(Arc::clone(&self.owner), of_owner);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.spills.held.lock();
        held.bytes -= self.bytes;
        if let Some(of_owner) = held.owners.get_mut(&self.owner) {
            *of_owner -= self.bytes;
            if *of_owner == 0 {
                held.owners.remove(&self.owner);
            }
        }
    }
}

/// Bytes being buffered.
#[derive(Debug)]
pub struct Spill {
    memory: Vec<u8>,
    file: Option<File>,
    share: Share,
}

impl Spill {
    /// Whether a write of this many bytes goes to memory only, and so does not block.
    pub fn fits(&self, bytes: usize) -> bool {
        self.memory.len() + bytes <= SPILL_MEMORY_BYTES
    }

    /// Whether no file has been created yet.
    pub fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Number of bytes so far.
    pub fn len(&self) -> u64 {
        self.share.bytes + self.memory.len() as u64
    }

    /// Whether nothing has been written yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finishes buffering and returns the complete bytes.
    ///
    /// # Errors
    /// Those of [`Write::write`].
    pub fn finish(mut self) -> Result<Spilled, IoError> {
        if self.file.is_none() {
            return Ok(Spilled::Memory(self.memory.into()));
        }
        let spills = Arc::clone(&self.share.spills);
        let path = spills.data.root();
        self.write_out(&[]).map_err(|e| IoError::new(Operation::Write, path, e))?;
        let Self { memory: _, file, share } = self;
        let file = FileSlice::of(file.expect("looked at above"), path)?;
        Ok(Spilled::File(SpilledFile { file, _share: Arc::new(share) }))
    }

    /// Moves the bytes in memory, and `more`, to the file.
    fn write_out(&mut self, more: &[u8]) -> io::Result<()> {
        let spills = &self.share.spills;
        if spills.gauge.level() >= Fullness::Full {
            return Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
        }
        let file = match &mut self.file {
            Some(file) => file,
            file => file.insert(spills.data.scratch().map_err(of_scratch)?),
        };
        self.share.grow((self.memory.len() + more.len()) as u64)?;
        file.write_all(&self.memory)?;
        file.write_all(more)?;
        self.memory.clear();
        Ok(())
    }
}

/// Converts the error of creating a file; running out of inodes counts as a full disk too.
fn of_scratch(error: IoError) -> io::Error {
    let is_full = matches!(error, IoError::StorageFull { .. });
    io::Error::new(if is_full { ErrorKind::StorageFull } else { ErrorKind::Other }, error)
}

impl Write for Spill {
    /// Accepts all bytes or fails: with [`ErrorKind::QuotaExceeded`] if the owner exceeds its limit
    /// or has more than remains free, and with [`ErrorKind::StorageFull`] if the disk is full.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.fits(bytes.len()) {
            true => self.memory.extend_from_slice(bytes),
            false => self.write_out(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A complete request or response.
#[derive(Debug, Clone)]
pub enum Spilled {
    /// Small enough to be in memory.
    Memory(Bytes),
    /// In a file.
    File(SpilledFile),
}

/// A request or response in an unnamed file. Clones share the file.
#[derive(Debug, Clone)]
pub struct SpilledFile {
    /// The contents.
    pub file: FileSlice,
    _share: Arc<Share>,
}

impl Spilled {
    /// Returns all bytes as one slice; a file is mapped, which costs page cache but no private
    /// memory.
    pub fn into_bytes(self) -> Result<Bytes, IoError> {
        match self {
            Self::Memory(bytes) => Ok(bytes),
            Self::File(spilled) => {
                let mapped = MappedFile::of_unnamed(&spilled.file)?;
                Ok(Bytes::from_owner(Mapped { mapped, _spilled: spilled }))
            }
        }
    }
}

struct Mapped {
    mapped: MappedFile,
    _spilled: SpilledFile,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.mapped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Space, StandInDisk};
    use lodestone_types::ManualClock;

    fn spills(disk: Arc<dyn crate::Disk>) -> (tempfile::TempDir, Arc<Spills>, Arc<ManualClock>) {
        let root = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(root.path(), disk).unwrap());
        let clock = Arc::new(ManualClock::default());
        let gauge = Arc::new(SpaceGauge::new(Arc::clone(&data), clock.clone()));
        let spills = Spills::new(data, gauge);
        (root, spills, clock)
    }

    #[test]
    fn a_disk_out_of_inodes_is_full() {
        let of = |errno| {
            let refused = io::Error::from_raw_os_error(errno);
            of_scratch(IoError::new(Operation::Create, std::path::Path::new("t"), refused)).kind()
        };
        assert_eq!(of(libc::ENOSPC), ErrorKind::StorageFull);
        assert_eq!(of(libc::EACCES), ErrorKind::Other);
    }

    #[test]
    fn short_bytes_stay_in_memory_and_long_ones_come_back_from_a_file_without_a_name() {
        let disk = StandInDisk::default();
        disk.pretend(Space { total_bytes: 1000, free_bytes: 900, free_files: u64::MAX });
        let (root, spills, _) = spills(Arc::new(disk));
        let owner: Arc<str> = "a".into();
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        for (length, piece) in [(0, 1), (1000, 7), (65_536, 4096), (65_537, 4096), (300_000, 999)] {
            let mut spill = spills.begin(&owner);
            for piece in bytes[..length].chunks(piece) {
                spill.write_all(piece).unwrap();
            }
            assert_eq!(spill.len(), length as u64);
            let spilled = spill.finish().unwrap();
            let is_file = matches!(spilled, Spilled::File(_));
            assert_eq!(is_file, length > SPILL_MEMORY_BYTES, "{length}");
            if let Spilled::File(spilled) = &spilled {
                let mut read = Vec::new();
                spilled.file.pieces(|piece| read.extend_from_slice(piece)).unwrap();
                assert_eq!(read, &bytes[..length]);
            }
            assert_eq!(std::fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
            assert_eq!(spilled.into_bytes().unwrap(), &bytes[..length]);
            assert_eq!(spills.bytes(), 0, "given back");
        }
    }

    #[test]
    fn owners_have_a_bound_and_a_full_disk_is_told() {
        let disk = Arc::new(StandInDisk::default());
        let (_root, spills, clock) = spills(disk.clone());
        let (first, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let share = |owner: &Arc<str>| spills.begin(owner).share;
        let mut of_first = share(&first);
        of_first.grow(OWNER_BYTES_MAX).unwrap();
        let error = share(&first).grow(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
        share(&other).grow(OWNER_BYTES_MAX).unwrap();
        drop(of_first);
        share(&first).grow(1).unwrap();
        assert!(spills.held.lock().owners.is_empty());
        disk.pretend(Space { total_bytes: 1000, free_bytes: 10, free_files: u64::MAX });
        clock.advance_millis(60_000);
        let mut spill = spills.begin(&first);
        spill.write_all(&[0; SPILL_MEMORY_BYTES]).unwrap();
        assert_eq!(spill.write_all(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    }

    /// Goal: however many owners have files, each of them leaves as much as it has to others.
    #[test]
    fn no_owner_has_more_than_is_left() {
        let (_root, spills, _) = spills(Arc::new(StandInDisk::default()));
        let share = |owner: &str| spills.begin(&Arc::from(owner)).share;
        let mut shares: Vec<Share> = ["a", "b", "c"].map(share).into();
        for share in &mut shares {
            share.grow(OWNER_BYTES_MAX).unwrap();
        }
        let mut left = BYTES_MAX - 3 * OWNER_BYTES_MAX;
        for owner in ["d", "e", "f", "g", "h", "i", "j", "k"] {
            let mut share = share(owner);
            let error = share.grow(left / 2 + 1).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
            assert_eq!(spills.bytes(), BYTES_MAX - left, "what was refused counts for nobody");
            share.grow(left / 2).unwrap();
            left -= left / 2;
            share.grow(1).unwrap_err();
            shares.push(share);
        }
        let mut spill = spills.begin(&Arc::from("last"));
        spill.write_all(&[0; 2 * SPILL_MEMORY_BYTES]).unwrap();
        drop(spill);
        drop(shares);
        assert_eq!(spills.bytes(), 0);
        assert!(spills.held.lock().owners.is_empty());
    }

    /// Goal: a caller that must not block can tell which write goes to a file; a flush never does.
    #[test]
    fn a_spill_tells_what_is_in_memory() {
        let disk = StandInDisk::default();
        disk.pretend(Space { total_bytes: 1000, free_bytes: 900, free_files: u64::MAX });
        let (_root, spills, _) = spills(Arc::new(disk));
        let mut spill = spills.begin(&Arc::from("a"));
        assert!(spill.is_empty() && spill.is_in_memory() && spill.fits(SPILL_MEMORY_BYTES));
        spill.write_all(b"x").unwrap();
        spill.flush().unwrap();
        assert!(!spill.is_empty() && spill.is_in_memory() && !spill.fits(SPILL_MEMORY_BYTES));
        assert_eq!(spills.bytes(), 0);
        spill.write_all(&[7; SPILL_MEMORY_BYTES]).unwrap();
        assert!(!spill.is_in_memory());
        assert_eq!((spill.len(), spills.bytes()), (65_537, 65_537));
    }
}
