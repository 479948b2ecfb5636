//! The syntax tree of metadata filters, whose language docs/api.md describes under "Filters".
//! `storage::filter` parses and evaluates it.

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// The metadata map that a condition reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FilterMap {
    /// `tenant_metadata`; a key missing from the map falls back to the system keys.
    Tenant,
    /// `document_metadata`; a key missing from the map falls back to the system keys.
    Document,
    /// `metadata`: looks in the system keys first, then in the document's map, then in the
    /// tenant's.
    System,
}

/// A scalar to compare with. Types are never coerced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FilterValue {
    /// JSON null; matches a missing key as well as null.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number; `1` equals `1.0`.
    Number(Number),
    /// A text; case-sensitive, ordered by code point.
    Text(String),
}

/// A comparison with the stored value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Comparison {
    /// Equal to any of the values; an empty list matches nothing. `$eq`, `$in`, bare scalars and
    /// arrays.
    AnyOf(Vec<FilterValue>),
    /// Equal to none of the values, or the key is missing. `$ne`, `$nin`.
    NoneOf(Vec<FilterValue>),
    /// Greater than a value of the same type.
    Greater(FilterValue),
    /// Greater than or equal to a value of the same type.
    GreaterOrEqual(FilterValue),
    /// Less than a value of the same type.
    Less(FilterValue),
    /// Less than or equal to a value of the same type.
    LessOrEqual(FilterValue),
    /// Whether the key is present with a value other than null.
    Exists(bool),
}

/// One condition on one metadata key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The map to look in.
    pub map: FilterMap,
    /// The key path, its parts joined by dots.
    pub path: String,
    /// The comparison.
    pub comparison: Comparison,
}

/// A filter over the sources of one scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Filter {
    /// Matches everything.
    All,
    /// One condition.
    Is(Condition),
    /// Every part must match. Empty: matches everything.
    And(Vec<Filter>),
    /// At least one part must match. Empty: matches nothing.
    Or(Vec<Filter>),
}

impl Filter {
    /// Whether this filter trivially matches everything.
    pub fn is_all(&self) -> bool {
        match self {
            Self::All => true,
            Self::And(parts) => parts.iter().all(Self::is_all),
            Self::Is(_) | Self::Or(_) => false,
        }
    }
}
