//! The lease of the process that writes to a prefix. Another process that wants to write waits
//! until the holder is gone.
//!
//! Safety does not depend on it: the creation of numbered blobs decides commits. The lease keeps a
//! second server, started by mistake, from taking over from the first, and tells one started after
//! the loss of a machine how long to wait. Clocks of different machines are never compared.

mod unused;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::SharedStoreError;
use lodestone_fetch::bucket::{Bucket, BucketError, Condition, Put};
use lodestone_types::Timestamp;

/// The object that names the writing process; not a blob.
pub(crate) const OWNER: &str = "owner";
/// File in the data directory that names the process using it.
const OWN_FILE: &str = "cache/owner";
/// Time between two renewals.
const RENEWAL: Duration = Duration::from_secs(5);
/// Time without a renewal after which a process is considered gone.
const GONE: Duration = Duration::from_secs(15);
/// Time after the start of a renewal during which no other process can have taken the lease.
const SURE: Duration = Duration::from_secs(10);
/// Delay before a failed renewal is retried.
const AGAIN: Duration = Duration::from_secs(1);
/// Duration of a renewal after which the store is considered unresponsive.
const SLOW: Duration = Duration::from_secs(2);
/// Interval at which another process's name is polled.
const LOOK: Duration = Duration::from_secs(1);

/// The exclusive right to write to a prefix. Renewed in the background until dropped.
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

/// A moment on two clocks: the monotonic one stops while the machine is suspended, the wall clock
/// may be set back.
#[derive(Debug, Clone, Copy)]
struct Moment {
    instant: Instant,
    time: Timestamp,
}

impl Moment {
    fn now(bucket: &Bucket) -> Self {
        Self { instant: Instant::now(), time: bucket.now() }
    }

    /// Time since an earlier moment, by the clock that advanced further.
    fn since(self, earlier: Self) -> Duration {
        let by_time = Duration::from_millis(self.time.0.saturating_sub(earlier.time.0));
        self.instant.duration_since(earlier.instant).max(by_time)
    }
}

/// State of the renewals.
#[derive(Debug)]
struct Renewals {
    /// Start of the last successful renewal.
    renewed: Moment,
    /// Start of the renewal in progress.
    begun: Option<Instant>,
    /// End of a renewal so late that another process may have held the lease in between.
    doubtful: Option<Instant>,
    /// Whether the last renewal found the name of another process.
    is_lost: bool,
    /// Whether the store failed at the last renewal.
    has_failed: bool,
    is_over: bool,
}

/// State of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// No other process can have taken the lease.
    Held,
    /// The store does not answer, or the last renewal was so late that another process may have
    /// taken the lease.
    Unknown,
    /// Another process holds the lease, or this one was suspended for so long that one may.
    Lost,
}

/// A view of a lease, for components whose answers depend on it.
#[derive(Debug, Clone)]
pub struct LeaseView(Arc<Shared>);

impl LeaseView {
    /// The state of the lease as far as this process knows; sends no request.
    pub fn state(&self) -> LeaseState {
        self.0.renewals.lock().state(Moment::now(&self.0.bucket))
    }

    /// Reports that a check which started at `begun` found no sign of another process writing.
    pub fn confirm(&self, begun: Instant) {
        self.0.renewals.lock().confirm(begun);
    }
}

impl Renewals {
    fn since(renewed: Moment) -> Self {
        let (begun, doubtful, is_lost, has_failed, is_over) = Default::default();
        Self { renewed, begun, doubtful, is_lost, has_failed, is_over }
    }

    fn state(&self, now: Moment) -> LeaseState {
        let is_slow = self.begun.is_some_and(|begun| now.instant.duration_since(begun) > SLOW);
        match now.since(self.renewed) < SURE {
            _ if self.is_lost => LeaseState::Lost,
            true if self.doubtful.is_none() => LeaseState::Held,
            false if !self.has_failed && !is_slow => LeaseState::Lost,
            _ => LeaseState::Unknown,
        }
    }

    /// Records the end of a renewal that found or wrote the name of this process.
    fn succeed(&mut self, begun: Moment, now: Moment) {
        // The renewal may have overwritten the name of a successor.
        if self.is_lost || now.since(self.renewed) >= SURE {
            self.doubtful = Some(now.instant);
        }
        (self.renewed, self.is_lost) = (begun, false);
    }

    fn confirm(&mut self, begun: Instant) {
        self.doubtful = self.doubtful.filter(|since| begun <= *since);
    }
}

/// The holder of the lease as seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    /// No process.
    Nobody,
    /// An earlier process with the same data directory. It is gone, because this one holds that.
    Own,
    /// Another process, alive or not: its name and renewal count.
    Other(Vec<u8>),
}

/// Observes the holder over time, to tell whether it is alive.
#[derive(Debug, Default)]
struct Watched {
    last: Option<Holder>,
    /// Time during which the holder has not renewed its name.
    unchanged: Duration,
}

impl Watched {
    /// Records an observation made [`LOOK`] after the previous one; returns whether the lease may
    /// be claimed.
    fn note(&mut self, holder: Holder) -> bool {
        let is_same = self.last.as_ref() == Some(&holder);
        self.unchanged = if is_same { self.unchanged + LOOK } else { Duration::ZERO };
        let is_gone = !matches!(holder, Holder::Other(_)) || self.unchanged >= GONE;
        self.last = Some(holder);
        is_gone
    }
}

fn in_use(bucket: &Bucket, holder: &[u8]) -> SharedStoreError {
    SharedStoreError::InUse {
        place: bucket.url().to_string(),
        holder: String::from_utf8_lossy(holder).into_owned(),
    }
}

impl OwnerLease {
    /// Takes the lease once its last holder is gone: the holder released it, or it used this data
    /// directory, which no other process can be using now, or it has not renewed its name for 15
    /// seconds. Blocks for that time if necessary. `name` must be unique to this process.
    ///
    /// # Errors
    /// [`SharedStoreError::InUse`] if the holder renews its name; errors of the bucket.
    pub fn take(bucket: &Arc<Bucket>, data: &Path, name: String) -> Result<Self, SharedStoreError> {
        let shared = Arc::new(Shared::new(bucket, data, name));
        let mut watched = Watched::default();
        loop {
            let holder = shared.look()?;
            match (&watched.last, &holder) {
                (None, Holder::Other(other)) => {
                    let (place, holder) = (bucket.url(), String::from_utf8_lossy(other));
                    tracing::warn!(%place, %holder, "another process wrote here last: checking \
                        whether it still runs");
                }
                (Some(last), Holder::Other(other)) if *last != holder => {
                    return Err(in_use(bucket, other));
                }
                _ => {}
            }
            if watched.note(holder.clone()) {
                match shared.claim(&holder)? {
                    true => break,
                    false => {
                        return Err(in_use(bucket, &bucket.get(OWNER)?.unwrap_or_default()));
                    }
                }
            }
            if bucket.pause(LOOK) {
                return Err(BucketError::Stopped.into());
            }
        }
        let own = Arc::clone(&shared);
        let renewal = std::thread::Builder::new().name("store-owner".to_owned());
        let renewal = renewal.spawn(move || own.keep()).ok();
        Ok(Self { shared, renewal })
    }

    /// Returns a view of the lease.
    pub fn view(&self) -> LeaseView {
        LeaseView(Arc::clone(&self.shared))
    }

    /// Waits, without a time limit, until the writing process is gone in the sense of
    /// [`OwnerLease::take`], and claims the lease; `take` with the same data directory then
    /// succeeds at once. If several processes wait, one gets the lease. Time during which the store
    /// does not answer does not count. Returns false if the bucket's pauses were ended first.
    pub fn await_lease(bucket: &Arc<Bucket>, data: &Path, name: String) -> bool {
        let (shared, mut watched) = (Shared::new(bucket, data, name), Watched::default());
        let mut is_away = false;
        loop {
            let claimed = shared
                .look()
                .and_then(|holder| Ok(watched.note(holder.clone()) && shared.claim(&holder)?));
            match claimed {
                Ok(true) => return true,
                Ok(false) if is_away => {
                    tracing::info!("the bucket is reachable again: the lease is monitored");
                    is_away = false;
                }
                Ok(false) => {}
                Err(error) => {
                    if !is_away {
                        tracing::warn!(%error, "the lease can be neither read nor taken");
                    }
                    (watched, is_away) = (Watched::default(), true);
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
            tracing::warn!(%error, "releasing the lease failed: the next process waits for 15 \
                seconds");
        }
    }
}

impl Shared {
    fn new(bucket: &Arc<Bucket>, data: &Path, name: String) -> Self {
        let (bucket, own_file) = (Arc::clone(bucket), data.join(OWN_FILE));
        let renewals = Mutex::new(Renewals::since(Moment::now(&bucket)));
        let changed = Condvar::default();
        Self { bucket, own_file, name, renewals, changed }
    }

    fn look(&self) -> Result<Holder, BucketError> {
        let Some(held) = self.bucket.get(OWNER)? else { return Ok(Holder::Nobody) };
        let before = std::fs::read(&self.own_file).unwrap_or_default();
        Ok(match !before.is_empty() && held.starts_with(&before) {
            true => Holder::Own,
            false => Holder::Other(held),
        })
    }

    /// Replaces the holder that was `seen` by this process; returns false if another process was
    /// faster.
    fn claim(&self, seen: &Holder) -> Result<bool, BucketError> {
        if let Holder::Other(_) = seen {
            if self.look()? != *seen {
                return Ok(false);
            }
            self.bucket.remove(OWNER)?;
        }
        let condition = match seen {
            Holder::Own => Condition::None,
            Holder::Nobody | Holder::Other(_) => Condition::Absent,
        };
        self.renewals.lock().renewed = Moment::now(&self.bucket);
        // A retried request may be refused because its first attempt succeeded.
        let is_claimed = matches!(self.write(0, condition)?, Put::Done(_))
            || self.bucket.get(OWNER)?.is_some_and(|held| self.is_own(&held));
        if is_claimed {
            let folder = self.own_file.parent().map_or(Ok(()), std::fs::create_dir_all);
            let noted = folder.and_then(|()| std::fs::write(&self.own_file, &self.name));
            if let Err(error) = noted {
                // The next start then has to wait for 15 seconds.
                tracing::warn!(%error, "recording the name of this process failed");
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

    /// Removes the name, unless it is that of another process.
    fn remove(&self) -> Result<(), BucketError> {
        match self.bucket.get(OWNER)?.is_some_and(|held| self.is_own(&held)) {
            true => self.bucket.remove(OWNER),
            false => Ok(()),
        }
    }

    /// Renews the name; returns whether this process holds the lease. If another process has taken
    /// it (for instance while this one was suspended), its name is left alone, until that process
    /// is gone like any other and is replaced.
    fn renew(&self, renewals: u64, watched: &mut Watched) -> Result<bool, BucketError> {
        match self.bucket.get(OWNER)? {
            Some(held) if !self.is_own(&held) => {
                let holder = Holder::Other(held);
                Ok(watched.note(holder.clone()) && self.claim(&holder)?)
            }
            _ => self.write(renewals, Condition::None).map(|_| true),
        }
    }

    /// Renews the name until the lease is dropped.
    fn keep(&self) {
        let (mut count, mut watched) = (0, Watched::default());
        let mut state = self.renewals.lock();
        while !state.is_over {
            // A successor is polled as often as waiting processes poll a holder.
            let time = match state.is_lost {
                true => LOOK,
                false if state.has_failed => AGAIN,
                false => RENEWAL,
            };
            self.changed.wait_for(&mut state, time);
            if state.is_over {
                break;
            }
            count += 1;
            let begun = Moment::now(&self.bucket);
            state.begun = Some(begun.instant);
            let renewed = MutexGuard::unlocked(&mut state, || self.renew(count, &mut watched));
            (state.begun, state.has_failed) = (None, renewed.is_err());
            match renewed {
                Ok(true) => {
                    watched = Watched::default();
                    state.succeed(begun, Moment::now(&self.bucket));
                }
                Ok(false) => state.is_lost = true,
                Err(error) => {
                    // Time during which the store does not answer does not count.
                    watched = Watched::default();
                    tracing::warn!(%error, "renewing the owner's lease failed");
                }
            }
        }
    }
}

#[allow(clippy::disallowed_methods)] // A store of the test's own.
#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use super::*;
    use lodestone_fetch::Authorities;
    use lodestone_fetch::bucket::BucketOptions;
    use lodestone_types::SystemClock;

    fn start() -> Moment {
        Moment { instant: Instant::now(), time: Timestamp(1_750_000_000_000) }
    }

    fn after(moment: Moment, seconds: u64) -> Moment {
        let instant = moment.instant + Duration::from_secs(seconds);
        Moment { instant, time: moment.time.plus_millis(seconds * 1000) }
    }

    /// Goal: after a suspension the lease counts as lost, even if one of the clocks stood still;
    /// setting back the wall clock does not prolong it.
    #[test]
    fn a_lease_ends_by_either_clock() {
        let renewed = start();
        let (renewals, later) = (Renewals::since(renewed), after(renewed, 20));
        for now in [Moment { time: later.time, ..renewed }, Moment { time: Timestamp(0), ..later }]
        {
            assert_eq!(renewals.state(now), LeaseState::Lost);
        }
        let mut renewals = renewals;
        let woken = Moment { time: later.time, ..renewed };
        renewals.succeed(woken, woken);
        assert_eq!(renewals.state(woken), LeaseState::Unknown, "it may have a successor");
    }

    /// Goal: a lease renewed recently is held; one whose process was suspended is lost until it is
    /// renewed; if the store fails, its state is unknown.
    #[test]
    fn a_lease_is_held_for_less_long_than_others_wait() {
        let renewed = start();
        let fresh = || Renewals::since(renewed);
        assert!(SURE + RENEWAL <= GONE, "a renewal may fail before others may try");
        let state = |renewals: Renewals, seconds| renewals.state(after(renewed, seconds));
        assert_eq!(state(fresh(), 9), LeaseState::Held);
        assert_eq!(state(fresh(), 20), LeaseState::Lost, "it slept");
        let trying = |at| Renewals { begun: Some(after(renewed, at).instant), ..fresh() };
        assert_eq!(state(trying(5), 6), LeaseState::Held);
        assert_eq!(state(trying(19), 20), LeaseState::Lost, "it woke up, and asks");
        assert_eq!(state(trying(5), 12), LeaseState::Unknown, "the store is slow");
        let failing = || Renewals { has_failed: true, ..fresh() };
        assert_eq!(state(failing(), 9), LeaseState::Held);
        assert_eq!(state(failing(), 12), LeaseState::Unknown);
        assert_eq!(state(Renewals { is_lost: true, ..failing() }, 1), LeaseState::Lost);
    }

    /// Goal: a renewal that succeeds after others may have taken the lease counts only once a later
    /// check finds that no other process writes.
    #[test]
    fn a_late_renewal_is_confirmed_before_it_counts() {
        let renewed = start();
        let mut renewals = Renewals::since(renewed);
        renewals.succeed(after(renewed, 5), after(renewed, 6));
        assert_eq!(renewals.state(after(renewed, 7)), LeaseState::Held);
        renewals.succeed(after(renewed, 10), after(renewed, 30));
        renewals.succeed(after(renewed, 35), after(renewed, 36));
        assert_eq!(renewals.state(after(renewed, 37)), LeaseState::Unknown);
        renewals.confirm(after(renewed, 35).instant);
        assert_eq!(renewals.state(after(renewed, 37)), LeaseState::Unknown, "it was looked before");
        renewals.confirm(after(renewed, 37).instant);
        assert_eq!(renewals.state(after(renewed, 38)), LeaseState::Held);
        renewals.is_lost = true;
        renewals.succeed(after(renewed, 39), after(renewed, 40));
        assert_eq!(renewals.state(after(renewed, 40)), LeaseState::Unknown, "another one had it");
    }

    /// Starts a store that holds a single object; returns its address.
    fn store_of_one(object: Arc<Mutex<Option<Vec<u8>>>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let (mut head, mut length) = (Vec::new(), 0);
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
                        length = bytes.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                    head.push(line);
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let Some(first) = head.first() else { continue };
                let mut held = object.lock();
                let (status, answer) = match first.split(' ').next().unwrap() {
                    "GET" => held.clone().map_or((404, Vec::new()), |held| (200, held)),
                    "DELETE" => (204, held.take().map(|_| Vec::new()).unwrap_or_default()),
                    _ => (200, held.replace(body).map(|_| Vec::new()).unwrap_or_default()),
                };
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    answer.len()
                );
                let stream = stream.get_mut();
                stream.write_all(&[head.into_bytes(), answer].concat()).unwrap();
            }
        });
        address
    }

    /// Goal: if the successor of a process ends before it writes anything, the process takes the
    /// lease back once the successor has not renewed its name for as long as others would wait.
    #[test]
    fn a_successor_that_is_gone_is_replaced() {
        let object = Arc::new(Mutex::new(Some(b"another 7".to_vec())));
        let endpoint = store_of_one(Arc::clone(&object));
        let variable = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("x".to_owned()),
            "AWS_ENDPOINT_URL_S3" => Some(endpoint.clone()),
            _ => None,
        };
        let (url, options) = ("s3://bucket/prefix".parse().unwrap(), BucketOptions::default());
        let (authorities, clock) = (Authorities::default(), Arc::new(SystemClock));
        let pause = Box::new(|_| false);
        let bucket =
            Bucket::with_variables(&variable, url, &options, &authorities, clock, pause).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let shared = Shared::new(&Arc::new(bucket), folder.path(), "own".to_owned());
        let mut watched = Watched::default();
        for look in 0..15 {
            assert!(!shared.renew(look, &mut watched).unwrap(), "look {look}");
        }
        *object.lock() = Some(b"another 8".to_vec());
        for look in 0..15 {
            assert!(!shared.renew(look, &mut watched).unwrap(), "it lives: look {look}");
        }
        assert!(shared.renew(15, &mut watched).unwrap());
        assert_eq!(object.lock().as_deref(), Some(&b"own 0"[..]));
    }
}
