//! The pair that every content operation carries.

use crate::{SubTenantId, TenantId};

/// One `(tenant, sub-tenant)` combination: content operations never cross it (API 1.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantId,
    /// The sub-tenant inside it.
    pub sub_tenant: SubTenantId,
}

/// What a tenant holds. Fixed at creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TenantMode {
    /// Documents, text, pages and app records, embedded by the server.
    Standard,
    /// Vectors made by the client, returned bit for bit.
    Embeddings,
}

impl TenantMode {
    /// The word used on the wire and in the catalog.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Embeddings => "embeddings",
        }
    }

    /// The inverse of [`Self::as_str`].
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "standard" => Some(Self::Standard),
            "embeddings" => Some(Self::Embeddings),
            _ => None,
        }
    }
}
