//! Every request and every response of the wire, and nothing else (API 3 and 4).
//!
//! ```text
//! Fields -> request struct (ids and ranges checked, defaults filled in) -> handler
//! handler -> response struct (exact names and nullability) -> JSON
//! ```
//!
//! No decision about a document or a tenant is taken here. A request struct that exists is valid
//! by itself; what depends on stored state (scope, schema, width, filters) is the handler's.
//!
//! Invariants: names, types, defaults and ranges are API.md's; every time is decimal epoch seconds
//! in a string; every number is finite; optional members are sent as `null`, never left out.
//!
//! - `inputs`: fields that many operations share
//! - `upload`, `batch`: texts and documents, alone and in company; `apps`: records of applications
//! - `given`: what an uploader says of a document
//! - `web`: pages of the web
//! - `sources`: listing, looking up, deleting and fetching sources
//! - `passages`: the chunks of one source; `pictures`: its pages
//! - `tenants`: tenants and sub-tenants; `tenant_limits`: their limits and use
//! - `embeddings`: client vectors; `memories`: personal memories
//! - `search`: questions and searches; `filters`: what restricts them
//! - `chunks`: chunks and cited sources; `answers`: responses of searches, stream events
//! - `search_warning`: warnings in those responses
//! - `graph`: entities, triplets and paths
//! - `v1`: the interface of OpenAI, whose names and forms are that interface's
//! - `operations`: jobs and health; `keys`: API keys; `webhooks`: receivers of events

pub mod answers;
pub mod apps;
pub mod archives;
pub mod backups;
pub mod batch;
pub mod chunks;
pub mod embeddings;
pub mod filters;
mod given;
pub mod graph;
pub mod inputs;
pub mod keys;
pub mod memories;
pub mod operations;
pub mod passages;
pub mod pictures;
pub mod reembed;
pub mod search;
pub mod search_warning;
pub mod sources;
pub mod tenant_limits;
pub mod tenants;
pub mod upload;
pub mod v1;
pub mod web;
pub mod webhooks;

#[cfg(test)]
mod tests;
