//! Client of a bucket in an object store, whose objects are written whole or in parts: S3 and
//! compatible stores, Google Cloud Storage, and Azure Blob Storage.
//!
//! ```text
//! request -> signature -> HTTP -> 2xx, 404, or a failed condition: returned as responses
//!    ^                     |
//!    '---- pause ----------'  lost connections, 408, 409, 429, 5xx: retried up to RETRIES times,
//!                             each pause about twice as long as the one before
//! ```
//! The operator sets the address, so it does not pass the gate for pages. Where requests are signed
//! with the hash of their body, the store compares both; requests with a token and requests to
//! Azure carry no such hash.
//!
//! - `url`: names of places; `request`: requests as data; `dialect`: the differences between
//!   stores, which are confined to `s3`, `google`, `azure` and the modules these use
//! - `credentials`: keys and tokens; `profile`: those from the environment and AWS's files;
//!   `roles`, `tokens`: those from services, which `service` calls; `provider`: their renewal;
//!   `sign`: signatures
//! - `client`: requests and retries; `limits`: their time limits; `read`: reading objects; `write`:
//!   writing and removing them; `parts`: multipart uploads; `list`: listings; `answers`: XML bodies

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

/// Waits for the given time, or until the process is to stop; returns whether it is to stop.
pub type Pause = dyn Fn(Duration) -> bool + Send + Sync;

/// Error of a bucket.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// An address, region or endpoint that cannot be used.
    #[error("{problem}")]
    Invalid {
        /// The rule that is broken.
        problem: String,
    },
    /// Credentials are missing or cannot be read.
    #[error("{problem}")]
    Credentials {
        /// Description, including where credentials are looked for.
        problem: String,
    },
    /// The store refused a request.
    #[error("{place}: the store refused {what}: {status} {code}: {message}")]
    Refused {
        /// The bucket and prefix, and the URL of the store.
        place: String,
        /// The request, by method and key.
        what: String,
        /// The status of the response.
        status: u16,
        /// The store's error code.
        code: String,
        /// The store's error message.
        message: String,
    },
    /// The store cannot be reached, or sends an invalid response.
    #[error("{place}: no valid response to {what}: {problem}")]
    Unreachable {
        /// The bucket and prefix, and the URL of the store.
        place: String,
        /// The request, by method and key.
        what: String,
        /// The error of the connection or the response.
        problem: String,
    },
    /// The process is to stop.
    #[error("aborted: the server is shutting down")]
    Stopped,
}

impl BucketError {
    /// The store's error code of a refusal; empty for other errors.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            _ => "",
        }
    }

    /// Whether the store may have refused expired credentials. Some stores only say that they do
    /// not know the key, and a response to HEAD has no body.
    fn may_mean_expired(&self) -> bool {
        let codes = ["ExpiredToken", "InvalidToken", "InvalidAccessKeyId", ""];
        match self {
            Self::Refused { status: 401, .. } => true,
            Self::Refused { status: 400 | 403, code, .. } => codes.contains(&&**code),
            _ => false,
        }
    }

    /// The error kind, which says what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::Credentials { .. } => ErrorKind::Invalid,
            Self::Refused { .. } | Self::Unreachable { .. } | Self::Stopped => {
                ErrorKind::Unavailable
            }
        }
    }
}
