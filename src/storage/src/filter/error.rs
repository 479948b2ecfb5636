//! Errors of filters and of stored columns.

use lodestone_types::ErrorKind;

/// Errors of parsing a filter and of reading stored columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The filter breaks a rule of the grammar.
    #[error("{field} {problem}")]
    Invalid {
        /// The field of the request, for example `tenant_metadata.year.$gt`.
        field: String,
        /// The broken rule.
        problem: String,
    },
    /// The tenant's schema declares the key with `filterable: false`.
    #[error("{field} is declared as not filterable")]
    NotFilterable {
        /// The field of the request, for example `tenant_metadata.notes`.
        field: String,
    },
    /// Stored columns violate their format.
    #[error("filter columns are damaged: {part} {number} {problem}")]
    Damaged {
        /// The part of the format, for example `header`.
        part: &'static str,
        /// Number of the item in that part, from 0.
        number: usize,
        /// The broken rule.
        problem: &'static str,
    },
    /// The columns were written for a different number of rows than the segment has.
    #[error("filter columns cover {stored} rows, the segment has {rows}")]
    RowsDisagree {
        /// Rows that the columns cover.
        stored: u32,
        /// Rows of the segment.
        rows: u32,
    },
}

impl FilterError {
    /// A stable identifier of the kind of error, for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid_filter",
            Self::NotFilterable { .. } => "field_not_filterable",
            Self::Damaged { .. } | Self::RowsDisagree { .. } => "internal",
        }
    }

    /// The invalid field of the request; `None` for errors of stored columns.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Invalid { field, problem: _ } | Self::NotFilterable { field } => Some(field),
            Self::Damaged { .. } | Self::RowsDisagree { .. } => None,
        }
    }

    /// Classifies the error by what the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::NotFilterable { .. } => ErrorKind::Invalid,
            Self::Damaged { .. } | Self::RowsDisagree { .. } => ErrorKind::Corrupt,
        }
    }
}
