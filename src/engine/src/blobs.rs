//! Opens the store of all blobs: the data directory, or a bucket with a cache in the data
//! directory.

mod copy;
mod reading;
mod waiting;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ingest::stopping::Stopping;
use crate::settings::{BucketSettings, InvalidSetting, Settings};
use crate::{Engine, EngineError};
pub use copy::{CopiedStore, CopyProgress, copy_store};
use lodestone_bucket::{
    BucketBlobs, LeaseState, OwnerLease, Probed, SharedStoreError, check_prefix, mark_prefix, probe,
};
use lodestone_catalog::{Catalog, LeaseCheck};
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{Bucket, BucketUrl, Pause};
use lodestone_io::store::{BlobStore, HeldBlobs, LocalBlobs};
use lodestone_io::{DataDir, IoError, Operation};
use lodestone_metrics::{Counter, Family, Gauge, Registry};
use lodestone_types::{Clock, IdSource, RandomIds, SystemClock, Timestamp};
pub use reading::read_store;
pub use waiting::{BucketWait, WaitsFor};

/// File that marks a data directory as the cache of a bucket; holds the bucket's address.
const STORE_FILE: &str = "store";
/// File that marks a data directory as an unfinished copy of a bucket; holds the bucket's address.
const COPYING_FILE: &str = "copying";
/// Interval between checks for a successor. A process that was wrongly taken for dead may return
/// outdated answers for that long.
const LOOK: Duration = Duration::from_secs(5);
/// Low bits of an epoch, which count claims of the catalog's log; the time of the mark is above
/// them.
const CLAIM_BITS: u32 = 20;

/// The blobs of an engine.
#[derive(Debug)]
pub(super) struct OpenBlobs {
    /// The blob store.
    pub(super) blobs: Arc<HeldBlobs>,
    /// The bucket, if the blobs are in one.
    pub(super) bucket: Option<OpenBucket>,
}

impl OpenBlobs {
    /// The store for the catalog's log, where deletions are not deferred, since others may write to
    /// it; `None` without a bucket.
    pub(super) fn shared(&self) -> Option<Arc<dyn BlobStore>> {
        self.bucket.as_ref().map(|bucket| Arc::clone(&bucket.blobs) as _)
    }
}

/// A bucket opened by this process, which is its only writer as far as other processes can tell.
#[derive(Debug)]
pub(super) struct OpenBucket {
    pub(super) blobs: Arc<BucketBlobs>,
    /// Cuts short the pauses between retries.
    stop: Arc<Stopping>,
    meters: Meters,
    /// Whether the bucket did not respond to the last check for a successor.
    is_away: AtomicBool,
    /// Time recorded in the mark of the bucket's prefix.
    since: Timestamp,
    /// The lease of the writer; `None` in a process that only reads.
    owner: Option<OwnerLease>,
}

/// Metrics of a bucket and of the local cache of its data.
#[derive(Debug, Default)]
struct Meters {
    requests: Family<Counter, 1>,
    cache_bytes: Gauge,
    cache_bytes_max: Gauge,
    cache_uses: Family<Counter, 1>,
    cache_evictions: Counter,
}

impl OpenBucket {
    pub(super) fn enter_meters(&self, registry: &mut Registry) {
        let meters = &self.meters;
        let help = "Requests to the data bucket by kind, including retries";
        registry.enter("store_requests_total", help, &meters.requests);
        let help = "Size of the local cache of bucket data in bytes";
        registry.enter("store_cache_bytes", help, &meters.cache_bytes);
        let help = "Maximum size of the local cache of bucket data in bytes";
        registry.enter("store_cache_limit_bytes", help, &meters.cache_bytes_max);
        let help = "Uses of segments and originals, by whether they were in the local cache";
        registry.enter("store_cache_uses_total", help, &meters.cache_uses);
        let help = "Files evicted from the local cache";
        registry.enter("store_cache_evictions_total", help, &meters.cache_evictions);
    }

    pub(super) fn refresh_gauges(&self) {
        let (meters, copies) = (&self.meters, self.blobs.copies());
        for (kind, count) in self.blobs.bucket().requests() {
            meters.requests.with([("kind", kind.into())]).set(count);
        }
        meters.cache_bytes.set(copies.bytes);
        meters.cache_bytes_max.set(copies.budget);
        for (result, count) in [("hit", copies.hits), ("miss", copies.misses)] {
            meters.cache_uses.with([("result", result.into())]).set(count);
        }
        meters.cache_evictions.set(copies.evictions);
    }

    /// Blocks until another process has taken over or this one ends; returns whether one has taken
    /// over.
    fn wait_for_takeover(&self, catalog: &Catalog) -> bool {
        let lease = self.owner.as_ref().map(OwnerLease::view);
        while !self.stop.wait(LOOK) {
            let begun = Instant::now();
            let found = catalog.check_fence();
            self.is_away.store(found.is_err(), Ordering::Relaxed);
            match found {
                Ok(true) => return true,
                Ok(false) => lease.iter().for_each(|lease| lease.confirm(begun)),
                Err(error) => {
                    tracing::debug!(%error, "the owner of the bucket is unknown")
                }
            }
        }
        false
    }

    /// A check of the lease to run before anything is acknowledged; `None` in a process that only
    /// reads. While the bucket does not respond, nobody knows who holds the lease: a process with a
    /// standby that waits to replace it (`has_standby`) must then refuse to answer.
    pub(super) fn lease_check(&self, has_standby: bool) -> Option<LeaseCheck> {
        let lease = self.owner.as_ref()?.view();
        Some(Box::new(move || match lease.state() {
            LeaseState::Unknown if has_standby => Some("the bucket is unreachable".to_owned()),
            LeaseState::Held | LeaseState::Unknown => None,
            LeaseState::Lost => Some("another process may have taken over".to_owned()),
        }))
    }

    /// Whether the bucket did not respond when it was last checked.
    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }

    /// Makes requests to an unresponsive bucket give up after their first attempt.
    pub(super) fn hurry(&self) {
        self.stop.set();
    }
}

impl Engine {
    /// Blocks until another process has taken over the bucket of the data or this engine ends.
    /// Returns the bucket's URL if it was taken over. Returns at once if the data are not in a
    /// bucket.
    pub fn wait_for_takeover(&self) -> Option<String> {
        let bucket = self.bucket.as_ref()?;
        let place = || bucket.blobs.bucket().url().to_string();
        bucket.wait_for_takeover(&self.catalog).then(place)
    }
}

/// Opens the store that the settings name.
///
/// # Errors
/// A data directory that is the cache of a bucket although none is named, or that holds data of its
/// own although one is; a bucket that cannot hold the data or belongs to another server.
pub(super) fn open(
    settings: &Settings,
    authorities: &Authorities,
    data: &Arc<DataDir>,
    ids: &Arc<dyn IdSource>,
    clock: &Arc<dyn Clock>,
) -> Result<OpenBlobs, EngineError> {
    let (url, noted) = match (&settings.store.store, check_data_dir(settings, data.root())?) {
        (Some(url), noted) => (url, noted),
        (None, _) => {
            let local = Arc::new(LocalBlobs::new(Arc::clone(data)));
            return Ok(OpenBlobs { blobs: Arc::new(HeldBlobs::new(local)), bucket: None });
        }
    };
    let stop = Arc::new(Stopping::default());
    let own = Arc::clone(&stop);
    let of = &settings.backups.bucket;
    let bucket = bucket(of, url, authorities, Box::new(move |time| own.wait(time)))?;
    let token = ids.uuid().simple().to_string();
    let at = bucket.place();
    if let Some(noted) = noted {
        check_noted(&bucket, &noted, data.root())?;
    }
    tracing::info!(store = %at, "checking the bucket that holds the data");
    let only_reads = settings.store.nodes.only_reads();
    let since = match only_reads {
        false => mark_prefix(&bucket, &token, None, clock.now())?,
        true => {
            if !check_prefix(&bucket, None)? {
                return Err(no_data(&bucket).into());
            }
            clock.now()
        }
    };
    data.publish(&data.root().join(STORE_FILE), &mut |out| out.write_all(at.as_bytes()))?;
    let budget = settings.store.store_cache;
    let blobs = BucketBlobs::open(Arc::clone(&bucket), Arc::clone(data), budget)?;
    let (blobs, owner) = match only_reads {
        true => (Arc::new(blobs.only_reading()), None),
        false => {
            let owner = OwnerLease::take(&bucket, data.root(), owner_name(&token))?;
            let count = blobs.abandon_parts().map_err(SharedStoreError::from)?;
            if count > 0 {
                tracing::info!(count, "removed parts of interrupted uploads");
            }
            (Arc::new(blobs), Some(owner))
        }
    };
    let meters = Meters::default();
    let is_away = AtomicBool::new(false);
    let bucket = OpenBucket { blobs: Arc::clone(&blobs), stop, meters, is_away, since, owner };
    Ok(OpenBlobs { blobs: Arc::new(HeldBlobs::new(blobs)), bucket: Some(bucket) })
}

/// The error of a process that only reads and finds no data.
pub(super) fn no_data(bucket: &Bucket) -> SharedStoreError {
    let problem = "it has no data yet: start the writer first".to_owned();
    SharedStoreError::Unfit { place: bucket.place(), problem }
}

/// Checks that a data directory fits the configured store; returns the bucket that it caches, if
/// any.
fn check_data_dir(settings: &Settings, root: &Path) -> Result<Option<String>, EngineError> {
    let dir = root.display();
    if let Some(from) = noted(root, COPYING_FILE)? {
        let problem =
            format!("{dir} is an unfinished copy of {from}: run lodestone store copy again");
        return Err(EngineError::NotCopied { problem });
    }
    let noted = cached_store(root)?;
    let problem = match (&settings.store.store, &noted) {
        (None, Some(noted)) => {
            format!("must be set: {dir} is the cache of {noted}")
        }
        (Some(url), None) if root.join("v1").exists() => format!(
            "is {url}, but {dir} already contains data: use an empty data directory, or copy {dir} \
             with lodestone store copy"
        ),
        _ => return Ok(noted),
    };
    Err(InvalidSetting { name: "store", problem }.into())
}

fn bucket(
    settings: &BucketSettings,
    url: &BucketUrl,
    authorities: &Authorities,
    pause: Box<Pause>,
) -> Result<Arc<Bucket>, SharedStoreError> {
    let (options, clock) = (settings.options(), Arc::new(SystemClock));
    Ok(Arc::new(Bucket::new(url.clone(), &options, authorities, clock, pause)?))
}

/// Checks that the bucket of the settings, if any, supports the operations that the data need, and
/// leaves nothing behind, and that no other process writes to it unless this one would wait for it.
/// A process that only reads just checks that the bucket holds data.
///
/// # Errors
/// Errors of the store; a requirement that the store does not meet; another writer.
pub fn probe_store(
    settings: &Settings,
    authorities: &Authorities,
) -> Result<Option<(BucketUrl, Option<Probed>)>, SharedStoreError> {
    let Some(url) = &settings.store.store else { return Ok(None) };
    let of = &settings.backups.bucket;
    let bucket = bucket(of, url, authorities, Box::new(crate::backup::wait))?;
    let has_data = check_prefix(&bucket, None)?;
    if settings.store.nodes.only_reads() {
        return match has_data {
            true => Ok(Some((url.clone(), None))),
            false => Err(no_data(&bucket)),
        };
    }
    if !settings.store.nodes.standby {
        OwnerLease::check_unused(&bucket, &settings.data_dir)?;
    }
    let token = RandomIds.uuid().simple().to_string();
    Ok(Some((url.clone(), Some(probe(&bucket, &token)?))))
}

/// The epoch under which this process commits; it must be higher than those of earlier writers. In
/// a data directory, whose lock keeps other writers out, the current time is enough. In a bucket
/// the epoch rises with each claim of the catalog's log, and the time of the bucket's mark above it
/// makes it rise from bucket to bucket as data are copied. Both exceed every epoch of a data
/// directory.
pub(super) fn epoch(blobs: &OpenBlobs, catalog: &Catalog, clock: &dyn Clock) -> u64 {
    match (&blobs.bucket, catalog.log_claim()) {
        (Some(bucket), Some(claim)) => (bucket.since.0 << CLAIM_BITS) + claim,
        _ => clock.now().0,
    }
}

/// Rejects a cache of another bucket, or of data that are gone from this one: what it holds would
/// be taken for the bucket's data.
fn check_noted(bucket: &Bucket, noted: &str, root: &Path) -> Result<(), EngineError> {
    let (at, dir) = (bucket.place(), root.display());
    let problem = match noted == at {
        true if check_prefix(bucket, None)? => return Ok(()),
        true => format!("is {at}, which is empty, but {dir} is a cache of its earlier data"),
        false => format!("is {at}, but {dir} is the cache of {noted}"),
    };
    let problem = format!("{problem}: use an empty data directory");
    Err(InvalidSetting { name: "store", problem }.into())
}

/// The address of the bucket that a data directory is the cache of, if any.
///
/// # Errors
/// Errors of the disk.
pub fn cached_store(root: &Path) -> Result<Option<String>, IoError> {
    noted(root, STORE_FILE)
}

/// The content of a marker file in a data directory; `None` if there is none.
fn noted(root: &Path, name: &str) -> Result<Option<String>, IoError> {
    let path = root.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IoError::new(Operation::Read, &path, error)),
    }
}

/// The name under which this process holds the lease of a bucket.
fn owner_name(token: &str) -> String {
    format!("{} {token}", process_name())
}

/// A description of this process for people.
fn process_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("process {} on {}", std::process::id(), host.trim())
}
