//! Assignment: finds the points nearest to each row (kernels/assign.cu).

use bytemuck::{Pod, Zeroable};

use crate::RankKey;
use crate::cuda::launch::{LaunchBuilder, LaunchShape};
use crate::cuda::numbers::{Numbers, ResidentRows};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::kmeans::{Centroids, Nearest};
use lodestone_types::RowId;

const THREADS: u32 = 256;
const STAGE_BYTES: usize = 8192;
/// Shared memory for the best keys.
const KEY_BYTES: usize = 4096;
/// Maximum blocks of one launch in the second dimension of the grid.
const DOWN_MAX: usize = 65_535;

/// Rows per block, stages of points being copied, and the kernel.
const KERNELS: [(usize, usize, &str); 4] =
    [(256, 3, "assign_256"), (128, 4, "assign_128"), (64, 4, "assign_64"), (32, 4, "assign_32")];
/// Kernels that find the next nearest points after those already found; format as [`KERNELS`].
const NEXT_KERNELS: [(usize, usize, &str); 2] =
    [(128, 4, "assign_next_128"), (32, 4, "assign_next_32")];

/// `AssignParams` of kernels/assign.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct AssignParams {
    codes: u64,
    listed: u64,
    point_codes: u64,
    point_scales: u64,
    before: u64,
    best: u64,
    stride: u32,
    points: u32,
    wanted: u32,
    unused: u32,
}

/// Finds the `nearest` points of each listed row, best first, ties to the lower point; fewer if
/// there are fewer points.
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
    // Transpose the keys from round-major to row-major order.
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

/// Arguments of an assignment, on the device.
struct OnDevice<'a> {
    rows: &'a ResidentRows,
    /// u32 ids of the listed rows, and their number.
    listed: (&'a Buffer, usize),
    codes: &'a Buffer,
    scales: &'a Buffer,
    points: usize,
    /// u64 keys of each round, and the number of rounds.
    best: (&'a Buffer, usize),
}

impl OnDevice<'_> {
    /// Launches all rounds.
    fn launch(&self, workspace: &mut Workspace) -> Result<(), DeviceError> {
        let (_, rounds) = self.best;
        (0..rounds).try_for_each(|round| self.launch_round(workspace, round))
    }

    /// Returns rows per block, shared memory and name of the round's kernel that fits the card.
    fn choose(
        &self,
        most: usize,
        round: usize,
    ) -> Result<(usize, usize, &'static str), DeviceError> {
        let kernels = if round == 0 { &KERNELS[..] } else { &NEXT_KERNELS };
        let shared = |(kept, stages, _): &(usize, usize, &str)| {
            kept * self.rows.stride as usize + stages * STAGE_BYTES + KEY_BYTES
        };
        let fitting = kernels.iter().find(|kernel| shared(kernel) <= most);
        let chosen = fitting.unwrap_or(&kernels[kernels.len() - 1]);
        let (kept, _, kernel) = *chosen;
        let shared_bytes = shared(chosen);
        LaunchBuilder::new(kernel)
            .check(shared_bytes <= most, "rows that fit into shared memory")?;
        Ok((kept, shared_bytes, kernel))
    }

    fn launch_round(&self, workspace: &mut Workspace, round: usize) -> Result<(), DeviceError> {
        let Self { rows, listed: (listed, wanted), codes, scales, points, best: (best, _) } = *self;
        let (count, stride) = (rows.rows as usize, rows.stride as usize);
        let traits = workspace.device().traits();
        let multiprocessors = traits.multiprocessors as usize;
        let (kept, shared_bytes, kernel) = self.choose(traits.shared_bytes_max as usize, round)?;
        for first in (0..wanted).step_by(DOWN_MAX * kept) {
            let here = (wanted - first).min(DOWN_MAX * kept);
            let place = |round: usize| (round * wanted + first) * size_of::<u64>();
            let mut builder = LaunchBuilder::new(kernel);
            builder.check(u32::try_from(wanted).is_ok(), "rows of 32 bits")?;
            let params = AssignParams {
                codes: builder.reads::<i8>(&rows.codes, count * stride)?,
                listed: builder.reads_behind::<u32>(listed, first * size_of::<u32>(), here)?,
                point_codes: builder.reads::<i8>(codes, points * stride)?,
                point_scales: builder.reads::<f32>(scales, points)?,
                before: match round {
                    0 => 0,
                    _ => builder.reads_behind::<u64>(best, place(round - 1), here)?,
                },
                best: builder.writes_behind::<u64>(best, place(round), here)?,
                stride: rows.stride,
                points: points as u32,
                wanted: here as u32,
                unused: 0,
            };
            let down = here.div_ceil(kept);
            let parts = (multiprocessors / down).clamp(1, points.div_ceil(128));
            let shape =
                LaunchShape { grid: [parts as u32, down as u32], threads: THREADS, shared_bytes };
            builder.launch(&mut *workspace.queue, shape, &params)?;
        }
        Ok(())
    }
}
