//! The vector columns of a segment in the making: encoded row by row, copied on a merge, viewed.

use crate::quantize::{encode_f16, encode_row};
use crate::rows::{check_dimension, code_stride};
use crate::{ComputeError, FullRows, VectorRows};
use lodestone_types::RowId;

/// What T2 holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullKind {
    /// Embeddings of our models, in f16.
    F16,
    /// Vectors of clients, exactly.
    F32,
}

/// Columns that own their memory. A writer stores each as it is, little-endian; a reader of the
/// stored bytes views them with `VectorRows::new`.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorColumns {
    dimension: usize,
    /// T1 codes, `code_stride(dimension)` bytes a row.
    pub codes: Vec<i8>,
    /// T1 scales, one a row.
    pub scales: Vec<f32>,
    /// T1 residuals, one a row.
    pub residuals: Vec<f32>,
    /// T2.
    pub full: FullColumns,
}

/// T2 columns that own their memory.
#[derive(Debug, Clone, PartialEq)]
pub enum FullColumns {
    /// f16 bits, `dimension` a row.
    F16(Vec<u16>),
    /// f32 values, `dimension` a row, and the length of each row.
    F32 {
        /// The values.
        values: Vec<f32>,
        /// The lengths.
        norms: Vec<f32>,
    },
}

impl VectorColumns {
    /// Columns without rows.
    ///
    /// # Errors
    /// [`ComputeError::DimensionOutOfRange`].
    pub fn new(dimension: usize, kind: FullKind) -> Result<Self, ComputeError> {
        check_dimension(dimension)?;
        let full = match kind {
            FullKind::F16 => FullColumns::F16(Vec::new()),
            FullKind::F32 => FullColumns::F32 { values: Vec::new(), norms: Vec::new() },
        };
        let (codes, scales, residuals) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { dimension, codes, scales, residuals, full })
    }

    /// Makes room for so many more rows at once: columns of gigabytes that grow step by step are
    /// copied several times, always to fresh memory.
    pub fn reserve(&mut self, rows: usize) {
        self.codes.reserve(rows * code_stride(self.dimension));
        self.scales.reserve(rows);
        self.residuals.reserve(rows);
        match &mut self.full {
            FullColumns::F16(bits) => bits.reserve(rows * self.dimension),
            FullColumns::F32 { values, norms } => {
                values.reserve(rows * self.dimension);
                norms.reserve(rows);
            }
        }
    }

    /// Components of a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Encodes `vector` as the next row. It need not be normalised.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`] or [`ComputeError::NotFinite`]; no row is added then.
    pub fn push(&mut self, vector: &[f32]) -> Result<(), ComputeError> {
        self.check_width(vector.len())?;
        let factors = encode_row(vector, &mut self.codes)?;
        self.scales.push(factors.scale);
        self.residuals.push(factors.residual);
        match &mut self.full {
            FullColumns::F16(bits) => encode_f16(vector, bits)?,
            FullColumns::F32 { values, norms } => {
                values.extend_from_slice(vector);
                norms.push(factors.norm);
            }
        }
        Ok(())
    }

    /// Copies a row of another segment bit for bit, so that merges never change a score.
    ///
    /// # Errors
    /// [`ComputeError::DimensionMismatch`], [`ComputeError::RowOutOfRange`], or
    /// [`ComputeError::Shape`] if the two hold different kinds of T2; no row is added then.
    pub fn copy_row(&mut self, from: &VectorRows<'_>, row: RowId) -> Result<(), ComputeError> {
        self.check_width(from.dimension())?;
        if row.0 as usize >= from.len() {
            return Err(ComputeError::RowOutOfRange { row: row.0, rows: from.len() });
        }
        let row = row.0 as usize;
        let place = row * self.dimension..(row + 1) * self.dimension;
        match (&mut self.full, from.full()) {
            (FullColumns::F16(bits), FullRows::F16(source)) => {
                bits.extend_from_slice(&source[place]);
            }
            (
                FullColumns::F32 { values, norms },
                FullRows::F32 { values: source, norms: lengths },
            ) => {
                values.extend_from_slice(&source[place]);
                norms.push(lengths[row]);
            }
            (FullColumns::F16(_), FullRows::F32 { .. }) => {
                return Err(ComputeError::Shape { column: "f16 values", expected: 1, received: 0 });
            }
            (FullColumns::F32 { .. }, FullRows::F16(_)) => {
                return Err(ComputeError::Shape { column: "f32 values", expected: 1, received: 0 });
            }
        }
        self.codes.extend_from_slice(from.codes(row));
        self.scales.push(from.scale(row));
        self.residuals.push(from.residual(row));
        Ok(())
    }

    /// The rows as searches see them.
    pub fn view(&self) -> VectorRows<'_> {
        let full = match &self.full {
            FullColumns::F16(bits) => FullRows::F16(bits),
            FullColumns::F32 { values, norms } => FullRows::F32 { values, norms },
        };
        VectorRows::new(self.dimension, &self.codes, &self.scales, &self.residuals, full)
            .expect("push and copy_row lengthen every column alike")
    }

    fn check_width(&self, received: usize) -> Result<(), ComputeError> {
        let expected = self.dimension;
        if received != expected {
            return Err(ComputeError::DimensionMismatch { expected, received });
        }
        debug_assert_eq!(self.codes.len(), self.len() * code_stride(expected));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_row_is_the_row() {
        for kind in [FullKind::F16, FullKind::F32] {
            let mut source = VectorColumns::new(3, kind).unwrap();
            source.push(&[1.0, -2.0, 0.5]).unwrap();
            source.push(&[0.0, 0.0, 0.0]).unwrap();
            let mut copy = VectorColumns::new(3, kind).unwrap();
            copy.copy_row(&source.view(), RowId(0)).unwrap();
            copy.copy_row(&source.view(), RowId(1)).unwrap();
            assert_eq!(copy, source);
            assert!(copy.copy_row(&source.view(), RowId(2)).is_err());
            assert_eq!(copy, source);
        }
    }

    #[test]
    fn what_is_refused_adds_nothing() {
        let mut columns = VectorColumns::new(2, FullKind::F32).unwrap();
        columns.push(&[1.0, 2.0]).unwrap();
        let before = columns.clone();
        let f16 = VectorColumns::new(2, FullKind::F16).unwrap();
        let mut narrow = VectorColumns::new(1, FullKind::F32).unwrap();
        narrow.push(&[1.0]).unwrap();
        assert!(columns.push(&[1.0]).is_err());
        assert!(columns.push(&[f32::NAN, 1.0]).is_err());
        assert!(columns.copy_row(&narrow.view(), RowId(0)).is_err());
        assert!(columns.copy_row(&f16.view(), RowId(0)).is_err());
        assert_eq!(columns, before);
        let mut f16 = f16;
        f16.push(&[1.0, 1.0]).unwrap();
        assert!(columns.copy_row(&f16.view(), RowId(0)).is_err());
        assert_eq!(columns, before);
    }
}
