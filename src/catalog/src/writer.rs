//! The writer thread, with group commit.
//!
//! Callers send closures and block. The thread takes all that are waiting, runs each under its own
//! savepoint within one transaction, commits once, and only then answers them all. One fsync thus
//! serves all callers that arrived while the previous one ran, and a failing closure undoes only
//! itself.
//!
//! After a failed commit the state on disk is unknown: a failed fsync is never retried (the kernel
//! may have dropped the pages). The writer then refuses everything until the catalog is reopened. A
//! full disk is different: SQLite rolls back cleanly, so the batch fails and the next one may
//! succeed.
//!
//! With a log in a blob store (`log`), a commit is also sent there before any caller is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::error::{CatalogError, Result};
use super::log::Shipper;

/// Maximum number of closures per transaction, which bounds the wait of the first one.
const BATCH_MAX: usize = 512;

/// The reason why a whole batch failed.
#[derive(Debug, Clone)]
enum Failure {
    Full,
    RolledBack(String),
    Poisoned(String),
    /// Poisoned by the commit of this batch, whose outcome is unknown.
    InDoubt(String),
    /// Refused before it began, because an earlier commit still waits for the log's store.
    Away(String),
    /// Committed locally, but it is unknown whether the log's store has it.
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

/// The effect of a closure on the transaction.
enum Step {
    Keep,
    Undo(Failure),
    Poison(String),
}

/// The durability that a change must reach before its caller is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The full durability that the catalog promises.
    Durable,
    /// Committed locally. If the log's store is unreachable, this process carries on with the
    /// change, but the next one may not know of it.
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
        // The caller may be gone, and needs no answer then.
        let _ = self.reply.send(outcome);
    }
}

/// Counters of the writer's work, for tests.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) waiting: AtomicU64,
}

/// Handle to the writer thread.
pub(super) struct Writer {
    /// `None` in a process that only reads, and during shutdown.
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

    /// Creates a writer that refuses everything.
    pub(super) fn refusing() -> Self {
        Self { sender: None, thread: None, counters: Arc::default() }
    }

    /// Runs `body` in a transaction that has reached `reach` once this returns `Ok`.
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
    /// Lets the thread finish pending work, so that the file is closed when this returns.
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            // Callers have already been told of a panic in the writer.
            let _ = thread.join();
        }
    }
}

/// Serves until the sender is gone. The connection closes before the log, which holds the file
/// open.
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
            // Later batches are refused, and so their outcome is not in doubt.
            *poison = Some(poisoned_by(cause.clone()));
        }
        Some(_) => {}
    }
    for task in batch {
        task.answer(failure.as_ref());
    }
}

fn poisoned_by(cause: String) -> Failure {
    tracing::error!(%cause, "the catalog refuses writes until it is reopened");
    Failure::Poisoned(cause)
}

/// Commits like [`commit_together`] and sends the commit to the log's store. A commit that another
/// process has fenced off there counts as not having happened.
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
            return Failure::Poisoned("a rollback failed".into());
        }
        failure
    };
    // Nothing has been written yet, so an error here leaves the state of the file known.
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
