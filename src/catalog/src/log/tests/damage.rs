//! Logs and files with contents that no process has written, and stores that fail between two
//! steps.

use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::log::appender::Appender;
use crate::log::entry::{self, Base, Entry, Frames, Kind, Label};
use crate::log::pages::Commits;
use crate::log::reader::Order;
use crate::log::ship::{Folded, checkpoint};
use crate::log::wal::WalTail;
use crate::log::{limits, replace, restore, wal};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{ErrorKind, IdSource};
use uuid::Uuid;

impl Machines {
    /// Changes an entry as if its process had written it that way.
    fn rewrite(&self, number: u64, change: impl FnOnce(&mut Label, &mut Vec<u8>)) {
        let key = entry::key(number);
        let entry = Entry::decode(&self.store.get(&key).unwrap()).unwrap();
        let (mut label, mut content) = (entry.label.clone(), entry.content().unwrap());
        change(&mut label, &mut content);
        self.store.put(&key, &Entry::encode(&label, &content)).unwrap();
    }
}

/// Creates a log of a claim, a base and some frames; returns the number of its newest entry too.
fn written() -> (Machines, u64) {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start();
    let collection = machine.tenant("a");
    for n in 0..3 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    drop(machine);
    let newest = *machines.entries().last().unwrap();
    (machines, newest)
}

/// Goal: if this machine's cached copy of a base is damaged, the one in the bucket is read.
#[test]
fn a_damaged_copy_of_a_base_is_fetched_again() {
    let (machines, _) = written();
    let key = machines.store.list(&entry::bases()).unwrap().pop().unwrap();
    let sound = machines.store.get(&key).unwrap();
    machines.store.put(&key, &sound[..sound.len() - 1]).unwrap();
    assert!(machines.restored().is_err(), "without copies it is damage");
    let bucket = Arc::downgrade(&machines.store);
    machines.store.set_copies(move |key| bucket.upgrade().unwrap().put(key, &sound).is_ok());
    machines.restored().unwrap();
}

/// Goal: an entry with a valid checksum that violates a rule is refused with its key, by restores
/// and by followers, and does not kill a thread.
#[test]
fn entries_that_no_process_writes_are_refused_by_name() {
    type Change = fn(&mut Label, &mut Vec<u8>);
    fn frames(label: &mut Label) -> &mut Frames {
        match &mut label.kind {
            Kind::Frames(place) => place,
            other => panic!("{other:?}"),
        }
    }
    fn base(label: &mut Label) -> &mut Base {
        match &mut label.kind {
            Kind::Base(base) => base,
            other => panic!("{other:?}"),
        }
    }
    // The second entry is the base; the newest one, the sixth, has frames.
    let changes: [(&str, u64, Change); 11] = [
        ("behind itself", 2, |label, _| base(label).first = 3),
        ("length or hash", 2, |label, _| base(label).bytes += 1),
        ("longer than its entry", 2, |label, _| base(label).bytes -= 1),
        ("length or hash", 2, |label, _| base(label).sha256 = "0".repeat(64)),
        ("", 2, |label, _| base(label).blob = "../etc/passwd".into()),
        ("should be a base", 2, |label, _| label.kind = Kind::Claim { format: 7, waits: false }),
        ("another length", 6, |_, content| content.truncate(content.len() - 1)),
        ("do not follow", 6, |label, _| frames(label).offset += 8),
        ("do not follow", 6, |label, _| frames(label).lap += 1),
        ("does not follow the entry", 6, |label, _| label.parent = None),
        ("under claim 7, after claim 1", 5, |label, _| label.claim = 7),
    ];
    for (words, number, change) in changes {
        let (machines, _) = written();
        machines.rewrite(number, change);
        let restored = machines.restored().unwrap_err();
        let followed = machines.follow(machines.store.clone()).map(drop).unwrap_err();
        for error in [restored, followed] {
            let text = error.to_string();
            assert!(text.contains(words), "{words}: {text}");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text}");
        }
    }
}

/// Goal: a follower refuses invalid frames in a hostile log and writes none of them.
#[test]
fn frames_that_are_none_are_refused() {
    let frame_of = |page_bytes: usize, page: u32, commit: u32| {
        let mut bytes = [page.to_be_bytes(), commit.to_be_bytes()].concat();
        bytes.resize(wal::FRAME_HEADER_BYTES + page_bytes, 0);
        bytes
    };
    let frame = |page: u32, commit: u32| frame_of(512, page, commit);
    let header = |page_bytes: u32| {
        let mut bytes = [0x377F_0682_u32, 3_007_000, page_bytes].map(u32::to_be_bytes).concat();
        bytes.resize(wal::HEADER_BYTES, 7);
        bytes
    };
    let place = |offset: u64| Frames { lap: 1, offset, bytes: 0 };
    let whole = [header(512), frame(1, 0), frame(2, 2)].concat();
    let mut commits = Commits::default();
    let refused = |commits: &mut Commits, offset: u64, bytes: &[u8]| {
        let error = commits.add(place(offset), bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(!commits.is_ready());
    };
    refused(&mut commits, 32, &frame(1, 1)); // Before any header.
    refused(&mut commits, 0, &whole[..20]);
    refused(&mut commits, 0, &[header(512), frame(0, 1)].concat());
    refused(&mut commits, 0, &[&whole[..], &[1]].concat()[1..]);
    for page_bytes in [0, 1, 256, 513, 131_072] {
        let frame = frame_of(page_bytes as usize, 1, 1);
        refused(&mut commits, 0, &[header(page_bytes), frame].concat());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    commits.write(&path).unwrap();
    assert!(!path.exists(), "there is nothing to write");
    commits.add(place(0), &whole).unwrap();
    let error = commits.write(&path).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
    fs::write(&path, [9; 5000]).unwrap();
    commits.write(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 1024, "as long as the commit says");
}

/// Goal: a write-ahead log that cannot be read leaves its commit in doubt: it is visible here, and
/// a part of it may be in the store. Nothing is written after it.
#[test]
fn a_commit_that_cannot_be_read_back_is_in_doubt() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start();
    let collection = machine.tenant("a");
    let path = machine.directory.path().join("catalog.sqlite-wal");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"none", 0).unwrap();
    let error = machine.submit(collection, "doubt").unwrap_err();
    assert!(matches!(error, CatalogError::InDoubt { .. }), "{error}");
    assert!(error.to_string().contains("not a write-ahead log"), "{error}");
    let error = machine.submit(collection, "refused").unwrap_err();
    assert!(matches!(error, CatalogError::Poisoned { .. }), "{error}");
    assert_eq!(machine.rows()["jobs"].len(), 1);
    drop(machine);
    let next = machines.start();
    assert_eq!(next.rows()["jobs"].len(), 0);
    next.submit(collection, "s").unwrap();
}

#[test]
fn a_log_that_is_missing_or_a_directory_is_no_commit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let wal = directory.path().join("file-wal");
    let mut tail = WalTail::new(&path, 0, 1000);
    assert!(tail.next(5).unwrap().is_none());
    fs::create_dir(&wal).unwrap();
    assert!(tail.next(5).is_err());
    fs::remove_dir(&wal).unwrap();
    fs::write(&wal, "short").unwrap();
    let mut tail = WalTail::new(&path, 0, 1000);
    assert!(tail.next(5).unwrap().is_none());
    assert_eq!((tail.offset(), tail.waiting()), (0, 0));
    assert_eq!(wal::committed_frames(&wal).unwrap(), 0);
}

/// Goal: while another process folds the log, it is not taken for folded in. Method: a checkpoint
/// of another connection that waits for a reader holds the lock.
#[test]
fn a_checkpoint_of_another_process_is_not_ours() {
    static HOLDS: parking_lot::Mutex<bool> = parking_lot::Mutex::new(true);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let open = || {
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection
    };
    let (own, reader, other) = (open(), open(), open());
    own.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    own.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    static BEGUN: parking_lot::Mutex<Option<std::sync::mpsc::Sender<()>>> =
        parking_lot::Mutex::new(None);
    *BEGUN.lock() = Some(begin);
    let wait = |_| {
        if let Some(begun) = BEGUN.lock().take() {
            begun.send(()).unwrap();
        }
        std::thread::yield_now();
        *HOLDS.lock()
    };
    std::thread::scope(|scope| {
        let folding = scope.spawn(move || {
            let mut other = other;
            other.busy_handler(Some(wait)).unwrap();
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        });
        begun.recv().unwrap();
        let meanwhile = ["PASSIVE", "TRUNCATE"].map(|mode| checkpoint(&own, mode));
        *HOLDS.lock() = false;
        folding.join().unwrap();
        assert_eq!(meanwhile.map(Result::unwrap), [Folded::Partly; 2]);
    });
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(checkpoint(&own, "PASSIVE").unwrap(), Folded::Whole);
    assert_eq!(checkpoint(&own, "TRUNCATE").unwrap(), Folded::Emptied);
    // If something is in the way, the log stays as it is.
    own.execute_batch("INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)").unwrap();
    assert_eq!(checkpoint(&own, "PASSIVE").unwrap(), Folded::Partly);
}

/// Goal: a file in use by another process does not become the first base.
#[test]
fn a_file_in_use_does_not_become_the_first_base() {
    let machines = Machines::new(LogLimits::default());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.sqlite");
    let (clock, ids) = (machines.clock.clone(), machines.ids.clone());
    let local = Catalog::open(&path, options(), clock.clone(), ids.clone()).unwrap();
    local.create_tenant(TenantId::parse("a").unwrap(), TenantMode::Standard, None).unwrap();
    let moment = local.moment().unwrap();
    local.create_tenant(TenantId::parse("b").unwrap(), TenantMode::Standard, None).unwrap();
    let (appender, _) = {
        let (store, ids): (Arc<dyn BlobStore>, Arc<dyn IdSource>) =
            (machines.store.clone(), machines.ids.clone());
        Appender::claim(&store, &ids, 7, false).unwrap()
    };
    let connection = Connection::open(&path).unwrap();
    let start = crate::log::ship::Start {
        appender,
        limits: LogLimits::default(),
        base: None,
        bytes: 0,
        lap: 0,
    };
    let begun = crate::log::Claimed { start }.begin(&connection, &path, clock);
    let error = begun.map(drop).unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(moment);
    assert!(machines.log().unwrap().is_empty(), "there is a claim, and no base");
    drop((local, connection));
    let machine = machines.start_in(directory).unwrap();
    assert_eq!(machine.rows()["tenants"].len(), 2);
    assert!(machines.restored().is_ok());
}

/// Goal: the file that a process found is kept, wherever the next start was interrupted.
#[test]
fn a_replaced_file_survives_a_start_that_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let beside = |suffix: &str| directory.path().join(format!("catalog.sqlite{suffix}"));
    let path = beside("");
    let start = |text: &str| {
        fs::write(beside(".restored"), text).unwrap();
        replace(&path, &beside(".restored")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    };
    // Interrupted after the first of the two files was moved.
    fs::write(beside(".replaced"), "own").unwrap();
    fs::write(beside("-wal"), "own log").unwrap();
    start("one");
    let kept = |suffix: &str| fs::read_to_string(beside(suffix)).ok();
    assert_eq!(kept(".replaced").as_deref(), Some("own"));
    assert_eq!(kept(".replaced-wal").as_deref(), Some("own log"));
    assert_eq!(kept("-wal"), None);
    // The next start replaces it, without leaving anything of the earlier log.
    start("two");
    assert_eq!((kept(".replaced").as_deref(), kept(".replaced-wal")), (Some("one"), None));
    fs::remove_file(beside(".replaced")).unwrap();
    fs::create_dir_all(beside(".replaced-wal/x")).unwrap();
    fs::write(beside(".restored"), "three").unwrap();
    let error = replace(&path, &beside(".restored")).unwrap_err();
    assert!(error.to_string().contains(".replaced-wal"), "{error}");
    assert_eq!(kept("").as_deref(), Some("two"));
}

/// Goal: a full local disk is reported as such, and other errors with the file.
#[test]
fn errors_of_the_local_disk_name_the_file() {
    let path = std::path::Path::new("/data/catalog.sqlite");
    for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded] {
        let error = restore::local(path)(kind.into());
        assert!(matches!(error, CatalogError::StorageFull), "{error}");
    }
    let error = restore::local(path)(std::io::ErrorKind::PermissionDenied.into());
    assert!(error.to_string().contains("/data/catalog.sqlite"), "{error}");
}

/// Goal: a log whose newest entry is listed but never found is a fault of the store, not the end of
/// the log; entries that are listed but gone before they are read count as missing.
#[test]
fn a_listing_that_does_not_hold_is_a_fault_of_the_store() {
    let (machines, newest) = written();
    let gone = machines.store.clone();
    let inner: Arc<dyn BlobStore> = gone.clone();
    let bytes = inner.get(&entry::key(newest)).unwrap();
    let behind = Arc::new(FaultyBlobs::new(inner.clone()));
    // Each time it is listed, it is removed before it can be read.
    let (store, key) = (inner.clone(), entry::key(newest));
    behind.set(move |call, asked| {
        match call {
            Call::List => store.put(&key, &bytes).unwrap(),
            Call::Get if *asked == key => store.delete(&key).unwrap(),
            _ => {}
        }
        Fault::None
    });
    let log = CatalogLog::open(behind.clone(), machines.ids.clone());
    let error = log.unwrap_err();
    assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
    assert!(error.to_string().contains("listed that are not there"), "{error}");
}

/// Goal: a check of the whole log reads every entry, and so finds damage to one that no restore
/// needs.
#[test]
fn a_check_reads_every_entry() {
    let (machines, newest) = written();
    assert_eq!(machines.log().unwrap().verify().unwrap() as u64, newest);
    let empty = Machines::new(LogLimits::default());
    assert_eq!(empty.log().unwrap().verify().unwrap(), 0);
    let error = empty.restored().unwrap_err();
    assert!(error.to_string().contains("the log is empty"), "{error}");
    let error = empty.follow(empty.store.clone()).map(drop).unwrap_err();
    assert!(error.to_string().contains("the log is empty"), "{error}");
    let store: Arc<dyn BlobStore> = empty.store.clone();
    let ids: Arc<dyn IdSource> = empty.ids.clone();
    Appender::claim(&store, &ids, 7, false).unwrap();
    for error in [empty.restored().unwrap_err(), empty.follow(store).map(drop).unwrap_err()] {
        assert!(error.to_string().contains("no base yet"), "{error}");
    }
    let log = machines.log().unwrap();
    machines.store.put(&entry::key(1), b"lodestone catalog log 9 and more").unwrap();
    assert!(log.verify().is_err());
    machines.store.delete(&entry::key(1)).unwrap();
    let error = machines.log().unwrap_err();
    assert!(error.to_string().contains("no claim of this number"), "{error}");
    machines.store.put(&Key::parse("v1/catalog/none").unwrap(), b"x").unwrap();
    let error = machines.log().unwrap_err();
    assert!(error.to_string().contains("v1/catalog/none"), "{error}");
}

/// Goal: anything that follows a base nobody knew of is refused, and frames must follow frames.
#[test]
fn the_rules_of_order_are_kept() {
    let label = |nonce: u128, kind: Kind| Label {
        nonce: Uuid::from_u128(nonce),
        parent: Some(Uuid::from_u128(nonce - 1)),
        claim: 1,
        base: 2,
        kind,
    };
    let base =
        Base { blob: "v1/x".into(), bytes: 1, sha256: String::new(), first: 2, collected: 1 };
    let place = |lap, offset| Kind::Frames(Frames { lap, offset, bytes: 10 });
    let mut order = Order::default();
    order.newest_base = 2;
    order.check(2, &label(2, Kind::Base(base.clone()))).unwrap();
    order.check(3, &label(3, place(4, 0))).unwrap();
    order.check(4, &label(4, place(4, 10))).unwrap();
    for kind in [place(4, 10), place(4, 0), place(3, 0), place(5, 10)] {
        assert!(order.clone().check(5, &label(5, kind)).is_err());
    }
    let error = order.clone().check(5, &label(5, Kind::Base(base))).unwrap_err();
    assert!(error.contains("later entries do not know"), "{error}");
    order.check(5, &label(5, place(6, 0))).unwrap();
    assert_eq!(limits::PIECE_BYTES_MAX, 8 << 20);
}

/// Goal: a restore refuses, as a whole, a lap whose frames are not those that SQLite wrote, and a
/// base that holds no catalog. An unreachable store does not count as damage.
#[test]
fn a_restore_takes_whole_laps_of_a_catalog_only() {
    let (machines, newest) = written();
    machines.rewrite(newest, |_, content| {
        let middle = content.len() / 2;
        content[middle] ^= 1;
    });
    let error = machines.restored().unwrap_err();
    assert!(error.to_string().contains("whole frames instead of"), "{error}");
    let machines = Machines::new(LogLimits::default());
    super::durability::old_base(&machines, 0);
    let error = machines.restored().unwrap_err();
    assert!(error.to_string().contains("an empty database"), "{error}");
    let (machines, _) = written();
    let bases = entry::bases();
    machines.store.set(move |_, key| match key.as_str().starts_with(bases.as_str()) {
        true => Fault::Before,
        false => Fault::None,
    });
    let error = machines.restored().unwrap_err();
    assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
}
