//! The table of routes: one entry for each operation, from which everything about it is made.
//!
//! ```text
//!            +-> axum router (frame)
//! Route ... -+-> order of checks: role, media type, body limit (frame)
//!            +-> input: fields, ranges, defaults (request)
//!            +-> OpenAPI document (openapi)
//! ```
//!
//! No operation is carried out here: a handler calls the engine and turns the result into a type of
//! `dto`.
//!
//! # How to add an operation
//!
//! 1. Input: in `dto/`, a struct of validated values, its `Field`s and an `impl Request`.
//!    `FIELDS` lists what `read` reads; ranges and defaults stand in the fields only.
//! 2. Output: in `dto/`, a struct with `Serialize` and `JsonSchema`.
//! 3. Handler: `async fn name(app: App, call: Call, input: In) -> Result<Json<Out>, ApiError>`.
//!    Check the scope with `call.grant()?` first. Blocking work goes into [`off_thread`]. Errors
//!    of the engine turn into [`ApiError`] with `?` (`engine_error`).
//! 4. Entry: `Route::post(path, group, role, summary).handle(name)`, with `.json(bytes_max)` for
//!    a larger body or `.multipart(bytes_max)` for a form.
//! 5. [`ServingNode`] and [`Effect`] follow from method, role and group; `.at_writer()`,
//!    `.queued()` and `.visible_at_once()` say otherwise. A test holds the list of what a query
//!    node answers.
//!
//! Router, role matrix, limits, `/openapi.json` and the generic tests then know it.
//!
//! - `route`: an entry of the table; `openapi`: the document from the table
//! - `upload`, `batch`: texts and documents, alone and in batches; `once`: repeated requests
//! - `web`: pages of the web
//! - `sources`: listing, looking up and deleting; `fetch`: originals; `pictures`: pages
//! - `graph`: relations of sources and results
//! - `search`, `qna`: searches and answers; `chunks_out`: chunks of the engine for the wire;
//!   `search_warnings`: what they tell of filters that let nothing pass
//! - `embeddings`: client vectors; `memories`: personal memories
//! - `archives`: tenants out and in
//! - `v1`: the interface of OpenAI
//! - `tenants`, `keys`, `webhooks`, `backups`, `reembed`, `operations`: administration
//! - `job_events`: the events of one job

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

/// Every operation of the server.
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

/// A chapter of the API; the tag in the OpenAPI document.
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
    /// Health and documents.
    Operations,
    /// The interface of OpenAI.
    OpenAi,
}

impl Group {
    /// The tag.
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

/// Runs blocking work where it may block.
///
/// # Errors
/// The work's own error, or 500 when it panicked.
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

/// Runs one job. Its type is known to nobody here, so that the task is compiled once, not once for
/// each kind of work.
async fn run(job: Box<dyn FnOnce() + Send>) -> Result<(), ApiError> {
    let span = tracing::Span::current();
    let ran = tokio::task::spawn_blocking(move || span.in_scope(job)).await;
    ran.map_err(|error| ApiError::internal(format!("work off the async threads: {error}")))
}
