//! HTTP: from a socket to a handler's typed input, and from its result to bytes.
//!
//! ```text
//! listen -> frame: outer -> dispatch -> routes (one table) -> handler -> reply | sse
//!                    |         |           |
//!               id, log     auth, rate   request: Fields -> dto
//! ```
//!
//! The only crate that knows HTTP: statuses, headers, wire names. It holds no state of the product
//! and decides nothing about documents; a handler calls the engine.
//!
//! Invariants: the table of routes is the only description of the wire (router, role matrix,
//! limits and OpenAPI document are made from it); no request is read before its key is known; no
//! answer leaves without `x-request-id`; nothing that a caller wrote reaches a log.
//!
//! - `app`: state of the handlers; `engine_error`: the engine's errors as conditions of the wire
//! - `download`: signed URLs of originals
//! - `listen`: sockets, limits of connections, shutdown
//! - `frame`: the order of checks, request ids, panics, CORS, the log line
//! - `forward`: requests that a query node passes on to the server that writes
//! - `nodes`: requests of nodes to each other; `standby`: a process that waits for its turn
//! - `auth`, `rate`, `admission`: keys, rate limits, and bounds on concurrent operations
//! - `routes`: the table of operations, with instructions for adding one
//! - `request`: bytes to typed input
//! - `dto`: every request and response of the wire
//! - `reply`, `sse`, `file_body`: typed output to bytes; event streams; files as they are sent;
//!   `response_notes`: what responses say beside it
//! - `mcp`: tools for language models; `watch`: metrics; `last_hour`: some of them by the minute
//! - `product`: the table over one engine; `console`: files for browsers beside it
//! - `error`: the error body and its table of conditions

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
pub mod reply;
pub mod request;
pub mod response_notes;
pub mod routes;
pub mod sse;
mod standby;
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
pub use standby::standby_routers;
pub use watch::serve_metrics;
