//! Encoded copies of responses that never change, so that those who need no key cannot have the
//! same document compressed again and again.
//!
//! ```text
//! compression: chooses the coding, and encodes while its body is read
//!   -> here: puts the kept copy in place of a body that was never read
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderValue, Method, Request};
use tokio::sync::Mutex;

use crate::error::ApiError;

/// Marks a response whose body is the same for the life of the process, under a name that only this
/// body has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unchanging(pub &'static str);

/// The encoded copies, by name and coding.
pub(super) type Copies = Mutex<HashMap<(&'static str, HeaderValue), Bytes>>;

/// Replaces the body of an [`Unchanging`] response that is to be encoded by the kept copy, which
/// the first such response makes.
pub(super) async fn keep_encoded(
    State(copies): State<Arc<Copies>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let is_get = request.method() == Method::GET;
    let response = next.run(request).await;
    let name = response.extensions().get::<Unchanging>().filter(|_| is_get);
    let coding = response.headers().get(CONTENT_ENCODING);
    let (Some(Unchanging(name)), Some(coding)) = (name, coding) else { return response };
    let key = (*name, coding.clone());
    let (parts, body) = response.into_parts();
    // Others wait while the copy is made, instead of making it too.
    let mut copies = copies.lock().await;
    let copy = match copies.get(&key) {
        Some(copy) => copy.clone(),
        None => match to_bytes(body, usize::MAX).await {
            Ok(copy) => copies.entry(key).or_insert(copy).clone(),
            Err(error) => return ApiError::internal(error.to_string()).into_response(""),
        },
    };
    Response::from_parts(parts, Body::from(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use axum::{Router, middleware};
    use futures_util::stream;
    use tower::ServiceExt;
    use tower_http::compression::CompressionLayer;

    #[tokio::test]
    async fn an_unchanging_response_is_compressed_once_per_coding() {
        let read = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&read);
        let document = move || {
            let seen = Arc::clone(&seen);
            let text = stream::once(async move {
                seen.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>("document ".repeat(100))
            });
            let mut response = Response::new(Body::from_stream(text));
            response.extensions_mut().insert(Unchanging("document"));
            async { response }
        };
        let router = Router::new()
            .route("/", get(document))
            .layer(CompressionLayer::new())
            .layer(middleware::from_fn_with_state(Arc::<Copies>::default(), keep_encoded));
        let ask = async |method: Method, coding: &str| {
            let request = Request::builder().method(method).header("accept-encoding", coding);
            let request = request.body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap()
        };
        let read_with = async |coding: &str| {
            let response = ask(Method::GET, coding).await;
            let coded = response.headers().get(CONTENT_ENCODING).cloned();
            (coded, to_bytes(response.into_body(), usize::MAX).await.unwrap())
        };
        for (copies, coding) in [(1, "gzip"), (2, "br"), (3, "zstd")] {
            ask(Method::HEAD, coding).await;
            let first = read_with(coding).await;
            assert_eq!(first.0, Some(HeaderValue::from_static(coding)));
            assert!(!first.1.is_empty() && first.1.len() < 200, "{coding}");
            assert_eq!(read_with(coding).await, first);
            assert_eq!(read.load(Ordering::SeqCst), copies, "{coding}");
        }
        let (coded, plain) = read_with("identity").await;
        assert_eq!((coded, plain.len(), read.load(Ordering::SeqCst)), (None, 900, 4));
    }
}
