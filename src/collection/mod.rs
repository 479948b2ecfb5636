//! One tenant's segments under a numbered manifest.
