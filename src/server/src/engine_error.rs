//! Maps every engine error to an error of the API: a condition, a reason and a message.
//!
//! An error caused by the caller keeps its message. For a server fault, the details (paths, causes)
//! go to the log, and the caller is told in general terms how to proceed.

use crate::error::{ApiError, Condition, Location};
use lodestone_answer::AnswerError;
use lodestone_answer::generate::GenerateError;
use lodestone_catalog::CatalogError;
use lodestone_embed::EmbedError;
use lodestone_engine::archive::ArchiveError;
use lodestone_engine::backup::BackupError;
use lodestone_engine::ingest::IngestError;
use lodestone_engine::query::QueryError;
use lodestone_engine::{EngineError, PictureError};
use lodestone_extract::ExtractError;
use lodestone_storage::collection::CollectionError;
use lodestone_types::metadata::InvalidMetadata;
use lodestone_types::schema::SchemaError;
use lodestone_types::{ErrorKind, SourceId, Stopped};

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        match error {
            EngineError::TenantNotFound => Self::tenant_not_found(),
            EngineError::SubTenantNotFound | EngineError::SubTenantUnknown { .. } => {
                Self::sub_tenant_not_found()
            }
            EngineError::Forbidden { need } => insufficient_scope(need),
            EngineError::TenantExists { .. } => conflict("tenant_exists", message),
            EngineError::ModeMismatch { .. } => conflict("tenant_mode_mismatch", message),
            EngineError::DefaultProtected => Self::invalid("default_sub_tenant_protected", message),
            EngineError::SourceNotFound { .. } => Self::source_not_found(),
            EngineError::JobNotFound => Self::new(Condition::JobNotFound, "job_not_found", message),
            EngineError::JobNotRetried { .. } => conflict("job_not_retried", message),
            EngineError::WebhookUrl { .. } => {
                Self::invalid("url_blocked", message).at(Location::Body, "url")
            }
            EngineError::TooManyRequests { wait_seconds, .. } => {
                let error = ApiError::new(Condition::RateLimited, "tenant_rate_limited", message);
                error.with_retry_after(wait_seconds as u32)
            }
            EngineError::ModelUnknown { .. } => {
                ApiError::invalid("invalid_value", message).at(Location::Body, "embedding_model")
            }
            EngineError::WebhookTenant { .. } => {
                Self::invalid("invalid_value", message).at(Location::Body, "tenants")
            }
            EngineError::WebhookTestBusy => unavailable("overloaded", &message),
            EngineError::Schema(error) => schema(&error),
            EngineError::Setting(_)
            | EngineError::CatalogLost { .. }
            | EngineError::NoDevice { .. } => Self::internal(message),
            EngineError::Ingest(error) => ingest(error),
            EngineError::Query(error) => query(error),
            EngineError::Catalog(error) => catalog(&error),
            EngineError::Collection(error) => collection(&error),
            EngineError::Answer(AnswerError::Embed(error)) => embed(&error),
            EngineError::Generate(GenerateError::QuestionTooLong { .. }) => {
                Self::invalid("question_too_long", message)
            }
            EngineError::Generate(_) => generation().caused_by(message),
            EngineError::Embed(error) => embed(&error),
            EngineError::Rerank(error) => of_server(error.kind(), message),
            EngineError::Io(error) => of_server(error.kind(), message),
            EngineError::Store(error) => of_server(error.kind(), message),
            EngineError::SharedStore(_) | EngineError::NotCopied { .. } => {
                of_server(ErrorKind::Unavailable, message)
            }
            EngineError::Archive(error) => archive(&error),
            EngineError::Backup(error) => backup(&error),
            EngineError::Picture(error) => picture(&error),
        }
    }
}

fn archive(error: &ArchiveError) -> ApiError {
    let message = error.to_string();
    match error {
        ArchiveError::Refused { .. } => ApiError::invalid("invalid_archive", message),
        ArchiveError::Cut { .. } => ApiError::invalid("archive_cut", message),
        ArchiveError::NotEmpty { .. } => conflict("tenant_not_empty", message),
        ArchiveError::OtherTenant { .. } => conflict("tenant_differs", message),
        ArchiveError::Quarantined { .. } => unavailable("quarantined", &message),
        ArchiveError::Busy { .. } | ArchiveError::NoMemory => unavailable("overloaded", &message),
        ArchiveError::GivenUp => of_server(error.kind(), message),
    }
}

fn backup(error: &BackupError) -> ApiError {
    let message = error.to_string();
    match error {
        BackupError::Refused { .. } => ApiError::invalid("invalid_value", message),
        BackupError::Busy => conflict("backup_running", message),
        BackupError::OtherData { .. } => conflict("other_data_directory", message),
        BackupError::TenantUnknown { .. } => ApiError::tenant_not_found(),
        // Only operators with access to all tenants see this, and they configured the location.
        BackupError::Bucket(_) | BackupError::File { .. } => {
            unavailable("storage_unavailable", &message)
        }
        error => of_server(error.kind(), message),
    }
}

fn picture(error: &PictureError) -> ApiError {
    let message = error.to_string();
    let document = match error {
        PictureError::NoPages { .. } => return ApiError::invalid("no_pages", message),
        PictureError::NoMemory => return unavailable("overloaded", &message),
        PictureError::Document(error) => error,
    };
    match document {
        ExtractError::PageUnknown { .. } => {
            ApiError::invalid("page_not_found", message).at(Location::Body, "page")
        }
        ExtractError::NoParser { .. } | ExtractError::Killed { .. } => {
            unavailable("parser_unavailable", &message)
        }
        _ => ApiError::invalid("page_not_drawn", message).at(Location::Body, "page"),
    }
}

fn ingest(error: IngestError) -> ApiError {
    let message = error.to_string();
    match error {
        IngestError::Document(error) => document(&error),
        IngestError::App(_) => ApiError::invalid("invalid_value", message),
        IngestError::Schema(error) => schema(&error),
        IngestError::Metadata { field, problem } => {
            let error = match problem {
                InvalidMetadata::TooLarge { .. } => {
                    ApiError::too_large("content_too_large", message)
                }
                _ => ApiError::invalid("invalid_value", message),
            };
            error.at(Location::Body, field)
        }
        IngestError::SourceUnknown { .. } => ApiError::source_not_found(),
        IngestError::MemoryUnknown { .. } => {
            let message = "the memory does not exist in the addressed tenant and sub-tenant";
            ApiError::new(Condition::MemoryNotFound, "memory_not_found", message)
        }
        IngestError::MemoryText { .. } => {
            ApiError::invalid("invalid_value", message).at(Location::Body, "user_memory")
        }
        IngestError::Embed(error) => embed(&error),
        IngestError::ChunksUnknown { missing } => {
            ApiError::new(Condition::EmbeddingsNotFound, "embeddings_not_found", message)
                .with_member("not_found", missing.into())
        }
        IngestError::ChunkIdMalformed { .. } => {
            ApiError::invalid("invalid_identifier", message).at(Location::Body, "embeddings")
        }
        IngestError::SeveralBatches => {
            ApiError::invalid("invalid_value", message).at(Location::Body, "embeddings")
        }
        IngestError::ChunkIdTaken { .. } => {
            conflict("chunk_id_exists", message).at(Location::Body, "ids")
        }
        IngestError::DimensionMismatch { .. } => {
            ApiError::invalid("dimension_mismatch", message).at(Location::Body, "embeddings")
        }
        IngestError::ModelMismatch { .. } => conflict("model_mismatch", message),
        IngestError::ReembedRefused { .. } => conflict("reembed_refused", message),
        IngestError::OutcomeUnknown { id, .. } => outcome_unknown(id.as_ref()).caused_by(message),
        IngestError::DiskFull { .. } => of_server(ErrorKind::StorageFull, message),
        IngestError::Catalog(error) => catalog(&error),
        IngestError::Collection(error) => collection(&error),
    }
}

fn query(error: QueryError) -> ApiError {
    let message = error.to_string();
    match error {
        QueryError::Filter(error) if error.kind() == ErrorKind::Invalid => {
            let place = error.field().map(str::to_owned);
            let answer = ApiError::invalid(error.reason(), message);
            match place {
                Some(place) => answer.at(Location::Body, &place),
                None => answer,
            }
        }
        QueryError::DimensionMismatch { .. } => {
            ApiError::invalid("dimension_mismatch", message).at(Location::Body, "embeddings")
        }
        QueryError::Embed(error) => embed(&error),
        QueryError::Collection(error) => collection(&error),
        QueryError::Stopped(stopped) => stopped.into(),
        error => of_server(error.kind(), message),
    }
}

fn catalog(error: &CatalogError) -> ApiError {
    let message = error.to_string();
    match error {
        CatalogError::TenantExists { .. } => conflict("tenant_exists", message),
        CatalogError::TenantUnknown { .. } | CatalogError::CollectionUnknown { .. } => {
            ApiError::tenant_not_found()
        }
        CatalogError::SubTenantUnknown { .. } => ApiError::sub_tenant_not_found(),
        CatalogError::SubTenantProtected => {
            ApiError::invalid("default_sub_tenant_protected", message)
        }
        CatalogError::TenantLimit { .. } => {
            ApiError::new(Condition::LimitReached, "limit_reached", message)
        }
        CatalogError::QueueFull { .. } => queue_full(),
        CatalogError::IdempotencyLimit { wait_seconds, .. } => {
            let error = ApiError::new(Condition::RateLimited, "rate_limited", message);
            error.with_retry_after(u32::try_from(*wait_seconds).unwrap_or(u32::MAX))
        }
        CatalogError::InDoubt { .. } => outcome_unknown(None).caused_by(message),
        CatalogError::ReadOnly | CatalogError::Behind { .. } => ApiError::at_writer(),
        CatalogError::NotRecovered => unavailable("starting", "the server is starting"),
        CatalogError::KeyUnknown { .. } => {
            let message = "key_id does not exist or this key has no access to it";
            ApiError::new(Condition::KeyNotFound, "api_key_not_found", message)
        }
        CatalogError::WebhookUnknown { .. } => {
            let message = "webhook_id does not exist or this key has no access to it";
            ApiError::new(Condition::WebhookNotFound, "webhook_not_found", message)
        }
        CatalogError::WebhookLimit { .. } => conflict("webhook_limit", message),
        CatalogError::ScopeTooWide => insufficient_scope(&message),
        CatalogError::CollectionExists { .. }
        | CatalogError::CollectionInUse { .. }
        | CatalogError::KeyTooShort { .. }
        | CatalogError::ResponseTooLong { .. } => ApiError::internal(message),
        CatalogError::TooNew { .. }
        | CatalogError::TooOld { .. }
        | CatalogError::CopyFailed { .. }
        | CatalogError::Foreign { .. }
        | CatalogError::Emptied { .. }
        | CatalogError::StorageFull
        | CatalogError::Poisoned { .. }
        | CatalogError::LogAway { .. }
        | CatalogError::Fenced
        | CatalogError::Io { .. }
        | CatalogError::Corrupt { .. }
        | CatalogError::BadDescriptor { .. }
        | CatalogError::Store(_)
        | CatalogError::Sqlite { .. } => of_server(error.kind(), message),
    }
}

fn collection(error: &CollectionError) -> ApiError {
    let message = error.to_string();
    match error {
        CollectionError::ReadOnly { .. } | CollectionError::Behind { .. } => ApiError::at_writer(),
        CollectionError::Quarantined { .. } => {
            let told = "part of the tenant's data is damaged, and this operation needs all of it";
            unavailable("quarantined", told).caused_by(message)
        }
        CollectionError::InDoubt { .. } => outcome_unknown(None).caused_by(message),
        CollectionError::Fenced { .. } => {
            let told = "another writer has taken over this tenant";
            unavailable("storage_unavailable", told).caused_by(message)
        }
        error => of_server(error.kind(), message),
    }
}

/// The document formats that can be read.
const FORMATS: &str = "supported are pdf, docx, pptx, xlsx, odt, odp, ods, rtf, epub, html, eml, \
    msg, md, txt, json, ipynb, csv, tsv and xml";

fn document(error: &ExtractError) -> ApiError {
    let message = error.to_string();
    let place = |error: ApiError| error.at(Location::Form, "file");
    place(match error {
        ExtractError::Unsupported { .. } => {
            ApiError::invalid("unsupported_file_format", format!("{message}; {FORMATS}"))
        }
        ExtractError::EmptyFile => ApiError::invalid("empty_file", message),
        ExtractError::NoText | ExtractError::OnlyPictures { .. } => {
            ApiError::invalid("no_text", message)
        }
        ExtractError::Damaged { .. }
        | ExtractError::Commented { .. }
        | ExtractError::Broken { .. } => ApiError::invalid("corrupt_file", message),
        ExtractError::Encrypted { .. } => ApiError::invalid("encrypted_file", message),
        // An error reported by a parser process belongs to a job, which has a code of its own.
        ExtractError::Reported { .. }
        | ExtractError::NoPages { .. }
        | ExtractError::NotDrawn { .. }
        | ExtractError::PageUnknown { .. }
        | ExtractError::Crashed { .. }
        | ExtractError::TooSlow { .. } => ApiError::invalid("corrupt_file", message),
        ExtractError::NoParser { .. } | ExtractError::Killed { .. } => {
            unavailable("parser_unavailable", &message)
        }
        ExtractError::BeyondLimit { .. } | ExtractError::OutOfMemory { .. } => {
            ApiError::too_large("file_too_large", message)
        }
    })
}

fn schema(error: &SchemaError) -> ApiError {
    let message = error.to_string();
    let declared = |reason| {
        ApiError::invalid(reason, message.clone()).at(Location::Body, "tenant_metadata_schema")
    };
    match error {
        SchemaError::TooManyFields { .. } => declared("too_many_items"),
        SchemaError::BadKey { .. } => declared("invalid_value"),
        SchemaError::Reserved { .. } => declared("reserved_key"),
        SchemaError::Duplicate { .. } => declared("schema_violation"),
        SchemaError::WrongType { key, .. } => {
            let field = format!("tenant_metadata.{key}");
            ApiError::invalid("schema_violation", message).at(Location::Body, &field)
        }
    }
}

fn embed(error: &EmbedError) -> ApiError {
    let message = error.to_string();
    match error {
        EmbedError::Overloaded { .. } => {
            unavailable("overloaded", "too many queries are waiting for the embedding model")
        }
        EmbedError::Remote { .. } => {
            let answer = "the embedding server is unreachable or returned an invalid response";
            unavailable("embedder_unavailable", answer).caused_by(message)
        }
        EmbedError::Closed => unavailable("shutting_down", "the server is shutting down"),
        EmbedError::Stopped(stopped) => (*stopped).into(),
        error => of_server(error.kind(), message),
    }
}

/// Converts a fault of the server; `cause` goes only to the log.
fn of_server(kind: ErrorKind, cause: String) -> ApiError {
    let answer = match kind {
        ErrorKind::Overloaded => unavailable("overloaded", "the server is overloaded"),
        ErrorKind::StorageFull => {
            unavailable("storage_full", "the disk is full: nothing was changed; reads still work")
        }
        ErrorKind::Unavailable => {
            unavailable("storage_unavailable", "part of the storage is currently unavailable")
        }
        // Damaged data is left out of answers and never served.
        ErrorKind::Corrupt => unavailable("data_damaged", "part of the stored data is damaged"),
        _ => return ApiError::internal(cause),
    };
    answer.caused_by(cause)
}

impl From<Stopped> for ApiError {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            // The client has gone, so nobody reads this response.
            Stopped::ClientGone => unavailable("client_gone", &stopped.to_string()),
            Stopped::DeadlineExceeded { .. } => {
                unavailable("deadline_exceeded", &format!("{stopped} (query-timeout)"))
            }
            Stopped::OutOfMemory => {
                let message = format!("{stopped}: try again later or request fewer results");
                unavailable("overloaded", &message)
            }
        }
    }
}

fn unavailable(reason: &'static str, message: &str) -> ApiError {
    ApiError::new(Condition::Unavailable, reason, message)
}

/// The 503 for a change that may have happened; `id` is the source concerned, if there is one.
fn outcome_unknown(id: Option<&SourceId>) -> ApiError {
    let reason = "outcome_unknown";
    let told = "the disk or the bucket failed during the change, which may have been applied in \
                whole or in part";
    match id {
        None => unavailable(reason, &format!("{told}; deletions can safely be repeated")),
        Some(id) => {
            let told = format!(
                "{told}; before sending it again, check the state of {id} with \
                verify_processing"
            );
            unavailable(reason, &told).with_member("file_id", id.as_str().into())
        }
    }
}

fn generation() -> ApiError {
    unavailable("generation_unavailable", "the generator is currently unavailable")
}

fn queue_full() -> ApiError {
    unavailable("queue_full", "too many uploads are waiting to be processed")
}

fn conflict(reason: &'static str, message: String) -> ApiError {
    ApiError::new(Condition::Conflict, reason, message)
}

fn insufficient_scope(need: &str) -> ApiError {
    ApiError::new(Condition::Forbidden, "insufficient_scope", need)
}
