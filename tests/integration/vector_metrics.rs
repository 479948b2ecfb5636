//! Tenants that compare vectors by dot product or Euclidean distance.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{KEY, TestServer};

/// Starts a server with one tenant per metric, named after it, with the same vectors in each.
fn filled() -> TestServer {
    let server = TestServer::start();
    for metric in ["cosine", "dot", "l2"] {
        let path = format!("/embeddings/create_tenant?tenant_id={metric}&metric={metric}");
        server.post(&path, Value::Null).ok();
        let body = json!({
            "file_id": "batch",
            "embeddings": [[1, 0], [30, 40], [0, 0], [2, 1]],
            "ids": ["one", "far", "zero", "near"],
        });
        server.post(&format!("/upload/upload_embeddings?tenant_id={metric}"), body).ok();
    }
    server
}

/// The ids and scores of the vectors nearest to (2, 0).
fn ranked(server: &TestServer, tenant: &str) -> Vec<(String, f32)> {
    let body = json!({"tenant_id": tenant, "embeddings": [2, 0], "with_vectors": true});
    let found = server.post("/embeddings/search", body).ok();
    let hits = found["results"][0].as_array().unwrap();
    let far = hits.iter().find(|hit| hit["chunk_id"] == "far");
    if let Some(far) = far {
        assert_eq!(far["embedding"], json!([30.0, 40.0]), "as it was sent");
    }
    let hit = |hit: &Value| {
        (hit["chunk_id"].as_str().unwrap().to_owned(), hit["score"].as_f64().unwrap() as f32)
    };
    hits.iter().map(hit).collect()
}

fn pairs(wanted: &[(&str, f32)]) -> Vec<(String, f32)> {
    wanted.iter().map(|(id, score)| ((*id).to_owned(), *score)).collect()
}

const BY_DOT: [(&str, f32); 4] = [("far", 60.0), ("near", 4.0), ("one", 2.0), ("zero", 0.0)];

#[test]
fn each_tenant_ranks_by_its_metric() {
    let server = filled();
    let by_cosine = ranked(&server, "cosine").into_iter().map(|(id, _)| id);
    assert_eq!(by_cosine.collect::<Vec<_>>(), ["one", "near", "far", "zero"]);
    assert_eq!(ranked(&server, "dot"), pairs(&BY_DOT));
    let far = -f32::sqrt(28.0 * 28.0 + 40.0 * 40.0);
    let by_distance = [("one", -1.0), ("near", -1.0), ("zero", -2.0), ("far", far)];
    assert_eq!(ranked(&server, "l2"), pairs(&by_distance));
    // Equal vectors have distance 0.
    let body = json!({"tenant_id": "l2", "embeddings": [[30, 40], [2, 1]], "max_chunks": 1});
    let found = server.post("/embeddings/search", body).ok();
    assert_eq!(found["results"][0], json!([{"chunk_id": "far", "score": 0.0}]));
    assert_eq!(found["results"][1], json!([{"chunk_id": "near", "score": 0.0}]));
}

#[test]
fn a_metric_is_shown_and_an_unknown_one_refused() {
    let server = filled();
    let path = "/embeddings/create_tenant?tenant_id=other&metric=manhattan";
    let refused = server.post(path, Value::Null).error(400, "invalid_value");
    assert!(refused.to_string().contains("cosine, dot, l2"), "{refused}");
    server.get("/tenant/stats?tenant_id=other").error(404, "tenant_not_found");
    server.post("/user/create_tenant?tenant_id=texts", Value::Null).ok();
    for (tenant, mode, metric) in [
        ("cosine", "embeddings", json!("cosine")),
        ("dot", "embeddings", json!("dot")),
        ("l2", "embeddings", json!("l2")),
        ("texts", "standard", Value::Null),
    ] {
        let stats = server.get(&format!("/tenant/stats?tenant_id={tenant}")).ok();
        assert_eq!((&stats["mode"], &stats["metric"]), (&json!(mode), &metric));
        let listed = server.get("/tenant/list").ok();
        let is_it = |one: &&Value| one["tenant_id"] == tenant;
        let one = listed["tenants"].as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!((&one["mode"], &one["metric"]), (&json!(mode), &metric));
    }
}

/// Goal: an archive names the metric in its mode, so that a release that does not know it refuses
/// the archive.
#[test]
fn an_archive_keeps_the_metric() {
    let server = filled();
    let reply = server.get("/tenant/export?tenant_id=dot");
    let head: Value =
        serde_json::from_slice(reply.bytes.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert_eq!(head["mode"], "embeddings_dot");
    let import = |tenant: &str| {
        let request = Request::post(format!("/tenant/import?tenant_id={tenant}"))
            .header("authorization", format!("Bearer {KEY}"))
            .header("content-type", "application/x-ndjson")
            .body(Body::from(reply.bytes.clone()));
        server.send(request.unwrap())
    };
    import("copy").ok();
    assert_eq!(ranked(&server, "copy"), pairs(&BY_DOT));
    // An archive cannot be imported into an empty tenant with another metric.
    server.post("/embeddings/create_tenant?tenant_id=plain", Value::Null).ok();
    import("plain").error(409, "tenant_differs");
    server.post("/embeddings/create_tenant?tenant_id=empty&metric=dot", Value::Null).ok();
    import("empty").ok();
    assert_eq!(ranked(&server, "empty"), pairs(&BY_DOT));
}
