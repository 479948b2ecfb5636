//! Services that issue OAuth 2.0 tokens for a store.
//!
//! Sources: Google Compute Engine, <https://cloud.google.com/compute/docs/metadata/overview>;
//! managed identities of Azure, "How to use managed identities on an Azure VM to acquire an access
//! token"; Microsoft identity platform, "OAuth 2.0 client credentials flow", with a federated
//! credential.

use serde::Deserialize;
use serde_json::Value;
use ureq::Agent;

use super::credentials::{Credentials, ExpiringCredentials};
use super::request::Query;
use super::{service, sign};
use lodestone_types::Clock;

/// A token service.
#[derive(Debug)]
pub(super) struct TokenService {
    /// Owner of the tokens, for messages.
    pub name: &'static str,
    /// URL of the token.
    pub address: String,
    /// A header that the service requires because a page in a browser cannot send it.
    pub header: (&'static str, &'static str),
    /// The form to post, for a remote service set by the environment.
    pub form: Option<Form>,
}

/// A form that is posted for a token.
#[derive(Debug)]
pub(super) struct Form {
    pub fields: Vec<(&'static str, String)>,
    /// The field whose value is read from a file, which others keep up to date.
    pub file_field: &'static str,
    /// Path of that file.
    pub file: String,
}

impl Form {
    fn body(&self) -> Result<String, String> {
        let mut query: Query<'_> =
            self.fields.iter().map(|(name, value)| (*name, value.into())).collect();
        query.push((self.file_field, service::read(&self.file)?.into()));
        Ok(sign::query(&query))
    }
}

/// Response of a token service.
#[derive(Deserialize)]
struct TokenReply {
    access_token: String,
    /// Lifetime in seconds, as a number or a string.
    expires_in: Value,
}

impl TokenService {
    /// Requests a token.
    ///
    /// # Errors
    /// The request and its problem.
    pub(super) fn token(
        &self,
        agent: &Agent,
        clock: &dyn Clock,
    ) -> Result<ExpiringCredentials, String> {
        let body = self.form.as_ref().map(Form::body).transpose()?;
        let method = if body.is_some() { "POST" } else { "GET" };
        let text = service::answer(agent, method, &self.address, self.header, body)?;
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
