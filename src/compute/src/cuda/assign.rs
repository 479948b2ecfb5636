//! G4 and G6, assignment: the points nearest to each row (kernels/assign.cu).

use std::sync::Arc;

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
    best: u64,
    stride: u32,
    first_item: u32,
    wanted: u32,
    round: u32,
}

/// The `nearest` points of each listed row, best first, ties to the lower point; fewer where there
/// are fewer points.
pub fn assign(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    listed: &[u32],
    points: &Centroids,
    nearest: usize,
) -> Result<Nearest, DeviceError> {
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
    let rounds = nearest.min(points.len());
    let mut found = Nearest { rows: listed.len(), each: rounds, points: Vec::new() };
    if listed.is_empty() || rounds == 0 {
        return Ok(found);
    }
    let listed_here = workspace.filled("listed", bytemuck::cast_slice(listed))?;
    let point_codes = workspace.filled("point codes", bytemuck::cast_slice(codes))?;
    let point_scales = workspace.filled("point scales", bytemuck::cast_slice(scales))?;
    let mut keys = vec![0_u64; rounds * listed.len()];
    let best = workspace.zeroed("keys", size_of_val(&*keys))?;
    let on_device = OnDevice {
        rows,
        listed: (&listed_here, listed.len()),
        codes: &point_codes,
        scales: &point_scales,
        points: points.len(),
        best: (&best, rounds),
    };
    on_device.launch(workspace)?;
    workspace.queue.download(&best, 0, bytemuck::cast_slice_mut(&mut keys))?;
    // From the keys of one round after the other to those of one row after the other.
    found.points.reserve(keys.len());
    for row in 0..listed.len() {
        let of_row = keys[row..].iter().step_by(listed.len());
        found.points.extend(of_row.map(|key| {
            let hit = RankKey::from_bits(*key).hit();
            let RowId(point) = hit.row;
            (hit.score, point)
        }));
    }
    Ok(found)
}

/// A kernel that fits the card, and its items on the device.
struct Chosen {
    kernel: &'static str,
    shared_bytes: usize,
    items: Arc<Buffer>,
    count: usize,
}

/// An assignment on the device.
struct OnDevice<'a> {
    rows: &'a ResidentRows,
    /// u32 ids of the rows that are wanted, and their number.
    listed: (&'a Buffer, usize),
    codes: &'a Buffer,
    scales: &'a Buffer,
    points: usize,
    /// u64 keys of each round, and the number of rounds.
    best: (&'a Buffer, usize),
}

impl OnDevice<'_> {
    /// Sends a launch for each round and `ITEMS_MAX` items.
    fn launch(&self, workspace: &mut Workspace) -> Result<(), DeviceError> {
        let (_, rounds) = self.best;
        let first = self.choose(workspace, &KERNELS, "items")?;
        // Before anything runs: the memory that had this name may be freed.
        let next = match rounds {
            1 => None,
            _ => Some(self.choose(workspace, &NEXT_KERNELS, "next items")?),
        };
        self.launch_round(workspace, &first, 0)?;
        next.iter().try_for_each(|next| {
            (1..rounds).try_for_each(|round| self.launch_round(workspace, next, round))
        })
    }

    fn choose(
        &self,
        workspace: &mut Workspace,
        kernels: &[(usize, usize, &'static str)],
        slot: &'static str,
    ) -> Result<Chosen, DeviceError> {
        let most = workspace.device().traits().shared_bytes_max as usize;
        let shared = |kept: usize, stages: usize| {
            kept * self.rows.stride as usize + stages * STAGE_BYTES + KEY_BYTES
        };
        let fitting = kernels.iter().find(|(kept, stages, _)| shared(*kept, *stages) <= most);
        let (kept, stages, kernel) = *fitting.unwrap_or(&kernels[kernels.len() - 1]);
        let shared_bytes = shared(kept, stages);
        LaunchBuilder::new(kernel)
            .check(shared_bytes <= most, "rows that fit into shared memory")?;
        let (_, wanted) = self.listed;
        let item = |first: usize| AssignItem {
            first_row: first as u32,
            rows: kept.min(wanted - first) as u32,
            first_point: 0,
            points: self.points as u32,
        };
        let items: Vec<AssignItem> = (0..wanted).step_by(kept).map(item).collect();
        let count = items.len();
        let items = workspace.filled(slot, bytemuck::cast_slice(&items))?;
        Ok(Chosen { kernel, shared_bytes, items, count })
    }

    fn launch_round(
        &self,
        workspace: &mut Workspace,
        chosen: &Chosen,
        round: usize,
    ) -> Result<(), DeviceError> {
        let Self { rows, listed: (listed, wanted), codes, scales, points, .. } = *self;
        let (best, rounds) = self.best;
        let (count, stride) = (rows.rows as usize, rows.stride as usize);
        for first in (0..chosen.count).step_by(ITEMS_MAX) {
            let mut builder = LaunchBuilder::new(chosen.kernel);
            builder.check(u32::try_from(wanted).is_ok() && round < rounds, "rows of 32 bits")?;
            let params = AssignParams {
                codes: builder.reads::<i8>(&rows.codes, count * stride)?,
                listed: builder.reads::<u32>(listed, wanted)?,
                point_codes: builder.reads::<i8>(codes, points * stride)?,
                point_scales: builder.reads::<f32>(scales, points)?,
                items: builder.reads::<AssignItem>(&chosen.items, chosen.count)?,
                best: builder.writes::<u64>(best, rounds.saturating_mul(wanted))?,
                stride: rows.stride,
                first_item: first as u32,
                wanted: wanted as u32,
                round: round as u32,
            };
            let down = ITEMS_MAX.min(chosen.count - first);
            let multiprocessors = workspace.device().traits().multiprocessors as usize;
            let parts = (multiprocessors / down).clamp(1, points.div_ceil(128));
            let (grid, shared_bytes) = ([parts as u32, down as u32], chosen.shared_bytes);
            let shape = LaunchShape { grid, threads: THREADS, shared_bytes };
            builder.launch(&mut *workspace.queue, shape, &params)?;
        }
        Ok(())
    }
}
