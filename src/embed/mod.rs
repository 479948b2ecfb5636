//! Text to vectors.
