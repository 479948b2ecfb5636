//! Memory of searches and merges, counted by the allocator.

use std::sync::Arc;

use lodestone_compute::SimdBackend;
use lodestone_graph::RowGraph;
use lodestone_io::store::{BlobStore, Key, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::segment::{
    NewRow, NewSource, Segment, SegmentShape, TombstoneSet, VectorKind, write, write_merged,
};
use lodestone_text::{CorpusStats, HybridQuery, RowText, TextIndex, TextIndexBuilder};
use lodestone_types::{
    ChunkPlace, CollectionId, RowId, SegmentId, Sequence, SourceId, SourceKind, SourceRecord,
    SubTenantId, Timestamp,
};
use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::allocation;
use crate::chance::Chance;

/// Goal: a search of a small sub-tenant does not pay for other sub-tenants' rows in the segment,
/// nor for their postings of its words.
#[test]
fn a_keyword_search_takes_memory_for_its_scope_only() {
    const ROWS: u32 = 200_000;
    let mut builder = TextIndexBuilder::new();
    for row in 0..ROWS {
        let body = format!("common {}", if row % 2 == 0 { "even" } else { "odd" });
        builder.add_row(&RowText { body: &body, title: "common", ..RowText::default() }).unwrap();
    }
    let index = TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap();
    let scope: RoaringBitmap = (70_000..70_020).chain(190_000..190_005).collect();
    let query = HybridQuery::analyse("common even");
    allocation::begin();
    let mut stats = CorpusStats::default();
    let counts = index.term_counts(&query, Some(&scope)).unwrap();
    stats.add(index.scope_stats(Some(&scope)), &counts);
    let scores = index.score(&query, &stats, Some(&scope)).unwrap();
    let (top, peak) = (scores.top(30), allocation::peak_bytes());
    assert_eq!(top.len(), 25);
    assert!(scores.get(RowId(70_000)) > scores.get(RowId(70_001)));
    // One window of scores, and a block for each term.
    assert!(peak < 64 << 10, "{peak} bytes for 25 rows of {ROWS}");
}

const DIMENSION: usize = 32;
const SOURCES: usize = 40;
const ROWS_A_SOURCE: usize = 110;

fn vector(chance: &mut Chance) -> Vec<f32> {
    let values: Vec<f32> = (0..DIMENSION).map(|_| chance.below(2001) as f32 - 1000.0).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt().max(1.0);
    values.into_iter().map(|value| value / length).collect()
}

fn source(number: usize, chance: &mut Chance) -> NewSource {
    let id = SourceId::parse(&format!("source-{number}")).unwrap();
    let title = format!("Report {number} of Marta Lindqvist");
    let record = SourceRecord {
        title: title.clone(),
        description: "What the report is about. ".repeat(10),
        content_type: "text/plain".into(),
        size_bytes: 1,
        raw_key: format!("v1/raw/{number}"),
        ..SourceRecord::new(
            SubTenantId::default_name(),
            id,
            SourceKind::Text,
            Sequence(number as u64 + 1),
            Timestamp(1),
        )
    };
    let row = |index| {
        let words: Vec<String> = (0..60).map(|_| format!("w{:x}", chance.below(40_000))).collect();
        let text = format!("Light {index} was directed by Elsa Berg. {}", words.join(" "));
        NewRow {
            index: index as u32,
            place: ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() },
            graph: match index % 10 {
                0 => lodestone_graph::extract(&title, &text),
                _ => RowGraph::default(),
            },
            vector: vector(chance),
            text,
            ..NewRow::default()
        }
    };
    let rows = (0..ROWS_A_SOURCE).map(row).collect();
    NewSource { record, title_text: title.clone(), searchable: String::new(), rows }
}

/// Goal: a merge takes no more memory than it announces in advance, so that a budget can reserve
/// it; and that is less than the texts and the text index that it writes.
#[test]
fn a_merge_takes_the_memory_that_it_says() {
    let root = tempfile::tempdir().unwrap();
    let data = DataDir::open(root.path(), Arc::new(RealDisk)).unwrap();
    let store: &dyn BlobStore = &LocalBlobs::new(Arc::new(data));
    let collection = CollectionId(Uuid::from_u128(1));
    let key = |id: SegmentId| Key::parse(&format!("v1/c/x/s/{id}.seg")).unwrap();
    let shape = |number| SegmentShape {
        collection,
        segment: SegmentId(Uuid::from_u128(number)),
        dimension: DIMENSION,
        vector_kind: VectorKind::F16,
    };
    let mut chance = Chance::new(7);
    let inputs: Vec<Segment> = (0..4_usize)
        .map(|input| {
            let numbers = input * SOURCES..(input + 1) * SOURCES;
            let sources: Vec<_> = numbers.map(|number| source(number, &mut chance)).collect();
            let shape = shape(2 + input as u128);
            let meta = write(store, &key(shape.segment), shape, &sources).unwrap();
            Segment::open(store, &key(meta.id), collection, &meta).unwrap()
        })
        .collect();
    let said: u64 = inputs.iter().map(Segment::merge_memory_bytes).sum();
    let none = TombstoneSet::default();
    let pinned = inputs.iter().map(|input| (input, &none)).collect();
    let shape = shape(1);
    allocation::begin();
    let meta = write_merged(store, &key(shape.segment), shape, pinned, &SimdBackend).unwrap();
    let taken = allocation::peak_bytes() as u64;
    assert_eq!(meta.rows as usize, 4 * SOURCES * ROWS_A_SOURCE);
    assert!(taken <= said, "{taken} bytes were taken, {said} said");
    assert!(said <= 4 * taken, "{said} bytes were said, {taken} taken");
    let before: u64 = inputs.iter().map(|input| input.meta().bytes).sum();
    let growth: u64 = inputs.iter().map(Segment::merge_growth_bytes).sum();
    assert!(meta.bytes <= before + growth, "{} bytes of {before}", meta.bytes);
}
