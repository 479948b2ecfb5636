//! In-process calls of operations in the table of routes.

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;

use crate::frame::outer::RequestId;
use crate::mcp::Counted;
use crate::mcp::caller::Caller;
use lodestone_types::{ResultMemory, Stopped};

/// Largest response that a tool reads, in bytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Memory reserved per byte of a response: a number of one digit takes a value of 72 bytes.
const BYTES_PER_ANSWER_BYTE: u64 = 40;

/// A refused operation, explained in words that a model can act on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}{origin}")]
pub(super) struct Refusal {
    /// The cause and the remedy.
    pub message: String,
    /// The operation's own reason and request id, in brackets; empty if no operation was called.
    origin: String,
    /// Whether the same call may succeed later.
    pub is_passing: bool,
}

impl Refusal {
    /// Creates a refusal that no operation produced.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), origin: String::new(), is_passing: false }
    }

    /// Rewrites a message that starts with a member of the operation's body, for callers who know
    /// that member as an argument of the tool. `names` holds pairs of a member and its argument.
    #[must_use]
    pub fn in_words_of(mut self, names: &[(&str, &str)]) -> Self {
        let is_whole = |rest: &&str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = names.iter().find_map(|(member, argument)| {
            let rest = self.message.strip_prefix(member).filter(is_whole)?;
            Some(format!("{argument}{rest}"))
        });
        self.message = named.unwrap_or(self.message);
        self
    }
}

/// The table of routes without the outer layers.
#[derive(Debug)]
pub(super) struct Api {
    table: Router,
    prefix: String,
}

/// An operation to call, with its input.
#[derive(Debug)]
pub(super) struct Operation<'a> {
    /// The method.
    pub method: Method,
    /// The path in the table of routes.
    pub path: &'static str,
    /// Parameters for the query string.
    pub query: Vec<(&'a str, String)>,
    /// The JSON body; null if there is none.
    pub body: Value,
}

impl Api {
    /// Wraps the operations of `table`, whose paths start with `prefix`.
    pub fn new(table: Router, prefix: &str) -> Self {
        Self { table, prefix: prefix.to_owned() }
    }

    /// Runs an operation with the caller's key.
    ///
    /// # Errors
    /// The operation's own error.
    pub async fn call<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        operation: Operation<'_>,
    ) -> Result<T, Refusal> {
        let Operation { method, path, query, body } = operation;
        let query: String = Serializer::new(String::new()).extend_pairs(query).finish();
        let body = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}?{query}", self.prefix))
            .header(AUTHORIZATION, &caller.authorization)
            .header(CONTENT_TYPE, "application/json")
            .extension(RequestId(caller.request_id.clone()))
            .extension(Counted);
        if let Some(peer) = &caller.peer {
            request = request.extension(peer.clone());
        }
        let request = request.body(Body::from(body));
        let request = request.map_err(|error| Refusal::new(format!("{path}: {error}")))?;
        let response = self.table.clone().oneshot(request).await;
        let (parts, body) = response.unwrap_or_else(|never| match never {}).into_parts();
        let read = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let bytes = read.map_err(|_| {
            let megabytes = ANSWER_BYTES_MAX >> 20;
            Refusal::new(format!("the answer has more than {megabytes} MiB: ask for fewer results"))
        })?;
        let bytes = bytes.to_bytes();
        if !caller.results.reserve(bytes.len() as u64 * BYTES_PER_ANSWER_BYTE) {
            let refusal = Refusal::new(Stopped::OutOfMemory.to_string());
            return Err(Refusal { is_passing: true, ..refusal });
        }
        if parts.status != StatusCode::OK {
            return Err(refused(parts.status, &bytes));
        }
        serde_json::from_slice(&bytes).map_err(|error| Refusal::new(format!("{path}: {error}")))
    }
}

fn refused(status: StatusCode, body: &[u8]) -> Refusal {
    let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let message = match body["message"].as_str() {
        Some(message) => message.to_owned(),
        None => format!("the operation failed with status {}", status.as_u16()),
    };
    let named = [("reason", ""), ("request_id", "request ")].into_iter();
    let named = named.filter_map(|(name, label)| Some(format!("{label}{}", body[name].as_str()?)));
    let named: Vec<String> = named.collect();
    let origin = match named.is_empty() {
        true => String::new(),
        false => format!(" ({})", named.join(", ")),
    };
    let is_passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    Refusal { message, origin, is_passing }
}
