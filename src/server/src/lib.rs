//! HTTP: from a socket to a handler's typed input, and from its result to bytes (L8).
//!
//! ```text
//! listen -> frame: outer -> dispatch -> routes (one table) -> handler -> reply | sse
//!                    |         |           |
//!               id, log     auth, rate   request: Fields -> dto
//! ```
//!
//! It is the only room that knows HTTP: statuses, headers, wire names. It holds no state of the
//! product and decides nothing about documents; a handler calls one corridor below.
//!
//! Invariants: the table of routes is the only description of the wire (router, role matrix,
//! limits and OpenAPI document are made from it); no request is read before its key is known; no
//! answer leaves without `x-request-id`; nothing that a caller wrote reaches a log.
//!
//! - `app`: what handlers get; `engine_error`: the rooms' errors as conditions of the wire
//! - `download`: signed URLs of originals
//! - `listen`: sockets, limits of connections, shutdown
//! - `frame`: the order of checks, request ids, panics, CORS, the log line
//! - `auth`, `rate`, `admission`: who asks, how often, and how many at once
//! - `routes`: the table, and how to add to it
//! - `request`: bytes to typed input
//! - `dto`: every request and response of the wire
//! - `reply`, `sse`: typed output to bytes; event streams
//! - `product`: the table over one engine
//! - `error`: the error body and its table of conditions

pub mod admission;
pub mod app;
pub mod auth;
pub mod download;
pub mod dto;
mod engine_error;
pub mod error;
pub mod frame;
pub mod listen;
pub mod product;
pub mod rate;
pub mod reply;
pub mod request;
pub mod routes;
pub mod sse;

#[cfg(test)]
mod tests;

pub use app::App;
pub use auth::{AuthFailure, Authenticator};
pub use error::{ApiError, Condition};
pub use frame::{Frame, HttpSettings, router};
pub use listen::{ListenSettings, Stop, never_stops, serve, stop_on_signals};
pub use product::product_router;
pub use reply::{Json, Reply};
