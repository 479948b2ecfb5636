//! Merged and amended segments compared with their inputs, row by row.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::forged::{Parts, documents, vectors};
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

/// BM25 scores of all live rows, by source and index, bit for bit.
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

/// Goal: the title is boosted in a short source and at the first chunk of a long one.
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

/// Goal: rectangles, lines and contexts of chunks move with their rows, and so do payloads of
/// vectors.
#[test]
fn what_stands_beside_a_row_is_merged_with_it() {
    for (kind, written) in [(VectorKind::F16, documents()), (VectorKind::F32, vectors())] {
        let files = Files::new();
        let input = files.write(1, kind, &written);
        let rows: Vec<&NewRow> = written.iter().flat_map(|source| &source.rows).collect();
        let gone = dead(&[0], &[]);
        let output = shape(2, kind);
        let inputs = vec![(&input, &gone)];
        let key = Files::key(output.segment);
        let merged = write_merged(&files.store, &key, output, inputs, &SimdBackend).unwrap();
        let merged = files.open(&merged).unwrap();
        verify(&merged).unwrap();
        for (segment, rows) in [(&input, &rows[..]), (&merged, &rows[1..])] {
            assert_eq!(segment.row_count() as usize, rows.len());
            for (row, written) in (0..).map(RowId).zip(rows) {
                assert_eq!(segment.boxes(row), written.boxes);
                assert_eq!(segment.lines(row).unwrap(), written.lines);
                assert_eq!(segment.context(row), written.context);
                assert_eq!(segment.text(row).unwrap(), written.text);
            }
        }
        assert_eq!(input.has_chunk_ids(), kind == VectorKind::F32);
        assert!(!merged.has_chunk_ids(), "the row with an id is gone");
        let named = input.rows_named("mine").unwrap();
        assert_eq!(named.contains(0), kind == VectorKind::F32);
    }
}

/// Goal: segments older than version 3 have no graph, and a merge extracts it from their texts.
#[test]
fn a_merge_makes_the_graph_of_an_old_segment() {
    let files = Files::new();
    let new = files.write(1, VectorKind::F16, &documents());
    let mut old = Parts::of(&files, &new);
    old.header.version = 2;
    old.remove(format::Section::Graph);
    let old = old.open(&files).unwrap();
    assert!(old.graph().unwrap().is_none() && !old.has_graph_format());
    let (none, output) = (TombstoneSet::default(), shape(2, VectorKind::F16));
    let key = Files::key(output.segment);
    let inputs = vec![(&old, &none)];
    let merged = write_merged(&files.store, &key, output, inputs, &SimdBackend).unwrap();
    let merged = files.open(&merged).unwrap();
    let graph = merged.graph().unwrap().unwrap().row(2);
    assert_eq!(graph, new.graph().unwrap().unwrap().row(2));
    assert!(!graph.triplets.is_empty());
}

/// Goal: unsuitable input is refused, and leaves no file whether this is noticed before or after
/// one is begun.
#[test]
fn rows_that_cannot_be_merged_leave_no_file() {
    let kind = VectorKind::F16;
    let files = Files::new();
    let good = files.write(1, kind, &documents());
    let mut unreadable = Parts::of(&files, &good);
    unreadable.section(format::Section::Texts).truncate(4);
    unreadable.header.segment = SegmentId(Uuid::from_u128(2));
    let unreadable = unreadable.open(&files).unwrap();
    let (none, output) = (TombstoneSet::default(), shape(9, kind));
    let key = Files::key(output.segment);
    let merged = |input: &Segment, dead: &TombstoneSet| {
        write_merged(&files.store, &key, output, vec![(input, dead)], &SimdBackend).unwrap_err()
    };
    let vectors = |count: usize, sparse: usize| {
        let vectors = vec![HashEmbedder::vector("x"); count];
        let sparse = vec![SparseRow { model: [1; 32], weights: vec![(1, 1.0)] }; sparse];
        let (input, vectors) = ((&good, &none), (&vectors[..], &sparse[..]));
        write_with_vectors(&files.store, &key, output, input, vectors, &SimdBackend).unwrap_err()
    };
    let mut no_payload = vec![source(kind, record("default", "v", 1), &[(0, "no payload")])];
    no_payload[0].record.kind = SourceKind::Embeddings;
    let (internal, corrupt) = (ErrorKind::Internal, ErrorKind::Corrupt);
    for (error, kind, rule) in [
        (merged(&good, &dead(&[], &[0])), internal, "rows of a dead source are alive"),
        (merged(&unreadable, &none), corrupt, "the text section is cut"),
        (vectors(4, 0), internal, "4 vectors, 0 sparse, for 5 rows"),
        (vectors(5, 4), internal, "5 vectors, 4 sparse, for 5 rows"),
        (
            write(&files.store, &key, output, &no_payload).unwrap_err(),
            internal,
            "the payload of a vector cannot be read",
        ),
    ] {
        assert!(error.to_string().contains(rule), "{rule}: {error}");
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert_eq!(files.list().len(), 2, "the inputs");
}

/// Goal: lists and T0 match the rows that a merge writes, whether most of them come from one input
/// or none has half of them, and are built anew for new vectors.
#[test]
fn many_rows_have_lists_behind_a_merge() {
    const ROWS: u32 = 1_500;
    let kind = VectorKind::F16;
    let files = Files::new();
    let input = |id: u128| {
        let texts: Vec<String> = (0..ROWS).map(|row| format!("passage {id} {row}")).collect();
        let texts: Vec<(u32, &str)> = (0..).zip(texts.iter().map(String::as_str)).collect();
        files.write(id, kind, &[source(kind, record("default", &format!("s{id}"), 1), &texts)])
    };
    let (first, second, third) = (input(1), input(2), input(3));
    assert!(first.lists().unwrap().is_none());
    let text_index = |of: &Segment| of.footer.entry(format::Section::TextIndex).unwrap().bytes;
    let one_bit = u64::from(ROWS) * (24 + DIMENSION as u64 / 8);
    assert_eq!(first.merge_growth_bytes(), text_index(&first) + one_bit);
    let (none, some) = (TombstoneSet::default(), dead(&[0, 7, 4_000], &[]));
    let merge = |id, inputs| {
        let output = shape(id, kind);
        let key = Files::key(output.segment);
        let meta = write_merged(&files.store, &key, output, inputs, &SimdBackend).unwrap();
        files.open(&meta).unwrap()
    };
    let thirds = merge(4, vec![(&first, &none), (&second, &none), (&third, &none)]);
    let again = merge(5, vec![(&thirds, &some)]);
    let vectors: Vec<Vec<f32>> =
        (0..again.row_count()).map(|row| HashEmbedder::vector(&format!("other {row}"))).collect();
    let output = shape(6, kind);
    let (key, input) = (Files::key(output.segment), (&again, &none));
    let meta = write_with_vectors(&files.store, &key, output, input, (&vectors, &[]), &SimdBackend);
    let under_others = files.open(&meta.unwrap()).unwrap();
    for (segment, rows) in [(&thirds, 4_500), (&again, 4_497), (&under_others, 4_497)] {
        assert_eq!(verify(segment).unwrap().rows, rows);
        assert_eq!(segment.lists().unwrap().unwrap().list_of_rows(), vec![0; rows as usize]);
        segment.prepare_vectors().unwrap();
        assert_eq!(segment.merge_growth_bytes(), text_index(segment), "T0 is there");
    }
    assert_eq!(under_others.text(RowId(0)).unwrap(), again.text(RowId(0)).unwrap());
}

/// Goal: an input that holds most of the rows keeps its lists, even if too few rows are left for
/// lists to be built.
#[test]
fn a_merge_keeps_the_lists_of_its_largest_input() {
    const ROWS: usize = 16_500;
    let (files, kind) = (Files::new(), VectorKind::F16);
    let input = files.write(1, kind, &[lazy::large(&lazy::vectors()[..ROWS])]);
    let gone: Vec<u32> = (0..ROWS as u32).filter(|row| row % 50 == 0).collect();
    let (gone, output) = (dead(&gone, &[]), shape(2, kind));
    let key = Files::key(output.segment);
    let inputs = vec![(&input, &gone)];
    let meta = write_merged(&files.store, &key, output, inputs, &SimdBackend).unwrap();
    let merged = files.open(&meta).unwrap();
    verify(&merged).unwrap();
    let [before, after] = [&input, &merged].map(|segment| segment.lists().unwrap().unwrap());
    assert!(before.len() > 1 && after.len() > 1);
    let before = before.list_of_rows().into_iter().zip(0..);
    let before = before.filter(|(_, row)| !gone.rows.contains(*row)).map(|(list, _)| list);
    let mut together: BTreeMap<u32, BTreeMap<u32, usize>> = BTreeMap::new();
    for (before, after) in before.zip(after.list_of_rows()) {
        *together.entry(before).or_default().entry(after).or_default() += 1;
    }
    let stayed: usize = together.values().filter_map(|lists| lists.values().max()).sum();
    assert!(stayed * 10 >= merged.row_count() as usize * 9, "{stayed} stay together");
}
