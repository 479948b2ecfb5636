//! Disk access: the only room that touches files, beside the catalog.
//!
//! It knows bytes, names and durability. It does not know what a segment or a manifest is (their
//! formats live in their rooms), nor keys and prefixes (those are `store`).
//!
//! ```text
//! <data>/LOCK        flock and the number of the process that holds it
//! <data>/tmp/<n>     files being written; emptied whenever the directory is opened
//! <data>/...         published files: complete, synced, never changed again
//!
//! write    contents -> tmp/<n> -> fsync -> rename or link into place -> fsync directory
//! read     path -> MappedFile -> BlockFile (checksums) -> Bytes -> Archive (checked once)
//! ```
//!
//! Invariants:
//! - A published file is never modified or shortened; a new version is a new inode. Mapping is
//!   sound because of it.
//! - What is visible in the data directory is durable, or was not yet reported as done.
//! - After a failed sync nothing is written any more until the directory is opened again, and a
//!   sync is never tried twice.
//! - No byte of data is handed on before its block was verified; no archive before it was checked.
//!
//! Children:
//! - `error`: what went wrong, with the path, and what to do about it
//! - `disk`: the file system as a component, and the real one
//! - `data_dir`: the lock, the mode, temporary names, the poison after a failed sync
//! - `gauge`: how full the disk is, as a level; `memory`: what this process has of its own
//! - `publish`: the few ways in which the data directory changes, with their cost in fsyncs
//! - `priority`: background threads behind those that somebody waits for
//! - `mmap`: read-only mappings and zero-copy slices of them
//! - `blocks`: 64 KiB blocks, their checksums, verification before first use
//! - `archive`: rkyv values read in place after one check
//! - `crash_disk`: a disk that loses power on demand, for tests of every room
//! - `stand_in`: the real disk, on which a test acts before a read or sets the gauge (tests only)

mod archive;
mod blocks;
#[cfg(feature = "testing")]
pub mod crash_disk;
mod data_dir;
mod disk;
mod error;
mod gauge;
mod memory;
mod mmap;
mod priority;
mod publish;
#[cfg(feature = "testing")]
mod stand_in;
pub mod store;

pub use archive::{Archive, encode};
pub use blocks::{BLOCK_BYTES, BlockFile, BlockHasher, checksum, checksums};
#[cfg(feature = "testing")]
pub use crash_disk::{CrashDisk, CrashMode, Fault, FaultKind};
pub use data_dir::DataDir;
pub use disk::{DirectoryEntry, Disk, RealDisk, Space, WriteContents};
pub use error::{IoError, Operation};
pub use gauge::{Fullness, SpaceGauge};
pub use memory::{MemoryGauge, ProcessMemory};
pub use mmap::MappedFile;
pub use priority::run_in_background;
pub use publish::Created;
#[cfg(feature = "testing")]
pub use stand_in::StandInDisk;

#[cfg(test)]
mod tests;
