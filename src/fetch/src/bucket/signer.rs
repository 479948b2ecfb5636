//! The credentials that requests are signed with: those that were found, or those of a role, which
//! are renewed while requests need them.
//!
//! ```text
//! request -> credentials hold          -> signed
//!         -> they end within minutes   -> signed with them, and a thread asks for others
//!         -> there are none            -> one request asks, others meanwhile get its answer
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::Agent;

use super::credentials::{Credentials, Profile, Source};
use super::roles::{Given, Role};
use super::{BucketError, Pause};
use crate::Authorities;
use lodestone_types::Clock;

/// Time until the next question where credentials hold and no others could be had.
const AGAIN_MILLIS: u64 = 60_000;
/// Time for which a failure is the answer to all who ask, where there are no credentials.
const FAILED: Duration = Duration::from_secs(1);
/// Questions for the credentials of a role at the start, and the time between two.
const ROLE_TRIES: usize = 3;
const ROLE_PAUSE: Duration = Duration::from_millis(1500);

/// The credentials that the environment gives. A role that it names is asked a few times: its
/// service may start at the same time as this process.
pub(super) fn signer(
    profile: &Profile<'_>,
    region: &str,
    authorities: &Authorities,
    clock: &Arc<dyn Clock>,
    pause: &Pause,
) -> Result<Signer, BucketError> {
    let role = match profile.source(region)? {
        Source::Fixed(credentials) => return Ok(Signer::Fixed(credentials)),
        Source::Role(role) => role,
    };
    let tries = if role.is_named() { ROLE_TRIES } else { 1 };
    let signer = Signer::Renewed(Arc::new(Renewed::new(role, authorities, Arc::clone(clock))));
    for left in (0..tries).rev() {
        match signer.current() {
            Ok(_) => return Ok(signer),
            Err(problem) if left == 0 => return Err(profile.missing(&problem)),
            Err(problem) => tracing::warn!(problem, "the role gives no credentials yet"),
        }
        if pause(ROLE_PAUSE) {
            return Err(BucketError::Stopped);
        }
    }
    unreachable!("the last try returns")
}

/// All that is known of a role's credentials.
#[derive(Default)]
struct Known {
    given: Option<Given>,
    /// The last failure and its time, while there are no credentials.
    failed: Option<(Instant, String)>,
}

/// The credentials of requests: those that were found, or those of a role.
pub(super) enum Signer {
    /// They stay.
    Fixed(Credentials),
    /// They are renewed.
    Renewed(Arc<Renewed>),
}

impl Signer {
    /// Credentials that hold now. Waits for a service only where there are none.
    ///
    /// # Errors
    /// The role, and the reason for which it has none.
    pub(super) fn current(&self) -> Result<Credentials, String> {
        match self {
            Self::Fixed(credentials) => Ok(credentials.clone()),
            Self::Renewed(renewed) => renewed.current(),
        }
    }

    /// Gives up credentials that the store does not take any more; returns whether others may be
    /// had.
    pub(super) fn forget(&self, expired: &Credentials) -> bool {
        let Self::Renewed(renewed) = self else { return false };
        let mut known = renewed.known.lock();
        if known.given.as_ref().is_some_and(|given| given.credentials.key_id == expired.key_id) {
            known.given = None;
        }
        true
    }
}

/// Credentials of a role, renewed while requests need them.
pub(super) struct Renewed {
    role: Role,
    agent: Agent,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    /// Held by the one that asks the service where there are no credentials.
    asking: Mutex<()>,
    /// Whether a thread asks ahead of their end.
    is_renewing: AtomicBool,
}

/// A thread that renews the credentials; another one may when it ends, however it does.
struct Renewing(Arc<Renewed>);

impl Drop for Renewing {
    fn drop(&mut self) {
        self.0.is_renewing.store(false, Ordering::SeqCst);
    }
}

impl Renewed {
    pub(super) fn new(role: Role, authorities: &Authorities, clock: Arc<dyn Clock>) -> Self {
        let agent = role.client(authorities);
        let (known, asking, is_renewing) = Default::default();
        Self { role, agent, clock, known, asking, is_renewing }
    }

    fn current(self: &Arc<Self>) -> Result<Credentials, String> {
        let now = self.clock.now();
        let given = self.known.lock().given.clone();
        match given {
            Some(given) if now < given.renew => Ok(given.credentials),
            // Nobody waits for others while these hold.
            Some(given) if now < given.until => {
                self.renew_beside();
                Ok(given.credentials)
            }
            _ => self.asked(),
        }
    }

    fn renew_beside(self: &Arc<Self>) {
        if self.is_renewing.swap(true, Ordering::SeqCst) {
            return;
        }
        let renewing = Renewing(Arc::clone(self));
        let spawned = thread::Builder::new().name("store-keys".to_owned()).spawn(move || {
            // A failure is told in the log; the next request has another one asked.
            drop(renewing.0.ask());
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread to renew the store's credentials");
        }
    }

    /// Credentials from the service, or what the one has learned that asked meanwhile.
    fn asked(&self) -> Result<Credentials, String> {
        let _asking = self.asking.lock();
        {
            let known = self.known.lock();
            if let Some((at, problem)) = &known.failed
                && at.elapsed() < FAILED
            {
                return Err(problem.clone());
            }
            let now = self.clock.now();
            if let Some(given) = known.given.as_ref().filter(|given| now < given.renew) {
                return Ok(given.credentials.clone());
            }
        }
        self.ask()
    }

    fn ask(&self) -> Result<Credentials, String> {
        let is_machine = matches!(self.role, Role::Machine { .. });
        let keys = self.role.keys(&self.agent);
        let now = self.clock.now();
        let answer = keys.and_then(|keys| keys.given(now, is_machine));
        let mut known = self.known.lock();
        let problem = match answer {
            Ok(given) => {
                let credentials = given.credentials.clone();
                *known = Known { given: Some(given), failed: None };
                return Ok(credentials);
            }
            Err(problem) => format!("{}: {problem}", self.role),
        };
        // Those of a machine are taken by stores beyond their end while its service is down.
        match known.given.as_mut().filter(|given| is_machine || now < given.until) {
            Some(given) => {
                tracing::warn!(problem, "credentials are used on, because there are no others");
                given.renew = now.plus_millis(AGAIN_MILLIS);
                if !is_machine {
                    given.renew = given.renew.min(given.until);
                }
                Ok(given.credentials.clone())
            }
            None => {
                *known = Known { given: None, failed: Some((Instant::now(), problem.clone())) };
                Err(problem)
            }
        }
    }
}

#[cfg(test)]
mod tests;
