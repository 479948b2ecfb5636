//! One call of a tool, and the tenant that it addresses.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer as Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::mcp::api::{Api, Operation, Refusal};
use crate::mcp::caller::{Caller, Choice};

/// One call of a tool.
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
    /// A call by `caller`, which names tenant and sub-tenant among its arguments where it has a
    /// choice. They are taken out of `arguments`.
    ///
    /// # Errors
    /// A tenant that is missing.
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
        let sub_tenant = named("sub_tenant_id", caller.sub_tenants())?;
        let tenant = tenant.ok_or_else(|| Refusal::new("tenant_id is required"))?;
        Ok(Self { api, caller, tenant, sub_tenant: sub_tenant.unwrap_or_default(), progress })
    }

    /// Reads with a JSON body, to which the scope is added.
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

    /// An operation with the scope in the query string.
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

    /// Tells a caller who asked for it how far the call is.
    pub async fn progress(&self, done: f64, message: &str) {
        let Some((client, token)) = &self.progress else { return };
        let note = ProgressNotificationParam::new(token.clone(), done);
        // A client that has gone needs no news.
        let _ = client.notify_progress(note.with_message(message)).await;
    }
}
