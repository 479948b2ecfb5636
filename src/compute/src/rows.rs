//! Borrowed views of the vector tiers of one segment; every shape is checked once, on creation.

use std::fmt;
use std::sync::Arc;

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

use crate::{ComputeError, PreparedQuery, dot_codes, prefetch};
use lodestone_types::limits::VECTOR_DIMENSION_MAX;

/// Rows of T1 codes are zero-padded to a multiple of this many bytes, a cache line: no two rows
/// share one, and kernels need no tail loop.
const CODE_ALIGNMENT: usize = 64;

/// Returns the distance in bytes between consecutive rows of T1 codes.
pub fn code_stride(dimension: usize) -> usize {
    dimension.next_multiple_of(CODE_ALIGNMENT)
}

/// Refuses dimensions that the product does not support.
pub(super) fn check_dimension(dimension: usize) -> Result<(), ComputeError> {
    if dimension == 0 || dimension > VECTOR_DIMENSION_MAX {
        let dimension_max = VECTOR_DIMENSION_MAX;
        return Err(ComputeError::DimensionOutOfRange { dimension, dimension_max });
    }
    Ok(())
}

/// T2: the full vectors, row-major without padding.
#[derive(Debug, Clone, Copy)]
pub enum FullRows<'a> {
    /// Embeddings of our models, normalised and rounded to f16 (`encode_f16`), as bits.
    F16(&'a [u16]),
    /// Vectors from clients, unchanged.
    F32 {
        /// `rows * dimension` finite values.
        values: &'a [f32],
        /// Length of each row; 0 for a zero vector, infinite beyond the range of f32.
        norms: &'a [f32],
    },
}

/// Keeps the rows of a segment in memory while a device copies them in the background.
pub trait RowsOwner: fmt::Debug + Send + Sync {
    /// Returns the rows, all of them verified; `None` if they are damaged. May read all of them
    /// from disk.
    fn rows(&self) -> Option<VectorRows<'_>>;
}

/// Type-erased `Arc` of a [`RowsOwner`].
trait Shared: fmt::Debug + Send + Sync {
    fn share(&self) -> Arc<dyn RowsOwner>;
}

impl<T: RowsOwner + 'static> Shared for Arc<T> {
    fn share(&self) -> Arc<dyn RowsOwner> {
        Self::clone(self)
    }
}

/// The vectors of one segment.
#[derive(Debug, Clone, Copy)]
pub struct VectorRows<'a> {
    dimension: usize,
    stride: usize,
    codes: &'a [i8],
    scales: &'a [f32],
    residuals: &'a [f32],
    full: FullRows<'a>,
    identity: Option<u128>,
    owner: Option<&'a dyn Shared>,
}

impl<'a> VectorRows<'a> {
    /// Views the columns of a segment. The number of rows is that of `scales`.
    ///
    /// - `codes`: `rows * code_stride(dimension)` bytes, padding zero
    /// - `scales`: code times scale is a component of the normalised row
    /// - `residuals`: upper bound of the length of (normalised row minus decoded row)
    ///
    /// # Errors
    /// [`ComputeError::DimensionOutOfRange`], [`ComputeError::TooManyRows`], or
    /// [`ComputeError::Shape`] naming the column whose length contradicts the others.
    pub fn new(
        dimension: usize,
        codes: &'a [i8],
        scales: &'a [f32],
        residuals: &'a [f32],
        full: FullRows<'a>,
    ) -> Result<Self, ComputeError> {
        check_dimension(dimension)?;
        let rows = scales.len();
        if u32::try_from(rows).is_err() {
            return Err(ComputeError::TooManyRows { rows });
        }
        let stride = code_stride(dimension);
        check_shape("codes", rows * stride, codes.len())?;
        check_shape("residuals", rows, residuals.len())?;
        match full {
            FullRows::F16(bits) => check_shape("f16 values", rows * dimension, bits.len())?,
            FullRows::F32 { values, norms } => {
                check_shape("f32 values", rows * dimension, values.len())?;
                check_shape("norms", rows, norms.len())?;
            }
        }
        Ok(Self { dimension, stride, codes, scales, residuals, full, identity: None, owner: None })
    }

    /// Views T1 of some of these rows, copied elsewhere, together with their lengths. T2 of the
    /// view is empty, so it must not be used for exact scores.
    ///
    /// # Errors
    /// [`ComputeError::Shape`] naming the column whose length does not match the others.
    pub fn apart<'b>(
        &self,
        codes: &'b [i8],
        scales: &'b [f32],
        residuals: &'b [f32],
        norms: &'b [f32],
    ) -> Result<VectorRows<'b>, ComputeError> {
        let (rows, dimension, stride) = (scales.len(), self.dimension, self.stride);
        check_shape("codes", rows * stride, codes.len())?;
        check_shape("residuals", rows, residuals.len())?;
        check_shape("norms", rows, norms.len())?;
        let full = match self.full {
            FullRows::F16(_) => FullRows::F16(&[]),
            FullRows::F32 { .. } => FullRows::F32 { values: &[], norms },
        };
        let (identity, owner) = (None, None);
        Ok(VectorRows { dimension, stride, codes, scales, residuals, full, identity, owner })
    }

    /// Sets an identity, which lets a device keep a copy: rows of one identity must never change.
    /// Without an owner, the device copies them synchronously.
    #[must_use]
    pub fn with_identity(self, identity: u128) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Sets an identity and an owner: a device copies the rows in the background, while searches
    /// use the CPU.
    #[must_use]
    pub fn with_owner<T: RowsOwner + 'static>(self, identity: u128, owner: &'a Arc<T>) -> Self {
        Self { identity: Some(identity), owner: Some(owner), ..self }
    }

    /// Returns the owner of these rows, if they have one.
    pub fn owner(&self) -> Option<Arc<dyn RowsOwner>> {
        self.owner.map(Shared::share)
    }

    /// Returns the identity of these rows, if they have one.
    pub fn identity(&self) -> Option<u128> {
        self.identity
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

    /// Returns the number of bytes that a scan of T1 reads per row: codes, scale and residual.
    pub fn scan_bytes_per_row(&self) -> usize {
        self.stride + 2 * size_of::<f32>()
    }

    /// Returns the T1 codes of `row`, including padding.
    pub fn codes(&self, row: usize) -> &'a [i8] {
        &self.codes[row * self.stride..][..self.stride]
    }

    /// Returns the T1 scale of `row`.
    pub fn scale(&self, row: usize) -> f32 {
        self.scales[row]
    }

    /// Returns an upper bound of the length of T1's rounding error in `row`.
    pub fn residual(&self, row: usize) -> f32 {
        self.residuals[row]
    }

    /// Returns the length of `row`: 0 for a zero vector, infinite beyond the range of f32.
    pub fn norm(&self, row: usize) -> f32 {
        match self.full {
            FullRows::F16(_) => 1.0,
            FullRows::F32 { norms, .. } => norms[row],
        }
    }

    /// Prefetches the data of a row that an estimate and its bound read.
    pub fn prefetch(&self, row: usize) {
        prefetch(self.codes(row));
        prefetch(&self.scales[row..=row]);
        prefetch(&self.residuals[row..=row]);
    }

    /// Returns the bytes of a row that an estimate and its bound read.
    pub fn estimated_bytes(&self, row: usize) -> [&'a [u8]; 3] {
        let (codes, scales, residuals) = (self.codes, self.scales, self.residuals);
        let codes = &codes[row * self.stride..][..self.stride];
        let factors = [scales, residuals].map(|factors| bytemuck::cast_slice(&factors[row..=row]));
        [bytemuck::cast_slice(codes), factors[0], factors[1]]
    }

    /// Returns the bytes of a row in T2.
    pub fn full_bytes(&self, row: usize) -> &'a [u8] {
        let place = row * self.dimension..(row + 1) * self.dimension;
        match self.full {
            FullRows::F16(bits) => bytemuck::cast_slice(&bits[place]),
            FullRows::F32 { values, .. } => bytemuck::cast_slice(&values[place]),
        }
    }

    /// Returns the estimated cosine of a row and a query of the same dimension, equal to that of a
    /// scan.
    pub fn estimate(&self, row: usize, query: &PreparedQuery) -> f32 {
        let dot = dot_codes(query.codes(), self.codes(row));
        estimate(f64::from(dot), self, row, query)
    }

    /// Writes the normalised row to `unit`, which has `dimension` values; zeros for a zero row.
    ///
    /// # Panics
    /// If `unit` has another length.
    pub fn unit(&self, row: usize, unit: &mut [f32]) {
        let range = row * self.dimension..(row + 1) * self.dimension;
        match self.full {
            FullRows::F16(bits) => {
                let halves: &[f16] = bits[range].reinterpret_cast();
                halves.convert_to_f32_slice(unit);
            }
            FullRows::F32 { values, .. } => {
                let squares = values[range.clone()].iter().map(|value| f64::from(*value).powi(2));
                let norm = squares.sum::<f64>().sqrt();
                let divisor = if norm == 0.0 { 1.0 } else { norm };
                for (unit, value) in unit.iter_mut().zip(&values[range]) {
                    *unit = (f64::from(*value) / divisor) as f32;
                }
            }
        }
    }

    /// Returns the full vectors, T2.
    pub fn full(&self) -> FullRows<'a> {
        self.full
    }

    /// Returns the whole columns of T1: codes, scales, residuals.
    pub(super) fn columns(&self) -> (&'a [i8], &'a [f32], &'a [f32]) {
        (self.codes, self.scales, self.residuals)
    }

    /// Returns the distance in bytes between consecutive rows of T1 codes.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }
}

fn check_shape(column: &'static str, expected: usize, received: usize) -> Result<(), ComputeError> {
    if expected == received {
        return Ok(());
    }
    Err(ComputeError::Shape { column, expected, received })
}

/// Computes an estimate from its exact integer dot product; |dot| < 2^53, so f64 represents it.
pub(super) fn estimate(dot: f64, rows: &VectorRows<'_>, row: usize, query: &PreparedQuery) -> f32 {
    (dot * (f64::from(query.scale()) * f64::from(rows.scale(row)))) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_checked_against_the_rows() {
        let (codes, two, six) = ([0; 128], [0.0; 2], [0.0; 6]);
        let full = FullRows::F32 { values: &six, norms: &two };
        let rows = VectorRows::new(3, &codes, &two, &two, full).unwrap();
        assert_eq!((rows.len(), rows.dimension(), rows.scan_bytes_per_row()), (2, 3, 72));

        let shapes = [
            VectorRows::new(3, &codes[1..], &two, &two, full),
            VectorRows::new(3, &codes, &two[1..], &two, full),
            VectorRows::new(3, &codes, &two, &two[1..], full),
            VectorRows::new(3, &codes, &two, &two, FullRows::F16(&[0; 5])),
            VectorRows::new(3, &codes, &two, &two, FullRows::F32 { values: &two, norms: &two }),
            VectorRows::new(3, &codes, &two, &two, FullRows::F32 { values: &six, norms: &six }),
        ];
        for shape in shapes {
            assert!(matches!(shape, Err(ComputeError::Shape { .. })), "{shape:?}");
        }
        for dimension in [0, VECTOR_DIMENSION_MAX + 1] {
            let refused = VectorRows::new(dimension, &[], &[], &[], FullRows::F16(&[]));
            assert!(matches!(refused, Err(ComputeError::DimensionOutOfRange { .. })));
        }
    }
}
