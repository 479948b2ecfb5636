//! Question: up to how many passing rows is reading all of them from T2 cheaper than scanning their
//! T1 codes first, and from how many on is scanning T0 of all rows cheaper than T1 of those?
//! Determines `GATHER_ROWS_MAX` and `ROWS_A_PASSING_ROW` of `segment::flat::path`.
//!
//! `cargo bench --bench flat_paths`
//!
//! 100,000 rows of 384 components, clustered like embeddings, f16 rows, k = 10; every 100,000/m-th
//! row passes. `gather` reads T2 of all m rows; `scan` is only the T1 part of a masked scan, to
//! which the rescoring (a few hundred rows of T2) must be added; `search` is a search of a segment
//! without T0; `one_bit` is one with T0, which it scans if it estimates that this pays off.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{ComputeBackend, RowMask, Selection, SimdBackend};
use lodestone_storage::segment::flat::{RowFilter, Thoroughness, Tiers, scores, search};
use lodestone_storage::segment::lists::{ListPolicy, Lists, build};
use lodestone_types::RowId;
use roaring::RoaringBitmap;

mod vectors;

const ROWS: usize = 100_000;

fn flat_paths(criterion: &mut Criterion) {
    let (columns, query) = vectors::clustered(ROWS);
    let rows = columns.view();
    let one_list = ListPolicy { listed_rows_min: usize::MAX, ..ListPolicy::default() };
    let (built, rotation) = (build(&rows, one_list), Rotation::new(rows.dimension()));
    let lists = Lists::view(rows.dimension(), &built.lists, &built.one_bit).expect("as built");
    let tiers = Tiers::new(rows, None);
    let with_one_bit = Tiers::new(rows, Some((lists, &rotation)));
    let mut group = criterion.benchmark_group("flat_paths");
    for passing in [128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 65_536] {
        let listed: Vec<RowId> = (0..passing).map(|i| RowId((i * ROWS / passing) as u32)).collect();
        let bitmap: RoaringBitmap = listed.iter().map(|row| row.0).collect();
        let mask = RowMask::from_bitmap(ROWS, &bitmap);
        group.throughput(Throughput::Elements(passing as u64));
        group.bench_function(BenchmarkId::new("gather", passing), |bencher| {
            bencher.iter(|| scores(&SimdBackend, &rows, black_box(&query), &listed));
        });
        group.bench_function(BenchmarkId::new("scan", passing), |bencher| {
            let mut estimates = Vec::new();
            let selection = Selection::Masked(&mask);
            bencher.iter(|| SimdBackend.scan(&rows, black_box(&query), selection, &mut estimates));
        });
        let filter = RowFilter::new(&bitmap, ROWS);
        for (name, tiers) in [("search", &tiers), ("one_bit", &with_one_bit)] {
            group.bench_function(BenchmarkId::new(name, passing), |bencher| {
                let (backend, exact) = (&SimdBackend, Thoroughness::Exact);
                let filter = Some(&filter);
                bencher.iter(|| search(backend, tiers, black_box(&query), filter, 10, exact));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, flat_paths);
criterion_main!(benches);
