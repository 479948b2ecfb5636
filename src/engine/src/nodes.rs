//! Requests from one node to another: authentication, refusals, and how query nodes describe
//! themselves.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderMap, HeaderValue};
use uuid::Uuid;

use crate::Engine;
use crate::settings::{InvalidSetting, NodeSettings};
use lodestone_fetch::Forwarder;
use lodestone_types::Secret;

/// Path that serves a [`QueryNode`].
pub const QUERY_NODE: &str = "/nodes/query";
/// Time to wait for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The release of this program.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The shared key of all nodes of an installation, stored as a SHA-256 hash.
#[derive(Debug, Clone)]
pub struct NodeKey([u8; 32]);

/// Why a node refuses or fails a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRefusal {
    /// The task is invalid.
    Invalid(String),
    /// The node cannot do it now; try again later or elsewhere.
    Busy(String),
    /// The task failed.
    Failed(String),
}

/// A query node's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryNode {
    /// Its release.
    pub release: String,
    /// Name of the writing process that it follows.
    pub writer: Uuid,
    /// Whether it accepts the key of the request; `None` if it does not share searches.
    pub accepts_key: Option<bool>,
    /// Whether it is still opening the tenants that it will answer for.
    #[serde(default)]
    pub is_joining: bool,
}

impl QueryNode {
    /// Asks a query node to describe itself.
    ///
    /// # Errors
    /// A message with the node's address that says why there is no answer.
    pub fn ask(forwarder: &Forwarder, headers: &HeaderMap) -> Result<Self, String> {
        let answer = forwarder.ask(QUERY_NODE, headers, ANSWER);
        let answer = answer.map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer)
            .map_err(|_| format!("{} is not a query node of this release", forwarder.base()))
    }
}

impl Engine {
    /// Describes this process as a query node to a caller that presents `key`; `None` if it is not
    /// one.
    pub fn query_node(&self, key: &str) -> Option<QueryNode> {
        let (release, writer) = (RELEASE.to_owned(), self.follow_state()?.writer);
        let peers = self.peers();
        let shares = peers.is_some_and(|peers| peers.shares_searches());
        let accepts_key = shares.then(|| self.accepts_node(key));
        let is_joining = peers.is_some_and(|peers| !peers.has_joined());
        Some(QueryNode { release, writer, accepts_key, is_joining })
    }
}

/// The name of the writing process at an address.
///
/// # Errors
/// A message with the address that says why there is none.
pub fn writer_at(forwarder: &Forwarder) -> Result<Uuid, String> {
    let answer = forwarder.ask("/healthz", &HeaderMap::new(), ANSWER);
    let answer = answer.map_err(|error| error.to_string())?;
    let health: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
    let base = forwarder.base();
    if health["standby"] == true {
        return Err(format!("{base} is a standby"));
    }
    health["writer"].as_str().and_then(|name| name.parse().ok()).ok_or_else(|| {
        format!("{base} is not a Lodestone server that writes to a bucket: check --writer-url")
    })
}

impl NodeKey {
    /// Hashes the text of a key.
    pub fn new(key: &Secret) -> Self {
        Self(Sha256::digest(key.expose()).into())
    }

    /// Whether a token is the key. Hashes are compared, so that timing reveals nothing about the
    /// key.
    pub fn accepts(&self, token: &str) -> bool {
        <[u8; 32]>::from(Sha256::digest(token)) == self.0
    }
}

/// The headers that every request to a node carries, the key among them.
///
/// # Errors
/// A key that cannot be sent in a header.
pub fn headers(settings: &NodeSettings) -> Result<HeaderMap, InvalidSetting> {
    let key = settings.node_key.as_ref().map_or("", |key| key.expose());
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value.map_err(|_| InvalidSetting {
        name: "node-key",
        problem: "must be printable ASCII".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}
