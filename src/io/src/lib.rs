//! Disk access: the data directory, atomic files, mappings, checksummed blocks, and the blob store.
//!
//! It knows bytes, names and durability. Formats of segments and manifests belong to `storage`.
//!
//! ```text
//! <data>/LOCK        flock and the number of the process that holds it
//! <data>/tmp/<n>     files being written; emptied whenever the directory is opened
//! <data>/...         published files: complete, synced, never changed again
//!
//! write    contents -> tmp/<n> -> fsync -> rename or link into place -> fsync directory
//! read     path -> MappedFile -> BlockFile (checksums by pread) -> Bytes -> Archive (checked)
//! ```
//!
//! Invariants:
//! - A published file is never modified or shortened; a new version is a new inode. Mapping is
//!   sound because of it.
//! - A visible file in the data directory is durable, or was not yet reported as done.
//! - After a failed sync nothing is written until the directory is opened again, and a sync is
//!   never tried twice.
//! - No byte of data is handed on before its block was verified; no archive before it was checked.
//! - A page that cannot be read does not end the process: it is zeros and a mark on its file, for
//!   which a reader asks before passing on what was read.
//!
//! Errors: whatever touches the disk can fail with the system's error; a section on errors names
//! what comes on top.
//!
//! Modules:
//! - `error`: errors with their path, and kinds by the caller's remedy
//! - `disk`: the file system as a component, and the real one
//! - `data_dir`: the lock, the mode, temporary names, poisoning after a failed sync
//! - `publish`: the operations that change the data directory, with their cost in fsyncs
//! - `gauge`: fullness of the disk as a level; `reserve`: bytes and files for a full one
//! - `memory`: private memory of this process
//! - `priority`: lower priority for background threads, the limit of open files
//! - `mmap`: read-only mappings and zero-copy slices of them; `stable_bytes`: slices that libraries
//!   may refer to; `faults`: pages that cannot be read
//! - `blocks`: 64 KiB blocks, their checksums, verification before first use
//! - `slice`: parts of files, read piece by piece
//! - `spill`: requests and answers that are too large to wait in memory
//! - `sealed`: small files of a first line and a body, with or without a hash
//! - `archive`: rkyv values read in place, each part after a check
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
