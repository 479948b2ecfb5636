//! Question: how fast is a scan of T0, and how much of it is memory bandwidth?
//!
//! `cargo bench --bench one_bit_scan`
//!
//! Rows of 384 components in blocks of 64: a thousand rows, which stay in the cache, and 500,000,
//! which do not. No row reaches the threshold, so that only the scan is timed. Bytes are those of
//! the blocks.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::one_bit::{OneBitEncoder, OneBitQuery, OneBitRows, Reference};
use lodestone_compute::rotation::Rotation;

mod vectors;

fn one_bit_scan(criterion: &mut Criterion) {
    let (columns, query) = vectors::clustered(1024);
    let view = columns.view();
    let rotation = Rotation::new(view.dimension());
    let nowhere = vec![0.0; rotation.width()];
    let mut encoder = OneBitEncoder::new(&rotation);
    let mut unit = vec![0.0; view.dimension()];
    for row in 0..view.len() {
        view.unit(row, &mut unit);
        encoder.push(&unit, &nowhere);
    }
    let blocks = encoder.finish();
    let one_bit = OneBitQuery::new(&rotation, query.unit());
    let reference = Reference { dot: 0.0, allowance: 3.0 };
    let mut group = criterion.benchmark_group("one_bit_scan");
    for copies in [1, 488] {
        let bytes = blocks.repeat(copies);
        let rows = OneBitRows::new(rotation.width(), &bytes).expect("whole blocks");
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(copies * 1024), |bencher| {
            let mut found = Vec::new();
            bencher.iter(|| rows.scan(black_box(&one_bit), reference, 9.0, &[], &mut found));
            assert!(found.is_empty());
        });
    }
    group.finish();
}

criterion_group!(benches, one_bit_scan);
criterion_main!(benches);
