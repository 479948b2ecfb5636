//! The scope of a vector store and access to it.

use crate::app::App;
use crate::dto::v1::vector_stores::OneStore;
use crate::error::{ApiError, Condition, Location};
use crate::request::Call;
use crate::routes::v1::tenant_of;
use lodestone_catalog::VectorStore;
use lodestone_engine::TenantAccess;
use lodestone_types::{Scope, SubTenantId, TenantMode};

/// Creates the 404 for a vector store that does not exist or that the key cannot reach.
pub(super) fn store_not_found() -> ApiError {
    let message = "the vector store does not exist or this key has no access to it";
    let error = ApiError::new(Condition::SubTenantNotFound, "vector_store_not_found", message);
    error.at(Location::Path, "vector_store_id")
}

/// Looks up the vector store that a request names.
pub(super) fn named(
    app: &App,
    call: &Call,
    store: &OneStore,
) -> Result<(Scope, VectorStore), ApiError> {
    let grant = call.grant()?;
    let tenant = tenant_of(grant, store.tenant.as_ref())?;
    let found = match SubTenantId::parse(&store.id) {
        Ok(name) => app.engine.vector_store(grant, &tenant, &name)?,
        Err(_) => None,
    };
    let found = found.ok_or_else(store_not_found)?;
    Ok((Scope { tenant, sub_tenant: found.name.clone() }, found))
}

/// Returns the scope of the vector store that a request names.
pub(super) fn scope_of(app: &App, call: &Call, store: &OneStore) -> Result<Scope, ApiError> {
    Ok(named(app, call, store)?.0)
}

/// Opens the vector store that a request names.
pub(super) fn opened(app: &App, call: &Call, store: &OneStore) -> Result<TenantAccess, ApiError> {
    open(app, call, &scope_of(app, call, store)?)
}

/// Opens a scope that is a vector store.
pub(super) fn open(app: &App, call: &Call, scope: &Scope) -> Result<TenantAccess, ApiError> {
    Ok(app.engine.open(call.grant()?, scope, Some(TenantMode::Standard))?)
}
