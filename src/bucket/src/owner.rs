//! The lease of the process that writes to a prefix: others are told, and wait until it is gone.
//!
//! No safety rests on it: commits are decided by the creation of numbered blobs. It keeps a second
//! server, started by mistake, from taking over what a first one serves, and lets one that was
//! started after the loss of a machine know how long to wait. No clock is compared with another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::SharedStoreError;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put};

/// The object with the name of the process, outside of the blobs.
pub(crate) const OWNER: &str = "owner";
/// The same name in the data directory.
const OWN_FILE: &str = "cache/owner";
/// Time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);
/// Time without a renewal after which a process is gone.
const GONE: Duration = Duration::from_secs(15);
/// Time after the beginning of a renewal for which no other process can have taken the place.
const SURE: Duration = Duration::from_secs(10);
/// Time between two tries to renew a name where the store fails.
const AGAIN: Duration = Duration::from_secs(1);
/// Time for which a renewal is under way before the store is taken for one that does not answer.
const SLOW: Duration = Duration::from_secs(2);
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
    renewals: Mutex<Renewals>,
    changed: Condvar,
}

/// The renewals so far.
#[derive(Debug)]
struct Renewals {
    /// Begin of the last one that was written.
    renewed: Instant,
    /// Begin of the one that is under way.
    begun: Option<Instant>,
    /// Whether the last one found the name of another process, or failed.
    is_lost: bool,
    has_failed: bool,
    is_over: bool,
}

/// Whether a process still has its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// No other process can have taken it.
    Sure,
    /// The store does not answer.
    Unknown,
    /// Another process has it, or this one stood still for so long that one may have it.
    Lost,
}

/// A view of a lease, for those who answer by it.
#[derive(Debug, Clone)]
pub struct LeaseWatch(Arc<Shared>);

impl LeaseWatch {
    /// Whether the process still has its place. Asks nobody.
    pub fn hold(&self) -> Hold {
        self.0.renewals.lock().hold(Instant::now())
    }
}

impl Renewals {
    fn hold(&self, now: Instant) -> Hold {
        let is_slow = self.begun.is_some_and(|begun| now.duration_since(begun) > SLOW);
        match now.duration_since(self.renewed) < SURE {
            _ if self.is_lost => Hold::Lost,
            true => Hold::Sure,
            false if self.has_failed || is_slow => Hold::Unknown,
            false => Hold::Lost,
        }
    }
}

/// The lease at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lease {
    /// Nobody has it.
    Free,
    /// It is that of the process which had this data directory before: nobody else holds that now.
    Own,
    /// A process has it, or had it; with its name and the number of its renewals.
    Held(Vec<u8>),
}

impl OwnerLease {
    /// Takes the place of the process that wrote last, if that one is gone: it ended, it was one
    /// with this data directory, which nobody else holds now, or it has not renewed its name for 15
    /// seconds. `name` is one that no process had before.
    ///
    /// # Errors
    /// [`SharedStoreError::InUse`]; errors of the store.
    pub fn take(bucket: &Arc<Bucket>, data: &Path, name: String) -> Result<Self, SharedStoreError> {
        let shared = Arc::new(Shared::new(bucket, data, name));
        let in_use = |holder: &[u8]| SharedStoreError::InUse {
            place: bucket.url().to_string(),
            holder: String::from_utf8_lossy(holder).into_owned(),
        };
        let mut lease = shared.look()?;
        if let Lease::Held(holder) = &lease {
            let (place, name) = (bucket.url(), String::from_utf8_lossy(holder));
            tracing::warn!(%place, holder = %name, "another one wrote here last: does it live?");
            let mut waited = Duration::ZERO;
            while waited < GONE {
                if bucket.pause(LOOK) {
                    return Err(BucketError::Stopped.into());
                }
                waited += LOOK;
                match shared.look()? {
                    Lease::Held(now) if now != *holder => return Err(in_use(holder)),
                    Lease::Held(_) => {}
                    free => {
                        lease = free;
                        break;
                    }
                }
            }
        }
        if !shared.claim(&lease)? {
            return Err(in_use(&bucket.get(OWNER)?.unwrap_or_default()));
        }
        let own = Arc::clone(&shared);
        let renewal = std::thread::Builder::new().name("store-owner".to_owned());
        let renewal = renewal.spawn(move || own.keep()).ok();
        Ok(Self { shared, renewal })
    }

    /// A view of it.
    pub fn watch(&self) -> LeaseWatch {
        LeaseWatch(Arc::clone(&self.shared))
    }

    /// Waits, for as long as it takes, until the process that writes is gone as for
    /// [`OwnerLease::take`], and claims its place, which `take` with the same data directory finds
    /// free then. Of several that wait one has it. Time during which the store does not answer does
    /// not count. Returns false where the bucket's pauses were ended before.
    pub fn await_turn(bucket: &Arc<Bucket>, data: &Path, name: String) -> bool {
        let shared = Shared::new(bucket, data, name);
        let (mut seen, mut unchanged) = (None, Duration::ZERO);
        loop {
            let claimed = shared.look().and_then(|lease| {
                unchanged = match seen.as_ref() == Some(&lease) {
                    true => unchanged + LOOK,
                    false => Duration::ZERO,
                };
                let is_held = matches!(lease, Lease::Held(_)) && unchanged < GONE;
                let claimed = !is_held && shared.claim(&lease)?;
                seen = Some(lease);
                Ok(claimed)
            });
            match claimed {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(%error, "it is not known whether the one that writes lives");
                    seen = None;
                }
            }
            if bucket.pause(LOOK) {
                return false;
            }
        }
    }
}

impl Drop for OwnerLease {
    fn drop(&mut self) {
        self.shared.renewals.lock().is_over = true;
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
    fn new(bucket: &Arc<Bucket>, data: &Path, name: String) -> Self {
        let (bucket, own_file) = (Arc::clone(bucket), data.join(OWN_FILE));
        let (renewed, begun) = (Instant::now(), None);
        let (is_lost, has_failed, is_over, changed) = Default::default();
        let renewals = Mutex::new(Renewals { renewed, begun, is_lost, has_failed, is_over });
        Self { bucket, own_file, name, renewals, changed }
    }

    fn look(&self) -> Result<Lease, BucketError> {
        let Some(held) = self.bucket.get(OWNER)? else { return Ok(Lease::Free) };
        let before = std::fs::read(&self.own_file).unwrap_or_default();
        Ok(match !before.is_empty() && held.starts_with(&before) {
            true => Lease::Own,
            false => Lease::Held(held),
        })
    }

    /// Puts the name of this process in the place of what was seen there; returns whether no other
    /// process came first.
    fn claim(&self, seen: &Lease) -> Result<bool, BucketError> {
        if let Lease::Held(_) = seen {
            if self.look()? != *seen {
                return Ok(false);
            }
            self.bucket.remove(OWNER)?;
        }
        let condition = match seen {
            Lease::Own => Condition::None,
            Lease::Free | Lease::Held(_) => Condition::Absent,
        };
        self.renewals.lock().renewed = Instant::now();
        // A request that is repeated may be refused for what its first try has written.
        let is_claimed = matches!(self.write(0, condition)?, Put::Done(_))
            || self.bucket.get(OWNER)?.is_some_and(|held| self.is_own(&held));
        if is_claimed {
            let folder = self.own_file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let noted = folder.and_then(|()| std::fs::write(&self.own_file, &self.name));
            if let Err(error) = noted {
                // A restart waits for 15 seconds then.
                tracing::warn!(%error, "the name of this process could not be noted");
            }
        }
        Ok(is_claimed)
    }

    fn is_own(&self, held: &[u8]) -> bool {
        held.starts_with(self.name.as_bytes())
    }

    fn write(&self, renewals: u64, condition: Condition<'_>) -> Result<Put, BucketError> {
        let text = format!("{} {renewals}", self.name);
        self.bucket.put(OWNER, text.as_bytes(), condition)
    }

    /// Removes the name, unless it is already that of another process.
    fn remove(&self) -> Result<(), BucketError> {
        match self.bucket.get(OWNER)?.is_some_and(|held| self.is_own(&held)) {
            true => self.bucket.remove(OWNER),
            false => Ok(()),
        }
    }

    /// Writes the name again, unless another process has taken the place: one that slept, and has
    /// a successor, must not be taken for that. Returns whether it has the place.
    fn renew(&self, renewals: u64) -> Result<bool, BucketError> {
        match self.bucket.get(OWNER)? {
            Some(held) if !self.is_own(&held) => Ok(false),
            _ => self.write(renewals, Condition::None).map(|_| true),
        }
    }

    /// Renews the name until the process gives it up.
    fn keep(&self) {
        let (mut count, mut state) = (0, self.renewals.lock());
        while !state.is_over {
            let time = if state.has_failed { AGAIN } else { RENEWAL };
            self.changed.wait_for(&mut state, time);
            if state.is_over {
                break;
            }
            count += 1;
            let begun = Instant::now();
            state.begun = Some(begun);
            let renewed = MutexGuard::unlocked(&mut state, || self.renew(count));
            (state.begun, state.has_failed) = (None, renewed.is_err());
            match renewed {
                Ok(has_place) => {
                    state.is_lost = !has_place;
                    state.renewed = if has_place { begun } else { state.renewed };
                }
                Err(error) => tracing::warn!(%error, "the owner's name could not be renewed"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a process that renewed its name a moment ago is sure of its place; one that stood
    /// still is not, until it has renewed it; where the store fails nobody knows.
    #[test]
    fn a_place_is_sure_for_less_long_than_others_wait() {
        let renewed = Instant::now();
        let (is_lost, has_failed, is_over) = (false, false, false);
        let fresh = || Renewals { renewed, begun: None, is_lost, has_failed, is_over };
        let after = |seconds: u64| renewed + Duration::from_secs(seconds);
        assert!(SURE + RENEWAL <= GONE, "a renewal may fail before others may try");
        assert_eq!(fresh().hold(after(9)), Hold::Sure);
        assert_eq!(fresh().hold(after(20)), Hold::Lost, "it slept");
        let trying = |seconds| Renewals { begun: Some(after(seconds)), ..fresh() };
        assert_eq!(trying(5).hold(after(6)), Hold::Sure);
        assert_eq!(trying(19).hold(after(20)), Hold::Lost, "it woke up, and asks");
        assert_eq!(trying(5).hold(after(12)), Hold::Unknown, "the store is slow");
        let failing = || Renewals { has_failed: true, ..fresh() };
        assert_eq!(failing().hold(after(9)), Hold::Sure);
        assert_eq!(failing().hold(after(12)), Hold::Unknown);
        assert_eq!(Renewals { is_lost: true, ..failing() }.hold(after(1)), Hold::Lost);
    }
}
