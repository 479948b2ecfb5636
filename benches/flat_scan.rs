//! Question: how long does one exact flat search take, and how close is it to the memory bandwidth?
//!
//! `cargo bench --bench flat_scan`
//!
//! Measured once over T1 alone, and once with T0 before it.
//!
//! 5,000 and 100,000 rows of 384 components, clustered like embeddings, f16 rows, k = 10, no mask,
//! one core. Bytes are those of the T1 scan; the rows rescored from T2 are extra.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{ComputeBackend, ScalarBackend, SimdBackend};
use lodestone_storage::segment::flat::{self, Thoroughness, Tiers};
use lodestone_storage::segment::lists::{ListPolicy, Lists, build};

mod vectors;

fn flat_scan(criterion: &mut Criterion) {
    let backends: [&dyn ComputeBackend; 2] = [&ScalarBackend, &SimdBackend];
    let mut group = criterion.benchmark_group("flat_scan");
    for rows in [5_000, 100_000] {
        let (columns, query) = vectors::clustered(rows);
        let view = columns.view();
        group.throughput(Throughput::Bytes((rows * view.scan_bytes_per_row()) as u64));
        let one_list = ListPolicy { listed_rows_min: usize::MAX, ..ListPolicy::default() };
        let (built, rotation) = (build(&view, one_list), Rotation::new(view.dimension()));
        let lists = Lists::view(view.dimension(), &built.lists, &built.one_bit).expect("as built");
        let tiers = Tiers::new(view, Some((lists, &rotation)));
        group.bench_function(BenchmarkId::new("one_bit", rows), |bencher| {
            let (backend, exact) = (&SimdBackend, Thoroughness::Exact);
            bencher.iter(|| flat::search(backend, &tiers, black_box(&query), None, 10, exact));
        });
        let tiers = Tiers::new(tiers.rows, None);
        for backend in backends {
            let id = BenchmarkId::new(backend.name(), rows);
            group.bench_function(id, |bencher| {
                let exact = Thoroughness::Exact;
                bencher.iter(|| flat::search(backend, &tiers, black_box(&query), None, 10, exact));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, flat_scan);
criterion_main!(benches);
