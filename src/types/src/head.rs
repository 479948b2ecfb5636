//! The identity of a commit.

use uuid::Uuid;

/// Identifies one manifest of a collection; two are the same only if both number and nonce agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitHead {
    /// The manifest's number, from 1.
    pub version: u64,
    /// A random number unique to this manifest.
    pub nonce: Uuid,
}
