//! Bytes of a document to text with structure.
