//! Read access to the data in a bucket while another process writes to them.

use std::path::Path;
use std::sync::Arc;

use super::bucket;
use crate::EngineError;
use crate::backup::{Opener, wait};
use lodestone_bucket::{BucketBlobs, SharedStoreError, check_prefix};
use lodestone_catalog::CatalogLog;
use lodestone_fetch::bucket::BucketUrl;
use lodestone_io::store::BlobStore;
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::RandomIds;

/// Opens the blobs and the catalog log of a bucket for reading. No blob is cached; while one is in
/// use, its content is in a temporary file below `root`.
///
/// # Errors
/// A bucket that holds no data; errors of the store and of the disk.
pub fn read_store(
    url: &BucketUrl,
    opener: &Opener,
    root: &Path,
) -> Result<(Arc<dyn BlobStore>, CatalogLog), EngineError> {
    let bucket = bucket(&opener.settings, url, &opener.authorities, Box::new(wait))?;
    if !check_prefix(&bucket, None)? {
        let (place, problem) = (bucket.place(), "it contains no server data".to_owned());
        return Err(SharedStoreError::Unfit { place, problem }.into());
    }
    let data = Arc::new(DataDir::open(root, Arc::new(RealDisk))?);
    let blobs = BucketBlobs::open(bucket, data, Some(0))?.with_copies_of(|_| false).only_reading();
    let store: Arc<dyn BlobStore> = Arc::new(blobs);
    let log = CatalogLog::open(Arc::clone(&store), Arc::new(RandomIds))?;
    Ok((store, log))
}
