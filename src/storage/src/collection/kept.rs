//! Cache of the rows that pass filters, for searches that repeat a filter.
//!
//! ```text
//! segment in one state, sub-tenant, canonical filter -> passing rows, in the forms of searches
//! ```
//! Invariants:
//! - An entry belongs to one sub-tenant of one segment with its dead rows, so no search sees rows
//!   of another scope, and rows hidden by a version stay hidden.
//! - Entries are dropped with the last snapshot that contains the segment in that state.
//! - All entries together stay within a byte limit. When space is short, the tenant that holds most
//!   gives up its least recently used entries, so no tenant evicts those of one that holds less.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use roaring::RoaringBitmap;

use crate::collection::LiveSegment;
use crate::segment::flat::RowFilter;
use lodestone_types::CollectionId;

/// Most entries. Each counts for at least its share of the byte limit, so that the linear search
/// for the least recently used one stays short.
const ENTRIES_MAX: u64 = 4096;
/// Uses after which a filter is condensed. That costs about as much as a hundred and fifty searches
/// without it (60 ms for 10,000 rows); a filter used this often is likely to be used on.
const USES_TO_CONDENSE: u64 = 128;

/// Cache of passing rows, shared by all tenants.
#[derive(Debug)]
pub struct KeptFilters {
    bytes_max: u64,
    next_owner: AtomicU64,
    state: Mutex<State>,
}

/// A segment in one state, and the sub-tenant and filter asked for.
type Key = (u64, Arc<[u8]>);

#[derive(Debug, Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// Bytes held by each tenant.
    tenants: BTreeMap<CollectionId, u64>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    rows: Arc<RowFilter<'static>>,
    tenant: CollectionId,
    bytes: u64,
    uses: u64,
    last_use: u64,
}

/// Identifies a segment in the cache; dropping it drops the segment's entries.
#[derive(Debug)]
pub(super) struct Owner {
    filters: Weak<KeptFilters>,
    id: u64,
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(filters) = self.filters.upgrade() {
            filters.state.lock().forget(self.id);
        }
    }
}

impl KeptFilters {
    /// Creates a cache limited to `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Arc<Self> {
        let (next_owner, state) = (AtomicU64::new(0), Mutex::default());
        Arc::new(Self { bytes_max, next_owner, state })
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Returns the rows of a segment cached under `asked`, or else computes them with `find` and
    /// caches them if there is space. `asked` must identify the sub-tenant and the filter uniquely.
    ///
    /// # Errors
    /// Errors of `find`.
    pub fn rows<E>(
        self: &Arc<Self>,
        live: &LiveSegment,
        asked: &Arc<[u8]>,
        find: impl FnOnce() -> Result<RoaringBitmap, E>,
    ) -> Result<Arc<RowFilter<'static>>, E> {
        let key = (self.owner(live), Arc::clone(asked));
        if let Some(rows) = self.state.lock().used(&key, live.segment.dimension(), self.bytes_max) {
            return Ok(rows);
        }
        let rows = RowFilter::owned(find()?, live.segment.row_count() as usize);
        let rows = Arc::new(rows);
        let bytes = (rows.bytes() + asked.len()) as u64;
        let bytes = bytes.max(self.bytes_max / ENTRIES_MAX);
        let tenant = live.segment.header.collection;
        self.state.lock().insert(key, tenant, Arc::clone(&rows), bytes, self.bytes_max);
        Ok(rows)
    }

    /// The number under which rows of the segment are cached. If another cache met the segment
    /// first, this returns a fresh number each time, so such entries are never found again.
    fn owner(self: &Arc<Self>, live: &LiveSegment) -> u64 {
        let number = || self.next_owner.fetch_add(1, Ordering::Relaxed);
        let own = || Owner { filters: Arc::downgrade(self), id: number() };
        let owner = live.kept.get_or_init(own);
        match std::ptr::eq(owner.filters.as_ptr(), Arc::as_ptr(self)) {
            true => owner.id,
            false => number(),
        }
    }
}

impl State {
    /// Looks up an entry and counts its use; allows it to be condensed once it has been used often.
    fn used(
        &mut self,
        key: &Key,
        dimension: usize,
        bytes_max: u64,
    ) -> Option<Arc<RowFilter<'static>>> {
        self.uses += 1;
        let now = self.uses;
        let entry = self.entries.get_mut(key)?;
        (entry.uses, entry.last_use) = (entry.uses + 1, now);
        let (rows, tenant, uses) = (Arc::clone(&entry.rows), entry.tenant, entry.uses);
        if uses == USES_TO_CONDENSE
            && let Some(bytes) = rows.condensed_bytes(dimension)
            && self.make_room(tenant, bytes as u64, bytes_max, Some(key))
            && let Some(entry) = self.entries.get_mut(key)
        {
            entry.bytes += bytes as u64;
            self.charge(tenant, bytes as u64);
            rows.allow_condensing();
        }
        Some(rows)
    }

    fn insert(
        &mut self,
        key: Key,
        tenant: CollectionId,
        rows: Arc<RowFilter<'static>>,
        bytes: u64,
        bytes_max: u64,
    ) {
        if self.entries.contains_key(&key) || !self.make_room(tenant, bytes, bytes_max, None) {
            return;
        }
        self.charge(tenant, bytes);
        let entry = Entry { rows, tenant, bytes, uses: 0, last_use: self.uses };
        self.entries.insert(key, entry);
    }

    fn charge(&mut self, tenant: CollectionId, bytes: u64) {
        self.bytes += bytes;
        *self.tenants.entry(tenant).or_default() += bytes;
    }

    /// Evicts entries other than `spared` until a tenant may use `bytes` more; returns whether it
    /// may.
    fn make_room(
        &mut self,
        tenant: CollectionId,
        bytes: u64,
        bytes_max: u64,
        spared: Option<&Key>,
    ) -> bool {
        if bytes > bytes_max {
            return false;
        }
        while self.bytes + bytes > bytes_max {
            let own = self.tenants.get(&tenant).copied().unwrap_or(0);
            let most = self.tenants.iter().max_by_key(|(_, bytes)| **bytes);
            let most = most.filter(|(_, most)| **most >= own + bytes).map(|(tenant, _)| *tenant);
            let loser = most.unwrap_or(tenant);
            let may_go = |key: &Key, entry: &Entry| entry.tenant == loser && Some(key) != spared;
            let of_loser = self.entries.iter().filter(|(key, entry)| may_go(key, entry));
            let oldest = of_loser.min_by_key(|(_, entry)| entry.last_use);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { return false };
            self.remove(&key);
        }
        true
    }

    fn remove(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else { return };
        self.bytes -= entry.bytes;
        if let Some(bytes) = self.tenants.get_mut(&entry.tenant) {
            *bytes -= entry.bytes;
            if *bytes == 0 {
                self.tenants.remove(&entry.tenant);
            }
        }
    }

    fn forget(&mut self, owner: u64) {
        let first = (owner, Arc::from([]));
        let of_owner = self.entries.range(first..).take_while(|((of, _), _)| *of == owner);
        let keys: Vec<Key> = of_owner.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.remove(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn tenant(number: u128) -> CollectionId {
        CollectionId(Uuid::from_u128(number))
    }

    fn key(number: u64) -> Key {
        (number, Arc::from(*b"asked"))
    }

    fn insert(state: &mut State, number: u64, of: u128, bytes: u64) {
        let rows = Arc::new(RowFilter::owned(RoaringBitmap::new(), 10));
        state.uses += 1;
        state.insert(key(number), tenant(of), rows, bytes, 100);
    }

    fn numbers(state: &State) -> Vec<u64> {
        state.entries.keys().map(|(number, _)| *number).collect()
    }

    /// Goal: a tenant that holds most makes space, oldest first; one that holds less loses nothing.
    #[test]
    fn who_holds_most_gives_way() {
        let mut state = State::default();
        (1..=9).for_each(|number| insert(&mut state, number, 1, 10));
        insert(&mut state, 10, 2, 10);
        insert(&mut state, 11, 2, 20);
        assert_eq!(numbers(&state), [3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(state.bytes, 100);
        // Evicts its own oldest entry, as the others hold less.
        insert(&mut state, 12, 1, 10);
        assert_eq!(numbers(&state), [4, 5, 6, 7, 8, 9, 10, 11, 12]);
        // An entry that can never fit evicts nothing.
        insert(&mut state, 13, 3, 101);
        assert_eq!(numbers(&state).len(), 9);
        let of = |number| state.tenants.get(&tenant(number)).copied();
        assert_eq!((of(1), of(2), of(3)), (Some(70), Some(30), None));
        (4..=12).for_each(|owner| state.forget(owner));
        assert!(state.bytes == 0 && state.tenants.is_empty() && state.entries.is_empty());
    }

    #[test]
    fn who_asks_for_more_than_anybody_holds_drives_nobody_out() {
        let mut state = State::default();
        (1..=9).for_each(|number| insert(&mut state, number, u128::from(number), 10));
        insert(&mut state, 10, 10, 20);
        assert_eq!(numbers(&state), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((state.bytes, state.tenants.len()), (90, 9));
    }

    const DIMENSION: usize = 64;

    /// A state with one filter of `passing` rows, used often enough to be condensed, under a limit
    /// of `bytes_max`; and the filter.
    fn used_often(passing: u32, bytes: u64, bytes_max: u64) -> (State, Arc<RowFilter<'static>>) {
        let rows = Arc::new(RowFilter::owned((0..passing).collect(), 1_000_000));
        let mut state = State::default();
        state.insert(key(1), tenant(1), Arc::clone(&rows), bytes, bytes_max);
        for _ in 0..USES_TO_CONDENSE {
            assert!(!rows.may_condense(), "not before");
            let used = state.used(&key(1), DIMENSION, bytes_max).unwrap();
            assert!(Arc::ptr_eq(&used, &rows));
        }
        (state, rows)
    }

    /// Goal: a filter that is used again and again is condensed, once, if that pays off and there
    /// is space; its bytes count for its tenant and go with it.
    #[test]
    fn a_filter_that_is_used_often_is_condensed() {
        let (mut state, rows) = used_often(5000, 10, 1 << 30);
        let bytes = 10 + rows.condensed_bytes(DIMENSION).unwrap() as u64;
        assert!(rows.may_condense());
        assert_eq!((state.bytes, state.tenants[&tenant(1)]), (bytes, bytes));
        state.used(&key(1), DIMENSION, 1 << 30).unwrap();
        assert_eq!(state.bytes, bytes, "counted once");
        state.forget(1);
        assert!(state.bytes == 0 && state.tenants.is_empty());
    }

    #[test]
    fn a_filter_is_not_condensed_where_that_does_not_pay_or_fit() {
        let condensed = used_often(5000, 10, 1 << 30).1.condensed_bytes(DIMENSION).unwrap() as u64;
        // In the last case the filter would have to evict itself.
        for (passing, bytes_max) in [(50, 1 << 30), (5000, condensed - 1), (5000, condensed + 9)] {
            let (mut state, rows) = used_often(passing, 10, bytes_max);
            assert!(!rows.may_condense(), "{passing} rows in {bytes_max} bytes");
            assert_eq!(state.bytes, 10);
            assert!(state.used(&key(1), DIMENSION, bytes_max).is_some());
        }
    }
}
