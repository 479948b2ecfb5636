//! Requests and responses of OpenAI's interface.
//!
//! - `models`: what can be named as a model; `embeddings`: vectors of texts
//! - `rerank`: relevance of documents, in the form of Cohere and Jina
//! - `chat`, `completion`: questions and answers as chats

pub mod chat;
pub mod completion;
pub mod embeddings;
pub mod models;
pub mod rerank;

use crate::request::{Field, Kind};
use lodestone_types::{Scope, SubTenantId, TenantId};

/// Characters of the name of a model.
const MODEL_CHARS_MAX: usize = 1024;
const MODEL_NAME: Kind = Kind::Text { chars_max: MODEL_CHARS_MAX, is_filled: false };

static TENANT_HEADER: Field = Field::header(
    "x-lodestone-tenant",
    Kind::Identifier,
    "The tenant, for a key that reaches several.",
);

/// The scope that the name of a model means: `tenant` or `tenant/sub_tenant`. `None` for a name
/// that no scope can have.
pub fn scope_of_model(model: &str) -> Option<Scope> {
    let (tenant, sub_tenant) = match model.split_once('/') {
        Some((tenant, sub_tenant)) => (tenant, SubTenantId::parse(sub_tenant).ok()?),
        None => (model, SubTenantId::default_name()),
    };
    Some(Scope { tenant: TenantId::parse(tenant).ok()?, sub_tenant })
}

/// The name of a scope as a model.
pub fn model_name(tenant: &TenantId, sub_tenant: &SubTenantId) -> String {
    match sub_tenant.is_default() {
        true => tenant.to_string(),
        false => format!("{tenant}/{sub_tenant}"),
    }
}
