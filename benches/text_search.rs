//! Question: what does the full-text leg cost over 100,000 rows of 80 words with queries of 8
//! terms, over all rows and under a mask of 1 % of them, when scoring all rows and when finding
//! only the best 100; and how fast are rows indexed?
//!
//! `cargo bench --bench text_search`
//!
//! Words are drawn from a vocabulary of 50,000 by Zipf's law (exponent 1) with a fixed seed, and so
//! are query terms; like a question, a query thus contains common and rare words.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lodestone_text::{
    CorpusStats, HybridQuery, Operator, RowText, ScoreThreshold, TextIndex, TextIndexBuilder,
    TextQuery, WordQuery,
};
use roaring::RoaringBitmap;

const ROWS: u32 = 100_000;
const ROW_WORDS: usize = 80;
const VOCABULARY: u32 = 50_000;
const QUERY_WORDS: usize = 8;

/// SplitMix64, so that the data are identical on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A word of rank r with a probability of about 1 / r.
    fn word(&mut self) -> String {
        let uniform = self.next() as f64 / u64::MAX as f64;
        let rank = f64::from(VOCABULARY).powf(uniform) as u32;
        // Letters only, as digits would be split off as parts of an identifier.
        let letter = |place: u32| char::from(b'a' + (rank / 17_u32.pow(place) % 17) as u8);
        ["w"].into_iter().map(str::to_owned).chain((0..4).map(|p| letter(p).to_string())).collect()
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn build(texts: &[String]) -> Vec<u8> {
    let mut builder = TextIndexBuilder::new();
    for body in texts {
        let row = RowText { body, ..RowText::default() };
        builder.add_row(&row).expect("the row is plain text");
    }
    let bundle = builder.finish().expect("the index is in memory");
    bundle.to_vec().expect("memory takes all bytes")
}

/// Everything that one segment does for one query, except the statistics of the scope.
fn search<Q: TextQuery>(
    index: &TextIndex,
    stats: &CorpusStats,
    query: &Q,
    scope: Option<&RoaringBitmap>,
) -> usize {
    let stats = counted(index, stats, query, scope);
    index.score(query, &stats, scope).expect("the index is sound").top(100).len()
}

/// Finds the best rows without scoring all rows.
fn best<Q: TextQuery>(
    index: &TextIndex,
    stats: &CorpusStats,
    query: &Q,
    scope: Option<&RoaringBitmap>,
) -> usize {
    let stats = counted(index, stats, query, scope);
    let threshold = ScoreThreshold::new(100, 0.0);
    index.best(query, &stats, scope, &threshold).expect("the index is sound").top(100).len()
}

fn counted<Q: TextQuery>(
    index: &TextIndex,
    stats: &CorpusStats,
    query: &Q,
    scope: Option<&RoaringBitmap>,
) -> CorpusStats {
    let mut stats = CorpusStats { scope: stats.scope, ..CorpusStats::default() };
    let counts = index.term_counts(query, scope).expect("the index is sound");
    stats.add(Default::default(), &counts);
    stats
}

fn searches(c: &mut Criterion) {
    let mut random = Random(7);
    let texts: Vec<String> = (0..ROWS).map(|_| random.text(ROW_WORDS)).collect();
    let index = TextIndex::open(build(&texts)).expect("the bundle is sound");
    let queries: Vec<String> = (0..64).map(|_| random.text(QUERY_WORDS)).collect();
    let hybrid: Vec<_> = queries.iter().map(|query| HybridQuery::analyse(query)).collect();
    let all: Vec<_> = queries.iter().map(|q| WordQuery::analyse(q, Operator::And)).collect();
    let percent: RoaringBitmap = (0..ROWS).filter(|_| random.next().is_multiple_of(100)).collect();
    let half: RoaringBitmap = (0..ROWS).filter(|_| random.next().is_multiple_of(2)).collect();

    let mut group = c.benchmark_group("text_search");
    for (name, scope) in [("all", None), ("half", Some(&half)), ("one_percent", Some(&percent))] {
        let stats = CorpusStats { scope: index.scope_stats(scope), ..CorpusStats::default() };
        let mut next = hybrid.iter().cycle();
        group.bench_function(format!("or/{name}"), |b| {
            b.iter(|| search(&index, &stats, next.next().expect("cycles"), scope));
        });
        let mut next = all.iter().cycle();
        group.bench_function(format!("and/{name}"), |b| {
            b.iter(|| search(&index, &stats, next.next().expect("cycles"), scope));
        });
        let mut next = hybrid.iter().cycle();
        group.bench_function(format!("best_or/{name}"), |b| {
            b.iter(|| best(&index, &stats, next.next().expect("cycles"), scope));
        });
        let mut next = all.iter().cycle();
        group.bench_function(format!("best_and/{name}"), |b| {
            b.iter(|| best(&index, &stats, next.next().expect("cycles"), scope));
        });
        group.bench_function(format!("scope_stats/{name}"), |b| {
            b.iter(|| black_box(index.scope_stats(scope)));
        });
    }
    group.finish();
}

fn builds(c: &mut Criterion) {
    let mut random = Random(11);
    let texts: Vec<String> = (0..5_000).map(|_| random.text(ROW_WORDS)).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut group = c.benchmark_group("text_build");
    group.sample_size(10).throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("5000_rows", |b| b.iter(|| build(&texts)));
    let bundle = build(&texts);
    let open = |bundle| TextIndex::open(bundle).expect("the bundle is sound");
    group
        .bench_function("open", |b| b.iter_batched(|| bundle.clone(), open, BatchSize::SmallInput));
    group.finish();
}

criterion_group!(benches, searches, builds);
criterion_main!(benches);
