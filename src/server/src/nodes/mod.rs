//! Requests between nodes, separate from the API for clients.
//!
//! The messages are defined by the engine and may change with each release. Every request carries
//! the key shared by the nodes, and no part of a body is read before the key has been checked and a
//! permit acquired.
//!
//! - `ingest`: a process that does ingestion work for servers; `share`: parts of searches, run on
//!   query nodes

mod ingest;
mod share;

use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use tokio::time::timeout;

use crate::error::{ApiError, Condition};
use lodestone_engine::nodes::NodeRefusal;

pub use ingest::ingest_node;
pub use share::share_router;

/// Time allowed for receiving a complete body.
const BODY: Duration = Duration::from_secs(60);

type Answer = Result<Response, ApiError>;

fn sent(answer: Answer) -> Response {
    answer.unwrap_or_else(|error| error.into_response(""))
}

fn busy() -> ApiError {
    unavailable("this node is busy".to_owned())
}

fn unavailable(problem: String) -> ApiError {
    ApiError::new(Condition::Unavailable, "overloaded", problem)
}

async fn read(body: Body, bytes_max: usize) -> Result<Bytes, ApiError> {
    match timeout(BODY, to_bytes(body, bytes_max)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body ended early or is larger than {bytes_max} bytes");
            Err(ApiError::too_large("body_too_large", message))
        }
        Err(_) => {
            let message = "the body did not arrive within a minute";
            Err(ApiError::new(Condition::RequestTimeout, "body_timeout", message))
        }
    }
}

fn refused(refusal: NodeRefusal) -> ApiError {
    match refusal {
        NodeRefusal::Invalid(problem) => ApiError::invalid("invalid_value", problem),
        NodeRefusal::Busy(problem) => unavailable(problem),
        NodeRefusal::Failed(problem) => ApiError::internal(problem),
    }
}

pub(crate) fn json_response(value: &impl serde::Serialize) -> Response {
    let bytes = serde_json::to_vec(value).expect("plain data always prints");
    typed(bytes, "application/json")
}

fn bytes_response(bytes: Vec<u8>) -> Response {
    typed(bytes, "application/octet-stream")
}

fn typed(bytes: Vec<u8>, media: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
