//! Errors of disk access.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use lodestone_types::ErrorKind;

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Creating a new file.
    Create,
    /// Opening an existing file.
    Open,
    /// Creating a directory.
    CreateDirectory,
    /// Writing to a new file.
    Write,
    /// Syncing a file's contents.
    SyncFile,
    /// Syncing a directory's entries.
    SyncDirectory,
    /// Syncing a whole file system.
    SyncFileSystem,
    /// Renaming a file.
    Rename,
    /// Creating a hard link.
    Link,
    /// Removing a name.
    Remove,
    /// Listing a directory.
    List,
    /// Querying length, type, permissions or free space.
    Inspect,
    /// Reading a file.
    Read,
    /// Mapping a file into memory.
    Map,
    /// Taking the process lock.
    Lock,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "creating",
            Self::Open => "opening",
            Self::CreateDirectory => "making directory",
            Self::Write => "writing",
            Self::SyncFile => "syncing file",
            Self::SyncDirectory => "syncing directory",
            Self::SyncFileSystem => "syncing the file system of",
            Self::Rename => "renaming to",
            Self::Link => "linking",
            Self::Remove => "removing",
            Self::List => "listing",
            Self::Inspect => "inspecting",
            Self::Read => "reading",
            Self::Map => "mapping",
            Self::Lock => "locking",
        })
    }
}

/// Errors of disk access. Every variant carries the path.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The name does not exist.
    #[error("{operation} {path:?} failed: no such file or directory")]
    NotFound {
        /// The operation.
        operation: Operation,
        /// The name.
        path: PathBuf,
    },
    /// The name is taken.
    #[error("{operation} {path:?} failed: the name is taken")]
    AlreadyExists {
        /// The operation.
        operation: Operation,
        /// The name.
        path: PathBuf,
    },
    /// The device is full or a quota is exhausted.
    #[error("{operation} {path:?} failed: no space left ({source})")]
    StorageFull {
        /// The operation.
        operation: Operation,
        /// The file or directory.
        path: PathBuf,
        /// ENOSPC or EDQUOT.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("{operation} {path:?} failed: {source}")]
    Failed {
        /// The operation.
        operation: Operation,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process holds the data directory.
    #[error("data directory {path:?} is in use by {}", holder_name(.holder))]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// The pid of the process that holds it, if it has been written.
        holder: Option<u32>,
    },
    /// An earlier sync failed: the state on the device is unknown until the directory is reopened.
    #[error("data directory {path:?} refuses writes after a failed sync: restart the server")]
    Poisoned {
        /// The data directory.
        path: PathBuf,
    },
    /// The file system lacks a feature that the layout needs.
    #[error("the file system of {path:?} does not support {feature}")]
    Unsupported {
        /// A path on that file system.
        path: PathBuf,
        /// The missing feature.
        feature: &'static str,
    },
    /// A block does not match its stored checksum.
    #[error(
        "{path:?} is damaged in block {block}: checksum {found:016x} instead of {expected:016x}"
    )]
    CorruptBlock {
        /// The file.
        path: PathBuf,
        /// Index of the block; block `i` begins at byte `i * BLOCK_BYTES`.
        block: usize,
        /// The stored checksum.
        expected: u64,
        /// The checksum of the bytes that were read.
        found: u64,
    },
    /// The lengths, ranges or structure of a file contradict each other.
    #[error("{path:?} is damaged: {problem}")]
    CorruptFile {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        problem: String,
    },
}

/// Whether a read failed because of the medium: a bad sector, or a block whose checksum the file
/// system found wrong.
fn is_of_medium(error: &io::Error) -> bool {
    const ERRORS: [i32; 5] =
        [libc::EIO, libc::EBADMSG, libc::EUCLEAN, libc::ENODATA, libc::EREMOTEIO];
    error.raw_os_error().is_some_and(|errno| ERRORS.contains(&errno))
}

fn holder_name(holder: &Option<u32>) -> String {
    match holder {
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    }
}

impl IoError {
    /// Classifies an error of the operating system. Writes and syncs work on open files, so they
    /// are never reported as a missing or existing name.
    pub fn new(operation: Operation, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        let has_name = !operation.is_sync() && operation != Operation::Write;
        match source.kind() {
            io::ErrorKind::NotFound if has_name => Self::NotFound { operation, path },
            io::ErrorKind::AlreadyExists if has_name => Self::AlreadyExists { operation, path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::StorageFull { operation, path, source }
            }
            _ => Self::Failed { operation, path, source },
        }
    }

    /// The error kind. A missing file is `NotFound` here; a caller that knows the file must exist
    /// reports `Corrupt` instead.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::AlreadyExists { .. } => ErrorKind::Conflict,
            Self::StorageFull { .. } => ErrorKind::StorageFull,
            Self::Failed { operation: Operation::Read, source, .. } if is_of_medium(source) => {
                ErrorKind::Corrupt
            }
            Self::Failed { .. } => ErrorKind::Internal,
            Self::InUse { .. } | Self::Poisoned { .. } | Self::Unsupported { .. } => {
                ErrorKind::Unavailable
            }
            Self::CorruptBlock { .. } | Self::CorruptFile { .. } => ErrorKind::Corrupt,
        }
    }

    /// Whether it is now unknown what would survive a power cut, so that the writer must refuse all
    /// further writes. A retried fsync may report success although the pages are lost
    /// (<https://lwn.net/Articles/752063/>), hence no retry. Running out of space while syncing a
    /// temporary file leaves no doubt: the file was never published and is thrown away.
    pub fn must_poison(&self) -> bool {
        match self {
            Self::Failed { operation, .. } => operation.is_sync(),
            Self::StorageFull { operation, .. } => {
                operation.is_sync() && *operation != Operation::SyncFile
            }
            Self::NotFound { .. }
            | Self::AlreadyExists { .. }
            | Self::InUse { .. }
            | Self::Poisoned { .. }
            | Self::Unsupported { .. }
            | Self::CorruptBlock { .. }
            | Self::CorruptFile { .. } => false,
        }
    }
}

impl IoError {
    /// Whether the operation failed before a published file could get its name, so that nothing was
    /// published, for example when the process is out of descriptors.
    pub fn precedes_a_name(&self) -> bool {
        use Operation::{Create, CreateDirectory, Inspect, Open, Write};
        let Self::Failed { operation, .. } = self else { return false };
        matches!(operation, Create | CreateDirectory | Inspect | Open | Write)
    }
}

impl Operation {
    /// Whether this is one of the three sync operations.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::SyncFile | Self::SyncDirectory | Self::SyncFileSystem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raised(operation: Operation, errno: i32) -> IoError {
        IoError::new(operation, Path::new("/d/f"), io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn full_devices_and_quotas_differ_from_other_errors() {
        for errno in [libc::ENOSPC, libc::EDQUOT] {
            assert_eq!(raised(Operation::Write, errno).kind(), ErrorKind::StorageFull);
        }
        assert_eq!(raised(Operation::Write, libc::EIO).kind(), ErrorKind::Internal);
        assert_eq!(raised(Operation::Read, libc::EIO).kind(), ErrorKind::Corrupt, "a bad sector");
        assert_eq!(raised(Operation::Read, libc::EACCES).kind(), ErrorKind::Internal);
        assert_eq!(raised(Operation::Read, libc::ENOENT).kind(), ErrorKind::NotFound);
        assert_eq!(raised(Operation::Link, libc::EEXIST).kind(), ErrorKind::Conflict);
    }

    #[test]
    fn only_failed_barriers_poison() {
        assert!(raised(Operation::SyncFile, libc::EIO).must_poison());
        assert!(raised(Operation::SyncDirectory, libc::EIO).must_poison());
        assert!(raised(Operation::SyncDirectory, libc::ENOSPC).must_poison());
        assert!(!raised(Operation::SyncFile, libc::ENOSPC).must_poison());
        assert!(!raised(Operation::Write, libc::EIO).must_poison());
        let no_descriptor = raised(Operation::Open, libc::EMFILE);
        assert!(!no_descriptor.must_poison() && no_descriptor.precedes_a_name());
        assert!(!raised(Operation::Link, libc::EIO).precedes_a_name());
    }

    #[test]
    fn messages_name_the_file_and_the_block() {
        let path = PathBuf::from("/d/a.seg");
        let error = IoError::CorruptBlock { path, block: 7, expected: 1, found: 2 };
        let text = error.to_string();
        assert!(text.contains("a.seg") && text.contains("block 7"), "{text}");
        let text = raised(Operation::Write, libc::ENOSPC).to_string();
        assert!(text.starts_with("writing \"/d/f\" failed: no space left"), "{text}");
    }

    /// Goal: messages tell an operator what was attempted, on what, and why it failed.
    #[test]
    fn messages_name_the_operation() {
        use Operation::*;
        let said = [
            (Create, "creating"),
            (Open, "opening"),
            (CreateDirectory, "making directory"),
            (Write, "writing"),
            (SyncFile, "syncing file"),
            (SyncDirectory, "syncing directory"),
            (SyncFileSystem, "syncing the file system of"),
            (Rename, "renaming to"),
            (Link, "linking"),
            (Remove, "removing"),
            (List, "listing"),
            (Inspect, "inspecting"),
            (Read, "reading"),
            (Map, "mapping"),
            (Lock, "locking"),
        ];
        for (operation, words) in said {
            let text = raised(operation, libc::EACCES).to_string();
            let expected = format!("{words} \"/d/f\" failed: ");
            assert!(text.starts_with(&expected) && text.contains("ermission"), "{text}");
        }
    }

    /// Goal: writes and syncs are never reported as a missing or existing name, since an open file
    /// has none; so a caller that carries on when a name is free or gone does not carry on after
    /// such an error.
    #[test]
    fn writes_and_syncs_miss_no_names() {
        for operation in [Operation::Write, Operation::SyncFile, Operation::SyncDirectory] {
            for errno in [libc::ENOENT, libc::EEXIST] {
                let error = raised(operation, errno);
                assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
                assert_eq!(error.must_poison(), operation.is_sync(), "{error}");
            }
        }
    }
}
