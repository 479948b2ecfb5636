//! The table of routes: one entry per operation, from which everything about it is derived.
//!
//! ```text
//!            +-> axum router (frame)
//! Route ... -+-> order of checks: role, media type, body limit (frame)
//!            +-> input: fields, ranges, defaults (request)
//!            +-> OpenAPI document (openapi)
//! ```
//!
//! This module carries out no operation itself: a handler calls the engine and converts the result
//! into a type of `dto`.
//!
//! # How to add an operation
//!
//! 1. Input: in `dto/`, a struct of validated values, its `Field`s and an `impl Request`.
//!    `FIELDS` lists what `read` reads; ranges and defaults are stated in the fields only.
//! 2. Output: in `dto/`, a struct with `Serialize` and `JsonSchema`.
//! 3. Handler: `async fn name(app: App, call: Call, input: In) -> Result<Json<Out>, ApiError>`.
//!    Check the scope with `call.grant()?` first. Run blocking work in [`off_thread`]. Engine
//!    errors convert into [`ApiError`] with `?` (`engine_error`).
//! 4. Entry: `Route::post(path, group, role, summary).handle(name)`, with `.json(bytes_max)` for
//!    a larger body or `.multipart(bytes_max)` for a form.
//! 5. [`ServingNode`] and [`Effect`] follow from method, role and group; override them with
//!    `.at_writer()`, `.queued()` and `.visible_at_once()`. A test lists the operations that a
//!    query node answers.
//!
//! The router, the role matrix, the limits, `/openapi.json` and the generic tests pick the
//! operation up from there.
//!
//! - `route`: an entry of the table; `openapi`: the document generated from the table
//! - `upload`, `batch`: texts and documents, alone and in batches; `once`: idempotent retries
//! - `web`: ingestion of web pages
//! - `sources`: listing, look-up and deletion; `fetch`: originals; `pictures`: rendered pages
//! - `graph`: relations of sources and results
//! - `search`, `qna`: searches and answers; `chunks_out`: engine chunks as response types;
//!   `search_warnings`: warnings about filters that matched nothing
//! - `embeddings`: client vectors; `memories`: personal memories
//! - `archives`: export and import of tenants
//! - `v1`: the OpenAI-compatible interface
//! - `tenants`, `keys`, `webhooks`, `backups`, `reembed`, `operations`: administration
//! - `job_events`: the event stream of one job

pub mod archives;
pub mod backups;
pub mod batch;
mod chunks_out;
mod content_guard;
pub mod embeddings;
pub mod fetch;
pub mod graph;
pub mod job_events;
pub mod keys;
pub mod memories;
pub mod once;
pub mod openapi;
pub mod operations;
pub mod pictures;
pub mod qna;
pub mod reembed;
mod route;
pub mod search;
mod search_warnings;
pub mod sources;
pub mod tenants;
pub mod upload;
pub mod v1;
pub mod web;
pub mod webhooks;

#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;

use crate::app::App;
use crate::error::ApiError;
pub use route::{Effect, Media, PARSE_INLINE_BYTES_MAX, Route, RouteDraft, RouteSpec, ServingNode};

/// Returns the routes of every operation of the server.
pub fn table() -> Vec<Route<App>> {
    [
        upload::routes(),
        batch::routes(),
        web::routes(),
        sources::routes(),
        fetch::routes(),
        pictures::routes(),
        graph::routes(),
        search::routes(),
        qna::routes(),
        embeddings::routes(),
        memories::routes(),
        archives::routes(),
        tenants::routes(),
        keys::routes(),
        webhooks::routes(),
        backups::routes(),
        reembed::routes(),
        operations::routes(),
        job_events::routes(),
        v1::routes(),
    ]
    .concat()
}

/// A section of the API; becomes a tag in the OpenAPI document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Uploads and updates.
    Upload,
    /// Deletion of sources.
    Deletion,
    /// Listings.
    Listing,
    /// Tenants and sub-tenants.
    Tenant,
    /// Client vectors.
    Embeddings,
    /// Search and questions.
    Search,
    /// Stored originals.
    Fetch,
    /// Personal memories.
    Memory,
    /// Keys and tenants for operators.
    Admin,
    /// Health checks, metrics and the API documents.
    Operations,
    /// The OpenAI-compatible interface.
    OpenAi,
}

impl Group {
    /// The tag's name in the OpenAPI document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Deletion => "deletion",
            Self::Listing => "listing",
            Self::Tenant => "tenant",
            Self::Embeddings => "embeddings",
            Self::Search => "search",
            Self::Fetch => "fetch",
            Self::Memory => "memory",
            Self::Admin => "admin",
            Self::Operations => "operations",
            Self::OpenAi => "openai",
        }
    }
}

/// Runs blocking work on the blocking thread pool, within the current tracing span.
///
/// # Errors
/// Returns the work's own error, or 500 if it panicked.
pub async fn off_thread<T, F>(work: F) -> Result<T, ApiError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, ApiError> + Send + 'static,
{
    let outcome = Arc::new(Mutex::new(None));
    let job = {
        let outcome = Arc::clone(&outcome);
        Box::new(move || *outcome.lock() = Some(work()))
    };
    run(job).await?;
    let outcome = outcome.lock().take();
    outcome.expect("a job that did not panic has an outcome")
}

/// Runs one type-erased job, so that this function is compiled once rather than once per kind of
/// work.
async fn run(job: Box<dyn FnOnce() + Send>) -> Result<(), ApiError> {
    let span = tracing::Span::current();
    let ran = tokio::task::spawn_blocking(move || span.in_scope(job)).await;
    ran.map_err(|error| ApiError::internal(format!("work off the async threads: {error}")))
}
