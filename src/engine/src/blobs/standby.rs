//! Waiting for the place of the process that writes to a bucket.

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

/// A process that takes the place of the one that writes when that is gone. Nobody else has its
/// data directory while it waits.
#[derive(Debug)]
pub struct Standby {
    bucket: Arc<Bucket>,
    data: Arc<DataDir>,
    stop: Arc<Stopping>,
}

impl Standby {
    /// A process that is to wait, where the settings say so.
    ///
    /// # Errors
    /// As where it starts at once: a data directory of other data, a prefix that holds other
    /// things, a bucket that does not answer. A catalog of a later release: this one could not go
    /// on with it, and would hold the place meanwhile.
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

    /// Waits until this process is to write: an [`Engine`](crate::Engine) that is started on the
    /// same settings at once has the place. Returns false if it was stopped before.
    pub fn wait(&self) -> bool {
        let token = RandomIds.uuid();
        // Of several that wait one is the first to see that the other is gone.
        let spread = Duration::from_millis(token.as_u128() as u64 % 1000);
        let name = owner_name(&token.simple().to_string());
        !self.stop.wait(spread) && OwnerLease::await_lease(&self.bucket, self.data.root(), name)
    }

    /// Ends the waiting.
    pub fn stop(&self) {
        self.stop.set();
    }
}
