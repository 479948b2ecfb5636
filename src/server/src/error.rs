//! The error type of the API: a condition, a reason and a message (docs/api.md, "Errors").
//!
//! - `openai`: its form in the OpenAI-compatible interface

mod openai;
pub use openai::ErrorForm;

use axum::body::Body;
use axum::response::Response;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

use crate::response_notes::{self, tell_degraded};
use lodestone_types::id::InvalidIdentifier;

/// Seconds after which a client should retry when a queue or the disk is full.
const RETRY_SECONDS: u32 = 5;

/// A class of errors, which determines the status, and `error` and `error_code` of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The request is invalid.
    Invalid,
    /// The key is missing or grants nothing.
    Unauthorized,
    /// The role of the key does not permit the operation.
    Forbidden,
    /// Unknown tenant, or one outside the key's scope.
    TenantNotFound,
    /// Unknown sub-tenant, or one outside the key's scope.
    SubTenantNotFound,
    /// Unknown source.
    SourceNotFound,
    /// Unknown memory.
    MemoryNotFound,
    /// Unknown rows of client vectors.
    EmbeddingsNotFound,
    /// Unknown API key.
    KeyNotFound,
    /// Unknown webhook.
    WebhookNotFound,
    /// Unknown job.
    JobNotFound,
    /// Unknown model, or a tenant outside the key's scope that was named as a model.
    ModelNotFound,
    /// There is no such path.
    RouteNotFound,
    /// The path does not support the method.
    MethodNotAllowed,
    /// The client stopped sending its body.
    RequestTimeout,
    /// The request conflicts with the current state.
    Conflict,
    /// The request exceeds a size limit.
    TooLarge,
    /// The request's media type is not accepted.
    UnsupportedMediaType,
    /// The request exceeds what the tenant may store.
    LimitReached,
    /// The key exceeds its request rate.
    RateLimited,
    /// An internal error of the server.
    Internal,
    /// The server cannot answer now; the client should retry later.
    Unavailable,
    /// This process cannot answer; only the writer can.
    AtWriter,
}

impl Condition {
    /// Returns the status, `error` and `error_code` of the condition.
    pub fn row(self) -> (StatusCode, &'static str, &'static str) {
        let not_found = |error| (StatusCode::NOT_FOUND, error, "NOT_FOUND");
        match self {
            Self::Invalid => (StatusCode::BAD_REQUEST, "Invalid request", "INVALID_PARAMETERS"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized", "UNAUTHORIZED"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "Forbidden", "FORBIDDEN"),
            Self::TenantNotFound => not_found("Tenant not found"),
            Self::SubTenantNotFound => not_found("Sub-tenant not found"),
            Self::SourceNotFound => not_found("Source not found"),
            Self::MemoryNotFound => not_found("Memory not found"),
            Self::EmbeddingsNotFound => not_found("Embeddings not found"),
            Self::KeyNotFound => not_found("API key not found"),
            Self::WebhookNotFound => not_found("Webhook not found"),
            Self::JobNotFound => not_found("Job not found"),
            Self::ModelNotFound => not_found("Model not found"),
            Self::RouteNotFound => not_found("Not found"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", "METHOD_NOT_ALLOWED")
            }
            Self::RequestTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "Request timeout", "REQUEST_TIMEOUT")
            }
            Self::Conflict => (StatusCode::CONFLICT, "Conflict", "CONFLICT"),
            Self::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "Payload too large", "PAYLOAD_TOO_LARGE")
            }
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported media type",
                "UNSUPPORTED_MEDIA_TYPE",
            ),
            Self::LimitReached => {
                (StatusCode::INSUFFICIENT_STORAGE, "Limit reached", "LIMIT_REACHED")
            }
            Self::RateLimited => {
                (StatusCode::TOO_MANY_REQUESTS, "Too many requests", "RATE_LIMITED")
            }
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal server error",
                "INTERNAL_SERVER_ERROR",
            ),
            Self::Unavailable | Self::AtWriter => {
                (StatusCode::SERVICE_UNAVAILABLE, "Service unavailable", "SERVICE_UNAVAILABLE")
            }
        }
    }
}

/// Part of the request that holds an invalid value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The query string.
    Query,
    /// A form part.
    Form,
    /// A member of the JSON body.
    Body,
    /// A header.
    Header,
    /// A part of the path.
    Path,
}

impl Location {
    /// The word used for it in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Form => "form",
            Self::Body => "body",
            Self::Header => "header",
            Self::Path => "path",
        }
    }
}

/// A failed request as its client will see it. The request id is added when the body is built.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.message)]
pub struct ApiError(Box<Parts>);

/// Boxed so that a `Result` does not grow to the size of the error.
#[derive(Debug, Clone, PartialEq)]
struct Parts {
    condition: Condition,
    reason: &'static str,
    message: String,
    errors: Vec<(Location, String)>,
    retry_after_seconds: Option<u32>,
    allow: Option<String>,
    members: Map<String, Value>,
    ignored: Vec<String>,
    cause: Option<String>,
    degraded: Vec<String>,
}

impl ApiError {
    /// Creates an error; `reason` is a stable identifier, `message` is for people.
    pub fn new(condition: Condition, reason: &'static str, message: impl Into<String>) -> Self {
        let retry_after_seconds = match condition {
            Condition::Unavailable => Some(RETRY_SECONDS),
            Condition::RateLimited | Condition::AtWriter => Some(1),
            _ => None,
        };
        Self(Box::new(Parts {
            condition,
            reason,
            message: message.into(),
            errors: Vec::new(),
            retry_after_seconds,
            allow: None,
            members: Map::new(),
            ignored: Vec::new(),
            cause: None,
            degraded: Vec::new(),
        }))
    }

    /// Creates a 400 with a reason.
    pub fn invalid(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Condition::Invalid, reason, message)
    }

    /// Creates a 400 about one field: the message becomes `<field> <problem>`.
    pub fn field(reason: &'static str, location: Location, field: &str, problem: &str) -> Self {
        Self::invalid(reason, format!("{field} {problem}")).at(location, field)
    }

    /// Creates the 404 for a tenant that does not exist or is out of the key's reach, alike.
    pub fn tenant_not_found() -> Self {
        let message = "tenant_id does not exist or this key has no access to it";
        Self::new(Condition::TenantNotFound, "tenant_not_found", message)
    }

    /// Creates the 404 for a sub-tenant that does not exist or is out of the key's reach, alike.
    pub fn sub_tenant_not_found() -> Self {
        let message = "sub_tenant_id does not exist or this key has no access to it";
        Self::new(Condition::SubTenantNotFound, "sub_tenant_not_found", message)
    }

    /// Creates the 404 for an unknown source.
    pub fn source_not_found() -> Self {
        let message = "the source does not exist in the addressed tenant and sub-tenant";
        Self::new(Condition::SourceNotFound, "source_not_found", message)
    }

    /// Creates a 413 with a reason (`file_too_large`, `body_too_large`, `content_too_large`).
    pub fn too_large(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Condition::TooLarge, reason, message)
    }

    /// Creates a 405 that lists the methods supported by the path.
    pub fn method_not_allowed(allow: String) -> Self {
        let message = format!("this path supports {allow}");
        let mut error = Self::new(Condition::MethodNotAllowed, "method_not_allowed", message);
        error.0.allow = Some(allow);
        error
    }

    /// Creates the 503 of a query node, which forwards the request to the writer if it can, and of
    /// a server that may have been succeeded by another writer.
    pub fn at_writer() -> Self {
        let message =
            "this server does not have the newest state and cannot reach the writer; try again";
        Self::new(Condition::AtWriter, "node_behind", message)
    }

    /// Creates a 500. `cause` goes to the log, never to the client.
    pub fn internal(cause: impl Into<String>) -> Self {
        let message = "the server could not complete the request; see the server log";
        let mut error = Self::new(Condition::Internal, "internal", message);
        error.0.cause = Some(cause.into());
        error
    }

    /// Adds a cause for the log, which the client does not see.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Adds an entry to `detail.errors`, whose message is the error's own.
    #[must_use]
    pub fn at(mut self, location: Location, field: &str) -> Self {
        self.0.errors.push((location, field.to_owned()));
        self
    }

    /// Qualifies the fields with the member that contains them: `question` becomes
    /// `history[0].question`; a field that names the list itself becomes its entry.
    #[must_use]
    pub fn within(mut self, member: &str) -> Self {
        for (_, field) in &mut self.0.errors {
            let place = match member.strip_prefix(field.as_str()) {
                Some(rest) if rest.is_empty() || rest.starts_with('[') => member.to_owned(),
                _ => format!("{member}.{field}"),
            };
            if self.0.message.starts_with(field.as_str()) {
                self.0.message.replace_range(..field.len(), &place);
            }
            *field = place;
        }
        self
    }

    /// Adds a member at the top level of the body (`not_found`, `failed`).
    #[must_use]
    pub fn with_member(mut self, name: &str, value: Value) -> Self {
        self.0.members.insert(name.to_owned(), value);
        self
    }

    /// Lists the ignored parameters, since one of them may be the reason for the error.
    #[must_use]
    pub fn with_ignored(mut self, names: &[String]) -> Self {
        self.0.ignored = names.to_vec();
        self
    }

    /// Sets `Retry-After` to at least 1 second.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds.max(1));
        self
    }

    /// Lists the parts of the data that were missing when the request was answered.
    #[must_use]
    pub fn with_degraded(mut self, degraded: Vec<String>) -> Self {
        self.0.degraded = degraded;
        self
    }

    /// Returns the class of the error.
    pub fn condition(&self) -> Condition {
        self.0.condition
    }

    /// Returns the stable identifier of the error.
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the cause for the log, which the client does not see.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }

    /// Builds the body of the response, which is also the data of a stream's `error` event.
    pub fn body(&self, request_id: &str) -> Value {
        let (_, error, error_code) = self.0.condition.row();
        let mut detail = Map::new();
        detail.insert("success".into(), Value::Bool(false));
        detail.insert("message".into(), self.0.message.clone().into());
        detail.insert("error_code".into(), error_code.into());
        if !self.0.errors.is_empty() {
            let entry = |(location, field): &(Location, String)| {
                json!({
                    "location": location.as_str(), "field": field, "message": self.0.message,
                })
            };
            detail.insert("errors".into(), self.0.errors.iter().map(entry).collect());
        }
        let mut body = Map::new();
        body.insert("error".into(), error.into());
        body.insert("message".into(), self.0.message.clone().into());
        body.insert("success".into(), Value::Bool(false));
        body.insert("error_code".into(), error_code.into());
        body.insert("reason".into(), self.0.reason.into());
        body.insert("request_id".into(), request_id.into());
        body.insert("detail".into(), Value::Object(detail));
        for (name, value) in &self.0.members {
            body.insert(name.clone(), value.clone());
        }
        if !self.0.ignored.is_empty() {
            body.insert(response_notes::IGNORED_MEMBER.into(), self.0.ignored.clone().into());
        }
        Value::Object(body)
    }

    /// Builds the response, with the headers that its status requires.
    pub fn into_response(self, request_id: &str) -> Response {
        self.into_response_as(ErrorForm::Own, request_id)
    }

    /// Builds the response with a body of the given form.
    pub fn into_response_as(self, form: ErrorForm, request_id: &str) -> Response {
        let (status, ..) = self.0.condition.row();
        let mut response = Response::new(Body::from(self.body_as(form, request_id).to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.0.condition == Condition::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response_notes::tell_ignored(headers, &self.0.ignored);
        if let Some(seconds) = self.0.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.0.allow {
            let allow = HeaderValue::try_from(allow).expect("method names are header text");
            headers.insert(ALLOW, allow);
        }
        tell_degraded(headers, &self.0.degraded);
        response
    }
}

impl From<InvalidIdentifier> for ApiError {
    fn from(error: InvalidIdentifier) -> Self {
        Self::invalid("invalid_identifier", error.to_string())
    }
}

#[cfg(test)]
mod tests;
