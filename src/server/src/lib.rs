//! The HTTP layer: turns bytes from a socket into typed input for a handler, and the handler's
//! result back into bytes.
//!
//! ```text
//! listen -> frame: outer -> dispatch -> routes (one table) -> handler -> reply | sse
//!                    |         |           |
//!               id, log     auth, rate   request: Fields -> dto
//! ```
//!
//! This is the only crate that knows HTTP statuses, headers and the names on the wire. It keeps no
//! product state and makes no decisions about documents: handlers call the engine.
//!
//! Invariants:
//!
//! - The table of routes is the only description of the API. The router, the role matrix, the
//!   limits and the OpenAPI document are all generated from it.
//! - No request is read before its key has been checked.
//! - Every response carries `x-request-id`.
//! - Nothing that a caller wrote reaches a log.
//!
//! Modules:
//!
//! - `app`: state shared by the handlers; `engine_error`: maps engine errors to API conditions
//! - `download`: signed URLs of originals
//! - `listen`: sockets, connection limits, shutdown
//! - `frame`: the order of checks, request ids, panics, CORS, the access log
//! - `forward`: requests that a query node passes on to the writer
//! - `nodes`: requests between nodes; `waiting`: a process that waits for a bucket
//! - `auth`, `rate`, `admission`: keys, rate limits, and bounds on concurrent operations; `shares`:
//!   bounded resources that owners share; `recent`: readings that requests share
//! - `routes`: the table of operations, with instructions for adding one
//! - `request`: from bytes to typed input
//! - `dto`: every request and response type of the API
//! - `reply`, `sse`, `file_body`: response bodies: JSON, event streams, files; `response_notes`:
//!   headers and members that accompany a response
//! - `mcp`: tools for language models; `watch`: metrics; `last_hour`: some of them minute by minute
//! - `product`: the whole service over one engine; `console`: the browser files served beside it
//! - `error`: the error type, its conditions, and the error body

#![forbid(unsafe_code)]

pub mod admission;
pub mod app;
pub mod auth;
mod console;
pub mod download;
pub mod dto;
mod engine_error;
pub mod error;
pub mod fair_queue;
pub mod file_body;
mod forward;
pub mod frame;
pub mod last_hour;
pub mod listen;
mod mcp;
mod nodes;
pub mod product;
pub mod rate;
mod recent;
pub mod reply;
pub mod request;
pub mod response_notes;
pub mod routes;
mod shares;
pub mod sse;
mod waiting;
pub mod watch;

#[cfg(test)]
mod tests;

pub use app::App;
pub use auth::{AuthFailure, Authenticator};
pub use error::{ApiError, Condition};
pub use frame::{Frame, HttpSettings, router};
pub use listen::{
    Certificates, ListenSettings, Stop, TlsError, never_stops, serve, stop_on_signals,
};
pub use nodes::ingest_node;
pub use product::{Product, product_router};
pub use reply::{Json, Reply};
pub use waiting::waiting_routers;
pub use watch::serve_metrics;
