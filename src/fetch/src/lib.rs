//! The one outbound HTTP client: web pages that users ask to ingest, messages to the receivers of
//! their webhooks, the bucket of the operator, the server that writes to it, and nothing else.
//!
//! Users choose the addresses, so every request could be used to reach hosts that only this machine
//! can reach (server-side request forgery). Nothing else in the server opens connections
//! (`.clippy.toml` forbids it), and no document or page causes a fetch: only redirects are
//! followed.
//!
//! ```text
//! address -> gate (port; name -> addresses; all of them permitted?) -> robots.txt, by the same way
//!            -> connection to one of these addresses, its peer compared -> TLS, HTTP
//!            -> redirect: the next address, from the start | body, decompressed -> page
//! ```
//!
//! Invariants (suite in `tests`):
//! - a connection is only ever opened to an address that the gate judged for this very request;
//! - all requests of one fetch share one deadline and one allowance of bytes;
//! - fetches share nothing: no cookies, no connections, no cache.
//!
//! The HTTP library parses and frames. Its name resolution, redirects, proxies and decompression
//! are turned off: each of them would bypass the gate or the limits.
//!
//! - `address`: public IP addresses; `allowed`: exceptions of the operator
//! - `base_url`: addresses of servers that the operator names
//! - `authorities`: certificate authorities that vouch for other servers
//! - `names`: names to addresses; `gate`: the verdict on one request
//! - `connection`: to checked addresses only; `request`: one GET or POST; `body`: limited
//!   decompression
//! - `media`: types worth fetching; `robots`: paths that a site does not want fetched
//! - `page`: from an address to a page; `post`: a message to a receiver
//! - `error`: errors of one request
//! - `bucket`: objects in a store of buckets, and `forward`: requests that another server
//!   answers; the addresses of both are not the users' to choose

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

/// Limits of a fetch, and exceptions for addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Exceptions of the operator.
    pub allowed: Allowed,
    /// Time for all of it.
    pub time_max: Duration,
    /// Bytes of the page, decompressed.
    pub page_bytes_max: usize,
    /// Bytes that are received in all.
    pub wire_bytes_max: usize,
}

impl Rules {
    /// The rules of the product, with these exceptions.
    pub fn new(allowed: Allowed) -> Self {
        Self {
            allowed,
            time_max: Duration::from_secs(WEB_SECONDS_MAX),
            page_bytes_max: WEB_PAGE_BYTES_MAX,
            wire_bytes_max: WEB_WIRE_BYTES_MAX,
        }
    }
}

/// Fetches pages. Blocks the thread that asks, at most as long as [`Rules::time_max`].
pub struct Fetcher {
    gate: Gate,
    client: HttpClient,
    time_max: Duration,
    page_bytes_max: usize,
    wire_bytes_max: u64,
}

impl Fetcher {
    /// A fetcher over the machine's network that believes these authorities.
    pub fn new(rules: Rules, resolver: impl Resolver, authorities: &Authorities) -> Self {
        Self::over(rules, resolver, connection::Network, authorities.0.clone())
    }

    /// A fetcher over `dialer` that believes certificates of `roots`.
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
