//! The caller of one message, and the tenants that it may address.

use std::sync::Arc;

use http::HeaderValue;
use http::request::Parts;

use crate::error::{ApiError, Location};
use crate::listen::Peer;
use lodestone_engine::ingest::ResultShare;
use lodestone_types::{Grant, KeyScope, SubTenantId, TenantId};

/// Header that fixes the tenant for every tool.
const TENANT_HEADER: &str = "x-lodestone-tenant";

/// Header that fixes the sub-tenant for every tool.
const SUB_TENANT_HEADER: &str = "x-lodestone-sub-tenant";

/// The sender of one message.
#[derive(Debug)]
pub(super) struct Caller {
    /// The rights of the caller's key.
    pub grant: Grant,
    /// The `Authorization` header that carries the key.
    pub authorization: HeaderValue,
    /// The id of the HTTP request.
    pub request_id: Arc<str>,
    /// The connection, if the request came over one.
    pub peer: Option<Arc<Peer>>,
    /// The memory of the answers that its tools read.
    pub results: ResultShare,
    tenant: Option<String>,
    sub_tenant: Option<String>,
}

/// The tenants, or sub-tenants, that a caller may choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Choice {
    /// Only this one.
    Fixed(String),
    /// Any one of these.
    OneOf(Vec<String>),
    /// Any one at all.
    Any,
}

impl Choice {
    /// Whether a sub-tenant must be named, because `default` is none of those to choose from.
    pub fn lacks_default(&self) -> bool {
        matches!(self, Self::OneOf(names) if !names.iter().any(|name| name == SubTenantId::DEFAULT))
    }
}

impl Caller {
    /// Reads the sender of a request. The tenant is taken from the header or from the query of the
    /// URL; without either, the scope of the key decides.
    ///
    /// # Errors
    /// 400 for a value that is not a valid id.
    pub fn new(
        parts: &Parts,
        grant: Grant,
        authorization: HeaderValue,
        request_id: Arc<str>,
        peer: Option<Arc<Peer>>,
        results: ResultShare,
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
        Ok(Self { grant, authorization, request_id, peer, results, tenant, sub_tenant })
    }

    /// Returns the tenants that the caller may address.
    pub fn tenants(&self) -> Choice {
        match (&self.tenant, &*self.grant.scope) {
            (Some(tenant), _) => Choice::Fixed(tenant.clone()),
            (None, KeyScope::AllTenants) => Choice::Any,
            (None, KeyScope::Tenants(grants)) => {
                one_or_more(grants.iter().map(|grant| grant.tenant.to_string()))
            }
        }
    }

    /// Returns the sub-tenants that the caller may address.
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
