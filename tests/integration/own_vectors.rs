//! Vectors with client-supplied ids and metadata, filters on them and paging through them.

use axum::body::Body;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::corpus::{list, with};
use crate::support::{KEY, Reply, TestServer};

/// Starts a server with the embeddings tenant `v`.
fn empty() -> TestServer {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=v", Value::Null).ok();
    server
}

fn upload(server: &TestServer, sub_tenant: &str, body: Value) -> Reply {
    let path = format!("/upload/upload_embeddings?tenant_id=v&sub_tenant_id={sub_tenant}");
    server.post(&path, body)
}

fn ask(server: &TestServer, path: &str, more: Value) -> Reply {
    server.post(path, with(json!({"tenant_id": "v"}), &more))
}

fn ids(answer: &Value, member: &str) -> Vec<String> {
    let id = |chunk: &Value| chunk["chunk_id"].as_str().unwrap().to_owned();
    answer[member].as_array().unwrap().iter().map(id).collect()
}

/// Starts a server with three vectors in one batch and one in another sub-tenant.
fn filled() -> TestServer {
    let server = empty();
    let told = upload(
        &server,
        "",
        json!({
            "file_id": "batch",
            "embeddings": [[1, 0], [0.6, 0.8], [0, 1]],
            "ids": ["red", "mauve", "blue"],
            "metadata": [{"warm": true, "n": 1}, null, {"warm": false, "n": 3}],
        }),
    );
    assert_eq!(told.ok()["chunk_ids"], json!(["red", "mauve", "blue"]));
    let beside = json!({"embeddings": [[1, 0]], "ids": ["red"], "metadata": [{"n": 1}]});
    upload(&server, "beside", beside).ok();
    server
}

#[test]
fn own_ids_name_vectors_everywhere() {
    let server = filled();
    let found = ask(&server, "/embeddings/search", json!({"embeddings": [1, 0]})).ok();
    assert_eq!(found["chunk_ids"], json!(["red", "mauve", "blue"]));
    assert!(found["results"][0][0].get("metadata").is_none(), "only when asked for");
    let wanted = json!({"chunk_ids": ["blue", "batch_2", "grey"]});
    let got = ask(&server, "/embeddings/retrieve_by_ids", wanted).ok();
    assert_eq!(got["embeddings"], json!({"blue": [0.0, 1.0]}));
    assert_eq!(got["not_found_chunk_ids"], json!(["batch_2", "grey"]));
    let change = json!({"embeddings": {"blue": [0, 2]}});
    let told = server.call("PATCH", "/upload/update_embeddings?tenant_id=v", change).ok();
    assert_eq!((&told["batch_id"], &told["chunk_ids"]), (&json!("batch"), &json!(["blue"])));
    let bad = json!({"embeddings": {"grey": [0, 2]}});
    let refused = server.call("PATCH", "/upload/update_embeddings?tenant_id=v", bad);
    refused.error(400, "invalid_identifier");
    let body = json!({"tenant_id": "v", "chunk_ids": ["red", "grey"]});
    let deleted = server.call("DELETE", "/embeddings/delete", body).ok();
    assert_eq!(deleted["status"], json!({"red": true, "grey": false}));
    let all = json!({"embeddings": [1, 0], "with_metadata": true, "with_vectors": true});
    let found = ask(&server, "/embeddings/search", all).ok();
    assert_eq!(found["chunk_ids"], json!(["mauve", "blue"]));
    let blue = &found["results"][0][1];
    assert_eq!(blue["metadata"], json!({"warm": false, "n": 3}), "an update keeps it");
    assert_eq!(blue["embedding"], json!([0.0, 2.0]));
    assert_eq!(found["results"][0][0]["metadata"], json!({}));
    let beside = ask(
        &server,
        "/embeddings/retrieve_by_ids",
        json!({"sub_tenant_id": "beside", "chunk_ids": ["red"]}),
    );
    assert_eq!(beside.ok()["embeddings"], json!({"red": [1.0, 0.0]}), "another vector");
}

#[test]
fn uploads_that_do_not_fit_are_refused_whole() {
    let server = filled();
    let rows = json!([[1, 0], [0, 1]]);
    let cases = [
        (json!({"ids": ["a"]}), 400, "count_mismatch"),
        (json!({"ids": ["a", "a"]}), 400, "duplicate_id"),
        (json!({"ids": ["a", "b/c"]}), 400, "invalid_identifier"),
        (json!({"ids": ["a", 7]}), 400, "invalid_value"),
        (json!({"metadata": [{}]}), 400, "count_mismatch"),
        (json!({"metadata": [{}, 7]}), 400, "invalid_value"),
        (json!({"metadata": {}}), 400, "invalid_value"),
        (json!({"metadata": [{"k": "x".repeat(70_000)}, {}]}), 413, "content_too_large"),
        (json!({"ids": ["a", "red"]}), 409, "chunk_id_exists"),
    ];
    for (more, status, reason) in cases {
        let body = with(json!({"file_id": "new", "embeddings": rows}), &more);
        upload(&server, "", body).error(status, reason);
    }
    let sources = server.get("/list/sources?tenant_id=v").ok();
    assert_eq!(list(&sources, "sources").len(), 1);
    // Replacing its own batch may keep an id.
    let again = json!({"file_id": "batch", "embeddings": rows, "ids": ["red", "green"]});
    assert_eq!(upload(&server, "", again).ok()["overwritten"], json!(true));
}

#[test]
fn filters_read_the_metadata_of_each_vector() {
    let server = filled();
    let cases = [
        (json!({"warm": true}), json!(["red"])),
        (json!({"n": {"$gte": 1}}), json!(["red", "blue"])),
        (json!({"n": {"$exists": false}}), json!(["mauve"])),
        (json!({"$or": [{"n": 3}, {"warm": true}]}), json!(["red", "blue"])),
        (json!({"n": 8}), json!([])),
        (json!({}), json!(["red", "mauve", "blue"])),
    ];
    for (filter, expected) in cases {
        let body = json!({"embeddings": [1, 0], "filter": filter});
        let found = ask(&server, "/embeddings/search", body).ok();
        assert_eq!(found["chunk_ids"], expected, "{filter}");
        let page = ask(&server, "/embeddings/scroll", json!({"filter": filter})).ok();
        assert_eq!(json!(ids(&page, "chunks")), expected, "{filter}");
        assert_eq!((found.get("warnings"), page.get("warnings")), (None, None), "{filter}");
    }
    for path in ["/embeddings/search", "/embeddings/scroll"] {
        let found = ask(&server, path, json!({"embeddings": [1, 0], "filter": {"n": "1"}})).ok();
        assert_eq!(found["warnings"][0]["field"], "filter.n", "{found}");
    }
    for path in ["/embeddings/search", "/embeddings/scroll"] {
        let body = json!({"embeddings": [1, 0], "filter": {"n": {"$near": 1}}});
        ask(&server, path, body).error(400, "invalid_filter");
    }
}

#[test]
fn pages_follow_each_other_and_cursors_are_checked() {
    let server = filled();
    let rows: Vec<Value> = (0..25).map(|at| json!([1, at])).collect();
    upload(&server, "", json!({"file_id": "more", "embeddings": rows})).ok();
    let (mut all, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"limit": 7, "cursor": cursor});
        let page = ask(&server, "/embeddings/scroll", body).ok();
        all.extend(ids(&page, "chunks"));
        if page["next_cursor"].is_null() {
            break;
        }
        cursor = page["next_cursor"].clone();
    }
    let expected = ["red", "mauve", "blue"].map(str::to_owned).into_iter();
    let expected: Vec<String> = expected.chain((0..25).map(|at| format!("more_{at}"))).collect();
    assert_eq!(all, expected);
    server.post("/embeddings/create_tenant?tenant_id=w", Value::Null).ok();
    let elsewhere = json!({"tenant_id": "w", "cursor": cursor});
    server.post("/embeddings/scroll", elsewhere).error(400, "invalid_value");
    let beside = json!({"sub_tenant_id": "beside", "cursor": cursor});
    ask(&server, "/embeddings/scroll", beside).error(400, "invalid_value");
    let text = cursor.as_str().unwrap();
    for at in 0..text.len() {
        let other = if text.as_bytes()[at] == b'A' { "B" } else { "A" };
        let altered = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        let reply = ask(&server, "/embeddings/scroll", json!({"cursor": altered}));
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "character {at}");
    }
    let last = ask(
        &server,
        "/embeddings/scroll",
        json!({"limit": 1, "with_metadata": true,
        "with_vectors": true}),
    )
    .ok();
    let chunk = json!({"chunk_id": "red", "file_id": "batch", "metadata": {"warm": true, "n": 1},
        "embedding": [1.0, 0.0]});
    assert_eq!(last["chunks"], json!([chunk]));
}

/// Encodes a file the way NumPy writes it.
fn npy(descr: &str, rows: usize, width: usize, values: impl Iterator<Item = f32>) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let mut file = [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes()].concat();
    file.extend(values.flat_map(f32::to_le_bytes));
    file
}

fn upload_npy(server: &TestServer, query: &str, media: &str, file: Vec<u8>) -> Reply {
    let request = Request::post(format!("/upload/upload_embeddings?tenant_id=v{query}"))
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", media)
        .body(Body::from(file))
        .unwrap();
    server.send(request)
}

#[test]
fn numpy_files_are_stored_bit_for_bit() {
    const NPY: &str = "application/x-npy";
    let server = empty();
    let value = |at: usize| (at as f32).sin() / 3.0;
    let file = npy("<f4", 3000, 4, (0..12_000).map(value));
    let told = upload_npy(&server, "&file_id=bulk", NPY, file.clone()).ok();
    assert_eq!((&told["file_id"], &told["overwritten"]), (&json!("bulk"), &json!(false)));
    assert_eq!(
        (list(&told, "chunk_ids").len(), &told["chunk_ids"][2999]),
        (3000, &json!("bulk_2999"))
    );
    let got = ask(&server, "/embeddings/retrieve_by_ids", json!({"chunk_ids": ["bulk_2999"]})).ok();
    let row = list(&got["embeddings"], "bulk_2999");
    let row: Vec<f32> = row.iter().map(|value| value.as_f64().unwrap() as f32).collect();
    assert_eq!(row, (11_996..12_000).map(value).collect::<Vec<f32>>());
    let query = json!({"embeddings": row, "max_chunks": 1});
    let found = ask(&server, "/embeddings/search", query).ok();
    assert!((found["scores"][0].as_f64().unwrap() - 1.0).abs() < 1e-5);
    let named = upload_npy(&server, "", NPY, npy("<f4", 1, 4, (0..4).map(value))).ok();
    assert!(named["file_id"].as_str().unwrap().starts_with("emb_"));
    let two = || npy("<f4", 2, 4, (0..8).map(value));
    let own = upload_npy(&server, "&file_id=own&ids=one&ids=two", NPY, two()).ok();
    assert_eq!(own["chunk_ids"], json!(["one", "two"]));
    upload_npy(&server, "&ids=three", NPY, two()).error(400, "count_mismatch");
    let again = upload_npy(&server, "&file_id=bulk", NPY, file.clone()).ok();
    assert_eq!(again["overwritten"], json!(true));
    let zeros = |count: usize| std::iter::repeat_n(0.0, count);
    let cases = [
        (npy("<f8", 2, 4, zeros(16)), 400, "malformed_body"),
        (npy("<f4", 2, 4, zeros(7)), 400, "malformed_body"),
        (npy("<f4", 2, 4, zeros(9)), 400, "malformed_body"),
        (b"[[1, 0, 0, 0]]".to_vec(), 400, "malformed_body"),
        (npy("<f4", 2, 3, zeros(6)), 400, "dimension_mismatch"),
        (npy("<f4", 0, 4, zeros(0)), 400, "invalid_value"),
        (npy("<f4", 1, 3025, zeros(3025)), 400, "invalid_value"),
        (npy("<f4", 50_001, 4, zeros(200_004)), 400, "too_many_items"),
        (npy("<f4", 1, 4, [f32::NAN; 4].into_iter()), 400, "invalid_value"),
        (vec![0; (64 << 20) + 1], 413, "body_too_large"),
    ];
    for (file, status, reason) in cases {
        upload_npy(&server, "&file_id=bad", NPY, file).error(status, reason);
    }
    upload_npy(&server, "", "application/octet-stream", file.clone())
        .error(415, "unsupported_media_type");
    let wanted = json!({"tenant_id": "v", "embeddings": [1, 0, 0, 0]});
    let request = Request::post("/embeddings/search")
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", NPY)
        .body(Body::from(wanted.to_string()))
        .unwrap();
    server.send(request).error(415, "unsupported_media_type");
    let sources = server.get("/list/sources?tenant_id=v").ok();
    assert_eq!(list(&sources, "sources").len(), 3);
}
