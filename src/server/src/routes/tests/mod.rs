//! Every operation over a real engine, through the router: the success case and the main error.

mod admin;
mod batches;
mod generated;
mod nodes;
mod reads;
mod uploads;

use crate::listen::never_stops;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::{App, Frame, HttpSettings, router};
use lodestone_answer::generate::Generator;
use lodestone_embed::HashEmbedder;
use lodestone_engine::settings::Settings;
use lodestone_engine::{Components, Engine};
use lodestone_fetch::Forwarder;
use lodestone_rank::Reranker;
use lodestone_types::{Clock, ManualClock, Timestamp};

const START: Timestamp = Timestamp(1_757_402_409_727);

/// A server without a socket.
struct Server {
    app: App,
    router: Router,
    /// The router of the writer: the server itself, unless it is a query node.
    writer: Router,
    clock: Arc<ManualClock>,
    key: String,
    _directory: TempDir,
}

/// A generator and a reranker, if there are any.
type Models = (Option<Arc<dyn Generator>>, Option<Arc<dyn Reranker>>);

/// A response that was read completely.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the body of a successful response.
    fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Checks for an error of the documented form and returns its body.
    fn fails(&self, status: u16, reason: &str) -> Value {
        let body = self.json();
        assert_eq!((self.status, &body["reason"]), (status, &json!(reason)), "{body}");
        assert_eq!(body["detail"]["message"], body["message"]);
        assert_eq!(body["success"], false);
        body
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// A call that is being built.
struct Sent<'a> {
    server: &'a Server,
    method: &'static str,
    path: String,
    key: Option<String>,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Sent<'_> {
    fn with_key(mut self, key: Option<&str>) -> Self {
        self.key = key.map(str::to_owned);
        self
    }

    fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn json(mut self, body: Value) -> Self {
        self.body = body.to_string().into_bytes();
        self.with_header("content-type", "application/json")
    }

    /// Adds a form of texts `(name, value)` and files `(name, file name, bytes)`.
    fn form(mut self, texts: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> Self {
        for (name, value) in texts {
            let part = format!(
                "--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
            self.body.extend(part.into_bytes());
        }
        for (name, filename, bytes) in files {
            let head = format!(
                "--B\r\nContent-Disposition: form-data; name=\"{name}\"; \
                 filename=\"{filename}\"\r\n\r\n"
            );
            self.body.extend(head.into_bytes());
            self.body.extend_from_slice(bytes);
            self.body.extend_from_slice(b"\r\n");
        }
        self.body.extend_from_slice(b"--B--\r\n");
        self.with_header("content-type", "multipart/form-data; boundary=B")
    }

    async fn answer(self) -> Answer {
        let mut request = Request::builder().method(self.method).uri(self.path.as_str());
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value.as_str());
        }
        let request = request.body(Body::from(self.body)).unwrap();
        let response = self.server.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Answer { status, headers, body }
    }
}

impl Server {
    fn start() -> Self {
        Self::made(None, HttpSettings::default())
    }

    /// Creates a server; with a forwarder, a query node beside the writer.
    fn made(forwarder: Option<Arc<Forwarder>>, http: HttpSettings) -> Self {
        Self::made_with((None, None), forwarder, http)
    }

    /// Creates a server whose answers a generator writes, and whose accurate searches a reranker
    /// orders, if there are any.
    fn made_with(
        (generator, reranker): Models,
        forwarder: Option<Arc<Forwarder>>,
        http: HttpSettings,
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let mut settings = Settings::new(directory.path().join("data"), "no-model".into());
        settings.ingest_threads = 1;
        let components = Components {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            generator,
            reranker,
            ..Components::real(Arc::new(HashEmbedder))
        };
        let (ids, frame_clock) = (Arc::clone(&components.ids), Arc::clone(&components.clock));
        let engine = Engine::start(settings, components).unwrap();
        let key = engine.take_first_key().unwrap().expose().to_owned();
        let (spills, memory) = (Arc::clone(engine.spills()), Arc::clone(engine.memory()));
        let app = App::new(engine, never_stops());
        let made = |way: Option<Arc<Forwarder>>| {
            let frame = Frame {
                keys: Arc::new(app.clone()),
                app: app.clone(),
                clock: Arc::clone(&frame_clock),
                ids: Arc::clone(&ids),
                spills: Arc::clone(&spills),
                memory: Arc::clone(&memory),
                meters: crate::watch::HttpMeters::default(),
                writer: way.map(|way| Arc::new(way.into())),
                peers: None,
                settings: http.clone(),
            };
            router(super::table(), Router::new(), frame)
        };
        let writer = made(None);
        let router = match forwarder {
            Some(forwarder) => made(Some(forwarder)),
            None => writer.clone(),
        };
        Self { app, router, writer, clock, key, _directory: directory }
    }

    fn send(&self, method: &'static str, path: impl Into<String>) -> Sent<'_> {
        let (path, key) = (path.into(), Some(self.key.clone()));
        Sent { server: self, method, path, key, headers: Vec::new(), body: Vec::new() }
    }

    async fn get(&self, path: impl Into<String>) -> Answer {
        self.send("GET", path).answer().await
    }

    async fn post(&self, path: impl Into<String>, body: Value) -> Answer {
        self.send("POST", path).json(body).answer().await
    }

    /// Uploads a text and waits until it is searchable.
    async fn text(&self, scope: &str, id: &str, content: &str) -> Value {
        let body = json!({"content": content, "file_id": id});
        let accepted = self.post(format!("/upload/upload_text?{scope}"), body).await.ok();
        assert_eq!(self.settled(scope, id).await["status"], "success");
        accepted
    }

    /// Returns the status of a source once processing has ended.
    async fn settled(&self, scope: &str, id: &str) -> Value {
        let deadline = Instant::now() + Duration::from_secs(600);
        loop {
            let path = format!("/upload/verify_processing?{scope}&file_id={id}");
            let status = self.send("POST", path).answer().await.ok();
            if status["status"] == "success" || status["status"] == "errored" {
                return status;
            }
            assert!(Instant::now() < deadline, "{status}");
            tokio::task::yield_now().await;
        }
    }

    /// Returns the time of the server's clock in whole seconds.
    fn clock_seconds(&self) -> u64 {
        self.clock.now().0 / 1000
    }

    /// Creates a key with a role for one tenant, optionally limited to one of its sub-tenants.
    async fn scoped_key(&self, role: &str, tenant: &str, sub_tenant: Option<&str>) -> String {
        let mut grant = json!({"tenant_id": tenant});
        if let Some(sub_tenant) = sub_tenant {
            grant["sub_tenant_ids"] = json!([sub_tenant]);
        }
        let body = json!({"name": "k", "role": role, "tenants": [grant]});
        let made = self.post("/admin/api_keys", body).await.ok();
        made["api_key"].as_str().unwrap().to_owned()
    }
}
