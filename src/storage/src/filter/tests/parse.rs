//! The grammar of filters, its limits and its errors.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::filter::{FilterError, RequestFilter, parse, parse_for_vectors, sources};
use lodestone_types::limits::FILTER_LIST_MAX;
use lodestone_types::{
    Comparison, Condition, ErrorKind, FieldType, Filter, FilterMap, FilterValue,
};
use lodestone_types::{Metadata, SchemaField, SourceId, TenantSchema};

fn document(value: Value) -> Result<Filter, FilterError> {
    parse(None, value.as_object(), None).map(filter)
}

fn filter(parsed: RequestFilter) -> Filter {
    parsed.for_schema(None).unwrap().clone()
}

fn is(map: FilterMap, path: &str, comparison: Comparison) -> Filter {
    Filter::Is(Condition { map, path: path.into(), comparison })
}

fn number(value: i64) -> FilterValue {
    FilterValue::Number(value.into())
}

fn any_of(path: &str, values: Vec<FilterValue>) -> Filter {
    is(FilterMap::Document, path, Comparison::AnyOf(values))
}

/// Field and message of the error.
fn error_of(value: Value) -> (String, String) {
    let error = document(value).unwrap_err();
    assert_eq!((error.reason(), error.kind()), ("invalid_filter", ErrorKind::Invalid));
    (error.field().unwrap().to_owned(), error.to_string())
}

#[test]
fn nothing_given_is_no_filter() {
    let empty = Metadata::new();
    for value in [None, Some(&empty)] {
        assert_eq!(parse(value, value, value).map(filter), Ok(Filter::All));
    }
    assert_eq!(document(json!({"a": {}, "$and": [{}]})), Ok(Filter::All));
}

#[test]
fn plain_values_are_equality_and_any_of() {
    let text = |text: &str| FilterValue::Text(text.into());
    assert_eq!(document(json!({"a": "x"})), Ok(any_of("a", vec![text("x")])));
    assert_eq!(document(json!({"a": null})), Ok(any_of("a", vec![FilterValue::Null])));
    assert_eq!(document(json!({"a": []})), Ok(any_of("a", vec![])));
    let mixed = any_of("a", vec![text("x"), number(1), FilterValue::Bool(true)]);
    assert_eq!(document(json!({"a": ["x", 1, true]})), Ok(mixed));
    let both = vec![any_of("a.b", vec![number(1)]), any_of("a.c.d", vec![number(2)])];
    assert_eq!(document(json!({"a": {"b": 1}, "a.c": {"d": 2}})), Ok(Filter::And(both)));
}

#[test]
fn the_maps_are_anded() {
    let (a, b, c) = (json!({"a": 1}), json!({"b": 2}), json!({"c": 3}));
    let one = |map, path, value| is(map, path, Comparison::AnyOf(vec![number(value)]));
    let expected = Filter::And(vec![
        one(FilterMap::Tenant, "a", 1),
        one(FilterMap::Document, "b", 2),
        one(FilterMap::System, "c", 3),
    ]);
    assert_eq!(parse(a.as_object(), b.as_object(), c.as_object()).map(filter), Ok(expected));
}

#[test]
fn operators() {
    let one = || vec![number(1)];
    for (operator, operand, comparison) in [
        ("$eq", json!(1), Comparison::AnyOf(one())),
        ("$ne", json!(1), Comparison::NoneOf(one())),
        ("$in", json!([1]), Comparison::AnyOf(one())),
        ("$nin", json!([1]), Comparison::NoneOf(one())),
        ("$gt", json!(1), Comparison::Greater(number(1))),
        ("$gte", json!(1), Comparison::GreaterOrEqual(number(1))),
        ("$lt", json!(1), Comparison::Less(number(1))),
        ("$lte", json!(1), Comparison::LessOrEqual(number(1))),
        ("$exists", json!(false), Comparison::Exists(false)),
    ] {
        let parsed = document(json!({"year": {operator: operand}}));
        assert_eq!(parsed, Ok(is(FilterMap::Document, "year", comparison)), "{operator}");
    }
}

#[test]
fn logical_operators_keep_map_and_path() {
    let less = is(FilterMap::Document, "y", Comparison::Less(number(1)));
    let equal = any_of("y", vec![number(5)]);
    let either = Filter::Or(vec![less, equal]);
    let outside = json!({"$or": [{"y": {"$lt": 1}}, {"y": 5}]});
    assert_eq!(document(outside), Ok(either.clone()));
    let inside = json!({"y": {"$or": [{"$lt": 1}, {"$eq": 5}]}});
    assert_eq!(document(inside), Ok(either.clone()));
    let beside = document(json!({"a": 1, "$or": [{"y": {"$lt": 1}}, {"y": 5}]}));
    assert_eq!(beside, Ok(Filter::And(vec![any_of("a", vec![number(1)]), either])));
    assert_eq!(document(json!({"$or": []})), Ok(Filter::Or(vec![])));
}

#[test]
fn errors_name_the_field_and_the_operator() {
    for (value, field) in [
        (json!({"year": {"$foo": 1}}), "document_metadata.year.$foo"),
        (json!({"year": {"$gt": [1]}}), "document_metadata.year.$gt"),
        (json!({"year": {"$gt": null}}), "document_metadata.year.$gt"),
        (json!({"year": {"$in": 1}}), "document_metadata.year.$in"),
        (json!({"year": {"$in": [1, {}]}}), "document_metadata.year.$in[1]"),
        (json!({"year": {"$eq": {}}}), "document_metadata.year.$eq"),
        (json!({"year": {"$exists": 1}}), "document_metadata.year.$exists"),
        (json!({"year": [[1]]}), "document_metadata.year[0]"),
        (json!({"year": {"$gt": 1, "b": 2}}), "document_metadata.year"),
        (json!({"year.$gt": 1}), "document_metadata.year.$gt"),
        (json!({"$gt": 1}), "document_metadata.$gt"),
        (json!({"$or": {"a": 1}}), "document_metadata.$or"),
        (json!({"$or": [{"a": 1}, null]}), "document_metadata.$or[1]"),
        (json!({"$and": [{"a": {"$bar": 1}}]}), "document_metadata.$and[0].a.$bar"),
    ] {
        let (found, message) = error_of(value.clone());
        assert_eq!(found, field, "{value}");
        assert!(message.starts_with(field), "{message}");
    }
    assert!(error_of(json!({"k".repeat(1 << 20): {"$foo": 1}})).1.len() < 300);
}

#[test]
fn conditions_are_counted_over_the_whole_request() {
    let of = |count: usize| -> Metadata {
        (0..count).map(|number| (format!("k{number}"), json!(1))).collect()
    };
    assert!(parse(Some(&of(32)), None, Some(&of(32))).is_ok());
    let error = parse(Some(&of(32)), None, Some(&of(33))).unwrap_err();
    assert_eq!(error.field(), Some("metadata.k32"));
    let values: Vec<u32> = (0..1000).collect();
    assert!(document(json!({"a": values})).is_ok(), "an any-of is one condition");
}

#[test]
fn values_are_counted() {
    let values = |count: usize| json!({"$in": vec![1; count]});
    assert!(document(json!({"a": values(FILTER_LIST_MAX)})).is_ok());
    let (field, message) = error_of(json!({"a": values(FILTER_LIST_MAX + 1)}));
    assert_eq!(field, "document_metadata.a.$in");
    let rule = format!("has {} values; at most {FILTER_LIST_MAX} are", FILTER_LIST_MAX + 1);
    assert!(message.contains(&rule), "{message}");
}

#[test]
fn a_filter_of_vectors_reads_their_metadata() {
    assert_eq!(parse_for_vectors(None), Ok(Filter::All));
    let parsed = parse_for_vectors(json!({"a": 1}).as_object());
    assert_eq!(parsed, Ok(any_of("a", vec![number(1)])));
    let error = parse_for_vectors(json!({"a": {"$foo": 1}}).as_object()).unwrap_err();
    assert_eq!(error.field(), Some("filter.a.$foo"));
}

#[test]
fn depth_is_limited() {
    let deep = |levels: usize| (1..levels).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
    assert!(document(deep(8)).is_ok());
    assert!(error_of(deep(9)).1.contains("deeper than 8"));
    let either = |levels: usize| (1..levels).fold(json!({"a": 1}), |i, _| json!({"$or": [i]}));
    assert!(document(either(8)).is_ok());
    assert!(error_of(either(9)).1.contains("deeper than 8"));
}

#[test]
fn fields_that_are_not_filterable_are_refused() {
    let field = |key: &str, filterable| SchemaField {
        key: key.into(),
        field_type: FieldType::String,
        searchable: false,
        filterable,
    };
    let schema = TenantSchema { fields: vec![field("open", true), field("shut", false)] };
    let shut = json!({"$or": [{"shut.inner": {"$ne": 1}}]});
    let shut = shut.as_object();
    let checked = |tenant, document, metadata| {
        let parsed = parse(tenant, document, metadata)?;
        parsed.for_schema(Some(&schema)).cloned()
    };
    for (parsed, place) in
        [(checked(shut, None, None), "tenant_metadata"), (checked(None, None, shut), "metadata")]
    {
        let error = parsed.unwrap_err();
        assert_eq!(error.reason(), "field_not_filterable");
        assert_eq!(error.field(), Some(format!("{place}.$or[0].shut.inner.$ne").as_str()));
    }
    assert!(checked(None, shut, None).is_ok());
    let open = json!({"open": 1, "undeclared": 1, "source_title": 1});
    let open = open.as_object();
    assert!(checked(open, open, open).is_ok());
}

#[test]
fn a_context_list_names_sources_only() {
    let ids = [SourceId::parse("a").unwrap(), SourceId::parse("b").unwrap()];
    let values = ["a", "b"].map(|id| FilterValue::Text(id.into())).to_vec();
    let named = is(FilterMap::System, "source_id", Comparison::AnyOf(values));
    assert_eq!(sources(&ids), named);
    // A filter given beside it still applies, and is still checked against the schema.
    let (shut, key) = (json!({"shut": 1}), any_of("shut", vec![number(1)]));
    let over = |filter: RequestFilter| filter.over_sources(&ids);
    let both = parse(None, shut.as_object(), None).map(over).map(filter);
    assert_eq!(both, Ok(Filter::And(vec![named, key])));
    let field = SchemaField {
        key: "shut".into(),
        field_type: FieldType::String,
        searchable: false,
        filterable: false,
    };
    let of_tenant = parse(shut.as_object(), None, None).map(over).unwrap();
    let error = of_tenant.for_schema(Some(&TenantSchema { fields: vec![field] })).unwrap_err();
    assert_eq!(error.field(), Some("tenant_metadata.shut"));
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "a", "a.b", "", ".", "source_id", "$eq", "$ne", "$gt", "$in", "$nin", "$exists", "$and",
        "$or", "$foo", "$",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(12, 64, 4, move |inner| {
        let entries = prop::collection::vec((word.clone(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            entries.prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, v)| (key.to_owned(), v)).collect())
            }),
        ]
    })
}

proptest! {
    /// Goal: any JSON is a filter or an error of the request, never a panic.
    #[test]
    fn arbitrary_json_never_panics(value in arbitrary_json()) {
        let map = value.as_object();
        match parse(map, map, map) {
            Ok(_) => {}
            Err(error) => prop_assert_eq!(error.reason(), "invalid_filter"),
        }
    }
}
