//! Blob store: immutable, uniquely named bytes.
