//! The request and response types of the API, and nothing else.
//!
//! ```text
//! Fields -> request struct (ids and ranges checked, defaults filled in) -> handler
//! handler -> response struct (exact names and nullability) -> JSON
//! ```
//!
//! No decision about a document or a tenant is made here. A request struct that exists is valid by
//! itself; checks that depend on stored state (scope, schema, vector width, filters) are left to
//! the handler.
//!
//! Invariants: names, types, defaults and ranges are part of the stable API, as `GET /openapi.json`
//! lists them; every time is a decimal number of epoch seconds in a string; every number is finite;
//! absent optional members are sent as `null`, except those marked `skip_serializing_if`.
//!
//! - `inputs`: fields shared by many operations
//! - `upload`, `batch`: texts and documents, alone and in batches; `apps`: records of applications
//! - `given`: document attributes stated by the uploader
//! - `web`: web pages to ingest
//! - `sources`: listing, looking up, deleting and fetching sources
//! - `passages`: the chunks of one source; `pictures`: its rendered pages
//! - `tenants`: tenants and sub-tenants; `tenant_limits`: their limits and usage
//! - `embeddings`: client vectors; `memories`: personal memories
//! - `search`: questions and searches; `filters`: restrictions on their results
//! - `chunks`: chunks and cited sources; `answers`: responses of searches, stream events
//! - `search_warning`: warnings in those responses
//! - `graph`: entities, triplets and paths
//! - `v1`: the OpenAI-compatible interface, whose names and shapes OpenAI defines
//! - `operations`: jobs and health; `keys`: API keys; `webhooks`: event receivers

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
pub mod source_maps;
pub mod sources;
pub mod tenant_limits;
pub mod tenants;
pub mod upload;
pub mod v1;
pub mod web;
pub mod webhooks;

#[cfg(test)]
mod tests;
