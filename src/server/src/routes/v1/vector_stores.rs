//! Vector stores: a vector store is a sub-tenant, and its id is the sub-tenant's name.
//!
//! It therefore contains whatever any interface adds to the sub-tenant, and `TENANT/ID` is its
//! model for chat completions. Creating one here creates an empty sub-tenant; sub-tenants created
//! by uploads are listed too, under their names. For a key that is limited to sub-tenants, these
//! are its vector stores, and it cannot create others.

use crate::app::{App, blocking, degraded};
use crate::dto::v1::pages::{Cursor, DeletedObject, Page};
use crate::dto::v1::store_files::TakenFile;
use crate::dto::v1::vector_stores::{
    CreateStore, FileCounts, ListStores, OneStore, UpdateStore, VectorStoreView,
};
use crate::error::ApiError;
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::v1::store_files::{existing, take_in};
use crate::routes::v1::store_scope::{named, open, opened, store_not_found};
use crate::routes::v1::tenant_of;
use crate::routes::{Group, Route};
use lodestone_catalog::{StorePage, VectorStore};
use lodestone_engine::{EngineError, TenantAccess};
use lodestone_types::{Metadata, Role, Scope, SubTenantId};

/// Returns the vector store operations.
pub(super) fn routes() -> Vec<Route<App>> {
    const ALL: &str = "/v1/vector_stores";
    const ONE: &str = "/v1/vector_stores/{vector_store_id}";
    let (group, read, write) = (Group::OpenAi, Role::Read, Role::Write);
    vec![
        Route::<App>::post(ALL, group, write, "Create a vector store, an empty sub-tenant")
            .handle(blocking(create)),
        Route::<App>::get(ALL, group, read, "List the vector stores, one per sub-tenant")
            .at_writer()
            .handle(blocking(list)),
        Route::<App>::get(ONE, group, read, "Look up a vector store")
            .at_writer()
            .handle(blocking(get)),
        Route::<App>::post(ONE, group, write, "Change the name and metadata of a vector store")
            .handle(blocking(update)),
        Route::<App>::delete(
            ONE,
            group,
            write,
            "Delete a vector store: the sub-tenant and everything in it",
        )
        .handle(blocking(delete)),
    ]
}

fn create(app: &App, call: &Call, request: CreateStore) -> Result<Bare<VectorStoreView>, ApiError> {
    let CreateStore { tenant, name, metadata, file_ids } = request;
    let grant = call.grant()?;
    let tenant = tenant_of(grant, tenant.as_ref())?;
    let file = |file_id| TakenFile { file_id, attributes: Metadata::new() };
    let files: Vec<TakenFile> = file_ids.into_iter().map(file).collect();
    // Looked up before the store is created, so that a refused request creates none.
    let files = match files.is_empty() {
        true => Vec::new(),
        false => existing(app, call, &tenant, files)?,
    };
    let store = app.engine.create_vector_store(grant, &tenant, name, metadata)?;
    let access = open(app, call, &Scope { tenant, sub_tenant: store.name.clone() })?;
    for (file, attributes) in files {
        if let Err(error) = take_in(app, call, &access, &file, attributes) {
            app.engine.delete_sub_tenant(&access)?;
            return Err(error);
        }
    }
    Ok(Bare::new(view(app, &access, store)?))
}

fn list(
    app: &App,
    call: &Call,
    request: ListStores,
) -> Result<Bare<Page<VectorStoreView>>, ApiError> {
    let ListStores { tenant, page } = request;
    let grant = call.grant()?;
    let tenant = tenant_of(grant, tenant.as_ref())?;
    let after = match &page.cursor {
        None => None,
        Some(cursor @ (Cursor::After(id) | Cursor::Before(id))) => {
            let name = SubTenantId::parse(id).map_err(|_| cursor.unknown())?;
            let found = app.engine.vector_store(grant, &tenant, &name)?;
            let found = found.ok_or_else(|| cursor.unknown())?;
            Some((found.created_at, found.name))
        }
    };
    let (reached, only, limit) = (None, None, page.limit);
    let wanted = StorePage { reached, only, after, is_ascending: !page.is_backwards(), limit };
    let (mut stores, has_more) = app.engine.vector_stores(grant, &tenant, wanted)?;
    app.engine.let_nodes_see_all()?;
    if matches!(page.cursor, Some(Cursor::Before(_))) {
        stores.reverse();
    }
    let mut views = Vec::with_capacity(stores.len());
    for store in stores {
        let scope = Scope { tenant: tenant.clone(), sub_tenant: store.name.clone() };
        views.push(view(app, &open(app, call, &scope)?, store)?);
    }
    Ok(Bare::new(Page::of(views, has_more, |store: &VectorStoreView| &store.id)))
}

fn get(app: &App, call: &Call, request: OneStore) -> Result<Bare<VectorStoreView>, ApiError> {
    let (scope, store) = named(app, call, &request)?;
    let access = open(app, call, &scope)?;
    let body = view(app, &access, store)?;
    app.engine.let_nodes_see_all()?;
    Ok(Bare { degraded: degraded(&access), ..Bare::new(body) })
}

fn update(app: &App, call: &Call, request: UpdateStore) -> Result<Bare<VectorStoreView>, ApiError> {
    let UpdateStore { store, name, metadata } = request;
    let access = opened(app, call, &store)?;
    app.engine.name_vector_store(&access, name, metadata)?;
    get(app, call, store)
}

fn delete(app: &App, call: &Call, request: OneStore) -> Result<Bare<DeletedObject>, ApiError> {
    let access = opened(app, call, &request)?;
    call.tell_subject(access.tenant.collection);
    match app.engine.delete_sub_tenant(&access) {
        Err(EngineError::SubTenantUnknown { .. }) => Err(store_not_found()),
        deleted => {
            deleted?;
            Ok(Bare::new(DeletedObject::new(request.id, "vector_store.deleted")))
        }
    }
}

fn view(app: &App, access: &TenantAccess, store: VectorStore) -> Result<VectorStoreView, ApiError> {
    let (counts, usage_bytes) = app.engine.vector_store_use(access)?;
    let VectorStore { name, created_at, title, metadata } = store;
    Ok(VectorStoreView {
        object: "vector_store",
        created_at: created_at.0 / 1000,
        name: if title.is_empty() { name.to_string() } else { title },
        usage_bytes,
        file_counts: FileCounts {
            in_progress: counts.waiting,
            completed: counts.success,
            failed: counts.errored,
            cancelled: 0,
            total: counts.waiting + counts.success + counts.errored,
        },
        status: if counts.waiting > 0 { "in_progress" } else { "completed" },
        expires_after: None,
        expires_at: None,
        last_active_at: None,
        metadata,
        id: name.to_string(),
    })
}
