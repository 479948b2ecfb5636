//! Errors of arithmetic over vectors.

use lodestone_types::ErrorKind;

/// Error of a refused vector, column or row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    /// A vector of another width than the rows.
    #[error("the vector has {received} components, the rows have {expected}")]
    DimensionMismatch {
        /// Components of a row.
        expected: usize,
        /// Components of the vector.
        received: usize,
    },
    /// A vector without components, or with more than the product supports.
    #[error("a vector of {dimension} components is outside 1 to {dimension_max}")]
    DimensionOutOfRange {
        /// Components of the vector.
        dimension: usize,
        /// The most that are supported.
        dimension_max: usize,
    },
    /// NaN or an infinity.
    #[error("component {position} of the vector is not a finite number")]
    NotFinite {
        /// Its position, counted from 0.
        position: usize,
    },
    /// A column of a segment whose length contradicts its rows.
    #[error("column {column} holds {received} elements, expected {expected}")]
    Shape {
        /// The column.
        column: &'static str,
        /// Elements that rows and dimension ask for.
        expected: usize,
        /// Elements found.
        received: usize,
    },
    /// More rows than a row id can name.
    #[error("{rows} rows are more than a segment can number")]
    TooManyRows {
        /// Rows of the columns.
        rows: usize,
    },
    /// A row that the segment does not have.
    #[error("row {row} is outside a segment of {rows} rows")]
    RowOutOfRange {
        /// The row asked for.
        row: u32,
        /// Rows of the segment.
        rows: usize,
    },
}

impl ComputeError {
    /// Its kind, which says what a caller should do.
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
