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
//!
//! Router, role matrix, limits, `/openapi.json` and the generic tests then know it.
//!
//! - `openapi`: the document from the table
//! - `upload`, `batch`: texts and documents, alone and in batches; `once`: repeated requests
//! - `web`: pages of the web
//! - `sources`: listing, looking up and deleting; `fetch`: originals
//! - `graph`: relations of sources and results
//! - `search`, `qna`: searches and answers; `chunks_out`: chunks of the engine for the wire
//! - `embeddings`: client vectors; `memories`: personal memories
//! - `tenants`, `keys`, `backups`, `reembed`, `operations`: administration

pub mod backups;
pub mod batch;
mod chunks_out;
pub mod embeddings;
pub mod fetch;
pub mod graph;
pub mod keys;
pub mod memories;
pub mod once;
pub mod openapi;
pub mod operations;
pub mod qna;
pub mod reembed;
pub mod search;
pub mod sources;
pub mod tenants;
pub mod upload;
pub mod web;

#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::Method;
use schemars::{Schema, SchemaGenerator};

use crate::admission::Gate;
use crate::app::App;
use crate::error::{ApiError, Condition};
use crate::reply::{Reply, store_large};
use crate::request::{Call, Field, Input, Request, names};
use lodestone_engine::ingest::MemoryShare;
use lodestone_types::{Role, limits};

/// Every operation of the server.
pub fn table() -> Vec<Route<App>> {
    [
        upload::routes(),
        batch::routes(),
        web::routes(),
        sources::routes(),
        fetch::routes(),
        graph::routes(),
        search::routes(),
        qna::routes(),
        embeddings::routes(),
        memories::routes(),
        tenants::routes(),
        keys::routes(),
        backups::routes(),
        reembed::routes(),
        operations::routes(),
    ]
    .concat()
}

/// Inputs of more bytes are parsed off the async threads, and take a share of the memory budget.
const PARSE_INLINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of memory for each byte of an input: the input is in a file, its texts are in memory once
/// as members and once as what the operation makes of them.
const BYTES_PER_INPUT_BYTE: u64 = 3;
/// Time that an input waits for memory before the client is told to come back.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

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
        }
    }
}

/// Kind of body that an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// None: a body is not read.
    None,
    /// A JSON object, which may be absent where no member is required.
    Json,
    /// A multipart form.
    Multipart,
    /// A urlencoded form; JSON too.
    UrlEncoded,
}

/// Everything about an operation but its handler.
#[derive(Debug, Clone)]
pub struct RouteSpec {
    /// The method; GET serves HEAD too.
    pub method: Method,
    /// The path, with `{name}` for a variable part.
    pub path: &'static str,
    /// Its group in the OpenAPI document.
    pub group: Group,
    /// The least role, or `None` where no key is needed.
    pub role: Option<Role>,
    /// The body.
    pub media: Media,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Whether it waits for a slot among the operations that run at once.
    pub takes_slot: bool,
    /// One line for the document.
    pub summary: &'static str,
    /// The input.
    pub fields: &'static [&'static Field],
    /// The output.
    pub reply_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Media types of the output, that of the schema first.
    pub media_types: &'static [&'static str],
}

type Answer = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;
type Handler<S> = Arc<dyn Fn(S, Call, Input) -> Answer + Send + Sync>;

/// One entry of the table.
#[derive(Clone)]
pub struct Route<S> {
    /// Its description.
    pub spec: RouteSpec,
    pub(super) handler: Handler<S>,
}

impl<S> std::fmt::Debug for Route<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.spec.method, self.spec.path)
    }
}

/// An entry that lacks its handler.
#[derive(Debug, Clone)]
pub struct RouteDraft {
    method: Method,
    path: &'static str,
    group: Group,
    role: Option<Role>,
    media: Media,
    body_bytes_max: usize,
    takes_slot: bool,
    summary: &'static str,
}

impl<S: Send + 'static> Route<S> {
    fn draft(
        method: Method,
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        let (media, body_bytes_max) = (Media::Json, limits::BODY_BYTES_MAX);
        RouteDraft {
            method,
            path,
            group,
            role: Some(role),
            media,
            body_bytes_max,
            takes_slot: true,
            summary,
        }
    }

    /// A GET operation. Identifiers may stand in a JSON body here too (API 1.4).
    pub fn get(path: &'static str, group: Group, role: Role, summary: &'static str) -> RouteDraft {
        Self::draft(Method::GET, path, group, role, summary)
    }

    /// A POST operation with a JSON body.
    pub fn post(path: &'static str, group: Group, role: Role, summary: &'static str) -> RouteDraft {
        Self::draft(Method::POST, path, group, role, summary)
    }

    /// A PATCH operation with a JSON body.
    pub fn patch(
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        Self::draft(Method::PATCH, path, group, role, summary)
    }

    /// A DELETE operation with a JSON body.
    pub fn delete(
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        Self::draft(Method::DELETE, path, group, role, summary)
    }

    /// A GET operation that needs no key and reads no body.
    pub fn public(path: &'static str, summary: &'static str) -> RouteDraft {
        let draft = Self::draft(Method::GET, path, Group::Operations, Role::Read, summary);
        RouteDraft { role: None, media: Media::None, body_bytes_max: 0, ..draft }
    }
}

impl RouteDraft {
    /// With a JSON body of up to `bytes_max`.
    #[must_use]
    pub fn json(self, bytes_max: usize) -> Self {
        Self { media: Media::Json, body_bytes_max: bytes_max, ..self }
    }

    /// With a multipart form whose parts hold up to `bytes_max`; the frame of the form is extra.
    #[must_use]
    pub fn multipart(self, bytes_max: usize) -> Self {
        let body_bytes_max = bytes_max + limits::FORM_TEXT_BYTES_MAX;
        Self { media: Media::Multipart, body_bytes_max, ..self }
    }

    /// With a short form, or JSON, in place of a query.
    #[must_use]
    pub fn urlencoded(self) -> Self {
        Self { media: Media::UrlEncoded, ..self }
    }

    /// Without waiting for a slot: it costs little, and is wanted when there is none.
    #[must_use]
    pub fn without_slot(self) -> Self {
        Self { takes_slot: false, ..self }
    }

    /// The finished entry: `handler` gets the application, the call and the typed input.
    pub fn handle<S, R, T, F, A>(self, handler: F) -> Route<S>
    where
        S: Send + 'static,
        R: Request,
        T: Reply,
        F: Fn(S, Call, R) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let Self { method, path, group, role, media, body_bytes_max, takes_slot, summary } = self;
        let (fields, reply_schema) = (R::FIELDS, T::schema as _);
        let is_mutation = method != Method::GET && role.is_some_and(|role| role > Role::Read);
        let handler: Handler<S> = Arc::new(move |app, mut call, input| {
            let handler = handler.clone();
            Box::pin(async move {
                let (request, ignored) = match input.bytes() > PARSE_INLINE_BYTES_MAX {
                    true => {
                        let gate = Arc::clone(&call.gate);
                        let (memory, read) = off_thread(move || {
                            Ok((memory_for(&input, &gate)?, input.read::<R>(is_mutation)?))
                        })
                        .await?;
                        call.memory = Some(Arc::new(memory));
                        read
                    }
                    false => input.read::<R>(is_mutation)?,
                };
                call.ignored = ignored.into();
                let ignored = Arc::clone(&call.ignored);
                // The share of memory and the slot are held until the answer is made.
                let held = (call.memory.clone(), call.admitted.clone());
                let gate = Arc::clone(&call.gate);
                let owner = call.grant.as_ref().map(|grant| Arc::clone(&grant.key_id));
                let reply = handler(app, call, request).await;
                let reply = reply.map_err(|error| error.with_ignored(&ignored))?;
                let respond =
                    move || naming(reply.with_ignored(&ignored).into_response()?, &ignored);
                let Some(owner) = owner else {
                    // What needs no key is short, or comes from a file.
                    return respond();
                };
                off_thread(move || {
                    let response = store_large(respond()?, &gate, &owner);
                    drop(held);
                    response
                })
                .await
            })
        });
        let spec = RouteSpec {
            method,
            path,
            group,
            role,
            media,
            body_bytes_max,
            takes_slot,
            summary,
            fields,
            reply_schema,
            media_types: T::MEDIA_TYPES,
        };
        Route { spec, handler }
    }
}

/// Names the ignored parameters in the header of an answer.
fn naming(mut response: Response, ignored: &[String]) -> Result<Response, ApiError> {
    if !ignored.is_empty() {
        response.headers_mut().insert(names::IGNORED_HEADER, names::header(ignored));
    }
    Ok(response)
}

/// The share of memory for an input. Blocks while others have it.
fn memory_for(input: &Input, gate: &Gate) -> Result<MemoryShare, ApiError> {
    let bytes = input.bytes() as u64 * BYTES_PER_INPUT_BYTE;
    gate.memory.take(bytes, MEMORY_WAIT).ok_or_else(|| {
        let message = "the server's memory-limit is in use by other large requests";
        ApiError::new(Condition::Unavailable, "overloaded", message)
    })
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
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(outcome) => outcome,
        Err(error) => Err(ApiError::internal(format!("work off the async threads: {error}"))),
    }
}
