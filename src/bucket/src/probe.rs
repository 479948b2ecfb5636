//! Tests of the guarantees of a store, made before any data depends on them.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::SharedStoreError;
use crate::owner::OWNER;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put};
use lodestone_types::Timestamp;

/// The object that marks a prefix as a store; not a blob.
const MARK: &str = "lodestone-store";
const FORMAT: u32 = 1;
/// The object that exists while data are being copied to a prefix; it names their origin.
const COPYING: &str = "copying";
/// The folder for the objects of a probe.
const PROBES: &str = "probe/";
/// Number of requests that create one name simultaneously.
const RACERS: usize = 16;
const ROUNDS: usize = 8;

/// Results of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// Number of names that several requests tried to create simultaneously, with one winner each.
    pub races: usize,
    /// Number of requests in each of these races.
    pub racers: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoreMark {
    format: u32,
    /// Time of creation, in milliseconds since 1970.
    since: u64,
    probed: Probed,
}

/// Checks whether a prefix can hold the data of a server: it must be marked, or empty except for
/// the traces of a process that is about to mark it or was interrupted while doing so. Changes
/// nothing. Returns whether it is marked. `origin` is the place from which data are about to be
/// copied there, if any.
///
/// # Errors
/// [`SharedStoreError::Unfit`] if the prefix holds other objects, an unfinished copy from
/// elsewhere, or the mark of a later format; errors of the bucket.
pub fn check_prefix(bucket: &Bucket, origin: Option<&str>) -> Result<bool, SharedStoreError> {
    Ok(read_mark(bucket, origin)?.is_some())
}

fn read_mark(bucket: &Bucket, origin: Option<&str>) -> Result<Option<StoreMark>, SharedStoreError> {
    if let Some(bytes) = bucket.get(COPYING)? {
        let from = String::from_utf8_lossy(&bytes);
        if origin != Some(&*from) {
            let problem =
                format!("it is an unfinished copy of {from}: run lodestone store copy again");
            return Err(unfit(bucket, problem));
        }
    }
    if let Some(bytes) = bucket.get(MARK)? {
        let mark: StoreMark = serde_json::from_slice(&bytes)
            .map_err(|error| unfit(bucket, format!("its object {MARK} is damaged: {error}")))?;
        return match mark.format {
            ..=FORMAT => Ok(Some(mark)),
            format => Err(unfit(
                bucket,
                format!(
                    "it has format {format}, but this program supports {FORMAT}: use a later \
                     release"
                ),
            )),
        };
    }
    // A process that is about to mark the prefix has already written its name and probe objects.
    let is_known = |key: &str| key == OWNER || key.starts_with(PROBES);
    match bucket.holds_only(is_known)? {
        true => Ok(None),
        false => Err(unfit(
            bucket,
            format!("it is not empty and has no object {MARK}: choose an empty prefix"),
        )),
    }
}

/// Marks an empty prefix after [`probe`] succeeds. For a marked prefix, repeats a small probe, in
/// case the store has since lost a guarantee. Returns the time of the mark.
///
/// # Errors
/// As [`check_prefix`] and [`probe`].
pub fn mark_prefix(
    bucket: &Bucket,
    token: &str,
    origin: Option<&str>,
    now: Timestamp,
) -> Result<Timestamp, SharedStoreError> {
    if let Some(mark) = read_mark(bucket, origin)? {
        run(bucket, token, 1, 2)?;
        return Ok(Timestamp(mark.since));
    }
    // Left by an interrupted process.
    for (key, _) in bucket.list(PROBES)? {
        bucket.remove(&key)?;
    }
    let mark = StoreMark { format: FORMAT, since: now.0, probed: probe(bucket, token)? };
    let bytes = serde_json::to_vec(&mark).expect("plain data always prints");
    bucket.put(MARK, &bytes, Condition::None)?;
    Ok(now)
}

/// Whether a prefix is an unfinished copy from `origin`.
///
/// # Errors
/// Those of the bucket.
pub fn is_copy_of(bucket: &Bucket, origin: &str) -> Result<bool, SharedStoreError> {
    Ok(bucket.get(COPYING)?.is_some_and(|from| from == origin.as_bytes()))
}

/// Records that data are being copied to a prefix. No server starts on it until [`end_copy`].
/// `is_empty` says whether the prefix holds no data yet.
///
/// # Errors
/// [`SharedStoreError::Unfit`] if it holds data that are not an unfinished copy from `origin`;
/// errors of the bucket.
pub fn begin_copy(bucket: &Bucket, origin: &str, is_empty: bool) -> Result<(), SharedStoreError> {
    if !is_empty && !is_copy_of(bucket, origin)? {
        let problem = format!(
            "it holds data that are not an unfinished copy of {origin}: choose an empty prefix"
        );
        return Err(unfit(bucket, problem));
    }
    Ok(bucket.put(COPYING, origin.as_bytes(), Condition::None).map(drop)?)
}

/// Records that the copy is complete.
///
/// # Errors
/// Those of the bucket.
pub fn end_copy(bucket: &Bucket) -> Result<(), SharedStoreError> {
    Ok(bucket.remove(COPYING)?)
}

/// Tests the guarantees that blobs need: if several requests create one name simultaneously,
/// exactly one wins and all read its bytes immediately; a listing is complete immediately and
/// ordered; a ranged read returns that range; deleted objects are gone. Removes its objects.
/// `token` separates concurrent probes.
///
/// # Errors
/// [`SharedStoreError::Unfit`] with the guarantee that does not hold; errors of the bucket.
pub fn probe(bucket: &Bucket, token: &str) -> Result<Probed, SharedStoreError> {
    run(bucket, token, ROUNDS, RACERS)
}

fn run(
    bucket: &Bucket,
    token: &str,
    rounds: usize,
    racers: usize,
) -> Result<Probed, SharedStoreError> {
    let folder = format!("{PROBES}{token}");
    let tried = try_rules(bucket, &folder, rounds, racers);
    for (key, _) in bucket.list(&format!("{folder}/"))? {
        bucket.remove(&key)?;
    }
    tried?;
    if let Some((key, _)) = bucket.list(&format!("{folder}/"))?.first() {
        return Err(unfit(bucket, format!("{key} is still listed after it was deleted")));
    }
    Ok(Probed { races: rounds, racers })
}

fn unfit(bucket: &Bucket, problem: String) -> SharedStoreError {
    SharedStoreError::Unfit { place: bucket.url().to_string(), problem }
}

fn try_rules(
    bucket: &Bucket,
    folder: &str,
    rounds: usize,
    racers: usize,
) -> Result<(), SharedStoreError> {
    let mut names = Vec::new();
    for round in 0..rounds {
        let key = format!("{folder}/{round:020}");
        race(bucket, &key, racers)?;
        names.push(key);
    }
    let listed = bucket.list(&format!("{folder}/"))?;
    if !listed.iter().map(|(key, _)| key).eq(&names) {
        return Err(unfit(
            bucket,
            "new objects are not listed immediately and in order".to_owned(),
        ));
    }
    let mut part = Vec::new();
    let end = bucket.read_part(&names[0], 1..3, &mut |piece| {
        part.extend_from_slice(piece);
        Ok::<_, BucketError>(())
    })?;
    match (end, &part[..]) {
        (Some(3), b"ac") => Ok(()),
        _ => Err(unfit(bucket, "a range of an object is not that range".to_owned())),
    }
}

/// Creates one name from several threads simultaneously, and checks that exactly one wins.
fn race(bucket: &Bucket, key: &str, racers: usize) -> Result<(), SharedStoreError> {
    let (start, winners) = (Barrier::new(racers), AtomicUsize::new(0));
    let compete = |number: usize| -> Result<Vec<u8>, SharedStoreError> {
        let own = format!("racer {number}").into_bytes();
        start.wait();
        let put = bucket.put(key, &own, Condition::Absent)?;
        let seen = bucket
            .get(key)?
            .ok_or_else(|| unfit(bucket, "a newly created object cannot be read".to_owned()))?;
        // If the response was lost, the bytes found tell whether this request won.
        if matches!(put, Put::Done(_)) || seen == own {
            winners.fetch_add(1, Ordering::SeqCst);
        }
        Ok(seen)
    };
    let seen: Result<Vec<_>, _> = std::thread::scope(|scope| {
        let compete = &compete;
        let threads: Vec<_> =
            (0..racers).map(|number| scope.spawn(move || compete(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let (seen, winners) = (seen?, winners.into_inner());
    if winners != 1 || seen.iter().any(|bytes| *bytes != seen[0]) {
        return Err(unfit(
            bucket,
            format!(
                "{winners} of {racers} concurrent requests created the same name: the store does \
                 not enforce conditional creation, so commits could overwrite each other"
            ),
        ));
    }
    Ok(())
}
