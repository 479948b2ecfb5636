//! The scope of content operations, and the data mode of a tenant.

use serde::{Deserialize, Serialize};

use crate::{SubTenantId, TenantId};

/// One `(tenant, sub-tenant)` pair. Content operations never cross its boundary.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantId,
    /// The sub-tenant within that tenant.
    pub sub_tenant: SubTenantId,
}

/// Similarity metric of client vectors; a higher score means nearer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Cosine of the angle, -1 to 1; vector lengths are ignored.
    #[default]
    Cosine,
    /// Dot product.
    Dot,
    /// Negated squared Euclidean distance.
    L2,
}

words!(Metric { Cosine = "cosine", Dot = "dot", L2 = "l2" });

/// The kind of data a tenant holds, fixed at creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TenantMode {
    /// Documents, text, pages and app records, embedded by the server.
    Standard,
    /// Vectors made by the client, returned bit for bit.
    Embeddings(Metric),
}

impl TenantMode {
    /// Client vectors compared by cosine.
    pub const EMBEDDINGS: Self = Self::Embeddings(Metric::Cosine);

    /// The mode's name on the wire, without the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Embeddings(_) => "embeddings",
        }
    }

    /// The word stored in catalogs, descriptors and archives. It includes the metric, so a release
    /// that does not know the metric refuses the tenant instead of ranking its vectors wrongly.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Embeddings(Metric::Dot) => "embeddings_dot",
            Self::Embeddings(Metric::L2) => "embeddings_l2",
            Self::Embeddings(Metric::Cosine) | Self::Standard => self.name(),
        }
    }

    /// Parses a word; the inverse of [`Self::as_str`].
    pub fn from_word(word: &str) -> Option<Self> {
        let all = [Metric::Cosine, Metric::Dot, Metric::L2].map(Self::Embeddings);
        all.into_iter().chain([Self::Standard]).find(|mode| mode.as_str() == word)
    }

    /// The metric of client vectors; `None` in standard mode.
    pub fn metric(self) -> Option<Metric> {
        match self {
            Self::Standard => None,
            Self::Embeddings(metric) => Some(metric),
        }
    }

    /// Whether the tenant holds client vectors.
    pub fn is_embeddings(self) -> bool {
        self.metric().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_a_word_of_its_own() {
        let words = ["standard", "embeddings", "embeddings_dot", "embeddings_l2"];
        assert_eq!(words.map(|word| TenantMode::from_word(word).unwrap().as_str()), words);
        assert_eq!(TenantMode::from_word("embeddings_cosine"), None);
        assert_eq!(TenantMode::EMBEDDINGS.as_str(), "embeddings");
        let vectors = TenantMode::Embeddings(Metric::L2);
        assert_eq!((vectors.name(), vectors.metric()), ("embeddings", Some(Metric::L2)));
        assert_eq!(TenantMode::Standard.metric(), None);
        assert!(vectors.is_embeddings() && !TenantMode::Standard.is_embeddings());
    }
}
