//! Verifies that a device computes what the CPU does, once before it is used.
//!
//! A faulty driver, compiler or card would corrupt every answer, and every segment that it builds.
//! The few rows here go through the kernels of searches and builds; those of the embedding model
//! have their own check (`embed`).

use crate::cuda::DeviceError;
use crate::cuda::assign::assign;
use crate::cuda::batcher::DeviceQuery;
use crate::cuda::held::encoded;
use crate::cuda::manager::ActiveDevice;
use crate::cuda::numbers::{HalfQuery, Numbers, ResidentRows};
use crate::cuda::search::search;
use crate::cuda::search_request::best_hits;
use crate::kmeans::Centroids;
use crate::one_bit::ListUnits;
use crate::rotation::Rotation;
use crate::{
    BoundedQuery, ComputeBackend, ComputeError, ErrorBound, FullKind, PreparedQuery, RowMask,
    Selection, SimdBackend, VectorColumns, VectorRows, select_k,
};
use lodestone_types::{Hit, RowId};

const ROWS: usize = 2000;
/// One that needs padding, and that of the default model.
const DIMENSIONS: [usize; 2] = [70, 384];
/// Numbers of queries that exercise each kernel.
const QUERIES: [usize; 3] = [3, 70, 200];
const K: usize = 5;
/// Points that rows are assigned to; below, how many each row finds.
const POINTS: usize = 200;
const NEAREST: usize = 2;

/// Compares the device's answers with the CPU's.
///
/// # Errors
/// Errors of the device, or [`DeviceError::NoDevice`] if its answers differ from the CPU's.
pub fn check_answers(device: &ActiveDevice) -> Result<(), DeviceError> {
    for dimension in DIMENSIONS {
        check_dimension(device, dimension)?;
    }
    Ok(())
}

fn check_dimension(device: &ActiveDevice, dimension: usize) -> Result<(), DeviceError> {
    let refused = |_: ComputeError| none("the vectors of its check were refused");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ dimension as u64;
    let mut vector = || -> Vec<f32> { (0..dimension).map(|_| uniform(&mut state)).collect() };
    let mut columns = VectorColumns::new(dimension, FullKind::F16).map_err(refused)?;
    for _ in 0..ROWS {
        columns.push(&vector()).map_err(refused)?;
    }
    let rows = columns.view();
    check_builds(device, &rows)?;
    let bitmap = (0..ROWS as u32).filter(|row| row % 7 != 3).collect();
    let mask = RowMask::from_bitmap(ROWS, &bitmap);
    let listed: Vec<RowId> = (0..ROWS as u32).step_by(3).map(RowId).collect();
    let selections = [Selection::All, Selection::Masked(&mask), Selection::Listed(&listed)];
    for count in QUERIES {
        let queries: Vec<PreparedQuery> = (0..count)
            .map(|_| PreparedQuery::new(&vector()))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        let bounded = |query| BoundedQuery { query, bound: ErrorBound::likely(query, &rows) };
        let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
        let asked: Vec<DeviceQuery> = queries.iter().map(DeviceQuery::new).collect();
        for selection in selections {
            let found = device.with_workspace(|workspace| {
                let resident = ResidentRows::upload(&rows, Numbers::Codes, workspace)?;
                search(workspace, &resident, &asked, selection, K)
            })?;
            let wanted = SimdBackend.candidates(&rows, &queries, selection, K).map_err(refused)?;
            let mut triples = queries.iter().zip(found).zip(wanted);
            let is_right = triples.all(|((query, found), wanted)| {
                found.is_some_and(|found| best_hits(&found, K, &query.bound) == wanted)
            });
            if !is_right {
                return Err(none("its answers differ from the CPU's"));
            }
        }
        check_halves(device, &rows, &queries)?;
    }
    Ok(())
}

/// Checks that rows find their nearest points and are encoded bit-identically to the CPU.
fn check_builds(device: &ActiveDevice, rows: &VectorRows<'_>) -> Result<(), DeviceError> {
    let dimension = rows.dimension();
    let mut units = vec![0.0; ROWS * dimension];
    units.chunks_exact_mut(dimension).enumerate().for_each(|(row, unit)| rows.unit(row, unit));
    let points: Vec<Vec<f32>> =
        units.chunks_exact(dimension).take(POINTS).map(<[f32]>::to_vec).collect();
    let points = Centroids::new(&points, dimension);
    let listed: Vec<u32> = (0..ROWS as u32).collect();
    let rotation = Rotation::new(dimension);
    let mut reference = vec![0.0; rotation.width()];
    rotation.apply(&units[..dimension], &mut reference);
    let lists = [ListUnits { reference: &reference, units: &units }];
    let (nearest, blocks) = device.with_workspace(|workspace| {
        let resident = ResidentRows::upload(rows, Numbers::Codes, workspace)?;
        let nearest = assign(workspace, &resident, &listed, &points, NEAREST)?;
        Ok((nearest, encoded(workspace, &rotation, &lists)?))
    })?;
    let mut wanted = Vec::with_capacity(ROWS);
    points.assign(rows, &listed, NEAREST, |_, best| wanted.push(best.to_vec()));
    if !nearest.rows().eq(wanted.iter().map(Vec::as_slice)) {
        return Err(none("it assigns rows to other points than the CPU does"));
    }
    match blocks == SimdBackend.encode_one_bit(&rotation, &lists) {
        true => Ok(()),
        false => Err(none("it encodes rows otherwise than the CPU does")),
    }
}

/// Checks that a search of T2 as f16 returns the best rows of every query.
fn check_halves(
    device: &ActiveDevice,
    rows: &VectorRows<'_>,
    queries: &[BoundedQuery<'_>],
) -> Result<(), DeviceError> {
    let halves = |bounded| HalfQuery::new(bounded).query;
    let asked: Vec<DeviceQuery> = queries.iter().map(halves).collect();
    let found = device.with_workspace(|workspace| {
        let resident = ResidentRows::upload(rows, Numbers::F16, workspace)?;
        search(workspace, &resident, &asked, Selection::All, K)
    })?;
    let all: Vec<RowId> = (0..rows.len() as u32).map(RowId).collect();
    let mut scores = Vec::new();
    for (bounded, found) in queries.iter().zip(found) {
        let refused = |_| none("the vectors of its check were refused");
        SimdBackend.exact(rows, bounded.query, &all, &mut scores).map_err(refused)?;
        let is_named = |hit: &Hit| {
            found.as_ref().is_some_and(|found| found.iter().any(|found| found.row == hit.row.0))
        };
        if !select_k(&scores, K).iter().all(is_named) {
            return Err(none("its search of f16 misses rows"));
        }
    }
    Ok(())
}

fn none(reason: &str) -> DeviceError {
    DeviceError::NoDevice { reason: format!("the GPU is not used: {reason}") }
}

/// Returns a value from -1 to 1 (xorshift, Marsaglia 2003).
fn uniform(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 40) as f32 / (1 << 23) as f32 - 1.0
}
