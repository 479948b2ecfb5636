//! Catalogs that another machine takes over from the store alone.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::Connection;

use super::*;
use crate::job::{ClaimLimits, Duty, Outcome, Settlement};
use crate::log::appender::Appender;
use crate::log::base::{Garbage, Stop, copy};
use crate::log::entry::{self, Base, Kind};
use crate::{NewKey, migrations};
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_types::{ErrorKind, Grant, IdSource, KeyScope, Role};

#[test]
fn everything_acknowledged_is_there_on_another_machine() {
    let machines = Machines::new(SMALL);
    let first = machines.start();
    let collection = first.tenant("a");
    let operator = Grant::new("op", Role::Admin, KeyScope::AllTenants);
    let new = NewKey {
        name: "k".into(),
        role: Role::Admin,
        scope: KeyScope::AllTenants,
        expires_at: None,
    };
    let key = first.catalog.create_key(&operator, new).unwrap();
    for n in 0..200 {
        first.submit(collection, &format!("s{n}")).unwrap();
    }
    let limits = ClaimLimits { jobs: 3, bytes: u64::MAX };
    let claimed = first.catalog.claim(Duty::Process, limits).unwrap().unwrap().jobs;
    let outcome = Outcome::Published { chunks: 3 };
    let ends = vec![Settlement { sequence: claimed[0].sequence, outcome }];
    first.catalog.settle(collection, ends, None).unwrap();
    let before = first.rows();
    assert_eq!(machines.restored().unwrap(), before, "while the first machine goes on");
    drop(first);

    let second = machines.start();
    assert_eq!(second.rows(), before);
    assert!(second.catalog.authenticate(key.text.expose()).is_ok());
    assert_eq!(second.catalog.interrupted().unwrap()[0].1.len(), 2);
    second.catalog.requeue_interrupted().unwrap();
    second.submit(collection, "more").unwrap();
    assert_eq!(machines.restored().unwrap(), second.rows());
    second.catalog.verify().unwrap();
}

#[test]
fn a_first_start_makes_the_local_file_the_base() {
    let machines = Machines::new(SMALL);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.sqlite");
    let (clock, ids) = (machines.clock.clone(), machines.ids.clone());
    let local = Catalog::open(&path, options(), clock, ids).unwrap();
    let name = TenantId::parse("old").unwrap();
    local.create_tenant(name, TenantMode::Standard, None).unwrap();
    drop(local);

    assert!(machines.log().unwrap().is_empty());
    let machine = machines.start_in(directory).unwrap();
    assert!(!machines.log().unwrap().is_empty());
    let restored = machines.restored().unwrap();
    assert_eq!(restored, machine.rows());
    assert!(restored["tenants"][0].contains("old"));
}

/// Goal: the local file of a machine that comes back is not used, but not lost either.
#[test]
fn a_file_that_the_store_does_not_know_is_renamed() {
    let machines = Machines::new(SMALL);
    machines.start().tenant("shared");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.sqlite");
    let (clock, ids) = (machines.clock.clone(), machines.ids.clone());
    let local = Catalog::open(&path, options(), clock, ids).unwrap();
    local.create_tenant(TenantId::parse("own").unwrap(), TenantMode::Standard, None).unwrap();
    let own = local.read(|connection| Ok(rows(connection))).unwrap();
    drop(local);
    let machine = machines.start_in(directory).unwrap();
    assert!(machine.rows()["tenants"][0].contains("shared"));
    let kept = machine.directory.path().join("catalog.sqlite.replaced");
    assert_eq!(rows(&Connection::open(kept).unwrap()), own);
}

/// Puts a base of an older format into an empty log.
pub(super) fn old_base(machines: &Machines, format: usize) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.sqlite");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    migrations::migrate_to(&connection, &path, format).unwrap();
    drop(connection);
    let store: Arc<dyn BlobStore> = machines.store.clone();
    let ids: Arc<dyn IdSource> = machines.ids.clone();
    let (mut appender, _) = Appender::claim(&store, &ids, format, false).unwrap();
    let file = fs::File::open(&path).unwrap();
    let blob = entry::base_key(1, &*ids);
    let copied = copy(&*store, blob.clone(), &file, &Stop::default()).unwrap();
    let (blob, bytes, sha256) = (blob.as_str().to_owned(), copied.bytes, copied.sha256);
    let base = Base { blob, bytes, sha256, first: 2, collected: 1 };
    appender.append(Kind::Base(base), &[]).unwrap();
}

#[test]
fn an_older_format_is_migrated_and_the_migration_is_sent() {
    let machines = Machines::new(SMALL);
    old_base(&machines, 2);
    let machine = machines.start();
    assert!(machines.entries().len() > 4, "a migration of several pieces");
    let restored = tempfile::tempdir().unwrap();
    let path = restored.path().join("restored.sqlite");
    machines.log().unwrap().restore_to(&path).unwrap();
    let restored = Connection::open(&path).unwrap();
    assert_eq!(migrations::format(&restored, &path).unwrap(), Catalog::format());
    assert_eq!(rows(&restored), machine.rows());
}

#[test]
fn a_log_of_a_newer_release_is_refused_before_it_is_taken_over() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let store: Arc<dyn BlobStore> = machines.store.clone();
    let ids: Arc<dyn IdSource> = machines.ids.clone();
    let (mut newer, _) = Appender::claim(&store, &ids, 99, false).unwrap();
    let entries = machines.entries();
    let error = machines.log().unwrap_err();
    assert!(matches!(error, CatalogError::TooNew { found: 99, .. }), "{error}");
    newer.append(Kind::Claim { format: 99, waits: false }, &[]).unwrap();
    assert_eq!(machines.entries().len(), entries.len() + 1, "the newer one was not disturbed");
    assert!(machine.submit(CollectionId(uuid::Uuid::nil()), "s").is_err());
}

#[test]
fn old_entries_go_once_a_base_is_stored() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    for n in 0..300 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    // The claim stays, and whatever the last two bases need; the rest is removed in the background.
    machine.wait(|state| {
        let is_short = state.entries_since_base <= 2 * SMALL.base_entries;
        let bases = machines.store.list(&entry::bases()).unwrap();
        is_short && machines.entries().len() < 150 && bases.len() <= 3
    });
    assert_eq!(machines.entries()[0], 1);
    assert_eq!(machines.restored().unwrap(), machine.rows());
}

/// Goal: a long read keeps the log from being checkpointed, but delays no write and loses nothing.
#[test]
fn a_long_read_delays_no_write() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    let moment = machine.catalog.moment().unwrap();
    for n in 0..100 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    assert!(machine.state().entries_since_base > 100, "{:?}", machine.state());
    assert_eq!(machines.restored().unwrap(), machine.rows());
    drop(moment);
    for n in 100..140 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    machine.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    assert_eq!(machines.restored().unwrap(), machine.rows());
}

/// Goal: a commit larger than an entry counts only once it is whole, also if its process is cut off
/// between the pieces.
#[test]
fn a_commit_of_several_entries_counts_once_it_is_whole() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    let before = machine.rows();
    let mut creates = 0;
    machines.store.set(move |call, _| {
        creates += usize::from(call == Call::Create);
        match creates {
            0..3 => Fault::None,
            _ => Fault::Before,
        }
    });
    let many = machine.catalog.write(move |connection| {
        connection.execute_batch("CREATE TABLE many (text)")?;
        for _ in 0..50 {
            connection.execute("INSERT INTO many VALUES (zeroblob(3000))", [])?;
        }
        Ok(())
    });
    assert!(matches!(many, Err(CatalogError::InDoubt { .. })), "{many:?}");
    machines.store.set(|_, _| Fault::None);
    drop(machine);
    let machine = machines.start();
    assert_eq!(machine.rows(), before);
    machine.submit(collection, "s").unwrap();
    assert_eq!(machines.restored().unwrap(), machine.rows());
}

#[test]
fn forty_thousand_jobs_of_many_callers() {
    const JOBS: usize = 40_000;
    const CALLERS: usize = 32;
    let limits = LogLimits { base_entries: 400, ..LogLimits::default() };
    let machines = Machines::new(limits);
    let machine = machines.start();
    let collection = machine.tenant("a");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    if n >= JOBS {
                        break;
                    }
                    machine.submit(collection, &format!("s{n}")).unwrap();
                }
            });
        }
    });
    let (rows, state) = (machine.rows(), machine.state());
    assert!(state.base_bytes > 1 << 20, "several bases: {state:?}");
    drop(machine);
    let start = Instant::now();
    let machine = machines.start();
    println!("{state:?}; the next machine starts in {:?}", start.elapsed());
    assert_eq!(machine.rows(), rows);
    assert_eq!(rows["jobs"].len(), JOBS);
}

#[test]
fn a_directory_is_a_store_too() {
    let root = tempfile::tempdir().unwrap();
    let data = Arc::new(DataDir::open(root.path(), Arc::new(RealDisk)).unwrap());
    let store = Arc::new(FaultyBlobs::new(Arc::new(LocalBlobs::new(data))));
    let machines = Machines { store, ..Machines::new(SMALL) };
    let machine = machines.start();
    let collection = machine.tenant("a");
    for n in 0..60 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    machine.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    let rows = machine.rows();
    drop(machine);
    assert_eq!(machines.start().rows(), rows);
}

/// Goal: all kinds of damage are reported with the key, and the local file stays unchanged.
#[test]
fn damage_is_named_and_nothing_is_changed() {
    let machines = Machines::new(LogLimits { base_entries: 1000, ..SMALL });
    let machine = machines.start();
    let collection = machine.tenant("a");
    for n in 0..5 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    drop(machine);
    let store = &*machines.store;
    let base = store.list(&entry::bases()).unwrap().remove(0);
    let broken_at = |key: &lodestone_io::store::Key, bytes: Option<Vec<u8>>, words: &str| {
        let whole = store.get(key).unwrap();
        match bytes {
            Some(bytes) => store.put(key, &bytes).unwrap(),
            None => store.delete(key).unwrap(),
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("catalog.sqlite");
        fs::write(&path, "as it was").unwrap();
        let error =
            machines.log().and_then(|log| log.take_over(&path, false).map(drop)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let text = error.to_string();
        assert!(text.contains(key.as_str()) && text.contains(words), "{key}: {text}");
        assert_eq!(fs::read(&path).unwrap(), b"as it was");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        store.put(key, &whole).unwrap();
    };
    let mut flipped = store.get(&entry::key(4)).unwrap();
    flipped[90] ^= 1;
    broken_at(&entry::key(4), Some(flipped), "hash");
    broken_at(&entry::key(4), None, "missing");
    broken_at(&entry::key(2), None, "the newest base is missing");
    broken_at(&base, None, "missing");
    let mut flipped = store.get(&base).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    broken_at(&base, Some(flipped), "");
    broken_at(&base, Some(store.get(&base).unwrap()[..middle].to_vec()), "length or hash");
    let other = store.get(&entry::key(5)).unwrap();
    broken_at(&entry::key(6), Some(other), "follow");
    assert_eq!(machines.start().rows()["jobs"].len(), 5, "all is whole again");
}

/// Goal: a delayed garbage collector removes nothing that a successor needs.
#[test]
fn a_late_collector_leaves_the_copies_of_successors() {
    let machines = Machines::new(SMALL);
    let first = machines.start();
    let collection = first.tenant("a");
    let keep = machines.store.list(&entry::bases()).unwrap().remove(0);
    let garbage = Garbage { claim: 1, from: 1, until: 2, keep };
    let second = machines.start();
    for n in 0..100 {
        second.submit(collection, &format!("s{n}")).unwrap();
    }
    second.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    garbage.collect(&*machines.store, &Stop::default()).unwrap();
    assert_eq!(machines.restored().unwrap(), second.rows());
}
