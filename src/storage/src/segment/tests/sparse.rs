//! Vectors of a sparse model: written with the rows, merged, amended, kept under new dense vectors,
//! and dropped if some rows have none.

use super::*;
use lodestone_compute::SimdBackend;

const KIND: VectorKind = VectorKind::F16;
const QUERY: [(u32, f32); 3] = [(900, 0.5), (3, 1.5), (17, 1.0)];

fn row_of_model(model: u8, seed: usize) -> Option<SparseRow> {
    let weights = (0..20).map(|term| (term * 7 % (seed as u32 + 20), 0.05 * (seed % 60) as f32));
    let weights: std::collections::BTreeMap<u32, f32> = weights.collect();
    Some(SparseRow { model: [model; 32], weights: weights.into_iter().collect() })
}

fn with_vectors(mut sources: Vec<NewSource>, model: u8) -> Vec<NewSource> {
    let rows = sources.iter_mut().flat_map(|source| &mut source.rows);
    rows.enumerate().for_each(|(at, row)| row.sparse = row_of_model(model, at));
    sources
}

/// Scores of the rows by source and index; `None` if the rows have no vectors.
fn scores(segment: &Segment, dead: &TombstoneSet) -> Option<Vec<(String, u32, u32)>> {
    let impacts = segment.impacts().unwrap()?;
    let scored = impacts.score(&QUERY, None).unwrap();
    let alive = (0..segment.row_count()).filter(|row| !dead.rows.contains(*row)).map(RowId);
    let of = |row| {
        let source = segment.source_key(segment.source_of(row)).1.to_owned();
        (source, segment.index(row), scored.get(row).to_bits())
    };
    Some(alive.map(of).collect())
}

#[test]
fn vectors_go_with_their_rows() {
    let files = Files::new();
    let plain = files.write(9, KIND, &sample(KIND));
    assert!(plain.impacts().unwrap().is_none() && plain.header.version == 5);
    let first = files.write(1, KIND, &with_vectors(sample(KIND), 1));
    assert_eq!((first.header.version, first.impacts().unwrap().unwrap().model()), (6, &[1; 32]));
    verify(&first).unwrap();
    let newer = source(KIND, record("default", "guide", 9), &[(0, "green apples"), (1, "pears")]);
    let second = files.write(2, KIND, &with_vectors(vec![newer], 1));
    let gone = [0, 1].into_iter().chain((2..62).filter(|row| row % 7 == 0)).collect();
    let dead = TombstoneSet { rows: gone, sources: [0].into_iter().collect() };
    let none = TombstoneSet::default();

    let merge = |id, inputs: Vec<(&Segment, &TombstoneSet)>| {
        let output = shape(id, KIND);
        let key = Files::key(output.segment);
        let meta = write_merged(&files.store, &key, output, inputs, &SimdBackend).unwrap();
        let merged = files.open(&meta).unwrap();
        verify(&merged).unwrap();
        merged
    };
    let merged = merge(3, vec![(&first, &dead), (&second, &none)]);
    let mut expected = scores(&first, &dead).unwrap();
    expected.extend(scores(&second, &none).unwrap());
    assert!(expected.iter().any(|(_, _, score)| *score != 0));
    assert_eq!(scores(&merged, &none), Some(expected.clone()));

    // Under new dense vectors, without and with new sparse ones.
    let dense: Vec<Vec<f32>> = expected.iter().map(|_| HashEmbedder::vector("x")).collect();
    let others: Vec<SparseRow> = (0..dense.len()).filter_map(|at| row_of_model(2, at)).collect();
    for (id, sparse) in [(4, &[][..]), (5, &others)] {
        let (output, input) = (shape(id, KIND), (&merged, &none));
        let (key, vectors) = (Files::key(output.segment), (&dense[..], sparse));
        let meta = write_with_vectors(&files.store, &key, output, input, vectors, &SimdBackend);
        let written = files.open(&meta.unwrap()).unwrap();
        let model = written.impacts().unwrap().unwrap().model()[0];
        assert_eq!(
            (model == 1, scores(&written, &none) == scores(&merged, &none)),
            match id {
                4 => (true, true),
                _ => (false, false),
            }
        );
    }
    let output = shape(6, KIND);
    let (key, input) = (Files::key(output.segment), (&merged, &none));
    let amended = merged.record(1).unwrap();
    let meta = write_amended(&files.store, &key, output, input, 1, amended).unwrap();
    assert!(scores(&files.open(&meta).unwrap(), &none).is_some());

    // Merged with rows that have none, or those of another model.
    let third = source(KIND, record("default", "pears", 9), &[(0, "green apples"), (1, "pears")]);
    let third = files.write(8, KIND, &with_vectors(vec![third], 1));
    let foreign = files.write(7, KIND, &with_vectors(sample(KIND), 2));
    for (id, other) in [(10, &plain), (11, &foreign)] {
        assert!(scores(&merge(id, vec![(&third, &none), (other, &none)]), &none).is_none());
        let all = TombstoneSet {
            rows: (0..other.row_count()).collect(),
            sources: (0..other.source_count()).collect(),
        };
        let kept = merge(id + 2, vec![(&third, &none), (other, &all)]);
        assert_eq!(scores(&kept, &none), scores(&third, &none), "no live row is without");
    }
}
