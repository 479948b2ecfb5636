//! Operations on tenants and sub-tenants.

use crate::app::{App, blocking, degraded};
use crate::dto::tenant_limits::{SetTenantLimits, TenantUsage};
use crate::dto::tenants::{
    CreateTenant, CreateVectorTenant, DeleteSubTenant, DeleteTenant, NamedTenant, SchemaView,
    SubTenantList, TenantList, TenantOutcome, TenantStatistics, TenantStats, TenantView,
};
use crate::error::{ApiError, Condition};
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_catalog::Tenant;
use lodestone_engine::{TenantModel, TenantPlan, TenantUsage as Usage};
use lodestone_types::{Role, SubTenantId, TenantId, TenantMode, TenantSchema};

/// Returns the tenant operations.
pub fn routes() -> Vec<Route<App>> {
    let (tenant, admin) = (Group::Tenant, Group::Admin);
    let (by_reader, by_admin) = (Role::Read, Role::Admin);
    vec![
        Route::<App>::get(
            "/tenant/sub_tenant_ids", tenant, by_reader, "List the sub-tenants of a tenant",
        )
        .handle(blocking(sub_tenant_ids)),
        Route::<App>::get(
            "/tenant/stats",
            tenant,
            by_reader,
            "Count the sources, chunks and bytes of a sub-tenant",
        )
        .handle(blocking(stats)),
        Route::<App>::get(
            "/tenant/usage",
            tenant,
            by_reader,
            "Get the usage and the limits of a tenant",
        )
        .handle(blocking(usage)),
        Route::<App>::post("/admin/tenant_limits", admin, by_admin, "Set the limits of a tenant")
            .handle(blocking(set_limits)),
        Route::<App>::delete("/tenant/delete_sub_tenant", tenant, by_admin, "Delete a sub-tenant")
            .handle(blocking(delete_sub_tenant)),
        Route::<App>::post("/user/create_tenant", tenant, by_admin, "Create a tenant")
            .handle(blocking(create_tenant)),
        Route::<App>::post(
            "/embeddings/create_tenant",
            Group::Embeddings,
            by_admin,
            "Create a tenant for your own vectors",
        )
        .handle(blocking(create_embeddings_tenant)),
        Route::<App>::get(
            "/tenant/list",
            admin,
            by_admin,
            "List the tenants within the key's scope",
        )
        .handle(blocking(list)),
        Route::<App>::delete("/tenant/delete", admin, by_admin, "Delete a tenant")
            .handle(blocking(delete)),
    ]
}

fn schema_view(schema: Option<&TenantSchema>) -> Option<SchemaView> {
    schema.and_then(SchemaView::of)
}

fn sub_tenant_ids(
    app: &App,
    call: &Call,
    request: NamedTenant,
) -> Result<Json<SubTenantList>, ApiError> {
    let found = app.engine.sub_tenants(call.grant()?, &request.tenant);
    let (tenant, names) = found.map_err(|error| {
        let error = ApiError::from(error);
        match (error.condition(), error.cause()) {
            (Condition::Internal, Some(cause)) => {
                // The API promises this wording.
                let message = "the sub-tenant ids could not be fetched";
                ApiError::new(Condition::Internal, "internal", message).caused_by(cause)
            }
            _ => error,
        }
    })?;
    let sub_tenant_ids: Vec<String> = names.iter().map(SubTenantId::to_string).collect();
    Ok(Json::new(SubTenantList {
        tenant_id: tenant.id.to_string(),
        count: sub_tenant_ids.len(),
        sub_tenant_ids,
        tenant_schema: schema_view(tenant.schema.as_ref()),
        success: true,
        message: "Successfully fetched sub-tenant ids".to_owned(),
    }))
}

fn stats(app: &App, call: &Call, request: TenantStats) -> Result<Json<TenantStatistics>, ApiError> {
    let grant = call.grant()?;
    let access = app.engine.open(grant, &request.scope, None)?;
    let stats = app.engine.stats(grant, &access)?;
    let tenant_id = access.tenant.id.to_string();
    let body = TenantStatistics {
        object_count: stats.objects,
        tenant_name: tenant_id.clone(),
        tenant_id,
        embedding_model: stats.model.name,
        vector_dimension: stats.model.dimension,
        success: true,
        message: "Successfully fetched tenant statistics".to_owned(),
        sub_tenant_id: access.sub_tenant.to_string(),
        mode: access.tenant.mode.name().to_owned(),
        metric: metric_of(&access.tenant),
        source_count: stats.sources,
        memory_count: stats.memories,
        tenant_object_count: stats.tenant_objects,
    };
    Ok(Json::new(body).with_degraded(degraded(&access)))
}

fn usage(app: &App, call: &Call, request: NamedTenant) -> Result<Json<TenantUsage>, ApiError> {
    // A tenant whose request limit is exhausted may still ask for its usage.
    let usage = app.engine.usage(&call.grant()?.uncounted(), &request.tenant)?;
    let message = "Successfully fetched the tenant's usage";
    Ok(Json::new(usage_of(&request.tenant, usage, message)))
}

fn set_limits(
    app: &App,
    call: &Call,
    request: SetTenantLimits,
) -> Result<Json<TenantUsage>, ApiError> {
    let SetTenantLimits { tenant, limits } = request;
    let (collection, set) = app.engine.set_tenant_limits(call.grant()?, &tenant, limits)?;
    call.tell_subject(collection);
    Ok(Json::new(usage_of(&tenant, set, "Limits set")))
}

fn usage_of(tenant: &TenantId, usage: Usage, message: &str) -> TenantUsage {
    let Usage { allowance, vectors, requests, ingest_workers } = usage;
    TenantUsage {
        tenant_id: tenant.to_string(),
        sources: allowance.used.sources,
        bytes: allowance.used.bytes,
        vectors,
        requests_last_minute: requests,
        ingest_workers,
        limits: allowance.limits.into(),
        own_limits: allowance.own.into(),
        success: true,
        message: message.to_owned(),
    }
}

fn delete_sub_tenant(
    app: &App,
    call: &Call,
    request: DeleteSubTenant,
) -> Result<Json<TenantOutcome>, ApiError> {
    let access = app.engine.open(call.grant()?, &request.scope, None)?;
    call.tell_subject(access.tenant.collection);
    app.engine.delete_sub_tenant(&access)?;
    Ok(Json::new(TenantOutcome {
        status: "success".to_owned(),
        tenant_id: access.tenant.id.to_string(),
        sub_tenant_id: access.sub_tenant.to_string(),
        success: true,
        message: "Sub-tenant deleted".to_owned(),
    }))
}

fn create_tenant(
    app: &App,
    call: &Call,
    request: CreateTenant,
) -> Result<Json<TenantOutcome>, ApiError> {
    let CreateTenant { tenant, schema, plan } = request;
    let (grant, mode) = (call.grant()?, TenantMode::Standard);
    let created = app.engine.create_tenant(grant, tenant, mode, schema, plan)?;
    call.tell_subject(created.collection);
    Ok(Json::new(outcome("created", &created, "Tenant created")))
}

fn create_embeddings_tenant(
    app: &App,
    call: &Call,
    request: CreateVectorTenant,
) -> Result<Json<TenantOutcome>, ApiError> {
    let CreateVectorTenant { tenant, metric, limits } = request;
    let (mode, plan) =
        (TenantMode::Embeddings(metric), TenantPlan { limits, ..Default::default() });
    let created = app.engine.create_tenant(call.grant()?, Some(tenant), mode, None, plan)?;
    call.tell_subject(created.collection);
    Ok(Json::new(outcome("success", &created, "Tenant created")))
}

fn metric_of(tenant: &Tenant) -> Option<String> {
    tenant.mode.metric().map(|metric| metric.as_str().to_owned())
}

fn outcome(status: &str, tenant: &Tenant, message: &str) -> TenantOutcome {
    TenantOutcome {
        status: status.to_owned(),
        tenant_id: tenant.id.to_string(),
        sub_tenant_id: SubTenantId::DEFAULT.to_owned(),
        success: true,
        message: message.to_owned(),
    }
}

fn list(app: &App, call: &Call, (): ()) -> Result<Json<TenantList>, ApiError> {
    let tenants = app.engine.tenants(call.grant()?)?;
    let models = app.engine.tenant_models(&tenants);
    let view = |(tenant, model): (&Tenant, TenantModel)| TenantView {
        tenant_id: tenant.id.to_string(),
        sub_tenant_id: SubTenantId::DEFAULT.to_owned(),
        mode: tenant.mode.name().to_owned(),
        metric: metric_of(tenant),
        created_at: tenant.created_at.to_string(),
        embedding_model: model.name,
        vector_dimension: model.dimension,
        tenant_schema: schema_view(tenant.schema.as_ref()),
    };
    Ok(Json::new(TenantList {
        tenants: tenants.iter().zip(models).map(view).collect(),
        success: true,
        message: "Successfully fetched tenants".to_owned(),
    }))
}

fn delete(app: &App, call: &Call, request: DeleteTenant) -> Result<Json<TenantOutcome>, ApiError> {
    let tenant = request.tenant;
    call.tell_subject(app.engine.delete_tenant(call.grant()?, &tenant)?);
    Ok(Json::new(TenantOutcome {
        status: "success".to_owned(),
        tenant_id: tenant.to_string(),
        sub_tenant_id: SubTenantId::DEFAULT.to_owned(),
        success: true,
        message: "Tenant deleted".to_owned(),
    }))
}
