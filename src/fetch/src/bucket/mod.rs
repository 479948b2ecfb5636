//! A bucket of a store of objects by key, which are whole or in parts: S3 and those with its
//! interface, Google's, and Azure's.
//!
//! ```text
//! request -> signature -> HTTP -> 2xx, 404, or the refusal of a condition, which are answers
//!    ^                     |
//!    '---- pause ----------'  lost connections, 408, 409, 429, 5xx: RETRIES times, each pause
//!                             twice as long as the one before
//! ```
//! The address is the operator's, so it does not pass the gate of pages. The store compares every
//! body that it gets with the hash in its signature, where the request has one: no token
//! has, and no request to Azure.
//!
//! - `url`: names of places; `request`: requests as data; `dialect`: the differences between
//!   stores, all of which are in `s3`, `google`, `azure` and what they use
//! - `credentials`: keys and tokens; `profile`: those of the environment and of AWS's files;
//!   `roles`, `tokens`: those of services, which `service` asks; `provider`: those that are
//!   renewed; `sign`: signatures
//! - `client`: requests and their retries; `limits`: their times; `read`: objects that are read;
//!   `write`: those that are written; `parts`: those that are sent in parts; `list`: listings;
//!   `answers`: bodies in XML

mod answers;
mod azure;
mod client;
mod credentials;
mod dialect;
mod google;
mod limits;
mod list;
mod parts;
mod profile;
mod provider;
mod read;
mod request;
mod roles;
mod s3;
mod service;
mod sign;
mod tokens;
mod url;
mod write;

use std::time::Duration;

use lodestone_types::ErrorKind;

pub use client::Bucket;
pub use request::{Condition, Put, Version};
pub use url::{BucketOptions, BucketUrl};

/// Waits for a time, less where the work is to end; returns whether it is.
pub type Pause = dyn Fn(Duration) -> bool + Send + Sync;

/// An error of a bucket.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// An address, a region or an endpoint that cannot be used.
    #[error("{problem}")]
    Invalid {
        /// The rule that is broken.
        problem: String,
    },
    /// Credentials that are missing or cannot be read.
    #[error("{problem}")]
    Credentials {
        /// The place where they are looked for.
        problem: String,
    },
    /// The store refused a request.
    #[error("{place}: the store refused {what}: {status} {code}: {message}")]
    Refused {
        /// The bucket and prefix, and the address of the store.
        place: String,
        /// The request.
        what: String,
        /// The status of the answer.
        status: u16,
        /// The store's word for the reason.
        code: String,
        /// The store's text for people.
        message: String,
    },
    /// The store cannot be reached, or sends what is no answer.
    #[error("{place}: no usable answer to {what}: {problem}")]
    Unreachable {
        /// The bucket and prefix, and the address of the store.
        place: String,
        /// The request.
        what: String,
        /// The error of the connection.
        problem: String,
    },
    /// The work is to end.
    #[error("given up, because the server stops")]
    Stopped,
}

impl BucketError {
    /// The store's word for the reason of a refusal, or nothing.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// Whether the store may have refused expired credentials. Some stores say only that they do
    /// not know them, and an answer to HEAD has no body.
    fn may_mean_expired(&self) -> bool {
        let codes = ["ExpiredToken", "InvalidToken", "InvalidAccessKeyId", ""];
        match self {
            Self::Refused { status: 401, .. } => true,
            Self::Refused { status: 400 | 403, code, .. } => codes.contains(&&**code),
            _ => false,
        }
    }

    /// The kind of error: it says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::Credentials { .. } => ErrorKind::Invalid,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Stopped => {
                ErrorKind::Unavailable
            }
        }
    }
}
