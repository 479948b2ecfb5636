//! The identity of a commit.

use uuid::Uuid;

/// One manifest of a collection: two are the same only if number and nonce are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommitHead {
    /// The manifest's number, from 1.
    pub version: u64,
    /// A number drawn for it alone.
    pub nonce: Uuid,
}
