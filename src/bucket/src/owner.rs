//! The lease of the process that writes to a prefix: others are told, and wait until it is gone.
//!
//! No safety rests on it: commits are decided by the creation of numbered blobs. It keeps a second
//! server, started by mistake, from taking over what a first one serves, and lets one that was
//! started after the loss of a machine know how long to wait. No clock is compared with another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::SharedStoreError;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition};

/// The object with the name of the process, outside of the blobs.
const OWNER: &str = "owner";
/// The same name in the data directory.
const OWN_FILE: &str = "cache/owner";
/// Time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);
/// Time without a renewal after which a process is gone.
const GONE: Duration = Duration::from_secs(15);
/// Time between two looks at the name of another process.
const LOOK: Duration = Duration::from_secs(1);

/// The right to write to a prefix, renewed until it is dropped.
#[derive(Debug)]
pub struct OwnerLease {
    shared: Arc<Shared>,
    renewal: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    bucket: Arc<Bucket>,
    own_file: PathBuf,
    name: String,
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl OwnerLease {
    /// Takes the place of the process that wrote last, if that one is gone: it ended, it was one
    /// with this data directory, which nobody else holds now, or it has not renewed its name for 15
    /// seconds. `name` is one that no process had before.
    ///
    /// # Errors
    /// [`SharedStoreError::InUse`]; errors of the store.
    pub fn take(bucket: &Arc<Bucket>, data: &Path, name: String) -> Result<Self, SharedStoreError> {
        let shared = Arc::new(Shared {
            bucket: Arc::clone(bucket),
            own_file: data.join(OWN_FILE),
            name,
            is_over: Mutex::new(false),
            changed: Condvar::new(),
        });
        shared.wait_for_others()?;
        if let Err(error) = std::fs::write(&shared.own_file, &shared.name) {
            // A restart waits for 15 seconds then.
            tracing::warn!(%error, "the name of this process could not be noted");
        }
        shared.write(0)?;
        let own = Arc::clone(&shared);
        let renewal = std::thread::Builder::new().name("store-owner".to_owned());
        let renewal = renewal.spawn(move || own.keep()).ok();
        Ok(Self { shared, renewal })
    }
}

impl Drop for OwnerLease {
    fn drop(&mut self) {
        *self.shared.is_over.lock() = true;
        self.shared.changed.notify_all();
        if let Some(Err(_)) = self.renewal.take().map(JoinHandle::join) {
            tracing::error!("the renewal of the owner's name panicked");
        }
        if let Err(error) = self.shared.remove() {
            tracing::warn!(%error, "the next process waits for 15 seconds");
        }
    }
}

impl Shared {
    fn wait_for_others(&self) -> Result<(), SharedStoreError> {
        let read = || self.bucket.get(OWNER);
        let Some(first) = read()? else { return Ok(()) };
        let before = std::fs::read(&self.own_file).unwrap_or_default();
        if !before.is_empty() && first.starts_with(&before) {
            return Ok(());
        }
        let holder = String::from_utf8_lossy(&first).into_owned();
        let place = self.bucket.url().to_string();
        tracing::warn!(%place, %holder, "another process wrote here last: does it live?");
        let mut waited = Duration::ZERO;
        while waited < GONE {
            if self.bucket.pause(LOOK) {
                return Err(BucketError::Stopped.into());
            }
            waited += LOOK;
            match read()? {
                None => return Ok(()),
                Some(now) if now != first => return Err(SharedStoreError::InUse { place, holder }),
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn write(&self, renewals: u64) -> Result<(), BucketError> {
        let text = format!("{} {renewals}", self.name);
        self.bucket.put(OWNER, text.as_bytes(), Condition::None).map(|_| ())
    }

    /// Removes the name, unless it is already that of another process.
    fn remove(&self) -> Result<(), BucketError> {
        let is_own = |text: Vec<u8>| text.starts_with(self.name.as_bytes());
        match self.bucket.get(OWNER)?.is_some_and(is_own) {
            true => self.bucket.remove(OWNER),
            false => Ok(()),
        }
    }

    /// Renews the name until the process gives it up.
    fn keep(&self) {
        let mut renewals = 0;
        let mut is_over = self.is_over.lock();
        while !*is_over {
            self.changed.wait_for(&mut is_over, RENEWAL);
            if *is_over {
                break;
            }
            renewals += 1;
            let renewed = parking_lot::MutexGuard::unlocked(&mut is_over, || self.write(renewals));
            if let Err(error) = renewed {
                tracing::warn!(%error, "the owner's name could not be renewed");
            }
        }
    }
}
