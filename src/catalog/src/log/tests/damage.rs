//! Logs and files that hold what no process has written, and stores that fail between two steps.

use super::*;
use crate::log::ship::{Folded, checkpoint};

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
