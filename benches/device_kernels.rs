//! Question: what do the GPU kernels other than plain searches cost, compared with the CPU? The
//! results determine when list building, encoding and filters should use the device (the limits in
//! `src/compute/src/cuda/backend.rs` and `held.rs`).
//!
//! `cargo bench --bench device_kernels`; `lodestone bench device` times whole searches.
//!
//! 100,000 rows of 384 components, f16. `masked` finds the best 10 among a random hundredth of the
//! rows, `assign` the nearest of 512 points for each row, `encode` computes T0 of 20,000 rows,
//! `halves` finds the best 10 of all rows by T2 for 1 and 256 queries. Elements are rows.
//! Times include copies to and from the device, but not the upload of the rows. Without a GPU only
//! the CPU is timed.

use std::hint::black_box;
use std::sync::Arc;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::cuda::manager::ActiveDevice;
use lodestone_compute::cuda::numbers::{HalfQuery, Numbers, ResidentRows};
use lodestone_compute::cuda::search::search;
use lodestone_compute::cuda::{CudaBackend, assign};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::one_bit::ListUnits;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ErrorBound, PreparedQuery, RowMask, Selection, SimdBackend,
    VectorRows,
};
use lodestone_engine::open_cuda;
use lodestone_engine::settings::Settings;
use lodestone_io::{Disk, RealDisk};
use lodestone_types::{Clock, SystemClock};

mod vectors;

const ROWS: usize = 100_000;
const ENCODED_ROWS: usize = 20_000;
const POINTS: usize = 512;
/// Identifies the rows on the device.
const IDENTITY: u128 = 1;

fn device() -> Option<CudaBackend> {
    let folder = std::env::temp_dir();
    let settings = Settings::new(folder.join("lodestone-bench-device"), folder);
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let opened = open_cuda(&settings, &disk, &clock, Arc::new(SimdBackend));
    opened.inspect_err(|error| println!("the CPU alone is timed: {error}")).ok()
}

fn device_kernels(criterion: &mut Criterion) {
    let (columns, query) = vectors::clustered(ROWS);
    let rows = columns.view().with_identity(IDENTITY);
    let cuda = device();
    let device = cuda.as_ref().map(|cuda| cuda.manager().active().expect("it was just opened"));
    let mut group = criterion.benchmark_group("device_kernels");
    group.sample_size(20);
    masked(&mut group, &rows, &query, cuda.as_ref());
    assigned(&mut group, &rows, device.as_deref());
    encoded(&mut group, &rows, cuda.as_ref());
    halves(&mut group, &rows, &query, device.as_deref());
    group.finish();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn masked(
    group: &mut Group<'_>,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    cuda: Option<&CudaBackend>,
) {
    let passing = (0..ROWS as u32).filter(|row| row.wrapping_mul(2_654_435_761) % 100 == 0);
    let mask = RowMask::from_bitmap(ROWS, &passing.collect());
    let bounded = [BoundedQuery { query, bound: ErrorBound::likely(query, rows) }];
    let cpu: &dyn ComputeBackend = &SimdBackend;
    let backends = [Some(cpu), cuda.map(|cuda| cuda as &dyn ComputeBackend)];
    group.throughput(Throughput::Elements((ROWS / 100) as u64));
    for backend in backends.into_iter().flatten() {
        let selection = Selection::Masked(&mask);
        group.bench_function(format!("masked/{}", backend.name()), |bencher| {
            bencher.iter(|| backend.candidates(rows, black_box(&bounded), selection, 10));
        });
    }
}

fn assigned(group: &mut Group<'_>, rows: &VectorRows<'_>, device: Option<&ActiveDevice>) {
    let mut unit = vec![0.0; rows.dimension()];
    let mut points = Vec::new();
    for point in 0..POINTS {
        rows.unit(point * ROWS / POINTS, &mut unit);
        points.push(unit.clone());
    }
    let centroids = Centroids::new(&points, rows.dimension());
    let listed: Vec<u32> = (0..ROWS as u32).collect();
    group.throughput(Throughput::Elements(ROWS as u64));
    group.bench_function("assign/simd", |bencher| {
        bencher.iter(|| {
            let mut nearest = Vec::with_capacity(ROWS);
            centroids.assign(rows, &listed, 1, |_, best| nearest.push(best[0].1));
            nearest
        });
    });
    let Some(device) = device else { return };
    let resident =
        device.with_workspace(|workspace| ResidentRows::upload(rows, Numbers::Codes, workspace));
    let resident = resident.expect("there is enough memory");
    group.bench_function("assign/cuda", |bencher| {
        bencher.iter(|| {
            device.with_workspace(|workspace| {
                assign::assign(workspace, &resident, &listed, &centroids, 1)
            })
        });
    });
}

fn encoded(group: &mut Group<'_>, rows: &VectorRows<'_>, cuda: Option<&CudaBackend>) {
    let dimension = rows.dimension();
    let mut units = vec![0.0; ENCODED_ROWS * dimension];
    for (row, unit) in units.chunks_exact_mut(dimension).enumerate() {
        rows.unit(row, unit);
    }
    let rotation = Rotation::new(dimension);
    let mut reference = vec![0.0; rotation.width()];
    rotation.apply(&units[..dimension], &mut reference);
    let lists = [ListUnits { reference: &reference, units: &units }];
    let cpu: &dyn ComputeBackend = &SimdBackend;
    let backends = [Some(cpu), cuda.map(|cuda| cuda as &dyn ComputeBackend)];
    group.throughput(Throughput::Elements(ENCODED_ROWS as u64));
    for backend in backends.into_iter().flatten() {
        group.bench_function(format!("encode/{}", backend.name()), |bencher| {
            bencher.iter(|| backend.encode_one_bit(&rotation, black_box(&lists)));
        });
    }
}

/// Measured only on a GPU, because the CPU reads T1 and a few rows of T2 instead.
fn halves(
    group: &mut Group<'_>,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    device: Option<&ActiveDevice>,
) {
    let Some(device) = device else { return };
    let bounded = BoundedQuery { query, bound: ErrorBound::likely(query, rows) };
    let resident =
        device.with_workspace(|workspace| ResidentRows::upload(rows, Numbers::F16, workspace));
    let resident = resident.expect("there is enough memory");
    for count in [1, 256] {
        let queries = vec![HalfQuery::new(&bounded).query; count];
        group.throughput(Throughput::Elements((ROWS * count) as u64));
        group.bench_function(format!("halves/f16/{count}"), |bencher| {
            bencher.iter(|| {
                let queries = black_box(&queries);
                device.with_workspace(|w| search(w, &resident, queries, Selection::All, 10))
            });
        });
    }
}

criterion_group!(benches, device_kernels);
criterion_main!(benches);
