//! G4 and G6, assignment: the points nearest to each row (kernels/assign.cu).

use bytemuck::{Pod, Zeroable};

use crate::RankKey;
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::manager::ResidentRows;
use crate::cuda::numbers::Numbers;
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::kmeans::{Centroids, Nearest};
use lodestone_types::RowId;

const THREADS: u32 = 256;
const STAGE_BYTES: usize = 8192;
/// Shared memory of the best keys.
const KEY_BYTES: usize = 4096;
/// Items of one launch: the second direction of a grid.
const ITEMS_MAX: usize = 65_535;

/// Rows of an item, stages of points on their way, the kernel.
const KERNELS: [(usize, usize, &str); 4] =
    [(256, 3, "assign_256"), (128, 4, "assign_128"), (64, 4, "assign_64"), (32, 4, "assign_32")];
/// The same for the points after those found before.
const NEXT_KERNELS: [(usize, usize, &str); 2] =
    [(128, 4, "assign_next_128"), (32, 4, "assign_next_32")];

/// `AssignItem` of kernels/assign.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct AssignItem {
    first_row: u32,
    rows: u32,
    first_point: u32,
    points: u32,
}

/// `AssignParams` of kernels/assign.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct AssignParams {
    codes: u64,
    listed: u64,
    point_codes: u64,
    point_scales: u64,
    items: u64,
    below: u64,
    best: u64,
    stride: u32,
    first_item: u32,
}

/// The `nearest` points of each listed row, best first, ties to the lower point; fewer where there
/// are fewer points.
pub fn assign(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    listed: &[u32],
    points: &Centroids,
    nearest: usize,
) -> Result<Vec<Nearest>, DeviceError> {
    let (count, stride) = (rows.rows as usize, rows.stride as usize);
    let refused = |rule| Err(DeviceError::Shape { kernel: "assign", rule });
    if rows.numbers != Numbers::Codes {
        return refused("rows of codes");
    }
    if listed.iter().any(|row| *row as usize >= count) {
        return refused("rows that are there");
    }
    let (codes, scales) = points.codes();
    if codes.len() != scales.len() * stride {
        return refused("points as wide as the rows");
    }
    if u32::try_from(scales.len()).is_err() {
        return refused("points of 32 bits");
    }
    let mut found = vec![Nearest::new(); listed.len()];
    if listed.is_empty() || points.is_empty() {
        return Ok(found);
    }
    let listed_here = workspace.filled("listed", bytemuck::cast_slice(listed))?;
    let point_codes = workspace.filled("point codes", bytemuck::cast_slice(codes))?;
    let point_scales = workspace.filled("point scales", bytemuck::cast_slice(scales))?;
    let bytes = count * size_of::<u64>();
    let mut keys = vec![0_u64; count];
    for round in 0..nearest.min(points.len()) {
        let best = workspace.zeroed("keys", bytes)?;
        let below = match round {
            0 => None,
            _ => Some(workspace.filled("keys before", bytemuck::cast_slice(&keys))?),
        };
        let on_device = OnDevice {
            rows,
            listed: (&listed_here, listed.len()),
            codes: &point_codes,
            scales: &point_scales,
            points: points.len(),
            below: below.as_deref(),
            best: &best,
        };
        on_device.launch(workspace)?;
        workspace.queue.download(&best, 0, bytemuck::cast_slice_mut(&mut keys))?;
        for (row, found) in listed.iter().zip(&mut found) {
            let hit = RankKey::from_bits(keys[*row as usize]).hit();
            let RowId(point) = hit.row;
            found.push((hit.score, point));
        }
    }
    Ok(found)
}

/// One launch for all rows that are wanted.
struct OnDevice<'a> {
    rows: &'a ResidentRows,
    /// u32 ids of the rows that are wanted, and their number.
    listed: (&'a Buffer, usize),
    codes: &'a Buffer,
    scales: &'a Buffer,
    points: usize,
    below: Option<&'a Buffer>,
    best: &'a Buffer,
}

impl OnDevice<'_> {
    fn launch(&self, workspace: &mut Workspace) -> Result<(), DeviceError> {
        let Self { rows, listed: (listed, wanted), codes, scales, points, below, best } = *self;
        let (count, stride) = (rows.rows as usize, rows.stride as usize);
        let most = workspace.device().traits().shared_bytes_max as usize;
        let shared = |kept: usize, stages: usize| kept * stride + stages * STAGE_BYTES + KEY_BYTES;
        let kernels = if below.is_some() { &NEXT_KERNELS[..] } else { &KERNELS[..] };
        let fitting = kernels.iter().find(|(kept, stages, _)| shared(*kept, *stages) <= most);
        let (kept, stages, kernel) = *fitting.unwrap_or(&kernels[kernels.len() - 1]);
        let shared_bytes = shared(kept, stages);
        LaunchBuilder::new(kernel)
            .check(shared_bytes <= most, "rows that fit into shared memory")?;
        let item = |first: usize| AssignItem {
            first_row: first as u32,
            rows: kept.min(wanted - first) as u32,
            first_point: 0,
            points: points as u32,
        };
        let items: Vec<AssignItem> = (0..wanted).step_by(kept).map(item).collect();
        let items_here = workspace.filled("items", bytemuck::cast_slice(&items))?;
        for first in (0..items.len()).step_by(ITEMS_MAX) {
            let mut builder = LaunchBuilder::new(kernel);
            let params = AssignParams {
                codes: builder.reads::<i8>(&rows.codes, count * stride)?,
                listed: builder.reads::<u32>(listed, wanted)?,
                point_codes: builder.reads::<i8>(codes, points * stride)?,
                point_scales: builder.reads::<f32>(scales, points)?,
                items: builder.reads::<AssignItem>(&items_here, items.len())?,
                below: match below {
                    Some(below) => builder.reads::<u64>(below, count)?,
                    None => 0,
                },
                best: builder.writes::<u64>(best, count)?,
                stride: rows.stride,
                first_item: first as u32,
            };
            let down = ITEMS_MAX.min(items.len() - first);
            let multiprocessors = workspace.device().traits().multiprocessors as usize;
            let parts = (multiprocessors / down).clamp(1, points.div_ceil(128));
            let grid = [parts as u32, down as u32];
            let shape = LaunchShape { grid, threads: THREADS, shared_bytes };
            builder.launch(&mut *workspace.queue, shape, &params)?;
        }
        Ok(())
    }
}
