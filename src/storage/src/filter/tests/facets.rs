//! Counts of values.

use super::*;
use crate::filter::ValueCounts;

/// Counts one key in one segment: the values in order, each with its number of rows, and the number
/// of values that were not counted.
fn counted(
    columns: &Columns,
    path: &str,
    among: &RoaringBitmap,
    values_max: usize,
    bytes_max: usize,
) -> (Vec<String>, usize) {
    let mut counts = ValueCounts::new(values_max, bytes_max);
    columns.count_values(path, among, &mut counts).unwrap();
    shown(&counts)
}

fn shown(counts: &ValueCounts) -> (Vec<String>, usize) {
    let mut shown: Vec<String> =
        counts.counts.iter().map(|(value, rows)| format!("{value} {rows}")).collect();
    shown.sort();
    (shown, counts.unread)
}

/// Goal: a document's own key hides the tenant's, arrays count by each element, and values beyond
/// the limits on number or length are reported as unread.
#[test]
fn rows_are_counted_by_value() {
    let sources = one_row_each(vec![
        source(0, json!({"kind": "tenant"}), json!({"kind": "memo", "n": 1})),
        source(1, json!({"kind": "tenant"}), json!({"n": 2})),
        source(2, json!({}), json!({"kind": ["memo", "plan"], "n": "a longer value"})),
        source(3, json!({}), json!({"kind": null})),
    ]);
    let columns = opened(&sources);
    let all: RoaringBitmap = (0..4).collect();
    let count = |path: &str, among: &RoaringBitmap, most| counted(&columns, path, among, most, 12);
    let kinds = ["memo 2", "plan 1", "tenant 1"].map(str::to_owned).to_vec();
    assert_eq!(count("kind", &all, 9), (kinds, 0));
    assert_eq!(count("kind", &[2].into(), 9).0, ["memo 1", "plan 1"]);
    assert_eq!(count("n", &all, 9), (vec!["1 1".to_owned(), "2 1".to_owned()], 1));
    assert_eq!(count("n", &all, 1), (vec!["1 1".to_owned()], 2));
    assert_eq!(count("none", &all, 9), (Vec::new(), 0));
    assert_eq!(count("source_id", &all, 9).0.len(), 4);
    // Filters match a time by text and by number, but it is one value.
    let times = counted(&columns, "source_upload_time", &bitmap([0, 2]), 9, 20).0;
    assert_eq!(times, ["1757402409.727 1", "1757402409.729 1"]);
}

/// Goal: a value is counted only if one of the given rows has it, however its rows are stored; the
/// result is empty for rows without the key.
#[test]
fn values_of_other_rows_are_not_counted() {
    let kinds = ["memo", "plan", "memo", "plan", "other"];
    let columns = documents(kinds.map(|kind| json!({"kind": kind})));
    let count = |among: &[u32]| counted(&columns, "kind", &bitmap(among.iter().copied()), 9, 12).0;
    assert_eq!(count(&[0, 2, 3]), ["memo 2", "plan 1"]);
    assert_eq!(count(&[4]), ["other 1"]);
    assert_eq!(count(&[]), Vec::<String>::new());
    // A stored string that is not UTF-8 cannot be shown.
    let mut bytes =
        written(&[(source(0, json!({}), json!({"kind": ["memo", "na\u{ef}f"]})), 0..1)]);
    let at = bytes.windows(2).position(|pair| pair == [0xC3, 0xAF]).unwrap();
    bytes[at] = 0xFF;
    let columns = Columns::open(Bytes::from(bytes)).unwrap();
    assert_eq!(counted(&columns, "kind", &bitmap([0]), 9, 12).0, ["memo 1"]);
}

/// Goal: values of rows that are not counted, such as those of other scopes and dead ones, are
/// neither reported as unread nor take the place of counted ones, in whatever form their rows are
/// stored.
#[test]
fn values_of_other_rows_are_not_told() {
    let long = |n: usize| "a".repeat(40 + n);
    let columns = documents::<13>(std::array::from_fn(|n| match n {
        0..5 => json!({"note": long(n)}),
        5..10 => json!({"note": [format!("b{n}"), long(0)]}),
        10 => json!({"note": "z"}),
        11 => json!({"other": 1}),
        _ => json!({"note": long(9)}),
    }));
    let count = |among: &[u32]| counted(&columns, "note", &bitmap(among.iter().copied()), 1, 12);
    assert_eq!(count(&[10]), (vec!["z 1".to_owned()], 0));
    assert_eq!(count(&[11]), (Vec::new(), 0));
    assert_eq!(count(&[10, 12]), (vec!["z 1".to_owned()], 1));
    // A run that is longer than those looked up row by row.
    let kind = |n: usize| json!({"kind": if n < 150 { "memo" } else { "plan" }});
    let columns = documents::<200>(std::array::from_fn(kind));
    let among = bitmap((100..160).chain([199]));
    assert_eq!(counted(&columns, "kind", &among, 9, 12).0, ["memo 50", "plan 11"]);
}

/// Goal: the limit is on distinct values of all segments: a value that several of them have takes
/// one place, and is counted in all.
#[test]
fn a_value_of_several_segments_counts_once_towards_the_limit() {
    let segments = [["a", "b"], ["a", "b"], ["b", "c"], ["a", "c"]];
    let mut counts = ValueCounts::new(2, 12);
    for kinds in segments {
        let columns = documents(kinds.map(|kind| json!({"kind": kind})));
        columns.count_values("kind", &bitmap([0, 1]), &mut counts).unwrap();
    }
    assert_eq!(shown(&counts), (vec!["a 3".to_owned(), "b 3".to_owned()], 2));
}
