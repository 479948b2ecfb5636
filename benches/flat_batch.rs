//! Question: from how many queries on is a single pass over T1 faster than consecutive scans?
//! Determines `TILED_QUERIES_MIN` of `compute::candidates`.
//!
//! `cargo bench --bench flat_batch`
//!
//! 100,000 rows of 384 components without T0, f16, k = 10, exact, one core. `alone` runs the
//! queries one after the other, `together` all at once; elements are queries.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::{PreparedQuery, SimdBackend};
use lodestone_storage::segment::flat::{Thoroughness, Tiers, search, search_together};

mod vectors;

fn flat_batch(criterion: &mut Criterion) {
    let (columns, _) = vectors::clustered(100_000);
    let tiers = Tiers::new(columns.view(), None);
    let exact = Thoroughness::Exact;
    let mut unit = vec![0.0; tiers.rows.dimension()];
    let mut group = criterion.benchmark_group("flat_batch");
    for count in [4, 8, 16, 64, 256] {
        let prepare = |at: usize| {
            tiers.rows.unit(at * 391, &mut unit);
            PreparedQuery::new(&unit).expect("rows are finite")
        };
        let queries: Vec<PreparedQuery> = (0..count).map(prepare).collect();
        group.throughput(Throughput::Elements(count as u64));
        group.sample_size(20);
        group.bench_function(BenchmarkId::new("together", count), |bencher| {
            let queries = black_box(&queries);
            bencher.iter(|| search_together(&SimdBackend, &tiers, queries, None, 10, exact));
        });
        group.bench_function(BenchmarkId::new("alone", count), |bencher| {
            bencher.iter(|| {
                for query in black_box(&queries) {
                    search(&SimdBackend, &tiers, query, None, 10, exact).expect("as wide");
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, flat_batch);
criterion_main!(benches);
