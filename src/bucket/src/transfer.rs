//! Transfer of files to and from a bucket.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::error::TransferError;
use lodestone_fetch::bucket::{Bucket, Condition};
use lodestone_io::store::{Key, StoreError};
use lodestone_io::{FileSlice, IoError, Operation};

/// Size of an upload part, which is held in memory. Shorter files are uploaded whole.
const PART_BYTES: usize = 16 << 20;
/// Maximum number of parts of one object, below the 10,000 that stores allow.
const PARTS_MAX: u64 = 9_000;
/// Bytes requested in one ranged read.
const RANGE_BYTES: u64 = 16 << 20;
/// Maximum number of concurrent reads of one object.
const STREAMS: usize = 6;
/// Maximum number of concurrent uploads of parts of one object.
const STREAMS_OUT: usize = 4;

/// Uploads a file under a key, replacing any object there. The object appears only when complete.
/// Calls `see` with the number of bytes in each piece.
///
/// # Errors
/// Those of the bucket and of the file.
pub fn send(
    bucket: &Bucket,
    key: &Key,
    file: &FileSlice,
    see: &mut (dyn FnMut(u64) + Send),
) -> Result<(), StoreError> {
    Ok(send_file(bucket, key, file, see)?)
}

fn send_file(
    bucket: &Bucket,
    key: &Key,
    file: &FileSlice,
    see: &mut (dyn FnMut(u64) + Send),
) -> Result<(), TransferError> {
    let bytes = file.len();
    if bytes < PART_BYTES as u64 {
        let mut whole = vec![0; bytes as usize];
        file.read_at(0, &mut whole)?;
        bucket.put(key.as_str(), &whole, Condition::None)?;
        see(bytes);
        return Ok(());
    }
    let part_bytes = PART_BYTES.max(bytes.div_ceil(PARTS_MAX) as usize);
    let mut at = 0;
    bucket.put_parts(key.as_str(), (part_bytes, STREAMS_OUT), &mut |part| {
        let length = file.read_at(at, part)?;
        at += length as u64;
        see(length as u64);
        Ok::<_, TransferError>(length)
    })
}

/// Downloads an object to a new file and syncs it; returns its length. After an error, an
/// incomplete file may remain at `path`.
pub(crate) fn fetch(bucket: &Bucket, key: &Key, path: &Path) -> Result<u64, TransferError> {
    let missing = || TransferError::Missing(key.clone());
    let length = bucket.len(key.as_str())?.ok_or_else(missing)?;
    let mut options = OpenOptions::new();
    let made = options.read(true).write(true).create_new(true).mode(0o600).open(path);
    let file = made.map_err(|error| IoError::new(Operation::Create, path, error))?;
    let ranges = length.div_ceil(RANGE_BYTES);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let work = || {
        while failed.lock().is_none() {
            let range = next.fetch_add(1, Ordering::Relaxed);
            if range >= ranges {
                break;
            }
            let (start, end) = (range * RANGE_BYTES, length.min((range + 1) * RANGE_BYTES));
            if let Err(error) = fetch_range(bucket, key, start, end, &file, path) {
                failed.lock().get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..STREAMS.min(ranges as usize) {
            scope.spawn(work);
        }
        work();
    });
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    file.sync_all().map_err(|error| IoError::new(Operation::SyncFile, path, error))?;
    Ok(length)
}

fn fetch_range(
    bucket: &Bucket,
    key: &Key,
    start: u64,
    end: u64,
    file: &File,
    path: &Path,
) -> Result<(), TransferError> {
    let mut at = start;
    let read = bucket.read_part(key.as_str(), start..end, &mut |piece| {
        let written = file.write_all_at(piece, at);
        written.map_err(|error| IoError::new(Operation::Write, path, error))?;
        at += piece.len() as u64;
        Ok::<_, TransferError>(())
    })?;
    match read {
        Some(read) if read == end => Ok(()),
        Some(_) | None => Err(TransferError::Missing(key.clone())),
    }
}
