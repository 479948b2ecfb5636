//! The lock of a bucket: one process at a time adds or removes backups, even after one was killed.
//!
//! The lock is an object created on the condition that it does not exist, and rewritten every
//! [`RENEWAL`] on the condition that nobody else has done so. A lock that has not changed for
//! [`LEFT_OVER`] belongs to a dead process and is taken over. Clocks of different machines are
//! never compared.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::BackupError;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put, Version};
use lodestone_types::IdSource;

const LOCK: &str = "lock";
/// Interval between renewals.
const RENEWAL: Duration = Duration::from_secs(10);
/// Time after which an unchanged lock counts as left by a dead process.
const LEFT_OVER: Duration = Duration::from_secs(60);
/// Interval between checks of another process's lock.
const LOOK: Duration = Duration::from_secs(2);

/// The lock, held and renewed in the background; released on drop.
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
    /// The version of the lock object; `None` once another process holds it.
    version: Option<Version>,
    renewals: u64,
    is_over: bool,
}

impl Lease {
    /// Takes the lock; `None` if the store does not support conditional writes.
    ///
    /// # Errors
    /// [`BackupError::Busy`] while another process holds it.
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

    /// Checks that the lock was still held when it was last renewed.
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
            tracing::warn!(%error, "the backup lock is not released; it expires within a minute");
        }
    }
}

fn lost() -> BackupError {
    let reason = "the bucket's backup lock was not renewed in time, and another process took it";
    BackupError::GivenUp { reason }
}

fn warn_unprotected(bucket: &Bucket) {
    tracing::warn!(backups = %bucket.url(), "the bucket does not support conditional writes: do \
        not let two processes change these backups at the same time");
}

impl Shared {
    /// Takes the lock; returns whether the store can protect it from others.
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
                // A store that ignores the condition overwrites the lock.
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

    /// Writes the lock; returns its new version, or `None` if the condition does not hold.
    fn write(
        &self,
        condition: Condition<'_>,
        renewals: u64,
    ) -> Result<Option<Version>, BackupError> {
        let text = self.text(renewals);
        match self.bucket.put(LOCK, text.as_bytes(), condition)? {
            Put::Done(version) => Ok(Some(version)),
            // The first attempt succeeded, and its response was lost.
            Put::Refused if self.bucket.get(LOCK)?.as_deref() == Some(text.as_bytes()) => {
                Ok(self.bucket.version(LOCK)?)
            }
            Put::Refused => match condition {
                // The version is the expected one, so the store does not support the condition.
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
                // The renewal may have succeeded nevertheless, or may succeed next time.
                held.version = Some(version);
                Err(error)
            }
        }
    }

    /// Renews the lock until the lease ends.
    fn keep(&self) {
        let mut held = self.held.lock();
        while !held.is_over {
            self.changed.wait_for(&mut held, RENEWAL);
            if !held.is_over
                && let Err(error) = self.renew(&mut held)
            {
                tracing::warn!(%error, "renewing the backup lock failed");
            }
        }
    }
}
