//! The caller of one message, and the tenants that it may name.

use std::sync::Arc;

use http::HeaderValue;
use http::request::Parts;

use crate::error::{ApiError, Location};
use crate::listen::Peer;
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
