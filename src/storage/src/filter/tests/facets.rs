//! Counts of values.

use super::*;
use crate::filter::ValueCounts;

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
    let count = |path: &str, among: &RoaringBitmap, most| {
        let ValueCounts { mut counts, unread } =
            columns.value_counts(path, among, most, 12).unwrap();
        counts.sort();
        (counts.into_iter().map(|(value, n)| format!("{value} {n}")).collect::<Vec<_>>(), unread)
    };
    let kinds = ["memo 2", "plan 1", "tenant 1"].map(str::to_owned).to_vec();
    assert_eq!(count("kind", &all, 9), (kinds, 0));
    assert_eq!(count("kind", &[2].into(), 9).0, ["memo 1", "plan 1"]);
    assert_eq!(count("n", &all, 9), (vec!["1 1".to_owned(), "2 1".to_owned()], 1));
    assert_eq!(count("n", &all, 1), (vec!["1 1".to_owned()], 2));
    assert_eq!(count("none", &all, 9), (Vec::new(), 0));
    assert_eq!(count("source_id", &all, 9).0.len(), 4);
    // Filters match a time by text and by number, but it is one value.
    let times = columns.value_counts("source_upload_time", &bitmap([0, 2]), 9, 20).unwrap().counts;
    let shown = ["1757402409.727", "1757402409.729"].map(|time| (time.to_owned(), 1));
    assert_eq!(times, shown);
}

/// Goal: a value is counted only if one of the given rows has it, however its rows are stored; the
/// result is empty for rows without the key.
#[test]
fn values_of_other_rows_are_not_counted() {
    let kinds = ["memo", "plan", "memo", "plan", "other"];
    let columns = documents(kinds.map(|kind| json!({"kind": kind})));
    let count = |among: &[u32]| {
        let found = columns.value_counts("kind", &bitmap(among.iter().copied()), 9, 12).unwrap();
        found.counts.into_iter().map(|(value, n)| format!("{value} {n}")).collect::<Vec<_>>()
    };
    assert_eq!(count(&[0, 2, 3]), ["memo 2", "plan 1"]);
    assert_eq!(count(&[4]), ["other 1"]);
    assert_eq!(count(&[]), Vec::<String>::new());
    // A stored string that is not UTF-8 cannot be shown.
    let mut bytes =
        written(&[(source(0, json!({}), json!({"kind": ["memo", "na\u{ef}f"]})), 0..1)]);
    let at = bytes.windows(2).position(|pair| pair == [0xC3, 0xAF]).unwrap();
    bytes[at] = 0xFF;
    let columns = Columns::open(Bytes::from(bytes)).unwrap();
    let found = columns.value_counts("kind", &bitmap([0]), 9, 12).unwrap();
    assert_eq!(found.counts, [("memo".to_owned(), 1)]);
}
