//! The caller of one message, and the tenant that it addresses.

use std::sync::Arc;

use http::HeaderValue;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::{JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer as Client;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{ApiError, Location};
use crate::listen::Peer;
use crate::mcp::api::{Api, Operation, Refusal};
use lodestone_types::{Grant, KeyScope, SubTenantId, TenantId};

/// Header that names the tenant for every tool.
const TENANT_HEADER: &str = "x-lodestone-tenant";
/// Header that names the sub-tenant.
const SUB_TENANT_HEADER: &str = "x-lodestone-sub-tenant";

/// The sender of a message.
#[derive(Debug)]
pub(super) struct Caller {
    /// The rights of its key.
    pub grant: Grant,
    /// The header with its key.
    pub authorization: HeaderValue,
    /// The id of the request.
    pub request_id: Arc<str>,
    /// The connection.
    pub peer: Option<Arc<Peer>>,
    tenant: Option<String>,
    sub_tenant: Option<String>,
}

/// The tenants that a caller may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// This tenant alone.
    Fixed(String),
    /// One of these tenants.
    OneOf(Vec<String>),
    /// Any.
    Any,
}

impl Caller {
    /// The sender of a request: the tenant stands in a header, in the query of the address, or in
    /// the scope of a key for one tenant.
    ///
    /// # Errors
    /// 400 for what is no id.
    pub fn new(
        parts: &Parts,
        grant: Grant,
        authorization: HeaderValue,
        request_id: Arc<str>,
        peer: Option<Arc<Peer>>,
    ) -> Result<Self, ApiError> {
        let named = |header: &'static str, parameter: &str| -> Result<Option<String>, ApiError> {
            if let Some(value) = parts.headers.get(header) {
                let text = value.to_str().map_err(|_| {
                    ApiError::field("invalid_value", Location::Header, header, "must be ASCII")
                })?;
                return Ok(Some(text.to_owned()));
            }
            let query = parts.uri.query().unwrap_or_default();
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            Ok(pairs.find(|(name, _)| name == parameter).map(|(_, value)| value.into_owned()))
        };
        let tenant = named(TENANT_HEADER, "tenant_id")?;
        let sub_tenant = named(SUB_TENANT_HEADER, "sub_tenant_id")?;
        if let Some(tenant) = &tenant {
            TenantId::parse_field("tenant_id", tenant)?;
        }
        if let Some(sub_tenant) = &sub_tenant {
            SubTenantId::parse_field("sub_tenant_id", sub_tenant)?;
        }
        Ok(Self { grant, authorization, request_id, peer, tenant, sub_tenant })
    }

    /// The tenants that it may name.
    pub fn tenants(&self) -> Choice {
        match (&self.tenant, &*self.grant.scope) {
            (Some(tenant), _) => Choice::Fixed(tenant.clone()),
            (None, KeyScope::AllTenants) => Choice::Any,
            (None, KeyScope::Tenants(grants)) => {
                one_or_more(grants.iter().map(|grant| grant.tenant.to_string()))
            }
        }
    }

    /// The sub-tenants that it may name.
    pub fn sub_tenants(&self) -> Choice {
        let scope = match (&*self.grant.scope, self.tenants()) {
            (KeyScope::Tenants(grants), Choice::Fixed(tenant)) => {
                grants.iter().find(|grant| grant.tenant.as_str() == tenant)
            }
            _ => None,
        };
        match (&self.sub_tenant, scope.and_then(|grant| grant.sub_tenants.as_ref())) {
            (Some(sub_tenant), _) => Choice::Fixed(sub_tenant.clone()),
            (None, Some(names)) => one_or_more(names.iter().map(ToString::to_string)),
            (None, None) => Choice::Any,
        }
    }
}

fn one_or_more(names: impl Iterator<Item = String>) -> Choice {
    let mut names: Vec<String> = names.collect();
    match names.len() {
        1 => Choice::Fixed(names.remove(0)),
        _ => Choice::OneOf(names),
    }
}

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
