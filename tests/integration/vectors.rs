//! Vectors that clients upload: stored, searched, replaced, deleted, rejected.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::corpus::{list, with};
use crate::support::{KEY, Reply, TestServer};

const ROWS_MAX: usize = 2000;
const WIDTH_MAX: usize = 3024;

/// Starts a server with the embeddings tenant `v`.
fn empty() -> TestServer {
    let server = TestServer::start();
    let made = server.post("/embeddings/create_tenant?tenant_id=v", Value::Null).ok();
    assert_eq!((&made["tenant_id"], &made["sub_tenant_id"]), (&json!("v"), &json!("default")));
    assert_eq!((&made["status"], &made["success"]), (&json!("success"), &json!(true)));
    server
}

fn upload(server: &TestServer, id: &str, rows: Value) -> Reply {
    let body = json!({"file_id": id, "embeddings": rows});
    server.post("/upload/upload_embeddings?tenant_id=v", body)
}

fn update(server: &TestServer, rows: Value) -> Reply {
    let body = json!({ "embeddings": rows });
    server.call("PATCH", "/upload/update_embeddings?tenant_id=v", body)
}

fn search(server: &TestServer, queries: Value, max_chunks: Value) -> Reply {
    let body = json!({"tenant_id": "v", "embeddings": queries, "max_chunks": max_chunks});
    server.post("/embeddings/search", body)
}

fn by_ids(server: &TestServer, ids: &[&str]) -> Value {
    let body = json!({"tenant_id": "v", "chunk_ids": ids});
    server.post("/embeddings/retrieve_by_ids", body).ok()
}

fn delete(server: &TestServer, ids: Value) -> Reply {
    server.call("DELETE", "/embeddings/delete", json!({"tenant_id": "v", "chunk_ids": ids}))
}

/// Everything that is stored, as the listings show it.
fn stored(server: &TestServer) -> Value {
    json!({"stats": server.get("/tenant/stats?tenant_id=v").ok(),
        "sources": server.get("/list/sources?tenant_id=v").ok()})
}

/// Encodes rows of equal width as JSON with short numbers.
fn matrix(rows: usize, width: usize) -> String {
    let row = |n: usize| {
        let number = |at: usize| if at == n % width { "1" } else { "0" };
        let numbers: Vec<&str> = (0..width).map(number).collect();
        format!("[{}]", numbers.join(","))
    };
    format!("[{}]", (0..rows).map(row).collect::<Vec<_>>().join(","))
}

fn upload_text(server: &TestServer, id: &str, rows: &str) -> Reply {
    let request = Request::post("/upload/upload_embeddings?tenant_id=v")
        .header("authorization", format!("Bearer {KEY}"))
        .body(Body::from(format!("{{\"file_id\": \"{id}\", \"embeddings\": {rows}}}")))
        .unwrap();
    server.send(request)
}

/// Goal: rows get ids by their position and can be found by similarity at once.
#[test]
fn rows_are_named_by_their_place_and_found_by_nearness() {
    let server = empty();
    let rows = json!([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 2]]);
    let told = upload(&server, "batch", rows).ok();
    assert_eq!(told["chunk_ids"], json!(["batch_0", "batch_1", "batch_2"]));
    assert_eq!((&told["file_id"], &told["batch_id"]), (&json!("batch"), &json!("batch")));
    assert_eq!((&told["status"], &told["overwritten"]), (&json!("success"), &json!(false)));
    let found = search(&server, json!([0.6, 0.8, 0]), json!(null)).ok();
    assert_eq!(found["chunk_ids"], json!(["batch_1", "batch_0", "batch_2"]));
    let scores: Vec<f64> =
        list(&found, "scores").iter().map(|score| score.as_f64().unwrap()).collect();
    let cosines = [1.0, 0.6, 0.0];
    assert!(scores.iter().zip(cosines).all(|(a, b)| (a - b).abs() < 1e-5), "{scores:?}");
    // Only the direction of a vector matters, not its length.
    let scaled = search(&server, json!([0, 0, -5]), json!(3)).ok();
    assert_eq!(scaled["chunk_ids"][2], "batch_2");
    assert!((scaled["scores"][2].as_f64().unwrap() + 1.0).abs() < 1e-5);
    let flat = search(&server, json!([0.1, 0.2, 0.3]), json!(2)).ok();
    let nested = search(&server, json!([[0.1, 0.2, 0.3]]), json!(2)).ok();
    assert_eq!(flat, nested, "one vector in either form");
    let pairs: Vec<Value> = list(&flat, "chunk_ids")
        .iter()
        .zip(list(&flat, "scores"))
        .map(|(id, score)| json!({"chunk_id": id, "score": score}))
        .collect();
    assert_eq!(flat["results"], json!([pairs]));
    for max_chunks in [0, 201] {
        search(&server, json!([1, 0, 0]), json!(max_chunks)).error(400, "invalid_value");
    }
    search(&server, json!([1, 0, 0]), json!(200)).ok();
}

/// Goal: a search for several vectors returns one list per vector, and a merged list with the best
/// score of each chunk.
#[test]
fn several_vectors_are_merged_and_kept_apart() {
    let server = empty();
    upload(&server, "a", json!([[1, 0], [0, 1], [0.8, 0.6], [-1, 0]])).ok();
    let found = search(&server, json!([[1, 0], [0, 1]]), json!(3)).ok();
    assert_eq!(list(&found, "results").len(), 2);
    let of = |at: usize| -> Vec<String> {
        let hits = found["results"][at].as_array().unwrap();
        hits.iter().map(|hit| hit["chunk_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of(0), ["a_0", "a_2", "a_1"]);
    assert_eq!(of(1)[..2], ["a_1", "a_2"]);
    assert_eq!(found["chunk_ids"], json!(["a_0", "a_1", "a_2"]), "up to max_chunks in all");
    assert!((found["scores"][2].as_f64().unwrap() - 0.8).abs() < 1e-5, "the better of .8 and .6");
    let swapped = search(&server, json!([[0, 1], [1, 0]]), json!(3)).ok();
    assert_eq!(swapped["chunk_ids"], found["chunk_ids"]);
    assert_eq!(swapped["results"][0], found["results"][1], "in the order of the request");
}

/// Goal: values are returned as the 32-bit floats that were sent, and all-zero vectors score 0.
#[test]
fn values_come_back_as_they_were_sent() {
    let server = empty();
    let values = [0.1_f32, -1e-38, 3.4e38, 1.0 / 3.0, f32::MIN_POSITIVE, -0.0, 16_777_217.0];
    upload(&server, "odd", json!([values])).ok();
    let given = by_ids(&server, &["odd_0"])["embeddings"]["odd_0"].clone();
    let given: Vec<f32> =
        given.as_array().unwrap().iter().map(|value| value.as_f64().unwrap() as f32).collect();
    assert_eq!(given, values);
    upload(&server, "zero", json!([[0, 0, 0, 0, 0, 0, 0]])).ok();
    let found = search(&server, json!([1, 1, 1, 1, 1, 1, 1]), json!(10)).ok();
    let at = list(&found, "chunk_ids").iter().position(|id| id == "zero_0").expect("it is found");
    assert_eq!(found["scores"][at], 0.0);
    let nothing = search(&server, json!([0, 0, 0, 0, 0, 0, 0]), json!(10)).ok();
    assert!(list(&nothing, "scores").iter().all(|score| *score == 0.0));
}

/// Goal: the largest matrix is accepted, and is searchable when the call returns.
#[test]
fn the_largest_matrix_is_accepted() {
    let server = empty();
    let told = upload_text(&server, "big", &matrix(ROWS_MAX, WIDTH_MAX)).ok();
    assert_eq!(list(&told, "chunk_ids").len(), ROWS_MAX);
    assert_eq!(told["chunk_ids"][1999], "big_1999");
    let stats = server.get("/tenant/stats?tenant_id=v").ok();
    assert_eq!((&stats["object_count"], &stats["vector_dimension"]), (&json!(2000), &json!(3024)));
    let query: Vec<u8> = (0..WIDTH_MAX).map(|at| u8::from(at == 1234)).collect();
    let found = search(&server, json!(query), json!(1)).ok();
    assert_eq!(found["chunk_ids"], json!(["big_1234"]));
    assert!((found["scores"][0].as_f64().unwrap() - 1.0).abs() < 1e-5);
    let last = by_ids(&server, &["big_1999"])["embeddings"]["big_1999"].clone();
    assert_eq!((&last[1999], &last[1998]), (&json!(1.0), &json!(0.0)));
    let rows: Vec<Value> = (0..=ROWS_MAX).map(|n| json!(format!("big_{n}"))).collect();
    delete(&server, json!(rows)).error(400, "too_many_items");
    let told = delete(&server, json!(rows[..ROWS_MAX])).ok();
    assert_eq!(told["total_deleted"], ROWS_MAX);
}

/// Goal: a matrix that exceeds a limit is a 400, and nothing is stored.
#[test]
fn a_matrix_that_breaks_a_limit_is_400_and_nothing_is_stored() {
    let server = empty();
    let before = stored(&server);
    assert_eq!(before["stats"]["vector_dimension"], Value::Null);
    let wide = matrix(1, WIDTH_MAX + 1);
    upload_text(&server, "x", &matrix(ROWS_MAX + 1, 2)).error(400, "too_many_items");
    upload_text(&server, "x", &wide).error(400, "too_many_items");
    for (rows, reason) in [
        ("[[1,2],[1]]", "dimension_mismatch"),
        ("[[1],[1,2]]", "dimension_mismatch"),
        ("[[1,2],[]]", "invalid_value"),
        ("[]", "invalid_value"),
        ("[[]]", "invalid_value"),
        ("[1,2]", "invalid_value"),
        ("[[\"1\",2]]", "invalid_value"),
        ("[[null,2]]", "invalid_value"),
        ("[[[1,2]]]", "invalid_value"),
        ("[[1e39,2]]", "invalid_value"),
        ("{\"x_0\":[1,2]}", "invalid_value"),
        ("\"text\"", "invalid_value"),
        ("null", "missing_field"),
        ("[[NaN,2]]", "malformed_body"),
        ("[[1,2]", "malformed_body"),
    ] {
        let body = upload_text(&server, "x", rows).error(400, reason);
        assert_eq!(body["error_code"], "INVALID_PARAMETERS", "{rows}");
    }
    let body = upload_text(&server, "x", "[[1,2],[3,\"x\"]]").error(400, "invalid_value");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("expected a number as value 1 of row 1"), "{message}");
    assert_eq!(stored(&server), before);
    upload(&server, "a", json!([[1, 2]])).ok();
    let before = stored(&server);
    upload(&server, "b", json!([[1, 2, 3]])).error(400, "dimension_mismatch");
    upload(&server, "a", json!([[1]])).error(400, "dimension_mismatch");
    assert_eq!(stored(&server), before);
    assert_eq!(by_ids(&server, &["a_0"])["embeddings"]["a_0"], json!([1.0, 2.0]));
}

/// Goal: searches, updates and lists of ids enforce their limits.
#[test]
fn searches_updates_and_lists_of_ids_keep_to_their_limits() {
    let server = empty();
    upload(&server, "a", json!([[1, 2], [3, 4]])).ok();
    let before = stored(&server);
    let many = |count: usize| vec![json!([1, 2]); count];
    search(&server, json!(many(100)), json!(1)).ok();
    search(&server, json!(many(101)), json!(1)).error(400, "too_many_items");
    let wide: Value = serde_json::from_str(&matrix(1, WIDTH_MAX + 1)).unwrap();
    search(&server, wide[0].clone(), json!(1)).error(400, "too_many_items");
    for (queries, reason) in [
        (json!([1, 2, 3]), "dimension_mismatch"),
        (json!([[1, 2], [1]]), "dimension_mismatch"),
        (json!([]), "invalid_value"),
        (json!([[]]), "invalid_value"),
        (json!([1, [2]]), "invalid_value"),
        (json!(["1", "2"]), "invalid_value"),
        (json!(null), "missing_field"),
    ] {
        search(&server, queries, json!(1)).error(400, reason);
    }
    let named = |count: usize| -> Value {
        (0..count)
            .map(|n| (format!("a_{n}"), json!([1, 2])))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    update(&server, named(2000)).error(404, "embeddings_not_found");
    update(&server, named(2001)).error(400, "too_many_items");
    for (rows, reason) in [
        (json!({}), "invalid_value"),
        (json!([[1, 2]]), "invalid_value"),
        (json!({"a_0": [1, 2, 3]}), "dimension_mismatch"),
        (json!({"a_0": [1, 2], "a_1": [1]}), "dimension_mismatch"),
        (json!({"a_0": []}), "invalid_value"),
        (json!({"a_0": [1, 2], "b_0": [1, 2]}), "invalid_value"),
        (json!({"a": [1, 2]}), "invalid_identifier"),
        (json!({"a_x": [1, 2]}), "invalid_identifier"),
        (json!({"a_-1": [1, 2]}), "invalid_identifier"),
    ] {
        update(&server, rows).error(400, reason);
    }
    let ids = |count: usize| (0..count).map(|n| format!("a_{n}")).collect::<Vec<_>>();
    let lookup = |ids: Vec<String>| {
        let body = json!({"tenant_id": "v", "chunk_ids": ids});
        server.post("/embeddings/retrieve_by_ids", body)
    };
    lookup(ids(2000)).ok();
    lookup(ids(2001)).error(400, "too_many_items");
    assert_eq!(lookup(ids(0)).status, 400);
    assert_eq!(delete(&server, json!([])).status, 400);
    assert_eq!(stored(&server), before);
}

/// Goal: the first upload fixes the dimension of all sub-tenants until the tenant is deleted.
#[test]
fn the_first_upload_fixes_the_width_of_the_tenant() {
    let server = empty();
    let north = "/upload/upload_embeddings?tenant_id=v&sub_tenant_id=north";
    server.post(north, json!({"embeddings": [[1, 2, 3]]})).ok();
    upload(&server, "a", json!([[1, 2]])).error(400, "dimension_mismatch");
    search(&server, json!([1, 2]), json!(1)).error(400, "dimension_mismatch");
    let empty = search(&server, json!([1, 2, 3]), json!(1)).ok();
    assert_eq!((&empty["chunk_ids"], &empty["scores"]), (&json!([]), &json!([])));
    let path = "/tenant/delete_sub_tenant?tenant_id=v&sub_tenant_id=north";
    server.call("DELETE", path, Value::Null).ok();
    upload(&server, "a", json!([[1, 2]])).error(400, "dimension_mismatch");
    assert_eq!(server.get("/tenant/stats?tenant_id=v").ok()["vector_dimension"], 3);
    server.call("DELETE", "/tenant/delete?tenant_id=v&confirm=v", Value::Null).ok();
    server.post("/embeddings/create_tenant?tenant_id=v", Value::Null).ok();
    upload(&server, "a", json!([[1, 2]])).ok();
}

/// Goal: searching an embeddings tenant without vectors returns empty lists.
#[test]
fn an_empty_tenant_of_vectors_answers_with_empty_lists() {
    let server = empty();
    let found = search(&server, json!([[1, 2], [3, 4]]), json!(5)).ok();
    assert_eq!((&found["chunk_ids"], &found["scores"]), (&json!([]), &json!([])));
    assert_eq!(found["results"], json!([[], []]), "one list a query vector");
    let given = by_ids(&server, &["a_0"]);
    assert_eq!(given["embeddings"], json!({}));
    assert_eq!(given["not_found_chunk_ids"], json!(["a_0"]));
}

/// Goal: `status` contains every id, `total_deleted` counts the deleted rows, and look-ups no
/// longer find them.
#[test]
fn deleted_rows_are_counted_named_and_gone() {
    let server = empty();
    upload(&server, "a", json!([[1, 0], [0, 1], [1, 1]])).ok();
    upload(&server, "under_score_", json!([[1, 2]])).ok();
    let ids = json!(["a_1", "a_1", "a_7", "no", "under_score__0", "a_01"]);
    let told = delete(&server, ids.clone()).ok();
    let status = json!({"a_01": false, "a_1": true, "a_7": false, "no": false,
        "under_score__0": true});
    assert_eq!((&told["status"], &told["total_deleted"]), (&status, &json!(2)));
    let given = by_ids(&server, &["a_1", "a_0", "under_score__0", "a_2"]);
    assert_eq!(given["not_found_chunk_ids"], json!(["a_1", "under_score__0"]));
    assert_eq!(given["embeddings"], json!({"a_0": [1.0, 0.0], "a_2": [1.0, 1.0]}));
    let found = search(&server, json!([0, 1]), json!(10)).ok();
    assert_eq!(found["chunk_ids"], json!(["a_2", "a_0"]));
    let sources = server.sources("v", "default");
    assert_eq!(sources.len(), 1, "a batch with no rows left is not listed");
    assert_eq!((&sources[0]["id"], &sources[0]["chunk_count"]), (&json!("a"), &json!(2)));
    assert_eq!(server.get("/tenant/stats?tenant_id=v").ok()["object_count"], 2);
    let again = delete(&server, ids).ok();
    assert_eq!((&again["total_deleted"], &again["success"]), (&json!(0), &json!(true)));
    assert_ne!(again["message"], told["message"]);
}

/// Goal: `embeddings/delete` is atomic, even across several batches.
#[test]
fn a_deletion_of_rows_is_one_step() {
    let server = empty();
    upload(&server, "kept", json!([[1, 1]])).ok();
    for _ in 0..15 {
        for id in ["a", "b"] {
            upload(&server, id, json!([[1, 0], [0, 1]])).ok();
        }
        let ids = ["a_0", "a_1", "b_0", "b_1"];
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                loop {
                    let left = by_ids(&server, &ids)["embeddings"].as_object().unwrap().len();
                    assert!(left == 4 || left == 0, "{left} rows are left");
                    if left == 0 {
                        return;
                    }
                }
            });
            assert_eq!(delete(&server, json!(ids)).ok()["total_deleted"], 4);
            reader.join().expect("the reader saw all or none");
        });
    }
    assert_eq!(by_ids(&server, &["kept_0"])["not_found_chunk_ids"], json!([]));
}

/// Goal: an update with unknown chunk ids is a 404 that names them, and changes nothing.
#[test]
fn an_update_is_all_or_nothing() {
    let server = empty();
    upload(&server, "a", json!([[1, 0], [0, 1], [1, 1]])).ok();
    let body = update(&server, json!({"a_0": [5, 5], "a_3": [5, 5], "a_9": [5, 5]}));
    let body = body.error(404, "embeddings_not_found");
    assert_eq!(body["error"], "Embeddings not found");
    assert_eq!(body["not_found"], json!(["a_3", "a_9"]), "at the top level (8.15)");
    update(&server, json!({"none_0": [5, 5]})).error(404, "embeddings_not_found");
    assert_eq!(by_ids(&server, &["a_0"])["embeddings"]["a_0"], json!([1.0, 0.0]));
    let told = update(&server, json!({"a_2": [-1, 0], "a_0": [0, -1]})).ok();
    assert_eq!((&told["updated_count"], &told["batch_id"]), (&json!(2), &json!("a")));
    assert_eq!(told["chunk_ids"], json!(["a_2", "a_0"]));
    assert_eq!(told["file_id"], "a");
    let all = by_ids(&server, &["a_0", "a_1", "a_2"])["embeddings"].clone();
    assert_eq!(all, json!({"a_0": [0.0, -1.0], "a_1": [0.0, 1.0], "a_2": [-1.0, 0.0]}));
    let found = search(&server, json!([-1, 0]), json!(1)).ok();
    assert_eq!(found["chunk_ids"], json!(["a_2"]), "searchable when the call returns");
    assert_eq!(server.get("/tenant/stats?tenant_id=v").ok()["object_count"], 3);
}

/// Goal: an upload replaces an existing batch as a whole.
#[test]
fn an_upload_replaces_its_batch_as_a_whole() {
    let server = empty();
    upload(&server, "a", json!([[1, 0], [0, 1], [1, 1]])).ok();
    let told = upload(&server, "a", json!([[0, -1]])).ok();
    assert_eq!((&told["overwritten"], &told["chunk_ids"]), (&json!(true), &json!(["a_0"])));
    assert!(told["message"].as_str().unwrap().contains("overwritten"));
    let given = by_ids(&server, &["a_0", "a_1", "a_2"]);
    assert_eq!(given["embeddings"], json!({"a_0": [0.0, -1.0]}));
    assert_eq!(given["not_found_chunk_ids"], json!(["a_1", "a_2"]));
    let source = server.source("v", "default", "a");
    assert_eq!((&source["type"], &source["version"]), (&json!("embeddings"), &json!("v2")));
    let generated =
        server.post("/upload/upload_embeddings?tenant_id=v", json!({"embeddings": [[1, 1]]}));
    assert!(generated.ok()["file_id"].as_str().unwrap().starts_with("emb_"));
}

/// Goal: vectors of one scope are not visible in another.
#[test]
fn vectors_stay_in_their_scope() {
    let server = empty();
    server.post("/embeddings/create_tenant?tenant_id=w", Value::Null).ok();
    for (tenant, sub_tenant, x) in [("v", "default", 1), ("v", "north", 2), ("w", "default", 3)] {
        let path =
            format!("/upload/upload_embeddings?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        server.post(&path, json!({"file_id": "same", "embeddings": [[x, 1]]})).ok();
    }
    let seen = |tenant: &str, sub_tenant: &str| {
        let place = json!({"tenant_id": tenant, "sub_tenant_id": sub_tenant});
        let found = with(place.clone(), &json!({"embeddings": [1, 1]}));
        let found = server.post("/embeddings/search", found).ok();
        assert!(list(&found, "chunk_ids").len() < 2, "{found}");
        let given = with(place, &json!({"chunk_ids": ["same_0"]}));
        server.post("/embeddings/retrieve_by_ids", given).ok()["embeddings"]["same_0"][0].clone()
    };
    assert_eq!(seen("v", "default"), 1.0);
    assert_eq!(seen("v", "north"), 2.0);
    assert_eq!(seen("w", "default"), 3.0);
    assert_eq!(seen("v", "south"), Value::Null);
    delete(&server, json!(["same_0"])).ok();
    assert_eq!((seen("v", "default"), seen("v", "north")), (Value::Null, json!(2.0)));
    let nowhere = json!({"tenant_id": "v", "sub_tenant_id": "south", "chunk_ids": ["same_0"]});
    assert_eq!(server.call("DELETE", "/embeddings/delete", nowhere).ok()["total_deleted"], 0);
    let known = server.get("/tenant/sub_tenant_ids?tenant_id=v").ok();
    assert_eq!(known["sub_tenant_ids"], json!(["default", "north"]), "deleting creates none");
}
