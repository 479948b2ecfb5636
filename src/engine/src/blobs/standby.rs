//! A standby process that waits to replace the process that writes to a bucket.

use std::sync::Arc;
use std::time::Duration;

use super::{bucket, check_data_dir, check_noted, owner_name};
use crate::EngineError;
use crate::ingest::stopping::Stopping;
use crate::settings::Settings;
use lodestone_bucket::{BucketBlobs, OwnerLease, check_prefix};
use lodestone_catalog::CatalogLog;
use lodestone_fetch::bucket::Bucket;
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{IdSource, RandomIds};

/// A process that waits to take over from the writer of a bucket when that is gone. It holds the
/// lock of its data directory while it waits.
#[derive(Debug)]
pub struct Standby {
    bucket: Arc<Bucket>,
    data: Arc<DataDir>,
    stop: Arc<Stopping>,
}

impl Standby {
    /// Prepares to wait; `None` if the settings do not ask for a standby.
    ///
    /// # Errors
    /// The errors of an immediate start, found early: a data directory of other data, a prefix that
    /// holds something else, a bucket that does not respond. Also a catalog of a later release,
    /// which this process could not continue and would only block.
    pub fn new(settings: &Settings) -> Result<Option<Self>, EngineError> {
        let Some(url) = settings.store.store.as_ref().filter(|_| settings.store.nodes.standby)
        else {
            return Ok(None);
        };
        let data = Arc::new(DataDir::open(&settings.data_dir, Arc::new(RealDisk))?);
        let noted = check_data_dir(settings, data.root())?;
        let stop = Arc::new(Stopping::default());
        let (of, own) = (&settings.backups.bucket, Arc::clone(&stop));
        let authorities = settings.tls.authorities()?;
        let bucket = bucket(of, url, &authorities, Box::new(move |time| own.wait(time)))?;
        match noted {
            Some(noted) => check_noted(&bucket, &noted, data.root())?,
            None => _ = check_prefix(&bucket, None)?,
        }
        let (copies, budget) = (Arc::clone(&data), settings.store.store_cache);
        let blobs = BucketBlobs::open(Arc::clone(&bucket), copies, budget)?.only_reading();
        CatalogLog::open(Arc::new(blobs), Arc::new(RandomIds))?;
        Ok(Some(Self { bucket, data, stop }))
    }

    /// Blocks until this process is to write. An [`Engine`](crate::Engine) started right away with
    /// the same settings then holds the lease. Returns false if [`Self::stop`] came first.
    pub fn wait(&self) -> bool {
        let token = RandomIds.uuid();
        // Spreads several standbys over a second, so that one of them notices the loss first.
        let spread = Duration::from_millis(token.as_u128() as u64 % 1000);
        let name = owner_name(&token.simple().to_string());
        !self.stop.wait(spread) && OwnerLease::await_lease(&self.bucket, self.data.root(), name)
    }

    /// Ends the wait.
    pub fn stop(&self) {
        self.stop.set();
    }
}
