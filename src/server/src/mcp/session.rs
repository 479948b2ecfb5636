//! One tool call and the tenant that it addresses.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer as Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::mcp::api::{Api, Operation, Refusal};
use crate::mcp::caller::{Caller, Choice};

/// One tool call.
pub(super) struct Session {
    api: Arc<Api>,
    caller: Arc<Caller>,
    /// The tenant.
    pub tenant: String,
    /// The sub-tenant; empty for `default`.
    pub sub_tenant: String,
    progress: Option<(Client<RoleServer>, ProgressToken)>,
}

impl Session {
    /// Begins a call by `caller`. If the caller has a choice, tenant and sub-tenant are removed
    /// from `arguments`, which name them.
    ///
    /// # Errors
    /// A refusal if the tenant, or a sub-tenant that must be named, is missing or is not a string.
    pub fn begin(
        api: Arc<Api>,
        caller: Arc<Caller>,
        arguments: &mut JsonObject,
        progress: Option<(Client<RoleServer>, ProgressToken)>,
    ) -> Result<Self, Refusal> {
        let mut named = |name: &str, choice: Choice| match choice {
            Choice::Fixed(only) => Ok(Some(only)),
            Choice::OneOf(_) | Choice::Any => match arguments.remove(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(_) => Err(Refusal::new(format!("{name} must be a string"))),
            },
        };
        let tenant = named("tenant_id", caller.tenants())?;
        let must_be_named = caller.sub_tenants().lacks_default();
        let sub_tenant = named("sub_tenant_id", caller.sub_tenants())?;
        let tenant = tenant.ok_or_else(|| Refusal::new("tenant_id is required"))?;
        if sub_tenant.is_none() && must_be_named {
            return Err(Refusal::new("sub_tenant_id is required"));
        }
        Ok(Self { api, caller, tenant, sub_tenant: sub_tenant.unwrap_or_default(), progress })
    }

    /// Calls a reading operation with a JSON body, to which the scope is added.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &'static str,
        mut body: Value,
    ) -> Result<T, Refusal> {
        body["tenant_id"] = json!(self.tenant);
        body["sub_tenant_id"] = json!(self.sub_tenant);
        let (method, query) = (http::Method::POST, Vec::new());
        self.api.call(&self.caller, Operation { method, path, query, body }).await
    }

    /// Calls an operation with the scope in the query string.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: http::Method,
        path: &'static str,
        mut query: Vec<(&str, String)>,
        body: Value,
    ) -> Result<T, Refusal> {
        query.push(("tenant_id", self.tenant.clone()));
        if !self.sub_tenant.is_empty() {
            query.push(("sub_tenant_id", self.sub_tenant.clone()));
        }
        self.api.call(&self.caller, Operation { method, path, query, body }).await
    }

    /// Reports progress to a caller that asked for it.
    pub async fn progress(&self, done: f64, message: &str) {
        let Some((client, token)) = &self.progress else { return };
        let note = ProgressNotificationParam::new(token.clone(), done);
        // A client that has disconnected is ignored.
        let _ = client.notify_progress(note.with_message(message)).await;
    }
}
