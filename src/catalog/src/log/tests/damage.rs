//! Logs and files that hold what no process has written, and stores that fail between two steps.

use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::log::ship::{Folded, checkpoint};

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
    // Where something is in its way, the log stays as it is.
    own.execute_batch("INSERT INTO t VALUES (3); BEGIN; INSERT INTO t VALUES (4)").unwrap();
    assert_eq!(checkpoint(&own, "PASSIVE").unwrap(), Folded::Partly);
}
