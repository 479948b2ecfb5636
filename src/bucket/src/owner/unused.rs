//! A look at whether another process holds the lease, by one that does not take it.

use std::path::Path;
use std::sync::Arc;

use super::{Holder, LOOK, OwnerLease, Shared, in_use};
use crate::error::SharedStoreError;
use lodestone_fetch::bucket::Bucket;

/// Number of polls within which a process that is alive has renewed its name.
const LOOKS: usize = 7;

impl OwnerLease {
    /// Checks that no process other than the one using the data directory `data` writes to the
    /// prefix. Blocks for up to seven seconds, to see whether the one that wrote last is alive.
    ///
    /// # Errors
    /// [`SharedStoreError::InUse`] if it renews its name; errors of the bucket.
    pub fn check_unused(bucket: &Arc<Bucket>, data: &Path) -> Result<(), SharedStoreError> {
        let shared = Shared::new(bucket, data, String::new());
        let first = shared.look()?;
        for _ in 0..LOOKS {
            if !matches!(first, Holder::Other(_)) || bucket.pause(LOOK) {
                break;
            }
            match shared.look()? {
                holder if holder == first => {}
                Holder::Other(holder) => return Err(in_use(bucket, &holder)),
                Holder::Nobody | Holder::Own => break,
            }
        }
        Ok(())
    }
}
