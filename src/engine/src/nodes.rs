//! Requests of one node to another: the key that they carry, and refusals.

use sha2::{Digest, Sha256};
use ureq::http::header::AUTHORIZATION;
use ureq::http::{HeaderMap, HeaderValue};

use crate::answer::generate::Secret;
use crate::settings::{InvalidSetting, NodeSettings};

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
