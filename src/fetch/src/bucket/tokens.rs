//! Services that give machines tokens of OAuth 2.0 for their store.
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

/// A service of tokens.
#[derive(Debug)]
pub(super) struct TokenService {
    /// Owner of the tokens, for people.
    pub name: &'static str,
    /// Address of a token.
    pub address: String,
    /// The header without which the service refuses: a page of a browser cannot send it.
    pub header: (&'static str, &'static str),
    /// The form of a service that is another machine, and that the environment names.
    pub form: Option<Form>,
}

/// A form that is sent for a token.
#[derive(Debug)]
pub(super) struct Form {
    pub fields: Vec<(&'static str, String)>,
    /// The field for what a file holds, which others renew.
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
