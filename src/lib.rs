//! Lodestone: a self-hosted retrieval server in one binary.
//!
//! # The two corridors
//!
//! ```text
//! ingest   server -> ingest::submit -> store (original) -> catalog (job): acknowledged
//!          ingest::worker -> extract -> chunk -> embed -> segment -> collection (commit): visible
//! query    server -> query: filter -> { compute || text } -> rank -> answer -> server
//! ```
//! They meet only in `collection`: one makes versions of it, the other reads them.
//!
//! # Layers
//!
//! A module imports only from lower floors; rooms on one floor are strangers to each other.
//!
//! | floor | rooms |
//! |---|---|
//! | L8 | `server`: HTTP |
//! | L7 | `engine`: the composition root, and the only way from a key to data |
//! | L6 | `settings`: what an operator can choose, as plain data |
//! | L5 | `ingest`, `query`, `answer`: the corridors |
//! | L4 | `collection`: versions of one tenant's data; `catalog`: tenants, keys, jobs |
//! | L3 | `segment`: one immutable file of rows |
//! | L2 | `filter`, `text`, `graph`, `embed`, `job`, `statements`; `fetch`: the way to the web |
//! | L1 | `io`, `store`, `compute`, `rank`, `extract`, `chunk` |
//! | L0 | `types`: plain data that every room speaks |
//!
//! # Glossary
//!
//! - **tenant**: isolation, placement and deletion; owns one **collection**. **sub-tenant**: an
//!   isolated part of it.
//! - **source**: what was uploaded. **chunk**, **row**: one searchable piece of it.
//! - **segment**: one immutable file of rows with everything about them. **tombstone**: a dead row.
//! - **manifest**: the numbered list of a collection's live segments; creating one is the
//!   **commit**. **snapshot**: an open manifest; a query uses exactly one.
//! - **job**: the durable promise to process one source.
//! - **leg**: the vector or the text half of a hybrid search.
//! - **T1**, **T2**: tiers of a vector: i8 codes that are scanned, and the original.

pub mod answer;
pub mod catalog;
pub mod chunk;
pub mod collection;
pub mod compute;
pub mod embed;
pub mod engine;
pub mod extract;
pub mod fetch;
pub mod filter;
pub mod graph;
pub mod ingest;
pub mod io;
pub mod job;
pub mod query;
pub mod rank;
pub mod segment;
pub mod server;
pub mod settings;
pub mod statements;
pub mod store;
pub mod text;
pub mod types;
