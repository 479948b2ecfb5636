//! Response types of handlers, each of which also describes its body in the OpenAPI document.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::admission::Gate;
use crate::error::ApiError;
use crate::file_body::{self, FromFile};
use crate::frame::encoded::Unchanging;
use crate::request::spool;
use crate::response_notes::{naming, tell_degraded, tell_warnings};
use lodestone_engine::Spilled;
use lodestone_engine::ingest::MemoryShare;

/// A successful response.
pub trait Reply: Send + 'static {
    /// Media types of the body. The schema describes the first; the others are objects or text.
    const MEDIA_TYPES: &'static [&'static str] = &["application/json"];

    /// Returns the schema of the body.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Adds the names of ignored parameters, if the body has a member for them.
    #[must_use]
    fn with_ignored(self, _names: &[String]) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// Builds the HTTP response.
    ///
    /// # Errors
    /// 500 if the body cannot be serialized as JSON.
    fn into_response(self) -> Result<Response, ApiError>;
}

/// A JSON body, usually with status 200.
#[derive(Debug, Clone)]
pub struct Json<T> {
    /// The body.
    pub body: T,
    /// Parts missing from the answer because they are quarantined; normally empty.
    pub degraded: Vec<String>,
    /// The status: 200, except for readiness checks that fail.
    pub status: StatusCode,
    /// Names of parameters that were ignored.
    pub ignored: Vec<String>,
    /// Warnings, sent in a header because the body may be a bare array.
    pub warnings: Vec<String>,
}

impl<T> Json<T> {
    /// Wraps a complete body with status 200.
    pub fn new(body: T) -> Self {
        let (degraded, ignored, warnings) = Default::default();
        Self { body, degraded, status: StatusCode::OK, ignored, warnings }
    }

    /// Records the parts that the answer lacks.
    #[must_use]
    pub fn with_degraded(mut self, degraded: Vec<String>) -> Self {
        self.degraded = degraded;
        self
    }

    /// Adds warnings, which are sent in a header.
    #[must_use]
    pub fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }

    /// Sets status 503, for a server that is not ready.
    #[must_use]
    pub fn unavailable(mut self) -> Self {
        self.status = StatusCode::SERVICE_UNAVAILABLE;
        self
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Reply for Json<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }

    fn with_ignored(mut self, names: &[String]) -> Self {
        self.ignored = names.to_vec();
        self
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let json = serde_json::to_vec(&self.body).map_err(|error| {
            ApiError::internal(format!("a response cannot be serialized as JSON: {error}"))
        })?;
        let json = naming(json, &self.ignored);
        let mut response = json_response(json.into());
        *response.status_mut() = self.status;
        tell_degraded(response.headers_mut(), &self.degraded);
        tell_warnings(response.headers_mut(), &self.warnings);
        Ok(response)
    }
}

/// A JSON body without a member for ignored parameters, which only the header names.
#[derive(Debug)]
pub struct Bare<T> {
    /// The body.
    pub body: T,
    /// Parts that the answer lacks because they are quarantined.
    pub degraded: Vec<String>,
    /// Warnings, sent only in a header.
    pub warnings: Vec<String>,
    /// Reservation for the body's memory, held until the response has been built.
    pub held: Option<MemoryShare>,
}

impl<T> Bare<T> {
    /// Wraps a complete body.
    pub fn new(body: T) -> Self {
        Self { body, degraded: Vec::new(), warnings: Vec::new(), held: None }
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> Reply for Bare<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let Self { body, degraded, warnings, held: _ } = self;
        Json::new(body).with_degraded(degraded).with_warnings(warnings).into_response()
    }
}

/// Largest response kept in memory, and compressed on request, while the client reads it.
pub(super) const IN_MEMORY_BYTES_MAX: u64 = 128 << 10;

/// Moves a large response body to a file, so that it takes no memory while a slow client reads it.
/// If the disk is full, the body stays in memory, provided that the memory budget allows it.
pub(super) fn store_large(
    response: Response,
    gate: &Gate,
    owner: &Arc<str>,
) -> Result<Response, ApiError> {
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    if bytes <= IN_MEMORY_BYTES_MAX || response.extensions().get::<FromFile>().is_some() {
        return Ok(response);
    }
    let (mut parts, mut body) = response.into_parts();
    // An in-memory body consists of one frame, which is ready at once.
    let Some(Some(Ok(piece))) = body.frame().now_or_never() else {
        return Err(ApiError::internal("a body of known length is not in memory"));
    };
    let piece = piece.into_data().unwrap_or_default();
    let mut spill = gate.spills.begin(owner);
    let body = match spill.write_all(&piece) {
        Ok(()) => match spill.finish() {
            Ok(Spilled::File(spilled)) => {
                drop(piece);
                file_body::body_of_spilled(spilled)
            }
            Ok(Spilled::Memory(bytes)) => Body::from(bytes),
            Err(error) => return Err(ApiError::internal(error.to_string())),
        },
        Err(error) => match gate.memory.take(bytes, Duration::ZERO) {
            Some(share) => file_body::body_in_memory(piece, share),
            None => return Err(spool::refused(&error)),
        },
    };
    parts.extensions.insert(FromFile);
    Ok(Response::from_parts(parts, body))
}

/// A JSON text that was serialized beforehand and never changes.
#[derive(Debug, Clone)]
pub struct Document {
    /// A name that no other unchanging response has.
    pub name: &'static str,
    /// The text.
    pub json: Bytes,
}

impl Reply for Document {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "object"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let mut response = json_response(self.json);
        response.extensions_mut().insert(Unchanging(self.name));
        Ok(response)
    }
}

fn json_response(json: Bytes) -> Response {
    let mut response = Response::new(Body::from(json));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
