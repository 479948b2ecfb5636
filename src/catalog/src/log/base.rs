//! Copies of the database file in the store, and removal of what they replace.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::entry::{self, COMPRESSION_LEVEL, Kind};
use super::reader::{away, label_at, numbers};
use crate::error::{CatalogError, Result};
use lodestone_io::store::{BlobStore, Key};
use sha2::{Digest, Sha256};

/// Bytes of the file read at a time.
const READ_BYTES: usize = 256 << 10;
/// Maximum number of keys per delete call.
const KEYS_PER_CALL: usize = 1000;

/// A copy of the file that is in the store but has no entry yet.
#[derive(Debug, Clone)]
pub(super) struct Copied {
    pub(super) blob: Key,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// Tells background threads that their work is no longer needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the catalog is being closed")),
            false => Ok(()),
        }
    }
}

/// Copies the database file to the store. The file must not change meanwhile, that is, there must
/// be no checkpoint.
///
/// # Errors
/// [`CatalogError::LogAway`]; a partial blob may be left under `blob`.
pub(super) fn copy(store: &dyn BlobStore, blob: Key, file: &File, stop: &Stop) -> Result<Copied> {
    let (mut hasher, mut bytes) = (Sha256::new(), 0_u64);
    let mut write = |out: &mut dyn Write| {
        let mut packed = zstd::stream::write::Encoder::new(out, COMPRESSION_LEVEL)?;
        let mut piece = vec![0; READ_BYTES];
        loop {
            stop.check()?;
            let read = file.read_at(&mut piece, bytes)?;
            if read == 0 {
                return packed.finish().map(drop);
            }
            hasher.update(&piece[..read]);
            packed.write_all(&piece[..read])?;
            bytes += read as u64;
        }
    };
    store.put_with(&blob, &mut write).map_err(away)?;
    Ok(Copied { blob, bytes, sha256: hex::encode(hasher.finalize()) })
}

/// Entries and copies of the file made obsolete by a base.
#[derive(Debug)]
pub(super) struct Garbage {
    /// Number of this process's claim.
    pub(super) claim: u64,
    /// Nothing below this number is left to remove.
    pub(super) from: u64,
    /// The base needs nothing below this number.
    pub(super) until: u64,
    /// The base's own copy of the file.
    pub(super) keep: Key,
}

impl Garbage {
    /// Removes the garbage: first entries other than claims, in ascending order, then copies of the
    /// file made by this process or earlier ones.
    ///
    /// # Errors
    /// [`CatalogError::LogAway`]; a part may already be gone.
    pub(super) fn collect(&self, store: &dyn BlobStore, stop: &Stop) -> Result<()> {
        let mut keys = Vec::new();
        for number in numbers(store)? {
            if (self.from..self.until).contains(&number) && !self.is_claim(store, number)? {
                keys.push(entry::key(number));
            }
        }
        let bases = store.list(&entry::bases()).map_err(away)?;
        // A successor may be making a copy that no entry names yet.
        let is_own = |key: &Key| entry::claim_of_base(key).is_some_and(|made| made <= self.claim);
        keys.extend(bases.into_iter().filter(|key| *key != self.keep && is_own(key)));
        for some in keys.chunks(KEYS_PER_CALL) {
            stop.check().map_err(|error| CatalogError::LogAway { cause: error.to_string() })?;
            store.delete_many(some).map_err(away)?;
        }
        Ok(())
    }

    /// Whether an entry is a claim, which only its label tells if it was written by another
    /// process.
    fn is_claim(&self, store: &dyn BlobStore, number: u64) -> Result<bool> {
        if number >= self.claim {
            return Ok(number == self.claim);
        }
        let label = label_at(store, number)?;
        Ok(label.is_none_or(|label| matches!(label.kind, Kind::Claim { .. })))
    }
}

/// Result of background work.
pub(super) enum Done {
    Copied(Result<Copied>),
    /// Nothing obsolete is left below this number.
    Collected(Result<u64>),
}

/// Runs background work, one task at a time.
#[derive(Debug, Default)]
pub(super) struct Background {
    stop: Stop,
    thread: Option<JoinHandle<Done>>,
}

impl Background {
    pub(super) fn is_busy(&self) -> bool {
        self.thread.is_some()
    }

    pub(super) fn start(&mut self, work: impl FnOnce(&Stop) -> Done + Send + 'static) {
        assert!(self.thread.is_none(), "one piece of work at a time");
        let stop = self.stop.clone();
        let run = move || {
            lodestone_io::run_in_background();
            work(&stop)
        };
        match std::thread::Builder::new().name("catalog-base".into()).spawn(run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => tracing::error!(%error, "shortening the catalog's log failed"),
        }
    }

    /// Returns the result of the task once it is finished.
    pub(super) fn done(&mut self) -> Option<Done> {
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Background {
    /// Stops the thread and waits for it, since it holds the store.
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // The next process will repeat its work.
            let _ = thread.join();
        }
    }
}
