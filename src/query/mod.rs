//! Corridor 2: from a request to ranked chunks.
