//! Outbound HTTP: web pages that users ask to ingest, webhook messages, the operator's bucket, and
//! requests forwarded to other servers of the operator.
//!
//! Users choose the addresses of pages and webhooks, so these requests could be abused to reach
//! hosts that only this machine can reach (server-side request forgery). They all pass the gate,
//! and no document or page triggers a fetch: only redirects are followed. Other crates open
//! connections only to servers that the operator names, with clients configured by
//! [`Authorities::client`] (`.clippy.toml` enforces this).
//!
//! ```text
//! address -> gate (port allowed? name -> addresses: all permitted?) -> robots.txt, the same way
//!            -> connection to one of these addresses, peer verified -> TLS, HTTP
//!            -> redirect: the next address, from the start | body, decompressed -> page
//! ```
//!
//! Invariants (tested in `tests`):
//! - A connection is only ever opened to an address that the gate approved for this very request.
//! - All requests of one fetch share one deadline and one byte allowance.
//! - Fetches share no state: no cookies, no connections, no cache.
//!
//! The HTTP library only parses and frames. Its name resolution, redirects, proxies and
//! decompression are turned off, because each of them would bypass the gate or the limits.
//!
//! - `address`: classification of IP addresses; `allowed`: the operator's exceptions
//! - `base_url`: checks of server addresses that the operator sets
//! - `authorities`: certificate authorities trusted for other servers
//! - `names`: name resolution; `gate`: the verdict on one request
//! - `connection`: connections to approved addresses; `request`: one GET or POST; `body`: bounded
//!   decompression
//! - `media`: the media types worth fetching; `robots`: the paths that a site excludes
//! - `page`: fetching a page; `post`: sending a webhook message
//! - `error`: errors of one request
//! - `bucket`: a client of object stores; `forward`: requests passed on to another server. Neither
//!   uses the gate, because the operator sets their addresses.

#![forbid(unsafe_code)]

mod address;
mod allowed;
mod authorities;
mod base_url;
mod body;
pub mod bucket;
mod connection;
mod error;
pub mod forward;
mod gate;
mod media;
mod names;
mod page;
mod post;
mod request;
mod robots;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ureq::tls::RootCerts;

use crate::gate::Gate;
use crate::names::Names;
use crate::page::PageFetch;
use crate::request::HttpClient;
use lodestone_types::limits::{WEB_PAGE_BYTES_MAX, WEB_SECONDS_MAX, WEB_WIRE_BYTES_MAX};
use lodestone_types::{WebClient, WebFailure, WebPage, WebUrl};

pub use allowed::{Allowed, AllowedError};
pub use authorities::Authorities;
pub use base_url::is_base_url;
pub use connection::{Connection, Dialer};
pub use forward::Forwarder;
pub use names::{NameError, Resolver, SystemResolver};
pub use robots::Robots;

/// Limits of a fetch, and the exceptions to its address rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The operator's exceptions.
    pub allowed: Allowed,
    /// Time limit of the whole fetch.
    pub time_max: Duration,
    /// Maximum number of bytes in the page, after decompression.
    pub page_bytes_max: usize,
    /// Maximum number of bytes received in total.
    pub wire_bytes_max: usize,
}

impl Rules {
    /// The default limits with these exceptions.
    pub fn new(allowed: Allowed) -> Self {
        Self {
            allowed,
            time_max: Duration::from_secs(WEB_SECONDS_MAX),
            page_bytes_max: WEB_PAGE_BYTES_MAX,
            wire_bytes_max: WEB_WIRE_BYTES_MAX,
        }
    }
}

/// Fetches pages and posts webhook messages. Blocks the calling thread, at most for
/// [`Rules::time_max`].
pub struct Fetcher {
    gate: Gate,
    client: HttpClient,
    time_max: Duration,
    page_bytes_max: usize,
    wire_bytes_max: u64,
}

impl Fetcher {
    /// Creates a fetcher on the machine's network that trusts these authorities.
    pub fn new(rules: Rules, resolver: impl Resolver, authorities: &Authorities) -> Self {
        Self::over(rules, resolver, connection::Network, authorities.0.clone())
    }

    /// Creates a fetcher that connects through `dialer` and trusts the certificates `roots`.
    fn over(rules: Rules, resolver: impl Resolver, dialer: impl Dialer, roots: RootCerts) -> Self {
        let Rules { allowed, time_max, page_bytes_max, wire_bytes_max } = rules;
        Self {
            gate: Gate { allowed, names: Names::new(resolver) },
            client: HttpClient { dialer: Arc::new(dialer), roots },
            time_max,
            page_bytes_max,
            wire_bytes_max: wire_bytes_max as u64,
        }
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time_max, page_bytes_max, wire_bytes_max, .. } = self;
        let mut shown = f.debug_struct("Fetcher");
        shown.field("time_max", time_max).field("page_bytes_max", page_bytes_max);
        shown.field("wire_bytes_max", wire_bytes_max).finish_non_exhaustive()
    }
}

impl WebClient for Fetcher {
    fn fetch(&self, url: &WebUrl) -> Result<WebPage, WebFailure> {
        PageFetch::new(self).page(url)
    }
}
