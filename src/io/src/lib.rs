//! Disk access: the data directory, atomic files, mappings, checksummed blocks, and the blob store.
//!
//! This crate deals in bytes, names and durability. Segment and manifest formats belong to
//! `storage`.
//!
//! ```text
//! <data>/LOCK        flock; contains the pid of the process that holds it
//! <data>/tmp/<n>     files being written; emptied whenever the directory is opened
//! <data>/...         published files: complete, synced, never changed again
//!
//! write    contents -> tmp/<n> -> fsync -> rename or link into place -> fsync directory
//! read     path -> MappedFile -> BlockFile (checksums by pread) -> Bytes -> Archive (checked)
//! ```
//!
//! Invariants:
//! - A published file is never modified or truncated; a new version is a new inode. This is what
//!   makes mapping files sound.
//! - A file visible in the data directory is durable, or has not been reported as done yet.
//! - After a failed sync nothing is written until the directory is reopened, and a sync is never
//!   retried.
//! - No byte is handed out before its block has been verified, and no archive before it has been
//!   checked.
//! - An unreadable page does not kill the process: it reads as zeros and marks its file. Readers
//!   check that mark before they pass on what they read.
//!
//! Anything that touches the disk can fail with an error of the operating system; `# Errors`
//! sections list only the errors beyond those.
//!
//! Modules:
//! - `error`: errors with their path, and kinds by what the caller can do
//! - `disk`: the file system as an injectable component, and the real one
//! - `data_dir`: the process lock, permissions, temporary names, poisoning after a failed sync
//! - `publish`: the operations that change the data directory, with their cost in fsyncs
//! - `gauge`: how full the disk is, as a level; `reserve`: bytes and inodes set aside for a full
//!   disk
//! - `memory`: private memory of this process
//! - `priority`: lower priority for background threads, and the open file limit
//! - `mmap`: read-only mappings and zero-copy slices of them; `stable_bytes`: slices with a stable
//!   address for libraries; `faults`: handling of unreadable pages
//! - `blocks`: 64 KiB blocks, their checksums, verification before first use
//! - `slice`: parts of files, read piece by piece
//! - `spill`: requests and responses too large to buffer in memory
//! - `sealed`: small files made of a header line and a body, with or without a checksum
//! - `archive`: rkyv values read in place, with every part checked before use
//! - `store`: blobs by key, on top of all this
//! - `crash_disk`: a disk that loses power on demand (feature `testing`)
//! - `stand_in`: the real disk with hooks for tests (feature `testing`)

mod archive;
mod blocks;
mod cold;
#[cfg(feature = "testing")]
pub mod crash_disk;
mod data_dir;
mod disk;
mod error;
mod faults;
mod gauge;
mod memory;
mod mmap;
mod priority;
mod publish;
mod reserve;
pub mod sealed;
mod slice;
mod spill;
mod stable_bytes;
#[cfg(feature = "testing")]
mod stand_in;
pub mod store;

pub use archive::{Archive, encode};
pub use blocks::{BLOCK_BYTES, BlockFile, BlockHasher, checksum, checksums};
pub use cold::{major_faults, read_soon};
#[cfg(feature = "testing")]
pub use crash_disk::{CrashDisk, CrashMode, Fault, FaultKind, Moment};
pub use data_dir::DataDir;
pub use disk::{DirectoryEntry, Disk, RealDisk, Space, WriteContents};
pub use error::{IoError, Operation};
pub use gauge::{Fullness, SpaceGauge};
pub use memory::{MemoryGauge, ProcessMemory, memory_of_machine};
pub use mmap::MappedFile;
pub use priority::{raise_file_limit, run_in_background};
pub use publish::Created;
pub use slice::FileSlice;
pub use spill::{SPILL_MEMORY_BYTES, Spill, Spilled, SpilledFile, Spills};
pub use stable_bytes::StableBytes;
#[cfg(feature = "testing")]
pub use stand_in::StandInDisk;

#[cfg(test)]
mod tests;
