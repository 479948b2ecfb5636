//! Question: what does a probe of lists cost for the recall it achieves, and what does building the
//! lists cost?
//!
//! `cargo bench --bench lists`
//!
//! 200,000 rows of 384 components around 64 centres, with noise of the same magnitude: all lists of
//! a centre are about equally near, which is the hardest case for lists. Prints recall@10 with 200
//! rows of the segment as queries for each patience, then times one query, and a build of 50,000
//! rows.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, SimdBackend};
use lodestone_storage::segment::flat::{FlatHits, Thoroughness, Tiers, search};
use lodestone_storage::segment::lists::{ListPolicy, Lists, build};

mod vectors;

const ROWS: usize = 200_000;
const BUILT_ROWS: usize = 50_000;
const QUERIES: usize = 200;

fn lists(criterion: &mut Criterion) {
    let (columns, query) = vectors::clustered(ROWS);
    let (rows, rotation) = (columns.view(), Rotation::new(columns.view().dimension()));
    let built = build(&rows, ListPolicy::default());
    let lists = Lists::view(rows.dimension(), &built.lists, &built.one_bit).expect("as built");
    let tiers = Tiers::new(rows, Some((lists, &rotation)));
    let ask = |query: &PreparedQuery, thoroughness| -> FlatHits {
        search(&SimdBackend, &tiers, query, None, 10, thoroughness).expect("as wide")
    };
    let mut unit = vec![0.0; rows.dimension()];
    let prepare = |at: usize| {
        rows.unit(at * ROWS / QUERIES, &mut unit);
        PreparedQuery::new(&unit).expect("rows are finite")
    };
    let queries: Vec<PreparedQuery> = (0..QUERIES).map(prepare).collect();
    let exact: Vec<FlatHits> = queries.iter().map(|q| ask(q, Thoroughness::Exact)).collect();

    let mut group = criterion.benchmark_group("lists");
    group.throughput(Throughput::Elements(1));
    for patience in [1, 4, 16, 64, 256] {
        let thoroughness = Thoroughness::Tuned { patience, deviations: 2.5 };
        let found = queries.iter().zip(&exact).map(|(query, exact)| {
            let hits = ask(query, thoroughness).hits;
            hits.iter().filter(|hit| exact.hits.contains(hit)).count()
        });
        let recall = found.sum::<usize>() as f64 / (QUERIES * 10) as f64;
        println!("patience {patience}: recall@10 {recall:.4} over {} lists", lists.len());
        group.bench_function(BenchmarkId::new("probe", patience), |bencher| {
            bencher.iter(|| ask(black_box(&query), thoroughness));
        });
    }
    group.bench_function("exact", |bencher| {
        bencher.iter(|| ask(black_box(&query), Thoroughness::Exact));
    });
    let (columns, _) = vectors::clustered(BUILT_ROWS);
    let policy = ListPolicy { listed_rows_min: 0, ..ListPolicy::default() };
    group.throughput(Throughput::Elements(BUILT_ROWS as u64)).sample_size(10);
    group.bench_function("build", |bencher| bencher.iter(|| build(&columns.view(), policy)));
    group.finish();
}

criterion_group!(benches, lists);
criterion_main!(benches);
