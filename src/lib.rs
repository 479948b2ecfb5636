//! Lodestone: a self-hosted retrieval server in one binary.

pub mod answer;
pub mod catalog;
pub mod chunk;
pub mod collection;
pub mod compute;
pub mod embed;
pub mod extract;
pub mod filter;
pub mod ingest;
pub mod io;
pub mod job;
pub mod query;
pub mod rank;
pub mod segment;
pub mod server;
pub mod store;
pub mod text;
pub mod types;
