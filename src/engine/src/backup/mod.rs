//! Backups of all tenants or one, and restoring them.
//!
//! ```text
//! server or closed data directory -> take -> BackupStore -> restore -> new directory
//!                                           (folder, bucket)
//!                                             |- list, check, prune
//! ```
//! Contents are stored once under their hash, so a backup adds what is new since the last one. The
//! manifest of a backup is written last: without it a backup was cut off.
//!
//! Invariants:
//! - Per tenant the rows of the catalog and the files are of one moment after the backup began.
//! - A writer waits for the opening of one read transaction, and for nothing else.
//! - Nothing is trusted that no finished backup names: what a cut-off one left is written anew.
//! - A restored directory has its name only when every byte in it was compared with its hash.
//!
//! - `take`: a backup; `earlier`: those that it builds upon
//! - `service`: the one of a running server, asked for or by the clock
//! - `restore`: a new data directory; `keep`: listing, checking, removing
//! - `store`: the trait, and a folder; `bucket`: a bucket, and `lease`: its lock
//! - `location`: their names; `format`: manifest and lists; `error`: errors

mod bucket;
mod earlier;
mod error;
mod format;
mod keep;
mod lease;
mod location;
mod restore;
mod service;
mod store;
mod take;
#[cfg(test)]
mod tests;

pub use error::BackupError;
pub use format::{BackupManifest, LeftOut, TenantEntry};
pub use keep::{Checked, Listed, Pruned, check, list, prune};
pub use location::{Location, Opener, wait};
pub use restore::{RestoreOptions, restore};
pub(super) use service::{BackupParts, Backups};
pub use service::{BackupRun, BackupState};
pub use store::{BackupStore, Folder, Object};
pub use take::{OpenCollection, TakeParts, take};

use lodestone_types::TenantId;

/// The part of the data that a backup takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakeOptions {
    /// This tenant alone.
    pub tenant: Option<TenantId>,
    /// Names, scopes and hashes of keys too.
    pub with_keys: bool,
    /// Copy everything, as if there were no earlier backup.
    pub is_full: bool,
}

impl TakeOptions {
    /// Checks that the choices go together.
    ///
    /// # Errors
    /// [`BackupError::Refused`].
    pub fn validate(&self) -> Result<(), BackupError> {
        if self.with_keys && self.tenant.is_some() {
            let problem = "keys belong to the whole server: they cannot be backed up with one \
                tenant alone"
                .to_owned();
            return Err(BackupError::Refused { problem });
        }
        Ok(())
    }
}

/// A bound on the rate of copying.
pub trait Pace: Sync {
    /// Takes note of bytes that were copied; waits where they came too fast.
    ///
    /// # Errors
    /// [`BackupError::GivenUp`].
    fn spend(&self, bytes: u64) -> Result<(), BackupError>;
}

/// No bound: nobody else uses the data.
#[derive(Debug, Clone, Copy)]
pub struct Unpaced;

impl Pace for Unpaced {
    fn spend(&self, _bytes: u64) -> Result<(), BackupError> {
        Ok(())
    }
}
