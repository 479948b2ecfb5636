//! A server in this process whose clock advances only on request, and requests to it.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use lodestone_embed::{EmbedError, Embedder, EmbedderDouble, HashEmbedder, Lane};
use lodestone_engine::settings::Settings;
use lodestone_engine::{Components, Engine};
use lodestone_types::{Clock, ManualClock, RequestContext, Timestamp};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

use crate::canary;

/// The admin key.
pub const OPERATOR: &str = "operator-key-of-the-isolation-tests-00001";
const EPOCH_MILLIS: u64 = 1_757_402_409_000;
const BOUNDARY: &str = "boundary-of-the-isolation-tests";

/// The content of a request body.
#[derive(Debug, Clone)]
pub enum Content {
    Nothing,
    Json(Value),
    /// The parts of a form: field name, file name if it is a file, content.
    Form(Vec<(&'static str, Option<String>, Vec<u8>)>),
}

/// A request before it is encoded.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub content: Content,
    pub once: Option<String>,
}

impl Ask {
    pub fn new(method: &'static str, path: &str) -> Self {
        let (query, content, once) = (Vec::new(), Content::Nothing, None);
        Self { method, path: path.to_owned(), query, content, once }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.query.push((name, value.to_owned()));
        self
    }

    /// Adds the scope to the query string.
    pub fn of(self, tenant: &str, sub_tenant: &str) -> Self {
        self.with("tenant_id", tenant).with("sub_tenant_id", sub_tenant)
    }

    pub fn json(self, body: Value) -> Self {
        Self { content: Content::Json(body), ..self }
    }

    pub fn form(self, parts: Vec<(&'static str, Option<String>, Vec<u8>)>) -> Self {
        Self { content: Content::Form(parts), ..self }
    }

    fn request(&self, key: Option<&str>) -> Request<Body> {
        let pairs = self.query.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        let uri =
            if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) };
        let mut request = Request::builder().method(self.method).uri(uri);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        if let Some(once) = &self.once {
            request = request.header("idempotency-key", once);
        }
        let request = match &self.content {
            Content::Nothing => request.body(Body::empty()),
            Content::Json(body) => request
                .header("content-type", "application/json")
                .body(Body::from(body.to_string())),
            Content::Form(parts) => request
                .header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"))
                .body(Body::from(form(parts))),
        };
        request.expect("a request")
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        self.query.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        match &self.content {
            Content::Nothing => Ok(()),
            Content::Json(body) => write!(f, " {:.400}", body.to_string()),
            Content::Form(parts) => parts.iter().try_for_each(|(name, filename, bytes)| {
                let filename = filename.as_deref().unwrap_or_default();
                write!(f, " {name} {filename} {:.80}", String::from_utf8_lossy(bytes))
            }),
        }
    }
}

fn form(parts: &[(&'static str, Option<String>, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, filename, bytes) in parts {
        let file = filename.as_ref().map(|name| format!("; filename=\"{name}\""));
        let file = file.unwrap_or_default();
        let head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"{file}");
        body.extend(head.into_bytes());
        body.extend(b"\r\n\r\n");
        body.extend(bytes);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
    body
}

/// Percent-encodes a text for use in a URL.
pub fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A response whose body has been read completely.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Reply {
    /// Parses the body, or the last event of a stream, as JSON.
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.bytes);
        let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let is_stream = self.headers.get("content-type").is_some_and(|word| {
            word.to_str().is_ok_and(|word| word.starts_with("text/event-stream"))
        });
        let json = if is_stream { last.expect("an event") } else { &text };
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// A server that lives as long as the test.
pub struct TestServer {
    clock: Arc<ManualClock>,
    engine: Arc<Engine>,
    router: Router,
    runtime: tokio::runtime::Runtime,
    _dir: TempDir,
}

impl TestServer {
    pub fn start() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let mut settings = Settings::new(dir.path().join("data"), "unused".into());
        settings.admin_key = Some(OPERATOR.to_owned());
        let clock = Arc::new(ManualClock::new(Timestamp(EPOCH_MILLIS)));
        let mut components = Components::real(Arc::new(BlindEmbedder));
        components.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let engine = Engine::start(settings, components).expect("the engine starts");
        let router =
            lodestone_server::product_router(Arc::clone(&engine), lodestone_server::never_stops());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self { clock, engine, router, runtime, _dir: dir }
    }

    /// The server's clock in milliseconds since the Unix epoch.
    pub fn now(&self) -> u64 {
        self.clock.now().0
    }

    pub fn advance_millis(&self, millis: u64) {
        self.clock.advance_millis(millis);
    }

    /// Sends a request; with `None` it has no key.
    pub fn send(&self, key: Option<&str>, ask: &Ask) -> Reply {
        let (router, request) = (self.router.clone(), ask.request(key));
        self.runtime.block_on(async move {
            let response = router.oneshot(request).await.expect("the router always answers");
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.expect("a body").to_bytes().to_vec();
            Reply { status: parts.status.as_u16(), headers: parts.headers, bytes }
        })
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.engine.shut_down();
    }
}

/// The hashing test embedder, made blind to canaries: two queries that differ only in their
/// canaries have equal vectors, so that their responses can be compared byte by byte.
#[derive(Debug)]
struct BlindEmbedder;

impl EmbedderDouble for BlindEmbedder {
    fn embed_within(
        &self,
        lane: Lane,
        _: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        HashEmbedder.embed(lane, texts.iter().map(|text| canary::blank(text)).collect())
    }
}
