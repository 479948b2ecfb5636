//! Bytes that stay in place, as libraries ask for which keep references into them.

use std::ops::Deref;

use bytes::Bytes;
use stable_deref_trait::StableDeref;

/// A slice of a mapped file or of another buffer, at the same address for as long as it is held.
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

// SAFETY: `Bytes` is a pointer and a length into a buffer that it shares, never a buffer within
// itself, so moving it moves no byte of the contents; nothing here gives mutable access to it.
#[allow(unsafe_code)]
unsafe impl StableDeref for StableBytes {}
