//! A cache of segment data on the device, evicting the least recently used within a budget of
//! bytes.
//!
//! Entries are identified by their segment, whose bytes never change. The first request for an
//! entry reserves its place and has it uploaded; further requests meanwhile get
//! [`DeviceError::Uploading`] and fall back to the CPU, since an upload takes longer than any
//! search there.
//!
//! An entry is evicted only for one that is requested again `PATIENCE_MILLIS` after its first
//! request, and only if the entry itself was not used in between: a working set beyond the budget
//! must not be uploaded over and over.
//!
//! If the device has no memory for an upload, it counts as full: for [`MEMORY_PAUSE_MILLIS`],
//! uploads only replace evicted entries.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cuda::DeviceError;
use crate::cuda::counters::Counters;
use crate::cuda::numbers::Numbers;
use lodestone_types::{Clock, Timestamp};

/// Time before a device that ran out of memory is asked for as much again.
pub const MEMORY_PAUSE_MILLIS: u64 = 30_000;
/// Time after which other entries are evicted for one that is still requested.
const PATIENCE_MILLIS: u64 = 10_000;
/// Maximum number of absent entries whose requests are tracked.
const WAITING_MAX: usize = 4096;

/// The part of a segment that an entry holds; every part has one content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// T1, or T2 as f16.
    Rows(Numbers),
    /// The rows of the mask with this identity.
    Mask(u64),
}

/// Identity of a segment, and a part of it.
pub type CacheKey = (u128, Part);

/// Type-erased data on the device.
type Content = Arc<dyn Any + Send + Sync>;

/// Segment data on the device.
pub struct DeviceCache {
    budget_bytes: u64,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

struct State {
    entries: BTreeMap<CacheKey, Entry>,
    waiting: BTreeMap<CacheKey, Waiter>,
    used_bytes: u64,
    /// Set when the device ran out of memory: the bytes held at that time, which are the budget
    /// until the given time.
    full: Option<(u64, Timestamp)>,
    /// Counts requests; serves as logical time.
    tick: u64,
}

struct Entry {
    bytes: u64,
    last_used: u64,
    /// Absent during the upload.
    content: Option<Content>,
}

/// The first request for an absent entry.
#[derive(Clone, Copy)]
struct Waiter {
    tick: u64,
    at: Timestamp,
}

impl DeviceCache {
    /// Creates an empty cache of at most `budget_bytes`.
    pub fn new(budget_bytes: u64, clock: Arc<dyn Clock>, counters: Arc<Counters>) -> Self {
        let (entries, waiting) = (BTreeMap::new(), BTreeMap::new());
        let state = State { entries, waiting, used_bytes: 0, full: None, tick: 0 };
        Self { budget_bytes, clock, counters, state: Mutex::new(state) }
    }

    /// Returns the entry under `key`, or a reservation for `bytes` if it is absent.
    ///
    /// # Errors
    /// [`DeviceError::Uploading`] while it is reserved by another caller,
    /// [`DeviceError::OutOfMemory`] if the budget does not allow it.
    pub fn find<T: Any + Send + Sync>(
        self: &Arc<Self>,
        key: CacheKey,
        bytes: u64,
    ) -> Result<CacheLookup<T>, DeviceError> {
        // Declared outside of the lock's scope, so that evicted entries are freed after unlocking.
        let evicted;
        let now = self.clock.now();
        {
            let mut state = self.state.lock();
            state.tick += 1;
            let tick = state.tick;
            if let Some(entry) = state.entries.get_mut(&key) {
                entry.last_used = tick;
                let content = entry.content.clone().ok_or(DeviceError::Uploading)?;
                let content = content.downcast().expect("a part is always of one type");
                return Ok(CacheLookup::Hit(content));
            }
            let out_of_memory = DeviceError::OutOfMemory { bytes: bytes as usize };
            let budget = state.budget(self.budget_bytes, now);
            evicted = state.evict_for(key, bytes, budget, now).ok_or(out_of_memory)?;
            state.used_bytes += bytes;
            state.entries.insert(key, Entry { bytes, last_used: tick, content: None });
        }
        evicted.iter().for_each(|_| self.counters.evicted());
        let cache = Arc::clone(self);
        Ok(CacheLookup::Reserved(Reservation { cache, key, bytes, content: None }))
    }

    /// Returns the entry under `key`, uploading it if absent. Concurrent callers upload it only
    /// once.
    ///
    /// # Errors
    /// As [`Self::find`], or the error of `upload`.
    pub fn get<T: Any + Send + Sync>(
        self: &Arc<Self>,
        key: CacheKey,
        bytes: u64,
        upload: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<Arc<T>, DeviceError> {
        match self.find(key, bytes)? {
            CacheLookup::Hit(content) => Ok(content),
            CacheLookup::Reserved(reservation) => reservation.fill(upload),
        }
    }

    /// Checks that a reservation of `bytes` is still within the budget.
    fn admits(&self, bytes: u64) -> Result<(), DeviceError> {
        let state = self.state.lock();
        let fits = state.used_bytes <= state.budget(self.budget_bytes, self.clock.now());
        fits.then_some(()).ok_or(DeviceError::OutOfMemory { bytes: bytes as usize })
    }

    /// Records that the device had no memory for an upload.
    fn is_full(&self) {
        let mut state = self.state.lock();
        let there = state.entries.values().filter(|entry| entry.content.is_some());
        let bytes = there.map(|entry| entry.bytes).sum();
        state.full = Some((bytes, self.clock.now().plus_millis(MEMORY_PAUSE_MILLIS)));
    }
}

/// Result of a cache lookup.
#[derive(Debug)]
pub enum CacheLookup<T> {
    /// The entry is present.
    Hit(Arc<T>),
    /// The entry is absent, and this caller has to upload it.
    Reserved(Reservation),
}

/// The place reserved for an absent entry. When dropped, it stores the content, or frees the place
/// if there is none.
#[derive(Debug)]
pub struct Reservation {
    cache: Arc<DeviceCache>,
    key: CacheKey,
    bytes: u64,
    content: Option<Content>,
}

impl Reservation {
    /// Uploads the entry.
    ///
    /// # Errors
    /// The error of `upload`, or [`DeviceError::OutOfMemory`] if the device was found full
    /// meanwhile.
    pub fn fill<T: Any + Send + Sync>(
        mut self,
        upload: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<Arc<T>, DeviceError> {
        self.cache.admits(self.bytes)?;
        let content = Arc::new(upload().inspect_err(|error| {
            if matches!(error, DeviceError::OutOfMemory { .. }) {
                self.cache.is_full();
            }
        })?);
        self.content = Some(Arc::clone(&content) as Content);
        match self.key {
            (_, Part::Mask(_)) => self.cache.counters.kept_mask(),
            _ => self.cache.counters.uploaded(self.bytes),
        }
        Ok(content)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.cache.state.lock();
        match self.content.take() {
            Some(content) => {
                let entry =
                    state.entries.get_mut(&self.key).expect("an entry stays while it is uploaded");
                entry.content = Some(content);
            }
            None => {
                let entry =
                    state.entries.remove(&self.key).expect("an entry stays while it is uploaded");
                state.used_bytes -= entry.bytes;
            }
        }
    }
}

impl State {
    /// Returns the bytes that entries may take: `whole`, or less while the device counts as full.
    fn budget(&self, whole: u64, now: Timestamp) -> u64 {
        let full = self.full.filter(|(_, until)| now < *until);
        full.map_or(whole, |(bytes, _)| bytes.min(whole))
    }

    /// Evicts entries so that `bytes` more fit into `budget`; `None` if that is impossible or too
    /// early.
    fn evict_for(
        &mut self,
        key: CacheKey,
        bytes: u64,
        budget: u64,
        now: Timestamp,
    ) -> Option<Vec<Content>> {
        if bytes > budget {
            return None;
        }
        let missing = (self.used_bytes + bytes).saturating_sub(budget);
        if missing == 0 {
            self.waiting.remove(&key);
            return Some(Vec::new());
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.clear();
        }
        let first = Waiter { tick: self.tick, at: now };
        let Waiter { tick, at } = *self.waiting.entry(key).or_insert(first);
        if now < at.plus_millis(PATIENCE_MILLIS) {
            return None;
        }
        // Restart the patience period: entries in use so far may be idle from now on.
        self.waiting.insert(key, first);
        let victims = self.idle_since(tick, missing)?;
        self.waiting.remove(&key);
        Some(victims.into_iter().filter_map(|key| self.remove_idle(key)).collect())
    }

    /// Returns the least recently used idle keys that hold `missing` bytes, all unused since
    /// `since`.
    fn idle_since(&self, since: u64, missing: u64) -> Option<Vec<CacheKey>> {
        let idle = |entry: &&Entry| entry.last_used < since && entry.is_idle();
        let mut oldest: Vec<_> = self.entries.iter().filter(|(_, entry)| idle(entry)).collect();
        oldest.sort_by_key(|(_, entry)| entry.last_used);
        let (mut victims, mut freed) = (Vec::new(), 0);
        for (key, entry) in oldest {
            victims.push(*key);
            freed += entry.bytes;
            if freed >= missing {
                return Some(victims);
            }
        }
        None
    }

    fn remove_idle(&mut self, key: CacheKey) -> Option<Content> {
        self.entries.get(&key).filter(|entry| entry.is_idle())?;
        let entry = self.entries.remove(&key)?;
        self.used_bytes -= entry.bytes;
        entry.content
    }
}

impl Entry {
    /// Whether the cache holds the only reference, so that eviction frees the memory at once.
    fn is_idle(&self) -> bool {
        self.content.as_ref().is_some_and(|content| Arc::strong_count(content) == 1)
    }
}

impl fmt::Debug for DeviceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let (entries, used_bytes) = (state.entries.len(), state.used_bytes);
        write!(f, "DeviceCache({entries} entries, {used_bytes} of {} bytes)", self.budget_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use lodestone_types::ManualClock;

    fn key(id: u128) -> CacheKey {
        (id, Part::Rows(Numbers::Codes))
    }

    fn cache_and_clock(budget_bytes: u64) -> (Arc<DeviceCache>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::default());
        let cache = DeviceCache::new(budget_bytes, Arc::clone(&clock) as _, Arc::default());
        (Arc::new(cache), clock)
    }

    fn cache(budget_bytes: u64) -> Arc<DeviceCache> {
        cache_and_clock(budget_bytes).0
    }

    fn holds(cache: &DeviceCache, id: u128) -> bool {
        cache.state.lock().entries.get(&key(id)).is_some_and(|entry| entry.content.is_some())
    }

    fn used_bytes(cache: &DeviceCache) -> u64 {
        cache.state.lock().used_bytes
    }

    /// Whether `id` is present or can be uploaded.
    fn ask(cache: &Arc<DeviceCache>, id: u128, bytes: u64) -> bool {
        cache.get(key(id), bytes, || Ok(id)).is_ok_and(|found| *found == id)
    }

    #[test]
    fn the_budget_holds_and_idle_rows_make_place() {
        let (cache, clock) = cache_and_clock(100);
        assert!(ask(&cache, 1, 60) && ask(&cache, 2, 40));
        assert!(!ask(&cache, 3, 101), "never fits");
        // Rows in use stay, however often and long others are requested.
        for _ in 0..50 {
            assert!(ask(&cache, 1, 60) && ask(&cache, 2, 40));
            assert!(!ask(&cache, 3, 30));
            clock.advance_millis(PATIENCE_MILLIS);
        }
        // Idle entries are evicted, no more of them than needed, and not for a burst of requests.
        for _ in 0..50 {
            assert!(ask(&cache, 2, 40) && holds(&cache, 1));
            assert!(!ask(&cache, 4, 30));
        }
        clock.advance_millis(PATIENCE_MILLIS);
        assert!(ask(&cache, 2, 40) && ask(&cache, 4, 30));
        assert!(!holds(&cache, 1) && holds(&cache, 2));
        assert_eq!((used_bytes(&cache), cache.counters.get("gpu_evictions")), (70, 1));
    }

    /// Until its pause is over, nothing is uploaded to a full device, not even what had reserved
    /// its place before, except in place of idle entries.
    #[test]
    fn a_full_device_is_left_alone_for_a_while() {
        let (cache, clock) = cache_and_clock(100);
        assert!(ask(&cache, 1, 40));
        let Ok(CacheLookup::Reserved(waiting)) = cache.find::<u128>(key(2), 20) else {
            panic!("absent")
        };
        let full = DeviceError::OutOfMemory { bytes: 30 };
        assert_eq!(cache.get::<u128>(key(3), 30, || Err(full.clone())), Err(full));
        let never = || -> Result<u128, DeviceError> { panic!("an upload to a full device") };
        assert!(waiting.fill(never).is_err());
        for id in [2, 3] {
            assert!(cache.get(key(id), 20, never).is_err());
        }
        assert!(ask(&cache, 1, 40) && used_bytes(&cache) == 40);
        clock.advance_millis(PATIENCE_MILLIS);
        assert!(cache.get(key(2), 20, never).is_err(), "asked for since: another wait");
        clock.advance_millis(PATIENCE_MILLIS);
        assert!(ask(&cache, 2, 20) && !holds(&cache, 1), "in the place of idle rows");
        clock.advance_millis(MEMORY_PAUSE_MILLIS - 2 * PATIENCE_MILLIS);
        assert!(ask(&cache, 3, 80) && ask(&cache, 2, 20), "another try");
    }

    #[test]
    fn simultaneous_first_use_uploads_once() {
        let (cache, uploads) = (cache(100), AtomicUsize::new(0));
        let (inside, go_on) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let found = cache.get(key(7), 10, || {
                    inside.wait();
                    go_on.wait();
                    uploads.fetch_add(1, Ordering::SeqCst);
                    Ok(7_u128)
                });
                assert_eq!(found.map(|found| *found), Ok(7));
            });
            inside.wait();
            let second = cache.get(key(7), 10, || Ok(8_u128));
            assert_eq!(second, Err(DeviceError::Uploading));
            go_on.wait();
        });
        assert!(ask(&cache, 7, 10));
        assert_eq!((uploads.load(Ordering::SeqCst), used_bytes(&cache)), (1, 10));
    }

    #[test]
    fn a_failed_upload_leaves_no_trace() {
        let cache = cache(100);
        let lost = DeviceError::Lost { reason: "test".to_owned() };
        let failed = cache.get::<u128>(key(1), 90, || Err(lost.clone()));
        assert_eq!((failed, used_bytes(&cache)), (Err(lost), 0));
        assert!(ask(&cache, 1, 90));
    }
}
