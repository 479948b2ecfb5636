//! Warnings in search responses.

use schemars::JsonSchema;
use serde::Serialize;

/// Warning that explains why a request may have found nothing, or more than intended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchWarning {
    /// `filter_type_mismatch`: the values of the key have a different type than those in the
    /// filter; `filter_unknown_key`: the key has no values; `facet_unknown_key`: the key to count
    /// has no values; `parameter_ignored`: a parameter of other products that has no effect here;
    /// `query_shortened`: the query has more words than full text compares.
    pub code: String,
    /// Field of the request.
    pub field: String,
    /// Human-readable message.
    pub message: String,
}
