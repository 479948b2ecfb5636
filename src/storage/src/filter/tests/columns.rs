//! Matching, case by case, and the size of the columns.

use serde_json::{Value, json};

use super::{bitmap, documents, one_row_each, opened, rows, source, written};
use crate::filter::{Columns, FilterError, parse, sources};
use lodestone_types::{ErrorKind, Filter, SourceId, SourceRecord, SubTenantId};

fn document(value: Value) -> Filter {
    parse(None, value.as_object(), None).unwrap().for_schema(None).unwrap().clone()
}

fn system(value: &Value) -> Filter {
    parse(None, None, value.as_object()).unwrap().for_schema(None).unwrap().clone()
}

/// Goal: ids are compared after Unicode NFC, in whichever map the filter names them; other values,
/// and a document's own key of that name, are not normalised.
#[test]
fn ids_are_compared_in_their_normal_form() {
    let id = |number, id: &str, document| SourceRecord {
        id: SourceId::parse(id).unwrap(),
        ..source(number, json!({}), document)
    };
    let columns = opened(&one_row_each(vec![
        id(0, "caf\u{e9}", json!({})),
        id(1, "other", json!({"source_id": "caf\u{e9}", "v": "caf\u{e9}"})),
    ]));
    let decomposed = "cafe\u{301}";
    for (value, expected) in [
        (json!(decomposed), vec![0]),
        (json!({"$in": [decomposed, 7]}), vec![0]),
        (json!({"$ne": decomposed}), vec![1]),
        (json!({"$gte": decomposed, "$lte": decomposed}), vec![0]),
    ] {
        let filter = json!({"source_id": value});
        assert_eq!(rows(&columns, &system(&filter)), expected, "{filter}");
    }
    assert_eq!(rows(&columns, &document(json!({"source_id": decomposed}))), [0]);
    assert_eq!(rows(&columns, &document(json!({"v": decomposed}))), Vec::<u32>::new());
}

#[test]
fn equality_does_not_coerce() {
    let columns = documents([
        json!({"v": 2023}),
        json!({"v": "2023"}),
        json!({"v": 2023.0}),
        json!({"v": true}),
        json!({"v": null}),
        json!({}),
        json!({"v": ["x", 2023]}),
        json!({"v": [[2023]]}),
        json!({"v": []}),
        json!({"v": {}}),
        json!({"v": [null, "X"]}),
    ]);
    for (filter, expected) in [
        (json!({"v": 2023}), vec![0, 2, 6, 7]),
        (json!({"v": "2023"}), vec![1]),
        (json!({"v": "x"}), vec![6]),
        (json!({"v": true}), vec![3]),
        (json!({"v": [true, "2023", null]}), vec![1, 3, 4, 5, 10]),
        (json!({"v": []}), vec![]),
        (json!({"v": {"$nin": []}}), (0..11).collect()),
        (json!({"v": null}), vec![4, 5, 10]),
        (json!({"v": {"$exists": true}}), vec![0, 1, 2, 3, 6, 7, 8, 9, 10]),
        (json!({"v": {"$exists": false}}), vec![4, 5]),
        (json!({"v": {"$ne": 2023}}), vec![1, 3, 4, 5, 8, 9, 10]),
        (json!({"v": {"$nin": [2023, null]}}), vec![1, 3, 8, 9]),
        (json!({"v": {"$gte": 2023}}), vec![0, 2, 6, 7]),
        (json!({"v": {"$gt": ""}}), vec![1, 6, 10]),
        (json!({"v": {"$lt": "X"}}), vec![1]),
        (json!({"v": {"$lte": "X"}}), vec![1, 10]),
        (json!({"w": {"$ne": 1}}), (0..11).collect()),
        (json!({"w": {"$gt": 1}}), vec![]),
        (json!({}), (0..11).collect()),
    ] {
        assert_eq!(rows(&columns, &document(filter.clone())), expected, "{filter}");
    }
}

#[test]
fn paths_reach_into_maps_and_dots_are_nesting() {
    let columns = documents([
        json!({"a": {"b": 1}}),
        json!({"a.b": 1}),
        json!({"a": [{"b": 1}, {"b": 2}]}),
        json!({"a": {"b": 2}}),
        json!({"a": 1}),
    ]);
    for filter in [json!({"a": {"b": 1}}), json!({"a.b": 1}), json!({"a": {"b": {"$lt": 2}}})] {
        assert_eq!(rows(&columns, &document(filter.clone())), vec![0, 1, 2], "{filter}");
    }
    assert_eq!(rows(&columns, &document(json!({"a": {"$exists": true}}))), vec![0, 1, 2, 3, 4]);
    assert_eq!(rows(&columns, &document(json!({"a": 1}))), vec![4]);
    assert_eq!(rows(&columns, &document(json!({"a.b": null}))), vec![4]);
}

#[test]
fn system_keys_yield_to_a_map_that_holds_them() {
    let held = json!({"source_title": "title 1"});
    let columns = opened(&one_row_each(vec![
        source(0, json!({}), json!({})),
        source(1, json!({}), json!({})),
        source(2, json!({"source_title": null}), held.clone()),
        source(5, json!({}), json!({"source_title": "mine"})),
    ]));
    let find = |tenant, document, metadata| {
        let parsed = parse(tenant, document, metadata).unwrap();
        rows(&columns, parsed.for_schema(None).unwrap())
    };
    let title = held.as_object();
    assert_eq!(find(title, None, None), vec![1, 3], "row 2 holds a null of its own");
    assert_eq!(find(None, title, None), vec![1, 2]);
    assert_eq!(find(None, None, title), vec![1, 3]);
    let missing = json!({"source_title": null});
    assert_eq!(find(missing.as_object(), None, None), vec![2]);
}

#[test]
fn metadata_means_the_document_and_then_the_tenant() {
    let columns = opened(&one_row_each(vec![
        source(0, json!({"a": 1}), json!({"a": 2})),
        source(1, json!({"a": 1}), json!({})),
        source(2, json!({"a": {"b": 1}}), json!({"a": null})),
        source(3, json!({"a": {"b": 1}}), json!({"b": 1})),
    ]));
    let find = |value: Value| rows(&columns, &system(&value));
    assert_eq!(find(json!({"a": 1})), vec![1]);
    assert_eq!(find(json!({"a": 2})), vec![0]);
    assert_eq!(find(json!({"a.b": 1})), vec![3], "the first key decides");
    assert_eq!(find(json!({"a": {"$exists": false}})), vec![2]);
}

#[test]
fn fields_of_the_source() {
    let columns = opened(&one_row_each((0..4).map(|n| source(n, json!({}), json!({}))).collect()));
    let find = |value: Value| rows(&columns, &system(&value));
    assert_eq!(find(json!({"source_id": "doc-2"})), vec![2]);
    assert_eq!(find(json!({"source_type": "text"})), vec![1, 3]);
    assert_eq!(find(json!({"source_upload_time": "1757402409.728"})), vec![1]);
    assert_eq!(find(json!({"source_upload_time": 1757402409.728})), vec![1]);
    assert_eq!(find(json!({"source_upload_time": {"$gte": 1757402409.729}})), vec![2, 3]);
    assert_eq!(find(json!({"source_last_updated_time": {"$lt": "1757402410.000"}})), vec![0]);
    for unknown in [json!(""), json!(null), json!({"$exists": false})] {
        assert_eq!(find(json!({"source_url": unknown})), vec![0, 1]);
        assert_eq!(find(json!({"description": unknown})), vec![0, 2]);
    }
    assert_eq!(find(json!({"source_collection": null})), vec![0, 1, 2, 3]);
    let mut in_collections = source(0, json!({}), json!({}));
    in_collections.detail.collections = vec!["plans".into(), "2024".into()];
    let collected = opened(&one_row_each(vec![in_collections, source(1, json!({}), json!({}))]));
    for (filter, expected) in [
        (json!({"source_collection": "2024"}), vec![0]),
        (json!({"source_collection": ["plans", "other"]}), vec![0]),
        (json!({"source_collection": null}), vec![1]),
        (json!({"source_collection": {"$exists": true}}), vec![0]),
    ] {
        assert_eq!(rows(&collected, &system(&filter)), expected, "{filter}");
    }
    let ids = ["doc-3", "doc-0", "unknown"].map(|id| SourceId::parse(id).unwrap());
    assert_eq!(rows(&columns, &sources(&ids)), vec![0, 3]);
    assert_eq!(rows(&columns, &sources(&[])), Vec::<u32>::new());
}

#[test]
fn sub_tenants_are_bitmaps() {
    let sources = [0, 1, 3].map(|number| source(number, json!({}), json!({})));
    let [a, b, c] = sources;
    let columns = opened(&[(a, 0..3), (b, 3..3), (c, 3..8)]);
    let name = |name: &str| SubTenantId::parse(name).unwrap();
    assert_eq!(columns.sub_tenants(), vec![(name("default"), 8)]);
    assert_eq!(columns.sub_tenant(&name("default")), bitmap(0..8));
    assert!(columns.sub_tenant(&name("b")).is_empty(), "a source without rows leaves no trace");
    let reserved = json!({"sub_tenant": "default"});
    assert!(rows(&columns, &system(&reserved)).is_empty(), "scopes are no metadata");
}

#[test]
fn no_sources_are_no_rows() {
    let columns = opened(&[]);
    assert!(rows(&columns, &Filter::All).is_empty());
    assert!(columns.sub_tenants().is_empty());
    let error = columns.matching(&Filter::All, 1).unwrap_err();
    assert_eq!(error, FilterError::RowsDisagree { stored: 0, rows: 1 });
    // Not the fault of the request.
    let told = (error.reason(), error.kind(), error.field());
    assert_eq!(told, ("internal", ErrorKind::Corrupt, None));
}

#[test]
fn long_texts_stay_whole() {
    let long = "x".repeat(10_000);
    let columns = documents([json!({"v": long}), json!({"v": format!("{long}y")})]);
    assert_eq!(rows(&columns, &document(json!({"v": long}))), vec![0]);
    assert_eq!(rows(&columns, &document(json!({"v": {"$gt": long}}))), vec![1]);
}

/// Goal: a distinct value for each source costs only its key and one row of the directory.
#[test]
fn unique_values_stay_small() {
    let of = |count: u32, document: fn(u32) -> Value| {
        let sources = (0..count).map(|n| (source(n, json!({}), document(n)), 4 * n..4 * n + 4));
        written(&sources.collect::<Vec<_>>()).len()
    };
    let without = of(2_000, |_| json!({}));
    let with = of(2_000, |number| json!({"number": number}));
    let bytes_each = (with - without) / 2_000;
    assert!(bytes_each <= 16 + 11, "{bytes_each} bytes for each unique number");
}

/// Goal: many short runs, out of row order, combine with long runs and with bitmaps.
#[test]
fn ranges_over_unique_values() {
    let mut next_row = 0;
    let sources: Vec<_> = (0..500)
        .map(|number| {
            let count = if number % 100 == 0 { 1_000 } else { 1 + number % 5 };
            let rows = next_row..next_row + count;
            next_row = rows.end;
            let document = json!({"v": [number * 7919 % 500, number % 3 + 1_000]});
            (source(number, json!({}), document), rows)
        })
        .collect();
    let columns = opened(&sources);
    type Passes = fn(u32) -> bool;
    let cases: [(Value, Passes); 4] = [
        (json!({"v": {"$lt": 3}}), |number| number * 7919 % 500 < 3),
        (json!({"v": {"$lte": 498}}), |number| number * 7919 % 500 <= 498),
        (json!({"v": {"$gt": 1000}}), |number| number % 3 > 0),
        (json!({"v": {"$gt": 400}}), |_| true),
    ];
    for (filter, passes) in cases {
        let passing = (0_u32..).zip(&sources).filter(|(number, _)| passes(*number));
        let expected = bitmap(passing.flat_map(|(_, (_, rows))| rows.clone()));
        assert_eq!(columns.matching(&document(filter.clone()), next_row), Ok(expected), "{filter}");
    }
}

/// Goal: short runs are found in a segment of so many rows that they are inserted one by one.
#[test]
fn short_runs_among_many_rows() {
    let few = (0..20).map(|n| (source(n, json!({}), json!({"v": 19 - n})), n..n + 1));
    let rest = (source(20, json!({}), json!({"v": 99})), 20..200_000);
    let columns = opened(&few.chain([rest]).collect::<Vec<_>>());
    assert_eq!(rows(&columns, &document(json!({"v": {"$lt": 18}}))), (2..20).collect::<Vec<_>>());
}

/// Goal: deep maps with many leaves cost about as much as their JSON, not leaves times depth.
#[test]
fn long_paths_are_not_repeated() {
    let leaves: serde_json::Map<String, Value> =
        (0..1_000).map(|number| (format!("k{number}"), json!(1))).collect();
    let deep = (0..6).fold(Value::Object(leaves), |inner, _| json!({"p".repeat(128): inner}));
    let bytes = written(&[(source(0, json!({}), deep), 0..1)]);
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    assert!(Columns::open(bytes.into()).is_ok());
}
