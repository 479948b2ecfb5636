//! What can go wrong with a filter or with stored columns.

use lodestone_types::ErrorKind;

/// Why a filter cannot be parsed, or why stored columns cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The filter breaks a rule of API 5.3.
    #[error("{field} {problem}")]
    Invalid {
        /// Where in the request, for example `tenant_metadata.year.$gt`.
        field: String,
        /// What is wrong there.
        problem: String,
    },
    /// The tenant's schema declares the key with `filterable: false`.
    #[error("{field} is declared as not filterable")]
    NotFilterable {
        /// Where in the request, for example `tenant_metadata.notes`.
        field: String,
    },
    /// Stored columns do not say what they must say.
    #[error("filter columns are damaged: {part} {number} {problem}")]
    Damaged {
        /// The part of the file.
        part: &'static str,
        /// The number of the item in that part, from 0.
        number: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The columns were made for another number of rows than the segment has.
    #[error("filter columns cover {stored} rows, the segment has {rows}")]
    RowsDisagree {
        /// Rows that the columns cover.
        stored: u32,
        /// Rows of the segment.
        rows: u32,
    },
}

impl FilterError {
    /// The machine word of API 1.7.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid_filter",
            Self::NotFilterable { .. } => "field_not_filterable",
            Self::Damaged { .. } | Self::RowsDisagree { .. } => "internal",
        }
    }

    /// The place in the request that is at fault; none for faults of stored columns.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Invalid { field, problem: _ } | Self::NotFilterable { field } => Some(field),
            Self::Damaged { .. } | Self::RowsDisagree { .. } => None,
        }
    }

    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid { .. } | Self::NotFilterable { .. } => ErrorKind::Invalid,
            Self::Damaged { .. } | Self::RowsDisagree { .. } => ErrorKind::Corrupt,
        }
    }
}
