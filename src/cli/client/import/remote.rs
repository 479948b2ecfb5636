//! The server of another product, from which a collection is read.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;

use serde_json::Value;

use super::{ImportOptions, caller};
use crate::cli::authorities;
use crate::cli::client::failure::Failure;
use crate::cli::ingest::call::{CallError, FIRST_ATTEMPTS_MAX};
use crate::cli::ingest::stop::{HOW_TO_RESUME, Stop};
use crate::cli::transport::{Http, Payload, Request};

/// A server and one of its collections.
pub struct Remote<'a> {
    /// Name of the collection.
    pub collection: &'a str,
    http: Http,
    address: &'a str,
    stop: &'a Stop,
    key: &'static str,
    has_answered: Cell<bool>,
}

impl<'a> Remote<'a> {
    /// Creates a client of the server that the options name. The variable `key` holds its API key,
    /// which is sent in `header`.
    ///
    /// # Errors
    /// [`Failure::Usage`] if address or collection are missing or invalid.
    pub fn new(
        options: &'a ImportOptions,
        stop: &'a Stop,
        header: &'static str,
        key: &'static str,
    ) -> Result<Self, Failure> {
        let address = options.place.to_str().unwrap_or_default().trim_end_matches('/');
        if !address.starts_with("http://") && !address.starts_with("https://") {
            return Err(Failure::Usage(format!("{address}: must be an http or https address")));
        }
        let collection = options.collection.as_deref().unwrap_or_default();
        if collection.is_empty() {
            return Err(Failure::Usage("no collection: set one with --collection".to_owned()));
        }
        let trusted = authorities(options.server.ca_file.as_deref()).map_err(Failure::Usage)?;
        let value = std::env::var(key).ok().filter(|value| !value.is_empty());
        let http = Http::new(address, None, &trusted).with_key(header, value);
        Ok(Self { collection, http, address, stop, key, has_answered: Cell::new(false) })
    }

    /// Sends a GET, or a POST with a body. The request is repeated while the server is busy or
    /// unreachable, but only a few times before its first response.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn ask(&self, path: String, body: Option<&Value>) -> Result<Value, Failure> {
        let received = AtomicU64::new(0);
        let request = Request { path, body: body.map(Payload::Json) };
        let mut caller = caller(&self.http, self.stop, &received);
        if !self.has_answered.get() {
            caller.lost_attempts_max = FIRST_ATTEMPTS_MAX;
        }
        let answer = caller.call(&request).inspect(|_| self.has_answered.set(true));
        answer.map_err(|error| match error {
            CallError::Stopped => Failure::Failed(HOW_TO_RESUME.to_owned()),
            CallError::Refused(body) if body.status == 404 => Failure::NotFound(format!(
                "{}: collection {} not found",
                self.address, self.collection
            )),
            CallError::Refused(body) if matches!(body.status, 401 | 403) => Failure::NotAllowed(
                format!("{}: {} has no valid key for it", self.address, self.key),
            ),
            error => self.failed(&error.to_string()),
        })
    }

    /// Creates a failure of this server.
    pub fn failed(&self, problem: &str) -> Failure {
        Failure::Failed(format!("{}: {problem}", self.address))
    }
}
