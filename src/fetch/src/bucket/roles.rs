//! Credentials of a role: they end after hours, and are asked for again before that.
//!
//! ```text
//! web identity   token of a file -> POST to the token service -> keys   accounts of EKS, OpenID
//! container      GET of the address in the environment -> keys          tasks of ECS, pods of EKS
//! machine        PUT for a token, GET role, GET its keys -> keys        machines of EC2
//! ```
//! Sources: AWS Security Token Service, `AssumeRoleWithWebIdentity`; AWS SDKs and tools, container
//! credential provider; Amazon EC2, instance metadata service version 2.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use ureq::http::{Request, Uri};
use ureq::{Agent, Proxy};

use super::answers::Problem;
use super::credentials::Credentials;
use super::sign;
use crate::Authorities;
use lodestone_types::{Clock, Timestamp};

/// Credentials are asked for so long before they end, or at half of the time that is left.
const AHEAD_MILLIS: u64 = 5 * 60_000;
/// Time until the next question where credentials still hold and no others could be had.
const AGAIN_MILLIS: u64 = 60_000;
/// Time for which a failure is the answer to all who ask, where there are no credentials.
const FAILED_MILLIS: u64 = 1000;
/// A service of the machine answers at once or not at all.
const CONNECT_NEAR: Duration = Duration::from_secs(1);
const ANSWER_NEAR: Duration = Duration::from_secs(5);
const ANSWER_FAR: Duration = Duration::from_secs(20);
const BODY_BYTES_MAX: u64 = 64 << 10;
/// Seconds for which a token of the machine's service is good: the most that it gives.
const MACHINE_TOKEN_SECONDS: &str = "21600";
const MACHINE_ROLES: &str = "/latest/meta-data/iam/security-credentials/";
/// Hosts that may be asked for a container's credentials without TLS.
const CONTAINER_HOSTS: [&str; 5] =
    ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost", "[::1]"];

/// A role, and the service that gives its credentials.
#[derive(Debug)]
pub(super) enum Role {
    /// That of a token in a file, which others renew.
    WebIdentity {
        /// Path of the token.
        token_file: String,
        /// Name of the role.
        arn: String,
        /// Name of this process, in the store's logs.
        session: String,
        /// Address of the token service.
        service: String,
    },
    /// That of the container.
    Container {
        /// Address of its credentials.
        address: String,
        /// Value of the header `authorization`.
        token: Option<String>,
        /// Path of that value, which others renew.
        token_file: Option<String>,
    },
    /// That of the machine.
    Machine {
        /// Address of the machine's metadata service.
        service: String,
    },
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebIdentity { arn, service, .. } => write!(f, "{arn} from {service}"),
            Self::Container { address, .. } => write!(f, "the container's role from {address}"),
            Self::Machine { service } => write!(f, "the machine's role from {service}"),
        }
    }
}

/// Credentials, and the time at which they end.
#[derive(Debug, Clone)]
struct Given {
    credentials: Credentials,
    until: Timestamp,
    /// The time from which others are asked for.
    renew: Timestamp,
}

/// Keys as the services write them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Keys {
    access_key_id: String,
    secret_access_key: String,
    #[serde(alias = "Token")]
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    assume_role_with_web_identity_result: AssumedResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumedResult {
    credentials: Keys,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorResponse {
    error: Problem,
}

/// What is known of a role's credentials.
#[derive(Default)]
struct Known {
    given: Option<Given>,
    /// The last failure, while there are no credentials.
    failed: Option<(Timestamp, String)>,
}

/// The credentials of requests: those that were found, or those of a role.
pub(super) enum Signer {
    /// They stay.
    Fixed(Credentials),
    /// They are renewed.
    Renewed(Box<Renewed>),
}

impl Signer {
    /// Credentials that hold now.
    ///
    /// # Errors
    /// The role, and the reason for which it has none.
    pub(super) fn current(&self) -> Result<Credentials, String> {
        match self {
            Self::Fixed(credentials) => Ok(credentials.clone()),
            Self::Renewed(renewed) => renewed.current(),
        }
    }

    /// Gives up credentials that the store calls expired; returns whether others may be had.
    pub(super) fn forget(&self, expired: &Credentials) -> bool {
        let Self::Renewed(renewed) = self else { return false };
        let mut known = renewed.known.lock();
        if known.given.as_ref().is_some_and(|given| given.credentials.key_id == expired.key_id) {
            known.given = None;
        }
        true
    }
}

/// Credentials of a role, renewed by the requests that need them.
pub(super) struct Renewed {
    role: Role,
    agent: Agent,
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    /// Held by the one that asks the service.
    asking: Mutex<()>,
}

impl Renewed {
    pub(super) fn new(role: Role, authorities: &Authorities, clock: Arc<dyn Clock>) -> Self {
        let is_far = matches!(role, Role::WebIdentity { .. });
        let agent = authorities
            .client(if is_far { Proxy::try_from_env() } else { None })
            .timeout_connect(Some(if is_far { ANSWER_NEAR } else { CONNECT_NEAR }))
            .timeout_global(Some(if is_far { ANSWER_FAR } else { ANSWER_NEAR }))
            .max_idle_connections(0)
            .build()
            .new_agent();
        Self { role, agent, clock, known: Mutex::default(), asking: Mutex::default() }
    }

    fn current(&self) -> Result<Credentials, String> {
        let now = self.clock.now();
        let given = self.known.lock().given.clone();
        if let Some(given) = given.as_ref().filter(|given| now < given.renew) {
            return Ok(given.credentials.clone());
        }
        // One asks; others go on with what still holds, or wait for the answer.
        let asking = match (self.asking.try_lock(), given) {
            (Some(asking), _) => asking,
            (None, Some(given)) if now < given.until => return Ok(given.credentials),
            (None, _) => self.asking.lock(),
        };
        let found = self.asked(self.clock.now());
        drop(asking);
        found
    }

    /// Credentials from the service, unless it was asked just now.
    fn asked(&self, now: Timestamp) -> Result<Credentials, String> {
        let mut given = None;
        {
            let known = self.known.lock();
            if let Some((at, problem)) = &known.failed
                && now < at.plus_millis(FAILED_MILLIS)
            {
                return Err(problem.clone());
            }
            given.clone_from(&known.given);
        }
        if let Some(given) = given.as_ref().filter(|given| now < given.renew) {
            return Ok(given.credentials.clone());
        }
        let answer = self.role.keys(&self.agent).and_then(|keys| keys.given(now));
        let answer = answer.map_err(|problem| format!("{}: {problem}", self.role));
        let mut known = self.known.lock();
        match (answer, given) {
            (Ok(given), _) => {
                let credentials = given.credentials.clone();
                *known = Known { given: Some(given), failed: None };
                Ok(credentials)
            }
            (Err(problem), Some(mut given)) if now < given.until => {
                tracing::warn!(problem, "credentials are used on, because there are no others");
                given.renew = now.plus_millis(AGAIN_MILLIS).min(given.until);
                let credentials = given.credentials.clone();
                known.given = Some(given);
                Ok(credentials)
            }
            (Err(problem), _) => {
                *known = Known { given: None, failed: Some((now, problem.clone())) };
                Err(problem)
            }
        }
    }
}

impl Keys {
    fn given(self, now: Timestamp) -> Result<Given, String> {
        let Self { access_key_id: key_id, secret_access_key: secret_key, session_token, .. } = self;
        let until = OffsetDateTime::parse(&self.expiration, &Rfc3339);
        let until = until.map_err(|_| format!("credentials end at {:?}", self.expiration))?;
        let until = u64::try_from(until.unix_timestamp()).unwrap_or(0) * 1000;
        let left = until.saturating_sub(now.0);
        if left == 0 {
            return Err(format!("credentials ended at {}", self.expiration));
        }
        let renew = Timestamp(until - AHEAD_MILLIS.min(left / 2));
        let credentials = Credentials { key_id, secret_key, session_token: Some(session_token) };
        Ok(Given { credentials, until: Timestamp(until), renew })
    }
}

impl Role {
    /// The role of a container whose credentials are at `address`.
    ///
    /// # Errors
    /// An address that would show them to others on the way.
    pub(super) fn of_container(
        address: String,
        token: Option<String>,
        token_file: Option<String>,
    ) -> Result<Self, String> {
        let uri: Option<Uri> = address.parse().ok();
        let is_near = |host: &str| CONTAINER_HOSTS.contains(&host) || host.starts_with("127.");
        let is_fit = uri.is_some_and(|uri| match uri.scheme_str() {
            Some("https") => uri.host().is_some(),
            Some("http") => uri.host().is_some_and(is_near),
            _ => false,
        });
        match is_fit {
            true => Ok(Self::Container { address, token, token_file }),
            false => Err(format!(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI is {address:?}: it must begin with https://, \
                 or be http:// to this machine"
            )),
        }
    }

    fn keys(&self, agent: &Agent) -> Result<Keys, String> {
        match self {
            Self::WebIdentity { token_file, arn, session, service } => {
                let token = read(token_file)?;
                let body = sign::query(&[
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("Version", "2011-06-15"),
                    ("RoleArn", arn),
                    ("RoleSessionName", session),
                    ("WebIdentityToken", &token),
                ]);
                let form = ("content-type", "application/x-www-form-urlencoded");
                let text = answer(agent, "POST", service, form, Some(body))?;
                let assumed: Assumed = quick_xml::de::from_str(&text)
                    .map_err(|_| "an answer without credentials".to_owned())?;
                Ok(assumed.assume_role_with_web_identity_result.credentials)
            }
            Self::Container { address, token, token_file } => {
                let token = match token_file {
                    Some(file) => Some(read(file)?),
                    None => token.clone(),
                };
                let token = token.unwrap_or_default();
                let name = if token.is_empty() { "accept" } else { "authorization" };
                let value = if token.is_empty() { "application/json" } else { &token };
                from_json(&answer(agent, "GET", address, (name, value), None)?)
            }
            Self::Machine { service } => {
                let seconds = ("x-aws-ec2-metadata-token-ttl-seconds", MACHINE_TOKEN_SECONDS);
                let address = format!("{service}/latest/api/token");
                let token = answer(agent, "PUT", &address, seconds, None)?;
                let token = ("x-aws-ec2-metadata-token", token.trim());
                let roles = format!("{service}{MACHINE_ROLES}");
                let names = answer(agent, "GET", &roles, token, None)?;
                let name = names.lines().next().unwrap_or_default().trim();
                from_json(&answer(agent, "GET", &format!("{roles}{name}"), token, None)?)
            }
        }
    }
}

/// A token of a file.
fn read(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.trim().to_owned())
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|_| "an answer without credentials".to_owned())
}

/// The body of a successful answer. No error has a secret in it.
fn answer(
    agent: &Agent,
    method: &str,
    address: &str,
    (name, value): (&str, &str),
    body: Option<String>,
) -> Result<String, String> {
    let request = Request::builder().method(method).uri(address).header(name, value);
    let failed = |error: &dyn fmt::Display| format!("{method} {address}: {error}");
    let request = request.body(body.unwrap_or_default()).map_err(|error| failed(&error))?;
    let sent = match method {
        "GET" => agent.run(request.map(|_| ())),
        _ => agent.run(request),
    };
    let answer = sent.map_err(|error| failed(&error))?;
    let status = answer.status();
    let text = answer.into_body().into_with_config().limit(BODY_BYTES_MAX).read_to_string();
    let text = text.map_err(|error| failed(&error))?;
    if !status.is_success() {
        let said = quick_xml::de::from_str(&text).map(|ErrorResponse { error }| {
            format!("{} {}: {}", status.as_u16(), error.code, error.message)
        });
        return Err(failed(&said.unwrap_or_else(|_| status.to_string())));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
