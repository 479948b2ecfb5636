//! Goal: bitmaps equal a naive interpretation of the filter. Method: random sources and random
//! filters, evaluated on the stored columns and, source by source, on the JSON itself.

use std::cmp::Ordering;

use proptest::prelude::*;
use roaring::RoaringBitmap;
use serde_json::{Number, Value, json};

use super::{map, opened, source};
use lodestone_types::{
    Comparison, Condition, Filter, FilterMap, FilterValue, Metadata, SourceRecord,
};

/// Values at a path: the scalars, and whether there is anything except null.
#[derive(Default)]
struct Reached<'a> {
    scalars: Vec<&'a Value>,
    has_value: bool,
    has_null: bool,
}

impl<'a> Reached<'a> {
    fn take(&mut self, value: &'a Value) {
        match value {
            Value::Null => self.has_null = true,
            Value::Array(items) => {
                self.has_value = true;
                items.iter().for_each(|item| self.take(item));
            }
            Value::Object(_) => self.has_value = true,
            scalar => {
                self.has_value = true;
                self.scalars.push(scalar);
            }
        }
    }

    fn walk(&mut self, map: &'a Metadata, path: &str) {
        for (key, value) in map {
            if key == path {
                self.take(value);
            } else if key.starts_with(&format!("{path}.")) {
                self.has_value = true;
            } else if let Some(rest) = path.strip_prefix(&format!("{key}.")) {
                self.descend(value, rest);
            }
        }
    }

    fn descend(&mut self, value: &'a Value, path: &str) {
        match value {
            Value::Object(map) => self.walk(map, path),
            Value::Array(items) => items.iter().for_each(|item| self.descend(item, path)),
            _ => {}
        }
    }
}

fn reach<'a>(map: &'a Metadata, path: &str) -> Reached<'a> {
    let mut reached = Reached::default();
    reached.walk(map, path);
    reached
}

fn system_fields(source: &SourceRecord) -> Metadata {
    let or_null = |text: &str| if text.is_empty() { json!([null, ""]) } else { json!(text) };
    let time = |time: lodestone_types::Timestamp| json!([time.to_string(), time.as_seconds()]);
    map(json!({
        "source_id": source.id.as_str(),
        "source_title": source.title,
        "source_type": source.kind.as_str(),
        "source_url": or_null(&source.url),
        "source_collection": null,
        "source_upload_time": time(source.uploaded_at),
        "source_last_updated_time": time(source.last_updated_at),
        "description": or_null(&source.description),
    }))
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let integer = |n: &Number| n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
    let mixed = |integer: i128, float: f64| {
        // No integer in JSON reaches 2^65 in magnitude.
        let bounded = float.clamp(-4e19, 4e19);
        let whole = bounded.trunc();
        let fraction = 0.0_f64.partial_cmp(&(bounded - whole)).unwrap();
        integer.cmp(&(whole as i128)).then(fraction)
    };
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => mixed(a, b.as_f64().unwrap()),
        (None, Some(b)) => mixed(b, a.as_f64().unwrap()).reverse(),
        (None, None) => a.as_f64().unwrap().partial_cmp(&b.as_f64().unwrap()).unwrap(),
    }
}

/// The order of two scalars; `None` for different types.
fn compare(stored: &Value, wanted: &FilterValue) -> Option<Ordering> {
    match (stored, wanted) {
        (Value::Bool(a), FilterValue::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), FilterValue::Number(b)) => Some(compare_numbers(a, b)),
        (Value::String(a), FilterValue::Text(b)) => Some(a.chars().cmp(b.chars())),
        _ => None,
    }
}

fn passes_at(reached: &Reached, comparison: &Comparison) -> bool {
    let any = |wanted: &FilterValue, accept: fn(Ordering) -> bool| {
        reached.scalars.iter().any(|stored| compare(stored, wanted).is_some_and(accept))
    };
    let equals = |wanted: &FilterValue| match wanted {
        FilterValue::Null => reached.has_null || !reached.has_value,
        wanted => any(wanted, Ordering::is_eq),
    };
    match comparison {
        Comparison::AnyOf(values) => values.iter().any(equals),
        Comparison::NoneOf(values) => !values.iter().any(equals),
        Comparison::Greater(value) => any(value, Ordering::is_gt),
        Comparison::GreaterOrEqual(value) => any(value, Ordering::is_ge),
        Comparison::Less(value) => any(value, Ordering::is_lt),
        Comparison::LessOrEqual(value) => any(value, Ordering::is_le),
        Comparison::Exists(wanted) => reached.has_value == *wanted,
    }
}

fn passes_condition(condition: &Condition, source: &SourceRecord) -> bool {
    let Condition { map, path, comparison } = condition;
    let system = system_fields(source);
    let first_key = path.split('.').next().unwrap();
    let holds = |map: &Metadata| {
        let reached = reach(map, first_key);
        reached.has_value || reached.has_null
    };
    let (tenant, document) = (&source.tenant_metadata, &source.document_metadata);
    let is_system = system.contains_key(path);
    let chosen = match map {
        FilterMap::Tenant if is_system && !holds(tenant) => &system,
        FilterMap::Tenant => tenant,
        FilterMap::Document if is_system && !holds(document) => &system,
        FilterMap::Document => document,
        FilterMap::System if is_system => &system,
        FilterMap::System if holds(document) => document,
        FilterMap::System => tenant,
    };
    let mut reached = reach(chosen, path);
    if std::ptr::eq(chosen, &system) && reached.has_null {
        reached.has_value = false; // An empty field of the source is "" and yet not there.
    }
    passes_at(&reached, comparison)
}

fn passes(filter: &Filter, source: &SourceRecord) -> bool {
    match filter {
        Filter::All => true,
        Filter::Is(condition) => passes_condition(condition, source),
        Filter::And(parts) => parts.iter().all(|part| passes(part, source)),
        Filter::Or(parts) => parts.iter().any(|part| passes(part, source)),
    }
}

fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(-3),
        json!(9_007_199_254_740_992_i64),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_994.0),
        json!(u64::MAX),
        json!(18_446_744_073_709_551_616.0),
        json!(i64::MIN),
        json!(1757402409.728),
        json!(""),
        json!("1"),
        json!("a"),
        json!("A"),
        json!("\u{ff5e}"),
        json!("\u{1f600}"),
        json!("title 1"),
        json!("doc-3"),
        json!("text"),
        json!("1757402411.000"),
    ])
}

fn key() -> impl Strategy<Value = String> {
    let keys = ["a", "b", "c", "a.b", "b.c", "a.b.c", ".", "source_title", "description"];
    prop::sample::select(keys.map(str::to_owned).to_vec())
}

fn metadata_value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    prop::collection::vec((key(), metadata_value()), 0..4)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn filter_value() -> impl Strategy<Value = FilterValue> {
    scalar().prop_map(|value| match value {
        Value::Bool(value) => FilterValue::Bool(value),
        Value::Number(value) => FilterValue::Number(value),
        Value::String(value) => FilterValue::Text(value),
        _ => FilterValue::Null,
    })
}

fn condition() -> impl Strategy<Value = Filter> {
    let comparison = prop_oneof![
        prop::collection::vec(filter_value(), 0..4).prop_map(Comparison::AnyOf),
        prop::collection::vec(filter_value(), 0..4).prop_map(Comparison::NoneOf),
        filter_value().prop_map(Comparison::Greater),
        filter_value().prop_map(Comparison::GreaterOrEqual),
        filter_value().prop_map(Comparison::Less),
        filter_value().prop_map(Comparison::LessOrEqual),
        any::<bool>().prop_map(Comparison::Exists),
    ];
    let maps = [FilterMap::Tenant, FilterMap::Document, FilterMap::System];
    let system = ["source_id", "source_type", "source_url", "source_collection"];
    let times = ["source_upload_time", "source_last_updated_time", "source_title.b", "d"];
    let names = system.into_iter().chain(times).map(str::to_owned).collect::<Vec<_>>();
    let path = prop_oneof![4 => key(), 1 => prop::sample::select(names)];
    (prop::sample::select(maps.to_vec()), path, comparison)
        .prop_map(|(map, path, comparison)| Filter::Is(Condition { map, path, comparison }))
}

pub(super) fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![8 => condition(), 1 => Just(Filter::All)];
    leaf.prop_recursive(3, 10, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Filter::And),
            prop::collection::vec(inner, 0..3).prop_map(Filter::Or),
        ]
    })
}

/// From 1 to 40 sources with 1 to 5 rows each.
pub(super) fn sources() -> impl Strategy<Value = Vec<(SourceRecord, std::ops::Range<u32>)>> {
    prop::collection::vec((metadata(), metadata(), 1_u32..=5), 1..=40).prop_map(|drafts| {
        let mut next_row = 0;
        let mut sources = Vec::new();
        for ((tenant, document, rows), number) in drafts.into_iter().zip(0..) {
            sources.push((source(number, tenant, document), next_row..next_row + rows));
            next_row += rows;
        }
        sources
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn bitmaps_equal_the_naive_answer(
        sources in sources(),
        filters in prop::collection::vec(filter(), 8),
    ) {
        let columns = opened(&sources);
        let rows = sources.last().unwrap().1.end;
        for filter in &filters {
            let passing = sources.iter().filter(|(source, _)| passes(filter, source));
            let expected: RoaringBitmap = passing.flat_map(|(_, rows)| rows.clone()).collect();
            prop_assert_eq!(columns.matching(filter, rows).unwrap(), expected, "{:?}", filter);
        }
        for (name, count) in columns.sub_tenants() {
            let own = sources.iter().filter(|(source, _)| source.sub_tenant == name);
            let expected: RoaringBitmap = own.flat_map(|(_, rows)| rows.clone()).collect();
            prop_assert_eq!(expected.len(), count);
            prop_assert_eq!(columns.sub_tenant(&name), expected);
        }
    }
}
