//! Errors for invalid vectors, columns and rows.

use lodestone_types::ErrorKind;

/// Reason why a vector, a column or a row was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// The vector has another dimension than the rows.
    #[error("the vector has {received} components, the rows have {expected}")]
    DimensionMismatch {
        /// Components of a row.
        expected: usize,
        /// Components of the vector.
        received: usize,
    },
    /// The vector has no components, or more than the product supports.
    #[error("a vector of {dimension} components is outside 1 to {dimension_max}")]
    DimensionOutOfRange {
        /// Components of the vector.
        dimension: usize,
        /// Maximum number of components.
        dimension_max: usize,
    },
    /// A component is NaN or infinite.
    #[error("component {position} of the vector is not a finite number")]
    NotFinite {
        /// Position of the component, from 0.
        position: usize,
    },
    /// The length of a segment's column does not match its rows.
    #[error("column {column} holds {received} elements, expected {expected}")]
    Shape {
        /// Name of the column.
        column: &'static str,
        /// Number of elements that rows and dimension require.
        expected: usize,
        /// Number of elements found.
        received: usize,
    },
    /// There are more rows than row ids.
    #[error("{rows} rows are more than a segment can number")]
    TooManyRows {
        /// Number of rows.
        rows: usize,
    },
    /// The segment does not have the row.
    #[error("row {row} is outside a segment of {rows} rows")]
    RowOutOfRange {
        /// The requested row.
        row: u32,
        /// Number of rows of the segment.
        rows: usize,
    },
}

impl ComputeError {
    /// Returns the kind of the error, which tells the caller how to react.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::DimensionMismatch { .. }
            | Self::DimensionOutOfRange { .. }
            | Self::NotFinite { .. } => ErrorKind::Invalid,
            Self::Shape { .. } | Self::TooManyRows { .. } => ErrorKind::Corrupt,
            Self::RowOutOfRange { .. } => ErrorKind::Internal,
        }
    }
}
