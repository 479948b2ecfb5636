//! Warnings in search responses.

use schemars::JsonSchema;
use serde::Serialize;

/// Something about a request that explains why nothing was found, or more than was meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SearchWarning {
    /// `filter_type_mismatch`: the values of the key have another type than those of the filter;
    /// `filter_unknown_key`: there are none; `facet_unknown_key`: none of the key to count;
    /// `parameter_ignored`: a name of other products, without effect here.
    pub code: String,
    /// The field of the request.
    pub field: String,
    /// Text for people.
    pub message: String,
}
