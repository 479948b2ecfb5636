//! Question: what does it cost to keep the best k of a stream of scores?
//!
//! `cargo bench --bench select_k`
//!
//! A million scores in random order, and in ascending order, the worst case, in which every score
//! displaces another. Bytes are those of the scores.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::select_k;

const SCORES: u32 = 1_000_000;

fn select(criterion: &mut Criterion) {
    let mixed: Vec<f32> =
        (0..SCORES).map(|at| (at.wrapping_mul(2_654_435_761) >> 8) as f32).collect();
    let ascending: Vec<f32> = (0..SCORES).map(|at| at as f32).collect();
    let mut group = criterion.benchmark_group("select_k");
    group.throughput(Throughput::Bytes(u64::from(SCORES) * 4));
    for k in [10, 100, 1000] {
        for (name, scores) in [("mixed", &mixed), ("ascending", &ascending)] {
            group.bench_function(BenchmarkId::new(name, k), |bencher| {
                bencher.iter(|| select_k(black_box(scores), k));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, select);
criterion_main!(benches);
