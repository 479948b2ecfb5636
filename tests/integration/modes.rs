//! Tenants of documents and tenants of vectors: the operations that each kind supports.

use serde_json::{Value, json};

use crate::contract::{Operation, check_error, guarded};
use crate::support::{KEY, Reply, TestServer};

/// Operations on tenants that hold documents.
const OF_STANDARD: &[&str] = &[
    "PATCH /upload/batch_update", "PATCH /upload/update_document", "PATCH /upload/update_metadata",
    "PATCH /upload/update_text", "POST /fetch/fetch_content", "POST /fetch/page_image",
    "POST /search/full-text-search", "POST /search/qna", "POST /search/retrieve",
    "POST /upload/batch_upload", "POST /upload/upload_app_sources", "POST /upload/scrape_webpage",
    "POST /upload/batch_scrape_webpage", "PATCH /upload/update_webpage",
    "POST /upload/batch_upload_text", "POST /upload/upload_document", "POST /upload/upload_text",
    "POST /user_memory/add_user_memory", "POST /list/chunks", "POST /list/graph_relations_by_id",
    "GET /user_memory/list_user_memories", "DELETE /user_memory/delete_user_memory",
    "POST /user_memory/retrieve_user_memory", "POST /user_memory/generate_user_memory",
];

/// Operations on tenants that hold vectors.
const OF_EMBEDDINGS: &[&str] = &[
    "DELETE /embeddings/delete", "PATCH /upload/update_embeddings",
    "POST /embeddings/retrieve_by_ids", "POST /embeddings/scroll", "POST /embeddings/search",
    "POST /upload/upload_embeddings",
];

/// Operations on tenants of both kinds.
const OF_BOTH: &[&str] = &[
    "DELETE /delete_source", "DELETE /tenant/delete", "DELETE /tenant/delete_sub_tenant",
    "DELETE /upload/delete_source", "GET /admin/reembed", "GET /jobs", "GET /list/sources",
    "GET /tenant/export", "GET /tenant/stats", "GET /tenant/sub_tenant_ids", "GET /tenant/usage",
    "GET /upload/verify_processing", "POST /admin/reembed", "POST /list/sources_by_id",
    "POST /upload/verify_processing",
];

/// Operations that create a tenant; an existing tenant causes a conflict of another kind.
const OF_NONE: &[&str] =
    &["POST /embeddings/create_tenant", "POST /tenant/import", "POST /user/create_tenant"];

/// Operations on the whole server or on one of its jobs, which may name a tenant of either kind.
const OF_SERVER: &[&str] =
    &["POST /admin/backups", "POST /admin/tenant_limits", "POST /jobs/{job_id}/retry"];

/// Starts a server with one tenant of each kind, both with a source `s` in `default` and `north`.
fn with_both() -> TestServer {
    let server = TestServer::start();
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    for sub_tenant in ["default", "north"] {
        server.index("texts", sub_tenant, "s", "apples fall");
        let path =
            format!("/upload/upload_embeddings?tenant_id=vectors&sub_tenant_id={sub_tenant}");
        server.post(&path, json!({"file_id": "s", "embeddings": [[1.0, 0.0]]})).ok();
    }
    server
}

fn of_tenants(server: &TestServer) -> Vec<Operation> {
    let mut all = guarded(server);
    all.retain(|operation| operation.takes("tenant_id"));
    all
}

fn send(server: &TestServer, operation: &Operation, tenant: &str) -> Reply {
    operation.send(server, KEY, &operation.sample(tenant, Some("north")))
}

/// Goal: every operation that takes a tenant is in exactly one list, and the lists contain no
/// others.
#[test]
fn every_operation_of_a_tenant_has_its_mode() {
    let server = TestServer::start();
    let mut served: Vec<String> = of_tenants(&server).iter().map(Operation::name).collect();
    let lists = [OF_STANDARD, OF_EMBEDDINGS, OF_BOTH, OF_NONE, OF_SERVER];
    let mut written: Vec<&str> = lists.into_iter().flatten().copied().collect();
    served.sort();
    written.sort_unstable();
    assert_eq!(served, written, "a route is added to a mode on purpose only");
}

/// Goal: an operation of the other mode is a 409 and changes nothing.
#[test]
fn an_operation_of_the_other_mode_is_409_and_changes_nothing() {
    let server = with_both();
    let before = (server.state("texts"), server.state("vectors"));
    for operation in of_tenants(&server) {
        let name = operation.name();
        let tenant = match name.as_str() {
            name if OF_STANDARD.contains(&name) => "vectors",
            name if OF_EMBEDDINGS.contains(&name) => "texts",
            _ => continue,
        };
        let reply = send(&server, &operation, tenant);
        check_error(&reply, &name);
        let body = reply.json();
        assert_eq!(
            (reply.status, &body["reason"]),
            (409, &json!("tenant_mode_mismatch")),
            "{name}"
        );
        assert_eq!((&body["error"], &body["error_code"]), (&json!("Conflict"), &json!("CONFLICT")));
        // An invalid request is reported before a mode mismatch.
        let mut sample = operation.sample(tenant, Some("north"));
        sample.query.push(("sub_tenant_id".to_owned(), "../x".to_owned()));
        assert_eq!(operation.send(&server, KEY, &sample).status, 400, "{name}");
    }
    assert_eq!((server.state("texts"), server.state("vectors")), before);
}

/// Goal: every operation works in its own mode.
#[test]
fn an_operation_of_its_own_mode_works() {
    let server = with_both();
    for operation in of_tenants(&server) {
        let name = operation.name();
        let tenant = match name.as_str() {
            name if OF_STANDARD.contains(&name) => "texts",
            name if OF_EMBEDDINGS.contains(&name) => "vectors",
            _ => continue,
        };
        if name.starts_with("PATCH /upload/update_embeddings") {
            let path = "/upload/upload_embeddings?tenant_id=vectors&sub_tenant_id=north";
            server.post(path, json!({"file_id": "s", "embeddings": [[1.0, 0.0]]})).ok();
        }
        if name.starts_with("DELETE /user_memory") {
            let path = "/user_memory/add_user_memory?tenant_id=texts&sub_tenant_id=north";
            server.post(path, json!({"user_memory": "word", "memory_id": "s"})).ok();
        }
        let mut sample = operation.sample(tenant, Some("north"));
        if name.starts_with("PATCH /upload/update_webpage") {
            // The source to replace is a text, which has no URL of its own.
            sample.query.push(("web_url".to_owned(), "http://127.0.0.1:9/".to_owned()));
        }
        let reply = operation.send(&server, KEY, &sample);
        if name == "POST /fetch/page_image" {
            // The mode is right, but a text has no pages.
            reply.error(400, "no_pages");
            continue;
        }
        assert_eq!(reply.status, 200, "{name}: {}", String::from_utf8_lossy(&reply.bytes));
    }
}

/// Goal: neutral operations work in both modes.
#[test]
fn neutral_operations_work_in_both_modes() {
    let server = with_both();
    let mut neutral = of_tenants(&server);
    neutral.retain(|operation| OF_BOTH.contains(&operation.name().as_str()));
    // Reads go first, because the others delete what they read.
    let rank = |operation: &Operation| match operation.path.as_str() {
        "/tenant/delete" => 3,
        "/tenant/delete_sub_tenant" => 2,
        path if path.ends_with("delete_source") => 1,
        _ => 0,
    };
    neutral.sort_by_key(rank);
    for operation in neutral {
        for tenant in ["texts", "vectors"] {
            let body = send(&server, &operation, tenant);
            assert_eq!(body.status, 200, "{} of {tenant}: {}", operation.name(), body.json());
        }
    }
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]), "deletions come last");
}

/// Goal: an upload of vectors never creates a tenant.
#[test]
fn an_upload_of_vectors_makes_no_tenant() {
    let server = TestServer::start();
    let path = "/upload/upload_embeddings?tenant_id=vectors";
    server.post(path, json!({"embeddings": [[1, 2]]})).error(404, "tenant_not_found");
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
}
