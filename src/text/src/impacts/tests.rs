use std::sync::Arc;

use proptest::prelude::*;
use roaring::RoaringBitmap;
use tantivy::directory::OwnedBytes;

use super::*;
use lodestone_types::RowId;

const MODEL: SparseModelId = [7; 32];

fn bytes_of(rows: &[Vec<(u32, f32)>]) -> Vec<u8> {
    let mut postings = Vec::new();
    let weights = rows.iter().map(Vec::as_slice);
    let mut bytes = write_impacts(&MODEL, weights, &mut postings).expect("memory");
    bytes.extend(postings);
    bytes
}

fn opened(bytes: Vec<u8>, rows: usize) -> Result<ImpactIndex, TextError> {
    ImpactIndex::open(Arc::new(OwnedBytes::new(bytes)), rows as u32)
}

fn index(rows: &[Vec<(u32, f32)>]) -> ImpactIndex {
    opened(bytes_of(rows), rows.len()).expect("an index")
}

/// The expected sums over the rows of `among` that have a term.
fn on_paper(
    rows: &[Vec<(u32, f32)>],
    query: &[(u32, f32)],
    among: impl Fn(u32) -> bool,
) -> Vec<(u32, f32)> {
    let mut query = query.to_vec();
    query.sort_by_key(|(term, _)| *term);
    let mut scores = Vec::new();
    for (row, weights) in rows.iter().enumerate().filter(|(row, _)| among(*row as u32)) {
        let mut score = None;
        for (term, weight) in &query {
            let own = weights.iter().find(|(own, _)| own == term).map(|(_, own)| impact(*own));
            if let Some(own) = own.filter(|own| *own > 0) {
                *score.get_or_insert(0.0) += weight * (f32::from(own) * STEP);
            }
        }
        scores.extend(score.map(|score| (row as u32, score)));
    }
    scores
}

fn listed(scores: RowScores) -> Vec<(u32, f32)> {
    scores.into_hits().into_iter().map(|hit| (hit.row.0, hit.score)).collect()
}

/// Rows of a few terms, of which low ones are common, as in a language.
fn rows(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<(u32, f32)>>> {
    let term = prop_oneof![0_u32..3, 0_u32..12, 0_u32..400];
    let row = prop::collection::btree_map(term, 0.0_f32..5.0, 0..8);
    prop::collection::vec(row.prop_map(|row| row.into_iter().collect()), count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Goal: scores equal the expected sums, to the last bit, with and without a mask; the best
    /// rows are among those that `best` finds; a merge scores like its inputs.
    #[test]
    fn scores_are_the_sums_on_paper(
        rows in rows(1..600),
        query in prop::collection::btree_map(0_u32..12, 0.1_f32..3.0, 1..6),
        kept in 2_u32..5,
        wanted in 1_usize..20,
    ) {
        let query: Vec<(u32, f32)> = query.into_iter().rev().collect();
        let index = index(&rows);
        let all = on_paper(&rows, &query, |_| true);
        prop_assert_eq!(&listed(index.score(&query, None).unwrap()), &all);
        let among: RoaringBitmap = (0..rows.len() as u32).filter(|row| row % kept == 0).collect();
        let masked = on_paper(&rows, &query, |row| among.contains(row));
        prop_assert_eq!(&listed(index.score(&query, Some(&among)).unwrap()), &masked);
        for (among, scores) in [(None, &all), (Some(&among), &masked)] {
            let threshold = ScoreThreshold::new(wanted, 0.0);
            let mut best = listed(index.best(&query, among, &threshold).unwrap());
            let mut scores = scores.clone();
            for hits in [&mut best, &mut scores] {
                hits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                hits.truncate(wanted);
            }
            prop_assert_eq!(best, scores);
        }

        let middle = rows.len() / 2;
        let halves = [&rows[..middle], &rows[middle..]].map(self::index);
        let alive = |row: &u32| row % 3 != 1;
        let mut next = 0;
        let inputs = halves.iter().map(|half| {
            let number = |row: u32| match alive(&row) {
                true => { next += 1; next - 1 }
                false => u32::MAX,
            };
            (half, (0..half.rows()).map(number).collect::<Vec<u32>>())
        });
        let merge = ImpactMerge { inputs: inputs.collect(), rows: 0 };
        let merge = ImpactMerge { rows: next, ..merge };
        let mut postings = Vec::new();
        let mut merged = merge.write(&MODEL, &mut postings).unwrap();
        merged.extend(postings);
        let living: Vec<_> = [&rows[..middle], &rows[middle..]].iter().flat_map(|half| {
            let living = half.iter().enumerate().filter(|(row, _)| alive(&(*row as u32)));
            living.map(|(_, row)| row.clone())
        }).collect();
        prop_assert_eq!(&merged, &bytes_of(&living));
    }
}

/// Goal: windows, blocks and seeks work in a large index. Method: compared with the expected sums,
/// for all rows, every 100th and a few, and rows far apart.
#[test]
fn a_large_index_scores_as_on_paper() {
    let weight = |row: u32, term: u32| {
        let mixed = (u64::from(row) << 20 | u64::from(term)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as f32 / (1 << 24) as f32 * 4.0
    };
    let has = |row: u32, term: u32| match term {
        0 => true,
        1 => row.is_multiple_of(2),
        2 => row.is_multiple_of(97),
        _ => row == 5 || row == 90_000,
    };
    let row = |row: u32| {
        (0..4).filter(move |term| has(row, *term)).map(move |term| (term, weight(row, term)))
    };
    let rows: Vec<Vec<(u32, f32)>> = (0..90_001).map(|number| row(number).collect()).collect();
    let index = index(&rows);
    let query = [(3, 2.0), (0, 0.1), (2, 1.5), (1, 0.2), (900, 4.0)];
    let sets: [Vec<u32>; 3] =
        [(0..90_001).step_by(100).collect(), vec![5, 6, 89_999, 90_000], vec![]];
    for set in sets {
        let among: RoaringBitmap = set.into_iter().collect();
        let expected = on_paper(&rows, &query, |row| among.contains(row));
        assert_eq!(listed(index.score(&query, Some(&among)).unwrap()), expected);
    }
    let mut expected = on_paper(&rows, &query, |_| true);
    assert_eq!(listed(index.score(&query, None).unwrap()), expected);
    let best = index.best(&query, None, &ScoreThreshold::new(10, 0.0)).unwrap();
    assert!(best.count() < 20_000, "{} rows are left", best.count());
    expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let first: Vec<_> = best.top(10).iter().map(|hit| (hit.row.0, hit.score)).collect();
    assert_eq!(first, expected[..10]);
    assert_eq!(best.get(RowId(7)), 0.0);
}

#[test]
fn impacts_are_steps_of_a_64th() {
    let found = [-1.0, 0.0, 0.007, 0.008, 1.0, 3.984_375, 9.0, f32::NAN].map(impact);
    assert_eq!(found, [0, 0, 0, 1, 64, 255, 255, 0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let rows: Vec<Vec<(u32, f32)>> = (0..300).map(|row| vec![(row, 2.0), (1000, 1.0)]).collect();
    let bytes = bytes_of(&rows);
    assert_eq!(opened(bytes.clone(), 300).unwrap().model(), &MODEL);
    assert!(opened(bytes.clone(), 299).is_err());
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        assert!(opened(bytes[..length].to_vec(), 300).is_err(), "{length}");
    }
    // The last term may be any greater one.
    let last_term = HEADER_BYTES + 4 * 300;
    let tables = 36..HEADER_BYTES + 4 * 301 + 4 * 302;
    for at in tables.step_by(4).filter(|at| *at != last_term) {
        let mut bytes = bytes.clone();
        bytes[at + 1] ^= 0x80;
        assert!(opened(bytes, 300).is_err(), "{at}");
    }
    let none = index(&[vec![], vec![]]);
    assert_eq!(none.score(&[(1, 1.0)], None).unwrap().count(), 0);
    assert_eq!(none.best(&[], None, &ScoreThreshold::new(1, 0.0)).unwrap().count(), 0);
}
