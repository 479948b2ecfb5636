//! Roles, scopes, and the isolation of tenants and sub-tenants.

use std::sync::Arc;

use lodestone_types::{ManualClock, Timestamp};
use serde_json::{Value, json};

use crate::contract::{check_error, encode, guarded, operations};
use crate::support::{KEY, Reply, TestServer};

/// The minimum role of every operation, written down independently of the server.
const ROLES: &[(&str, &[&str])] = &[
    (
        "read",
        &[
            "GET /jobs",
            "GET /list/sources",
            "GET /tenant/stats",
            "GET /tenant/sub_tenant_ids",
            "GET /tenant/usage",
            "GET /metrics",
            "GET /jobs/{job_id}/events",
            "GET /metrics/hour",
            "GET /upload/verify_processing",
            "GET /v1/models",
            "GET /v1/models/{model}",
            "POST /embeddings/retrieve_by_ids",
            "POST /embeddings/scroll",
            "POST /embeddings/search",
            "POST /fetch/fetch_content",
            "POST /fetch/page_image",
            "POST /list/chunks",
            "POST /list/graph_relations_by_id",
            "POST /list/sources_by_id",
            "POST /search/full-text-search",
            "POST /search/qna",
            "POST /search/retrieve",
            "POST /upload/verify_processing",
            "GET /v1/files",
            "GET /v1/files/{file_id}",
            "GET /v1/files/{file_id}/content",
            "GET /v1/vector_stores",
            "GET /v1/vector_stores/{vector_store_id}",
            "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}",
            "GET /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/files",
            "GET /v1/vector_stores/{vector_store_id}/files",
            "GET /v1/vector_stores/{vector_store_id}/files/{file_id}",
            "GET /v1/vector_stores/{vector_store_id}/files/{file_id}/content",
            "POST /v1/chat/completions",
            "POST /v1/embeddings",
            "POST /v1/rerank",
            "POST /v1/vector_stores/{vector_store_id}/search",
            "GET /user_memory/list_user_memories",
            "POST /user_memory/retrieve_user_memory",
        ],
    ),
    (
        "write",
        &[
            "DELETE /delete_source",
            "DELETE /embeddings/delete",
            "DELETE /upload/delete_source",
            "PATCH /upload/batch_update",
            "PATCH /upload/update_document",
            "PATCH /upload/update_embeddings",
            "PATCH /upload/update_metadata",
            "PATCH /upload/update_text",
            "POST /jobs/{job_id}/retry",
            "POST /upload/batch_upload",
            "POST /upload/upload_app_sources",
            "POST /upload/scrape_webpage",
            "POST /upload/batch_scrape_webpage",
            "PATCH /upload/update_webpage",
            "POST /upload/batch_upload_text",
            "POST /upload/upload_document",
            "POST /upload/upload_embeddings",
            "POST /upload/upload_text",
            "DELETE /user_memory/delete_user_memory",
            "POST /user_memory/add_user_memory",
            "POST /user_memory/generate_user_memory",
            "DELETE /v1/files/{file_id}",
            "DELETE /v1/vector_stores/{vector_store_id}",
            "DELETE /v1/vector_stores/{vector_store_id}/files/{file_id}",
            "POST /v1/files",
            "POST /v1/vector_stores",
            "POST /v1/vector_stores/{vector_store_id}",
            "POST /v1/vector_stores/{vector_store_id}/file_batches",
            "POST /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
            "POST /v1/vector_stores/{vector_store_id}/files",
            "POST /v1/vector_stores/{vector_store_id}/files/{file_id}",
        ],
    ),
    (
        "admin",
        &[
            "DELETE /admin/api_keys/{key_id}",
            "DELETE /admin/webhooks/{webhook_id}",
            "DELETE /tenant/delete",
            "DELETE /tenant/delete_sub_tenant",
            "GET /admin/api_keys",
            "GET /admin/backups",
            "GET /admin/reembed",
            "GET /admin/webhooks",
            "GET /admin/webhooks/{webhook_id}/deliveries",
            "GET /tenant/export",
            "GET /tenant/list",
            "PATCH /admin/webhooks/{webhook_id}",
            "POST /admin/api_keys",
            "POST /admin/backups",
            "POST /admin/reembed",
            "POST /admin/tenant_limits",
            "POST /admin/webhooks",
            "POST /admin/webhooks/{webhook_id}/test",
            "POST /embeddings/create_tenant",
            "POST /tenant/import",
            "POST /user/create_tenant",
        ],
    ),
];

/// Operations that need no key.
const PUBLIC: &[&str] = &[
    "GET /docs", "GET /fetch/download/{token}", "GET /healthz", "GET /openapi.json", "GET /readyz",
];

/// Operations that create a tenant: a scoped key gets a 403 whether or not the tenant exists.
const CREATES_TENANT: &[&str] =
    &["POST /embeddings/create_tenant", "POST /tenant/import", "POST /user/create_tenant"];
/// Operations on the whole server that may name a tenant: a scoped key is told that its scope is
/// insufficient.
const OF_SERVER: &[&str] = &["POST /admin/backups", "POST /admin/tenant_limits"];

#[test]
fn every_operation_needs_the_role_of_the_contract() {
    let server = TestServer::start();
    let mut written: Vec<(String, Option<&str>)> = Vec::new();
    for (role, names) in ROLES {
        written.extend(names.iter().map(|name| (name.to_string(), Some(*role))));
    }
    written.extend(PUBLIC.iter().map(|name| (name.to_string(), None)));
    written.sort();
    let all = operations(&server);
    let mut served: Vec<(String, Option<&str>)> =
        all.iter().map(|operation| (operation.name(), operation.role())).collect();
    served.sort();
    assert_eq!(served, written, "a route and its role are added here on purpose only");
}

#[test]
fn a_role_opens_its_own_operations_and_no_higher_one() {
    let server = TestServer::start();
    let rank = |role: &str| ["read", "write", "admin"].iter().position(|word| *word == role);
    for role in ["read", "write", "admin"] {
        let key = server.make_key(role, Value::Null);
        for operation in guarded(&server) {
            let reply = operation.send(&server, &key, &operation.sample("nowhere", None));
            let name = format!("{} as {role}", operation.name());
            let is_allowed = rank(role) >= rank(operation.role().unwrap());
            match is_allowed {
                true => assert!(![401, 403].contains(&reply.status), "{name}: {}", reply.json()),
                false => {
                    check_error(&reply, &name);
                    let body = reply.error(403, "insufficient_role");
                    let is_openai = operation.path.starts_with("/v1/");
                    assert!(is_openai || body["error"] == "Forbidden", "{name}");
                }
            }
        }
    }
}

#[test]
fn a_read_key_stores_nothing() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples fall");
    let before = server.state("acme");
    let reader = server.make_key("read", json!([{"tenant_id": "acme"}]));
    for operation in guarded(&server) {
        if operation.role() != Some("read") {
            let sample = operation.sample("acme", None);
            operation.send(&server, &reader, &sample).error(403, "insufficient_role");
        }
    }
    let mut after = server.state("acme");
    after["keys"] = before["keys"].clone();
    assert_eq!(after, before);
}

/// An error's status and body without the request id.
fn anonymous(reply: &Reply) -> (u16, Value) {
    let mut body = reply.json();
    body.as_object_mut().unwrap().remove("request_id");
    (reply.status, body)
}

#[test]
fn a_tenant_out_of_scope_looks_like_none() {
    let server = TestServer::start();
    server.index("secret", "default", "s", "apples fall");
    server.post("/user/create_tenant?tenant_id=own", Value::Null).ok();
    let key = server.make_key("admin", json!([{"tenant_id": "own"}]));
    let before = server.state("secret");
    let mut walked = 0;
    for operation in guarded(&server) {
        if !operation.takes("tenant_id") {
            continue;
        }
        walked += 1;
        let name = operation.name();
        let ask =
            |tenant: &str| operation.send(&server, &key, &operation.sample(tenant, Some("x")));
        let (existing, absent) = (ask("secret"), ask("nowhere"));
        check_error(&existing, &name);
        assert_eq!(anonymous(&existing), anonymous(&absent), "{name}");
        match [CREATES_TENANT, OF_SERVER].concat().contains(&name.as_str()) {
            true => assert_eq!(existing.status, 403, "{name}: {}", existing.json()),
            false => {
                let body = existing.error(404, "tenant_not_found");
                assert_eq!(body["error"], "Tenant not found", "{name}");
                assert!(!body.to_string().contains("secret"), "{name}");
            }
        }
    }
    assert!(walked > 20, "{walked} operations take a tenant");
    assert_eq!(server.state("secret"), before);
}

#[test]
fn the_listing_of_an_unknown_tenant_is_404() {
    let server = TestServer::start();
    let key = server.make_key("read", json!([{"tenant_id": "own"}]));
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let unknown = server.get("/tenant/sub_tenant_ids?tenant_id=nowhere");
    let hidden = server.call_as(&key, "GET", "/tenant/sub_tenant_ids?tenant_id=acme", &Value::Null);
    unknown.error(404, "tenant_not_found");
    assert_eq!(anonymous(&unknown), anonymous(&hidden));
}

#[test]
fn a_sub_tenant_out_of_scope_looks_like_none() {
    let server = TestServer::start();
    for sub_tenant in ["default", "inside", "outside"] {
        server.index("acme", sub_tenant, "s", "apples fall");
    }
    let scope = json!([{"tenant_id": "acme", "sub_tenant_ids": ["inside"]}]);
    let key = server.make_key("admin", scope);
    let state = || ["default", "inside", "outside"].map(|name| server.sources("acme", name));
    let before = state();
    let mut walked = 0;
    for operation in guarded(&server) {
        let name = operation.name();
        if !operation.takes("sub_tenant_id") {
            continue;
        }
        walked += 1;
        let ask =
            |sub_tenant| operation.send(&server, &key, &operation.sample("acme", Some(sub_tenant)));
        let (existing, absent) = (ask("outside"), ask("nowhere"));
        check_error(&existing, &name);
        assert_eq!(anonymous(&existing), anonymous(&absent), "{name}");
        let body = existing.error(404, "sub_tenant_not_found");
        assert_eq!(body["error"], "Sub-tenant not found", "{name}");
        if name != "DELETE /tenant/delete_sub_tenant" {
            let default = ask("default");
            assert_eq!(anonymous(&default), anonymous(&absent), "{name}");
        }
    }
    assert!(walked > 15, "{walked} operations take a sub-tenant");
    let path = "/tenant/delete?tenant_id=acme&confirm=acme";
    assert_eq!(server.call_as(&key, "DELETE", path, &Value::Null).status, 403);
    assert_eq!(state(), before);
}

#[test]
fn a_scoped_key_works_inside_its_scope_and_sees_only_that() {
    let server = TestServer::start();
    for (tenant, sub_tenant) in [("acme", "default"), ("acme", "inside"), ("other", "default")] {
        server.index(tenant, sub_tenant, "s", &format!("apples of {tenant} {sub_tenant}"));
    }
    let scope = json!([{"tenant_id": "acme", "sub_tenant_ids": ["inside"]}]);
    let key = server.make_key("admin", scope);
    let get = |path: &str| server.call_as(&key, "GET", path, &Value::Null).ok();
    let names = get("/tenant/sub_tenant_ids?tenant_id=acme");
    assert_eq!((&names["sub_tenant_ids"], &names["count"]), (&json!(["inside"]), &json!(1)));
    let tenants = get("/tenant/list");
    let tenants: Vec<&Value> =
        tenants["tenants"].as_array().unwrap().iter().map(|tenant| &tenant["tenant_id"]).collect();
    assert_eq!(tenants, ["acme"]);
    let jobs = get("/jobs");
    for job in jobs["jobs"].as_array().unwrap() {
        assert_eq!((&job["tenant_id"], &job["sub_tenant_id"]), (&json!("acme"), &json!("inside")));
    }
    let stats = get("/tenant/stats?tenant_id=acme&sub_tenant_id=inside");
    assert_eq!(stats["tenant_object_count"], stats["object_count"]);
    // Without a tenant the look-up stays within the key's scope, and likewise without a sub-tenant.
    for path in [
        "/upload/verify_processing?file_id=s",
        "/upload/verify_processing?file_id=s&tenant_id=acme",
    ] {
        let found = get(path);
        assert_eq!(found["tenant_id"], "acme");
        assert_eq!(found["sub_tenant_id"], "inside");
    }
    let upload = "/upload/upload_text?tenant_id=acme&sub_tenant_id=inside";
    server.call_as(&key, "POST", upload, &json!({"content": "pears", "file_id": "p"})).ok();
    assert_eq!(server.settled("acme", "inside", "p")["status"], "success");
}

#[test]
fn a_scoped_key_makes_no_tenant() {
    let server = TestServer::start();
    let key = server.make_key("write", json!([{"tenant_id": "ghost"}]));
    let upload = "/upload/upload_text?tenant_id=ghost";
    server.call_as(&key, "POST", upload, &json!({"content": "boo"})).error(404, "tenant_not_found");
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
    let free = server.make_key("write", Value::Null);
    server.call_as(&free, "POST", upload, &json!({"content": "boo"})).ok();
    assert_eq!(server.get("/tenant/list").ok()["tenants"][0]["tenant_id"], "ghost");
}

#[test]
fn reads_make_no_tenant_and_the_setting_forbids_it_to_uploads() {
    let server = TestServer::start_with(|settings| settings.auto_create_tenants = false);
    for operation in guarded(&server) {
        let reads = ![CREATES_TENANT, OF_SERVER].concat().contains(&operation.name().as_str());
        if operation.takes("tenant_id") && reads {
            let sample = operation.sample("nowhere", Some("x"));
            operation.send(&server, KEY, &sample).error(404, "tenant_not_found");
        }
    }
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
}

#[test]
fn no_key_makes_or_sees_a_wider_one() {
    let server = TestServer::start();
    let wide = server.make_key("admin", json!([{"tenant_id": "acme"}]));
    let narrow = json!([{"tenant_id": "acme", "sub_tenant_ids": ["x"]}]);
    let make = |tenants: &Value| {
        let body = json!({"name": "n", "role": "read", "tenants": tenants});
        server.call_as(&wide, "POST", "/admin/api_keys", &body)
    };
    let made = make(&narrow).ok();
    for wider in [Value::Null, json!([{"tenant_id": "other"}])] {
        assert_eq!(make(&wider).status, 403, "{wider}");
    }
    let listing = server.call_as(&wide, "GET", "/admin/api_keys", &Value::Null);
    let text = String::from_utf8(listing.bytes.clone()).unwrap();
    assert!(!text.contains(made["api_key"].as_str().unwrap()), "a listing shows no secret");
    server.make_key("read", Value::Null);
    let all = server.get("/admin/api_keys").ok();
    let foreign = all["api_keys"].as_array().unwrap().iter().find(|key| key["tenants"].is_null());
    let path = format!("/admin/api_keys/{}", foreign.unwrap()["key_id"].as_str().unwrap());
    server.call_as(&wide, "DELETE", &path, &Value::Null).error(404, "api_key_not_found");
}

#[test]
fn a_revoked_key_is_refused_at_once_and_an_expired_one_at_its_end() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_757_402_409_000)));
    let parts = Arc::clone(&clock);
    let server = TestServer::start_with_parts(|_| {}, |components| components.clock = parts);
    server.index("acme", "default", "a", "apples fall");
    let make = |expires_at: Value| {
        let body = json!({"name": "n", "role": "admin", "expires_at": expires_at});
        server.post("/admin/api_keys", body).ok()
    };
    let (made, mortal) = (make(Value::Null), make(json!(1_757_402_419)));
    let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
    let (revoked, mortal) = (text(&made, "api_key"), text(&mortal, "api_key"));
    let ask = |key: &str| server.call_as(key, "GET", "/jobs", &Value::Null);
    ask(&revoked).ok();
    ask(&mortal).ok();
    clock.advance_millis(10_000);
    ask(&mortal).error(401, "expired_api_key");
    let path = format!("/admin/api_keys/{}", text(&made, "key_id"));
    server.call("DELETE", &path, Value::Null).ok();
    ask(&revoked).error(401, "invalid_api_key");
    server.call("DELETE", &path, Value::Null).error(404, "api_key_not_found");
    let before = server.state("acme");
    for operation in guarded(&server) {
        for (key, reason) in [(&revoked, "invalid_api_key"), (&mortal, "expired_api_key")] {
            let reply = operation.send(&server, key, &operation.sample("acme", None));
            check_error(&reply, &operation.name());
            reply.error(401, reason);
        }
    }
    assert_eq!(server.state("acme"), before);
}

/// Goal: the key of a deleted tenant grants no access, not even to a new tenant of the same name.
#[test]
fn a_key_does_not_outlive_its_tenant() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "cobalt");
    let key = server.make_key("admin", json!([{"tenant_id": "acme"}]));
    server.call_as(&key, "GET", "/tenant/stats?tenant_id=acme", &Value::Null).ok();
    server.call("DELETE", "/tenant/delete?tenant_id=acme&confirm=acme", Value::Null).ok();
    for is_made_again in [false, true] {
        if is_made_again {
            server.index("acme", "default", "a", "cobalt");
        }
        let state = || is_made_again.then(|| server.state("acme"));
        let before = state();
        for operation in guarded(&server) {
            let reply = operation.send(&server, &key, &operation.sample("acme", Some("x")));
            let name = operation.name();
            if operation.takes("tenant_id") {
                let is_wide = [CREATES_TENANT, OF_SERVER].concat().contains(&name.as_str());
                let expected = if is_wide { 403 } else { 404 };
                assert_eq!(reply.status, expected, "{name}: {}", reply.json());
            }
            let body = String::from_utf8_lossy(&reply.bytes).into_owned();
            assert!(!body.contains("acme") && !body.contains("cobalt"), "{name}: {body}");
        }
        assert_eq!(state(), before);
    }
}

#[test]
fn a_new_tenant_has_the_sub_tenant_default() {
    let server = TestServer::start();
    let made = server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    assert_eq!((&made["status"], &made["tenant_id"]), (&json!("created"), &json!("acme")));
    let names = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(names["sub_tenant_ids"], json!(["default"]));
    assert_eq!((&names["count"], &names["tenant_schema"]), (&json!(1), &Value::Null));
}

#[test]
fn the_first_write_makes_a_sub_tenant_and_a_search_does_not() {
    let server = TestServer::start();
    server.index("acme", "north", "a", "apples fall");
    assert!(server.retrieve("acme", "south", "apples").is_empty());
    assert!(server.full_text("acme", "south", "apples").is_empty());
    assert!(server.sources("acme", "south").is_empty());
    assert_eq!(
        server.get("/tenant/stats?tenant_id=acme&sub_tenant_id=south").ok()["object_count"],
        0
    );
    let body = json!({"tenant_id": "acme", "sub_tenant_id": "west", "source_ids": ["a"]});
    server.call("DELETE", "/upload/delete_source", body).ok();
    let names = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(names["sub_tenant_ids"], json!(["default", "north"]));
    assert_eq!(names["count"], 2);
}

#[test]
fn every_form_of_no_sub_tenant_means_default() {
    let server = TestServer::start();
    for (id, suffix) in
        [("absent", ""), ("empty", "&sub_tenant_id="), ("word", "&sub_tenant_id=default")]
    {
        let path = format!("/upload/upload_text?tenant_id=acme{suffix}");
        server.post(&path, json!({"content": format!("apple {id}"), "file_id": id})).ok();
        assert_eq!(server.settled("acme", "default", id)["status"], "success");
    }
    let plain = json!({"tenant_id": "acme", "query": "apple"});
    let mut forms = vec![plain.clone()];
    for value in [Value::Null, json!(""), json!("default")] {
        let mut form = plain.clone();
        form["sub_tenant_id"] = value;
        forms.push(form);
    }
    for form in forms {
        let found = server.post("/search/full-text-search", form.clone()).ok();
        let mut ids: Vec<&str> =
            found.as_array().unwrap().iter().filter_map(|hit| hit["source_id"].as_str()).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["absent", "empty", "word"], "{form}");
    }
    assert_eq!(server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok()["count"], 1);
}

#[test]
fn one_id_in_four_scopes_is_four_sources() {
    let server = TestServer::start();
    let scopes = [("a", "default"), ("a", "x"), ("a", "y"), ("b", "default")];
    let text = |tenant: &str, sub_tenant: &str| format!("common word of{tenant}{sub_tenant}");
    for (tenant, sub_tenant) in scopes {
        server.index(tenant, sub_tenant, "same", &text(tenant, sub_tenant));
    }
    let check = |tenant: &str, sub_tenant: &str| {
        let own = text(tenant, sub_tenant);
        let scope = format!("tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        for chunks in [
            server.retrieve(tenant, sub_tenant, "common word"),
            server.full_text(tenant, sub_tenant, "common"),
        ] {
            assert_eq!(chunks.len(), 1, "{scope}");
            assert_eq!(chunks[0]["chunk_content"], own.as_str());
        }
        let body =
            json!({"tenant_id": tenant, "sub_tenant_id": sub_tenant, "question": "common word?"});
        let answer = server.post("/search/qna", body).ok();
        assert_eq!(answer["chunks"].as_array().unwrap().len(), 1);
        assert_eq!(answer["chunks"][0]["chunk_content"], own.as_str());
        let stats = server.get(&format!("/tenant/stats?{scope}")).ok();
        assert_eq!((&stats["object_count"], &stats["source_count"]), (&json!(1), &json!(1)));
        let body = json!({"tenant_id": tenant, "sub_tenant_id": sub_tenant, "file_id": "same"});
        assert_eq!(server.post("/fetch/fetch_content", body).ok()["file_content"], own.as_str());
        assert_eq!(server.source(tenant, sub_tenant, "same")["description"], own.as_str());
    };
    scopes.iter().for_each(|(tenant, sub_tenant)| check(tenant, sub_tenant));
    let body = json!({"tenant_id": "a", "sub_tenant_id": "x", "source_ids": ["same"]});
    server.call("DELETE", "/delete_source", body).ok();
    assert!(server.full_text("a", "x", "common").is_empty());
    for (tenant, sub_tenant) in scopes {
        if (tenant, sub_tenant) != ("a", "x") {
            check(tenant, sub_tenant);
        }
    }
}

#[test]
fn identifiers_keep_to_their_rules_wherever_they_stand() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let long = "x".repeat(257);
    let bad = ["a/b", "a\\b", "a\0b", "..", ".", "a\nb", "a\u{2028}b", " a", "a ", &long];
    for id in bad {
        for (path, body) in [
            ("/upload/upload_text?tenant_id=acme", json!({"content": "x", "file_id": id})),
            ("/list/sources_by_id", json!({"tenant_id": "acme", "source_ids": [id]})),
            ("/fetch/fetch_content", json!({"tenant_id": "acme", "file_id": id})),
            ("/list/sources_by_id", json!({"tenant_id": id, "source_ids": ["a"]})),
            ("/search/retrieve", json!({"tenant_id": "acme", "sub_tenant_id": id, "query": "x"})),
        ] {
            let body = server.post(path, body).error(400, "invalid_identifier");
            assert_eq!(body["error_code"], "INVALID_PARAMETERS", "{id:?} to {path}");
        }
        let id = encode(id);
        for path in [
            format!("/user/create_tenant?tenant_id={id}"),
            format!("/upload/upload_text?tenant_id=acme&sub_tenant_id={id}"),
            format!("/upload/verify_processing?file_id={id}"),
        ] {
            server.post(&path, json!({"content": "x"})).error(400, "invalid_identifier");
        }
    }
    for id in ["-a", "_a", "a b", "é", "a%b", "a/b"] {
        let path = format!("/user/create_tenant?tenant_id={}", encode(id));
        server.post(&path, Value::Null).error(400, "invalid_identifier");
    }
    assert!(server.sources("acme", "default").is_empty());
    assert_eq!(server.get("/tenant/list").ok()["tenants"].as_array().unwrap().len(), 1);
}

#[test]
fn the_longest_identifiers_and_every_allowed_character_work() {
    let server = TestServer::start();
    let tenant = format!("0._-:@#$+=~{}", "t".repeat(245));
    let sub_tenant = "s".repeat(256);
    let source = "\u{1f4da}".repeat(256);
    let (at, sub, id) = (encode(&tenant), encode(&sub_tenant), encode(&source));
    let path = format!("/upload/upload_text?tenant_id={at}&sub_tenant_id={sub}");
    let made = server.post(&path, json!({"content": "apples", "file_id": source})).ok();
    assert_eq!(made["file_id"], source.as_str());
    assert_eq!(server.settled(&at, &sub, &id)["status"], "success");
    assert_eq!(server.sources(&at, &sub)[0]["id"], source.as_str());
    let odd = "Bericht „Q3“ & mehr?#%.pdf";
    server.index(&at, &sub, &encode("x"), "pears");
    server.post(&path, json!({"content": "plums", "file_id": odd})).ok();
    assert_eq!(server.settled(&at, &sub, &encode(odd))["status"], "success");
}

#[test]
fn identifiers_are_compared_after_composition_and_by_case() {
    let server = TestServer::start();
    let path = "/upload/upload_text?tenant_id=acme";
    let first = server.post(path, json!({"content": "one", "file_id": "café"})).ok();
    let second = server.post(path, json!({"content": "two", "file_id": "cafe\u{301}"})).ok();
    assert_eq!(first["file_id"], second["file_id"]);
    assert_eq!((&first["overwritten"], &second["overwritten"]), (&json!(false), &json!(true)));
    server.post(path, json!({"content": "three", "file_id": "Café"})).ok();
    assert_eq!(server.sources("acme", "default").len(), 2);
}
