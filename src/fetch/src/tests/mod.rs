//! The suite of the outbound client, on loopback alone. The gate and the bounds are the product's;
//! only the last step, from a checked address to a socket, goes to listeners of these tests.
//!
//! - `world`: sites, canaries, a resolver, a network
//! - `gate`: requests refused before a connection: spellings, names, redirects
//! - `fetches`: pages that arrive; `bounds`: endless, slow and oversized answers
//! - `posts`: messages to receivers; `forwards`: requests passed on to another server

#![allow(clippy::disallowed_methods)] // Canaries count connections, the tests' own included.

mod bounds;
mod forwards;
mod gate;
mod pages;
mod posts;
pub(crate) mod world;
