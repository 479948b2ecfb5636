//! Up to how many passing rows is reading all of them from T2 cheaper than scanning their T1 codes
//! first, and from how many is T0 of all rows cheaper than T1 of those? Sets `GATHER_ROWS_MAX` and
//! `ROWS_A_PASSING_ROW` of `segment::flat`.
//!
//! `cargo bench --bench flat_paths`
//!
//! 100,000 rows of 384 components, clustered like embeddings, f16 rows, k = 10, every 100,000/m-th
//! row passes. `gather` reads T2 of all m rows; `scan` is the T1 half alone of a masked scan, to
//! which the rescoring (a few hundred rows of T2) must be added; `search` is what a segment without
//! T0 does; `one_bit` scans all of T0 and asks the mask of what that lets through.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone::compute::rotation::Rotation;
use lodestone::compute::{ComputeBackend, RowMask, Selection, SimdBackend};
use lodestone::segment::flat::{self, Thoroughness, Tiers};
use lodestone::segment::lists::{Effort, ListPolicy, Lists, build, probe};
use lodestone::types::RowId;
use roaring::RoaringBitmap;

mod vectors;

const ROWS: usize = 100_000;

fn flat_paths(criterion: &mut Criterion) {
    let (columns, query) = vectors::clustered(ROWS);
    let rows = columns.view();
    let tiers = Tiers { rows, listed: None };
    let one_list = ListPolicy { listed_rows_min: usize::MAX, ..ListPolicy::default() };
    let (built, rotation) = (build(&rows, one_list), Rotation::new(rows.dimension()));
    let lists = Lists::view(rows.dimension(), &built.lists, &built.one_bit).expect("as built");
    let mut group = criterion.benchmark_group("flat_paths");
    for passing in [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536] {
        let listed: Vec<RowId> = (0..passing).map(|i| RowId((i * ROWS / passing) as u32)).collect();
        let bitmap: RoaringBitmap = listed.iter().map(|row| row.0).collect();
        let mask = RowMask::from_ranges(ROWS, listed.iter().map(|row| row.0..=row.0));
        group.throughput(Throughput::Elements(passing as u64));
        group.bench_function(BenchmarkId::new("gather", passing), |bencher| {
            bencher.iter(|| flat::scores(&SimdBackend, &rows, black_box(&query), &listed));
        });
        group.bench_function(BenchmarkId::new("scan", passing), |bencher| {
            let mut estimates = Vec::new();
            let selection = Selection::Masked(&mask);
            bencher.iter(|| SimdBackend.scan(&rows, black_box(&query), selection, &mut estimates));
        });
        group.bench_function(BenchmarkId::new("search", passing), |bencher| {
            let (backend, exact) = (&SimdBackend, Thoroughness::Exact);
            let mask = Some(&bitmap);
            bencher.iter(|| flat::search(backend, &tiers, black_box(&query), mask, 10, exact));
        });
        group.bench_function(BenchmarkId::new("one_bit", passing), |bencher| {
            bencher.iter(|| {
                let query = black_box(&query);
                probe(&lists, &rotation, query, 10, Effort::EXACT, |row| {
                    bitmap.contains(row.0).then(|| (rows.estimate(row.0 as usize, query), 0.01))
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, flat_paths);
criterion_main!(benches);
