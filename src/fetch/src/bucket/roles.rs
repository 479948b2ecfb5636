//! Roles that give credentials, and the services that are asked for them.
//!
//! ```text
//! web identity   token of a file -> POST to the token service -> keys   accounts of EKS, OpenID
//! container      GET of the address in the environment -> keys          tasks of ECS, pods of EKS
//! machine        PUT for a token, GET role, GET its keys -> keys        machines of EC2
//! token          request of the other clouds (`tokens`) -> token        theirs
//! ```
//! Sources: AWS Security Token Service, `AssumeRoleWithWebIdentity`; AWS SDKs and tools, container
//! credential provider; Amazon EC2, instance metadata service version 2.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use ureq::http::{Request, Uri};
use ureq::{Agent, Proxy};

use super::answers::Problem;
use super::credentials::{Credentials, Key};
use super::sign;
use super::tokens::TokenService;
use super::url::is_loopback;
use crate::Authorities;
use lodestone_types::{Clock, Timestamp};

/// Credentials are renewed so long before they expire, or at half of the time that is left.
pub(super) const AHEAD_MILLIS: u64 = 5 * 60_000;
/// A service of the machine answers at once or not at all.
const CONNECT_NEAR: Duration = Duration::from_secs(1);
const ANSWER_NEAR: Duration = Duration::from_secs(5);
const ANSWER_FAR: Duration = Duration::from_secs(20);
const BODY_BYTES_MAX: u64 = 64 << 10;
/// Seconds for which a token of the machine's service is good: the most that it gives.
const MACHINE_TOKEN_SECONDS: &str = "21600";
pub(super) const MACHINE_ROLES: &str = "/latest/meta-data/iam/security-credentials/";
/// The header of a form.
pub(super) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
/// Hosts beside this machine that may be asked for a container's credentials without TLS.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// A role, and the service that gives its credentials.
#[derive(Debug)]
pub(super) enum Role {
    /// That of a token in a file, which others renew.
    WebIdentity {
        /// Path of the token.
        token_file: String,
        /// Name of the role.
        arn: String,
        /// Name of the session, in the logs of the store.
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
    /// That of a machine of another cloud, which gives tokens and no keys.
    Token(TokenService),
}

impl fmt::Display for Role {
    /// The path of a container's address is as good as its keys, and is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebIdentity { arn, service, .. } => write!(f, "{arn} from {}", origin(service)),
            Self::Container { address, .. } => {
                write!(f, "the container's role from {}", origin(address))
            }
            Self::Machine { service } => write!(f, "the machine's role from {}", origin(service)),
            Self::Token(service) => write!(f, "{} from {}", service.name, origin(&service.address)),
        }
    }
}

/// Scheme, host and port of an address.
fn origin(address: &str) -> String {
    let uri: Option<Uri> = address.parse().ok();
    let parts = uri.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.host()?, uri.port_u16())));
    match parts {
        Some((scheme, host, Some(port))) => format!("{scheme}://{host}:{port}"),
        Some((scheme, host, None)) => format!("{scheme}://{host}"),
        None => "no address".to_owned(),
    }
}

/// Credentials that expire.
#[derive(Debug, Clone)]
pub(super) struct ExpiringCredentials {
    pub(super) credentials: Credentials,
    pub(super) expires: Timestamp,
    /// The time from which new ones are asked for.
    pub(super) renew_at: Timestamp,
}

impl ExpiringCredentials {
    /// Credentials that expire, and are renewed ahead of it.
    pub(super) fn until(credentials: Credentials, expires: Timestamp, now: Timestamp) -> Self {
        let left = expires.0.saturating_sub(now.0);
        let renew_at = Timestamp(expires.0 - AHEAD_MILLIS.min(left / 2));
        Self { credentials, expires, renew_at }
    }
}

/// Answer of a service: keys, or the reason for which there are none.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct KeysReply {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: String,
    #[serde(alias = "Token")]
    pub(super) session_token: Option<String>,
    pub(super) expiration: Option<String>,
    #[serde(alias = "code", alias = "error")]
    pub(super) code: String,
    #[serde(alias = "message", alias = "error_description")]
    pub(super) message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Assumed {
    assume_role_with_web_identity_result: AssumedResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumedResult {
    credentials: KeysReply,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ErrorResponse {
    error: Problem,
}

impl KeysReply {
    /// The credentials; expired ones only where these are accepted.
    ///
    /// # Errors
    /// The reason of the service, or what is wrong with its answer.
    pub(super) fn into_credentials(
        self,
        now: Timestamp,
        accepts_expired: bool,
    ) -> Result<ExpiringCredentials, String> {
        if self.access_key_id.is_empty() || self.secret_access_key.is_empty() {
            return Err(self
                .reason()
                .unwrap_or_else(|| "an answer without credentials".to_owned()));
        }
        let credentials = Credentials::Key(Key {
            id: self.access_key_id,
            secret: self.secret_access_key,
            session_token: self.session_token.filter(|token| !token.is_empty()),
        });
        let Some(told) = self.expiration else {
            let never = Timestamp(u64::MAX);
            return Ok(ExpiringCredentials { credentials, expires: never, renew_at: never });
        };
        let expires = OffsetDateTime::parse(&told, &Rfc3339)
            .map_err(|_| format!("credentials expire at {told:?}"))?;
        let expires = u64::try_from(expires.unix_timestamp()).unwrap_or(0).saturating_mul(1000);
        let expires = Timestamp(expires);
        match (expires > now, accepts_expired) {
            (true, _) => Ok(ExpiringCredentials::until(credentials, expires, now)),
            (false, true) => {
                let renew_at = now.plus_millis(AHEAD_MILLIS);
                Ok(ExpiringCredentials { credentials, expires, renew_at })
            }
            (false, false) => Err(format!("credentials expired at {told}")),
        }
    }

    /// The reason that the service gives.
    fn reason(&self) -> Option<String> {
        let Self { code, message, .. } = self;
        (!code.is_empty() || !message.is_empty()).then(|| format!("{code}: {message}"))
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
        let is_allowed = |host: &str| CONTAINER_HOSTS.contains(&host) || is_loopback(host);
        let is_fit = uri.is_some_and(|uri| match uri.scheme_str() {
            Some("https") => uri.host().is_some(),
            Some("http") => uri.host().is_some_and(is_allowed),
            _ => false,
        });
        match is_fit {
            true => Ok(Self::Container { address, token, token_file }),
            false => Err(format!(
                "the address of the container's credentials ({}) must begin with https://, or be \
                 http:// to this machine",
                origin(&address)
            )),
        }
    }

    /// The client for its service.
    pub(super) fn client(&self, authorities: &Authorities) -> Agent {
        let far = match self {
            Self::WebIdentity { service, .. } => Some(service),
            Self::Token(service) if service.form.is_some() => Some(&service.address),
            _ => None,
        };
        let passes_proxy = far.is_some_and(|service| {
            let uri: Option<Uri> = service.parse().ok();
            !uri.is_some_and(|uri| uri.host().is_some_and(is_loopback))
        });
        authorities
            .client(if passes_proxy { Proxy::try_from_env() } else { None })
            .timeout_connect(Some(if far.is_some() { ANSWER_NEAR } else { CONNECT_NEAR }))
            .timeout_global(Some(if far.is_some() { ANSWER_FAR } else { ANSWER_NEAR }))
            .max_idle_connections(0)
            .build()
            .new_agent()
    }

    /// Whether the environment names it: the machine's is only tried.
    pub(super) fn is_named(&self) -> bool {
        match self {
            Self::WebIdentity { .. } | Self::Container { .. } => true,
            Self::Machine { .. } => false,
            Self::Token(service) => service.form.is_some(),
        }
    }

    /// Asks the service for credentials.
    ///
    /// # Errors
    /// The request, and what came of it.
    pub(super) fn fetch(
        &self,
        agent: &Agent,
        clock: &dyn Clock,
    ) -> Result<ExpiringCredentials, String> {
        let keys = match self {
            Self::Token(service) => return service.token(agent, clock),
            Self::WebIdentity { token_file, arn, session, service } => {
                let token = read(token_file)?;
                let body = sign::query(&vec![
                    ("Action", "AssumeRoleWithWebIdentity".into()),
                    ("Version", "2011-06-15".into()),
                    ("RoleArn", arn.into()),
                    ("RoleSessionName", session.into()),
                    ("WebIdentityToken", token.into()),
                ]);
                let text = answer(agent, "POST", service, FORM, Some(body))?;
                let assumed: Assumed = quick_xml::de::from_str(&text)
                    .map_err(|_| "an answer without credentials".to_owned())?;
                assumed.assume_role_with_web_identity_result.credentials
            }
            Self::Container { address, token, token_file } => {
                let token = match token_file {
                    Some(file) => Some(read(file)?),
                    None => token.clone(),
                };
                let token = token.unwrap_or_default();
                let name = if token.is_empty() { "accept" } else { "authorization" };
                let value = if token.is_empty() { "application/json" } else { &token };
                from_json(&answer(agent, "GET", address, (name, value), None)?)?
            }
            Self::Machine { service } => {
                let seconds = ("x-aws-ec2-metadata-token-ttl-seconds", MACHINE_TOKEN_SECONDS);
                let address = format!("{service}/latest/api/token");
                let token = answer(agent, "PUT", &address, seconds, None)?;
                let token = ("x-aws-ec2-metadata-token", token.trim());
                let roles = format!("{service}{MACHINE_ROLES}");
                let names = answer(agent, "GET", &roles, token, None)?;
                let name = names.lines().next().unwrap_or_default().trim();
                from_json(&answer(agent, "GET", &format!("{roles}{name}"), token, None)?)?
            }
        };
        keys.into_credentials(clock.now(), matches!(self, Self::Machine { .. }))
    }
}

/// A token of a file.
pub(super) fn read(file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    Ok(text.trim().to_owned())
}

fn from_json(text: &str) -> Result<KeysReply, String> {
    serde_json::from_str(text).map_err(|_| "an answer without credentials".to_owned())
}

/// The body of a successful answer. No error has a secret in it.
pub(super) fn answer(
    agent: &Agent,
    method: &str,
    address: &str,
    (name, value): (&str, &str),
    body: Option<String>,
) -> Result<String, String> {
    let request = Request::builder().method(method).uri(address).header(name, value);
    let failed = |error: &dyn fmt::Display| format!("{method} {}: {error}", origin(address));
    let request = request.body(body.unwrap_or_default()).map_err(|error| failed(&error))?;
    let sent = match method {
        "GET" => agent.run(request.map(|_| ())),
        _ => agent.run(request),
    };
    let answer = sent.map_err(|error| match method {
        "PUT" => failed(&format!(
            "{error} (in a container the hop limit of the machine's metadata must be 2)"
        )),
        _ => failed(&error),
    })?;
    let status = answer.status();
    let text = answer.into_body().into_with_config().limit(BODY_BYTES_MAX).read_to_string();
    let text = text.map_err(|error| failed(&error))?;
    if status.is_success() {
        return Ok(text);
    }
    let in_xml = quick_xml::de::from_str(&text)
        .map(|ErrorResponse { error }| format!("{}: {}", error.code, error.message));
    let told = in_xml.ok().or_else(|| from_json(&text).ok()?.reason());
    Err(failed(&told.map_or(status.to_string(), |told| format!("{} {told}", status.as_u16()))))
}
