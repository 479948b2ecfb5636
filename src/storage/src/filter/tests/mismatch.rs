//! Values of a type other than the stored ones, and keys without values.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{bitmap, documents, one_row_each, opened, source};
use crate::filter::mismatch::{TypeMismatch, ValueType, mismatches};
use crate::filter::parse;
use lodestone_types::{Filter, FilterMap};

fn filter(map: &str, value: &Value) -> Filter {
    let of = |name| value.as_object().filter(|_| name == map);
    let parsed = parse(of("tenant_metadata"), of("document_metadata"), of("metadata"));
    parsed.unwrap().for_schema(None).unwrap().clone()
}

/// The reported keys, with the types of their values.
fn told(found: Vec<TypeMismatch>) -> Vec<String> {
    let listed = |types: BTreeSet<ValueType>| {
        types.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
    };
    let line = |TypeMismatch { path, given, stored, .. }| {
        format!("{path}: {} for {}", listed(given), listed(stored))
    };
    found.into_iter().map(line).collect()
}

#[test]
fn values_of_no_stored_type_are_told_of() {
    let columns = documents([
        json!({"year": 2019, "day": "2024-01-05", "fresh": true, "mix": 1, "tags": ["red"]}),
        json!({"year": 2023, "day": "2024-02-01", "mix": "1", "place": {"zip": "0815"}}),
        json!({"gone": null, "late": 7}),
    ]);
    let rows = bitmap(0..2);
    for (condition, expected) in [
        (json!({"year": "2019"}), vec!["year: texts for numbers"]),
        (json!({"year": {"$gte": "2019"}}), vec!["year: texts for numbers"]),
        (json!({"year": {"$in": ["2019", true]}}), vec!["year: booleans+texts for numbers"]),
        (json!({"day": {"$lt": 1_704_412_800}}), vec!["day: numbers for texts"]),
        (json!({"fresh": "true"}), vec!["fresh: texts for booleans"]),
        (json!({"tags": 1}), vec!["tags: numbers for texts"]),
        (json!({"place.zip": 815}), vec!["place.zip: numbers for texts"]),
        (json!({"mix": true}), vec!["mix: booleans for numbers+texts"]),
        (
            json!({"$or": [{"year": "2019"}, {"year": "2019"}, {"fresh": 1}]}),
            vec!["year: texts for numbers", "fresh: numbers for booleans"],
        ),
        // Types that are stored, values that are not, and comparisons that can match whatever is
        // stored.
        (json!({"year": 1}), vec![]),
        (json!({"year": ["2019", 1]}), vec![]),
        (json!({"mix": "2"}), vec![]),
        (json!({"year": {"$in": []}}), vec![]),
        (json!({"year": {"$ne": "2019"}}), vec![]),
        (json!({"year": {"$exists": false}}), vec![]),
        (json!({"year": ["2019", null]}), vec![]),
        (json!({"unknown": {"$exists": true}}), vec![]),
        // Keys without a value: of no row, in another case, with null only, of other rows.
        (json!({"unknown": 1, "gone": 1}), vec!["unknown: numbers for ", "gone: numbers for "]),
        (json!({"Year": 2019}), vec!["Year: numbers for "]),
        (json!({"late": "7"}), vec!["late: texts for "]),
    ] {
        let filter = filter("document_metadata", &condition);
        let found = mismatches(&filter, &[(&columns, &rows)]).unwrap();
        assert_eq!(told(found), expected, "{condition}");
    }
}

/// Goal: the types of all segments count. One segment holds numbers, the other strings.
#[test]
fn the_types_of_all_segments_count() {
    let (numbers, texts) = (documents([json!({"v": 1})]), documents([json!({"v": "1"})]));
    let (all, none) = (bitmap([0]), bitmap([]));
    let is_told = |value: Value, segments: &[_]| {
        let filter = filter("document_metadata", &json!({ "v": value }));
        !mismatches(&filter, segments).unwrap().is_empty()
    };
    assert!(!is_told(json!("2"), &[(&numbers, &all), (&texts, &all)]));
    assert!(is_told(json!(true), &[(&numbers, &all), (&texts, &all)]));
    assert!(is_told(json!("2"), &[(&numbers, &all), (&texts, &none)]));
    assert!(!is_told(json!("2"), &[(&numbers, &none), (&texts, &none)]));
}

#[test]
fn keys_are_looked_for_in_the_maps_that_a_condition_reads() {
    let one = source(0, json!({"region": 7}), json!({"source_type": 3, "year": 1}));
    let columns = opened(&one_row_each(vec![one]));
    let rows = bitmap([0]);
    for (map, condition, expected) in [
        ("tenant_metadata", json!({"region": "7"}), vec!["region: texts for numbers"]),
        ("metadata", json!({"region": "7"}), vec!["region: texts for numbers"]),
        ("document_metadata", json!({"region": "7"}), vec!["region: texts for "]),
        ("metadata", json!({"source_type": 3}), vec!["source_type: numbers for texts"]),
        ("document_metadata", json!({"source_type": 4}), vec![]),
        (
            "metadata",
            json!({"source_upload_time": {"$gte": "2026-01-01"}}),
            vec!["source_upload_time: texts for epoch seconds"],
        ),
        ("metadata", json!({"source_upload_time": "1757402409"}), vec![]),
        ("metadata", json!({"Region": "7"}), vec!["Region: texts for "]),
        ("tenant_metadata", json!({"source_last_updated_time": {"$gt": 9e9}}), vec![]),
    ] {
        let filter = filter(map, &condition);
        let found = mismatches(&filter, &[(&columns, &rows)]).unwrap();
        assert!(found.iter().all(|found| found.map != FilterMap::System || map == "metadata"));
        assert_eq!(told(found), expected, "{map} {condition}");
    }
}
