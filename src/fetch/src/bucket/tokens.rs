//! Services that give machines tokens of OAuth 2.0 for their store.
//!
//! Source: Google Compute Engine, <https://cloud.google.com/compute/docs/metadata/overview>.

use serde::Deserialize;
use serde_json::Value;
use ureq::Agent;

use super::credentials::Credentials;
use super::roles::{self, ExpiringCredentials};
use lodestone_types::Clock;

/// A service of tokens.
#[derive(Debug)]
pub(super) struct TokenService {
    /// Owner of the tokens, for people.
    pub name: &'static str,
    /// Address of a token.
    pub address: String,
    /// The header without which the service refuses: a page of a browser cannot send it.
    pub header: (&'static str, &'static str),
    /// Whether it is another machine, which the environment names.
    pub is_far: bool,
}

/// Answer of a service.
#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    /// Seconds, as a number or in quotes.
    expires_in: Value,
}

impl TokenService {
    /// Asks for a token.
    ///
    /// # Errors
    /// The request, and what came of it.
    pub(super) fn token(
        &self,
        agent: &Agent,
        clock: &dyn Clock,
    ) -> Result<ExpiringCredentials, String> {
        let text = roles::answer(agent, "GET", &self.address, self.header, None)?;
        let now = clock.now();
        let without_token = || "an answer without a token".to_owned();
        let reply: TokenReply = serde_json::from_str(&text).map_err(|_| without_token())?;
        let seconds = match &reply.expires_in {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        let seconds = seconds.filter(|seconds| *seconds > 0 && !reply.access_token.is_empty());
        let expires = now.plus_millis(seconds.ok_or_else(without_token)?.saturating_mul(1000));
        Ok(ExpiringCredentials::until(Credentials::Bearer(reply.access_token), expires, now))
    }
}
