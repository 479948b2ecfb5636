//! Local copies of blobs, within a byte budget.
//!
//! A copy is a file named after its key; it is complete and synced before it gets that name. Copies
//! survive a restart. The least recently used ones are evicted first. Mapped copies are never
//! evicted, because that would not free their disk space; if open collections need more than the
//! budget, it is exceeded.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::SystemTime;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::TransferError;
use lodestone_io::store::Key;
use lodestone_io::{FileSlice, IoError, MappedFile, Operation};

/// State of the local copies, for operators.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Number of copies.
    pub copies: u64,
    /// Bytes of all copies.
    pub bytes: u64,
    /// Bytes that copies may take.
    pub budget: u64,
    /// Uses since the start that found a copy.
    pub hits: u64,
    /// Uses since the start that had to fetch the blob.
    pub misses: u64,
    /// Copies evicted since the start.
    pub evictions: u64,
}

#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
    state: Mutex<State>,
    /// Notified when a fetch has ended.
    fetched: Condvar,
}

#[derive(Debug, Default)]
struct State {
    copies: HashMap<Key, CachedCopy>,
    /// Keys ordered by their last use.
    by_use: BTreeMap<u64, Key>,
    fetching: HashSet<Key>,
    uses: u64,
    counts: CacheCounts,
}

#[derive(Debug)]
struct CachedCopy {
    bytes: u64,
    last_use: u64,
    mapped: Weak<File>,
}

impl Cache {
    /// Opens the copies below `root`, creating the directory if needed. `budget` receives the bytes
    /// that existing copies take, and returns the bytes that copies may take.
    pub(crate) fn open(
        root: PathBuf,
        budget: impl FnOnce(u64) -> Result<u64, IoError>,
    ) -> Result<Self, IoError> {
        fs::create_dir_all(&root)
            .map_err(|error| IoError::new(Operation::CreateDirectory, &root, error))?;
        let mut found = Vec::new();
        collect(&root, "", &mut found)?;
        found.sort_unstable_by_key(|(time, ..)| *time);
        let mut state = State::default();
        for (_, key, bytes) in found {
            state.insert(key, bytes);
        }
        state.counts.budget = budget(state.counts.bytes)?;
        let cache = Self { root, state: Mutex::new(state), fetched: Condvar::new() };
        cache.make_room(&mut cache.state.lock());
        Ok(cache)
    }

    /// Replaces the budget by what `budget` returns for the bytes of all copies and the present
    /// budget, and evicts copies beyond it.
    pub(crate) fn fit(&self, budget: impl FnOnce(u64, u64) -> u64) {
        let mut state = self.state.lock();
        state.counts.budget = budget(state.counts.bytes, state.counts.budget);
        self.make_room(&mut state);
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let state = self.state.lock();
        CacheCounts { copies: state.copies.len() as u64, ..state.counts }
    }

    /// Maps the copy of a blob. If there is none, `fetch` first downloads the blob to a temporary
    /// file and returns its path and length.
    pub(crate) fn map(
        &self,
        key: &Key,
        fetch: impl Fn() -> Result<(PathBuf, u64), TransferError>,
    ) -> Result<MappedFile, TransferError> {
        self.with(key, fetch, |path, copy| {
            let mapped = MappedFile::open(path)?;
            copy.mapped = mapped.holders();
            Ok(mapped)
        })
    }

    /// Opens the copy of a blob like [`Self::map`], for reading in pieces.
    pub(crate) fn file(
        &self,
        key: &Key,
        fetch: impl Fn() -> Result<(PathBuf, u64), TransferError>,
    ) -> Result<FileSlice, TransferError> {
        self.with(key, fetch, |path, _| FileSlice::open(path))
    }

    /// The length of the copy, if there is one.
    pub(crate) fn len(&self, key: &Key) -> Option<u64> {
        self.state.lock().copies.get(key).map(|copy| copy.bytes)
    }

    /// Opens a copy while holding the lock, so that it cannot be evicted in between. The lock is
    /// released while `fetch` runs; concurrent callers for the same blob wait for that fetch.
    fn with<T>(
        &self,
        key: &Key,
        fetch: impl Fn() -> Result<(PathBuf, u64), TransferError>,
        open: impl Fn(&Path, &mut CachedCopy) -> Result<T, IoError>,
    ) -> Result<T, TransferError> {
        let path = self.path(key);
        let mut state = self.state.lock();
        let mut is_fetched = false;
        loop {
            if let Some(copy) = state.copies.get_mut(key) {
                match open(&path, copy) {
                    Ok(opened) => {
                        state.note_use(key);
                        state.counts.hits += u64::from(!is_fetched);
                        return Ok(opened);
                    }
                    // The cache folder was cleared from outside, which it has to survive.
                    Err(IoError::NotFound { .. }) if !is_fetched => state.remove(key),
                    Err(error) => return Err(error.into()),
                }
            }
            if state.fetching.contains(key) {
                self.fetched.wait(&mut state);
                continue;
            }
            state.counts.misses += 1;
            state.fetching.insert(key.clone());
            // A panic is caught so that waiting callers are woken up.
            let fetch = || catch_unwind(AssertUnwindSafe(&fetch));
            let result = MutexGuard::unlocked(&mut state, fetch);
            state.fetching.remove(key);
            self.fetched.notify_all();
            let (temporary, bytes) = result.unwrap_or_else(|panic| resume_unwind(panic))?;
            self.place(&mut state, key, &temporary, bytes).inspect_err(|_| {
                let _ = fs::remove_file(&temporary);
            })?;
            is_fetched = true;
        }
    }

    /// Moves a complete and synced file into the cache as the copy of a blob.
    pub(crate) fn adopt(&self, key: &Key, temporary: &Path, bytes: u64) -> Result<(), IoError> {
        self.place(&mut self.state.lock(), key, temporary, bytes)
    }

    fn place(
        &self,
        state: &mut State,
        key: &Key,
        temporary: &Path,
        bytes: u64,
    ) -> Result<(), IoError> {
        let path = self.path(key);
        let directory = path.parent().unwrap_or(&self.root);
        let moved = fs::create_dir_all(directory).and_then(|()| fs::rename(temporary, &path));
        moved.map_err(|error| IoError::new(Operation::Rename, &path, error))?;
        state.insert(key.clone(), bytes);
        self.make_room(state);
        Ok(())
    }

    /// Removes a copy; returns whether there was one.
    pub(crate) fn forget(&self, key: &Key) -> bool {
        let mut state = self.state.lock();
        let is_known = state.copies.contains_key(key);
        if is_known {
            self.remove(&mut state, key);
        }
        is_known
    }

    /// The distinct first three components of the names of all copies.
    pub(crate) fn prefixes(&self) -> BTreeSet<Key> {
        let state = self.state.lock();
        let names: BTreeSet<&str> = state.copies.keys().map(|key| prefix(key.as_str())).collect();
        names.into_iter().filter_map(|name| Key::parse(name).ok()).collect()
    }

    /// The keys of the copies below a prefix.
    pub(crate) fn below(&self, prefix: &Key) -> Vec<Key> {
        let state = self.state.lock();
        state.copies.keys().filter(|key| key.begins_with(prefix)).cloned().collect()
    }

    fn make_room(&self, state: &mut State) {
        let mut spared = 0;
        while state.counts.bytes > state.counts.budget {
            // The most recently used copy is spared, because it was just requested.
            let is_free = |key: &Key| state.copies[key].mapped.strong_count() == 0;
            let older = state.by_use.values().take(state.by_use.len().saturating_sub(1));
            let Some(key) = older.skip(spared).find(|key| is_free(key)).cloned() else { break };
            spared = state.by_use.values().take_while(|one| **one != key).count();
            self.remove(state, &key);
            state.counts.evictions += 1;
        }
    }

    fn remove(&self, state: &mut State, key: &Key) {
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%key, %error, "removing a cached blob failed");
            }
            _ => {}
        }
        state.remove(key);
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_str())
    }
}

impl State {
    fn insert(&mut self, key: Key, bytes: u64) {
        self.remove(&key);
        self.uses += 1;
        self.counts.bytes += bytes;
        self.by_use.insert(self.uses, key.clone());
        self.copies.insert(key, CachedCopy { bytes, last_use: self.uses, mapped: Weak::new() });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(copy) = self.copies.remove(key) {
            self.by_use.remove(&copy.last_use);
            self.counts.bytes -= copy.bytes;
        }
    }

    fn note_use(&mut self, key: &Key) {
        self.uses += 1;
        if let Some(copy) = self.copies.get_mut(key) {
            self.by_use.remove(&copy.last_use);
            copy.last_use = self.uses;
            self.by_use.insert(self.uses, key.clone());
        }
    }
}

fn prefix(name: &str) -> &str {
    name.match_indices('/').nth(2).map_or(name, |(end, _)| &name[..end])
}

/// Collects the files below a directory whose names are keys, with modification time and length.
fn collect(
    directory: &Path,
    name: &str,
    found: &mut Vec<(SystemTime, Key, u64)>,
) -> Result<(), IoError> {
    let failed = |error| IoError::new(Operation::List, directory, error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(own) = entry.file_name().into_string() else { continue };
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() {
            collect(&entry.path(), &name, found)?;
        } else if let Ok(key) = Key::parse(&name) {
            let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((time, key, metadata.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Fixture {
        root: tempfile::TempDir,
        fetches: AtomicUsize,
    }

    impl Fixture {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap(), fetches: AtomicUsize::new(0) }
        }

        fn cache(&self, budget: u64) -> Cache {
            Cache::open(self.root.path().join("blobs"), |_| Ok(budget)).unwrap()
        }

        /// Creates a blob of a hundred bytes.
        fn fetch(&self) -> Result<(PathBuf, u64), TransferError> {
            let number = self.fetches.fetch_add(1, Ordering::SeqCst);
            let path = self.root.path().join(number.to_string());
            fs::write(&path, [7; 100]).unwrap();
            Ok((path, 100))
        }

        fn map(&self, cache: &Cache, name: &str) -> MappedFile {
            cache.map(&key(name), || self.fetch()).unwrap()
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::SeqCst)
        }
    }

    fn key(name: &str) -> Key {
        Key::parse(&format!("v1/c/{name}")).unwrap()
    }

    #[test]
    fn copies_are_fetched_once_and_survive_a_restart() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        for _ in 0..2 {
            assert_eq!(&fixture.map(&cache, "a")[..], [7; 100]);
        }
        assert_eq!((fixture.fetches(), cache.len(&key("a"))), (1, Some(100)));
        let again = fixture.cache(1000);
        fixture.map(&again, "a");
        assert_eq!(fixture.fetches(), 1);
        let counts = again.counts();
        assert_eq!((counts.copies, counts.bytes, counts.hits, counts.misses), (1, 100, 1, 0));
        fs::remove_dir_all(fixture.root.path().join("blobs/v1")).unwrap();
        fixture.map(&again, "a");
        assert_eq!(fixture.fetches(), 2, "a folder that was cleared is no damage");
    }

    /// Goal: at the next start, the space taken by copies is not mistaken for a full disk.
    #[test]
    fn the_budget_is_told_of_the_copies_that_are_there() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        ["a", "b"].iter().for_each(|name| drop(fixture.map(&cache, name)));
        let again = Cache::open(fixture.root.path().join("blobs"), Ok).unwrap();
        let counts = again.counts();
        assert_eq!((counts.budget, counts.bytes, counts.copies), (200, 200, 2));
    }

    #[test]
    fn the_least_used_goes_and_what_is_mapped_stays() {
        let fixture = Fixture::new();
        let cache = fixture.cache(250);
        let held = fixture.map(&cache, "a");
        fixture.map(&cache, "b");
        fixture.map(&cache, "c");
        let has = |name: &str| cache.len(&key(name)).is_some();
        assert!(has("a") && !has("b") && has("c"), "a is mapped, b was used longest ago");
        drop(held);
        fixture.map(&cache, "d");
        assert!(!has("a") && has("c") && has("d"));
        assert_eq!(cache.counts().evictions, 2);
        // A copy larger than the budget stays while it is the most recent one.
        assert_eq!(fixture.cache(50).counts().copies, 1);
    }

    #[test]
    fn a_smaller_budget_evicts_at_once() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        let held = fixture.map(&cache, "a");
        ["b", "c"].iter().for_each(|name| drop(fixture.map(&cache, name)));
        cache.fit(|bytes, budget| bytes + budget);
        assert_eq!((cache.counts().budget, cache.counts().copies), (1300, 3));
        cache.fit(|_, _| 200);
        let has = |name: &str| cache.len(&key(name)).is_some();
        assert!(has("a") && !has("b") && has("c"));
        drop(held);
    }

    #[test]
    fn copies_are_listed_by_prefix() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        ["a/s/1", "a/s/2", "ab/s/1"].iter().for_each(|name| drop(fixture.map(&cache, name)));
        assert_eq!(cache.prefixes(), BTreeSet::from([key("a"), key("ab")]));
        let mut below = cache.below(&key("a"));
        below.sort_unstable();
        assert_eq!(below, [key("a/s/1"), key("a/s/2")]);
        below.iter().for_each(|key| assert!(cache.forget(key)));
        assert_eq!(cache.prefixes(), BTreeSet::from([key("ab")]));
        assert_eq!(fixture.cache(1000).counts().copies, 1, "their files are gone too");
    }

    #[test]
    fn callers_of_one_blob_wait_for_one_fetch() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    fixture.map(&cache, "a");
                });
            }
        });
        assert_eq!(fixture.fetches(), 1);
    }

    #[test]
    fn a_fetch_that_failed_is_tried_again_by_the_next() {
        let fixture = Fixture::new();
        let cache = fixture.cache(1000);
        let failed = cache.map(&key("a"), || Err(TransferError::Missing(key("a"))));
        assert!(matches!(failed, Err(TransferError::Missing(_))));
        let panics = || cache.map(&key("a"), || panic!("on purpose: part of a test"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        fixture.map(&cache, "a");
        assert!(cache.forget(&key("a")) && !cache.forget(&key("a")));
        fixture.map(&cache, "a");
        assert_eq!(fixture.fetches(), 2);
    }
}
