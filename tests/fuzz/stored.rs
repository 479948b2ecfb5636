//! Stored bytes with valid checksums, as a hostile archive or a bug of another release might
//! produce them: accepted data can be read completely, and is unchanged when written again.

use std::sync::Arc;

use bytes::Bytes;
use lodestone_compute::{PreparedQuery, SimdBackend};
use lodestone_graph::{EntityId, GraphIndex, GraphWriter, extract};
use lodestone_io::store::testing::MemoryBlobs;
use lodestone_io::store::{BlobStore, Key};
use lodestone_io::{checksum, sealed};
use lodestone_storage::collection::{AddedSegment, Collection, Edit, Manifest};
use lodestone_storage::filter;
use lodestone_storage::segment::flat::{Thoroughness, search};
use lodestone_storage::segment::{Segment, SegmentError, TombstoneSet, VectorKind, verify};
use lodestone_text::{
    CorpusStats, HybridQuery, ImpactIndex, OwnedBytes, RowText, TextIndex, TextIndexBuilder,
    write_impacts,
};
use lodestone_types::{ErrorKind, RowId, SeededIds, SegmentId, SourceKind, SubTenantId};
use roaring::RoaringBitmap;
use uuid::Uuid;

use crate::forged::{COLLECTION, Forge, source};
use crate::mutations::Shape;
use crate::runner::{Target, run};

const NOTHING: Shape = Shape::Text(&["\0\0\0\0", "\u{1}\0\0\0"]);

/// The libraries behind the text index panic on unexpected bytes; the product catches that.
fn of_the_library(place: &str) -> bool {
    ["/tantivy", "/ownedbytes-", "/bitpacking-"].iter().any(|name| place.contains(*name))
}

fn fuzz(
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    shape: Shape,
    read: impl Fn(&[u8]) + Send + 'static,
) {
    run(Target { name, seeds, shape, read: Box::new(read), is_contained: of_the_library });
}

/// Reads everything of a segment that a search or a listing could read, as far as possible.
fn walk(segment: &Segment) -> Result<(), SegmentError> {
    let default = SubTenantId::default_name();
    let mut first = Ok(());
    let mut note = |result: Result<(), SegmentError>| {
        if first.is_ok() {
            first = result;
        }
    };
    for row in (0..segment.row_count().min(500)).map(RowId) {
        let _ = (segment.place(row), segment.boxes(row), segment.context(row), segment.index(row));
        note(segment.lines(row).map(drop));
        note(segment.text(row).map(drop));
        note(segment.payload(row).map(drop).or(Ok(())));
        note(segment.original_vector(row).map(drop));
        let _ = segment.sequence(segment.source_of(row));
    }
    for at in 0..segment.source_count().min(500) {
        note(segment.record(at).map(drop));
        let (sub_tenant, id) = segment.source_key(at);
        let _ = segment.find_source_named(sub_tenant, id);
        let _ = (segment.rows_of(at), segment.uploaded_at(at), segment.last_updated_at(at));
    }
    let _ = (segment.newest_first(&default), segment.sub_tenants());
    note(segment.rows_named("id-1").map(drop));
    let conditions = serde_json::json!({"colour": "red", "size": {"$gte": 3}});
    let wanted = filter::parse_for_vectors(conditions.as_object()).expect("a filter");
    note(segment.matching(&wanted).map(drop));
    note(segment.graph().map(|graph| {
        graph.into_iter().for_each(|graph| walk_graph(graph, segment.row_count().min(500)))
    }));
    note(segment.impacts().and_then(|impacts| {
        let Some(impacts) = impacts else { return Ok(()) };
        let _ = impacts.score(&[(9, 1.0), (1, 0.5)], None)?;
        Ok(())
    }));
    // The content of its bytes does not affect the result of the walk.
    let _ = walk_text(segment.text_index());
    let tiers = segment.tiers().map(|tiers| {
        let query = PreparedQuery::new(&[0.6, 0.8, 0.0, 0.0]).expect("a query");
        let hits = search(&SimdBackend, &tiers, &query, None, 3, Thoroughness::Exact);
        assert!(hits.is_err() || segment.dimension() == 4);
    });
    note(tiers);
    note(segment.lists().map(drop));
    first
}

fn walk_text(index: &TextIndex) -> Result<(), lodestone_text::TextError> {
    let query = HybridQuery::analyse("common film \"red apples\"");
    let mut stats = CorpusStats::default();
    stats.add(index.scope_stats(None), &index.term_counts(&query, None)?);
    let scores = index.score(&query, &stats, None)?;
    for hit in scores.top(5) {
        assert!(hit.row.0 < index.rows() && !hit.score.is_nan(), "{hit:?} of {}", index.rows());
    }
    Ok(())
}

fn walk_graph(graph: &GraphIndex, rows: u32) {
    for row in 0..rows {
        let of_row = graph.row(row);
        for triplet in of_row.triplets {
            let ends = usize::from(triplet.source.max(triplet.target));
            assert!(ends < of_row.entities.len(), "a triplet without its ends");
        }
        let entities: Vec<EntityId> = graph.entities_of_row(row).collect();
        for entity in entities {
            assert_eq!(graph.find(graph.key(entity)), Some(entity), "an entity has one key");
            let _ = (graph.rows_of(entity), graph.named_in(row, entity));
            let triplets: Vec<_> = graph.triplets_of_entity(entity).take(50).collect();
            for triplet in triplets {
                let _ = graph.triplet(triplet);
            }
        }
        let triplets: Vec<_> = graph.triplets_of_row(row).collect();
        for triplet in triplets {
            let _ = graph.triplet(triplet);
        }
    }
    let _ = graph.called("marta lindqvist").1.count();
}

/// Goal: a segment that opens can be read or reports its damage; one that passes verification can
/// be read.
#[test]
fn segments() {
    let forge = Forge::new();
    let seeds = (0_u8..=2).flat_map(|kind| {
        let of = move |section: u8| {
            (0_u8..16).step_by(3).map(move |change| {
                let mut one = vec![kind, section, change, section * 16, section, 0, 0, 0];
                one.extend(u64::from(change).to_le_bytes());
                one
            })
        };
        (0_u8..16).flat_map(of)
    });
    for kind in 0_u8..=2 {
        let sound = forge.open(&[kind]).expect("a sound segment");
        verify(&sound).and_then(|_| walk(&sound)).expect("a sound segment");
    }
    fuzz("segments", seeds.collect(), NOTHING, move |input| match forge.open(input) {
        Err(error) => {
            let is_told = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Conflict);
            assert!(is_told || !error.to_string().is_empty(), "{error}");
        }
        Ok(segment) => {
            let walked = walk(&segment);
            if verify(&segment).is_ok() {
                walked.expect("what passes the walk can be read");
            }
        }
    });
}

#[test]
fn tombstones() {
    let of = |rows: &[u32], sources: &[u32]| {
        let set = TombstoneSet {
            rows: rows.iter().copied().collect(),
            sources: sources.iter().copied().collect(),
        };
        let (mut bytes, _) = set.encode(COLLECTION, SegmentId(Uuid::nil()));
        bytes.truncate(bytes.len() - 8);
        bytes
    };
    let many: Vec<u32> = (0..9000).step_by(2).collect();
    let mut run: RoaringBitmap = (0..5000).collect();
    run.optimize();
    let set = TombstoneSet { rows: run, ..TombstoneSet::default() };
    let (mut optimized, _) = set.encode(COLLECTION, SegmentId(Uuid::nil()));
    optimized.truncate(optimized.len() - 8);
    let seeds = vec![of(&[], &[]), of(&[1, 5, 70_000], &[0]), of(&many, &[3]), optimized];
    fuzz("tombstones", seeds, NOTHING, |body| {
        let hash = checksum(body);
        let file = [body, &hash.to_le_bytes()].concat();
        let read = TombstoneSet::decode(&file, COLLECTION, SegmentId(Uuid::nil()), hash);
        if let Ok(set) = read {
            let (again, hash) = set.encode(COLLECTION, SegmentId(Uuid::nil()));
            let same = TombstoneSet::decode(&again, COLLECTION, SegmentId(Uuid::nil()), hash);
            assert_eq!(same.expect("what was written"), set);
            assert_eq!(set.rows.iter().count() as u64, set.rows.len());
            assert!(set.rows.iter().is_sorted(), "rows ascend");
        }
    });
}

#[test]
fn manifests() {
    let mut manifest = Manifest::empty(COLLECTION).next(Uuid::from_u128(2), 3);
    manifest.version = 1;
    let with = serde_json::json!({
        "id": Uuid::from_u128(4), "bytes": 9000, "rows": 3, "sources": 2, "checksum": 5,
        "tombstones": {"id": Uuid::from_u128(5), "checksum": 6, "rows": 1},
    });
    let plain = serde_json::to_value(&manifest).expect("a manifest is JSON");
    let mut full = plain.clone();
    full["segments"] = serde_json::json!([with.clone(), with.clone()]);
    full["other"] = serde_json::json!({"model": "m", "segments": [with]});
    full["newest_sequence"] = 7.into();
    let source = serde_json::json!({
        "rows": 3, "sub_tenant": "s", "id": "a", "kind": "text", "title": "t", "filename": "",
        "url": "", "content_type": "text/plain", "size_bytes": 9, "tenant_metadata": {"a": 1},
        "document_metadata": {}, "uploaded_at": 1, "last_updated_at": 2, "version": 1,
        "sequence": 4, "raw_key": "v1/raw/a",
    });
    full["segments"][0]["list"] = serde_json::json!([source]);
    let seeds = vec![plain.to_string().into_bytes(), full.to_string().into_bytes()];
    fuzz("manifests", seeds, Shape::Values, |body| {
        let file = sealed::seal("lodestone manifest 1", body);
        let Ok(manifest) = Manifest::decode(&file, COLLECTION, 1) else { return };
        let again = Manifest::decode(&manifest.encode(), COLLECTION, 1);
        assert_eq!(again.ok().as_ref(), Some(&manifest), "written anew it is another");
        let next = manifest.next(Uuid::from_u128(9), 1);
        assert!(next.recent.len() <= 64 && next.epoch >= manifest.epoch && next.version == 2);
    });
}

/// Source lists of a segment that cannot be read.
#[test]
fn source_lists() {
    let store = Arc::new(MemoryBlobs::default());
    let blobs: Arc<dyn BlobStore> = store.clone();
    let ids = Arc::new(SeededIds::new(1));
    let opened = Collection::open(COLLECTION, blobs, ids.clone(), 1, None).expect("a collection");
    let sources = [source(0, SourceKind::File, &["a b", "c"]), source(1, SourceKind::Text, &["d"])];
    let segment = opened.build(4, VectorKind::F16, &sources).expect("a segment");
    let edit =
        Edit { add: vec![AddedSegment { segment, withheld: Vec::new() }], ..Edit::default() };
    opened.writer().expect("a writer").commit(&edit).expect("a commit");
    drop(opened);
    let below = |name: &str| {
        let prefix = Key::parse(&format!("v1/c/{COLLECTION}/{name}")).expect("a key");
        store.list(&prefix).expect("a list").pop().expect("a file")
    };
    let (list, file) = (below("r"), below("s"));
    let words = "lodestone sources 1";
    let bytes = store.get(&list).expect("the list");
    let body = sealed::open(words, &bytes).expect("a sealed file");
    let seed = zstd::stream::decode_all(body).expect("zstd");
    store.put(&file, b"damaged").expect("memory");
    fuzz("source_lists", vec![seed], Shape::Values, move |json| {
        let packed = zstd::bulk::compress(json, 1).expect("memory");
        store.put(&list, &sealed::seal(words, &packed)).expect("memory");
        let opened = Collection::open(COLLECTION, store.clone(), ids.clone(), 1, None);
        let snapshot = opened.expect("a damaged segment stops nobody").snapshot();
        let [damaged] = snapshot.damaged.as_slice() else { panic!("a segment is quarantined") };
        for record in damaged.lost() {
            let found = snapshot.find_lost(&record.sub_tenant, &record.id);
            assert!(found.is_some_and(|found| found.id == record.id), "a source without its name");
        }
        assert!(damaged.is_known() || damaged.lost().count() == 0);
    });
}

#[test]
fn graph() {
    let mut writer = GraphWriter::new();
    let texts = [
        "Northern Light is a film directed by Marta Lindqvist.",
        "Elsa Berg was born in Oslo. Marta Lindqvist (ML) lives in Oslo.",
        "",
    ];
    for (row, text) in texts.iter().enumerate() {
        writer.add(row as u32, &extract("Northern Light", text));
    }
    writer.add_title(0, "Northern Light");
    let seed = writer.finish(3, 2);
    let empty = GraphWriter::new().finish(3, 2);
    fuzz("graph", vec![seed, empty], NOTHING, |bytes| {
        // Aligned, as in a file.
        let aligned: Vec<u64> = bytes
            .chunks(8)
            .map(|some| some.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b)))
            .collect();
        let aligned = Bytes::copy_from_slice(bytemuck::cast_slice(&aligned)).slice(..bytes.len());
        if let Ok(graph) = GraphIndex::open(aligned, 3, 2) {
            walk_graph(&graph, 3);
            let mut writer = GraphWriter::new();
            (0..3).for_each(|row| writer.add(row, &graph.row(row)));
        }
    });
}

#[test]
fn text_index() {
    let bundle = |rows: u32| {
        let mut builder = TextIndexBuilder::new();
        for row in 0..rows {
            let body =
                format!("common red apples film w{row} {}", "even ".repeat(row as usize % 3));
            builder.add_row(&RowText { body: &body, title: "film", ..RowText::default() }).unwrap();
        }
        builder.finish().unwrap().to_vec().unwrap()
    };
    fuzz("text_index", vec![bundle(0), bundle(3), bundle(300)], NOTHING, |bytes| {
        if let Ok(index) = TextIndex::open(bytes.to_vec()) {
            let _ = walk_text(&index);
        }
    });
}

#[test]
fn impacts() {
    let of = |rows: Vec<Vec<(u32, f32)>>| {
        let mut out = Vec::new();
        let tables = write_impacts(&[7; 32], rows.iter().map(Vec::as_slice), &mut out).unwrap();
        [tables, out].concat()
    };
    let many = (0..200_u32).map(|row| vec![(row % 7, 1.0), (9, 0.01 * row as f32 + 0.1)]).collect();
    let seeds = vec![of(many), of(vec![Vec::new(); 200])];
    ImpactIndex::open(Arc::new(OwnedBytes::new(seeds[0].clone())), 200).expect("a sound one");
    fuzz("impacts", seeds, NOTHING, |bytes| {
        let bytes = Arc::new(OwnedBytes::new(bytes.to_vec()));
        let Ok(index) = ImpactIndex::open(bytes, 200) else { return };
        let query = [(9, 1.0), (3, 0.5), (1 << 20, 1.0)];
        if let Ok(scores) = index.score(&query, None) {
            for hit in scores.into_hits() {
                assert!(hit.row.0 < 200 && hit.score.is_finite(), "{hit:?}");
            }
        }
        let some: RoaringBitmap = (5..9).collect();
        let _ = index.score(&query, Some(&some));
    });
}

#[test]
fn columns() {
    let mut builder = filter::ColumnsBuilder::new();
    for at in 0..3 {
        builder.add_source(&source(at, SourceKind::File, &[]).record, at * 4..at * 4 + 4);
    }
    let conditions = serde_json::json!({
        "colour": {"$in": ["red", "blue"]}, "size": {"$gte": 1, "$lt": 2.5},
        "none": {"$exists": false},
    });
    let wanted = filter::parse_for_vectors(conditions.as_object()).expect("a filter");
    fuzz("columns", vec![builder.finish()], NOTHING, move |bytes| {
        let Ok(columns) = filter::Columns::open(Bytes::copy_from_slice(bytes)) else { return };
        let default = SubTenantId::default_name();
        let rows = columns.sub_tenant(&default);
        assert!(rows.max().is_none_or(|row| row < columns.rows()), "rows that are not there");
        let _ = (columns.sub_tenants(), columns.chunk_id("a"), columns.has_chunk_ids());
        if let Ok(rows) = columns.matching(&wanted, columns.rows()) {
            assert!(rows.max().is_none_or(|row| row < columns.rows()), "rows that are not there");
        }
    });
}
