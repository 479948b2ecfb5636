//! The OpenAI-compatible interface: models, embeddings, reranking, answers. Errors below `/v1` have
//! OpenAI's form ([`crate::error::ErrorForm`]); unknown members are ignored and listed in a header.
//!
//! - `models`: the installed models and the tenants of the key
//! - `embeddings`, `rerank`: direct use of the models
//! - `chat`: a tenant as a model that knows its documents
//! - `files`: uploads that are not yet in a vector store
//! - `vector_stores`, `store_files`, `file_batches`, `store_search`: sub-tenants as vector stores;
//!   `store_scope`: the sub-tenant that a request names

pub mod chat;
mod embeddings;
mod file_batches;
mod files;
mod models;
mod rerank;
mod store_files;
mod store_scope;
mod store_search;
mod vector_stores;

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::app::App;
use crate::dto::v1::TENANT_HEADER;
use crate::error::{ApiError, Location};
use crate::routes::{Group, Route};
use lodestone_catalog::Tenant;
use lodestone_engine::EngineError;
use lodestone_types::{CollectionId, Grant, Role, TenantId, limits};

/// Returns the operations of the interface.
pub fn routes() -> Vec<Route<App>> {
    let get = |path, summary| Route::<App>::get(path, Group::OpenAi, Role::Read, summary);
    let post = |path, summary| {
        let draft = Route::<App>::post(path, Group::OpenAi, Role::Read, summary);
        draft.json(limits::BODY_BYTES_MAX_INPUTS)
    };
    let own = vec![
        get("/v1/models", "List the models and tenants that this key may use as `model`")
            .handle(crate::app::blocking(models::list)),
        get("/v1/models/{model}", "Look up a model").handle(crate::app::blocking(models::get)),
        post("/v1/embeddings", "Embed texts with an installed model").handle(embeddings::embed),
        post("/v1/rerank", "Rank documents by relevance to a query").handle(rerank::rerank),
        post("/v1/chat/completions", "Answer a chat from the documents of a tenant")
            .handle(chat::complete),
    ];
    let stores = [
        files::routes(),
        vector_stores::routes(),
        store_files::routes(),
        file_batches::routes(),
        store_search::routes(),
    ];
    own.into_iter().chain(stores.into_iter().flatten()).collect()
}

/// Returns the tenant that a request works in: the one that it names, else the only one of its key.
fn tenant_of(grant: &Grant, named: Option<&TenantId>) -> Result<TenantId, ApiError> {
    let tenant = named.or_else(|| grant.scope.only_tenant()).cloned();
    tenant.ok_or_else(|| {
        let problem = "is required: this key has access to several tenants";
        let (code, place) = ("missing_field", Location::Header);
        ApiError::field(code, place, TENANT_HEADER.name, problem)
    })
}

/// Returns the owner, in the fair queue, of a request that reads no tenant's data: the tenant that
/// it names or the key's only tenant, else the key.
fn owner(app: &App, grant: &Grant, named: Option<&TenantId>) -> Result<CollectionId, ApiError> {
    let tenant = tenant_behind(app, grant, named)?;
    Ok(tenant.map_or_else(|| of_key(&grant.key_id), |tenant| tenant.collection))
}

/// Looks up the tenant that a request names, or the only one of its key.
fn tenant_behind(
    app: &App,
    grant: &Grant,
    named: Option<&TenantId>,
) -> Result<Option<Arc<Tenant>>, ApiError> {
    if let Some(named) = named {
        return Ok(Some(app.engine.find_tenant(grant, named)?));
    }
    match grant.scope.only_tenant().map(|tenant| app.engine.find_tenant(grant, tenant)) {
        Some(Ok(tenant)) => Ok(Some(tenant)),
        Some(Err(error @ EngineError::TooManyRequests { .. })) => Err(error.into()),
        Some(Err(_)) | None => Ok(None),
    }
}

/// Derives from a key an owner id that can be used among collection ids.
fn of_key(key_id: &str) -> CollectionId {
    let digest = Sha256::digest(key_id.as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    hex.parse().expect("16 bytes name a collection")
}
