//! Backups of all tenants or of one, and restoring them.
//!
//! ```text
//! server or closed data directory -> take -> BackupStore -> restore -> new directory
//!                                           (folder, bucket)
//!                                             |- list, check, prune
//! ```
//! Contents are stored once under their hash, so a backup only adds what is new since the last one.
//! The manifest of a backup is written last: a backup without one was interrupted.
//!
//! Invariants:
//! - For each tenant, the rows of the catalog and the files are of one moment after the backup
//!   began.
//! - A writer waits for the opening of one read transaction, and for nothing else.
//! - Nothing is trusted unless a finished backup names it: what an interrupted one left is
//!   rewritten.
//! - A restored directory gets its name only after every byte in it was compared with its hash.
//!
//! - `take`: takes a backup; `earlier`: the backups that it builds on; `originals`: what it needs
//! - `service`: backups of a running server, on request or on schedule
//! - `restore`: restores into a new data directory; `keep`: lists, checks, prunes
//! - `store`: the trait, and a folder; `bucket`: a bucket, and `lease`: its lock
//! - `location`: addresses of stores; `format`: manifest and lists; `error`: errors

mod bucket;
mod earlier;
mod error;
mod format;
mod keep;
mod lease;
mod location;
mod originals;
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

/// The extent of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakeOptions {
    /// Only this tenant.
    pub tenant: Option<TenantId>,
    /// Also the names, scopes and hashes of API keys.
    pub with_keys: bool,
    /// Copies everything that the server has, as if there were no earlier backup.
    pub is_full: bool,
}

impl TakeOptions {
    /// Checks that the options are compatible.
    ///
    /// # Errors
    /// [`BackupError::Refused`].
    pub fn validate(&self) -> Result<(), BackupError> {
        if self.with_keys && self.tenant.is_some() {
            let problem = "API keys belong to the whole server and cannot be backed up with a \
                single tenant"
                .to_owned();
            return Err(BackupError::Refused { problem });
        }
        Ok(())
    }
}

/// Limits the rate of copying.
pub trait Pace: Sync {
    /// Records that `bytes` were copied; waits if they came too fast.
    ///
    /// # Errors
    /// [`BackupError::GivenUp`].
    fn spend(&self, bytes: u64) -> Result<(), BackupError>;
}

/// No limit, because nobody else uses the data.
#[derive(Debug, Clone, Copy)]
pub struct Unpaced;

impl Pace for Unpaced {
    fn spend(&self, _bytes: u64) -> Result<(), BackupError> {
        Ok(())
    }
}
