//! G4 and G6, assignment: the points nearest to each row, and means (kernels/assign.cu).

use bytemuck::{Pod, Zeroable};

use crate::RankKey;
use crate::cuda::live::ResidentRows;
use crate::cuda::numbers::Numbers;
use crate::cuda::reach::{Reach, Spread};
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::kmeans::Nearest;
use lodestone_types::RowId;

const THREADS: u32 = 256;
/// Threads of a block that adds up a list.
const MEAN_THREADS: u32 = 128;
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

/// `MeansParams` of kernels/assign.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct MeansParams {
    codes: u64,
    scales: u64,
    offsets: u64,
    members: u64,
    means: u64,
    dimension: u32,
    stride: u32,
}

/// Points in i8, as rows are.
#[derive(Debug, Clone, Copy)]
pub struct Points<'a> {
    /// Codes, padded like the rows.
    pub codes: &'a [i8],
    /// Code times scale is a component.
    pub scales: &'a [f32],
}

/// The `nearest` points of each listed row (absent: of each row), best first, ties to the lower
/// point; fewer where there are fewer points.
///
/// # Errors
/// [`DeviceError::Shape`], or what the device says.
pub fn assign(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    listed: Option<&[u32]>,
    points: Points<'_>,
    nearest: usize,
) -> Result<Vec<Nearest>, DeviceError> {
    let (count, stride) = (rows.rows as usize, rows.stride as usize);
    let refused = |rule| Err(DeviceError::Shape { kernel: "assign", rule });
    if rows.numbers != Numbers::Codes {
        return refused("rows of codes");
    }
    if listed.is_some_and(|listed| listed.iter().any(|row| *row as usize >= count)) {
        return refused("rows that are there");
    }
    if points.codes.len() != points.scales.len() * stride {
        return refused("points as wide as the rows");
    }
    if u32::try_from(points.scales.len()).is_err() {
        return refused("points of 32 bits");
    }
    let wanted = listed.map_or(count, <[u32]>::len);
    let mut found = vec![Nearest::new(); wanted];
    if wanted == 0 || points.scales.is_empty() {
        return Ok(found);
    }
    let listed_here = match listed {
        Some(listed) => Some(workspace.filled("listed", bytemuck::cast_slice(listed))?),
        None => None,
    };
    let point_codes = workspace.filled("point codes", bytemuck::cast_slice(points.codes))?;
    let point_scales = workspace.filled("point scales", bytemuck::cast_slice(points.scales))?;
    let bytes = count * size_of::<u64>();
    let mut keys = vec![0_u64; count];
    for round in 0..nearest.min(points.scales.len()) {
        let best = workspace.zeroed("keys", bytes)?;
        let below = match round {
            0 => None,
            _ => Some(workspace.filled("keys before", bytemuck::cast_slice(&keys))?),
        };
        let on_device = OnDevice {
            rows,
            listed: listed_here.as_deref().map(|listed| (listed, wanted)),
            codes: &point_codes,
            scales: &point_scales,
            points: points.scales.len(),
            below: below.as_deref(),
            best: &best,
        };
        on_device.launch(workspace)?;
        workspace.queue.download(&best, 0, bytemuck::cast_slice_mut(&mut keys))?;
        for (at, found) in found.iter_mut().enumerate() {
            let row = listed.map_or(at, |listed| listed[at] as usize);
            let hit = RankKey::from_bits(keys[row]).hit();
            let RowId(point) = hit.row;
            found.push((hit.score, point));
        }
    }
    Ok(found)
}

/// One launch for all rows that are wanted.
struct OnDevice<'a> {
    rows: &'a ResidentRows,
    /// u32 ids of them, and how many; absent: all rows.
    listed: Option<(&'a Buffer, usize)>,
    codes: &'a Buffer,
    scales: &'a Buffer,
    points: usize,
    below: Option<&'a Buffer>,
    best: &'a Buffer,
}

impl OnDevice<'_> {
    fn launch(&self, workspace: &mut Workspace) -> Result<(), DeviceError> {
        let Self { rows, listed, codes, scales, points, below, best } = *self;
        let (count, stride) = (rows.rows as usize, rows.stride as usize);
        let wanted = listed.map_or(count, |(_, wanted)| wanted);
        let most = workspace.device().traits().shared_bytes_max as usize;
        let shared = |kept: usize, stages: usize| kept * stride + stages * STAGE_BYTES + KEY_BYTES;
        let kernels = if below.is_some() { &NEXT_KERNELS[..] } else { &KERNELS[..] };
        let fitting = kernels.iter().find(|(kept, stages, _)| shared(*kept, *stages) <= most);
        let (kept, stages, kernel) = *fitting.unwrap_or(&kernels[kernels.len() - 1]);
        let shared_bytes = shared(kept, stages);
        Reach::new(kernel).check(shared_bytes <= most, "rows that fit into shared memory")?;
        let item = |first: usize| AssignItem {
            first_row: first as u32,
            rows: kept.min(wanted - first) as u32,
            first_point: 0,
            points: points as u32,
        };
        let items: Vec<AssignItem> = (0..wanted).step_by(kept).map(item).collect();
        let items_here = workspace.filled("items", bytemuck::cast_slice(&items))?;
        for first in (0..items.len()).step_by(ITEMS_MAX) {
            let mut reach = Reach::new(kernel);
            let params = AssignParams {
                codes: reach.reads::<i8>(&rows.codes, count * stride)?,
                listed: match listed {
                    Some((listed, wanted)) => reach.reads::<u32>(listed, wanted)?,
                    None => 0,
                },
                point_codes: reach.reads::<i8>(codes, points * stride)?,
                point_scales: reach.reads::<f32>(scales, points)?,
                items: reach.reads::<AssignItem>(&items_here, items.len())?,
                below: match below {
                    Some(below) => reach.reads::<u64>(below, count)?,
                    None => 0,
                },
                best: reach.writes::<u64>(best, count)?,
                stride: rows.stride,
                first_item: first as u32,
            };
            let down = ITEMS_MAX.min(items.len() - first);
            let multiprocessors = workspace.device().traits().multiprocessors as usize;
            let parts = (multiprocessors / down).clamp(1, points.div_ceil(128));
            let grid = [parts as u32, down as u32];
            let spread = Spread { grid, threads: THREADS, shared_bytes };
            reach.launch(&mut *workspace.queue, spread, &params)?;
        }
        Ok(())
    }
}

/// The mean of the decoded rows of each list, `dimension` values each; zeros for an empty list.
///
/// # Errors
/// [`DeviceError::Shape`] for rows that are not there, or what the device says.
pub fn means(
    workspace: &mut Workspace,
    rows: &ResidentRows,
    lists: &[Vec<u32>],
    dimension: usize,
) -> Result<Vec<Vec<f32>>, DeviceError> {
    let mut reach = Reach::new("means");
    let (count, stride) = (rows.rows as usize, rows.stride as usize);
    reach.check((1..=stride).contains(&dimension), "no more components than codes")?;
    let members = lists.concat();
    let is_there = members.iter().all(|row| (*row as usize) < count);
    reach.check(is_there && u32::try_from(members.len()).is_ok(), "rows of the segment")?;
    if lists.is_empty() {
        return Ok(Vec::new());
    }
    let mut offsets = vec![0_u32];
    let mut until = 0;
    for list in lists {
        until += list.len() as u32;
        offsets.push(until);
    }
    let offsets_here = workspace.filled("offsets", bytemuck::cast_slice(&offsets))?;
    let members_here = workspace.filled("members", bytemuck::cast_slice(&members))?;
    let output = workspace.slot("means", lists.len() * dimension * size_of::<f32>())?;
    let params = MeansParams {
        codes: reach.reads::<i8>(&rows.codes, count * stride)?,
        scales: reach.reads::<f32>(&rows.scales, count)?,
        offsets: reach.reads::<u32>(&offsets_here, offsets.len())?,
        members: reach.reads::<u32>(&members_here, members.len())?,
        means: reach.writes::<f32>(&output, lists.len() * dimension)?,
        dimension: dimension as u32,
        stride: rows.stride,
    };
    let spread = Spread { grid: [lists.len() as u32, 1], threads: MEAN_THREADS, shared_bytes: 0 };
    reach.launch(&mut *workspace.queue, spread, &params)?;
    let mut means = vec![0.0_f32; lists.len() * dimension];
    workspace.queue.download(&output, 0, bytemuck::cast_slice_mut(&mut means))?;
    Ok(means.chunks_exact(dimension).map(<[f32]>::to_vec).collect())
}
