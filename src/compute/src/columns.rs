//! The vector columns of a segment that is being written, encoded row by row.

use half::f16;

use crate::quantize::{encode_f16, encode_row};
use crate::rows::{check_dimension, code_stride};
use crate::{ComputeError, FullRows, VectorRows};

/// Number format of T2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullKind {
    /// f16, for embeddings of our models.
    F16,
    /// f32, for vectors of clients, kept exactly.
    F32,
}

/// Columns that own their memory. A writer stores each one as is, little-endian; a reader views the
/// stored bytes with `VectorRows::new`.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorColumns {
    dimension: usize,
    /// T1 codes, `code_stride(dimension)` bytes per row.
    pub codes: Vec<i8>,
    /// T1 scales, one per row.
    pub scales: Vec<f32>,
    /// T1 residuals, one per row.
    pub residuals: Vec<f32>,
    /// T2.
    pub full: FullColumns,
}

/// T2 columns that own their memory.
#[derive(Debug, Clone, PartialEq)]
pub enum FullColumns {
    /// f16 bits, `dimension` per row.
    F16(Vec<u16>),
    /// f32 values, `dimension` per row, and the length of each row.
    F32 {
        /// The values.
        values: Vec<f32>,
        /// The lengths.
        norms: Vec<f32>,
    },
}

impl VectorColumns {
    /// Creates columns without rows.
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

    /// Reserves memory for `rows` more rows at once. Growing columns of gigabytes step by step
    /// would copy them several times, always to newly allocated memory.
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

    /// Returns the number of components of a row.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Returns the number of rows.
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
        let factors = match &mut self.full {
            // The codes are computed from the stored vector, so that a row that is read and
            // rewritten, by an export or for an unchanged passage, keeps its score.
            FullColumns::F16(bits) => {
                let begin = bits.len();
                encode_f16(vector, bits)?;
                let kept: Vec<f32> =
                    bits[begin..].iter().map(|bits| f16::from_bits(*bits).to_f32()).collect();
                encode_row(&kept, &mut self.codes)?
            }
            FullColumns::F32 { values, norms } => {
                let factors = encode_row(vector, &mut self.codes)?;
                values.extend_from_slice(vector);
                norms.push(factors.norm);
                factors
            }
        };
        self.scales.push(factors.scale);
        self.residuals.push(factors.residual);
        Ok(())
    }

    /// Returns the rows as searches see them.
    pub fn view(&self) -> VectorRows<'_> {
        let full = match &self.full {
            FullColumns::F16(bits) => FullRows::F16(bits),
            FullColumns::F32 { values, norms } => FullRows::F32 { values, norms },
        };
        VectorRows::new(self.dimension, &self.codes, &self.scales, &self.residuals, full)
            .expect("a push lengthens every column alike")
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
    fn what_is_refused_adds_nothing() {
        let mut columns = VectorColumns::new(2, FullKind::F32).unwrap();
        columns.push(&[1.0, 2.0]).unwrap();
        let before = columns.clone();
        assert!(columns.push(&[1.0]).is_err());
        assert!(columns.push(&[f32::NAN, 1.0]).is_err());
        assert_eq!(columns, before);
    }

    #[test]
    fn a_row_that_is_read_and_written_again_is_the_same() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for dimension in [1, 3, 8, 64, 384, 1024] {
            for _ in 0..1000 {
                let vector: Vec<f32> = (0..dimension)
                    .map(|_| {
                        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
                        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
                    })
                    .collect();
                let mut columns = VectorColumns::new(dimension, FullKind::F16).unwrap();
                columns.push(&vector).unwrap();
                let FullColumns::F16(bits) = &columns.full else { unreachable!("they are f16") };
                let read: Vec<f32> =
                    bits.iter().map(|bits| f16::from_bits(*bits).to_f32()).collect();
                let mut again = VectorColumns::new(dimension, FullKind::F16).unwrap();
                again.push(&read).unwrap();
                assert_eq!(again, columns);
            }
        }
    }
}
