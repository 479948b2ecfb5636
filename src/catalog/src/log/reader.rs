//! Reading the log: its newest entry, and everything that a restore has to apply.

use std::sync::Arc;

use super::entry::{self, Base, Entry, Frames, Kind, Label, damaged};
use crate::error::{CatalogError, Result};
use lodestone_io::store::{BlobStore, Key, StoreError};
use lodestone_types::ErrorKind;
use uuid::Uuid;

/// Entries fetched concurrently.
pub(super) const FETCHES: usize = 8;
/// Maximum number of look-ups of the newest entry. It is missing only if, right after the listing,
/// many others were appended and it was garbage-collected.
const LOOKS_MAX: usize = 10;

/// The error for a store that is unreachable or misbehaves.
pub(super) fn away(error: StoreError) -> CatalogError {
    CatalogError::LogAway { cause: error.to_string() }
}

/// Reads a whole blob; `None` if it does not exist.
pub(super) fn get(store: &dyn BlobStore, key: &Key) -> Result<Option<Vec<u8>>> {
    match store.get(key) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(away(error)),
    }
}

/// Reads an entry, if there is one with this number.
pub(super) fn entry_at(store: &dyn BlobStore, number: u64) -> Result<Option<Entry>> {
    let key = entry::key(number);
    let Some(bytes) = get(store, &key)? else { return Ok(None) };
    Entry::decode(&bytes).map(Some).map_err(|problem| entry::refused(&key, &bytes, problem))
}

/// Reads the label of an entry, if there is one with this number.
pub(super) fn label_at(store: &dyn BlobStore, number: u64) -> Result<Option<Label>> {
    Ok(entry_at(store, number)?.map(|entry| entry.label))
}

/// Returns the claim under which an entry was written.
pub(super) fn claim_of(store: &dyn BlobStore, label: &Label) -> Result<Option<Label>> {
    match label.kind {
        Kind::Claim { .. } => Ok(Some(label.clone())),
        Kind::Frames(_) | Kind::Base(_) => label_at(store, label.claim),
    }
}

/// Unique name of the process that last took over the log.
pub(super) fn newest_writer(store: &dyn BlobStore) -> Result<Option<Uuid>> {
    let Some((_, label)) = newest(store)? else { return Ok(None) };
    Ok(claim_of(store, &label)?.map(|claim| claim.nonce))
}

/// Lists the numbers of all entries, ascending.
pub(super) fn numbers(store: &dyn BlobStore) -> Result<Vec<u64>> {
    let keys = store.list(&entry::entries()).map_err(away)?;
    keys.iter().map(entry::number_of).collect()
}

/// Returns the newest entry.
pub(super) fn newest(store: &dyn BlobStore) -> Result<Option<(u64, Label)>> {
    for _ in 0..LOOKS_MAX {
        let Some(number) = numbers(store)?.pop() else { return Ok(None) };
        if let Some(label) = label_at(store, number)? {
            return Ok(Some((number, label)));
        }
    }
    Err(CatalogError::LogAway { cause: "entries are listed that are not there".into() })
}

/// The entries that a restore has to apply.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) base: Base,
    base_number: u64,
    /// Number of the last entry to apply.
    pub(super) last: u64,
}

/// The state at the end of a plan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct End {
    /// The order rules for subsequent entries.
    pub(super) order: Order,
    /// The newest lap.
    pub(super) lap: u64,
    /// Bytes of frames applied.
    pub(super) bytes: u64,
}

/// Receives frames in order.
pub(super) type Apply<'a> = dyn FnMut(Frames, &[u8]) -> Result<()> + 'a;

impl Plan {
    /// Plans the restore of the state at entry `last`; `None` if no base exists up to there.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] if an entry is missing, or the base entry is not a base.
    pub(super) fn new(store: &dyn BlobStore, last: u64, label: &Label) -> Result<Option<Self>> {
        let base_number = match label.kind {
            Kind::Base(_) => last,
            Kind::Claim { .. } | Kind::Frames(_) => label.base,
        };
        if base_number == 0 {
            return Ok(None);
        }
        let key = entry::key(base_number);
        let base = match label_at(store, base_number)?.map(|label| label.kind) {
            Some(Kind::Base(base)) if base.first <= base_number => base,
            Some(Kind::Base(_)) => return Err(damaged(&key, "it begins behind itself")),
            Some(_) => return Err(damaged(&key, "this entry should be a base")),
            None => return Err(damaged(&key, "the newest base is missing")),
        };
        let listed = numbers(store)?;
        let mut present = listed.iter().skip_while(|number| **number < base.first);
        for number in base.first..=last {
            if present.next() != Some(&number) {
                return Err(damaged(&entry::key(number), "this entry is missing"));
            }
        }
        Ok(Some(Self { base, base_number, last }))
    }

    /// Fetches the entries, `fetches` at a time, and passes their frames to `apply`.
    ///
    /// # Errors
    /// [`CatalogError::Corrupt`] for an entry that violates a rule; errors of `apply`.
    pub(super) fn read(
        &self,
        store: &Arc<dyn BlobStore>,
        fetches: usize,
        apply: &mut Apply<'_>,
    ) -> Result<End> {
        let mut order = Order { newest_base: self.base_number, ..Order::default() };
        let mut end = End::default();
        let numbers: Vec<u64> = (self.base.first..=self.last).collect();
        for some in numbers.chunks(fetches) {
            for (number, entry) in some.iter().zip(fetch(store, some)) {
                let key = entry::key(*number);
                let entry = entry?.ok_or_else(|| damaged(&key, "this entry is missing"))?;
                order.check(*number, &entry.label).map_err(|what| damaged(&key, what))?;
                let Some((place, content)) = frames_of(*number, &entry)? else { continue };
                apply(place, &content)?;
                (end.lap, end.bytes) = (place.lap, end.bytes + place.bytes);
            }
        }
        Ok(End { order, ..end })
    }
}

/// Returns the frames in an entry, if it has any.
///
/// # Errors
/// [`CatalogError::Corrupt`] if they are damaged.
pub(super) fn frames_of(number: u64, entry: &Entry) -> Result<Option<(Frames, Vec<u8>)>> {
    let Kind::Frames(place) = entry.label.kind else { return Ok(None) };
    let key = entry::key(number);
    let content = entry.content().map_err(|what| damaged(&key, what))?;
    match content.len() as u64 == place.bytes {
        true => Ok(Some((place, content))),
        false => Err(damaged(&key, "its content has another length than it says")),
    }
}

pub(super) fn fetch(store: &Arc<dyn BlobStore>, numbers: &[u64]) -> Vec<Result<Option<Entry>>> {
    if let [number] = numbers {
        return vec![entry_at(&**store, *number)];
    }
    std::thread::scope(|scope| {
        let fetches: Vec<_> =
            numbers.iter().map(|number| scope.spawn(move || entry_at(&**store, *number))).collect();
        let join = |fetch: std::thread::ScopedJoinHandle<'_, _>| {
            fetch.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        fetches.into_iter().map(join).collect()
    })
}

/// The rules for the order of entries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Order {
    /// Number of the newest base.
    pub(super) newest_base: u64,
    parent: Option<Uuid>,
    /// Number of the claim in force; 0 before the first entry.
    pub(super) claim: u64,
    /// The newest frames, unless a claim has ended their lap.
    frames: Option<Frames>,
    lap: u64,
}

impl Order {
    /// Checks the next entry.
    ///
    /// # Errors
    /// The violated rule, as a phrase.
    pub(super) fn check(&mut self, number: u64, label: &Label) -> std::result::Result<(), String> {
        if self.claim != 0 && label.parent != self.parent {
            return Err("it does not follow the entry before it".into());
        }
        match &label.kind {
            Kind::Claim { .. } => {
                (self.claim, self.frames) = (number, None);
            }
            Kind::Base(_) if number > self.newest_base => {
                return Err("it is a base of which later entries do not know".into());
            }
            Kind::Base(_) => {}
            Kind::Frames(place) => {
                let follows = self.frames.is_some_and(|before| {
                    (before.lap, before.offset + before.bytes) == (place.lap, place.offset)
                });
                if !follows && (place.offset != 0 || place.lap <= self.lap) {
                    return Err("its frames do not follow those before it".into());
                }
                (self.frames, self.lap) = (Some(*place), place.lap);
            }
        }
        if self.claim == 0 {
            self.claim = label.claim;
        }
        if label.claim != self.claim {
            let (claim, other) = (label.claim, self.claim);
            return Err(format!("it was written under claim {claim}, after claim {other}"));
        }
        self.parent = Some(label.nonce);
        Ok(())
    }
}
