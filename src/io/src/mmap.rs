//! Read-only mappings of published files.

use std::fmt;
use std::fs::File;
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use memmap2::{Advice, Mmap};

use crate::faults::Watch;
use crate::{FileSlice, IoError, Operation};

/// A whole file, mapped read-only. Clones and slices share the mapping, which ends with the last of
/// them; the file may have been unlinked by then.
///
/// A page that cannot be read, because its sector is bad or the file was truncated, reads as zeros,
/// and [`Self::has_faulted`] reports it from then on.
#[derive(Clone)]
pub struct MappedFile {
    path: Arc<Path>,
    file: Arc<File>,
    mapping: Arc<Mapping>,
    contents: Bytes,
}

/// A mapping and its registration with the fault handler. Fields drop in order, so the registration
/// ends first.
struct Mapping {
    watch: Watch,
    mapped: Mmap,
}

/// Owner of a mapping's bytes.
struct Contents(Arc<Mapping>);

impl AsRef<[u8]> for Contents {
    fn as_ref(&self) -> &[u8] {
        &self.0.mapped
    }
}

impl MappedFile {
    /// Maps the file at `path`, which must have been published by this or an earlier process (see
    /// `publish.rs`). Reads none of it. The mapping is page-aligned, so offsets keep their
    /// alignment up to 4 KiB. The file stays open while it is mapped.
    ///
    /// # Errors
    /// [`IoError::NotFound`], or errors of opening and mapping.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        let file = File::open(path).map_err(|e| IoError::new(Operation::Map, path, e))?;
        // Files are published complete under a temporary name and renamed or linked into place
        // (publish.rs guarantees it: nothing in this crate opens an existing file for writing).
        // They are never changed afterwards, only replaced by another inode, and unlinked only
        // after the last snapshot drops, which leaves the inode to this mapping. The flock on LOCK
        // keeps out other instances of the server, and mode 0700 other users. The remaining cases:
        // someone with our rights who truncates a file by hand, and sectors that go bad, turn pages
        // into zeros (faults.rs); someone who edits a file changes bytes after they were verified.
        #[allow(unsafe_code)]
        // SAFETY: a mapping is sound while its file is neither changed nor truncated; see above.
        let mapped = unsafe { Mmap::map(&file) };
        let mapped = mapped.map_err(|e| IoError::new(Operation::Map, path, e))?;
        Ok(Self::watched(path, file, mapped))
    }

    /// Maps an unnamed file that is no longer written to.
    ///
    /// # Errors
    /// Errors of mapping.
    pub(super) fn of_unnamed(file: &FileSlice) -> Result<Self, IoError> {
        // SAFETY: this process created the file without a name, so nobody else can open it, and its
        // only handle is inside the slice, which only reads: the file is neither changed nor
        // truncated while the mapping lives.
        #[allow(unsafe_code)]
        let mapped = unsafe { Mmap::map(file.file()) };
        let failed = |e| IoError::new(Operation::Map, file.path(), e);
        let handle = file.file().try_clone().map_err(failed)?;
        Ok(Self::watched(file.path(), handle, mapped.map_err(failed)?))
    }

    fn watched(path: &Path, file: File, mapped: Mmap) -> Self {
        let mapping = Arc::new(Mapping { watch: Watch::new(&mapped), mapped });
        let contents = Bytes::from_owner(Contents(Arc::clone(&mapping)));
        Self { path: path.into(), file: Arc::new(file), mapping, contents }
    }

    /// A weak reference that can be upgraded while any clone of this mapping lives.
    pub fn holders(&self) -> Weak<File> {
        Arc::downgrade(&self.file)
    }

    /// The file's path when it was mapped, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes of `range` without copying; they keep the mapping alive. The bytes are
    /// unverified: data goes through [`crate::BlockFile`].
    ///
    /// # Panics
    /// If the range is outside the file.
    pub fn bytes(&self, range: Range<usize>) -> Bytes {
        self.contents.slice(range)
    }

    /// Disables read-ahead for `range`, for data of which single rows are read: pages loaded
    /// alongside would displace useful ones from memory. Has no effect on systems that do not
    /// support it.
    pub fn expect_single_reads(&self, range: Range<usize>) {
        let advised = self.mapping.mapped.advise_range(Advice::Random, range.start, range.len());
        if let Err(error) = advised {
            tracing::debug!(%error, path = %self.path.display(), "no advice is taken");
        }
    }

    /// Whether any part of the mapping could not be read and was replaced by zeros. To be checked
    /// after reading, before what was read is passed on.
    pub fn has_faulted(&self) -> bool {
        self.mapping.watch.has_faulted()
    }

    /// Whether the file still has its full length. If it was truncated, the rest of its last page
    /// reads as zeros, which the fault handler does not notice.
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.len() >= self.contents.len() as u64)
    }

    /// Fills `buffer` from the file, bypassing the mapping, so that a bad sector is reported as an
    /// error.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if the file is shorter than when it was mapped.
    pub fn read_at(&self, offset: usize, buffer: &mut [u8]) -> Result<(), IoError> {
        self.file.read_exact_at(buffer, offset as u64).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                let problem = format!("it ends before byte {}", offset + buffer.len());
                IoError::CorruptFile { path: self.path.to_path_buf(), problem }
            }
            _ => IoError::new(Operation::Read, &self.path, error),
        })
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.contents
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.contents.len();
        f.debug_struct("MappedFile").field("path", &self.path).field("bytes", &bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_outlive_the_mapping_and_the_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"0123456789").unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        let part = mapped.bytes(2..5);
        assert_eq!(part.as_ptr(), mapped[2..].as_ptr(), "not a copy");
        std::fs::remove_file(&path).unwrap();
        drop(mapped);
        assert_eq!(&part[..], b"234");
    }

    #[test]
    fn empty_files_map_to_nothing_and_missing_ones_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("empty");
        std::fs::write(&path, b"").unwrap();
        assert!(MappedFile::open(&path).unwrap().is_empty());
        let missing = MappedFile::open(&directory.path().join("none")).unwrap_err();
        assert!(matches!(missing, IoError::NotFound { .. }), "{missing}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_part_of_which_single_reads_are_expected_is_read_by_the_page() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        std::fs::write(&path, vec![7; 64 << 12]).unwrap();
        let mapped = MappedFile::open(&path).unwrap();
        mapped.expect_single_reads(8 << 12..24 << 12);
        // The kernel now treats that part as a separate mapping, flagged "rr".
        let start = mapped.as_ptr().addr() + (8 << 12);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let part = maps.split_once(&format!("{start:x}-{:x} ", start + (16 << 12))).unwrap().1;
        let flags = part.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
        assert!(flags.contains(" rr"), "{flags}");
        assert!(mapped.iter().all(|byte| *byte == 7));
    }

    /// Goal: a missing page reads as zeros and marks its own mapping only.
    #[test]
    fn a_mapping_survives_a_file_that_was_cut() {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, vec![7; 5 << 20]).unwrap();
            MappedFile::open(&path).unwrap()
        };
        let (cut, whole) = (open("cut"), open("whole"));
        let file = File::options().write(true).open(cut.path()).unwrap();
        file.set_len(100_000).unwrap();
        assert!(!cut.has_faulted(), "nothing was read yet");
        assert_eq!(cut[0], 7);
        assert!(!cut.has_faulted(), "this page is there");
        // The last page first, then all of them from several threads: each fault is handled.
        assert_eq!(cut[cut.len() - 1], 0);
        assert!(cut.has_faulted());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(cut.iter().step_by(4096).all(|byte| [0, 7].contains(byte))));
            }
        });
        let error = cut.read_at(0, &mut [0; 100_001]).unwrap_err();
        assert!(matches!(error, IoError::CorruptFile { .. }), "{error}");
        assert!(whole.iter().all(|byte| *byte == 7) && !whole.has_faulted());

        let slice = cut.bytes(4_000_000..4_000_010);
        drop(cut);
        assert_eq!(&slice[..], [0; 10], "the slice keeps the mapping");
        drop(slice);
        let again = open("cut");
        assert!(again.iter().all(|byte| *byte == 7));
        assert!(!again.has_faulted(), "a mark does not stay");
    }

    /// Goal: what tenants have stored does not get into logs.
    #[test]
    fn what_is_printed_is_the_name_and_the_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        std::fs::write(&path, b"0123456789").unwrap();
        let shown = format!("{:?}", MappedFile::open(&path).unwrap());
        assert!(shown.contains(path.to_str().unwrap()) && shown.contains("bytes: 10"), "{shown}");
        assert!(!shown.contains("0123456789"), "{shown}");
    }
}
