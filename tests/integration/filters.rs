//! Filters and `context_list`, which behave alike in all searches.

use serde_json::{Value, json};

use crate::corpus::{id_set, list, with};
use crate::support::TestServer;

const SEARCHES: [&str; 3] = ["retrieve", "full-text-search", "qna"];

/// Four sources that all match "apples": `a` and `b` have rich metadata, `c` has unusual metadata
/// and `d` has none.
fn orchard() -> TestServer {
    let server = TestServer::start();
    let items = [
        json!({"file_id": "a", "content": "apples of a",
            "tenant_metadata": {"team": "north", "only": 1},
            "document_metadata": {"year": 2019, "price": 1.0, "tags": ["red", "Green"],
                "place": {"city": {"name": "Ulm"}, "zip": "0815"}, "fresh": true,
                "name": "Alpha", "date": "2024-01-05", "gone": null, "title": "contract.pdf"}}),
        json!({"file_id": "b", "content": "apples of b",
            "tenant_metadata": {"team": "south"},
            "document_metadata": {"year": 2023, "price": 1.5, "tags": ["blue"],
                "place": {"city": {"name": "Bonn"}}, "fresh": false,
                "name": "alpha", "date": "2024-02-01", "team": "west"}}),
        json!({"file_id": "c", "content": "apples of c",
            "tenant_metadata": {"team": ["north", "east"]},
            "document_metadata": {"year": "2023", "tags": [], "place": {"city": "Ulm"},
                "name": "é", "date": 20240101, "source_type": "scroll", "mix": [1, "1"]}}),
        json!({"file_id": "d", "content": "apples of d"}),
    ];
    server.index_items("acme", "default", &items);
    server
}

/// Returns the ids that pass a filter, after checking that all three searches agree.
fn passing(server: &TestServer, filter: &Value) -> String {
    let all = with(json!({"max_chunks": 100, "alpha": 1, "search_alpha": 1}), filter);
    let retrieved = id_set(&server.chunks("apples", &all));
    assert_eq!(retrieved, id_set(&server.words("apples", &all)), "full text: {filter}");
    let answered = server.qna("apples?", &all);
    assert_eq!(retrieved, id_set(&list(&answered, "chunks")), "chunks of qna: {filter}");
    assert_eq!(retrieved, id_set(&list(&answered, "sources")), "sources of qna: {filter}");
    retrieved.concat()
}

/// Checks the sources that pass each filter on `document_metadata`.
fn check(cases: &[(Value, &str)]) {
    let server = orchard();
    for (filter, expected) in cases {
        let filter = json!({ "document_metadata": filter });
        assert_eq!(passing(&server, &filter), *expected, "{filter}");
    }
}

/// Goal: a scalar tests for equality, case-sensitively and without type coercion.
#[test]
fn a_scalar_is_equality_without_coercion() {
    check(&[
        (json!({}), "abcd"),
        (json!({"year": 2023}), "b"),
        (json!({"year": "2023"}), "c"),
        (json!({"year": 2019.0}), "a"),
        (json!({"price": 1}), "a"),
        (json!({"price": "1"}), ""),
        (json!({"fresh": true}), "a"),
        (json!({"fresh": "true"}), ""),
        (json!({"fresh": 1}), ""),
        (json!({"name": "alpha"}), "b"),
        (json!({"name": "ALPHA"}), ""),
        (json!({"name": "é"}), "c"),
        (json!({"unknown": "x"}), ""),
        (json!({"year": 2023, "fresh": false}), "b"),
        (json!({"year": 2023, "fresh": true}), ""),
    ]);
}

/// Goal: an array matches any of its members, and a stored array matches by any of its elements.
#[test]
fn arrays_match_by_any_member() {
    check(&[
        (json!({"year": [2019, 2023]}), "ab"),
        (json!({"year": [2019, "2023"]}), "ac"),
        (json!({"year": []}), ""),
        (json!({"tags": "red"}), "a"),
        (json!({"tags": "Green"}), "a"),
        (json!({"tags": "green"}), ""),
        (json!({"tags": ["red", "blue"]}), "ab"),
        (json!({"tags": {"$in": ["blue", "none"]}}), "b"),
        (json!({"tags": {"$ne": "red"}}), "bcd"),
        (json!({"tags": {"$nin": ["Green", "blue"]}}), "cd"),
        (json!({"mix": 1}), "c"),
        (json!({"mix": "1"}), "c"),
        (json!({"mix": {"$gt": 0}}), "c"),
        (json!({"tags": {"$gt": "p"}}), "a"),
    ]);
}

/// Goal: every operator compares values of one type; values of another type do not match.
#[test]
fn operators_compare_values_of_one_type() {
    check(&[
        (json!({"year": {"$eq": 2019}}), "a"),
        (json!({"year": {"$ne": 2019}}), "bcd"),
        (json!({"year": {"$gt": 2019}}), "b"),
        (json!({"year": {"$gte": 2019}}), "ab"),
        (json!({"year": {"$lt": 2023}}), "a"),
        (json!({"year": {"$lte": 2023}}), "ab"),
        (json!({"year": {"$gt": 2019.5, "$lt": 2023.5}}), "b"),
        (json!({"year": {"$gt": "2019"}}), "c"),
        (json!({"year": {"$lt": true}}), ""),
        (json!({"year": {"$in": [2019, 2020]}}), "a"),
        (json!({"year": {"$in": []}}), ""),
        (json!({"year": {"$nin": []}}), "abcd"),
        (json!({"year": {"$nin": [2019]}}), "bcd"),
        (json!({"year": {"$exists": true}}), "abc"),
        (json!({"year": {"$exists": false}}), "d"),
        (json!({"date": {"$gte": "2024-01-01", "$lt": "2024-02-01"}}), "a"),
        (json!({"date": {"$gt": 0}}), "c"),
        (json!({"name": {"$lt": "alpha"}}), "a"),
        (json!({"name": {"$gt": "z"}}), "c"),
        (json!({"fresh": {"$gt": false}}), "a"),
    ]);
}

/// Goal: null matches fields that are missing or null.
#[test]
fn null_matches_what_is_missing_or_null() {
    check(&[
        (json!({"gone": null}), "abcd"),
        (json!({"fresh": null}), "cd"),
        (json!({"fresh": {"$eq": null}}), "cd"),
        (json!({"fresh": {"$ne": null}}), "ab"),
        (json!({"fresh": [null, true]}), "acd"),
        (json!({"fresh": {"$nin": [null, true]}}), "b"),
        (json!({"gone": {"$exists": true}}), ""),
        (json!({"gone": {"$exists": false}}), "abcd"),
        (json!({"place.city.name": null}), "cd"),
    ]);
}

/// Goal: nested objects and dotted keys reach into nested maps.
#[test]
fn nested_and_dotted_keys_reach_into_maps() {
    check(&[
        (json!({"place": {"city": {"name": "Ulm"}}}), "a"),
        (json!({"place.city.name": "Ulm"}), "a"),
        (json!({"place.city": {"name": "Bonn"}}), "b"),
        (json!({"place": {"city.name": {"$in": ["Ulm", "Bonn"]}}}), "ab"),
        (json!({"place": {"city": "Ulm"}}), "c"),
        (json!({"place": {"zip": "0815", "city": {"name": "Ulm"}}}), "a"),
        (json!({"place.zip": {"$exists": true}}), "a"),
        (json!({"place.city.name": {"$ne": "Ulm"}}), "bcd"),
        (json!({"place.zip": 815}), ""),
    ]);
}

/// Goal: `$and` and `$or` combine filter objects, at the top level and below a key.
#[test]
fn and_or_combine_filter_objects() {
    check(&[
        (json!({"$or": [{"year": 2019}, {"name": "alpha"}]}), "ab"),
        (json!({"$and": [{"year": {"$gt": 2000}}, {"fresh": false}]}), "b"),
        (json!({"$or": []}), ""),
        (json!({"$and": []}), "abcd"),
        (json!({"$or": [{}]}), "abcd"),
        (json!({"year": {"$or": [{"$lt": 2020}, {"$eq": "2023"}]}}), "ac"),
        (json!({"$or": [{"$and": [{"year": 2019}, {"fresh": true}]}, {"tags": "blue"}]}), "ab"),
        (json!({"fresh": {"$exists": true}, "$or": [{"year": 2023}, {"year": "2023"}]}), "b"),
    ]);
}

/// Goal: the three maps are ANDed, and each key refers to the documented map or to a system field.
#[test]
fn the_maps_are_joined_and_system_keys_reach_through() {
    let server = orchard();
    let team = |value: Value| json!({ "team": value });
    for (filter, expected) in [
        (json!({"tenant_metadata": team(json!("north"))}), "ac"),
        (json!({"tenant_metadata": {"year": 2019}}), ""),
        (json!({"document_metadata": {"only": 1}}), ""),
        (
            json!({"tenant_metadata": team(json!("north")), "document_metadata": {"year": 2019}}),
            "a",
        ),
        (json!({"tenant_metadata": team(json!("south")), "document_metadata": {"year": 2019}}), ""),
        (json!({"tenant_metadata": {}, "document_metadata": null, "metadata": {}}), "abcd"),
        // Any other key of `metadata`: looked up in the document's metadata, then in the tenant's.
        (json!({"metadata": {"year": 2019}}), "a"),
        (json!({"metadata": team(json!("west"))}), "b"),
        (json!({"metadata": team(json!("south"))}), ""),
        (json!({"metadata": team(json!("north"))}), "ac"),
        (json!({"metadata": {"only": 1}}), "a"),
        // System keys work in all three maps and refer to the source's own fields ...
        (json!({"metadata": {"source_title": "contract.pdf"}}), "a"),
        (json!({"document_metadata": {"source_title": "contract.pdf"}}), "a"),
        (json!({"tenant_metadata": {"source_title": ["contract.pdf", "b"]}}), "ab"),
        (json!({"document_metadata": {"source_id": {"$in": ["b", "d", "x"]}}}), "bd"),
        (json!({"metadata": {"source_url": ""}}), "abcd"),
        (json!({"metadata": {"source_upload_time": {"$gt": "1"}}}), "abcd"),
        (json!({"metadata": {"source_last_updated_time": {"$lt": "1"}}}), ""),
        (json!({"metadata": {"description": "apples of c"}}), "c"),
        (json!({"metadata": {"source_collection": "x"}}), ""),
        // ... unless the map contains the key itself; in `metadata` they always do.
        (json!({"metadata": {"source_type": "text"}}), "abcd"),
        (json!({"document_metadata": {"source_type": "text"}}), "abd"),
        (json!({"document_metadata": {"source_type": "scroll"}}), "c"),
        (json!({"tenant_metadata": {"source_type": "text"}}), "abcd"),
        (json!({"metadata": {"source_type": "text"}, "context_list": ["c", "d"]}), "cd"),
    ] {
        assert_eq!(passing(&server, &filter), expected, "{filter}");
    }
}

/// Goal: filters apply before ranking, so that `max_chunks` counts matching chunks only.
#[test]
fn filters_come_before_ranking() {
    let server = TestServer::start();
    let mut items: Vec<Value> = (0..150)
        .map(|n| json!({"file_id": format!("s{n}"), "content": "apples apples apples"}))
        .collect();
    let rare = |n: usize| {
        json!({"file_id": format!("rare{n}"), "content": "Some text about apples and more.",
            "document_metadata": {"rare": true}})
    };
    items.extend((0..5).map(rare));
    server.index_items("acme", "default", &items);
    let filter = json!({"document_metadata": {"rare": true}, "max_chunks": 5, "top_n": 5});
    assert_eq!(server.chunks("apples", &filter).len(), 5);
    assert_eq!(server.words("apples", &filter).len(), 5);
    assert_eq!(list(&server.qna("apples?", &filter), "sources").len(), 5);
}

/// Goal: an unknown operator or any other violation of the grammar is a 400 in every search.
#[test]
fn a_filter_that_breaks_a_rule_is_400() {
    let server = orchard();
    for filter in [
        json!({"year": {"$around": 3}}),
        json!({"$nor": [{"year": 1}]}),
        json!({"year": {"$GT": 3}}),
        json!({"year": {"$gt": 3, "other": 1}}),
        json!({"$gt": 3}),
        json!({"year": {"$gt": null}}),
        json!({"year": {"$gt": [1]}}),
        json!({"year": {"$in": 3}}),
        json!({"year": {"$in": [[1]]}}),
        json!({"year": {"$exists": "yes"}}),
        json!({"year": [{"x": 1}]}),
        json!({"$or": {"year": 1}}),
        json!({"$and": [1]}),
        json!({"$and": [{"year": {"$x": 1}}]}),
    ] {
        for map in ["tenant_metadata", "document_metadata", "metadata"] {
            for search in SEARCHES {
                let changes = json!({ map: filter });
                let body = server.ask(search, "apples", &changes).error(400, "invalid_filter");
                assert_eq!(body["error_code"], "INVALID_PARAMETERS");
                let field = body["detail"]["errors"][0]["field"].as_str().expect("a field");
                assert!(field.starts_with(map), "{filter}: {field}");
            }
        }
    }
    for search in SEARCHES {
        for wrong in [json!("x"), json!(1), json!([]), json!([{"year": 1}])] {
            let changes = json!({ "metadata": wrong });
            assert_eq!(server.ask(search, "apples", &changes).status, 400, "{wrong}");
        }
    }
}

/// Goal: filters have at most 64 conditions in total and a depth of at most 8.
#[test]
fn filters_keep_to_their_limits() {
    let server = orchard();
    let conditions = |count: usize| {
        let each = (0..count).map(|n| json!({"year": {"$ne": n}}));
        json!({"$and": each.collect::<Vec<_>>()})
    };
    let deep = |levels: usize| (1..levels).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
    for search in SEARCHES {
        let ask = |changes: Value| server.ask(search, "apples", &changes);
        ask(json!({"metadata": conditions(64)})).ok();
        ask(json!({"metadata": conditions(65)})).error(400, "invalid_filter");
        let shared =
            |count| json!({"metadata": conditions(32), "document_metadata": conditions(count)});
        ask(shared(32)).ok();
        ask(shared(33)).error(400, "invalid_filter");
        ask(json!({"tenant_metadata": deep(8)})).ok();
        ask(json!({"tenant_metadata": deep(9)})).error(400, "invalid_filter");
    }
    assert_eq!(passing(&server, &json!({"metadata": conditions(64)})), "abcd");
}

/// Goal: filtering by a field that the schema excludes is a 400; undeclared keys are allowed.
#[test]
fn a_field_that_is_not_filterable_is_400() {
    let server = TestServer::start();
    let schema = json!({"tenant_metadata_schema": [
        {"key": "secret", "type": "string", "filterable": false},
        {"key": "open", "type": "number"},
    ]});
    server.post("/user/create_tenant?tenant_id=acme", schema).ok();
    let item = json!({"file_id": "a", "content": "apples",
        "tenant_metadata": {"secret": "x", "open": 1, "free": 2}});
    server.index_items("acme", "default", &[item]);
    for search in SEARCHES {
        for changes in [
            json!({"tenant_metadata": {"secret": "x"}}),
            json!({"tenant_metadata": {"$or": [{"open": 1}, {"secret": {"$exists": true}}]}}),
        ] {
            server.ask(search, "apples", &changes).error(400, "field_not_filterable");
        }
    }
    assert_eq!(passing(&server, &json!({"tenant_metadata": {"open": 1, "free": 2}})), "a");
    assert_eq!(passing(&server, &json!({"document_metadata": {"secret": null}})), "a");
}

/// Goal: `context_list` restricts every search to its sources.
#[test]
fn a_context_list_limits_every_search_to_it() {
    let server = orchard();
    for (sources, expected) in [
        (json!(["b"]), "b"),
        (json!(["d", "a", "a"]), "ad"),
        (json!(["unknown", "c"]), "c"),
        (json!(["unknown"]), ""),
        (json!(["A"]), ""),
        (json!([]), "abcd"),
        (json!(null), "abcd"),
    ] {
        assert_eq!(passing(&server, &json!({"context_list": sources})), expected, "{sources}");
    }
    let nothing = server.qna("apples?", &json!({"context_list": ["unknown"]}));
    assert_eq!((&nothing["chunks"], &nothing["sources"]), (&json!([]), &json!([])));
    assert!(nothing["answer"].as_str().is_some_and(|answer| !answer.is_empty()));
    let joined = json!({"context_list": ["a", "b"], "document_metadata": {"fresh": false}});
    assert_eq!(passing(&server, &joined), "b");
    let ids = |count: usize| (0..count).map(|n| format!("s{n}")).collect::<Vec<_>>();
    for search in SEARCHES {
        server.ask(search, "apples", &json!({"context_list": ids(1000)})).ok();
        let many = json!({"context_list": ids(1001)});
        server.ask(search, "apples", &many).error(400, "too_many_items");
        let wrong = json!({"context_list": ["a/b"]});
        server.ask(search, "apples", &wrong).error(400, "invalid_identifier");
    }
}

/// Goal: naming a source of another scope in `context_list` does not make it searchable.
#[test]
fn a_context_list_does_not_reach_into_another_scope() {
    let server = orchard();
    server.index("acme", "north", "n", "apples of the north");
    server.index("other", "default", "o", "apples of others");
    assert_eq!(passing(&server, &json!({"context_list": ["n", "o"]})), "");
    assert_eq!(passing(&server, &json!({"context_list": ["n"], "sub_tenant_id": "north"})), "n");
}

/// Goal: a filter that matches nothing because of the types of its values causes a warning in every
/// search.
#[test]
fn values_of_another_type_than_the_stored_are_told() {
    let server = orchard();
    let field = "document_metadata.price";
    let told = format!("{field} is compared with texts but its stored values are numbers");
    let filter = json!({"document_metadata": {"price": {"$lt": "2"}}});
    let check = |warnings: &Value| {
        let warning = &warnings[0];
        assert_eq!(warning["code"], "filter_type_mismatch", "{warnings}");
        assert_eq!(warning["field"], field, "{warnings}");
        assert!(warning["message"].as_str().expect("a text").starts_with(&told), "{warnings}");
    };
    for search in ["retrieve", "qna"] {
        check(&server.ask(search, "apples", &filter).ok()["metadata"]["warnings"]);
    }
    let faceted = with(filter.clone(), &json!({"facets": []}));
    check(&server.ask("full-text-search", "apples", &faceted).ok()["warnings"]);
    let list = server.ask("full-text-search", "apples", &filter);
    let header = list.headers["x-lodestone-warnings"].to_str().expect("ASCII");
    assert!(header.starts_with(&told), "{header}");
}

/// Goal: a key that no source has causes a warning, in a filter that matches nothing and in facets.
#[test]
fn keys_without_values_are_told_of() {
    let server = orchard();
    let filter = json!({"document_metadata": {"Price": 1}});
    for search in ["retrieve", "qna"] {
        let warnings = &server.ask(search, "apples", &filter).ok()["metadata"]["warnings"];
        assert_eq!(warnings[0]["code"], "filter_unknown_key", "{warnings}");
        assert_eq!(warnings[0]["field"], "document_metadata.Price", "{warnings}");
    }
    let facets = json!({"facets": ["Price", "price"]});
    let counted = server.ask("full-text-search", "apples", &facets).ok();
    let codes: Vec<&Value> = counted["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|warning| &warning["code"])
        .collect();
    assert_eq!(codes, ["facet_unknown_key"], "{}", counted["warnings"]);
}

/// Goal: filter names of other products are ignored, as all unknown names are, with a warning.
#[test]
fn names_that_narrow_elsewhere_are_told_of() {
    let server = orchard();
    let elsewhere = json!({"filters": {"price": 1}, "sub_tenant": "north"});
    let told = |warnings: &Value| {
        let message = |warning: &Value| warning["message"].as_str().expect("a text").to_owned();
        let messages: Vec<String> =
            warnings.as_array().expect("a list").iter().map(message).collect();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(messages[0].contains("did you mean document_metadata?"), "{messages:?}");
        assert!(messages[1].contains("did you mean sub_tenant_id?"), "{messages:?}");
    };
    for search in ["retrieve", "qna"] {
        told(&server.ask(search, "apples", &elsewhere).ok()["metadata"]["warnings"]);
    }
    let faceted = with(elsewhere.clone(), &json!({"facets": []}));
    told(&server.ask("full-text-search", "apples", &faceted).ok()["warnings"]);
    let list = server.ask("full-text-search", "apples", &elsewhere);
    assert!(list.headers.contains_key("x-lodestone-warnings"));
}

/// Goal: there is no type warning if any source stores a value of that type.
#[test]
fn types_are_told_of_nothing_else() {
    let server = orchard();
    server.index_items("acme", "other", &[json!({"file_id": "x", "content": "apples of x"})]);
    for (changes, expected) in [
        (json!({"document_metadata": {"price": "1"}}), 1),
        (json!({"document_metadata": {"price": 7}}), 0),
        (json!({"document_metadata": {"price": "1"}, "sub_tenant_id": "other"}), 1),
        (json!({"document_metadata": {"price": "1"}, "sub_tenant_id": "empty"}), 0),
    ] {
        let found = server.ask("retrieve", "apples", &changes).ok();
        assert_eq!(found["chunks"], json!([]), "{changes}");
        let warnings = found["metadata"]["warnings"].as_array().expect("a list");
        assert_eq!(warnings.len(), expected, "{changes}");
    }
}
