//! Text to chunks with offsets.
