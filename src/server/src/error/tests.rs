//! The response to every error, recorded in full.

use std::io::ErrorKind;
use std::time::Duration;

use super::Condition::*;
use super::*;
use lodestone_answer::generate::GenerateError;
use lodestone_catalog::CatalogError;
use lodestone_embed::EmbedError;
use lodestone_engine::archive::ArchiveError;
use lodestone_engine::backup::BackupError;
use lodestone_engine::ingest::{AppProblem, IngestError};
use lodestone_engine::query::QueryError;
use lodestone_engine::{EngineError, PictureError};
use lodestone_extract::ExtractError;
use lodestone_io::Fullness;
use lodestone_storage::collection::CollectionError;
use lodestone_storage::filter::FilterError;
use lodestone_types::metadata::InvalidMetadata;
use lodestone_types::schema::{FieldType, SchemaError};
use lodestone_types::{BlockedReason, CollectionId, SourceId, Stopped, TenantId, TenantMode};

/// Every condition, in order of declaration.
const CONDITIONS: &[Condition] = &[
    Invalid, Unauthorized, Forbidden, TenantNotFound, SubTenantNotFound, SourceNotFound,
    MemoryNotFound, EmbeddingsNotFound, KeyNotFound, WebhookNotFound, JobNotFound, ModelNotFound,
    RouteNotFound, MethodNotAllowed, RequestTimeout, Conflict, TooLarge, UnsupportedMediaType,
    LimitReached, RateLimited, Internal, Unavailable, AtWriter,
];

/// The row of each condition: status, `error`, `error_code`, type below `/v1`, header.
const ROWS: &str = include_str!("conditions.txt");
/// The row of each engine error: condition, reason, message, and the field named.
const ERRORS: &str = include_str!("errors.txt");

/// The whole response to each condition: status, headers, and every byte of the body in both forms.
#[tokio::test]
async fn every_condition_has_its_answer() {
    assert!(CONDITIONS.iter().enumerate().all(|(at, condition)| *condition as usize == at));
    let rows: Vec<&str> = ROWS.lines().collect();
    assert_eq!((rows.len(), CONDITIONS.last()), (CONDITIONS.len(), Some(&AtWriter)));
    for (&condition, row) in CONDITIONS.iter().zip(rows) {
        let cells: Vec<&str> = row.split('|').collect();
        let [name, status, error, code, kind, header] = cells[..] else { panic!("{row}") };
        assert_eq!(format!("{condition:?}"), name);
        let detail = format!(r#"{{"success":false,"message":"m","error_code":"{code}"}}"#);
        let own =
            format!(r#"{{"error":"{error}","message":"m","success":false,"error_code":"{code}","#)
                + &format!(r#""reason":"r","request_id":"id","detail":{detail}}}"#);
        let members = format!(r#""message":"m","type":"{kind}","param":null,"code":"r""#);
        let of_openai = format!(r#"{{"error":{{{members}}}}}"#);
        for (form, body) in [(ErrorForm::Own, own), (ErrorForm::OpenAi, of_openai)] {
            let answer = ApiError::new(condition, "r", "m").into_response_as(form, "id");
            let (parts, told) = answer.into_parts();
            let told = axum::body::to_bytes(told, usize::MAX).await.unwrap();
            assert_eq!(String::from_utf8_lossy(&told), body);
            assert_eq!(parts.status.as_str(), status, "{name}");
            let headers = parts.headers.iter();
            let headers = headers.map(|(name, it)| format!("{name}: {}", it.to_str().unwrap()));
            let mut headers: Vec<String> = headers.collect();
            headers.retain(|header| header != "content-type: application/json");
            assert_eq!(headers.join(", "), header, "{name}");
        }
    }
}

fn line(error: EngineError) -> String {
    let error = ApiError::from(error);
    let fields = error.0.errors.iter();
    let fields = fields.map(|(location, field)| format!(" @{} {field}", location.as_str()));
    let place: String = fields.collect();
    format!("{:?} {}: {}{place}\n", error.condition(), error.reason(), error.message())
}

/// Goal: each class of error has its response, and none reveals internal details (`hidden`).
#[test]
fn every_class_of_error_has_its_answer() {
    let told: String = errors().into_iter().map(line).collect();
    assert_eq!(told, ERRORS);
    assert!(!told.contains("hidden"));
}

/// One error of every class.
fn errors() -> Vec<EngineError> {
    let of_engine = [of_tenants(), of_documents(), of_writes(), of_server()];
    of_engine.into_iter().flatten().collect()
}

fn of_tenants() -> Vec<EngineError> {
    let tenant = || TenantId::parse("acme").unwrap();
    let (found, needed) = (TenantMode::EMBEDDINGS, TenantMode::Standard);
    let key = || "year".to_owned();
    let id = || "x".to_owned();
    vec![
        EngineError::TenantNotFound,
        EngineError::SubTenantNotFound,
        EngineError::Forbidden { need: "this needs a key for all tenants" },
        EngineError::TooManyRequests { max: 9, used: 9, wait_seconds: 7 },
        EngineError::ModelUnknown { known: vec!["one".to_owned(), "two".to_owned()] },
        EngineError::TenantExists { tenant: tenant() },
        EngineError::ModeMismatch { tenant: tenant(), found, needed },
        EngineError::DefaultProtected,
        EngineError::WebhookUrl { reason: BlockedReason::Address },
        EngineError::WebhookTenant { tenant: tenant() },
        EngineError::WebhookTestBusy,
        SchemaError::TooManyFields { count: 2, max: 1 }.into(),
        SchemaError::BadKey { key: key() }.into(),
        SchemaError::Reserved { key: key() }.into(),
        SchemaError::Duplicate { key: key() }.into(),
        SchemaError::WrongType { key: key(), expected: FieldType::Number }.into(),
        CatalogError::TenantLimit { limit: "sources", max: 3, used: 3, needed: 4 }.into(),
        CatalogError::IdempotencyLimit { used: 9, max: 8, wait_seconds: 7 }.into(),
        CatalogError::KeyUnknown { id: id() }.into(),
        CatalogError::ScopeTooWide.into(),
        CatalogError::WebhookUnknown { id: id() }.into(),
        CatalogError::WebhookLimit { whose: "the tenant acme".to_owned(), max: 5 }.into(),
        ArchiveError::Refused { line: 3, member: "chunk".to_owned(), problem: "is odd".to_owned() }
            .into(),
        ArchiveError::Cut { lines: 7 }.into(),
        ArchiveError::NotEmpty { tenant: tenant() }.into(),
        ArchiveError::OtherTenant { tenant: tenant(), what: "schema" }.into(),
        ArchiveError::Quarantined { segments: 2 }.into(),
        ArchiveError::Busy { what: "exports", max: 2 }.into(),
        ArchiveError::NoMemory.into(),
        ArchiveError::GivenUp.into(),
        BackupError::Refused { problem: "to must name a folder".to_owned() }.into(),
        BackupError::Busy.into(),
        BackupError::OtherData { directory: "/data".into() }.into(),
        BackupError::TenantUnknown { tenant: tenant() }.into(),
        BackupError::File { path: "/backups".into(), source: ErrorKind::NotFound.into() }.into(),
    ]
}

fn of_documents() -> Vec<EngineError> {
    let source_id = || SourceId::parse("s").unwrap();
    let problem = || "is odd".to_owned();
    let broken = [
        ExtractError::Unsupported { name: "a.bin".to_owned() },
        ExtractError::EmptyFile,
        ExtractError::NoText,
        ExtractError::OnlyPictures { format: "PDF" },
        ExtractError::Damaged { format: "CSV", line: 2, problem: problem() },
        ExtractError::Commented { format: "JSON", line: 2 },
        ExtractError::Broken { format: "DOCX", problem: problem() },
        ExtractError::Crashed { format: "PDF" },
        ExtractError::TooSlow { format: "PDF" },
        ExtractError::Encrypted { format: "PDF" },
        ExtractError::NoParser { problem: problem() },
        ExtractError::Killed { format: "PDF" },
        ExtractError::BeyondLimit { what: "pages", max: 5 },
        ExtractError::OutOfMemory { format: "PDF" },
    ];
    let pictures = [
        PictureError::NoPages { source_id: source_id() },
        PictureError::NoMemory,
        ExtractError::PageUnknown { page: 9, pages: 3 }.into(),
        ExtractError::NotDrawn { page: 2, problem: "it takes too long" }.into(),
        ExtractError::Killed { format: "PDF" }.into(),
    ];
    let mut errors: Vec<EngineError> =
        broken.into_iter().map(|error| IngestError::from(error).into()).collect();
    errors.extend(pictures.map(EngineError::from));
    errors
}

fn of_writes() -> Vec<EngineError> {
    let source_id = || SourceId::parse("s").unwrap();
    let chunk_id = || "s_9".to_owned();
    let cause = || "hidden".to_owned();
    let too_large = InvalidMetadata::TooLarge { bytes: 9, max: 8 };
    let errors = [
        IngestError::App(AppProblem::Empty),
        IngestError::Metadata { field: "tenant_metadata", problem: too_large },
        IngestError::Metadata {
            field: "document_metadata",
            problem: InvalidMetadata::TooDeep { max: 8 },
        },
        IngestError::SourceUnknown { source_id: source_id() },
        IngestError::MemoryUnknown { memory_id: source_id() },
        IngestError::MemoryText { problem: "is odd".to_owned() },
        IngestError::ChunksUnknown { missing: vec![chunk_id()] },
        IngestError::ChunkIdMalformed { chunk_id: chunk_id() },
        IngestError::SeveralBatches,
        IngestError::ChunkIdTaken { chunk_id: chunk_id() },
        IngestError::DimensionMismatch { expected: 2, received: 3 },
        IngestError::ModelMismatch { made_by: "one".to_owned(), loaded: "two".to_owned() },
        IngestError::ReembedRefused { problem: "is odd".to_owned() },
        IngestError::OutcomeUnknown { id: None, cause: cause() },
        IngestError::OutcomeUnknown { id: Some(source_id()), cause: cause() },
        IngestError::DiskFull { level: Fullness::Full, free_bytes: 1 },
        CatalogError::QueueFull { jobs: 1, bytes: 1 }.into(),
    ];
    let job_id = "job_x".to_owned();
    let mut all = vec![
        EngineError::SourceNotFound { source_id: source_id() },
        EngineError::JobNotFound,
        EngineError::JobNotRetried { job_id, problem: "has not failed" },
    ];
    all.extend(errors.map(EngineError::from));
    all
}

/// Refused searches, and faults of the server.
fn of_server() -> Vec<EngineError> {
    let hidden = || "hidden".to_owned();
    let field = || "metadata.year".to_owned();
    let collection: CollectionId = "0".repeat(32).parse().unwrap();
    let limit = Duration::from_secs(5);
    vec![
        QueryError::Filter(FilterError::Invalid { field: field(), problem: "is odd".to_owned() })
            .into(),
        QueryError::Filter(FilterError::NotFilterable { field: field() }).into(),
        QueryError::DimensionMismatch { expected: 2, received: 3 }.into(),
        QueryError::Stopped(Stopped::ClientGone).into(),
        QueryError::Stopped(Stopped::DeadlineExceeded { limit }).into(),
        GenerateError::QuestionTooLong { tokens: 9, window: 8 }.into(),
        GenerateError::Refused { status: 401, message: hidden() }.into(),
        EmbedError::Overloaded { waiting: 9, max: 8 }.into(),
        EmbedError::Remote { problem: hidden() }.into(),
        EmbedError::Closed.into(),
        EmbedError::Compute { problem: hidden() }.into(),
        CatalogError::NotRecovered.into(),
        CatalogError::ReadOnly.into(),
        CatalogError::Behind { cause: hidden() }.into(),
        CatalogError::InDoubt { cause: hidden() }.into(),
        CatalogError::StorageFull.into(),
        CatalogError::Poisoned { cause: hidden() }.into(),
        CatalogError::Fenced.into(),
        CatalogError::Corrupt { what: hidden() }.into(),
        CollectionError::Quarantined { collection, segments: 2 }.into(),
        CollectionError::Fenced { collection }.into(),
        CollectionError::ReadOnly { collection }.into(),
        CollectionError::BadUpload { key: hidden(), problem: hidden() }.into(),
        EngineError::NoDevice { reason: hidden() },
        EngineError::NotCopied { problem: hidden() },
    ]
}

#[test]
fn the_body_holds_both_published_forms() {
    let error = ApiError::field("missing_field", Location::Body, "query", "is required");
    let body = error.body("r-1");
    assert_eq!(body["error"], "Invalid request");
    assert_eq!(body["message"], "query is required");
    assert_eq!(body["success"], false);
    assert_eq!(body["error_code"], "INVALID_PARAMETERS");
    assert_eq!(body["reason"], "missing_field");
    assert_eq!(body["request_id"], "r-1");
    assert_eq!(body["detail"]["success"], false);
    assert_eq!(body["detail"]["message"], body["message"]);
    assert_eq!(body["detail"]["error_code"], "INVALID_PARAMETERS");
    let entry = json!({"location": "body", "field": "query", "message": "query is required"});
    assert_eq!(body["detail"]["errors"], json!([entry]));
}

#[test]
fn statuses_carry_their_headers() {
    let limited = ApiError::new(Condition::RateLimited, "rate_limited", "slow down");
    let response = limited.with_retry_after(0).into_response("r");
    assert_eq!(response.headers()["retry-after"], "1");
    let response = ApiError::method_not_allowed("GET, HEAD".into()).into_response("r");
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}

#[test]
fn the_cause_stays_out_of_the_body() {
    let error = ApiError::internal("block 7 of /secret/path");
    assert_eq!(error.cause(), Some("block 7 of /secret/path"));
    assert!(!error.body("r").to_string().contains("secret"));
    assert_eq!(error.into_response("r").status(), 500);
}
