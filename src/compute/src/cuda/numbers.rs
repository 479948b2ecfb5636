//! What rows and queries on a device are made of: codes of T1, or halves (f16, bf16) of T2.
//!
//! Halves are twice the bytes of codes and tell rows apart a dozen times more finely. A search
//! takes them where T1 cannot separate: where so many rows lie within its bound of each other that
//! a device has no room to name them all. It looks at T1 first, because most searches need no
//! more, and because T1 is what stands on the device anyway.
//!
//! Let q and x be the unit query and the unit row as T2 holds it, q^ and x^ their halves, and s
//! what the tensor cores make of q^.x^. As in `compute::bound`,
//!
//! ```text
//! |q.x - s| <= |q - q^| |x| + |q^| |x - x^| + summing
//! ```
//! - x^ is x where T2 is f16 and the device holds f16; |x| is then 1 but for the rounding of its
//!   components, below 1.001.
//! - Products of halves are exact in f32. A step of 16 adds them to the sum so far, each term cut
//!   to the last place of the largest (Fasi, Higham, Mikaitis and Pranesh, Numerical behavior of
//!   NVIDIA tensor cores, 2021). No partial sum exceeds |q^| |x^| < 1.01, so a step loses less than
//!   18 units of 2^-23, two steps of 8 included: below 2^-22 a component.
//! - To this comes what the exact score itself loses (`ErrorBound::rounding`).

use half::{bf16, f16};

use crate::cuda::DeviceError;
use crate::cuda::live::ResidentRows;
use crate::cuda::together::DeviceQuery;
use crate::cuda::workspace::Workspace;
use crate::quantize::rounded_up;
use crate::{BoundedQuery, ErrorBound, FullRows, VectorRows, code_stride};

/// Length of a row of f16 at most: 1, and what rounding adds.
const LENGTH_MAX: f32 = 1.001;
/// What the tensor cores may lose a component, of a product of unit vectors.
const LOST_A_COMPONENT: f32 = 1.0 / (1 << 22) as f32;
/// What a unit row in f32 is off by from one in real numbers.
const UNIT_LOST: f64 = 1.0 / (1 << 22) as f64;
/// Values that are brought to the device together: 16 MiB.
const STAGED_VALUES: usize = 8 << 20;

/// What rows and queries are made of. Kernels come in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// i8, as T1 has them.
    Codes,
    /// f16: T2 of model embeddings as it is, other rows rounded.
    F16,
    /// bf16, for models that give it. No tier holds it yet.
    Bf16,
}

impl Numbers {
    /// Bytes of a component.
    pub fn bytes(self) -> usize {
        match self {
            Self::Codes => 1,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Bytes from one row to the next.
    pub fn stride(self, dimension: usize) -> usize {
        code_stride(dimension * self.bytes())
    }

    /// The half nearest to `value` and what it stands for.
    fn half(self, value: f32) -> (u16, f32) {
        if self == Self::Bf16 {
            let half = bf16::from_f32(value);
            return (half.to_bits(), half.to_f32());
        }
        let half = f16::from_f32(value);
        (half.to_bits(), half.to_f32())
    }

    /// Appends `unit` as halves, padded with zeros; returns the squared length of what they lose
    /// and of what they stand for.
    fn push_unit(self, unit: &[f32], halves: &mut Vec<u16>) -> (f64, f64) {
        let until = halves.len() + self.stride(unit.len()) / size_of::<u16>();
        let (mut lost, mut squares) = (0.0, 0.0);
        for value in unit {
            let (bits, nearest) = self.half(*value);
            halves.push(bits);
            lost += (f64::from(*value) - f64::from(nearest)).powi(2);
            squares += f64::from(nearest).powi(2);
        }
        halves.resize(until, 0);
        (lost, squares)
    }
}

/// A query in halves.
#[derive(Debug, Clone, PartialEq)]
pub struct HalfQuery {
    /// What the device needs of it.
    pub query: DeviceQuery,
    /// How far its estimates may be from the truth.
    pub bound: ErrorBound,
}

impl HalfQuery {
    /// The query in f16 or bf16, with a bound as certain as the one it had by T1.
    pub fn new(bounded: &BoundedQuery<'_>, numbers: Numbers) -> Self {
        let BoundedQuery { query, bound } = bounded;
        let mut halves = Vec::new();
        let (lost, squares) = numbers.push_unit(query.unit(), &mut halves);
        let padded = numbers.stride(query.dimension()) / numbers.bytes();
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

impl ResidentRows {
    /// Bytes that T2 takes as halves.
    pub fn bytes_of_halves(rows: &VectorRows<'_>, numbers: Numbers) -> u64 {
        let factors = 2 * size_of::<f32>();
        rows.len() as u64 * (numbers.stride(rows.dimension()) + factors) as u64
    }

    /// Copies T2 to the device as f16 or bf16, in rows padded to whole chunks. f16 rows as f16 are
    /// what they are; otherwise a row's residual says what its halves lose.
    ///
    /// # Errors
    /// As `Device::allocate` and `Queue::upload`.
    pub fn upload_halves(
        rows: &VectorRows<'_>,
        numbers: Numbers,
        workspace: &mut Workspace,
    ) -> Result<Self, DeviceError> {
        let (count, stride) = (rows.len(), numbers.stride(rows.dimension()));
        let codes = workspace.device().allocate(count * stride)?;
        let mut residuals = Vec::with_capacity(count);
        let (mut staged, mut unit) = (Vec::new(), vec![0.0; rows.dimension()]);
        let rows_at_once = (STAGED_VALUES * size_of::<u16>() / stride).max(1);
        for first in (0..count).step_by(rows_at_once) {
            staged.clear();
            for row in first..count.min(first + rows_at_once) {
                residuals.push(push_row(rows, row, numbers, &mut unit, &mut staged));
            }
            workspace.queue.upload(&codes, first * stride, bytemuck::cast_slice(&staged))?;
        }
        let mut copy = |values: &[f32]| {
            let buffer = workspace.device().allocate(size_of_val(values))?;
            workspace.queue.upload(&buffer, 0, bytemuck::cast_slice(values))?;
            Ok(buffer)
        };
        let (scales, residuals) = (copy(&vec![1.0; count])?, copy(&residuals)?);
        workspace.queue.synchronise()?;
        let (rows, stride) = (count as u32, stride as u32);
        Ok(Self { numbers, rows, stride, codes, scales, residuals })
    }
}

/// Appends a row of T2; returns its residual.
fn push_row(
    rows: &VectorRows<'_>,
    row: usize,
    numbers: Numbers,
    unit: &mut [f32],
    staged: &mut Vec<u16>,
) -> f32 {
    if let (FullRows::F16(bits), Numbers::F16) = (rows.full(), numbers) {
        let until = staged.len() + numbers.stride(rows.dimension()) / size_of::<u16>();
        staged.extend_from_slice(&bits[row * rows.dimension()..][..rows.dimension()]);
        staged.resize(until, 0);
        return 0.0;
    }
    rows.unit(row, unit);
    let (lost, _) = numbers.push_unit(unit, staged);
    rounded_up(lost.sqrt() + UNIT_LOST)
}
