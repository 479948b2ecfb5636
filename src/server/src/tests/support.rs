//! A table with one route of each kind, three keys, and a way to send requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::auth::{AuthFailure, Authenticator};
use crate::dto::answers::QnaReply;
use crate::dto::search::Retrieve;
use crate::dto::upload::UploadDocument;
use crate::error::{ApiError, ErrorForm};
use crate::frame::{Frame, HttpSettings, router};
use crate::listen::pace::Pace;
use crate::reply::Json;
use crate::request::spool::Spooler;
use crate::request::{Call, Field, Fields, Kind, Request as Input};
use crate::routes::{Group, Route, RouteSpec, off_thread};
use crate::sse;
use crate::watch::HttpMeters;
use lodestone_engine::ingest::MemoryBudget;
use lodestone_fetch::Forwarder;
use lodestone_io::{DataDir, ProcessMemory, Space, SpaceGauge, Spills, StandInDisk};
use lodestone_types::access::KeyScope;
use lodestone_types::{Grant, ManualClock, Role, SeededIds};

/// Grants `<role>-key` its role; knows one expired key, and one that only the writer may know.
pub struct Keys;

impl Authenticator for Keys {
    fn is_at_hand(&self, _: &str) -> bool {
        true
    }

    fn authenticate(&self, token: &str) -> Result<Grant, AuthFailure> {
        if token == "expired-key" {
            return Err(AuthFailure::Expired);
        }
        if token == "newer-key" {
            return Err(AuthFailure::Behind);
        }
        let known = Rig::KEYS.iter().find(|(key, _)| *key == token);
        let (_, role) = known.ok_or(AuthFailure::Invalid)?;
        let key_id = format!("key_{}", role.as_str());
        Ok(Grant::new(key_id, *role, KeyScope::AllTenants))
    }
}

#[derive(Serialize, JsonSchema)]
struct Echo {
    request_id: String,
    path: BTreeMap<String, String>,
    idempotency: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Told {
    file: String,
    scope: String,
}

static ID: Field = Field::path("id", Kind::Identifier, "an id");

struct Item(String);

impl Input for Item {
    const FIELDS: &'static [&'static Field] = &[&ID];

    fn read(fields: &mut Fields) -> Result<Self, ApiError> {
        fields.required_text(&ID).map(Self)
    }
}

fn echo(call: Call, path: BTreeMap<String, String>) -> Json<Echo> {
    let idempotency = call.idempotency.map(|sent| format!("{} {:?}", sent.key, sent.digest));
    Json::new(Echo { request_id: call.request_id.to_string(), path, idempotency })
}

async fn plain(_: (), call: Call, (): ()) -> Result<Json<Echo>, ApiError> {
    Ok(echo(call, BTreeMap::new()))
}

async fn item(_: (), call: Call, item: Item) -> Result<Json<Echo>, ApiError> {
    Ok(echo(call, BTreeMap::from([("id".to_owned(), item.0)])))
}

async fn form(_: (), _: Call, upload: UploadDocument) -> Result<Json<Told>, ApiError> {
    let scope = format!("{}/{}", upload.scope.tenant, upload.scope.sub_tenant);
    Ok(Json::new(Told { file: upload.file.filename, scope }))
}

async fn search(_: (), _: Call, request: Retrieve) -> Result<Json<Told>, ApiError> {
    Ok(Json::new(Told { file: request.request.query, scope: request.scope.tenant.to_string() }))
}

/// Longer than a response kept in memory.
pub const LARGE_BYTES: usize = 1 << 20;

async fn large(_: (), _: Call, (): ()) -> Result<Json<Told>, ApiError> {
    Ok(Json::new(Told { file: "x".repeat(LARGE_BYTES), scope: String::new() }))
}

async fn stream(_: (), call: Call, (): ()) -> Result<QnaReply, ApiError> {
    let (events, stream) = sse::channel(ErrorForm::Own, call.request_id.clone(), call.spooler());
    tokio::task::spawn_blocking(move || events.send_last("done", &json!({})));
    Ok(QnaReply::Stream(stream))
}

async fn panic(_: (), _: Call, (): ()) -> Result<Json<Told>, ApiError> {
    panic!("secret")
}

async fn panic_off_thread(_: (), _: Call, (): ()) -> Result<Json<Told>, ApiError> {
    off_thread(|| panic!("secret")).await
}

async fn behind(_: (), _: Call, (): ()) -> Result<Json<Told>, ApiError> {
    Err(ApiError::at_writer())
}

async fn internal(_: (), _: Call, (): ()) -> Result<Json<Told>, ApiError> {
    Err(ApiError::internal("secret"))
}

fn table() -> Vec<Route<()>> {
    use Group::{Admin, Operations, Search, Upload};
    vec![
        Route::<()>::public("/open", "No key").handle(plain),
        Route::<()>::get("/echo", Operations, Role::Read, "Tells").handle(plain),
        Route::<()>::post("/echo", Operations, Role::Write, "Tells").json(1000).handle(plain),
        Route::<()>::get("/items/{id}", Operations, Role::Read, "Path").handle(item),
        Route::<()>::patch("/items/{id}", Operations, Role::Write, "Path").handle(item),
        Route::<()>::delete("/admin", Admin, Role::Admin, "Removes").handle(plain),
        Route::<()>::post("/admin", Admin, Role::Admin, "Makes").handle(plain),
        Route::<()>::post("/form", Upload, Role::Write, "Form").multipart(1000).handle(form),
        Route::<()>::post("/search", Search, Role::Read, "Search").handle(search),
        Route::<()>::post("/lines", Upload, Role::Write, "Lines").lines(1 << 30).handle(plain),
        Route::<()>::post("/behind", Search, Role::Read, "Elsewhere").handle(behind),
        Route::<()>::get("/large", Search, Role::Read, "Long").handle(large),
        Route::<()>::get("/stream", Search, Role::Read, "Events").handle(stream),
        Route::<()>::get("/panic", Operations, Role::Read, "Panics").handle(panic),
        Route::<()>::get("/panic-off-thread", Operations, Role::Read, "Panics")
            .handle(panic_off_thread),
        Route::<()>::get("/internal", Operations, Role::Read, "Fails").handle(internal),
    ]
}

/// A response, read to its end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
    pub json: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A router over the test table.
pub struct Rig {
    pub router: Router,
    pub spools: Spools,
}

/// A directory for the spill files of large bodies.
pub struct Spools {
    spooler: Spooler,
    _root: tempfile::TempDir,
}

impl Spools {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // A simulated disk, so that the real one does not matter.
        let disk = StandInDisk::default();
        let (total_bytes, free_bytes) = (2 << 40, 1 << 40);
        disk.pretend(Space { total_bytes, free_bytes, free_files: u64::MAX });
        let data = Arc::new(DataDir::open(root.path(), Arc::new(disk)).unwrap());
        let gauge = SpaceGauge::new(Arc::clone(&data), Arc::new(ManualClock::default()));
        let spills = Spills::new(data, Arc::new(gauge));
        Self { spooler: Spooler { spills, owner: "a".into() }, _root: root }
    }

    pub fn spooler(&self) -> Spooler {
        self.spooler.clone()
    }

    pub fn bytes(&self) -> u64 {
        self.spooler.spills.bytes()
    }
}

impl Rig {
    pub const KEYS: [(&'static str, Role); 3] =
        [("read-key", Role::Read), ("write-key", Role::Write), ("admin-key", Role::Admin)];

    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut HttpSettings)) -> Self {
        Self::made(None, change)
    }

    /// Creates a query node.
    pub fn node(forwarder: Arc<Forwarder>, change: impl FnOnce(&mut HttpSettings)) -> Self {
        Self::made(Some(forwarder), change)
    }

    fn made(forwarder: Option<Arc<Forwarder>>, change: impl FnOnce(&mut HttpSettings)) -> Self {
        let pace = Pace { window: Duration::from_millis(50), bytes_per_second_min: 1 };
        let mut settings = HttpSettings { pace, ..HttpSettings::default() };
        change(&mut settings);
        let spools = Spools::new();
        let frame = Frame {
            app: (),
            keys: Arc::new(Keys),
            clock: Arc::new(ManualClock::default()),
            ids: Arc::new(SeededIds::new(1)),
            spills: Arc::clone(&spools.spooler().spills),
            memory: Arc::new(MemoryBudget::new(Box::new(ProcessMemory), None, 0)),
            meters: HttpMeters::default(),
            writer: forwarder.map(|way| Arc::new(way.into())),
            peers: None,
            settings,
        };
        Self { router: router(table(), Router::new(), frame), spools }
    }

    /// Returns every operation, including the one that serves the OpenAPI document.
    pub fn specs(&self) -> Vec<RouteSpec> {
        let document = Route::<()>::public("/openapi.json", "").handle(plain);
        table().into_iter().chain([document]).map(|route| route.spec).collect()
    }

    pub fn keyed_routes(&self) -> Vec<(Method, &'static str)> {
        let keyed = self.specs().into_iter().filter(|spec| spec.role.is_some());
        keyed.map(|spec| (spec.method, spec.path)).collect()
    }

    pub fn paths(&self) -> BTreeMap<&'static str, Vec<Method>> {
        let mut paths: BTreeMap<&'static str, Vec<Method>> = BTreeMap::new();
        for spec in self.specs() {
            paths.entry(spec.path).or_default().push(spec.method);
        }
        paths
    }

    pub fn request(method: &Method, uri: &str, key: Option<&str>, body: &str) -> Request<Body> {
        let uri = uri.replace(['{', '}'], "");
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request.body(Body::from(body.to_owned())).unwrap()
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::from_str(&text).unwrap_or_default();
        Answer { status: parts.status, headers: parts.headers, text, json }
    }

    pub async fn get(&self, uri: &str, key: Option<&str>) -> Answer {
        self.send(Self::request(&Method::GET, uri, key, "")).await
    }
}

/// Builds a form of `(name, file name, content)`; returns its content type and its bytes.
pub fn multipart_body(parts: &[(&str, Option<&str>, &str)]) -> (String, Vec<u8>) {
    let mut body = String::new();
    for (name, filename, content) in parts {
        let filename = filename.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
        let disposition = format!("form-data; name=\"{name}\"{filename}");
        body.push_str(&format!("--B\r\ncontent-disposition: {disposition}\r\n\r\n{content}\r\n"));
    }
    body.push_str("--B--\r\n");
    ("multipart/form-data; boundary=B".into(), body.into_bytes())
}
