//! Credentials: keys and tokens, permanent or temporary.

use std::fmt;

use super::BucketError;
use lodestone_types::Timestamp;

/// Credentials are renewed this long before they expire, or at half of their remaining lifetime.
pub(super) const AHEAD_MILLIS: u64 = 5 * 60_000;

/// Looks up an environment variable; `None` if unset or empty.
pub(super) type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The right to use a bucket. Secrets are never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A key whose secret signs requests.
    Key(Key),
    /// An OAuth 2.0 token, sent in a header.
    Bearer(String),
    /// A shared access signature of Azure, sent in the query.
    SharedAccess(String),
}

/// A key that signs requests.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub id: String,
    pub secret: String,
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.debug_struct("Key").field("id", &key.id).finish_non_exhaustive(),
            Self::Bearer(_) => f.debug_struct("Bearer").finish_non_exhaustive(),
            Self::SharedAccess(_) => f.debug_struct("SharedAccess").finish_non_exhaustive(),
        }
    }
}

/// Credentials that expire.
#[derive(Debug, Clone)]
pub(super) struct ExpiringCredentials {
    pub(super) credentials: Credentials,
    pub(super) expires: Timestamp,
    /// The time from which they are renewed.
    pub(super) renew_at: Timestamp,
}

impl ExpiringCredentials {
    /// Credentials that are renewed some time before `expires`.
    pub(super) fn until(credentials: Credentials, expires: Timestamp, now: Timestamp) -> Self {
        let left = expires.0.saturating_sub(now.0);
        let renew_at = Timestamp(expires.0 - AHEAD_MILLIS.min(left / 2));
        Self { credentials, expires, renew_at }
    }
}

/// A key whose two halves are variables; `None` if neither is set.
///
/// # Errors
/// [`BucketError::Credentials`] if only one is set.
pub(super) fn key_of(variable: Variable<'_>, pair: [&str; 2]) -> Result<Option<Key>, BucketError> {
    check_pair(pair, variable)?;
    let key = |id, secret| Key { id, secret, session_token: None };
    Ok(variable(pair[0]).zip(variable(pair[1])).map(|(id, secret)| key(id, secret)))
}

/// Checks that both values of a pair are set, or neither.
pub(super) fn check_pair(pair: [&str; 2], get: Variable<'_>) -> Result<(), BucketError> {
    let (has, lacks) = match pair.map(|key| get(key).is_some()) {
        [true, false] => (pair[0], pair[1]),
        [false, true] => (pair[1], pair[0]),
        _ => return Ok(()),
    };
    Err(BucketError::Credentials { problem: format!("{has} is set, but {lacks} is not") })
}

/// The error for missing credentials; `advice` says how to set them.
pub(super) fn missing(advice: &str, problem: &str) -> BucketError {
    let problem = format!("no credentials for the bucket: {advice}: {problem}");
    BucketError::Credentials { problem }
}
