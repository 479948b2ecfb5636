//! The HTTP layer of the server with the inputs of all operations; the handlers only report what
//! they received. And an example request for each operation.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use lodestone_engine::Spills;
use lodestone_engine::ingest::MemoryBudget;
use lodestone_io::{DataDir, ProcessMemory, RealDisk, SpaceGauge};
use lodestone_server::dto::{
    apps, archives, backups, batch, embeddings, graph, keys, memories, operations, passages,
    pictures, reembed, search, sources, tenant_limits, tenants, upload, v1, web, webhooks,
};
use lodestone_server::error::Location;
use lodestone_server::request::{Call, Field};
use lodestone_server::routes::{Group, Media, Route, RouteDraft, RouteSpec};
use lodestone_server::watch::HttpMeters;
use lodestone_server::{ApiError, AuthFailure, Authenticator, Frame, HttpSettings, Json, router};
use lodestone_types::{Grant, KeyScope, ManualClock, Role, SeededIds};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Accepts any key, with full access.
struct Keys;

impl Authenticator for Keys {
    fn is_at_hand(&self, _: &str) -> bool {
        true
    }

    fn authenticate(&self, _: &str) -> Result<Grant, AuthFailure> {
        Ok(Grant::new("key_1".to_owned(), Role::Admin, KeyScope::AllTenants))
    }
}

async fn told<R: Debug>(_: (), _: Call, input: R) -> Result<Json<String>, ApiError> {
    Ok(Json::new(format!("{input:?}")))
}

fn draft(method: &str, path: &'static str) -> RouteDraft {
    let draft = match method {
        "get" => Route::<()>::get,
        "patch" => Route::<()>::patch,
        "delete" => Route::<()>::delete,
        _ => Route::<()>::post,
    };
    draft(path, Group::Search, Role::Read, "told")
}

macro_rules! table {
    ($($method:ident $path:literal $input:ty $(, $media:ident $(($bytes:expr))?)?;)*) => {
        vec![$(
            draft(stringify!($method), $path)$(.$media($($bytes)?))?.handle(told::<$input>),
        )*]
    };
}

const BYTES: usize = 1 << 20;

fn table() -> Vec<Route<()>> {
    table! {
        post "/upload/upload_text" upload::UploadText;
        patch "/upload/update_text" upload::UpdateText;
        post "/upload/upload_document" upload::UploadDocument, multipart(BYTES);
        patch "/upload/update_document" upload::UpdateDocument, multipart(BYTES);
        patch "/upload/update_metadata" upload::UpdateMetadata;
        get "/upload/verify_processing" upload::VerifyProcessing;
        post "/upload/batch_upload" batch::BatchUpload, multipart(BYTES);
        patch "/upload/batch_update" batch::BatchUpdate, multipart(BYTES);
        post "/upload/batch_upload_text" batch::BatchUploadText;
        post "/upload/app_sources" apps::UploadAppSources;
        post "/upload/scrape_webpage" web::ScrapeWebpage;
        patch "/upload/update_webpage" web::UpdateWebpage;
        post "/upload/batch_scrape_webpage" web::BatchScrapeWebpage;
        delete "/delete" sources::DeleteSources;
        get "/list/sources" sources::ListSources;
        post "/list/sources_by_id" sources::SourcesById;
        post "/list/chunks" passages::ListChunks;
        post "/fetch/content" sources::FetchContent;
        post "/fetch/page_image" pictures::PageImage;
        post "/list/relations" graph::RelationsById;
        post "/search/retrieve" search::Retrieve;
        post "/search/full-text-search" search::FullTextSearch;
        post "/search/qna" search::Qna;
        post "/embeddings/upload" embeddings::UploadEmbeddings, json_or_npy(BYTES);
        patch "/embeddings/update" embeddings::UpdateEmbeddings;
        post "/embeddings/by_id" embeddings::NamedChunks;
        post "/embeddings/search" embeddings::SearchEmbeddings;
        post "/embeddings/scroll" embeddings::ScrollEmbeddings;
        post "/memories/add" memories::AddMemory;
        get "/memories/list" memories::ListMemories;
        delete "/memories/delete" memories::DeleteMemory;
        post "/memories/retrieve" memories::RetrieveMemories;
        post "/memories/generate" memories::GenerateMemories;
        get "/tenant/export" archives::ExportTenant;
        post "/tenant/import" archives::ImportTenant, lines(BYTES);
        post "/tenant/create" tenants::CreateTenant;
        post "/tenant/vectors" tenants::CreateVectorTenant;
        get "/tenant/stats" tenants::TenantStats;
        delete "/tenant/sub" tenants::DeleteSubTenant;
        delete "/tenant/delete" tenants::DeleteTenant;
        post "/admin/tenant_limits" tenant_limits::SetTenantLimits;
        post "/admin/api_keys" keys::CreateKey;
        post "/admin/webhooks" webhooks::CreateWebhook;
        get "/admin/deliveries" webhooks::ListDeliveries;
        post "/admin/backups" backups::BeginBackup;
        post "/admin/reembed" reembed::Reembed;
        get "/jobs" operations::ListJobs;
        post "/jobs/{job_id}/retry" operations::RetryJob;
        post "/v1/chat/completions" v1::chat::Chat;
        post "/v1/embeddings" v1::embeddings::Embed;
        post "/v1/rerank" v1::rerank::Rerank;
        post "/v1/files" v1::files::CreateFile, multipart(BYTES);
        get "/v1/files" v1::files::ListFiles;
        post "/v1/vector_stores" v1::vector_stores::CreateStore;
        get "/v1/vector_stores" v1::vector_stores::ListStores;
        post "/v1/vector_stores/{vector_store_id}" v1::vector_stores::UpdateStore;
        post "/v1/vector_stores/{vector_store_id}/files" v1::store_files::AttachFile;
        post "/v1/vector_stores/{vector_store_id}/file_batches" v1::store_files::CreateBatch;
        post "/v1/vector_stores/{vector_store_id}/search" v1::store_search::SearchStore;
    }
}

/// A value that conforms to a JSON schema.
fn sample(name: &str, schema: &Value) -> Value {
    if let Some(one) = schema["enum"].get(0).or(schema.get("default")) {
        return one.clone();
    }
    if let Some(any) = ["anyOf", "oneOf"].iter().find_map(|word| schema[word].get(0)) {
        return sample(name, any);
    }
    match schema["type"].as_str().unwrap_or_default() {
        "string" if name.contains("url") => json!("https://example.com/a"),
        "string" => json!("abc"),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(0.5)),
        "boolean" => json!(true),
        "array" => json!([sample(name, &schema["items"])]),
        "object" => match schema["properties"].as_object() {
            Some(all) => all.iter().map(|(name, one)| (name.clone(), sample(name, one))).collect(),
            None => json!({"a": {"$gte": 1}, "b": "x"}),
        },
        _ => json!({"a": [1, "b", null]}),
    }
}

/// A request to an operation with values for all fields or for the required ones.
fn example(spec: &RouteSpec, is_whole: bool) -> Vec<u8> {
    let wanted = |field: &&&Field| is_whole || field.is_required;
    let fields = spec.fields.iter().filter(wanted);
    let mut path = spec.path.replace(['{', '}'], "");
    let (mut body, mut form, mut sign) = (json!({}), String::new(), '?');
    for field in fields {
        let value = sample(field.name, &field.kind.schema());
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match field.location {
            Location::Query if spec.media != Media::Json => {
                path.push_str(&format!("{sign}{}={}", field.name, text.replace(['"', ' '], "")));
                sign = '&';
            }
            Location::Query | Location::Body if field.is_whole => body = value,
            Location::Query | Location::Body => body[field.name] = value,
            Location::Form => {
                let name = field.name;
                let file = if name.starts_with("file") { "; filename=\"a/b.txt\"" } else { "" };
                form.push_str(&format!(
                    "--B\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{text}\r\n"
                ));
            }
            _ => {}
        }
    }
    let body = match spec.media {
        Media::Multipart => format!("{form}--B--\r\n"),
        _ => body.to_string(),
    };
    format!("{} {path}\n\n{body}", spec.method).into_bytes()
}

/// The server, its files and a runtime to run it.
pub struct Api {
    router: Router,
    runtime: Runtime,
    _root: tempfile::TempDir,
}

/// A response: its status and content.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub status: u16,
    pub json: Value,
    pub trace: String,
}

impl Answer {
    /// The input that the operation received, or the reason of its rejection.
    pub fn meaning(&self) -> (u16, &Value) {
        let reasons = ["/reason", "/error/code"];
        let reason = reasons.into_iter().find_map(|place| self.json.pointer(place));
        (self.status, if self.status == 200 { &self.json } else { reason.unwrap_or(&Value::Null) })
    }
}

impl Api {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let data = Arc::new(DataDir::open(root.path(), Arc::new(RealDisk)).expect("a data dir"));
        let gauge = SpaceGauge::new(Arc::clone(&data), Arc::new(ManualClock::default()));
        let frame = Frame {
            app: (),
            keys: Arc::new(Keys),
            clock: Arc::new(ManualClock::default()),
            ids: Arc::new(SeededIds::new(1)),
            spills: Spills::new(data, Arc::new(gauge)),
            memory: Arc::new(MemoryBudget::new(Box::new(ProcessMemory), None, 0)),
            meters: HttpMeters::default(),
            writer: None,
            peers: None,
            settings: HttpSettings::default(),
        };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let router = router(table(), Router::new(), frame);
        Self { router, runtime, _root: root }
    }

    pub fn send(&self, request: Request<Body>) -> Answer {
        self.runtime.block_on(async {
            let sent = self.router.clone().oneshot(request);
            let answered = tokio::time::timeout(Duration::from_secs(30), sent).await;
            let response = answered.expect("an answer").expect("no router fails");
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.expect("a whole answer").to_bytes();
            let json = serde_json::from_slice(&bytes).unwrap_or_default();
            let trace = head.headers.get("traceparent").and_then(|value| value.to_str().ok());
            let trace = trace.unwrap_or_default().to_owned();
            Answer { status: head.status.as_u16(), json, trace }
        })
    }
}

/// Example requests for the selected operations.
pub fn examples(is_wanted: impl Fn(&RouteSpec) -> bool) -> Vec<Vec<u8>> {
    let specs = table().into_iter().map(|route| route.spec).filter(|spec| is_wanted(spec));
    specs.flat_map(|spec| [example(&spec, true), example(&spec, false)]).collect()
}
