//! The scope of content operations, and the mode of a tenant.

use crate::{SubTenantId, TenantId};

/// One `(tenant, sub-tenant)` combination: content operations never cross it (API 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantId,
    /// The sub-tenant inside it.
    pub sub_tenant: SubTenantId,
}

/// Kind of data of a tenant. Fixed at creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TenantMode {
    /// Documents, text, pages and app records, embedded by the server.
    Standard,
    /// Vectors made by the client, returned bit for bit.
    Embeddings,
}

words!(TenantMode { Standard = "standard", Embeddings = "embeddings" });
