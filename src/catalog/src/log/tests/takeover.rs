//! Processes that have been succeeded without knowing it.

use parking_lot::Mutex;

use super::*;
use crate::log::appender::Appender;
use crate::log::base::{Garbage, Stop};
use crate::log::entry::{self, Base, Kind};
use lodestone_io::store::BlobStore;
use lodestone_types::IdSource;

fn is_claim_only(machines: &Machines, below: u64) -> bool {
    let numbers = machines.entries();
    let mut old = numbers.iter().filter(|number| **number < below);
    old.all(|number| {
        // An entry removed in the meantime no longer counts.
        let label = crate::log::reader::label_at(&*machines.store, *number).unwrap();
        label.is_none_or(|label| label.claim == *number)
    })
}

#[test]
fn a_process_that_was_succeeded_can_write_nothing() {
    let machines = Machines::new(SMALL);
    let zombie = machines.start();
    let collection = zombie.tenant("a");
    assert!(!zombie.catalog.check_fence().unwrap());
    let successor = machines.start();
    let error = zombie.submit(collection, "late").unwrap_err();
    assert!(error.to_string().contains("another process has taken over this store"), "{error}");
    assert!(!matches!(error, CatalogError::InDoubt { .. }), "it has certainly not happened");
    assert!(zombie.state().is_fenced && !successor.state().is_fenced);
    assert!(matches!(zombie.submit(collection, "again"), Err(CatalogError::Poisoned { .. })));
    assert!(zombie.catalog.check_fence().unwrap() && !successor.catalog.check_fence().unwrap());
    successor.submit(collection, "s").unwrap();
    assert_eq!(machines.restored().unwrap(), successor.rows());
    assert_eq!(successor.rows()["jobs"].len(), 1);
}

#[test]
fn a_look_at_the_store_tells_a_process_that_it_was_succeeded() {
    let machines = Machines::new(SMALL);
    let zombie = machines.start();
    let collection = zombie.tenant("a");
    let _successor = machines.start();
    assert!(zombie.catalog.check_fence().unwrap());
    let entries = machines.entries();
    assert!(zombie.submit(collection, "late").is_err());
    assert_eq!(machines.entries(), entries, "it does not even try");
}

/// Goal: two processes in a row sleep until a third has removed everything it may.
#[test]
fn zombies_that_wake_after_a_removal_are_still_fenced() {
    let machines = Machines::new(SMALL);
    let first = machines.start();
    let collection = first.tenant("a");
    let second = machines.start();
    second.submit(collection, "second").unwrap();
    let third = machines.start();
    for n in 0..200 {
        third.submit(collection, &format!("s{n}")).unwrap();
    }
    // Old entries are removed in the background, after the base.
    third.wait(|state| {
        let newest = machines.entries().pop().unwrap();
        state.entries_since_base <= 2 * SMALL.base_entries
            && is_claim_only(&machines, newest - 4 * SMALL.base_entries)
    });
    for zombie in [&first, &second] {
        assert!(zombie.submit(collection, "late").is_err());
        assert!(zombie.state().is_fenced);
    }
    third.submit(collection, "after").unwrap();
    assert_eq!(machines.restored().unwrap(), third.rows());
    assert_eq!(third.rows()["jobs"].len(), 202);
}

/// Appends a base that needs nothing before it, and removes everything before it.
fn base_and_removal(appender: &mut Appender) {
    let blob = entry::base_key(appender.claim, &*appender.ids);
    appender.store.put(&blob, b"a copy").unwrap();
    let first = appender.next();
    let base = Base {
        blob: blob.as_str().to_owned(),
        bytes: 6,
        sha256: String::new(),
        first,
        collected: 1,
    };
    appender.append(Kind::Base(base), &[]).unwrap();
    let garbage = Garbage { claim: appender.claim, from: 1, until: first, keep: blob };
    garbage.collect(&*appender.store, &Stop::default()).unwrap();
}

/// Goal: a process that falls asleep after looking up the first free number, until that number has
/// been used and removed, does not believe that it has taken over. Method: the other process lives
/// and ends just before the sleeper's claim is stored.
#[test]
fn a_claim_at_a_number_that_was_used_and_removed_is_made_anew() {
    // With no base before it, the log looks empty to the sleeper.
    for bases_before in [0, 1] {
        let memory: Arc<dyn BlobStore> = Arc::new(MemoryBlobs::default());
        let ids: Arc<dyn IdSource> = Arc::new(SeededIds::new(1));
        let (mut busy, _) = Appender::claim(&memory, &ids, 7, false).unwrap();
        (0..bases_before).for_each(|_| base_and_removal(&mut busy));
        let free = busy.next();
        let (busy, mut is_asleep) = (Arc::new(Mutex::new(busy)), true);
        let (sleeper, others) = (FaultyBlobs::new(Arc::clone(&memory)), Arc::clone(&busy));
        sleeper.set(move |call, key| {
            if call == Call::Create && std::mem::take(&mut is_asleep) {
                assert_eq!(*key, entry::key(free));
                (0..3).for_each(|_| base_and_removal(&mut others.lock()));
                assert!(memory.get(key).is_err(), "used and removed");
            }
            Fault::None
        });
        let sleeper: Arc<dyn BlobStore> = Arc::new(sleeper);
        let (claimed, before) = Appender::claim(&sleeper, &ids, 7, false).unwrap();
        assert_eq!(claimed.claim, free + 3, "behind all that the other has stored");
        assert!(matches!(before.unwrap().kind, Kind::Base(_)));
        let fenced = busy.lock().append(Kind::Claim { format: 7, waits: false }, &[]);
        assert!(matches!(fenced, Err(CatalogError::Fenced)));
    }
}

/// Goal: each start of a machine that comes and goes costs one small entry.
#[test]
fn many_starts_in_a_row() {
    let machines = Machines::new(SMALL);
    let collection = machines.start().tenant("a");
    for n in 0..30 {
        machines.start().submit(collection, &format!("s{n}")).unwrap();
    }
    let machine = machines.start();
    assert_eq!(machine.rows()["jobs"].len(), 30);
    for n in 30..200 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    machine.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    drop(machine);
    assert_eq!(machines.start().rows()["jobs"].len(), 200);
}

/// Goal: a fence check draws no conclusion from what it cannot know: an own entry just stored, one
/// of a later release, a damaged one, an unreachable store.
#[test]
fn a_look_for_a_successor_tells_own_entries_from_others() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start();
    let collection = machine.tenant("a");
    let next = entry::key(machine.state().entry + 1);
    // An entry of this process that its writer has not recorded yet.
    machine.submit(collection, "s").unwrap();
    let own = machines.store.get(&next).unwrap();
    let other = Machines::new(LogLimits::default());
    let looking = other.start();
    looking.tenant("a");
    assert_eq!(entry::key(looking.state().entry + 1), next);
    let look = |bytes: &[u8]| {
        other.store.put(&next, bytes).unwrap();
        looking.catalog.check_fence()
    };
    assert!(!look(&own).unwrap(), "both processes have the first claim");
    let error = look(&own[..own.len() / 2]).unwrap_err();
    assert!(error.to_string().contains(next.as_str()), "{error}");
    other.store.set(|_, _| Fault::Before);
    let error = looking.catalog.check_fence().unwrap_err();
    assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
    other.store.set(|_, _| Fault::None);
    assert!(!looking.state().is_fenced);
    assert!(look(b"lodestone catalog log 9 of a later release").unwrap());
    assert!(looking.state().is_fenced);
    assert!(matches!(looking.submit(collection, "late"), Err(CatalogError::Poisoned { .. })));
    assert!(looking.catalog.check_fence().unwrap(), "without a look, from now on");
    assert_eq!(looking.catalog.log_claim(), Some(1));
}

/// Goal: a successor that follows an entry whose answer the writer still waits for is noticed.
#[test]
fn a_successor_behind_an_own_entry_that_is_not_noted_is_seen() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start();
    let next = machine.state().entry + 1;
    machine.tenant("a");
    let own = machines.store.get(&entry::key(next)).unwrap();
    let claim = machines.start().catalog.log_claim().unwrap();
    let claim = machines.store.get(&entry::key(claim)).unwrap();
    let other = Machines::new(LogLimits::default());
    let looking = other.start();
    assert_eq!(looking.state().entry + 1, next);
    other.store.put(&entry::key(next), &own).unwrap();
    other.store.put(&entry::key(next + 1), &own).unwrap();
    assert!(!looking.catalog.check_fence().unwrap(), "its writer goes on");
    other.store.put(&entry::key(next + 1), &claim).unwrap();
    assert!(looking.catalog.check_fence().unwrap());
}

/// Goal: a process whose change is in doubt learns of its successor although nobody writes.
#[test]
fn a_process_in_doubt_notices_its_successor() {
    let machines = Machines::new(LogLimits::default());
    let zombie = machines.start();
    let collection = zombie.tenant("a");
    machines.store.set(|_, _| Fault::Before);
    let error = zombie.submit(collection, "doubt").unwrap_err();
    assert!(matches!(error, CatalogError::InDoubt { .. }), "{error}");
    machines.store.set(|_, _| Fault::None);
    let successor = machines.start();
    let start = Instant::now();
    while !zombie.state().is_fenced {
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", zombie.state());
        std::thread::yield_now();
    }
    let entries = machines.entries();
    assert!(matches!(zombie.submit(collection, "late"), Err(CatalogError::Poisoned { .. })));
    assert_eq!((machines.entries(), successor.rows()["jobs"].len()), (entries, 0));
}
