//! Bytes at a stable address, for libraries that keep references into them.

use std::ops::Deref;

use bytes::Bytes;
use stable_deref_trait::StableDeref;

/// A slice of a mapped file or another buffer whose address does not change while it is held.
#[derive(Debug, Clone)]
pub struct StableBytes(Bytes);

impl From<Bytes> for StableBytes {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Deref for StableBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

// SAFETY: `Bytes` is a pointer and a length into a shared buffer, never an inline buffer, so moving
// it does not move the contents; nothing here gives mutable access to them.
#[allow(unsafe_code)]
unsafe impl StableDeref for StableBytes {}
