//! Roles that grant credentials, and the services that issue them.
//!
//! ```text
//! web identity   token from a file -> POST to the token service -> keys   EKS accounts, OpenID
//! container      GET of the URL in the environment -> keys               ECS tasks, EKS pods
//! machine        PUT for a token, GET role, GET its keys -> keys         EC2 machines
//! token          GET of a metadata service (`tokens`) -> token           Google, Azure machines
//! ```
//! Sources: AWS Security Token Service, `AssumeRoleWithWebIdentity`; AWS SDKs and tools, container
//! credential provider; Amazon EC2, instance metadata service version 2.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use ureq::http::Uri;
use ureq::{Agent, Proxy};

use super::credentials::{AHEAD_MILLIS, Credentials, ExpiringCredentials, Key};
use super::service::{FORM, answer, origin, read, reason};
use super::sign;
use super::tokens::TokenService;
use super::url::is_loopback;
use crate::Authorities;
use lodestone_types::{Clock, Timestamp};

/// Time limit for connecting to a service of the machine, which responds at once or never.
const CONNECT_NEAR: Duration = Duration::from_secs(1);
/// Time limit for the response of a service of the machine, and for connecting to a remote one.
const ANSWER_NEAR: Duration = Duration::from_secs(5);
/// Time limit for the response of a remote token service.
const ANSWER_FAR: Duration = Duration::from_secs(20);

/// Lifetime requested for a token of EC2's metadata service, in seconds: the maximum.
const MACHINE_TOKEN_SECONDS: &str = "21600";
/// Path of the metadata service that lists the machine's roles.
pub(super) const MACHINE_ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// Hosts, besides loopback, that may be asked for a container's credentials without TLS: those of
/// ECS and EKS.
const CONTAINER_HOSTS: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// A role, and the service that issues its credentials.
#[derive(Debug)]
pub(super) enum Role {
    /// Role of a web identity token, which another program keeps up to date in a file.
    WebIdentity {
        /// Path of the token file.
        token_file: String,
        /// Name of the role.
        arn: String,
        /// Name of the session, as logged by the store.
        session: String,
        /// URL of the token service.
        service: String,
    },
    /// Role of the container in which the program runs.
    Container {
        /// URL of its credentials.
        address: String,
        /// Value of the `authorization` header.
        token: Option<String>,
        /// Path of a file with that value, which the platform keeps up to date.
        token_file: Option<String>,
    },
    /// Role of the EC2 machine, from its metadata service.
    Machine {
        /// URL of the metadata service.
        service: String,
    },
    /// Identity in another cloud, whose service issues access tokens instead of keys.
    Token(TokenService),
}

impl fmt::Display for Role {
    /// Names the role and its service. Omits the path of a container's URL, because whoever knows
    /// it can fetch the keys.
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

/// Source of credentials.
#[derive(Debug)]
pub(super) enum Source {
    /// Fixed credentials from the environment or a profile.
    Fixed(Credentials),
    /// A role, whose credentials a service issues.
    Role(Role),
}

impl Source {
    /// Whether requests carry the credentials themselves instead of a signature made with them.
    pub(super) fn is_sent(&self) -> bool {
        match self {
            Self::Fixed(Credentials::Key(_)) => false,
            Self::Fixed(Credentials::Bearer(_) | Credentials::SharedAccess(_)) => true,
            Self::Role(role) => matches!(role, Role::Token(_)),
        }
    }
}

/// Response of a service: keys, or the reason why there are none.
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

impl KeysReply {
    /// Turns the reply into credentials; expired ones are refused unless `accepts_expired`.
    ///
    /// # Errors
    /// The service's reason, or the problem with its response.
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
        reason(&self.code, &self.message)
    }
}

impl Role {
    /// The role of a container whose credentials are at `address`.
    ///
    /// # Errors
    /// If the address would send the credentials unencrypted over a network.
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

    /// Creates the HTTP client for its service.
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

    /// Whether the environment sets it; the machine's role is only tried.
    pub(super) fn is_named(&self) -> bool {
        match self {
            Self::WebIdentity { .. } | Self::Container { .. } => true,
            Self::Machine { .. } => false,
            Self::Token(service) => service.form.is_some(),
        }
    }

    /// Fetches credentials from the service.
    ///
    /// # Errors
    /// The request and its problem.
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

fn from_json(text: &str) -> Result<KeysReply, String> {
    serde_json::from_str(text).map_err(|_| "an answer without credentials".to_owned())
}
