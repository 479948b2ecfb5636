//! Request and response types of the OpenAI-compatible interface.
//!
//! - `models`: names accepted as models; `embeddings`: vectors of texts
//! - `rerank`: relevance of documents, in the form used by Cohere and Jina
//! - `chat`, `completion`: questions and answers as chats; `messages`, `tools`: their parts
//! - `files`: uploaded files; `vector_stores`, `store_files`, `store_search`: vector stores, their
//!   files and batches, and searches; `attributes`, `filters`, `pages`: their parts

pub mod attributes;
pub mod chat;
pub mod completion;
pub mod embeddings;
pub mod files;
mod filters;
mod messages;
pub mod models;
pub mod pages;
pub mod rerank;
pub mod store_files;
pub mod store_search;
mod tools;
pub mod vector_stores;

use crate::request::{Field, Kind};
use lodestone_types::{Scope, SubTenantId, TenantId, limits};

/// Longest model name in characters.
const MODEL_CHARS_MAX: usize = 1024;
const MODEL_NAME: Kind = Kind::Text { chars_max: MODEL_CHARS_MAX, is_filled: false };

/// Header that names the tenant of a request.
pub static TENANT_HEADER: Field = Field::header(
    "x-lodestone-tenant",
    Kind::Identifier,
    "Tenant, for a key that can access several.",
);
/// Header that names the sub-tenant of a file.
pub static SUB_TENANT_HEADER: Field = Field::header(
    "x-lodestone-sub-tenant",
    Kind::Identifier,
    "Sub-tenant of the file, for a key that can access several; `default` if absent.",
);

/// An id in a path, which is not validated: one that cannot exist is reported as not found.
const PATH_ID: Kind = Kind::Text { chars_max: 4 * limits::ID_BYTES_MAX, is_filled: false };
const FILE_IDS_DOC: &str = "Ids of the files to add, at most 500.";

static VECTOR_STORE_ID: Field = Field::path("vector_store_id", PATH_ID, "Vector store id.");
static FILE_ID: Field = Field::path("file_id", PATH_ID, "File id.");
static BATCH_ID: Field = Field::path("batch_id", PATH_ID, "Batch id.");
static CHUNKING: Field = Field::body(
    "chunking_strategy",
    Kind::Json { values_max: 64, bytes_max: 4096, schema: store_files::chunking_schema },
    "Has no effect: chunks have at most 200 tokens and follow the headings of the document.",
)
.without_effect();

/// Parses the scope from a model name, `tenant` or `tenant/sub_tenant`. `None` if it cannot be the
/// name of a scope.
pub fn scope_of_model(model: &str) -> Option<Scope> {
    let (tenant, sub_tenant) = match model.split_once('/') {
        Some((tenant, sub_tenant)) => (tenant, SubTenantId::parse(sub_tenant).ok()?),
        None => (model, SubTenantId::default_name()),
    };
    Some(Scope { tenant: TenantId::parse(tenant).ok()?, sub_tenant })
}

/// Returns the model name of a scope.
pub fn model_name(tenant: &TenantId, sub_tenant: &SubTenantId) -> String {
    match sub_tenant.is_default() {
        true => tenant.to_string(),
        false => format!("{tenant}/{sub_tenant}"),
    }
}
