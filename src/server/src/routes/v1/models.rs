//! The installed models, and the tenants of a key as models that know their documents.

use crate::app::App;
use crate::dto::v1::models::{GetModel, ModelList, ModelView};
use crate::dto::v1::{model_name, scope_of_model};
use crate::error::{ApiError, Location};
use crate::reply::Bare;
use crate::request::Call;
use lodestone_catalog::Tenant;
use lodestone_engine::EngineError;
use lodestone_types::{Grant, KeyScope, Scope, SubTenantId, TenantMode};

pub(super) fn list(app: &App, call: &Call, (): ()) -> Result<Bare<ModelList>, ApiError> {
    let grant = call.grant()?;
    let mut data = installed(app);
    let tenants = app.engine.tenants(grant)?;
    let tenants = tenants.iter().filter(|tenant| tenant.mode == TenantMode::Standard);
    data.extend(tenants.flat_map(|tenant| knowledge(grant, tenant)));
    Ok(Bare::new(ModelList { object: "list", data }))
}

pub(super) fn get(app: &App, call: &Call, asked: GetModel) -> Result<Bare<ModelView>, ApiError> {
    if let Some(found) = installed(app).into_iter().find(|model| model.id == asked.model) {
        return Ok(Bare::new(found));
    }
    let not_found = || ApiError::model_not_found(Location::Path);
    let Scope { tenant, sub_tenant } = scope_of_model(&asked.model).ok_or_else(not_found)?;
    let grant = call.grant()?;
    let found = match app.engine.find_tenant(grant, &tenant) {
        Err(EngineError::TenantNotFound) => return Err(not_found()),
        found => found?,
    };
    let is_there = found.mode == TenantMode::Standard && grant.allows(&tenant, &sub_tenant);
    is_there.then(|| Bare::new(view(&found, &sub_tenant))).ok_or_else(not_found)
}

fn installed(app: &App) -> Vec<ModelView> {
    let model = |id: &str, kind, dimension| ModelView {
        id: id.to_owned(),
        object: "model",
        created: 0,
        owned_by: "lodestone",
        kind,
        dimension,
    };
    let embedder = app.engine.embedder();
    let mut installed = vec![model(embedder.name(), "embedding", Some(embedder.dimension()))];
    installed.extend(app.engine.reranker().map(|one| model(one.name(), "reranker", None)));
    installed
}

/// Returns the models that a tenant offers to a key: the tenant's default sub-tenant, or the
/// sub-tenants that the key is limited to.
fn knowledge(grant: &Grant, tenant: &Tenant) -> Vec<ModelView> {
    let named = match &*grant.scope {
        KeyScope::Tenants(grants) if !grant.scope.allows_whole_tenant(&tenant.id) => {
            let of_tenant = grants.iter().find(|one| one.tenant == tenant.id);
            of_tenant.and_then(|one| one.sub_tenants.clone()).unwrap_or_default()
        }
        _ => vec![SubTenantId::default_name()],
    };
    named.iter().map(|sub_tenant| view(tenant, sub_tenant)).collect()
}

fn view(tenant: &Tenant, sub_tenant: &SubTenantId) -> ModelView {
    ModelView {
        id: model_name(&tenant.id, sub_tenant),
        object: "model",
        created: tenant.created_at.0 / 1000,
        owned_by: "lodestone",
        kind: "knowledge",
        dimension: None,
    }
}
