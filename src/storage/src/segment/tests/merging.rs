//! Merged and amended segments against their inputs, row by row.

use roaring::RoaringBitmap;

use super::*;
use lodestone_compute::SimdBackend;
use lodestone_text::{CorpusStats, HybridQuery};

fn dead(rows: &[u32], sources: &[u32]) -> TombstoneSet {
    TombstoneSet {
        rows: rows.iter().copied().collect(),
        sources: sources.iter().copied().collect(),
    }
}

/// Live rows of one sub-tenant in one segment.
fn scope(segment: &Segment, dead: &TombstoneSet) -> RoaringBitmap {
    segment.rows_of_sub_tenant(&SubTenantId::default_name()) - &dead.rows
}

/// BM25 of all live rows, by source and index, bit for bit.
fn scores(parts: &[(&Segment, &TombstoneSet)], query: &str) -> Vec<(String, u32, u32)> {
    let query = HybridQuery::analyse(query);
    let mut stats = CorpusStats::default();
    for (segment, dead) in parts {
        let (index, scope) = (segment.text_index(), scope(segment, dead));
        let counts = index.term_counts(&query, Some(&scope)).unwrap();
        stats.add(index.scope_stats(Some(&scope)), &counts);
    }
    let mut found = Vec::new();
    for (segment, dead) in parts {
        let scope = scope(segment, dead);
        let scored = segment.text_index().score(&query, &stats, Some(&scope)).unwrap();
        for row in scope {
            let source = segment.source_key(segment.source_of(RowId(row))).1.to_owned();
            let score = scored.get(RowId(row)).to_bits();
            found.push((source, segment.index(RowId(row)), score));
        }
    }
    found.sort();
    found
}

#[test]
fn a_merge_holds_the_live_rows_of_its_inputs_and_scores_them_the_same() {
    for kind in KINDS {
        let files = Files::new();
        let first = files.write(1, kind, &sample(kind));
        let newer =
            source(kind, record("default", "guide", 9), &[(0, "green apples"), (1, "pears")]);
        let second = files.write(2, kind, &[newer]);
        // The older guide was replaced, and every seventh passage deleted.
        let gone: Vec<u32> = [0, 1].into_iter().chain((2..62).filter(|row| row % 7 == 0)).collect();
        let (old_dead, none) = (dead(&gone, &[0]), TombstoneSet::default());
        let inputs = [(&first, &old_dead), (&second, &none)];
        let output = shape(3, kind);
        let key = Files::key(output.segment);
        let merged =
            write_merged(&files.store, &key, output, inputs.to_vec(), &SimdBackend).unwrap();
        let segment = files.open(&merged).unwrap();
        verify(&segment).unwrap();

        assert_eq!(segment.row_count() as usize, 64 - gone.len() + 2);
        let origins = inputs.iter().flat_map(|(from, dead)| {
            let living = (0..from.row_count()).filter(|row| !dead.rows.contains(*row));
            living.map(move |row| (*from, row))
        });
        for (row, (from, origin)) in origins.enumerate() {
            assert_eq!(row_of(&segment, row as u32), row_of(from, origin));
            let (new, old) = (segment.source_of(RowId(row as u32)), from.source_of(RowId(origin)));
            assert_eq!(segment.record(new).unwrap(), from.record(old).unwrap());
            let (new, old) = (segment.context(RowId(row as u32)), from.context(RowId(origin)));
            assert_eq!((new, new.is_empty()), (old, from.index(RowId(origin)) % 2 == 0));
        }
        for query in ["apples", "passage 13 crimson", "title of guide", "green"] {
            let before = scores(&inputs, query);
            assert_eq!(before, scores(&[(&segment, &none)], query), "{query}");
            assert!(before.iter().any(|(_, _, score)| *score != 0), "{query} finds something");
        }
    }
}

#[test]
fn inputs_without_a_live_row_merge_to_a_segment_without_rows() {
    for kind in KINDS {
        let files = Files::new();
        let texts = [(0, "red"), (1, "blue")];
        let input = files.write(1, kind, &[source(kind, record("default", "a", 1), &texts)]);
        let all_dead = dead(&[0, 1], &[0]);
        let output = shape(2, kind);
        let inputs = vec![(&input, &all_dead)];
        let merged =
            write_merged(&files.store, &Files::key(output.segment), output, inputs, &SimdBackend)
                .unwrap();
        let segment = files.open(&merged).unwrap();
        assert_eq!(verify(&segment).unwrap(), SegmentCensus::default());
    }
}

#[test]
fn vectors_of_two_shapes_do_not_merge() {
    let files = Files::new();
    let [half, full] = KINDS.map(|kind| {
        let source = source(kind, record("default", "a", 1), &[(0, "x")]);
        files.write(1 + kind.component_bytes() as u128, kind, &[source])
    });
    let (none, output) = (TombstoneSet::default(), shape(9, VectorKind::F16));
    let inputs = vec![(&half, &none), (&full, &none)];
    let error =
        write_merged(&files.store, &Files::key(output.segment), output, inputs, &SimdBackend)
            .unwrap_err();
    assert!(matches!(error, SegmentError::BadInput { .. }), "{error}");
    assert_eq!(files.list().len(), 2);
}

#[test]
fn an_amended_source_keeps_its_live_rows_under_the_new_record() {
    for kind in KINDS {
        let files = Files::new();
        let input = files.write(1, kind, &sample(kind));
        let mut amended = input.record(1).unwrap();
        amended.document_metadata.insert("added".into(), true.into());
        amended.title = "Another".into();
        let (gone, output) = (dead(&[2, 5, 61], &[]), shape(2, kind));
        let key = Files::key(output.segment);
        let parts = (&input, &gone);
        let meta = write_amended(&files.store, &key, output, parts, 1, amended.clone()).unwrap();
        let segment = files.open(&meta).unwrap();
        verify(&segment).unwrap();
        assert_eq!((segment.source_count(), segment.record(0).unwrap()), (1, amended));
        let origins: Vec<u32> = (2..62).filter(|row| !gone.rows.contains(*row)).collect();
        assert_eq!(segment.row_count() as usize, origins.len());
        for (row, origin) in origins.iter().enumerate() {
            assert_eq!(row_of(&segment, row as u32), row_of(&input, *origin));
        }
    }
}

#[test]
fn a_merge_keeps_what_live_rows_name_and_state() {
    let kind = VectorKind::F16;
    let named = |id: &str, title: &str, sequence: u64, text: &str| {
        let mut record = record("default", id, sequence);
        record.title = title.to_owned();
        let mut source = source(kind, record, &[(0, text)]);
        source.rows[0].graph = lodestone_graph::extract(title, text);
        source
    };
    let film = "Northern Light is a film directed by Marta Lindqvist.";
    let files = Files::new();
    let sources = [
        named("gone", "Southern Light", 1, "Southern Light is a film directed by Elsa Berg."),
        named("film", "Northern Light", 2, film),
    ];
    let first = files.write(1, kind, &sources);
    let second = files.write(2, kind, &[source(kind, record("default", "bare", 3), &[(0, "x")])]);
    let (old_dead, none) = (dead(&[0], &[0]), TombstoneSet::default());
    let output = shape(3, kind);
    let inputs = vec![(&first, &old_dead), (&second, &none)];
    let merged =
        write_merged(&files.store, &Files::key(output.segment), output, inputs, &SimdBackend)
            .unwrap();
    let segment = files.open(&merged).unwrap();
    let stored = segment.graph().unwrap().unwrap();
    assert_eq!(stored.row(0), sources[1].rows[0].graph);
    assert!(!stored.row(0).triplets.is_empty());
    assert_eq!(stored.row(1), RowGraph::default());
    assert_eq!(stored.titles().sources("northern light"), [0]);
    assert!(stored.titles().sources("southern light").is_empty());
    assert_eq!(stored.find("elsa berg"), None, "what only dead rows name is gone");
    verify(&segment).unwrap();
}

/// The title is boosted in a short source and at the first chunk of a long one.
#[test]
fn a_title_does_not_repeat_through_a_long_source() {
    let files = Files::new();
    let texts = |count: u32| (0..count).map(|index| (index, "pears")).collect::<Vec<_>>();
    let sources = [
        source(VectorKind::F16, record("default", "few", 1), &texts(4)),
        source(VectorKind::F16, record("default", "many", 2), &texts(5)),
    ];
    let segment = files.write(1, VectorKind::F16, &sources);
    let found = |query: &str| -> Vec<(u32, f32)> {
        let query = HybridQuery::analyse(query);
        let index = segment.text_index();
        let mut stats = CorpusStats::default();
        stats.add(index.scope_stats(None), &index.term_counts(&query, None).unwrap());
        let mut hits = index.score(&query, &stats, None).unwrap().top(9);
        hits.sort_by_key(|hit| hit.row);
        hits.into_iter().map(|hit| (hit.row.0, hit.score)).collect()
    };
    let rows = |query: &str| found(query).into_iter().map(|(row, _)| row).collect::<Vec<_>>();
    assert_eq!(rows("few"), [0, 1, 2, 3]);
    assert_eq!(rows("many"), [4, 5, 6, 7, 8]);
    let (of_few, of_many) = (found("few"), found("many"));
    assert!(of_few[0].1 == of_few[2].1 && of_few[1].1 == of_few[3].1, "{of_few:?}");
    assert!(of_many[1..].iter().all(|(_, score)| *score < of_many[0].1), "{of_many:?}");
    assert_eq!(rows("part 3"), [1, 3, 5, 7], "headings are at every chunk");
}
