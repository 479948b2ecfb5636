//! Requests of one node to another: the key that they carry, refusals, and what a query node tells
//! of itself.

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

/// Path of a [`QueryNode`].
pub const QUERY_NODE: &str = "/nodes/query";
/// Time for an answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The release of this program.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The key of the nodes of one installation, as a hash.
#[derive(Debug, Clone)]
pub struct NodeKey([u8; 32]);

/// Why a node does not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeRefusal {
    /// The task is wrong.
    Invalid(String),
    /// It cannot be done now.
    Busy(String),
    /// It failed.
    Failed(String),
}

/// A query node, as it tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryNode {
    /// Its release.
    pub release: String,
    /// Name of the process that writes, which it follows.
    pub writer: Uuid,
    /// Whether the key that it was asked with is its own; none where it shares no searches.
    pub accepts_key: Option<bool>,
    /// Whether it still opens the tenants that it will answer for.
    #[serde(default)]
    pub is_joining: bool,
}

impl QueryNode {
    /// Asks a query node about itself.
    ///
    /// # Errors
    /// The reason for which there is no answer, with the address.
    pub fn ask(forwarder: &Forwarder, headers: &HeaderMap) -> Result<Self, String> {
        let answer = forwarder.ask(QUERY_NODE, headers, ANSWER);
        let answer = answer.map_err(|error| error.to_string())?;
        serde_json::from_slice(&answer)
            .map_err(|_| format!("{} is no query node of this release", forwarder.base()))
    }
}

impl Engine {
    /// This process as a query node that is asked with a key; none where it is none.
    pub fn query_node(&self, key: &str) -> Option<QueryNode> {
        let (release, writer) = (RELEASE.to_owned(), self.follow_state()?.writer);
        let peers = self.peers();
        let shares = peers.is_some_and(|peers| peers.shares_searches());
        let accepts_key = shares.then(|| self.accepts_node(key));
        let is_joining = peers.is_some_and(|peers| !peers.has_joined());
        Some(QueryNode { release, writer, accepts_key, is_joining })
    }
}

/// Name of the process that writes at an address.
///
/// # Errors
/// The reason for which there is none, with the address.
pub fn writer_at(forwarder: &Forwarder) -> Result<Uuid, String> {
    let answer = forwarder.ask("/healthz", &HeaderMap::new(), ANSWER);
    let answer = answer.map_err(|error| error.to_string())?;
    let health: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
    let base = forwarder.base();
    if health["standby"] == true {
        return Err(format!("{base} waits for the place of the one that writes"));
    }
    health["writer"]
        .as_str()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| format!("{base} is no Lodestone that writes to a bucket: see --writer-url"))
}

impl NodeKey {
    /// The key with this text.
    pub fn new(key: &Secret) -> Self {
        Self(Sha256::digest(key.expose()).into())
    }

    /// Whether a token is the key. Hashes are compared: the time tells nothing about the key.
    pub fn accepts(&self, token: &str) -> bool {
        <[u8; 32]>::from(Sha256::digest(token)) == self.0
    }
}

/// The headers that every request to a node carries.
///
/// # Errors
/// A key that no header can carry.
pub fn headers(settings: &NodeSettings) -> Result<HeaderMap, InvalidSetting> {
    let key = settings.node_key.as_ref().map_or("", |key| key.expose());
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value.map_err(|_| InvalidSetting {
        name: "node-key",
        problem: "must be of printable ASCII characters".to_owned(),
    })?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}
