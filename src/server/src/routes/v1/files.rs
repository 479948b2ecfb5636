//! Uploaded files, kept for vector stores until they are deleted.
//!
//! A file is not a source: no search in any interface finds it until it has been added to a vector
//! store. It belongs to a sub-tenant, by default `default`, and counts against the limits of its
//! tenant from its upload on. Deleting it also deletes it from the vector stores.

use crate::app::{App, blocking};
use crate::dto::v1::SUB_TENANT_HEADER;
use crate::dto::v1::files::{CreateFile, FileView, ListFiles, OneFile};
use crate::dto::v1::pages::{Cursor, DeletedObject, Page};
use crate::error::{ApiError, Condition, Location};
use crate::reply::Bare;
use crate::request::Call;
use crate::routes::fetch::File;
use crate::routes::v1::tenant_of;
use crate::routes::{Group, Route};
use lodestone_catalog::{FilePage, StoredFile};
use lodestone_engine::ingest::NewFile;
use lodestone_types::random::wire_id_time;
use lodestone_types::{Grant, KeyScope, Role, Scope, SourceId, SubTenantId, TenantId, limits};

/// Returns the file operations.
pub(super) fn routes() -> Vec<Route<App>> {
    const ONE: &str = "/v1/files/{file_id}";
    let (group, read, write) = (Group::OpenAi, Role::Read, Role::Write);
    vec![
        Route::<App>::post("/v1/files", group, write, "Upload a file for vector stores")
            .multipart(limits::FILE_BYTES_MAX)
            .handle(blocking(create)),
        Route::<App>::get("/v1/files", group, read, "List the uploaded files")
            .handle(blocking(list)),
        Route::<App>::get(ONE, group, read, "Look up an uploaded file").handle(blocking(get)),
        Route::<App>::get("/v1/files/{file_id}/content", group, read, "Download an uploaded file")
            .handle(blocking(content)),
        Route::<App>::delete(
            ONE,
            group,
            write,
            "Delete an uploaded file, also from all vector stores",
        )
        .handle(blocking(delete)),
    ]
}

/// Creates the 404 for a file that does not exist or that the key cannot reach; both look the same.
pub(super) fn file_not_found(location: Location) -> ApiError {
    let message = "the file does not exist or this key has no access to it";
    ApiError::new(Condition::SourceNotFound, "file_not_found", message).at(location, "file_id")
}

/// Looks up the file that a request names, in the tenant that it works in.
fn named(app: &App, call: &Call, request: &OneFile) -> Result<(TenantId, StoredFile), ApiError> {
    let grant = call.grant()?;
    let tenant = tenant_of(grant, request.tenant.as_ref())?;
    let file = match SourceId::parse(&request.id) {
        Ok(id) => app.engine.file(grant, &tenant, &id)?,
        Err(_) => None,
    };
    Ok((tenant, file.ok_or_else(|| file_not_found(Location::Path))?))
}

/// Returns the sub-tenant of a new file: the one that is named, else the key's only one.
fn owner(
    grant: &Grant,
    tenant: &TenantId,
    named: Option<SubTenantId>,
) -> Result<SubTenantId, ApiError> {
    if let Some(named) = named {
        return Ok(named);
    }
    let limited_to = match &*grant.scope {
        KeyScope::Tenants(grants) => grants.iter().find(|one| one.tenant == *tenant),
        KeyScope::AllTenants => None,
    };
    match limited_to.and_then(|one| one.sub_tenants.as_deref()) {
        None => Ok(SubTenantId::default_name()),
        Some([only]) => Ok(only.clone()),
        Some(_) => {
            let problem = "is required: this key has access to several sub-tenants";
            let name = SUB_TENANT_HEADER.name;
            Err(ApiError::field("missing_field", Location::Header, name, problem))
        }
    }
}

fn create(app: &App, call: &Call, request: CreateFile) -> Result<Bare<FileView>, ApiError> {
    let CreateFile { tenant, sub_tenant, file, purpose } = request;
    let grant = call.grant()?;
    let tenant = tenant_of(grant, tenant.as_ref())?;
    let sub_tenant = owner(grant, &tenant, sub_tenant)?;
    let new = NewFile {
        purpose,
        filename: file.filename,
        content_type: file.content_type,
        content: file.bytes,
    };
    let stored = app.engine.add_file(grant, &Scope { tenant, sub_tenant }, new)?;
    Ok(Bare::new(view(stored)))
}

fn list(app: &App, call: &Call, request: ListFiles) -> Result<Bare<Page<FileView>>, ApiError> {
    let ListFiles { tenant, purpose, after, is_ascending, limit } = request;
    let grant = call.grant()?;
    let tenant = tenant_of(grant, tenant.as_ref())?;
    let after = after.map(|id| SourceId::parse_field("after", &id)).transpose();
    let after = after.map_err(|error| ApiError::from(error).at(Location::Query, "after"))?;
    // A file deleted since the previous page still has a position, because ids sort by time.
    let is_id = |id: &SourceId| id.as_str().strip_prefix("file-").and_then(wire_id_time).is_some();
    if let Some(other) = after.as_ref().filter(|id| !is_id(id)) {
        return Err(Cursor::After(other.to_string()).unknown());
    }
    let page = FilePage { sub_tenants: None, purpose, after, is_ascending, limit };
    let (files, has_more) = app.engine.files(grant, &tenant, page)?;
    let views = files.into_iter().map(view).collect();
    Ok(Bare::new(Page::of(views, has_more, |file: &FileView| &file.id)))
}

fn get(app: &App, call: &Call, request: OneFile) -> Result<Bare<FileView>, ApiError> {
    Ok(Bare::new(view(named(app, call, &request)?.1)))
}

fn content(app: &App, call: &Call, request: OneFile) -> Result<File, ApiError> {
    let file = named(app, call, &request)?.1;
    let stored = app.engine.file_content(&file)?;
    let content = Some(stored.content().clone());
    let StoredFile { content_type, filename, id, .. } = file;
    let filename = Some(filename).filter(|name| !name.is_empty());
    Ok(File { content, content_type, filename: filename.unwrap_or_else(|| id.to_string()) })
}

fn delete(app: &App, call: &Call, request: OneFile) -> Result<Bare<DeletedObject>, ApiError> {
    let (tenant, file) = named(app, call, &request)?;
    call.tell_subject(&file.id);
    match app.engine.delete_file(call.grant()?, &tenant, &file.id)? {
        true => Ok(Bare::new(DeletedObject::new(file.id.as_str(), "file"))),
        false => Err(file_not_found(Location::Path)),
    }
}

fn view(file: StoredFile) -> FileView {
    let id = file.id.to_string();
    FileView {
        object: "file",
        bytes: file.size_bytes,
        created_at: file.created_at.0 / 1000,
        expires_at: None,
        filename: if file.filename.is_empty() { id.clone() } else { file.filename },
        purpose: file.purpose,
        status: "processed",
        status_details: None,
        id,
    }
}
