//! The syntax tree of metadata filters (API 5.3). Parsing and evaluation are in `storage::filter`.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// The map that a condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FilterMap {
    /// `tenant_metadata`; system keys reach through where the map lacks the key.
    Tenant,
    /// `document_metadata`; system keys reach through where the map lacks the key.
    Document,
    /// `metadata`: system keys first, then the document's map, then the tenant's.
    System,
}

/// A scalar to compare with. There is no coercion between types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FilterValue {
    /// Matches missing or null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; `1` equals `1.0`.
    Number(Number),
    /// A case-sensitive text, ordered by code point.
    Text(String),
}

/// Comparison of a stored value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal to any of the values; no value matches nothing. `$eq`, `$in`, scalars and arrays.
    AnyOf(Vec<FilterValue>),
    /// Equal to none of the values; also where the key is missing. `$ne`, `$nin`.
    NoneOf(Vec<FilterValue>),
    /// Greater than a value of the same type.
    Greater(FilterValue),
    /// Greater than or equal to a value of the same type.
    GreaterOrEqual(FilterValue),
    /// Less than a value of the same type.
    Less(FilterValue),
    /// Less than or equal to a value of the same type.
    LessOrEqual(FilterValue),
    /// Whether the key is there with a value other than null.
    Exists(bool),
}

/// One condition on one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The map it looks at.
    pub map: FilterMap,
    /// Keys joined by dots.
    pub path: String,
    /// The comparison.
    pub comparison: Comparison,
}

/// A filter over the sources of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Filter {
    /// Everything passes.
    All,
    /// One condition.
    Is(Condition),
    /// Every part passes. Empty: everything.
    And(Vec<Filter>),
    /// At least one part passes. Empty: nothing.
    Or(Vec<Filter>),
}

impl Filter {
    /// Whether this is certain to let everything pass.
    pub fn is_all(&self) -> bool {
        match self {
            Self::All => true,
            Self::And(parts) => parts.iter().all(Self::is_all),
            Self::Is(_) | Self::Or(_) => false,
        }
    }
}
