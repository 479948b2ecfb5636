//! Tests of the outbound client, on loopback only. The gate and the limits are those of the
//! product; only the last step, from an approved address to a socket, leads to listeners of the
//! tests.
//!
//! - `world`: sites, canaries, a resolver, a network
//! - `gate`: requests refused before a connection: spellings, names, redirects
//! - `pages`: pages that arrive; `bounds`: endless, slow and oversized responses
//! - `posts`: messages to receivers; `forwards`: requests passed on to another server

#![allow(clippy::disallowed_methods)] // Canaries count connections, the tests' own included.

mod bounds;
mod forwards;
mod gate;
mod pages;
mod posts;
pub(crate) mod world;
