//! Assignment and encoding in builds through the backend: results equal the CPU's, or there are
//! none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lodestone_compute::cuda::{CudaBackend, CudaLimits, Device};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::one_bit::{ListUnits, encode_lists};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{ComputeBackend, FullKind, VectorColumns, VectorRows};
use lodestone_types::{IdSource, SeededIds};

use crate::families::devices;
use crate::recording::{Faults, Recording, backend_over};

/// The minimum number of rows for which a build uses a device.
const ROWS: usize = 16_384;
const DIMENSION: usize = 64;

fn vectors(count: usize, seed: u64) -> Vec<f32> {
    let ids = SeededIds::new(seed);
    let mut bytes = vec![0; count * DIMENSION];
    ids.fill(&mut bytes);
    bytes.iter().map(|byte| f32::from(*byte) - 127.5).collect()
}

fn columns(count: usize) -> VectorColumns {
    let mut columns = VectorColumns::new(DIMENSION, FullKind::F16).unwrap();
    let vectors = vectors(count, 41);
    vectors.chunks_exact(DIMENSION).for_each(|vector| columns.push(vector).unwrap());
    columns
}

fn over(inner: Arc<dyn Device>) -> (CudaBackend, Arc<Faults>) {
    backend_over(inner, CudaLimits::default())
}

fn by_cpu(
    points: &Centroids,
    rows: &VectorRows<'_>,
    listed: &[u32],
    k: usize,
) -> Vec<Vec<(f32, u32)>> {
    let mut found = Vec::new();
    points.assign(rows, listed, k, |_, best| found.push(best.to_vec()));
    found
}

#[test]
fn held_rows_find_the_points_that_the_cpu_finds() {
    for device in devices("held_rows_find_the_points_that_the_cpu_finds") {
        check_held(device);
    }
}

fn check_held(device: Arc<dyn Device>) {
    let (backend, faults) = over(device);
    let columns = columns(ROWS);
    let rows = columns.view();
    let source = vectors(520, 42);
    let points: Vec<Vec<f32>> = source.chunks_exact(DIMENSION).map(<[f32]>::to_vec).collect();
    let points = Centroids::new(&points, DIMENSION);
    assert!(backend.hold_rows(&rows, ROWS - 1).is_none(), "too few to be worth it");
    let held = backend.hold_rows(&rows, ROWS).unwrap();
    // Every second row, starting with the last.
    let listed: Vec<u32> = (0..ROWS as u32).rev().step_by(2).collect();
    let count = |name| backend.counters().get(name);
    assert_eq!(held.nearest(&points, &listed[..100], 1), None, "little work");
    assert_eq!(count("gpu_fallbacks_refused"), 0);
    faults.calls_left.store(2, Ordering::SeqCst);
    assert_eq!(held.nearest(&points, &listed, 1), None, "refused");
    assert_eq!(count("gpu_fallbacks_refused"), 1);
    // The second nearest is found by the kernel for all further ones. Each pass takes ten seconds
    // in the emulator, but a device is not used for less work.
    for nearest in [1, 2] {
        let found = held.nearest(&points, &listed, nearest).unwrap();
        let found: Vec<_> = found.rows().map(<[_]>::to_vec).collect();
        assert_eq!(found, by_cpu(&points, &rows, &listed, nearest));
    }
    assert_eq!(count("gpu_rows_assigned"), 2 * listed.len() as u64);
    faults.is_full.store(true, Ordering::SeqCst);
    assert!(backend.hold_rows(&rows, ROWS).is_none());
    assert_eq!(count("gpu_fallbacks_out_of_memory"), 1);
}

#[test]
fn held_rows_are_given_back() {
    let device = Arc::new(Recording::new(132, 227 << 10));
    let memory = Arc::clone(&device.memory);
    let (backend, _) = over(device);
    let columns = columns(ROWS);
    let held = backend.hold_rows(&columns.view(), ROWS).unwrap();
    assert_eq!(memory.live_buffers(), 1);
    drop(held);
    assert_eq!(memory.live_buffers(), 0);
}

#[test]
fn lists_are_encoded_as_on_the_cpu() {
    for device in devices("lists_are_encoded_as_on_the_cpu") {
        check_encoded(device);
    }
}

fn check_encoded(device: Arc<dyn Device>) {
    let (backend, faults) = over(device);
    let rotation = Rotation::new(DIMENSION);
    let (units, points) = (vectors(4200, 43), vectors(3, 44));
    let mut references = vec![0.0; 3 * rotation.width()];
    let pairs = points.chunks_exact(DIMENSION).zip(references.chunks_exact_mut(rotation.width()));
    pairs.for_each(|(point, reference)| rotation.apply(point, reference));
    let lengths = [70, 4096, 34];
    let mut rest = units.as_slice();
    let references = references.chunks_exact(rotation.width());
    let lists: Vec<ListUnits<'_>> = references
        .zip(lengths)
        .map(|(reference, rows)| {
            let (units, after) = rest.split_at(rows * DIMENSION);
            rest = after;
            ListUnits { reference, units }
        })
        .collect();
    let wanted = encode_lists(&rotation, &lists);
    assert!(backend.encode_one_bit(&rotation, &lists) == wanted);
    let count = |name| backend.counters().get(name);
    assert_eq!(count("gpu_rows_encoded"), 4200);
    faults.calls_left.store(3, Ordering::SeqCst);
    assert!(backend.encode_one_bit(&rotation, &lists) == wanted, "by the CPU");
    assert_eq!((count("gpu_rows_encoded"), count("gpu_fallbacks_refused")), (4200, 1));
    let few = &lists[..1];
    assert!(backend.encode_one_bit(&rotation, few) == encode_lists(&rotation, few));
    assert_eq!(count("gpu_rows_encoded"), 4200, "few are the CPU's affair");
}
