//! The lock of a bucket: one process at a time adds or removes backups, also after one was killed.
//!
//! The lock is an object that is written on the condition that there is none, and written anew
//! every [`RENEWAL`] on the condition that nobody else has. One that does not change for
//! [`LEFT_OVER`] is of a process that is gone, and taken over. No clock is compared with another.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::BackupError;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put, Version};
use lodestone_types::IdSource;

const LOCK: &str = "lock";
/// Time between two renewals.
const RENEWAL: Duration = Duration::from_secs(10);
/// Time after which a lock that did not change is that of a process that is gone.
const LEFT_OVER: Duration = Duration::from_secs(60);
/// Time between two looks at the lock of another process.
const LOOK: Duration = Duration::from_secs(2);

/// The lock, held and renewed.
#[derive(Debug)]
pub(super) struct Lease {
    shared: Arc<Shared>,
    renewal: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    bucket: Arc<Bucket>,
    token: String,
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug)]
struct Held {
    /// The version of the lock; `None` once another process has it.
    version: Option<Version>,
    renewals: u64,
    is_over: bool,
}

impl Lease {
    /// Takes the lock; `None` where the store knows no conditions.
    ///
    /// # Errors
    /// [`BackupError::Busy`] while another process has it.
    pub(super) fn take(
        bucket: &Arc<Bucket>,
        ids: &dyn IdSource,
    ) -> Result<Option<Self>, BackupError> {
        let token = ids.uuid().simple().to_string();
        let held = Mutex::new(Held { version: None, renewals: 0, is_over: false });
        let bucket = Arc::clone(bucket);
        let shared = Arc::new(Shared { bucket, token, held, changed: Condvar::new() });
        match shared.take() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(BackupError::Bucket(BucketError::Refused { status: 501, .. })) => {
                warn_unprotected(&shared.bucket);
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let own = Arc::clone(&shared);
        let renewal = std::thread::Builder::new().name("backup-lock".to_owned());
        let renewal = renewal.spawn(move || own.keep()).ok();
        Ok(Some(Self { shared, renewal }))
    }

    /// Whether the lock was still held when it was last looked at.
    pub(super) fn check(&self) -> Result<(), BackupError> {
        self.shared.held.lock().version.as_ref().map(|_| ()).ok_or_else(lost)
    }

    /// Renews the lock now.
    pub(super) fn renew(&self) -> Result<(), BackupError> {
        self.shared.renew(&mut self.shared.held.lock())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.held.lock().is_over = true;
        self.shared.changed.notify_all();
        if let Some(Err(_)) = self.renewal.take().map(JoinHandle::join) {
            tracing::error!("the renewal of the lock panicked");
        }
        if self.check().is_ok()
            && let Err(error) = self.shared.bucket.remove(LOCK)
        {
            tracing::warn!(%error, "the lock of the backups is left behind for a minute");
        }
    }
}

fn lost() -> BackupError {
    let reason = "another process has taken the lock of the bucket, because it was not renewed";
    BackupError::GivenUp { reason }
}

fn warn_unprotected(bucket: &Bucket) {
    tracing::warn!(backups = %bucket.url(), "the store knows no conditional writes: nothing keeps \
        two processes from changing these backups at once");
}

impl Shared {
    /// Takes the lock; returns whether the store keeps others from it.
    fn take(&self) -> Result<bool, BackupError> {
        let mut held = self.held.lock();
        let mut seen: Option<Version> = None;
        let mut waited = Duration::ZERO;
        loop {
            let condition = match &seen {
                Some(version) if waited >= LEFT_OVER => Condition::Unchanged(version),
                _ => Condition::Absent,
            };
            if let Some(version) = self.write(condition, 0)? {
                held.version = Some(version);
                // A store that does not know the condition writes it again.
                let again = self.bucket.put(LOCK, self.text(1).as_bytes(), Condition::Absent)?;
                if again != Put::Refused {
                    warn_unprotected(&self.bucket);
                    self.bucket.remove(LOCK)?;
                    return Ok(false);
                }
                return Ok(true);
            }
            match (self.bucket.version(LOCK)?, &seen) {
                (Some(version), None) => seen = Some(version),
                (Some(version), Some(first)) if version != *first || waited >= LEFT_OVER => {
                    return Err(BackupError::Busy);
                }
                (Some(_), Some(_)) => {}
                (None, _) => (seen, waited) = (None, Duration::ZERO),
            }
            if self.bucket.pause(LOOK) {
                return Err(BucketError::Stopped.into());
            }
            waited += LOOK;
        }
    }

    fn text(&self, renewals: u64) -> String {
        format!("{} {renewals}", self.token)
    }

    /// Writes the lock; returns its version, or `None` where the condition does not hold.
    fn write(
        &self,
        condition: Condition<'_>,
        renewals: u64,
    ) -> Result<Option<Version>, BackupError> {
        let text = self.text(renewals);
        match self.bucket.put(LOCK, text.as_bytes(), condition)? {
            Put::Done(version) => Ok(Some(version)),
            // A first try was done, and its answer lost.
            Put::Refused if self.bucket.get(LOCK)?.as_deref() == Some(text.as_bytes()) => {
                Ok(self.bucket.version(LOCK)?)
            }
            Put::Refused => match condition {
                // It is the right one: a store that refuses it does not know the condition.
                Condition::Unchanged(version)
                    if self.bucket.version(LOCK)?.as_ref() == Some(version) =>
                {
                    match self.bucket.put(LOCK, text.as_bytes(), Condition::None)? {
                        Put::Done(version) => Ok(Some(version)),
                        Put::Refused => Ok(None),
                    }
                }
                _ => Ok(None),
            },
        }
    }

    fn renew(&self, held: &mut Held) -> Result<(), BackupError> {
        let version = held.version.take().ok_or_else(lost)?;
        held.renewals += 1;
        match self.write(Condition::Unchanged(&version), held.renewals) {
            Ok(renewed) => {
                held.version = renewed;
                held.version.as_ref().map(|_| ()).ok_or_else(lost)
            }
            Err(error) => {
                // It may be renewed yet.
                held.version = Some(version);
                Err(error)
            }
        }
    }

    /// Renews the lock until the lease is over.
    fn keep(&self) {
        let mut held = self.held.lock();
        while !held.is_over {
            self.changed.wait_for(&mut held, RENEWAL);
            if !held.is_over
                && let Err(error) = self.renew(&mut held)
            {
                tracing::warn!(%error, "the lock of the backups could not be renewed");
            }
        }
    }
}
