//! Question: what does it cost to open the columns of a segment of 100,000 rows and to evaluate
//! typical filters over them, relative to a budget of a few milliseconds for a whole query?
//!
//! Command: `cargo bench --bench filter_columns`
//!
//! Data: 25,000 sources of 4 rows; each source has a department (12 values), a year (25), an author
//! (500), two tags (50), a unique price and the fields common to all sources. Seed 7.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};

use lodestone_storage::filter::{Columns, ColumnsBuilder, parse, sources};
use lodestone_types::{Filter, Metadata, Sequence, SourceId, SourceKind, SourceRecord};
use lodestone_types::{SubTenantId, Timestamp};

const SOURCES: u32 = 25_000;
const ROWS_EACH: u32 = 4;

/// SplitMix64: a deterministic sequence that needs no dependency.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn id(number: u32) -> SourceId {
    SourceId::parse(&format!("doc_{number:026}")).expect("a valid id")
}

fn source(number: u32, seed: &mut Seed) -> SourceRecord {
    let tenant = json!({
        "department": format!("department {}", seed.below(12)),
        "year": 2000 + seed.below(25),
    });
    let document = json!({
        "author": {"name": format!("author {}", seed.below(500))},
        "tags": [format!("tag {}", seed.below(50)), format!("tag {}", seed.below(50))],
        "price": seed.below(1 << 40) as f64 / 100.0,
    });
    let map = |value: Value| value.as_object().expect("an object").clone();
    let time = Timestamp(1_757_402_409_727 + u64::from(number));
    SourceRecord {
        title: format!("report-{number}.pdf"),
        description: format!("The report of number {number} on matters of every kind."),
        tenant_metadata: map(tenant),
        document_metadata: map(document),
        ..SourceRecord::new(
            SubTenantId::parse(&format!("s{}", number % 100)).expect("a valid name"),
            id(number),
            SourceKind::File,
            Sequence(u64::from(number)),
            time,
        )
    }
}

fn written() -> Bytes {
    let mut seed = Seed(7);
    let mut builder = ColumnsBuilder::new();
    for number in 0..SOURCES {
        let first_row = number * ROWS_EACH;
        builder.add_source(&source(number, &mut seed), first_row..first_row + ROWS_EACH);
    }
    Bytes::from(builder.finish())
}

fn filters() -> Vec<(&'static str, Filter)> {
    let filter = |tenant: Option<&Metadata>, system: Option<&Metadata>| {
        let parsed = parse(tenant, None, system).expect("a valid filter");
        parsed.for_schema(None).expect("no schema forbids it").clone()
    };
    let of = |value: Value| filter(None, value.as_object());
    let tenant = |value: Value| filter(value.as_object(), None);
    let thousand: Vec<SourceId> = (0..1_000).map(|number| id(number * 25)).collect();
    vec![
        ("department equal, tenant", tenant(json!({"department": "department 3"}))),
        ("department equal, either map", of(json!({"department": "department 3"}))),
        ("department not equal", tenant(json!({"department": {"$ne": "department 3"}}))),
        ("author equal", of(json!({"author.name": "author 77"}))),
        ("tags any of 3", of(json!({"tags": ["tag 1", "tag 2", "tag 3"]}))),
        ("year in a range", tenant(json!({"year": {"$gte": 2010, "$lt": 2020}}))),
        ("price above half", of(json!({"price": {"$gt": 5.5e9}}))),
        ("uploaded in the last tenth", of(json!({"source_upload_time": {"$gt": 1757402432.0}}))),
        ("one title", of(json!({"source_title": "report-12345.pdf"}))),
        ("1,000 sources", sources(&thousand)),
        (
            "department and year, or author",
            of(json!({"$or": [
                {"department": "department 3", "year": {"$gt": 2015}},
                {"author.name": "author 77"},
            ]})),
        ),
    ]
}

fn bench(criterion: &mut Criterion) {
    let bytes = written();
    println!("{} bytes for {SOURCES} sources of {ROWS_EACH} rows", bytes.len());
    let mut group = criterion.benchmark_group("filter_columns");
    group.bench_function("open", |bencher| {
        bencher.iter(|| Columns::open(black_box(bytes.clone())).expect("sound columns"));
    });
    let columns = Columns::open(bytes).expect("sound columns");
    for (name, filter) in filters() {
        let matching =
            || columns.matching(black_box(&filter), columns.rows()).expect("sound columns");
        println!("{name}: {} of {} rows", matching().len(), columns.rows());
        group.bench_function(name, |bencher| bencher.iter(matching));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
