//! Supplies credentials: fixed ones, or those of a role, which are renewed as long as requests need
//! them.
//!
//! ```text
//! request -> valid                  -> signed
//!         -> expire within minutes  -> signed with them, while a thread renews them
//!         -> none, or expired       -> one request fetches new ones, others wait for its result
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ureq::Agent;

use super::credentials::{self, Credentials, ExpiringCredentials};
use super::roles::{Role, Source};
use super::{BucketError, Pause};
use crate::Authorities;
use lodestone_types::Clock;

/// Delay after a failed renewal.
const RETRY_MILLIS: u64 = 60_000;
/// Time for which a failure is returned to all requests while there are no credentials.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
/// Attempts to get a role's credentials at the start, and the pause between them.
const START_TRIES: usize = 3;
const START_PAUSE: Duration = Duration::from_millis(1500);

/// Creates the provider for a source; `advice` is added to the error if there are no credentials. A
/// role is tried a few times, because its service may be starting at the same time as this process.
pub(super) fn provider(
    source: Source,
    advice: &str,
    authorities: &Authorities,
    clock: &Arc<dyn Clock>,
    pause: &Pause,
) -> Result<CredentialProvider, BucketError> {
    let role = match source {
        Source::Fixed(credentials) => return Ok(CredentialProvider::Static(credentials)),
        Source::Role(role) => role,
    };
    let tries = if role.is_named() { START_TRIES } else { 1 };
    let credentials = RoleCredentials::new(role, authorities, Arc::clone(clock));
    let provider = CredentialProvider::Role(Arc::new(credentials));
    for left in (0..tries).rev() {
        match provider.current() {
            Ok(_) => return Ok(provider),
            Err(problem) if left == 0 => return Err(credentials::missing(advice, &problem)),
            Err(problem) => tracing::warn!(problem, "waiting for the role's credentials"),
        }
        if pause(START_PAUSE) {
            return Err(BucketError::Stopped);
        }
    }
    unreachable!("the last try returns")
}

/// The last result from a role's service.
#[derive(Default)]
struct Cache {
    credentials: Option<ExpiringCredentials>,
    /// Time and text of the last failure, while there are no credentials.
    failure: Option<(Instant, String)>,
}

/// Supplies credentials.
pub(super) enum CredentialProvider {
    /// Fixed credentials, from environment variables or a profile.
    Static(Credentials),
    /// Temporary credentials of a role, renewed regularly.
    Role(Arc<RoleCredentials>),
}

impl CredentialProvider {
    /// Returns valid credentials. Waits for a service only if there are none.
    ///
    /// # Errors
    /// The role, and the reason why it has no credentials.
    pub(super) fn current(&self) -> Result<Credentials, String> {
        match self {
            Self::Static(credentials) => Ok(credentials.clone()),
            Self::Role(role) => role.current(),
        }
    }

    /// Discards credentials that the store refused; returns whether there may be newer ones.
    pub(super) fn discard(&self, refused: &Credentials) -> bool {
        let Self::Role(role) = self else { return false };
        let cached = &mut role.cache.lock().credentials;
        if cached.as_ref().is_some_and(|one| one.credentials == *refused) {
            *cached = None;
        }
        true
    }
}

/// Credentials of a role, renewed as long as requests need them.
pub(super) struct RoleCredentials {
    role: Role,
    agent: Agent,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
    /// Held by the request that waits for the service while there are no valid credentials.
    fetching: Mutex<()>,
    /// Whether a thread is renewing them.
    is_renewing: AtomicBool,
}

/// Clears `is_renewing` when the thread ends, even by a panic.
struct RenewalGuard(Arc<RoleCredentials>);

impl Drop for RenewalGuard {
    fn drop(&mut self) {
        self.0.is_renewing.store(false, Ordering::SeqCst);
    }
}

impl RoleCredentials {
    pub(super) fn new(role: Role, authorities: &Authorities, clock: Arc<dyn Clock>) -> Self {
        let agent = role.client(authorities);
        let (cache, fetching, is_renewing) = Default::default();
        Self { role, agent, clock, cache, fetching, is_renewing }
    }

    fn current(self: &Arc<Self>) -> Result<Credentials, String> {
        let now = self.clock.now();
        let cached = self.cache.lock().credentials.clone();
        match cached {
            Some(cached) if now < cached.renew_at => Ok(cached.credentials),
            // Requests do not wait while the old ones are valid.
            Some(cached) if now < cached.expires => {
                self.renew_in_background();
                Ok(cached.credentials)
            }
            _ => self.fetch_once(),
        }
    }

    fn renew_in_background(self: &Arc<Self>) {
        if self.is_renewing.swap(true, Ordering::SeqCst) {
            return;
        }
        let guard = RenewalGuard(Arc::clone(self));
        let spawned = thread::Builder::new().name("store-keys".to_owned()).spawn(move || {
            // A failure is logged, and a later request tries again.
            drop(guard.0.fetch());
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "starting a thread to renew the bucket's credentials failed");
        }
    }

    /// Fetches credentials, or returns the result that another request got meanwhile.
    fn fetch_once(&self) -> Result<Credentials, String> {
        let _fetching = self.fetching.lock();
        {
            let cache = self.cache.lock();
            if let Some((at, problem)) = &cache.failure
                && at.elapsed() < FAILURE_KEPT
            {
                return Err(problem.clone());
            }
            let now = self.clock.now();
            if let Some(cached) = cache.credentials.as_ref().filter(|one| now < one.renew_at) {
                return Ok(cached.credentials.clone());
            }
        }
        self.fetch()
    }

    fn fetch(&self) -> Result<Credentials, String> {
        let is_machine = matches!(self.role, Role::Machine { .. });
        let answer = self.role.fetch(&self.agent, &*self.clock);
        let now = self.clock.now();
        let mut cache = self.cache.lock();
        let problem = match answer {
            Ok(fresh) => {
                let credentials = fresh.credentials.clone();
                *cache = Cache { credentials: Some(fresh), failure: None };
                return Ok(credentials);
            }
            Err(problem) => format!("{}: {problem}", self.role),
        };
        // AWS accepts a machine's credentials past their expiry while its service is down.
        match cache.credentials.as_mut().filter(|one| is_machine || now < one.expires) {
            Some(cached) => {
                tracing::warn!(problem, "renewing the bucket's credentials failed");
                cached.renew_at = now.plus_millis(RETRY_MILLIS);
                if !is_machine {
                    cached.renew_at = cached.renew_at.min(cached.expires);
                }
                Ok(cached.credentials.clone())
            }
            None => {
                let failure = Some((Instant::now(), problem.clone()));
                *cache = Cache { credentials: None, failure };
                Err(problem)
            }
        }
    }
}

#[cfg(test)]
mod tests;
