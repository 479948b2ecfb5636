//! A bounded cache of values read from the catalog file.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::RwLock;

use super::error::Result;
use lodestone_metrics::{Counter, Labelled};

struct State<K, V> {
    entries: HashMap<K, Arc<V>>,
    /// Keys known to have no value, if the cache uses negative entries.
    absent: HashSet<K>,
    /// Number of invalidations.
    generation: u64,
}

/// A bounded cache. A value read before an invalidation is never stored after it, so a reader
/// overtaken by a writer cannot bring back a stale value.
pub(super) struct Cache<K, V> {
    state: RwLock<State<K, V>>,
    capacity: usize,
    has_negative_entries: bool,
    /// Look-ups answered by the cache, and misses.
    pub(super) requests: Labelled<Counter, 2>,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    pub(super) fn new(capacity: usize) -> Self {
        let state = State { entries: HashMap::new(), absent: HashSet::new(), generation: 0 };
        let requests = Labelled::new("outcome", ["hit", "miss"], Counter::default);
        Self { state: RwLock::new(state), capacity, has_negative_entries: false, requests }
    }

    /// Enables negative caching: up to `capacity` keys without a value are remembered too. Callers
    /// that create a value must call [`Self::forget`].
    pub(super) fn with_negative_entries(self) -> Self {
        Self { has_negative_entries: true, ..self }
    }

    /// Whether the cache can answer for `key` without a read.
    pub(super) fn holds(&self, key: &K) -> bool {
        let state = self.state.read();
        state.entries.contains_key(key) || state.absent.contains(key)
    }

    /// Returns the entry of `key`, calling `load` on a miss.
    pub(super) fn get_or_load(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<Option<V>>,
    ) -> Result<Option<Arc<V>>> {
        let generation = {
            let state = self.state.read();
            if let Some(value) = state.entries.get(key) {
                self.requests.at(0).inc();
                return Ok(Some(Arc::clone(value)));
            }
            if state.absent.contains(key) {
                self.requests.at(0).inc();
                return Ok(None);
            }
            state.generation
        };
        self.requests.at(1).inc();
        let loaded = load()?.map(Arc::new);
        if loaded.is_none() && !self.has_negative_entries {
            return Ok(None);
        }
        let mut state = self.state.write();
        let Some(value) = loaded else {
            if state.generation == generation {
                // Kept apart from the entries, so that unknown keys cannot evict known ones.
                if state.absent.len() >= self.capacity {
                    state.absent.clear();
                }
                state.absent.insert(key.clone());
            }
            return Ok(None);
        };
        if state.generation == generation {
            // Starting over is crude, but costs one read per entry and needs no bookkeeping.
            if state.entries.len() >= self.capacity {
                state.entries.clear();
            }
            state.entries.insert(key.clone(), Arc::clone(&value));
        }
        Ok(Some(value))
    }

    /// Invalidates one entry.
    pub(super) fn forget(&self, key: &K) {
        let mut state = self.state.write();
        state.generation += 1;
        state.entries.remove(key);
        state.absent.remove(key);
    }

    /// Invalidates everything.
    pub(super) fn clear(&self) {
        let mut state = self.state.write();
        state.generation += 1;
        state.entries.clear();
        state.absent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_once_until_they_are_forgotten() {
        let cache: Cache<u8, u8> = Cache::new(8);
        assert_eq!(cache.get_or_load(&1, || Ok(Some(10))).unwrap(), Some(Arc::new(10)));
        assert_eq!(cache.get_or_load(&1, || unreachable!()).unwrap(), Some(Arc::new(10)));
        cache.forget(&1);
        assert_eq!(cache.get_or_load(&1, || Ok(Some(11))).unwrap(), Some(Arc::new(11)));
        cache.clear();
        assert_eq!(cache.get_or_load(&1, || Ok(None)).unwrap(), None);
        assert_eq!([0, 1].map(|at| cache.requests.at(at).get()), [1, 3]);
    }

    #[test]
    fn a_value_read_before_an_invalidation_is_not_kept() {
        let cache: Cache<u8, u8> = Cache::new(8);
        let overtaken = cache.get_or_load(&1, || {
            cache.forget(&1);
            Ok(Some(10))
        });
        assert_eq!(overtaken.unwrap(), Some(Arc::new(10)));
        assert_eq!(cache.get_or_load(&1, || Ok(Some(11))).unwrap(), Some(Arc::new(11)));
        let cache: Cache<u8, u8> = Cache::new(8);
        let overtaken = cache.get_or_load(&1, || {
            cache.clear();
            Ok(Some(10))
        });
        assert_eq!(overtaken.unwrap(), Some(Arc::new(10)));
        assert_eq!(cache.get_or_load(&1, || Ok(Some(11))).unwrap(), Some(Arc::new(11)));
    }

    #[test]
    fn absence_is_read_once_until_a_value_is_made() {
        let cache: Cache<u32, u32> = Cache::new(8).with_negative_entries();
        cache.get_or_load(&1, || Ok(Some(1))).unwrap();
        for key in 100..200 {
            assert!(!cache.holds(&key));
            assert_eq!(cache.get_or_load(&key, || Ok(None)).unwrap(), None);
            assert!(cache.holds(&key) && cache.holds(&1));
            assert_eq!(cache.get_or_load(&key, || unreachable!()).unwrap(), None);
            assert_eq!(cache.state.read().absent.len() as u32, (key - 100) % 8 + 1);
        }
        assert!(cache.get_or_load(&1, || unreachable!()).unwrap().is_some(), "still there");
        cache.forget(&199);
        assert_eq!(cache.get_or_load(&199, || Ok(Some(2))).unwrap(), Some(Arc::new(2)));
        let overtaken = cache.get_or_load(&2, || {
            cache.forget(&2);
            Ok(None)
        });
        assert_eq!(overtaken.unwrap(), None);
        assert!(cache.get_or_load(&2, || Ok(Some(3))).unwrap().is_some());
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        let cache: Cache<u32, u32> = Cache::new(8);
        for key in 0..100 {
            cache.get_or_load(&key, || Ok(Some(key))).unwrap();
            assert_eq!(cache.state.read().entries.len() as u32, key % 8 + 1);
        }
    }
}
