//! The durable promise to process one source.
