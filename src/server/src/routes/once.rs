//! Idempotent requests: a repeated `Idempotency-Key` receives the first response again.

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::error::{ApiError, Condition};
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::response_notes::naming;
use lodestone_catalog::{RequestGuard, RequestStart};
use lodestone_types::{IdSource, SourceId, Timestamp};

/// Header that marks a replayed response.
const REPLAYED_HEADER: &str = "idempotency-replayed";

/// The response of a request that may have been carried out before.
#[derive(Debug)]
pub enum Once<T> {
    /// The request was carried out now.
    First(Json<T>),
    /// The request was carried out before, with this response.
    Replayed {
        /// Its status.
        status: u16,
        /// Its body.
        body: Vec<u8>,
    },
}

impl<T: Serialize + JsonSchema + Send + 'static> Reply for Once<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Json::<T>::schema(generator)
    }

    fn with_ignored(self, names: &[String]) -> Self {
        match self {
            Self::First(json) => Self::First(json.with_ignored(names)),
            Self::Replayed { status, body } => Self::Replayed { status, body: naming(body, names) },
        }
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let (status, body) = match self {
            Self::First(json) => return json.into_response(),
            Self::Replayed { status, body } => (status, body),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(status)
            .map_err(|_| ApiError::internal("a kept response has no valid status"))?;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
        Ok(response)
    }
}

/// Ids that a request generates. Every attempt of a request generates the same ids, so a retry
/// after an interrupted attempt replaces its data instead of duplicating it.
#[derive(Debug, Clone, Copy)]
pub struct RequestIds {
    nonce: [u8; 16],
    begun_at: Timestamp,
}

impl RequestIds {
    fn of(ticket: &RequestGuard) -> Self {
        Self { nonce: ticket.nonce(), begun_at: ticket.begun_at() }
    }

    /// Returns the id of the document at `index`, from 0.
    pub fn source(&self, index: usize) -> SourceId {
        self.id("doc_", index)
    }

    /// Returns the id of a batch of client vectors.
    pub fn batch(&self) -> SourceId {
        self.id("emb_", 0)
    }

    /// Returns the id of a memory.
    pub fn memory(&self) -> SourceId {
        self.id("mem_", 0)
    }

    fn id(&self, prefix: &str, index: usize) -> SourceId {
        let id = ItemIds { nonce: self.nonce, index }.wire_id(prefix, self.begun_at);
        SourceId::parse(&id).expect("generated ids parse")
    }
}

/// A source of bytes determined by nonce and index, which cannot be predicted without the nonce.
#[derive(Debug)]
struct ItemIds {
    nonce: [u8; 16],
    index: usize,
}

impl IdSource for ItemIds {
    fn fill(&self, bytes: &mut [u8]) {
        for (block, part) in bytes.chunks_mut(32).enumerate() {
            let mut hash = Sha256::new_with_prefix(self.nonce);
            hash.update((self.index as u64).to_le_bytes());
            hash.update((block as u64).to_le_bytes());
            part.copy_from_slice(&hash.finalize()[..part.len()]);
        }
    }
}

/// Runs `work` unless the request has been carried out before. Errors are not recorded, so the
/// request may be retried with the same key.
///
/// # Errors
/// 409 `idempotency_conflict` if the key was used for another request; 503 while the same request
/// is in progress; and the errors of `work`.
pub fn once<T: Serialize>(
    app: &App,
    call: &Call,
    work: impl FnOnce(Option<RequestIds>) -> Result<Json<T>, ApiError>,
) -> Result<Once<T>, ApiError> {
    let Some(idempotency) = &call.idempotency else { return Ok(Once::First(work(None)?)) };
    let (key, digest) = (&idempotency.key, idempotency.digest);
    let ticket = match app.engine.begin_request(call.grant()?, call.route, key, digest)? {
        RequestStart::Fresh(ticket) => ticket,
        RequestStart::Replay { status, body } => return Ok(Once::Replayed { status, body }),
        RequestStart::InFlight => {
            let message = "a request with this Idempotency-Key is in progress";
            let error = ApiError::new(Condition::Unavailable, "idempotency_in_flight", message);
            return Err(error.with_retry_after(1));
        }
        RequestStart::Mismatch => {
            let message = "this Idempotency-Key was already used for a different request";
            return Err(ApiError::new(Condition::Conflict, "idempotency_conflict", message));
        }
    };
    let reply = work(Some(RequestIds::of(&ticket)))?;
    let body = serde_json::to_vec(&reply.body).map_err(|error| {
        ApiError::internal(format!("a response cannot be serialized as JSON: {error}"))
    })?;
    if let Err(error) = app.engine.finish_request(ticket, reply.status.as_u16(), &body) {
        // The work is durable, and a repetition replaces it under the same ids.
        tracing::warn!(%error, "storing the response of an idempotency key failed");
    }
    Ok(Once::First(reply))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_generates_the_same_ids_again() {
        let ids = |nonce| RequestIds { nonce, begun_at: Timestamp(1_757_402_409_727) };
        assert_eq!(ids([1; 16]).source(0), ids([1; 16]).source(0));
        assert_ne!(ids([1; 16]).source(0), ids([1; 16]).source(1));
        assert_ne!(ids([1; 16]).source(0), ids([2; 16]).source(0));
        assert_eq!(ids([1; 16]).source(0).as_str().len(), "doc_".len() + 26);
    }
}
