//! Authentication: the bearer token of a request, and the trait that checks keys.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::Semaphore;

use crate::error::{ApiError, Condition};
use crate::routes::off_thread;
use lodestone_types::{Grant, Role};

/// Longest token in bytes; longer ones are rejected unread.
const TOKEN_BYTES_MAX: usize = 4096;

/// The reason why a token grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailure {
    /// The key is unknown, malformed or revoked; the caller cannot tell which.
    Invalid,
    /// The key has expired.
    Expired,
    /// The keys cannot be read at the moment.
    Unavailable,
    /// This process follows the writer and has not yet seen the newest keys.
    Behind,
}

/// Verifies API keys. Called on every request before anything of it is read, so an implementation
/// should answer from memory wherever it can, in time that does not depend on how much of a key is
/// correct.
pub trait Authenticator: Send + Sync {
    /// Whether [`Self::authenticate`] can answer for the token from memory; otherwise it may block.
    fn is_at_hand(&self, token: &str) -> bool;

    /// Returns the rights that the key grants.
    ///
    /// # Errors
    /// [`AuthFailure`] gives the reason why the key grants nothing.
    fn authenticate(&self, token: &str) -> Result<Grant, AuthFailure>;
}

/// Authenticates a request. A key that is not cached is looked up on a blocking thread after a
/// permit of `lookups` is acquired, so that requests with made-up keys cannot occupy more threads
/// than that.
///
/// # Errors
/// 401 for a missing, malformed, unknown, expired or revoked key; 503 while keys cannot be read.
pub async fn authenticate(
    keys: &Arc<dyn Authenticator>,
    lookups: &Arc<Semaphore>,
    headers: &HeaderMap,
) -> Result<Grant, ApiError> {
    let token = bearer_token(headers)?;
    let granted = if keys.is_at_hand(token) {
        keys.authenticate(token)
    } else {
        let place = Arc::clone(lookups).acquire_owned().await;
        let place = place.expect("the places are never closed");
        let (keys, token) = (Arc::clone(keys), token.to_owned());
        off_thread(move || {
            // Held until the look-up has finished, even if the client has disconnected.
            let _place = place;
            Ok(keys.authenticate(&token))
        })
        .await?
    };
    granted.map_err(ApiError::from)
}

impl From<AuthFailure> for ApiError {
    fn from(failure: AuthFailure) -> Self {
        match failure {
            AuthFailure::Invalid => invalid_key(),
            AuthFailure::Expired => unauthorized("expired_api_key", "the API key has expired"),
            AuthFailure::Behind => ApiError::at_writer(),
            AuthFailure::Unavailable => {
                let message = "API keys cannot be checked at the moment; try again";
                ApiError::new(Condition::Unavailable, "storage_unavailable", message)
            }
        }
    }
}

/// Requires the grant's role to include `role`.
///
/// # Errors
/// 403 `insufficient_role` otherwise.
pub fn require_role(grant: &Grant, role: Role) -> Result<(), ApiError> {
    if grant.role >= role {
        return Ok(());
    }
    let message = format!(
        "this operation needs the role {}; the key has the role {}",
        role.as_str(),
        grant.role.as_str()
    );
    Err(ApiError::new(Condition::Forbidden, "insufficient_role", message))
}

fn unauthorized(reason: &'static str, message: &str) -> ApiError {
    ApiError::new(Condition::Unauthorized, reason, message)
}

/// The 401 for a key that grants nothing.
pub(crate) fn invalid_key() -> ApiError {
    unauthorized("invalid_api_key", "the API key is not valid")
}

/// Returns the token of the single `Authorization: Bearer <token>` header.
///
/// # Errors
/// 401 if there is none.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let missing =
        || unauthorized("missing_api_key", "send the API key as 'Authorization: Bearer <key>'");
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or_else(missing)?;
    // With two headers it is unclear which one a proxy in front has checked.
    if values.next().is_some() || value.len() > TOKEN_BYTES_MAX {
        return Err(invalid_key());
    }
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| invalid_key())?;
    let (scheme, token) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(invalid_key());
    }
    match token.trim() {
        "" => Err(missing()),
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use lodestone_types::KeyScope;
    use parking_lot::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::Receiver;
    use std::time::Duration;

    fn reason_or_token(values: &[&[u8]]) -> String {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        match bearer_token(&headers) {
            Ok(token) => token.to_owned(),
            Err(error) => error.reason().to_owned(),
        }
    }

    #[test]
    fn one_bearer_header_carries_the_token() {
        assert_eq!(reason_or_token(&[b"Bearer abc"]), "abc");
        assert_eq!(reason_or_token(&[b"bEARER   abc  "]), "abc");
        assert_eq!(reason_or_token(&[]), "missing_api_key");
        assert_eq!(reason_or_token(&[b"Bearer"]), "missing_api_key");
        assert_eq!(reason_or_token(&[b"Bearer  "]), "missing_api_key");
        assert_eq!(reason_or_token(&[b"Basic abc"]), "invalid_api_key");
        assert_eq!(reason_or_token(&[b"abc"]), "invalid_api_key");
        assert_eq!(reason_or_token(&[b"Bearer a", b"Bearer a"]), "invalid_api_key");
        assert_eq!(reason_or_token(&[b"Bearer \xff"]), "invalid_api_key");
        let longest = format!("Bearer {}", "a".repeat(TOKEN_BYTES_MAX - 7));
        assert_eq!(reason_or_token(&[longest.as_bytes()]), longest[7..]);
        assert_eq!(reason_or_token(&[format!("{longest}a").as_bytes()]), "invalid_api_key");
    }

    /// Answers for `known` from memory, and blocks on other keys until it is told to go on.
    struct Slow {
        begun: AtomicUsize,
        go_on: Mutex<Receiver<()>>,
    }

    impl Authenticator for Slow {
        fn is_at_hand(&self, token: &str) -> bool {
            token == "known"
        }

        fn authenticate(&self, token: &str) -> Result<Grant, AuthFailure> {
            if self.is_at_hand(token) {
                return Ok(Grant::new("key", Role::Read, KeyScope::AllTenants));
            }
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.go_on.lock().recv_timeout(Duration::from_secs(60)).unwrap();
            Err(AuthFailure::Invalid)
        }
    }

    fn bearer(token: &str) -> HeaderMap {
        let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
        HeaderMap::from_iter([(AUTHORIZATION, value)])
    }

    /// Goal: look-ups of unknown keys block neither async threads nor requests with known keys.
    #[tokio::test]
    async fn unknown_keys_wait_for_each_other_and_known_ones_do_not() {
        let (tell, go_on) = std::sync::mpsc::channel();
        let slow = Slow { begun: AtomicUsize::new(0), go_on: Mutex::new(go_on) };
        let slow = Arc::new(slow);
        let keys: Arc<dyn Authenticator> = Arc::clone(&slow) as _;
        let lookups = Arc::new(Semaphore::new(1));
        let strangers = [1, 2, 3].map(|number| {
            let (keys, lookups) = (Arc::clone(&keys), Arc::clone(&lookups));
            tokio::spawn(async move {
                authenticate(&keys, &lookups, &bearer(&format!("stranger-{number}"))).await
            })
        });
        while slow.begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        assert!(authenticate(&keys, &lookups, &bearer("known")).await.is_ok());
        assert_eq!(lookups.available_permits(), 0);
        assert_eq!(slow.begun.load(Ordering::SeqCst), 1, "the others have no thread yet");
        for _ in 0..3 {
            tell.send(()).unwrap();
        }
        for stranger in strangers {
            assert_eq!(stranger.await.unwrap().unwrap_err().reason(), "invalid_api_key");
        }
    }

    #[test]
    fn a_role_includes_itself_and_those_below() {
        let grant = Grant::new("key", Role::Write, KeyScope::AllTenants);
        let outcome = |role| require_role(&grant, role).map_err(|error| error.reason());
        assert_eq!(outcome(Role::Read), Ok(()));
        assert_eq!(outcome(Role::Write), Ok(()));
        assert_eq!(outcome(Role::Admin), Err("insufficient_role"));
    }
}
