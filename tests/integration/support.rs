//! A server in this process: a real engine on a temporary directory, called through its router.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use lodestone_answer::generate::GeneratorSettings;
use lodestone_embed::{Embedder, HashEmbedder};
use lodestone_engine::settings::Settings;
use lodestone_engine::{Components, Engine};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::patience::Patience;

/// The admin key of every test server.
pub const KEY: &str = "operator-key-of-the-integration-tests-0001";

/// A response whose body has been read completely.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Reply {
    /// Parses the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.bytes)))
    }

    /// Parses the body as JSON after checking that the status is 200.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.bytes));
        self.json()
    }

    /// Parses the body as JSON after checking that it is a standard error, or an error in the
    /// format of the paths below `/v1`.
    pub fn error(&self, status: u16, reason: &str) -> Value {
        let body = self.json();
        assert_eq!(self.status, status, "{body}");
        if body["error"].is_object() {
            assert_eq!(body["error"]["code"], reason, "{body}");
            return body;
        }
        assert_eq!(body["reason"], reason, "{body}");
        assert!(body["error"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert_eq!(body["detail"]["message"], body["message"], "{body}");
        assert_eq!(body["success"], false, "{body}");
        body
    }
}

/// A part of a multipart form: field name, file name if it is a file, content.
pub type Part<'a> = (&'a str, Option<&'a str>, &'a [u8]);

/// A server that lives as long as the test.
pub struct TestServer {
    pub engine: Arc<Engine>,
    router: Router,
    runtime: tokio::runtime::Runtime,
    dir: Option<TempDir>,
}

/// Configures the generator in a server's settings.
pub fn use_generator(settings: &mut Settings, llm: GeneratorSettings) {
    settings.llm_base_url = Some(llm.base_url);
    settings.llm_api_key = llm.api_key;
    settings.llm_model = Some(llm.model);
    settings.llm_context_tokens = llm.context_tokens;
}

impl TestServer {
    /// Starts a fresh server with the test embedding model.
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts a fresh server with changed settings.
    pub fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::open(TempDir::new().expect("a temporary directory"), change)
    }

    /// Starts a fresh server with changed settings and components.
    pub fn start_with_parts(
        settings: impl FnOnce(&mut Settings),
        parts: impl FnOnce(&mut Components),
    ) -> Self {
        Self::open_with(TempDir::new().expect("a temporary directory"), settings, parts)
    }

    /// Stops this server and starts another one on the same directory.
    pub fn restart(self) -> Self {
        self.restart_with(|_| {})
    }

    /// Stops this server and starts another one with changed settings on the same directory.
    pub fn restart_with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        let dir = self.dir.take().expect("a server has its directory until it is restarted");
        self.engine.shut_down();
        drop(self);
        Self::open(dir, change)
    }

    fn open(dir: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        Self::open_with(dir, change, |_| {})
    }

    fn open_with(
        dir: TempDir,
        change: impl FnOnce(&mut Settings),
        parts: impl FnOnce(&mut Components),
    ) -> Self {
        let mut settings = Settings::new(dir.path().join("data"), "unused".into());
        settings.admin_key = Some(KEY.to_owned());
        change(&mut settings);
        let embedder: Arc<dyn Embedder> = Arc::new(HashEmbedder);
        let mut components = Components::real(embedder);
        parts(&mut components);
        let engine = Engine::start(settings, components).expect("the engine starts");
        let router =
            lodestone_server::product_router(Arc::clone(&engine), lodestone_server::never_stops());
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self { engine, router, runtime, dir: Some(dir) }
    }

    /// Sends a request unchanged.
    pub fn send(&self, request: Request<Body>) -> Reply {
        let router = self.router.clone();
        self.runtime.block_on(async move {
            let response = router.oneshot(request).await.expect("the router always answers");
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.expect("a body").to_bytes().to_vec();
            Reply { status: parts.status.as_u16(), headers: parts.headers, bytes }
        })
    }

    /// Sends a JSON request and disconnects as soon as `begun` reports that its work has started.
    pub fn leave(&self, path: &str, body: &Value, begun: impl Fn() -> bool) {
        let request = Request::post(path).header("authorization", format!("Bearer {KEY}"));
        let request = request.body(Body::from(body.to_string())).expect("a request");
        let router = self.router.clone();
        let asking = self.runtime.spawn(router.oneshot(request));
        let mut patience = Patience::new();
        while !begun() {
            assert!(!asking.is_finished() && !patience.is_over(()), "{path} is not at work");
        }
        asking.abort();
    }

    /// Sends JSON (no body for `null`) with the given key.
    pub fn call_as(&self, key: &str, method: &str, path: &str, body: &Value) -> Reply {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        let body = match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        };
        self.send(request.body(body).expect("a request"))
    }

    /// Sends JSON with the admin key.
    pub fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.call_as(KEY, method, path, &body)
    }

    /// Sends a GET request with the admin key.
    pub fn get(&self, path: &str) -> Reply {
        self.call("GET", path, Value::Null)
    }

    /// Sends a POST request with JSON and the admin key.
    pub fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, body)
    }

    /// Sends a multipart form with the admin key.
    pub fn form(&self, method: &str, path: &str, parts: &[Part<'_>]) -> Reply {
        self.form_as(KEY, method, path, parts)
    }

    /// Sends a multipart form with the given key.
    pub fn form_as(&self, key: &str, method: &str, path: &str, parts: &[Part<'_>]) -> Reply {
        const BOUNDARY: &str = "boundary-of-the-tests";
        let mut body = Vec::new();
        for (name, filename, bytes) in parts {
            body.extend(format!("--{BOUNDARY}\r\n").into_bytes());
            let file = filename.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
            let line = format!("content-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            body.extend(line.into_bytes());
            body.extend(*bytes);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(Body::from(body))
            .expect("a request");
        self.send(request)
    }

    /// Uploads a text and waits until it is searchable.
    pub fn index(&self, tenant: &str, sub_tenant: &str, id: &str, content: &str) {
        let path = format!("/upload/upload_text?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        self.post(&path, json!({"content": content, "file_id": id})).ok();
        assert_eq!(self.settled(tenant, sub_tenant, id)["status"], "success");
    }

    /// Waits until the latest job of a source has finished; returns its final status.
    pub fn settled(&self, tenant: &str, sub_tenant: &str, id: &str) -> Value {
        let path = format!(
            "/upload/verify_processing?file_id={id}&tenant_id={tenant}&sub_tenant_id={sub_tenant}"
        );
        let mut patience = Patience::new();
        loop {
            let status = self.post(&path, Value::Null).ok();
            assert_eq!(status["status"], status["indexing_status"]);
            match status["status"].as_str() {
                Some("success" | "errored") => return status,
                Some("queued" | "in_progress") => {}
                other => panic!("status {other:?}"),
            }
            assert!(!patience.is_over(status.clone()), "{id} is stuck: {status}");
        }
    }

    /// Returns the chunks of a hybrid search.
    pub fn retrieve(&self, tenant: &str, sub_tenant: &str, query: &str) -> Vec<Value> {
        let body = json!({"query": query, "tenant_id": tenant, "sub_tenant_id": sub_tenant});
        let found = self.post("/search/retrieve", body).ok();
        found["chunks"].as_array().expect("chunks").clone()
    }

    /// Returns the chunks of a full-text search.
    pub fn full_text(&self, tenant: &str, sub_tenant: &str, query: &str) -> Vec<Value> {
        let body = json!({"query": query, "tenant_id": tenant, "sub_tenant_id": sub_tenant});
        self.post("/search/full-text-search", body).ok().as_array().expect("an array").clone()
    }
}
