//! Question: how fast is a dot product, and how close to the memory bandwidth is a scan of
//! consecutive rows?
//!
//! `cargo bench --bench distance`
//!
//! 384 components: i8 codes (T1), f32 (T2 of client vectors) and f16 (T2 of model vectors). `near`
//! reads the same 64 rows repeatedly, `far` reads 200,000 rows from end to end. Bytes are those of
//! the rows.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::{ComputeBackend, FullKind, Selection, SimdBackend};
use lodestone_types::RowId;

mod vectors;

fn distance(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("distance");
    for (place, rows) in [("near", 64), ("far", 200_000)] {
        for (name, kind, bytes) in [("f16", FullKind::F16, 768), ("f32", FullKind::F32, 1536)] {
            let (columns, query) = match kind {
                FullKind::F16 => vectors::clustered(rows),
                FullKind::F32 => vectors::clustered_as(rows, kind),
            };
            let (view, mut scores) = (columns.view(), Vec::new());
            let listed: Vec<RowId> = (0..rows as u32).map(RowId).collect();
            group.throughput(Throughput::Bytes((rows * bytes) as u64));
            group.bench_function(BenchmarkId::new(name, place), |bencher| {
                bencher.iter(|| SimdBackend.exact(&view, black_box(&query), &listed, &mut scores));
            });
            if kind == FullKind::F16 {
                group.throughput(Throughput::Bytes((rows * view.scan_bytes_per_row()) as u64));
                group.bench_function(BenchmarkId::new("i8", place), |bencher| {
                    let query = black_box(&query);
                    bencher.iter(|| SimdBackend.scan(&view, query, Selection::All, &mut scores));
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, distance);
criterion_main!(benches);
