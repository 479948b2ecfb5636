//! Number formats of rows and queries on a device: codes of T1, or halves (f16) of T2.
//!
//! Halves take twice the bytes of codes and separate rows a dozen times more finely. A search uses
//! them if T1 cannot separate rows: if so many rows are within its bound of each other that the
//! device has no memory to return them all. It scans T1 first, because that suffices for most
//! searches, and because T1 is on the device anyway.
//!
//! Let q be the unit query, q^ its halves, x the unit row as stored in T2, and s the sum that the
//! tensor cores compute for q^.x. As in `compute::bound`,
//!
//! ```text
//! |q.x - s| <= |q - q^| |x| + summing
//! ```
//! - T2 is searched only if it is already f16, and unmodified; |x| is then 1 up to the rounding of
//!   its components, below 1.001.
//! - Products of halves are exact in f32. A step of 16 adds them to the running sum, truncating
//!   each term to the last place of the largest (Fasi, Higham, Mikaitis and Pranesh, Numerical
//!   behavior of NVIDIA tensor cores, 2021). No partial sum exceeds |q^| |x| < 1.01, so a step
//!   loses less than 18 units of 2^-23, even if it consists of two steps of 8: below 2^-22 per
//!   component.
//! - The error of the exact score itself is added (`ErrorBound::rounding`).

use std::borrow::Cow;

use half::f16;

use crate::cuda::batcher::DeviceQuery;
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::quantize::rounded_up;
use crate::{BoundedQuery, ErrorBound, FullRows, VectorRows, code_stride};

/// Maximum length of an f16 row: 1 plus rounding.
const LENGTH_MAX: f32 = 1.001;
/// Error of the tensor cores per component, for products of unit vectors.
const LOST_A_COMPONENT: f32 = 1.0 / (1 << 22) as f32;
/// Maximum values that are uploaded at a time: 16 MiB.
const STAGED_VALUES: usize = 8 << 20;

/// Number format of rows and queries. Kernel tables are indexed in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numbers {
    /// i8, as in T1.
    Codes,
    /// f16, as in T2 of model embeddings.
    F16,
}

impl Numbers {
    /// Returns the bytes per component.
    pub fn bytes(self) -> usize {
        match self {
            Self::Codes => 1,
            Self::F16 => 2,
        }
    }

    /// Returns the distance in bytes between consecutive rows.
    pub fn stride(self, dimension: usize) -> usize {
        code_stride(dimension * self.bytes())
    }
}

/// A query in halves.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfQuery {
    /// The query in the device's form.
    pub query: DeviceQuery,
    /// Error bound of its estimates.
    pub bound: ErrorBound,
}

impl HalfQuery {
    /// Converts a query to f16, padded with zeros, with a bound as certain as its bound by T1.
    pub fn new(bounded: &BoundedQuery<'_>) -> Self {
        let BoundedQuery { query, bound } = bounded;
        let padded = Numbers::F16.stride(query.dimension()) / size_of::<f16>();
        let mut halves = Vec::with_capacity(padded);
        let (mut lost, mut squares) = (0.0, 0.0);
        for value in query.unit() {
            let half = f16::from_f32(*value);
            halves.push(half.to_bits());
            lost += (f64::from(*value) - half.to_f64()).powi(2);
            squares += half.to_f64().powi(2);
        }
        halves.resize(padded, 0);
        let rounding = ErrorBound::rounding(query.dimension()) + padded as f32 * LOST_A_COMPONENT;
        let lost = rounded_up(lost.sqrt()) * LENGTH_MAX;
        let bound = bound.of_codes(lost, rounded_up(squares.sqrt()), rounding);
        let query = DeviceQuery {
            codes: bytemuck::cast_slice(&halves).to_vec(),
            scale: 1.0,
            bound_constant: bound.constant(),
            bound_per_residual: bound.per_residual(),
        };
        Self { query, bound }
    }
}

/// The rows of a segment on the device.
#[derive(Debug)]
pub struct ResidentRows {
    /// Number format of the rows.
    pub numbers: Numbers,
    /// Number of rows.
    pub rows: u32,
    /// Distance in bytes between consecutive rows.
    pub stride: u32,
    /// i8 codes or halves, `rows * stride` bytes.
    pub codes: Buffer,
    /// One f32 per row.
    pub scales: Buffer,
    /// One f32 per row.
    pub residuals: Buffer,
}

impl ResidentRows {
    /// Returns the number of bytes that rows take on a device.
    pub fn bytes_of(rows: &VectorRows<'_>, numbers: Numbers) -> u64 {
        (rows.len() * (numbers.stride(rows.dimension()) + 2 * size_of::<f32>())) as u64
    }

    /// Copies T1 to the device, or T2 if that is f16.
    ///
    /// # Errors
    /// [`DeviceError::Shape`] for T2 in f32, otherwise as `Device::allocate` and `Queue::upload`.
    pub fn upload(
        rows: &VectorRows<'_>,
        numbers: Numbers,
        workspace: &mut Workspace,
    ) -> Result<Self, DeviceError> {
        let (count, stride) = (rows.len(), numbers.stride(rows.dimension()));
        // Allocate everything before copying, since the memory may not suffice.
        let allocate = |bytes: usize| workspace.device().allocate(count * bytes);
        let (codes, factors) = (allocate(stride)?, size_of::<f32>());
        let (scales, residuals) = (allocate(factors)?, allocate(factors)?);
        let (rows_here, stride) = (count as u32, stride as u32);
        let resident = Self { numbers, rows: rows_here, stride, codes, scales, residuals };
        let copies = match (numbers, rows.full()) {
            (Numbers::Codes, _) => {
                let (codes, scales, residuals) = rows.columns();
                workspace.queue.upload(&resident.codes, 0, bytemuck::cast_slice(codes))?;
                [Cow::Borrowed(scales), Cow::Borrowed(residuals)]
            }
            (Numbers::F16, FullRows::F16(halves)) => {
                resident.upload_padded(halves, rows.dimension(), workspace)?;
                [Cow::Owned(vec![1.0; count]), Cow::Owned(vec![0.0; count])]
            }
            (Numbers::F16, FullRows::F32 { .. }) => {
                return Err(DeviceError::Shape { kernel: "search", rule: "rows of f16" });
            }
        };
        for (buffer, factors) in [&resident.scales, &resident.residuals].into_iter().zip(&copies) {
            workspace.queue.upload(buffer, 0, bytemuck::cast_slice(factors))?;
        }
        // Runs on other queues will use it.
        workspace.queue.synchronise()?;
        Ok(resident)
    }

    /// Copies halves in rows padded to whole chunks.
    fn upload_padded(
        &self,
        halves: &[u16],
        dimension: usize,
        workspace: &mut Workspace,
    ) -> Result<(), DeviceError> {
        let padded = self.stride as usize / size_of::<u16>();
        let rows_at_once = (STAGED_VALUES / padded).max(1);
        let (mut staged, mut offset) = (Vec::new(), 0);
        for run in halves.chunks(rows_at_once * dimension) {
            staged.clear();
            for row in run.chunks_exact(dimension) {
                let until = staged.len() + padded;
                staged.extend_from_slice(row);
                staged.resize(until, 0_u16);
            }
            workspace.queue.upload(&self.codes, offset, bytemuck::cast_slice(&staged))?;
            offset += size_of_val(&*staged);
        }
        Ok(())
    }
}
