//! Copies all data from a data directory to a bucket, or back.
//!
//! Blobs go first, manifests after the blobs they refer to, and the catalog last. A copy that was
//! interrupted has no catalog, or is still marked, so no server starts on it, and the next attempt
//! resumes it. The source may have changed in between, so that attempt first deletes what the
//! source no longer has: the descriptor of a deleted tenant would bring it back.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::{COPYING_FILE, bucket, cached_store, noted, process_name};
use crate::backup::{Location, Opener, wait};
use crate::{CATALOG_NAME, EngineError};
use lodestone_bucket::{
    BucketBlobs, CACHE_FOLDER, OwnerLease, SharedStoreError, begin_copy, check_prefix, end_copy,
    is_copy_of, mark_prefix, send,
};
use lodestone_catalog::{Catalog, CatalogLog, CatalogOptions};
use lodestone_fetch::bucket::{Bucket, BucketUrl};
use lodestone_io::store::{BlobStore, Key, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{Clock, IdSource, RandomIds, SystemClock};

/// Directories of the blobs that are copied verbatim. The catalog's log is not, since each bucket
/// starts its own.
const COPIED: [&str; 3] = ["v1/raw", "v1/c", "v1/t"];
/// Beginning of the names of the catalog's log.
const LOG: &str = "v1/catalog";

/// The result of a copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedStore {
    /// Blobs at the target after the copy.
    pub blobs: u64,
    /// Blobs that this run copied.
    pub new: u64,
    /// Bytes that this run copied.
    pub new_bytes: u64,
}

/// Progress of a copy. Blobs that were already at the target count as copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Blobs copied so far.
    pub blobs: u64,
    /// Blobs in total.
    pub blobs_total: u64,
    /// Bytes copied so far.
    pub bytes: u64,
    /// Bytes in total.
    pub bytes_total: u64,
}

/// Callback that receives the progress of a copy.
type See<'a> = dyn FnMut(&CopyProgress) + Send + 'a;

/// Copies the data of a stopped server. The source is left unchanged.
///
/// # Errors
/// Two locations of the same kind; a location in use; a target that holds other data; errors of
/// both.
pub fn copy_store(
    from: &Location,
    to: &Location,
    opener: &Opener,
    see: &mut See<'_>,
) -> Result<CopiedStore, EngineError> {
    let opened =
        |url: &BucketUrl| bucket(&opener.settings, url, &opener.authorities, Box::new(wait));
    match (from, to) {
        (Location::Folder(from), Location::Bucket(to)) => to_bucket(from, &opened(to)?, see),
        (Location::Bucket(from), Location::Folder(to)) => to_folder(&opened(from)?, to, see),
        _ => Err(refused(
            "one location must be a folder and the other a bucket (s3://, gs://, az://)",
        )),
    }
}

fn refused(problem: impl Into<String>) -> EngineError {
    EngineError::NotCopied { problem: problem.into() }
}

/// The place of a blob in the order of copying: manifests after the blobs they name, then tenant
/// descriptors.
fn rank(key: &Key) -> u8 {
    let mut parts = key.as_str().split('/').skip(1);
    match (parts.next(), parts.nth(1)) {
        (Some("c"), Some("m")) => 1,
        (Some("t"), _) => 2,
        _ => 0,
    }
}

fn in_order(mut keys: Vec<Key>) -> Vec<Key> {
    keys.sort_by_key(rank);
    keys
}

/// The blobs at the target of a resumed copy that the source no longer has, tenant descriptors
/// first.
fn left_over(target: impl Iterator<Item = Key>, is_in_source: impl Fn(&Key) -> bool) -> Vec<Key> {
    let mut keys = in_order(target.filter(|key| !is_in_source(key)).collect());
    keys.reverse();
    keys
}

fn is_copied(key: &Key) -> bool {
    let below = |directory: &&str| key.as_str().strip_prefix(*directory);
    COPIED.iter().filter_map(below).any(|rest| rest.starts_with('/'))
}

/// The copied blobs of a data directory.
fn listed(local: &LocalBlobs) -> Result<Vec<Key>, EngineError> {
    let mut keys = Vec::new();
    for directory in COPIED {
        keys.extend(local.list(&Key::parse(directory).expect("a fixed name is a key"))?);
    }
    Ok(keys)
}

/// The copied blobs of a bucket with their lengths.
fn lengths(bucket: &Bucket) -> Result<HashMap<Key, u64>, SharedStoreError> {
    let listed = bucket.list("v1/")?.into_iter();
    let keys = listed.filter_map(|(name, bytes)| Some((Key::parse(&name).ok()?, bytes)));
    Ok(keys.filter(|(key, _)| is_copied(key)).collect())
}

/// Removes the catalog of an unfinished copy, which was written but for its last step.
fn remove_log(bucket: &Bucket) -> Result<(), SharedStoreError> {
    for (name, _) in bucket.list(LOG)? {
        bucket.remove(&name)?;
    }
    Ok(())
}

/// Whether a blob can differ from one with the same name and length: tenant descriptors are
/// overwritten in place, and after a rollback the numbers of manifests come back with other
/// contents. Both are small.
fn may_differ(key: &Key) -> bool {
    rank(key) > 0
}

fn to_bucket(
    from: &Path,
    bucket: &Arc<Bucket>,
    see: &mut See<'_>,
) -> Result<CopiedStore, EngineError> {
    let path = from.join(CATALOG_NAME);
    if !path.exists() {
        return Err(refused(format!("{} contains no {CATALOG_NAME}", from.display())));
    }
    let data = Arc::new(DataDir::open(from, Arc::new(RealDisk))?);
    if let Some(url) = cached_store(data.root())? {
        return Err(refused(format!(
            "{} is the cache of {url}, not a data directory",
            from.display()
        )));
    }
    let token = RandomIds.uuid().simple().to_string();
    let origin = data.root().display().to_string();
    mark_prefix(bucket, &token, Some(&origin), SystemClock.now())?;
    let _owner = OwnerLease::take(bucket, data.root(), format!("{} {token}", process_name()))?;
    if is_copy_of(bucket, &origin)? {
        remove_log(bucket)?;
    }
    let ids: Arc<dyn IdSource> = Arc::new(RandomIds);
    let remote: Arc<dyn BlobStore> =
        Arc::new(BucketBlobs::open(Arc::clone(bucket), Arc::clone(&data), Some(0))?);
    let log = CatalogLog::open(remote, Arc::clone(&ids))?;
    if !log.is_empty() {
        let place = bucket.url();
        return Err(refused(format!("{place} already contains the data of a server")));
    }
    let there = lengths(bucket)?;
    begin_copy(bucket, &origin, there.is_empty())?;
    let local = LocalBlobs::new(Arc::clone(&data));
    let keys = listed(&local)?;
    let known: HashSet<Key> = keys.iter().cloned().collect();
    for key in left_over(there.keys().cloned(), |key| known.contains(key)) {
        bucket.remove(key.as_str()).map_err(SharedStoreError::from)?;
    }
    let mut progress = CopyProgress { blobs_total: keys.len() as u64, ..CopyProgress::default() };
    for key in &keys {
        progress.bytes_total += local.len(key)?;
    }
    let mut copied = CopiedStore::default();
    for key in in_order(keys) {
        let file = local.open(&key)?;
        if there.get(&key) == Some(&file.len()) && !may_differ(&key) {
            progress.bytes += file.len();
        } else {
            send(bucket, &key, &file, &mut |bytes| {
                progress.bytes += bytes;
                see(&progress);
            })?;
            copied.new += 1;
            copied.new_bytes += file.len();
        }
        progress.blobs += 1;
        see(&progress);
    }
    copied.blobs = progress.blobs;
    Catalog::open_with_log(&path, CatalogOptions::default(), Arc::new(SystemClock), ids, log)?;
    end_copy(bucket)?;
    forget_copies(&data.root().join(CACHE_FOLDER));
    Ok(copied)
}

/// Removes the folder of cached blobs, which is not needed after the copy.
fn forget_copies(folder: &Path) {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(%error, "removing the cache folder failed");
        }
        _ => {}
    }
}

fn to_folder(
    bucket: &Arc<Bucket>,
    to: &Path,
    see: &mut See<'_>,
) -> Result<CopiedStore, EngineError> {
    let path = to.join(CATALOG_NAME);
    let data = Arc::new(DataDir::open(to, Arc::new(RealDisk))?);
    let (from, before) = (bucket.place(), noted(data.root(), COPYING_FILE)?);
    // An unfinished copy may have a catalog, whole or not: it is written anew.
    let is_taken = before.is_none() && (path.exists() || data.root().join("v1").exists());
    if is_taken || cached_store(data.root())?.is_some() {
        let to = to.display();
        return Err(refused(format!("{to} already contains the data of a server, or a cache")));
    }
    if let Some(before) = before.filter(|before| *before != from) {
        let to = to.display();
        return Err(refused(format!("{to} is an unfinished copy of {before}, not of this bucket")));
    }
    let token = RandomIds.uuid().simple().to_string();
    if !check_prefix(bucket, None)? {
        return Err(refused(format!("{from} contains no server data")));
    }
    let owner = OwnerLease::take(bucket, data.root(), format!("{} {token}", process_name()))?;
    let remote = Arc::new(BucketBlobs::open(Arc::clone(bucket), Arc::clone(&data), Some(0))?);
    let log = CatalogLog::open(remote, Arc::new(RandomIds))?;
    if log.is_empty() {
        return Err(refused(format!("{} contains no server data", bucket.url())));
    }
    let copying = data.root().join(COPYING_FILE);
    data.publish(&copying, &mut |out| out.write_all(from.as_bytes()))?;
    let local = LocalBlobs::new(Arc::clone(&data));
    let mut copied = CopiedStore::default();
    let there = lengths(bucket)?;
    local.delete_many(&left_over(listed(&local)?.into_iter(), |key| there.contains_key(key)))?;
    let (blobs_total, bytes_total) = (there.len() as u64, there.values().sum());
    let mut progress = CopyProgress { blobs_total, bytes_total, ..CopyProgress::default() };
    for key in in_order(there.keys().cloned().collect()) {
        let length = there[&key];
        if local.len(&key).is_ok_and(|found| found == length) && !may_differ(&key) {
            progress.bytes += length;
        } else {
            fetch(bucket, &local, &key, &mut |bytes| {
                progress.bytes += bytes;
                see(&progress);
            })?;
            copied.new += 1;
            copied.new_bytes += length;
        }
        progress.blobs += 1;
        see(&progress);
    }
    copied.blobs = progress.blobs;
    log.restore_to(&path)?;
    data.remove_many(&[copying])?;
    // Both use the folder of cached blobs and must be closed before it is removed.
    drop((owner, log));
    forget_copies(&data.root().join(CACHE_FOLDER));
    Ok(copied)
}

/// Downloads a blob into the data directory; `see` receives the length of each piece.
fn fetch(
    bucket: &Bucket,
    to: &LocalBlobs,
    key: &Key,
    see: &mut dyn FnMut(u64),
) -> Result<(), EngineError> {
    to.put_with(key, &mut |out| {
        let read = bucket.read(key.as_str(), &mut |piece| {
            out.write_all(piece)?;
            see(piece.len() as u64);
            Ok::<_, ReadError>(())
        });
        match read.map_err(std::io::Error::other)? {
            Some(_) => Ok(()),
            None => Err(std::io::Error::other(format!(
                "{key} has disappeared: is a server running on the bucket?"
            ))),
        }
    })?;
    Ok(())
}

/// An error while reading from a bucket into a file.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Bucket(#[from] lodestone_fetch::bucket::BucketError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
