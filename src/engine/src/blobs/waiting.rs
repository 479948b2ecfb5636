//! A process that cannot open the data of a bucket yet: a standby, or a query node that was started
//! before the first writer.

use std::sync::Arc;
use std::time::Duration;

use super::{bucket, check_data_dir, check_noted, owner_name};
use crate::EngineError;
use crate::ingest::stopping::Stopping;
use crate::settings::Settings;
use lodestone_bucket::{BucketBlobs, OwnerLease, check_prefix};
use lodestone_catalog::CatalogLog;
use lodestone_fetch::bucket::Bucket;
use lodestone_io::store::BlobStore;
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{IdSource, RandomIds};

/// Interval between checks for the first data of a bucket.
const LOOK: Duration = Duration::from_secs(1);

/// The event that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// The loss of the writer, whose place a standby takes.
    Takeover,
    /// The first data in the bucket, which a query node reads.
    FirstData,
}

/// A process that waits before it opens the data of a bucket. It holds the lock of its data
/// directory while it waits.
#[derive(Debug)]
pub struct BucketWait {
    waits_for: WaitsFor,
    bucket: Arc<Bucket>,
    blobs: Arc<dyn BlobStore>,
    data: Arc<DataDir>,
    stop: Arc<Stopping>,
}

impl BucketWait {
    /// Prepares to wait; `None` if the process has nothing to wait for.
    ///
    /// # Errors
    /// The errors of an immediate start, found early: a data directory of other data, a prefix that
    /// holds something else, a bucket that does not respond. Also a catalog of a later release,
    /// which this process could not continue and would only block.
    pub fn new(settings: &Settings) -> Result<Option<Self>, EngineError> {
        let nodes = &settings.store.nodes;
        let waits_for = match (nodes.standby, nodes.only_reads()) {
            (true, _) => WaitsFor::Takeover,
            (false, true) => WaitsFor::FirstData,
            (false, false) => return Ok(None),
        };
        let Some(url) = &settings.store.store else { return Ok(None) };
        let data = Arc::new(DataDir::open(&settings.data_dir, Arc::new(RealDisk))?);
        let noted = check_data_dir(settings, data.root())?;
        let stop = Arc::new(Stopping::default());
        let (of, own) = (&settings.backups.bucket, Arc::clone(&stop));
        let authorities = settings.tls.authorities()?;
        let bucket = bucket(of, url, &authorities, Box::new(move |time| own.wait(time)))?;
        if let Some(noted) = noted {
            check_noted(&bucket, &noted, data.root())?;
            if waits_for == WaitsFor::FirstData {
                // The directory is a cache of what the bucket already had.
                return Ok(None);
            }
        }
        let (copies, budget) = (Arc::clone(&data), settings.store.store_cache);
        let blobs = BucketBlobs::open(Arc::clone(&bucket), copies, budget)?.only_reading();
        let waiting = Self { waits_for, bucket, blobs: Arc::new(blobs), data, stop };
        let has_data = waiting.has_data()?;
        Ok((waits_for == WaitsFor::Takeover || !has_data).then_some(waiting))
    }

    /// The event that ends the wait.
    pub fn waits_for(&self) -> WaitsFor {
        self.waits_for
    }

    /// Blocks until an [`Engine`](crate::Engine) started right away with the same settings would
    /// hold the lease of the writer, or find data to read. Returns false if [`Self::stop`] came
    /// first.
    pub fn wait(&self) -> bool {
        match self.waits_for {
            WaitsFor::Takeover => self.await_lease(),
            WaitsFor::FirstData => self.await_first_data(),
        }
    }

    fn await_lease(&self) -> bool {
        let token = RandomIds.uuid();
        // Spreads several standbys over a second, so that one of them notices the loss first.
        let spread = Duration::from_millis(token.as_u128() as u64 % 1000);
        let name = owner_name(&token.simple().to_string());
        !self.stop.wait(spread) && OwnerLease::await_lease(&self.bucket, self.data.root(), name)
    }

    fn await_first_data(&self) -> bool {
        let mut is_away = false;
        while !self.stop.wait(LOOK) {
            match self.has_data() {
                Ok(true) => return true,
                Ok(false) => is_away = false,
                Err(error) if is_away => tracing::debug!(%error, "the bucket is unreadable"),
                Err(error) => {
                    tracing::warn!(%error, "the bucket cannot be read: it is tried again");
                    is_away = true;
                }
            }
        }
        false
    }

    /// Whether a writer has created the catalog in the bucket.
    fn has_data(&self) -> Result<bool, EngineError> {
        if !check_prefix(&self.bucket, None)? {
            return Ok(false);
        }
        let log = CatalogLog::open(Arc::clone(&self.blobs), Arc::new(RandomIds))?;
        Ok(!log.is_empty())
    }

    /// Ends the wait.
    pub fn stop(&self) {
        self.stop.set();
    }
}
