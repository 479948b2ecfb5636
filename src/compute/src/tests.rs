//! One property suite for every backend, against the oracle and against the bounds.

use proptest::prelude::*;

use super::*;
use lodestone_types::{IdSource, RowId, SeededIds};

/// All backends; the first is the oracle.
const BACKENDS: [&dyn ComputeBackend; 2] = [&ScalarBackend, &SimdBackend];

/// Kinds of rows that challenge the arithmetic.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Plain,
    Huge,
    Subnormal,
    Largest,
    OneHot,
    Zero,
    /// Components from 1e-30 to 1e30 in one row.
    Mixed,
}

fn shape() -> impl Strategy<Value = Shape> {
    use Shape::*;
    prop_oneof![
        4 => Just(Plain),
        1 => Just(Huge),
        1 => Just(Subnormal),
        1 => Just(Largest),
        1 => Just(OneHot),
        1 => Just(Zero),
        1 => Just(Mixed),
    ]
}

fn dimension() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1_usize..130, 2 => 1_usize..=1536, 1 => Just(384_usize), 1 => Just(1536_usize)]
}

/// Returns a value uniform in -1 to 1, determined by the seed.
fn uniform(ids: &SeededIds) -> f32 {
    let mut bytes = [0; 8];
    ids.fill(&mut bytes);
    (u64::from_le_bytes(bytes) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn vector(ids: &SeededIds, dimension: usize, shape: Shape) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..dimension).map(|_| uniform(ids)).collect();
    let middle = dimension / 2;
    match shape {
        Shape::Plain => {}
        Shape::Huge => vector.iter_mut().for_each(|v| *v *= 1e30),
        Shape::Subnormal => vector.iter_mut().for_each(|v| *v *= 1e-40),
        Shape::Largest => vector.iter_mut().for_each(|v| *v = f32::MAX.copysign(*v)),
        Shape::Zero => vector.fill(0.0),
        Shape::OneHot => {
            vector.fill(0.0);
            vector[middle] = -3.0;
        }
        Shape::Mixed => vector.iter_mut().for_each(|v| *v *= 10_f32.powf(uniform(ids) * 30.0)),
    }
    vector
}

fn columns(seed: u64, dimension: usize, shapes: &[Shape], kind: FullKind) -> VectorColumns {
    let ids = SeededIds::new(seed);
    let mut columns = VectorColumns::new(dimension, kind).unwrap();
    for &shape in shapes {
        columns.push(&vector(&ids, dimension, shape)).unwrap();
    }
    columns
}

fn every_row(rows: &VectorRows<'_>) -> Vec<RowId> {
    (0..rows.len() as u32).map(RowId).collect()
}

fn scan(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    selection: Selection<'_>,
) -> Vec<f32> {
    // Previous contents of the output must not matter.
    let mut estimates = vec![f32::NAN; 3];
    backend.scan(rows, query, selection, &mut estimates).unwrap();
    estimates
}

fn exact(
    backend: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
    listed: &[RowId],
) -> Vec<f32> {
    let mut scores = vec![f32::NAN; 3];
    backend.exact(rows, query, listed, &mut scores).unwrap();
    scores
}

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

/// Estimates agree bit for bit, exact scores within the derived rounding, and estimates differ from
/// exact scores by no more than the bound that exact search relies on.
fn check_agreement(columns: &VectorColumns, query: &[f32]) -> Result<(), TestCaseError> {
    let rows = columns.view();
    let query = PreparedQuery::new(query).unwrap();
    let listed = every_row(&rows);
    let oracle_estimates = scan(BACKENDS[0], &rows, &query, Selection::All);
    let oracle_scores = exact(BACKENDS[0], &rows, &query, &listed);
    let bound = ErrorBound::new(&query, &rows);
    let rounding = ErrorBound::rounding(rows.dimension());
    for backend in BACKENDS {
        let name = backend.name();
        let estimates = scan(backend, &rows, &query, Selection::All);
        let scores = exact(backend, &rows, &query, &listed);
        prop_assert_eq!((estimates.len(), scores.len()), (rows.len(), rows.len()));
        prop_assert_eq!(bits(&estimates), bits(&oracle_estimates), "{}", name);
        for row in 0..rows.len() {
            let (score, estimate) = (scores[row], estimates[row]);
            prop_assert!((-1.0..=1.0).contains(&score), "{name} row {row}: {score}");
            prop_assert!(score.to_bits() != (-0.0_f32).to_bits());
            let apart = (score - oracle_scores[row]).abs();
            prop_assert!(apart <= rounding, "{name} row {row}: {apart} > {rounding}");
            let (off, allowed) = ((score - estimate).abs(), bound.of(rows.residual(row)));
            prop_assert!(off <= allowed, "{name} row {row}: {off} > {allowed}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn backends_agree_and_bounds_hold(
        seed in any::<u64>(),
        dimension in dimension(),
        shapes in prop::collection::vec(shape(), 0..12),
        query in shape(),
        kind in prop_oneof![Just(FullKind::F16), Just(FullKind::F32)],
    ) {
        let columns = columns(seed, dimension, &shapes, kind);
        let query = vector(&SeededIds::new(!seed), dimension, query);
        check_agreement(&columns, &query)?;
    }

    #[test]
    fn a_row_as_its_own_query_scores_1(
        seed in any::<u64>(),
        dimension in dimension(),
        shape in shape(),
        kind in prop_oneof![Just(FullKind::F16), Just(FullKind::F32)],
    ) {
        let columns = columns(seed, dimension, &[shape], kind);
        let vector = vector(&SeededIds::new(seed), dimension, shape);
        let query = PreparedQuery::new(&vector).unwrap();
        check_agreement(&columns, &vector)?;
        // f16 rows also include the rounding of their components.
        let tolerance = ErrorBound::rounding(dimension) + match kind {
            FullKind::F32 => 0.0,
            FullKind::F16 => 2.0_f32.powi(-11) + 2.0_f32.powi(-25) * (dimension as f32).sqrt(),
        };
        let wanted = if query.is_zero() { 0.0 } else { 1.0 };
        for backend in BACKENDS {
            let score = exact(backend, &columns.view(), &query, &[RowId(0)])[0];
            prop_assert!((score - wanted).abs() <= tolerance, "{}: {score}", backend.name());
        }
    }

    #[test]
    fn a_score_does_not_depend_on_its_company(
        seed in any::<u64>(),
        dimension in dimension(),
        shapes in prop::collection::vec(shape(), 1..10),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ranges in prop::collection::vec((0_u32..12, 0_u32..4), 0..4),
        kind in prop_oneof![Just(FullKind::F16), Just(FullKind::F32)],
    ) {
        let columns = columns(seed, dimension, &shapes, kind);
        let rows = columns.view();
        let query = vector(&SeededIds::new(!seed), dimension, Shape::Plain);
        let query = PreparedQuery::new(&query).unwrap();
        let listed: Vec<RowId> =
            picks.iter().map(|pick| RowId(pick.index(rows.len()) as u32)).collect();
        let ranges = ranges.iter().map(|&(start, width)| start..=start + width);
        let mask = RowMask::from_ranges(rows.len(), ranges);
        let mut masked = Vec::new();
        Selection::Masked(&mask).for_each(rows.len(), |row| masked.push(RowId(row as u32)));
        for backend in BACKENDS {
            let all = scan(backend, &rows, &query, Selection::All);
            let scores = exact(backend, &rows, &query, &every_row(&rows));
            let of = |values: &[f32], listed: &[RowId]| -> Vec<u32> {
                listed.iter().map(|row| values[row.0 as usize].to_bits()).collect()
            };
            let gathered = scan(backend, &rows, &query, Selection::Listed(&listed));
            prop_assert_eq!(bits(&gathered), of(&all, &listed));
            let passed = scan(backend, &rows, &query, Selection::Masked(&mask));
            prop_assert_eq!(bits(&passed), of(&all, &masked));
            prop_assert_eq!(bits(&exact(backend, &rows, &query, &listed)), of(&scores, &listed));
        }
    }
}

#[test]
fn zero_scores_zero_on_both_sides() {
    for kind in [FullKind::F16, FullKind::F32] {
        let columns = columns(1, 65, &[Shape::Zero, Shape::Plain], kind);
        let zero = PreparedQuery::new(&[0.0; 65]).unwrap();
        let one = PreparedQuery::new(&[1.0; 65]).unwrap();
        assert!(zero.is_zero() && !one.is_zero());
        for backend in BACKENDS {
            let rows = columns.view();
            assert_eq!(exact(backend, &rows, &zero, &every_row(&rows)), [0.0, 0.0]);
            assert_eq!(exact(backend, &rows, &one, &[RowId(0)]), [0.0]);
            assert_eq!(scan(backend, &rows, &one, Selection::All)[0], 0.0);
        }
    }
}

#[test]
fn nothing_unfinite_and_nothing_misshapen_reaches_a_kernel() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let refused = PreparedQuery::new(&[0.0, bad]);
        assert_eq!(refused, Err(ComputeError::NotFinite { position: 1 }));
    }
    assert!(PreparedQuery::new(&[]).is_err());
    let columns = columns(1, 3, &[Shape::Plain], FullKind::F32);
    let wide = PreparedQuery::new(&[1.0; 4]).unwrap();
    let query = PreparedQuery::new(&[1.0; 3]).unwrap();
    let mask = RowMask::from_ranges(2, [0..=1]);
    for backend in BACKENDS {
        let (rows, mut output) = (columns.view(), Vec::new());
        let mismatch = Err(ComputeError::DimensionMismatch { expected: 3, received: 4 });
        assert_eq!(backend.scan(&rows, &wide, Selection::All, &mut output), mismatch);
        assert_eq!(backend.exact(&rows, &wide, &[], &mut output), mismatch);
        let outside = Err(ComputeError::RowOutOfRange { row: 1, rows: 1 });
        assert_eq!(backend.exact(&rows, &query, &[RowId(1)], &mut output), outside);
        let listed = Selection::Listed(&[RowId(1)]);
        assert_eq!(backend.scan(&rows, &query, listed, &mut output), outside);
        assert!(backend.scan(&rows, &query, Selection::Masked(&mask), &mut output).is_err());
    }
}

#[test]
fn no_rows_no_scores() {
    let columns = columns(1, 7, &[], FullKind::F16);
    let query = PreparedQuery::new(&[1.0; 7]).unwrap();
    for backend in BACKENDS {
        assert!(scan(backend, &columns.view(), &query, Selection::All).is_empty());
        assert!(exact(backend, &columns.view(), &query, &[]).is_empty());
    }
}
