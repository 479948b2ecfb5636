//! The writer thread, with group commit.
//!
//! Callers send closures and wait. The thread takes all that wait, runs each under its own
//! savepoint inside one transaction, commits once, and only then answers them all. So one fsync
//! serves all callers that came while the last one ran, and a failing closure undoes only itself.
//!
//! A failed commit leaves it unknown what is on the disk: an fsync that failed is never tried
//! again (the kernel may have dropped the pages). The writer then refuses everything until the
//! catalog is opened anew. A full disk is different: SQLite rolls back cleanly, so the batch
//! fails and the next one may succeed.
//!
//! With a log in a blob store (`log`), a commit is also sent there before anybody is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::error::{CatalogError, Result};
use super::log::Shipper;

/// Closures in one transaction at most, which bounds how long the first of them waits.
const BATCH_MAX: usize = 512;

/// Cause of the failure of a whole batch.
#[derive(Debug, Clone)]
enum Failure {
    Full,
    RolledBack(String),
    Poisoned(String),
    /// Poisoned by the commit of this batch, which may have happened.
    InDoubt(String),
    /// Refused before it began, because an earlier commit waits for the store of the log.
    Away(String),
    /// Committed here, and it is not known whether it is in the store of the log.
    Unsent(String),
}

impl Failure {
    fn of(error: CatalogError) -> Self {
        match error {
            CatalogError::StorageFull => Self::Full,
            CatalogError::LogAway { cause } => Self::Away(cause),
            other => Self::Poisoned(other.to_string()),
        }
    }

    fn error(&self) -> CatalogError {
        match self {
            Self::Full => CatalogError::StorageFull,
            Self::InDoubt(cause) | Self::Unsent(cause) => {
                CatalogError::InDoubt { cause: cause.clone() }
            }
            Self::Away(cause) => CatalogError::LogAway { cause: cause.clone() },
            Self::RolledBack(cause) | Self::Poisoned(cause) => {
                CatalogError::Poisoned { cause: cause.clone() }
            }
        }
    }
}

/// Effect of a closure on the transaction.
enum Step {
    Keep,
    Undo(Failure),
    Poison(String),
}

/// The durability that a change must reach before its caller is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It survives whatever the catalog promises to survive.
    Durable,
    /// It is committed here. If the store of the log is away, this process goes on with it, and the
    /// next one may not know of it.
    Here,
}

trait Task: Send {
    fn run(&mut self, connection: &Connection) -> Step;
    fn answer(self: Box<Self>, failure: Option<&Failure>);
}

struct Work<T, F> {
    body: Option<F>,
    reach: Reach,
    result: Option<Result<T>>,
    reply: SyncSender<Result<T>>,
}

impl<T, F> Task for Work<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> Step {
        let body = self.body.take().expect("each task runs once");
        let result = body(connection);
        let step = match &result {
            Ok(_) => Step::Keep,
            Err(error) if error.is_poisoning() => Step::Poison(error.to_string()),
            Err(CatalogError::StorageFull) => Step::Undo(Failure::Full),
            Err(error) => Step::Undo(Failure::RolledBack(error.to_string())),
        };
        self.result = Some(result);
        step
    }

    fn answer(self: Box<Self>, failure: Option<&Failure>) {
        let outcome = match (self.result, failure) {
            (Some(Err(own)), _) => Err(own),
            (Some(Ok(value)), Some(Failure::Unsent(_))) if self.reach == Reach::Here => Ok(value),
            (_, Some(failure)) => Err(failure.error()),
            (Some(Ok(value)), None) => Ok(value),
            (None, None) => unreachable!("a batch that succeeded ran every task"),
        };
        // A caller that is gone needs no answer.
        let _ = self.reply.send(outcome);
    }
}

/// Counts of the writer's work, for tests.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) waiting: AtomicU64,
}

/// Handle of the writer thread.
pub(super) struct Writer {
    /// None in a process that only reads, and at the end.
    sender: Option<Sender<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
    pub(super) counters: Arc<Counters>,
}

impl Writer {
    pub(super) fn start(connection: Connection, log: Option<Shipper>) -> std::io::Result<Self> {
        let (sender, receiver) = channel();
        let counters = Arc::new(Counters::default());
        let counted = Arc::clone(&counters);
        let thread = std::thread::Builder::new()
            .name("catalog-writer".into())
            .spawn(move || serve(connection, log, &receiver, &counted))?;
        Ok(Self { sender: Some(sender), thread: Some(thread), counters })
    }

    /// A writer that refuses everything.
    pub(super) fn refusing() -> Self {
        Self { sender: None, thread: None, counters: Arc::default() }
    }

    /// Runs `body` in a transaction that has come as far as `reach` says when this returns `Ok`.
    pub(super) fn write<T, F>(&self, reach: Reach, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let Some(sender) = &self.sender else { return Err(CatalogError::ReadOnly) };
        let (reply, answer) = sync_channel(1);
        let stopped = || CatalogError::Poisoned { cause: "the writer stopped".into() };
        let task = Box::new(Work { body: Some(body), reach, result: None, reply });
        self.counters.waiting.fetch_add(1, Ordering::SeqCst);
        sender.send(task).map_err(|_| stopped())?;
        answer.recv().unwrap_or_else(|_| Err(stopped()))
    }
}

impl Drop for Writer {
    /// Lets the thread finish what waits, so that the file is closed when this returns.
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the writer was answered to its callers already.
            let _ = thread.join();
        }
    }
}

/// Serves until the sender is gone. The connection is closed before the log is, which holds the
/// file open.
fn serve(
    connection: Connection,
    mut log: Option<Shipper>,
    receiver: &Receiver<Box<dyn Task>>,
    counters: &Counters,
) {
    let mut poison: Option<Failure> = None;
    loop {
        let pause = log.as_ref().filter(|_| poison.is_none()).and_then(Shipper::pause);
        let received = match pause {
            None => receiver.recv().map_err(RecvTimeoutError::from),
            Some(pause) => receiver.recv_timeout(pause),
        };
        let has_waited = match received {
            Ok(first) => {
                serve_batch(&connection, log.as_mut(), first, receiver, counters, &mut poison);
                false
            }
            Err(RecvTimeoutError::Timeout) => true,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if poison.is_none()
            && let Some(log) = &mut log
            && let Err(error) = log.maintain(&connection, has_waited)
        {
            poison = Some(poisoned_by(error.to_string()));
        }
    }
    drop(connection);
}

fn serve_batch(
    connection: &Connection,
    log: Option<&mut Shipper>,
    first: Box<dyn Task>,
    receiver: &Receiver<Box<dyn Task>>,
    counters: &Counters,
    poison: &mut Option<Failure>,
) {
    let mut batch = vec![first];
    while batch.len() < BATCH_MAX
        && let Ok(next) = receiver.try_recv()
    {
        batch.push(next);
    }
    let size = batch.len() as u64;
    counters.waiting.fetch_sub(size, Ordering::SeqCst);
    let failure = match (&*poison, log) {
        (Some(failure), _) => Some(failure.clone()),
        (None, None) => commit_together(connection, &mut batch).err(),
        (None, Some(log)) => commit_and_send(connection, &mut batch, log).err(),
    };
    match &failure {
        None => {
            counters.commits.fetch_add(1, Ordering::SeqCst);
            counters.writes.fetch_add(size, Ordering::SeqCst);
        }
        Some(Failure::Poisoned(cause) | Failure::InDoubt(cause)) if poison.is_none() => {
            // What comes later is refused, and so in no doubt.
            *poison = Some(poisoned_by(cause.clone()));
        }
        Some(_) => {}
    }
    for task in batch {
        task.answer(failure.as_ref());
    }
}

fn poisoned_by(cause: String) -> Failure {
    tracing::error!(%cause, "the catalog refuses writes until it is opened again");
    Failure::Poisoned(cause)
}

/// As [`commit_together`], and sends the commit to the store of the log. A commit that another
/// process has made impossible there has not happened.
fn commit_and_send(
    connection: &Connection,
    batch: &mut [Box<dyn Task>],
    log: &mut Shipper,
) -> std::result::Result<(), Failure> {
    log.catch_up(connection).map_err(Failure::of)?;
    commit_together(connection, batch)?;
    log.ship(connection).map_err(|error| match error {
        CatalogError::LogAway { cause } => Failure::Unsent(cause),
        CatalogError::Fenced => Failure::of(error),
        // It may have been sent before the error, and is visible here in any case.
        other => Failure::InDoubt(other.to_string()),
    })
}

fn commit_together(
    connection: &Connection,
    batch: &mut [Box<dyn Task>],
) -> std::result::Result<(), Failure> {
    let run = |sql: &str| connection.execute_batch(sql).map_err(CatalogError::from);
    let undo = |failure: Failure| {
        if !connection.is_autocommit() && connection.execute_batch("ROLLBACK").is_err() {
            return Failure::Poisoned("a roll-back failed".into());
        }
        failure
    };
    // Nothing is written yet, so an error here leaves the state of the file known.
    run("BEGIN IMMEDIATE").map_err(|error| match Failure::of(error) {
        Failure::Poisoned(cause) => Failure::RolledBack(cause),
        other => other,
    })?;
    for task in batch {
        run("SAVEPOINT task").map_err(|error| undo(Failure::of(error)))?;
        let end = match task.run(connection) {
            Step::Keep => "RELEASE task",
            // SQLite may end the whole transaction by itself when the disk or memory is full.
            Step::Undo(failure) if connection.is_autocommit() => return Err(failure),
            Step::Undo(_) => "ROLLBACK TO task; RELEASE task",
            Step::Poison(cause) => return Err(undo(Failure::Poisoned(cause))),
        };
        run(end).map_err(|error| undo(Failure::of(error)))?;
    }
    run("COMMIT").map_err(|error| match undo(Failure::of(error)) {
        Failure::Poisoned(cause) => Failure::InDoubt(cause),
        failure => failure,
    })
}
