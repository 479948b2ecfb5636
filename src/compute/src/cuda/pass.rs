//! A pass over rows for many queries: the parameters that `scan` and `batch` share.

use bytemuck::{Pod, Zeroable};

use crate::cuda::launch::LaunchBuilder;
use crate::cuda::numbers::ResidentRows;
use crate::cuda::{Buffer, DeviceError};

/// A sampling pass keeps only the best lower bound of each group of so many rows (`GROUP_ROWS`).
pub(super) const GROUP_ROWS: usize = 16;
/// Rows are padded to a multiple of this (`CHUNK_BYTES`).
const CHUNK_BYTES: u32 = 64;

/// `SearchParams` of kernels/device.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct SearchParams {
    codes: u64,
    scales: u64,
    residuals: u64,
    mask: u64,
    listed: u64,
    query_codes: u64,
    query_factors: u64,
    thresholds: u64,
    maxima: u64,
    found: u64,
    counts: u64,
    visited: u32,
    step: u32,
    pub(super) stride: u32,
    queries: u32,
    groups: u32,
    capacity: u32,
}

/// `QueryFactors` of kernels/device.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct QueryFactors {
    pub(super) scale: f32,
    pub(super) constant: f32,
    pub(super) per_residual: f32,
    pub(super) unused: f32,
}

/// `FoundRow` of kernels/device.cuh: a row, and the bits of its dot product.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub(super) struct FoundRow {
    pub(super) row: u32,
    pub(super) bits: u32,
}

/// Queries on the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Queries<'a> {
    /// One [`QueryFactors`] per query, followed by the codes or halves, `count * stride` bytes.
    pub(super) sent: &'a Buffer,
    /// Number of queries.
    pub(super) count: usize,
}

/// A pass over rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) rows: &'a ResidentRows,
    pub(super) queries: Queries<'a>,
    /// One bit per row; absent if all rows pass.
    pub(super) mask: Option<&'a Buffer>,
    /// u32 ids of rows of the segment, and their number; absent for all rows in order.
    pub(super) listed: Option<(&'a Buffer, usize)>,
    /// Distance between visited rows, at least 1.
    pub(super) step: usize,
}

/// Output of a pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Output<'a> {
    /// The best lower bound of each group of visited rows: f32, `queries * groups`.
    Sample { maxima: &'a Buffer },
    /// Rows that may reach the f32 `thresholds`: `queries * capacity` [`FoundRow`]s, and u32
    /// `counts`.
    Collect { thresholds: &'a Buffer, found: &'a Buffer, counts: &'a Buffer, capacity: usize },
}

impl Pass<'_> {
    /// Returns the number of rows visited.
    pub(super) fn visited(&self) -> usize {
        let rows = self.listed.map_or(self.rows.rows as usize, |(_, count)| count);
        rows.div_ceil(self.step.max(1))
    }

    /// Returns the number of groups of a sampling pass, per query.
    pub(super) fn groups(&self) -> usize {
        self.visited().div_ceil(GROUP_ROWS)
    }

    /// Returns the kernel parameters after checking every extent.
    pub(super) fn parameters(
        &self,
        builder: &mut LaunchBuilder,
        output: Output<'_>,
    ) -> Result<SearchParams, DeviceError> {
        let Self { rows, queries, mask, listed, step } = *self;
        let (count, stride) = (rows.rows as usize, rows.stride as usize);
        builder.check(rows.stride > 0 && rows.stride % CHUNK_BYTES == 0, "a stride of chunks")?;
        builder.check(queries.count > 0 && self.visited() > 0, "something to visit")?;
        let rows_until = self.visited().saturating_mul(step);
        builder.check(step > 0 && u32::try_from(rows_until).is_ok(), "positions of 32 bits")?;
        let mut params = SearchParams {
            codes: builder.reads::<i8>(&rows.codes, count.saturating_mul(stride))?,
            scales: builder.reads::<f32>(&rows.scales, count)?,
            residuals: builder.reads::<f32>(&rows.residuals, count)?,
            query_codes: builder.reads_behind::<i8>(
                queries.sent,
                queries.count * size_of::<QueryFactors>(),
                queries.count * stride,
            )?,
            query_factors: builder.reads::<QueryFactors>(queries.sent, queries.count)?,
            visited: self.visited() as u32,
            step: step as u32,
            stride: rows.stride,
            queries: queries.count as u32,
            ..SearchParams::zeroed()
        };
        if let Some(mask) = mask {
            params.mask = builder.reads::<u32>(mask, count.div_ceil(32))?;
        }
        if let Some((listed, length)) = listed {
            params.listed = builder.reads::<u32>(listed, length)?;
        }
        match output {
            Output::Sample { maxima } => {
                params.groups = self.groups() as u32;
                let values = queries.count.saturating_mul(self.groups());
                params.maxima = builder.writes::<f32>(maxima, values)?;
            }
            Output::Collect { thresholds, found, counts, capacity } => {
                builder.check(u32::try_from(capacity).is_ok(), "a capacity of 32 bits")?;
                params.capacity = capacity as u32;
                params.thresholds = builder.reads::<f32>(thresholds, queries.count)?;
                params.counts = builder.writes::<u32>(counts, queries.count)?;
                let places = queries.count.saturating_mul(capacity);
                params.found = builder.writes::<FoundRow>(found, places)?;
            }
        }
        Ok(params)
    }
}
