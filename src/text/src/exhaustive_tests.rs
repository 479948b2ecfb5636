//! Scores and counts compared with a scan of all rows, equal to the last bit.

use std::sync::LazyLock;

use proptest::prelude::*;
use roaring::RoaringBitmap;
use tantivy::fieldnorm::FieldNormReader;

use super::query::{Clause, TITLE_WEIGHT};
use super::schema::Field;
use super::score::norms;
use super::*;
use lodestone_types::{Hit, RowId, by_rank};

/// More than two windows, the last of them partial.
const ROWS: usize = 9000;
/// The first is in nearly every row, the last in a few; the fourth is a phrase in full-text search.
const WORDS: [&str; 7] = ["zab", "qux", "vok", "机器", "wip", "tib", "nok"];

/// The words of one row: body, title, searchable values.
type Row = [Vec<&'static str>; 3];

static ROWS_OF_TEXT: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut words = |most: u64| -> Vec<&'static str> {
        let count = random(most);
        (0..count).map(|_| WORDS[random(1 << 12).leading_zeros() as usize % 52 % 7]).collect()
    };
    (0..ROWS).map(|_| [words(30), words(3), words(2)]).collect()
});

static INDEX: LazyLock<TextIndex> = LazyLock::new(|| {
    let mut builder = TextIndexBuilder::new();
    for row in &*ROWS_OF_TEXT {
        let [body, title, searchable] = row.each_ref().map(|words| words.join(" "));
        let row =
            RowText { body: &body, title: &title, searchable: &searchable, ..RowText::default() };
        builder.add_row(&row).unwrap();
    }
    TextIndex::open(builder.finish().unwrap().to_vec().unwrap()).unwrap()
});

/// The words of one field.
fn words(row: &Row, field: Field) -> Vec<&'static str> {
    let [body, title, searchable] = row;
    match field {
        Field::Body => [title.as_slice(), body, searchable].concat(),
        Field::Title => title.clone(),
        Field::Words => [body.as_slice(), searchable].concat(),
    }
}

fn occurrences(row: &Row, field: Field, clause: &Clause) -> usize {
    let asked = clause.forms[0].terms.concat();
    let count = |field| words(row, field).into_iter().filter(|word| *word == asked).count();
    count(field) - clause.less.map_or(0, count)
}

fn norm(row: &Row, field: Field, stats: &CorpusStats) -> f32 {
    // The whole-words field holds every character of a run without spaces.
    let terms = |word: &str| match field {
        Field::Words if !word.is_ascii() => word.chars().count(),
        _ => 1,
    };
    let length: usize = words(row, field).into_iter().map(terms).sum();
    let code = FieldNormReader::fieldnorm_to_id(length as u32);
    norms(stats.mean_length(field))[usize::from(code)]
}

/// The definition of the score, row by row.
fn expected(row: &Row, clauses: &[Clause], operator: Operator, stats: &CorpusStats) -> f32 {
    let (mut score, mut occurring) = (0.0, 0);
    for (at, clause) in clauses.iter().enumerate() {
        let weight = clause.weight * stats.idf(at);
        let mut add = |field, length, weight: f32| {
            let tf = occurrences(row, field, clause) as f32;
            if tf > 0.0 {
                score += weight * (tf / (tf + norm(row, length, stats)));
            }
            tf > 0.0
        };
        occurring += usize::from(add(clause.field, clause.length, weight));
        if clause.is_in_title {
            add(Field::Title, Field::Title, weight * TITLE_WEIGHT);
        }
    }
    match operator {
        Operator::And if occurring < clauses.len() => 0.0,
        _ => score,
    }
}

fn check<Q: TextQuery>(query: &Q, scope: Option<&RoaringBitmap>, among: Option<&RoaringBitmap>) {
    let inside = |mask: Option<&RoaringBitmap>, row| mask.is_none_or(|mask| mask.contains(row));
    let counts = INDEX.term_counts(query, scope).unwrap();
    let known = KnownCounts::default();
    for _ in 0..2 {
        assert_eq!(INDEX.term_counts_with(query, scope, &known).unwrap(), counts);
    }
    for (clause, count) in query.clauses().iter().zip(&counts.0) {
        let in_scope = ROWS_OF_TEXT.iter().zip(0_u32..).filter(|(_, row)| inside(scope, *row));
        let holding = in_scope.filter(|(row, _)| occurrences(row, clause.field, clause) > 0);
        assert_eq!(*count, holding.count() as u64, "{:?}", clause.forms);
    }
    let mut stats = CorpusStats::default();
    stats.add(INDEX.scope_stats(scope), &counts);
    let both = scope.zip(among).map(|(scope, among)| scope & among);
    let asked = both.as_ref().or(scope).or(among);
    let scores = INDEX.score(query, &stats, asked).unwrap();
    let mut hits = Vec::new();
    for (row, text) in (0_u32..).zip(&*ROWS_OF_TEXT) {
        let score = match inside(scope, row) && inside(among, row) {
            true => expected(text, query.clauses(), query.operator(), &stats),
            false => 0.0,
        };
        assert_eq!(scores.get(RowId(row)).to_bits(), score.to_bits(), "row {row}");
        hits.extend((score > 0.0).then_some(Hit { row: RowId(row), score }));
    }
    hits.sort_by(by_rank);
    for k in [1, 50, 3000] {
        assert_eq!(scores.top(k), hits[..k.min(hits.len())]);
        for tie_width in [0.0, 0.05] {
            let least = hits.get(k - 1).map_or(0.0, |last| last.score - tie_width);
            let expected = hits.partition_point(|hit| hit.score >= least);
            let threshold = ScoreThreshold::new(k, tie_width);
            let best = INDEX.best(query, &stats, asked, &threshold).unwrap();
            assert_eq!(best.top(ROWS), hits[..expected], "the best {k}, {tie_width} wide");
            // As two segments that share a threshold.
            let all: RoaringBitmap = (0..ROWS as u32).collect();
            let (asked, half) = (asked.unwrap_or(&all), (0..ROWS as u32 / 2).collect());
            let (threshold, mut best) = (ScoreThreshold::new(k, tie_width), Vec::new());
            for rows in [asked & &half, asked - &half] {
                let found = INDEX.best(query, &stats, Some(&rows), &threshold).unwrap();
                best.extend(found.into_hits());
            }
            best.sort_by(by_rank);
            assert!(best.len() >= expected && best[..expected] == hits[..expected]);
        }
    }
}

/// No rows, all rows, a range of them, or a share spread over all.
fn any_mask() -> impl Strategy<Value = Option<RoaringBitmap>> {
    let rows = ROWS as u32;
    let range = (0..rows, 0..rows).prop_map(|(a, b)| Some((a.min(b)..a.max(b)).collect()));
    let share = (0..rows, 1_u32..3000).prop_map(move |(first, step)| {
        Some((first % step..rows + 5000).step_by(step as usize).collect())
    });
    prop_oneof![Just(None), range, share]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn scores_and_counts_equal_a_walk_over_all_rows(
        query in proptest::collection::vec(0..WORDS.len(), 1..6),
        (scope, among) in (any_mask(), any_mask()),
    ) {
        let text = query.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ");
        for operator in [Operator::Or, Operator::And] {
            check(&WordQuery::analyse(&text, operator), scope.as_ref(), among.as_ref());
        }
        check(&HybridQuery::analyse(&text), scope.as_ref(), among.as_ref());
    }
}
