//! Answers with citations from retrieved chunks.
