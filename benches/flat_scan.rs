//! How long does one exact flat search take, and how near is it to the memory's speed?
//!
//! `cargo bench --bench flat_scan`
//!
//! 5,000 and 100,000 rows of 384 components, clustered like embeddings, f16 rows, k = 10, no mask,
//! one core. Bytes are those of the T1 scan; what is rescored from T2 comes on top.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone::compute::{ComputeBackend, ScalarBackend, SimdBackend};
use lodestone::segment::flat;

mod vectors;

fn flat_scan(criterion: &mut Criterion) {
    let backends: [&dyn ComputeBackend; 2] = [&ScalarBackend, &SimdBackend];
    let mut group = criterion.benchmark_group("flat_scan");
    for rows in [5_000, 100_000] {
        let (columns, query) = vectors::clustered(rows);
        let view = columns.view();
        group.throughput(Throughput::Bytes((rows * view.scan_bytes_per_row()) as u64));
        for backend in backends {
            let id = BenchmarkId::new(backend.name(), rows);
            group.bench_function(id, |bencher| {
                bencher.iter(|| flat::search(backend, &view, black_box(&query), None, 10));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, flat_scan);
criterion_main!(benches);
