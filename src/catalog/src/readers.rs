//! A small pool of read-only connections. A read sees every write acknowledged before it began.

use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OpenFlags};

use super::error::Result;
use super::open;

/// Maximum number of connections. Reads are short; more would only compete for the same pages.
const CONNECTIONS_MAX: usize = 4;
/// Maximum number of connections in use for long reads.
const LONG_MAX: usize = CONNECTIONS_MAX / 2;

#[derive(Default)]
struct Idle {
    connections: Vec<Connection>,
    opened: usize,
    /// The collections that long reads are about.
    long: Vec<[u8; 16]>,
    /// Whether no connections are handed out, because the file is about to be replaced.
    is_closed: bool,
}

/// The pool of connections.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Idle>,
    returned: Condvar,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Mutex::default(), returned: Condvar::new() }
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `body` on a connection. Its statements see one consistent state if it opens a
    /// transaction.
    pub(super) fn read<T>(&self, body: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let lent = ConnectionGuard { readers: self, connection: Some(self.take()?) };
        body(lent.connection.as_ref().expect("a connection is lent until it is dropped"))
    }

    /// Runs a read that takes the longer the more a collection has in the catalog. Only one about
    /// each collection, and two in all, run at once, so that others find a connection.
    pub(super) fn read_long<T>(
        &self,
        collection: [u8; 16],
        body: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let mut idle = self.idle.lock();
        while idle.long.len() == LONG_MAX || idle.long.contains(&collection) {
            self.returned.wait(&mut idle);
        }
        idle.long.push(collection);
        drop(idle);
        let _running = LongRead { readers: self, collection };
        self.read(body)
    }

    /// Runs `body` while nobody reads the file and no connection has cached anything of it.
    pub(super) fn alone<T>(&self, body: impl FnOnce() -> T) -> T {
        let mut idle = self.idle.lock();
        idle.is_closed = true;
        while idle.connections.len() < idle.opened {
            self.returned.wait(&mut idle);
        }
        idle.connections.clear();
        (idle.opened, idle.is_closed) = (0, false);
        // They go on when the lock is free, after a panic of `body` too.
        self.returned.notify_all();
        body()
    }

    fn take(&self) -> Result<Connection> {
        let mut idle = self.idle.lock();
        loop {
            if idle.is_closed {
                self.returned.wait(&mut idle);
                continue;
            }
            if let Some(connection) = idle.connections.pop() {
                return Ok(connection);
            }
            if idle.opened < CONNECTIONS_MAX {
                idle.opened += 1;
                drop(idle);
                let opened = connect(&self.path);
                if opened.is_err() {
                    self.idle.lock().opened -= 1;
                    self.returned.notify_all();
                }
                return opened;
            }
            self.returned.wait(&mut idle);
        }
    }
}

/// Opens a read-only connection.
pub(super) fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    open::prepare(&connection)?;
    Ok(connection)
}

/// Returns the connection to the pool, also when the closure panics.
struct ConnectionGuard<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.readers.idle.lock().connections.push(connection);
            // One that waits for all connections may be among those that wait.
            self.readers.returned.notify_all();
        }
    }
}

/// Ends a long read when dropped, also after a panic.
struct LongRead<'a> {
    readers: &'a Readers,
    collection: [u8; 16],
}

impl Drop for LongRead<'_> {
    fn drop(&mut self) {
        self.readers.idle.lock().long.retain(|one| *one != self.collection);
        self.readers.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    use super::*;

    /// Goal: long reads about one collection leave connections for those about another, and for all
    /// other reads. Method: the reads of one collection do not end before the others have.
    #[test]
    fn long_reads_leave_connections_for_others() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("catalog.sqlite");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE one (two)").unwrap();
        let readers = Readers::new(&path);
        let (begin, begun) = channel();
        std::thread::scope(|scope| {
            let ends: Vec<_> = (0..2 * CONNECTIONS_MAX)
                .map(|_| {
                    let ((end, ended), begin) = (channel::<()>(), begin.clone());
                    let readers = &readers;
                    scope.spawn(move || {
                        readers.read_long([1; 16], |_| {
                            begin.send(()).unwrap();
                            let _is_over = ended.recv();
                            Ok(())
                        })
                    });
                    end
                })
                .collect();
            begun.recv().unwrap();
            readers.read_long([2; 16], |_| readers.read(|_| Ok(()))).unwrap();
            assert!(begun.try_recv().is_err(), "one at a time");
            drop(ends);
        });
        assert!(readers.idle.lock().long.is_empty());
    }

    /// Goal: a panic while the file is replaced does not end all reading.
    #[test]
    fn the_file_is_read_after_a_change_that_panics() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("catalog.sqlite");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE one (two)").unwrap();
        let readers = Readers::new(&path);
        let count = || {
            readers.read(|connection| {
                Ok(connection.query_row("SELECT count(*) FROM one", [], |row| row.get(0))?)
            })
        };
        let before: i64 = count().unwrap();
        let panics = || readers.alone(|| panic!("on purpose: part of a test"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        assert_eq!(count().unwrap(), before);
    }
}
