//! Which rows stand on the device: those used last, within a budget of bytes.
//!
//! Rows are known by the identity of their segment, which never changes its bytes. First use
//! uploads; who asks meanwhile is told so and goes to the CPU, since an upload takes longer than
//! any search there. Rows are given up for others only if nobody asked for them while the others
//! were asked for several times: a working set beyond the budget must not wander to and fro.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cuda::DeviceError;
use crate::cuda::counters::Counters;

/// Times that rows must be asked for in vain before others make room for them.
const ASKS_BEFORE_EVICTION: u64 = 8;
/// Rows asked for in vain that are remembered.
const WAITING_MAX: usize = 4096;

/// What of a segment is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Lists, with one bit a component.
    T0,
    /// Codes, scales and residuals.
    T1,
    /// The originals, as f16.
    T2,
}

/// Names rows on the device.
pub type ResidentKey = (u128, Tier);

/// Whatever stands on the device; a tier is always of one type.
type Content = Arc<dyn Any + Send + Sync>;

/// What stands on the device.
pub struct Residency {
    budget_bytes: u64,
    counters: Arc<Counters>,
    state: Mutex<State>,
}

struct State {
    held: BTreeMap<ResidentKey, Held>,
    waiting: BTreeMap<ResidentKey, Waiting>,
    used_bytes: u64,
    /// Counts requests; stands in for time.
    tick: u64,
}

struct Held {
    bytes: u64,
    last_used: u64,
    /// Absent while it is uploaded.
    content: Option<Content>,
}

struct Waiting {
    since: u64,
    asks: u64,
}

impl Residency {
    /// Nothing yet, of at most `budget_bytes`.
    pub fn new(budget_bytes: u64, counters: Arc<Counters>) -> Self {
        let (held, waiting) = (BTreeMap::new(), BTreeMap::new());
        let state = State { held, waiting, used_bytes: 0, tick: 0 };
        Self { budget_bytes, counters, state: Mutex::new(state) }
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes
    }

    /// Whether `key` is there now. Does not count as a use.
    pub fn holds(&self, key: ResidentKey) -> bool {
        self.state.lock().held.get(&key).is_some_and(|held| held.content.is_some())
    }

    /// What stands under `key`; where nothing does, it is uploaded first, and then takes `bytes`.
    /// `upload` runs once, however many ask at the same time.
    ///
    /// # Errors
    /// [`DeviceError::Uploading`] while another request uploads it, [`DeviceError::OutOfMemory`]
    /// where there is no room, or what `upload` returned.
    pub fn get<T: Any + Send + Sync>(
        &self,
        key: ResidentKey,
        bytes: u64,
        upload: impl FnOnce() -> Result<T, DeviceError>,
    ) -> Result<Arc<T>, DeviceError> {
        // What is given up is freed after the lock is.
        let given_up;
        {
            let mut state = self.state.lock();
            state.tick += 1;
            let tick = state.tick;
            if let Some(held) = state.held.get_mut(&key) {
                held.last_used = tick;
                let content = held.content.clone().ok_or(DeviceError::Uploading)?;
                return Ok(content.downcast().expect("a tier is always of one type"));
            }
            let out_of_memory = DeviceError::OutOfMemory { bytes: bytes as usize };
            given_up = state.make_room(key, bytes, self.budget_bytes).ok_or(out_of_memory)?;
            state.used_bytes += bytes;
            state.held.insert(key, Held { bytes, last_used: tick, content: None });
        }
        given_up.iter().for_each(|_| self.counters.evicted());
        drop(given_up);
        let mut place = Place { residency: self, key, content: None };
        let content = Arc::new(upload()?);
        place.content = Some(Arc::clone(&content) as Content);
        self.counters.uploaded(bytes);
        Ok(content)
    }

    /// Gives up everything that nobody uses at the moment.
    pub fn clear(&self) {
        let mut state = self.state.lock();
        let keys: Vec<_> = state.held.keys().copied().collect();
        let given_up: Vec<_> = keys.into_iter().filter_map(|key| state.remove_idle(key)).collect();
        drop(state);
        drop(given_up);
    }
}

/// The place of something that is being uploaded; freed again if that fails.
struct Place<'a> {
    residency: &'a Residency,
    key: ResidentKey,
    content: Option<Content>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.residency.state.lock();
        match self.content.take() {
            Some(content) => {
                let held = state.held.get_mut(&self.key).expect("kept while it is uploaded");
                held.content = Some(content);
            }
            None => {
                let held = state.held.remove(&self.key).expect("kept while it is uploaded");
                state.used_bytes -= held.bytes;
            }
        }
    }
}

impl State {
    /// Takes away what must go so that `bytes` more fit into `budget`; `None` if they cannot.
    fn make_room(&mut self, key: ResidentKey, bytes: u64, budget: u64) -> Option<Vec<Content>> {
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
        let tick = self.tick;
        let waiting = self.waiting.entry(key).or_insert(Waiting { since: tick, asks: 0 });
        waiting.asks += 1;
        let since = waiting.since;
        if waiting.asks < ASKS_BEFORE_EVICTION {
            return None;
        }
        // A new count either way: what was in use all the while may be idle from now on.
        self.waiting.remove(&key);
        let victims = self.idle_since(since, missing)?;
        Some(victims.into_iter().filter_map(|key| self.remove_idle(key)).collect())
    }

    /// The keys used longest ago that hold `missing` bytes, all unused since `since`.
    fn idle_since(&self, since: u64, missing: u64) -> Option<Vec<ResidentKey>> {
        let idle = |held: &&Held| held.last_used < since && held.is_idle();
        let mut oldest: Vec<_> = self.held.iter().filter(|(_, held)| idle(held)).collect();
        oldest.sort_by_key(|(_, held)| held.last_used);
        let (mut victims, mut freed) = (Vec::new(), 0);
        for (key, held) in oldest {
            victims.push(*key);
            freed += held.bytes;
            if freed >= missing {
                return Some(victims);
            }
        }
        None
    }

    fn remove_idle(&mut self, key: ResidentKey) -> Option<Content> {
        self.held.get(&key).filter(|held| held.is_idle())?;
        let held = self.held.remove(&key)?;
        self.used_bytes -= held.bytes;
        held.content
    }
}

impl Held {
    /// Whether nobody else holds it, and so giving it up frees its memory at once.
    fn is_idle(&self) -> bool {
        self.content.as_ref().is_some_and(|content| Arc::strong_count(content) == 1)
    }
}

impl fmt::Debug for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let (held, used_bytes) = (state.held.len(), state.used_bytes);
        write!(f, "Residency({held} held, {used_bytes} of {} bytes)", self.budget_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(id: u128) -> ResidentKey {
        (id, Tier::T1)
    }

    fn residency(budget_bytes: u64) -> Residency {
        Residency::new(budget_bytes, Arc::default())
    }

    /// Whether `id` is there, or could be brought there.
    fn ask(residency: &Residency, id: u128, bytes: u64) -> bool {
        residency.get(key(id), bytes, || Ok(id)).is_ok_and(|found| *found == id)
    }

    #[test]
    fn the_budget_holds_and_idle_rows_make_room() {
        let residency = residency(100);
        assert!(ask(&residency, 1, 60) && ask(&residency, 2, 40));
        assert!(!ask(&residency, 3, 101), "never fits");
        // Rows in demand stay, however often others are asked for.
        for _ in 0..50 {
            assert!(ask(&residency, 1, 60) && ask(&residency, 2, 40));
            assert!(!ask(&residency, 3, 30));
        }
        // Rows that nobody asks for any more go, and only as many as must.
        for _ in 1..ASKS_BEFORE_EVICTION {
            assert!(ask(&residency, 2, 40) && residency.holds(key(1)));
            assert!(!ask(&residency, 4, 30));
        }
        assert!(ask(&residency, 2, 40) && ask(&residency, 4, 30));
        assert!(!residency.holds(key(1)) && residency.holds(key(2)));
        assert_eq!((residency.used_bytes(), residency.counters.get("gpu_evictions")), (70, 1));
    }

    #[test]
    fn simultaneous_first_use_uploads_once() {
        let (residency, uploads) = (residency(100), AtomicUsize::new(0));
        let (inside, go_on) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let found = residency.get(key(7), 10, || {
                    inside.wait();
                    go_on.wait();
                    uploads.fetch_add(1, Ordering::SeqCst);
                    Ok(7_u128)
                });
                assert_eq!(found.map(|found| *found), Ok(7));
            });
            inside.wait();
            let second = residency.get(key(7), 10, || Ok(8_u128));
            assert_eq!(second, Err(DeviceError::Uploading));
            go_on.wait();
        });
        assert!(ask(&residency, 7, 10));
        assert_eq!((uploads.load(Ordering::SeqCst), residency.used_bytes()), (1, 10));
    }

    #[test]
    fn a_failed_upload_leaves_no_trace() {
        let residency = residency(100);
        let lost = DeviceError::Lost { reason: "test".to_owned() };
        let failed = residency.get::<u128>(key(1), 90, || Err(lost.clone()));
        assert_eq!((failed, residency.used_bytes()), (Err(lost), 0));
        assert!(ask(&residency, 1, 90));
        let in_use = residency.get(key(1), 90, || Ok(1_u128)).unwrap();
        residency.clear();
        assert!(residency.holds(key(1)), "in use");
        drop(in_use);
        residency.clear();
        assert_eq!((residency.holds(key(1)), residency.used_bytes()), (false, 0));
    }
}
