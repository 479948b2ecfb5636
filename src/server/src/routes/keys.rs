//! Operations that create, list and revoke API keys.

use crate::app::{App, blocking};
use crate::dto::keys::{CreateKey, CreatedKey, KeyList, KeyView, RevokeKey, RevokedKey};
use crate::error::{ApiError, Location};
use crate::reply::Json;
use crate::request::Call;
use crate::routes::{Group, Route};
use lodestone_catalog::{KeyInfo, NewKey};
use lodestone_types::Role;

/// Returns the API key operations.
pub fn routes() -> Vec<Route<App>> {
    let (group, admin) = (Group::Admin, Role::Admin);
    vec![
        Route::<App>::post("/admin/api_keys", group, admin, "Create an API key")
            .handle(blocking(create)),
        Route::<App>::get("/admin/api_keys", group, admin, "List API keys, without their secrets")
            .handle(blocking(list)),
        Route::<App>::delete("/admin/api_keys/{key_id}", group, admin, "Revoke an API key")
            .handle(blocking(revoke)),
    ]
}

fn create(app: &App, call: &Call, request: CreateKey) -> Result<Json<CreatedKey>, ApiError> {
    let CreateKey { name, role, scope, expires_at } = request;
    if expires_at.is_some_and(|end| end <= app.engine.clock().now()) {
        let problem = "must be in the future";
        return Err(ApiError::field("invalid_value", Location::Body, "expires_at", problem));
    }
    let new = NewKey { name, role, scope, expires_at };
    let created = app.engine.create_key(call.grant()?, new)?;
    call.tell_subject(&created.info.id);
    Ok(Json::new(CreatedKey {
        api_key: created.text.expose().to_owned(),
        key: view(&created.info),
        success: true,
        message: "API key created; it is shown only once".to_owned(),
    }))
}

fn list(app: &App, call: &Call, (): ()) -> Result<Json<KeyList>, ApiError> {
    let keys = app.engine.keys(call.grant()?)?;
    Ok(Json::new(KeyList {
        api_keys: keys.iter().map(view).collect(),
        success: true,
        message: "Successfully fetched API keys".to_owned(),
    }))
}

fn revoke(app: &App, call: &Call, request: RevokeKey) -> Result<Json<RevokedKey>, ApiError> {
    app.engine.revoke_key(call.grant()?, &request.key_id)?;
    call.tell_subject(&request.key_id);
    let message = "API key revoked".to_owned();
    Ok(Json::new(RevokedKey { key_id: request.key_id, success: true, message }))
}

fn view(info: &KeyInfo) -> KeyView {
    KeyView {
        key_id: info.id.clone(),
        name: info.name.clone(),
        role: info.role.as_str().to_owned(),
        tenants: KeyView::tenants_of(&info.scope),
        created_at: info.created_at.to_string(),
        expires_at: info.expires_at.map(|end| end.to_string()),
    }
}
