//! The crate as its users see it: rows in, hits out.

use std::fs::File;

use proptest::prelude::*;
use roaring::RoaringBitmap;
use tantivy::fieldnorm::FieldNormReader;

use super::query::TITLE_WEIGHT;
use super::*;
use lodestone_types::{ErrorKind, Hit, RowId};

fn bundle(rows: &[RowText<'_>]) -> Vec<u8> {
    let mut builder = TextIndexBuilder::new();
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(builder.add_row(row).unwrap(), RowId(at as u32));
    }
    builder.finish().unwrap().to_vec().unwrap()
}

/// The merged index, in memory.
fn merged(parts: &[(&TextIndex, Option<&RoaringBitmap>)]) -> Vec<u8> {
    let scratch = || -> std::io::Result<File> { tempfile::tempfile() };
    TextIndex::merge(parts, &scratch).unwrap().to_vec().unwrap()
}

fn index(rows: &[RowText<'_>]) -> TextIndex {
    TextIndex::open(bundle(rows)).unwrap()
}

fn bodies(texts: &[&str]) -> TextIndex {
    let row = |body| RowText { body, ..RowText::default() };
    index(&texts.iter().copied().map(row).collect::<Vec<_>>())
}

/// Statistics of segments, each with its rows in scope.
fn stats<Q: TextQuery>(query: &Q, parts: &[(&TextIndex, Option<&RoaringBitmap>)]) -> CorpusStats {
    let mut stats = CorpusStats::default();
    for (index, scope) in parts {
        stats.add(index.scope_stats(*scope), &index.term_counts(query, *scope).unwrap());
    }
    stats
}

fn scores<Q: TextQuery>(index: &TextIndex, query: &Q, scope: Option<&RoaringBitmap>) -> RowScores {
    index.score(query, &stats(query, &[(index, scope)]), scope).unwrap()
}

/// Rows found by a hybrid query, ascending.
fn found(index: &TextIndex, query: &str) -> Vec<u32> {
    rows_of(&scores(index, &HybridQuery::analyse(query), None))
}

/// Rows found by a full-text query, ascending.
fn words(index: &TextIndex, query: &str, operator: Operator) -> Vec<u32> {
    rows_of(&scores(index, &WordQuery::analyse(query, operator), None))
}

fn rows_of(scores: &RowScores) -> Vec<u32> {
    let mut rows: Vec<u32> = scores.top(usize::MAX / 4).iter().map(|hit| hit.row.0).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn every_row_stays_in_its_place() {
    let texts: Vec<String> = (0..2000).map(|n| format!("unique{n} shared")).collect();
    let rows: Vec<_> = texts.iter().map(|body| RowText { body, ..RowText::default() }).collect();
    let index = index(&rows);
    assert_eq!(index.rows(), 2000);
    for row in [0, 1, 127, 128, 129, 777, 1999] {
        assert_eq!(words(&index, &format!("unique{row}"), Operator::Or), [row]);
    }
    assert_eq!(words(&index, "shared", Operator::Or).len(), 2000);
}

#[test]
fn equal_rows_give_equal_bytes() {
    let rows =
        [RowText { body: "alpha beta", title: "gamma", searchable: "delta", ..RowText::default() };
            3];
    assert_eq!(bundle(&rows), bundle(&rows));
}

#[test]
fn fields_are_searched_as_promised() {
    let rows = [
        RowText {
            body: "plain text",
            title: "heading",
            context: "chapter one",
            searchable: "colour-red",
        },
        RowText { body: "heading", title: "", searchable: "", ..RowText::default() },
        RowText::default(),
    ];
    let index = index(&rows);
    assert_eq!(found(&index, "headings"), [0, 1]);
    assert_eq!(found(&index, "red"), [0]);
    assert_eq!(found(&index, "chapter"), [0]);
    assert_eq!(words(&index, "chapter", Operator::Or), Vec::<u32>::new());
    assert_eq!(words(&index, "heading", Operator::Or), [1]);
    assert_eq!(words(&index, "headings", Operator::Or), Vec::<u32>::new());
    assert_eq!(words(&index, "red", Operator::Or), [0]);
    assert_eq!(words(&index, "text red", Operator::And), [0]);
    assert_eq!(words(&index, "text heading", Operator::And), Vec::<u32>::new());
    assert_eq!(words(&index, "text heading", Operator::Or), [0, 1]);
    assert_eq!(words(&index, "TEXT, text!", Operator::And), [0]);
    assert_eq!(words(&index, "?! ...", Operator::Or), Vec::<u32>::new());
    assert_eq!(words(&index, "", Operator::And), Vec::<u32>::new());
}

#[test]
fn a_hit_in_the_title_counts_more() {
    let rows = [
        RowText { body: "wing of a bird", title: "feathers", searchable: "", ..RowText::default() },
        RowText { body: "feathers of a bird", title: "wing", searchable: "", ..RowText::default() },
    ];
    let top = scores(&index(&rows), &HybridQuery::analyse("wing"), None).top(2);
    assert_eq!(top[0].row, RowId(1));
    assert_eq!(top.len(), 2);
}

#[test]
fn languages_are_found() {
    let index = bodies(&[
        "机器学习是人工智能",
        "हिन्दी भाषा",
        "Новые улицы",
        "Größe der Straßen in München",
        "let name = getUserName(max_chunks, gpt4);",
        "ประเทศไทย",
        "한국어를 배운다",
    ]);
    let cases = [
        ("人工智能", 0),
        ("工", 0),
        ("भाषा", 1),
        ("улица", 2),
        ("GRÖSSE", 3),
        ("mu\u{308}nchen", 3),
        ("user", 4),
        ("GetUserName", 4),
        ("chunks", 4),
        ("GPT-4", 4),
        ("ไทย", 5),
        ("한국어", 6),
    ];
    for (query, row) in cases {
        assert_eq!(found(&index, query), [row], "{query}");
    }
    // A letter with a different mark makes another word.
    assert_eq!(found(&index, "munchen"), Vec::<u32>::new());
    assert_eq!(found(&index, "भाष"), Vec::<u32>::new());
}

#[test]
fn a_run_without_spaces_is_a_phrase_where_all_must_occur() {
    let index = bodies(&["机器学习", "学习机器", "机 器", "机x器", "谢谢谢 机机器", "การ"]);
    assert_eq!(words(&index, "机器", Operator::And), [0, 1, 4]);
    assert_eq!(words(&index, "器学", Operator::Or), [0]);
    assert_eq!(words(&index, "机", Operator::Or), [0, 1, 2, 3, 4]);
    assert_eq!(words(&index, "机 器", Operator::And), [0, 1, 2, 3, 4]);
    assert_eq!(words(&index, "谢谢", Operator::And), [4]);
    assert_eq!(words(&index, "谢谢谢谢", Operator::And), Vec::<u32>::new());
    assert_eq!(words(&index, "谢谢谢谢", Operator::Or), [4]);
    assert_eq!(words(&index, "าร", Operator::Or), [5]);
    // Text and searchable values do not run together.
    let rows = [RowText { body: "机", title: "", searchable: "器", ..RowText::default() }];
    assert!(words(&super::tests::index(&rows), "机器", Operator::Or).is_empty());
}

#[test]
fn equal_scores_come_in_row_order() {
    let index = bodies(&["same words"; 300]);
    let scores = scores(&index, &HybridQuery::analyse("same"), None);
    for k in [0, 1, 5, 64, 299, 300, 1000] {
        let rows: Vec<u32> = scores.top(k).iter().map(|hit| hit.row.0).collect();
        assert_eq!(rows, (0..k.min(300) as u32).collect::<Vec<_>>());
    }
    assert!(scores.get(RowId(0)) > 0.0);
    assert_eq!(scores.get(RowId(300)), 0.0);
}

#[test]
fn nothing_is_found_in_nothing() {
    let empty = index(&[]);
    assert_eq!(empty.rows(), 0);
    assert_eq!(found(&empty, "word"), Vec::<u32>::new());
    assert_eq!(empty.scope_stats(None), ScopeStats::default());
    let some = bodies(&["word", "other"]);
    let none = RoaringBitmap::new();
    for merged in [merged(&[]), merged(&[(&empty, None), (&some, Some(&none))])] {
        assert_eq!(TextIndex::open(merged).unwrap().rows(), 0);
    }
    let merged = merged(&[(&empty, None), (&some, None)]);
    assert_eq!(found(&TextIndex::open(merged).unwrap(), "other"), [1]);
    let query = HybridQuery::analyse("word");
    assert!(scores(&some, &query, Some(&none)).top(1).is_empty());
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let good = bundle(
        &[RowText { body: "alpha beta", title: "gamma", searchable: "", ..RowText::default() }; 40],
    );
    for length in (0..good.len()).step_by(7) {
        assert!(TextIndex::open(good[..length].to_vec()).is_err(), "{length}");
    }
    for at in (0..good.len()).step_by(3) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x15;
        // Damage inside a posting list is for the checksum to find.
        if let Err(error) = TextIndex::open(bytes) {
            assert_eq!(error.kind(), lodestone_types::ErrorKind::Corrupt);
        }
    }
}

const VOCABULARY: [&str; 8] = ["zab", "qux", "vok", "lum", "wip", "tib", "nok", "rud"];

/// The words of one row, as indexes into the vocabulary: body, title, searchable values.
type Row = [Vec<usize>; 3];

fn text(words: &[usize]) -> String {
    words.iter().map(|&word| VOCABULARY[word]).collect::<Vec<_>>().join(" ")
}

fn index_of(rows: &[Row]) -> TextIndex {
    let texts: Vec<_> = rows.iter().map(|row| row.each_ref().map(|words| text(words))).collect();
    let rows = texts.iter().map(|[body, title, searchable]| RowText {
        body,
        title,
        searchable,
        ..RowText::default()
    });
    index(&rows.collect::<Vec<_>>())
}

fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let words = |max| proptest::collection::vec(0..VOCABULARY.len(), 0..max);
    proptest::collection::vec((words(60), words(4), words(3)).prop_map(<Row>::from), 0..40)
}

/// Identifiers, accents, and scripts without spaces, from few letters so that terms coincide.
fn any_text(max: usize) -> impl Strategy<Value = String> {
    let letters = "a-cA-C0-1 _.'é机器가ก\u{FF21}-";
    proptest::string::string_regex(&format!("[{letters}]{{0,{max}}}")).unwrap()
}

/// BM25 by its definition, in f64, over the given rows; lengths rounded as in the index.
fn oracle(rows: &[Row], query: &[usize]) -> Vec<f64> {
    let body = |row: &Row| row.concat();
    let title = |row: &Row| row[1].clone();
    let stored = |length: usize| {
        let code = FieldNormReader::fieldnorm_to_id(length as u32);
        f64::from(FieldNormReader::id_to_fieldnorm(code))
    };
    let mean = |field: &dyn Fn(&Row) -> Vec<usize>| {
        let lengths = rows.iter().map(|row| stored(field(row).len()));
        let filled = lengths.clone().filter(|length| *length > 0.0).count();
        lengths.sum::<f64>() / filled.max(1) as f64
    };
    let (mean_body, mean_title) = (mean(&body), mean(&title));
    let part = |words: Vec<usize>, term: usize, mean: f64| {
        let tf = words.iter().filter(|word| **word == term).count() as f64;
        tf / (tf + 0.9 * (0.6 + 0.4 * stored(words.len()) / mean.max(1.0)))
    };
    let score = |row: &Row| {
        let score_of = |&term: &usize| {
            let df = rows.iter().filter(|row| body(row).contains(&term)).count() as f64;
            let idf = (1.0 + (rows.len() as f64 - df + 0.5) / (df + 0.5)).ln();
            let title = f64::from(TITLE_WEIGHT) * part(title(row), term, mean_title);
            idf * (part(body(row), term, mean_body) + title)
        };
        query.iter().map(score_of).sum()
    };
    rows.iter().map(score).collect()
}

/// Scores by row of several segments, one after the other.
fn scores_over(
    parts: &[(&TextIndex, Option<&RoaringBitmap>)],
    query: &HybridQuery,
) -> Vec<Vec<f32>> {
    let stats = stats(query, parts);
    let of = |(index, scope): &(&TextIndex, Option<&RoaringBitmap>)| {
        let scores = index.score(query, &stats, *scope).unwrap();
        (0..index.rows()).map(|row| scores.get(RowId(row))).collect()
    };
    parts.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn scores_equal_the_definition(
        rows in any_rows(),
        query in proptest::collection::vec(0..VOCABULARY.len(), 1..6),
    ) {
        let index = index_of(&rows);
        let scores = scores(&index, &HybridQuery::analyse(&text(&query)), None);
        for (row, expected) in oracle(&rows, &query).into_iter().enumerate() {
            let score = f64::from(scores.get(RowId(row as u32)));
            // Ten f32 roundings of values below 10.
            prop_assert!((score - expected).abs() < 1e-5, "row {row}: {score}, not {expected}");
        }
        let hits = scores.top(7);
        prop_assert!(hits.is_sorted_by(|a: &Hit, b: &Hit| lodestone_types::by_rank(a, b).is_lt()));
    }

    /// Goal: segments, tombstones and other sub-tenants do not affect a score. Method: compare, bit
    /// for bit, the rows in scope alone in one index with all rows in three indexes with masks.
    #[test]
    fn scores_do_not_depend_on_segments_or_on_rows_out_of_scope(
        rows in any_rows(),
        outside in proptest::collection::vec(any::<bool>(), 40),
        cuts in (0_usize..40, 0_usize..40),
        query in proptest::collection::vec(0..VOCABULARY.len(), 1..6),
    ) {
        let query = HybridQuery::analyse(&text(&query));
        let (low, high) = (cuts.0.min(cuts.1).min(rows.len()), cuts.0.max(cuts.1).min(rows.len()));
        let bounds = [0..low, low..high, high..rows.len()];
        let pieces = bounds.clone().map(|range| index_of(&rows[range]));
        let masks = bounds.clone().map(|range| {
            range.clone().filter(|row| !outside[*row]).map(|row| (row - range.start) as u32)
                .collect::<RoaringBitmap>()
        });
        let parts: Vec<_> = pieces.iter().zip(&masks).map(|(i, m)| (i, Some(m))).collect();
        let split = scores_over(&parts, &query);
        let alone: Vec<Row> = rows.iter().zip(&outside).filter(|(_, out)| !**out)
            .map(|(row, _)| row.clone()).collect();
        let alone = index_of(&alone);
        let expected = scores_over(&[(&alone, None)], &query).remove(0);
        let merged = TextIndex::open(merged(&parts)).unwrap();
        prop_assert_eq!(merged.scope_stats(None), alone.scope_stats(None));
        let merged = scores_over(&[(&merged, None)], &query).remove(0);
        let mut inside = Vec::new();
        for (at, (scores, range)) in split.iter().zip(bounds).enumerate() {
            for (row, score) in scores.iter().enumerate() {
                if masks[at].contains(row as u32) {
                    inside.push(*score);
                } else {
                    prop_assert_eq!(*score, 0.0, "row {} is out of scope", range.start + row);
                }
            }
        }
        prop_assert_eq!(&inside, &expected);
        prop_assert_eq!(&merged, &expected);
    }

    /// Goal: a row found by a hybrid query contains one of its terms, in analysed form.
    #[test]
    fn every_hit_holds_a_term(
        texts in proptest::collection::vec(any_text(16), 1..12),
        query in any_text(8),
    ) {
        let query = HybridQuery::analyse(&query);
        let index = bodies(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let scores = scores(&index, &query, None);
        for (row, text) in texts.iter().enumerate() {
            let is_hit = scores.get(RowId(row as u32)) > 0.0;
            prop_assert_eq!(is_hit, !matches(&query, text).is_empty(), "{}", text);
        }
    }

    #[test]
    fn any_text_can_be_indexed_and_finds_itself(text in "\\PC{0,60}") {
        let row = RowText { body: &text, title: &text, searchable: "", ..RowText::default() };
        let index = index(&[row]);
        for operator in [Operator::Or, Operator::And] {
            let query = WordQuery::analyse(&text, operator);
            let found = scores(&index, &query, None).top(2).len();
            prop_assert_eq!(found, usize::from(!query.is_empty()));
        }
        let query = HybridQuery::analyse(&text);
        prop_assert_eq!(scores(&index, &query, None).top(2).len(), usize::from(!query.is_empty()));
    }
}

/// Goal: few candidates are looked up, many are scanned for; both ways agree.
#[test]
fn candidates_narrow_and_change_no_score() {
    let texts: Vec<String> =
        (0..3000).map(|n| format!("shared {}", "more ".repeat(n % 5))).collect();
    let rows: Vec<_> = texts.iter().map(|body| RowText { body, ..RowText::default() }).collect();
    let index = index(&rows);
    let query = HybridQuery::analyse("shared more");
    let stats = stats(&query, &[(&index, None)]);
    let all = index.score(&query, &stats, None).unwrap();
    for step in [1, 3, 50, 700, 2999] {
        let candidates: RoaringBitmap = (0..3000).step_by(step).chain([2999, 5000]).collect();
        let some = index.score(&query, &stats, Some(&candidates)).unwrap();
        for row in 0..3000 {
            let expected = if candidates.contains(row) { all.get(RowId(row)) } else { 0.0 };
            assert_eq!(some.get(RowId(row)), expected, "row {row} of every {step}");
        }
        let counts = index.term_counts(&query, Some(&candidates)).unwrap();
        let inside = (0..3000).filter(|row| candidates.contains(*row));
        assert_eq!(
            counts.0,
            [inside.clone().count(), inside.filter(|n| n % 5 > 0).count()]
                .map(|count| count as u64)
        );
    }
}

/// Rows found by a query with similar words, best first.
fn similar(index: &TextIndex, query: &mut WordQuery, scope: Option<&RoaringBitmap>) -> Vec<u32> {
    query.expand([index.similar(query, scope).unwrap()]);
    scores(index, query, scope).top(100).iter().map(|hit| hit.row.0).collect()
}

#[test]
fn similar_words_rank_behind_the_form_as_written() {
    let index = bodies(&[
        "café café café",
        "a long text about a cafe and many other things besides it",
        "caffè",
        "cafeteria",
        "safe",
    ]);
    let ask = |query: &str, fuzzy, is_prefix| {
        similar(&index, &mut WordQuery::new(query, Operator::Or, fuzzy, is_prefix), None)
    };
    assert_eq!(ask("cafe", Fuzzy::Off, false), [1, 0]);
    assert_eq!(ask("café", Fuzzy::Off, false), [0, 1]);
    assert_eq!(ask("cafe", Fuzzy::Off, true), [1, 0, 3]);
    assert_eq!(ask("cafe", Fuzzy::Auto, false), [1, 0, 2, 4]);
    assert_eq!(ask("caff", Fuzzy::Off, true), [2]);
    assert_eq!(ask("zafe", Fuzzy::Off, false), [0; 0]);
}

/// Goal: rows outside the scope change nothing.
#[test]
fn similar_words_are_those_of_the_scope() {
    let index = bodies(&["café", "cafe", "cafés"]);
    let first = RoaringBitmap::from([0]);
    let alone = bodies(&["café"]);
    let mut queries = [(); 2].map(|()| WordQuery::new("cafe", Operator::Or, Fuzzy::Auto, false));
    assert_eq!(similar(&index, &mut queries[0], Some(&first)), [0]);
    assert_eq!(similar(&alone, &mut queries[1], None), [0]);
    assert_eq!(queries[0], queries[1]);
    let of = |index, query, scope| scores(index, query, scope).get(RowId(0));
    assert_eq!(of(&index, &queries[0], Some(&first)), of(&alone, &queries[1], None));
}

/// Goal: a segment that has the written form only outside the scope changes no factor of the
/// similar words in another segment.
#[test]
fn written_forms_of_other_scopes_do_not_count() {
    let (others, own) = (bodies(&["cafe", "tea"]), bodies(&["café"]));
    let tea = RoaringBitmap::from([1]);
    let mut queries = [(); 2].map(|()| WordQuery::new("cafe", Operator::Or, Fuzzy::Off, false));
    let [alone, both] = &mut queries;
    alone.expand([own.similar(alone, None).unwrap()]);
    both.expand([others.similar(both, Some(&tea)).unwrap(), own.similar(both, None).unwrap()]);
    assert_eq!(both, alone);
    assert_eq!(both.forms().map(|form| form.factor).collect::<Vec<_>>(), [1.0]);
}

/// Goal: frequent words of other scopes do not take the places of the scope's own.
#[test]
fn similar_words_of_other_scopes_take_no_places() {
    let others = (b'a'..=b'z')
        .flat_map(|a| (b'a'..=b'd').map(move |b| format!("jo{}{}", char::from(a), char::from(b))));
    let others = others.collect::<Vec<_>>().join(" ");
    let index = bodies(&[&others, &others, "jolanda"]);
    let own = RoaringBitmap::from([2]);
    let mut query = WordQuery::new("jo", Operator::Or, Fuzzy::Off, true);
    assert_eq!(similar(&index, &mut query, Some(&own)), [2]);
}

/// Goal: of more similar words than are searched for, those in most rows of the scope are, however
/// frequent the others are elsewhere.
#[test]
fn similar_words_are_chosen_by_their_rows_in_the_scope() {
    let letter = |n: u8| char::from(b'a' + n);
    let others = (0..100_u8).map(|n| format!("jo{}{}", letter(n / 26), letter(n % 26)));
    let others = others.collect::<Vec<_>>().join(" ");
    let index = bodies(&[&others, "joy", "joy", &others, &others, &others]);
    let own = RoaringBitmap::from([0, 1, 2]);
    let mut query = WordQuery::new("jo", Operator::Or, Fuzzy::Off, true);
    let found = similar(&index, &mut query, Some(&own));
    assert_eq!(found.len(), 3, "{found:?}");
    let alone = bodies(&[&others, "joy", "joy"]);
    let mut query_alone = WordQuery::new("jo", Operator::Or, Fuzzy::Off, true);
    query_alone.expand([alone.similar(&query_alone, None).unwrap()]);
    assert_eq!(query, query_alone);
}

/// Goal: however many words begin with a misspelt prefix, and earlier in the alphabet, they do not
/// take the places of the word itself and of its continuations.
#[test]
fn the_nearest_of_many_similar_words_are_found() {
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    let other = |n: usize| format!("ar{}{}{}", letter(n / 676), letter(n / 26), letter(n));
    let mut texts: Vec<String> = (0..5000).map(other).collect();
    texts.extend(["wars", "war", "bar"].map(str::to_owned));
    let index = bodies(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut query = WordQuery::new("war", Operator::Or, Fuzzy::Edits(1), true);
    assert_eq!(similar(&index, &mut query, None)[..2], [5001, 5000]);
    assert!(query.forms().any(|form| form.terms == ["bar"]), "before the misspelt prefixes");
}

/// Goal: a query of many words looks up few words similar to each. Method: the only one of the
/// scope is the last of 151 in the dictionary.
#[test]
fn words_of_a_long_query_share_the_look_ups() {
    let letter = |n: u8| char::from(b'd' + n);
    let others = (0..150_u8).map(|n| format!("a{}{}", letter(n / 10), letter(n % 10)));
    let index = bodies(&[&others.collect::<Vec<_>>().join(" "), "zzc"]);
    let own = RoaringBitmap::from([1]);
    let found = |text: &str| {
        let mut query = WordQuery::new(text, Operator::Or, Fuzzy::Edits(2), false);
        similar(&index, &mut query, Some(&own))
    };
    assert_eq!(found("abc"), [1]);
    let numbers: Vec<String> = (0..255).map(|n| n.to_string()).collect();
    assert_eq!(found(&format!("abc {}", numbers.join(" "))), [0; 0]);
}

#[test]
fn similar_words_are_bounded() {
    let texts: Vec<String> = (0..400_u32)
        .map(|n| {
            let letter = |place: u32| char::from(b'a' + (n / 20_u32.pow(place) % 20) as u8);
            format!("word{}{}", letter(0), letter(1))
        })
        .collect();
    let index = bodies(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut query = WordQuery::new("word", Operator::Or, Fuzzy::Edits(2), true);
    assert_eq!(similar(&index, &mut query, None).len(), 64);
    let mut many = WordQuery::new(&texts.join(" "), Operator::Or, Fuzzy::Edits(2), true);
    many.expand([index.similar(&many, None).unwrap()]);
    assert!(many.forms().count() <= 1024, "{}", many.forms().count());
}

#[test]
fn coverage_is_the_share_of_the_query_by_rarity() {
    let index = bodies(&["common rare", "common", "common other", "nothing"]);
    let query = HybridQuery::analyse("common rare absent");
    let stats = stats(&query, &[(&index, None)]);
    let coverage =
        |rows: &[u32]| index.coverage(&query, &stats, &rows.iter().copied().collect()).unwrap();
    let all = coverage(&[0, 1, 2, 3]);
    assert!(all[0] > 0.4 && all[0] < 0.6 && all[1] < 0.2 && all[1] == all[2] && all[3] == 0.0);
    assert_eq!(coverage(&[2, 3]), all[2..]);
}

/// Goal: words that are only in the title do not match in full-text search, in any script.
#[test]
fn parts_of_runs_are_looked_up_in_the_text_and_not_in_its_title() {
    let rows = [
        RowText {
            body: "แมวกินปลา", title: "", searchable: "", ..RowText::default()
        },
        RowText {
            body: "หมา", title: "แมวกินปลา", searchable: "", ..RowText::default()
        },
        RowText { body: "ปลา", title: "ปลา", searchable: "", ..RowText::default() },
    ];
    let index = index(&rows);
    let top = |query: &str| {
        let query = WordQuery::analyse(query, Operator::Or);
        let top = scores(&index, &query, None).top(9);
        top.iter().map(|hit| hit.row.0).collect::<Vec<_>>()
    };
    assert_eq!(top("แมวกินปลา"), [0, 2]);
    assert_eq!(top("แมว"), [0]);
    assert_eq!(words(&index, "แมวกิน", Operator::And), [0]);
}

/// Goal: damage behind a valid checksum, as in a forged file, is an error of the index and not a
/// panic of the search. Method: each byte of a bundle is changed in turn.
#[test]
fn a_changed_byte_ends_no_search() {
    let row = |body| RowText { body, title: "film", ..RowText::default() };
    let sound = bundle(&["red apples", "green pears", "a film of apples"].map(row));
    let (query, words) =
        (HybridQuery::analyse("film apples"), WordQuery::analyse("aples", Operator::Or));
    let read = |bytes: Vec<u8>| -> Result<(), TextError> {
        let index = TextIndex::open(bytes)?;
        let mut stats = CorpusStats::default();
        stats.add(index.scope_stats(None), &index.term_counts(&query, None)?);
        index.score(&query, &stats, None)?;
        index.similar(&words, None)?;
        index.words_from("a", Some(&RoaringBitmap::from([0])), 9, &mut 9, |_| {})
    };
    read(sound.clone()).unwrap();
    for at in 0..sound.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut bytes = sound.clone();
            bytes[at] ^= change;
            if let Err(error) = read(bytes) {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            }
        }
    }
}
