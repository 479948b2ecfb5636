use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Server;

#[tokio::test]
async fn tenants_are_made_once_and_keep_their_schema() {
    let server = Server::start();
    let path = "/user/create_tenant?tenant_id=acme";
    let schema = json!({"tenant_metadata_schema": [{"key": "year", "type": "number"}]});
    let made = server.post(path, schema.clone()).await.ok();
    assert_eq!((&made["status"], &made["sub_tenant_id"]), (&json!("created"), &json!("default")));
    server.post(path, schema).await.fails(409, "tenant_exists");
    let reserved = json!({"tenant_metadata_schema": [{"key": "layout", "type": "string"}]});
    server.post("/user/create_tenant?tenant_id=b", reserved).await.fails(400, "reserved_key");
    let generated = server.send("POST", "/user/create_tenant").answer().await.ok();
    assert!(generated["tenant_id"].as_str().unwrap().starts_with("tenant_"));
    let list = server.get("/tenant/sub_tenant_ids?tenant_id=acme").await.ok();
    assert_eq!((&list["sub_tenant_ids"], &list["count"]), (&json!(["default"]), &json!(1)));
    let shown = json!({"field_name": "year", "index_filterable": true,
        "index_searchable": false, "type": "number"});
    assert_eq!(list["tenant_schema"], json!({"properties": [shown]}));
    let wrong = json!({"content": "x", "tenant_metadata": {"year": "old"}});
    let wrong = server.post("/upload/upload_text?tenant_id=acme", wrong).await;
    wrong.fails(400, "schema_violation");
}

#[tokio::test]
async fn a_scoped_key_sees_no_other_tenant() {
    let server = Server::start();
    for tenant in ["acme", "other"] {
        server.text(&format!("tenant_id={tenant}"), "a", "apples").await;
    }
    let key = server.scoped_key("admin", "acme", None).await;
    let get = |path: &str| server.send("GET", path).with_key(Some(&key)).answer();
    get("/list/sources?tenant_id=acme").await.ok();
    let strip = |mut body: Value| {
        body.as_object_mut().unwrap().remove("request_id");
        body
    };
    let outside = get("/tenant/sub_tenant_ids?tenant_id=other").await;
    let unknown = get("/tenant/sub_tenant_ids?tenant_id=unknown").await;
    let outside = strip(outside.fails(404, "tenant_not_found"));
    assert_eq!(outside, strip(unknown.fails(404, "tenant_not_found")));
    assert_eq!(outside["error"], "Tenant not found");
    let tenants = get("/tenant/list").await.ok();
    assert_eq!(tenants["tenants"].as_array().unwrap().len(), 1);
    assert_eq!(get("/upload/verify_processing?file_id=a").await.ok()["tenant_id"], "acme");
    for tenant in ["acme", "new"] {
        let path = format!("/user/create_tenant?tenant_id={tenant}");
        let sent = server.send("POST", path).with_key(Some(&key));
        sent.answer().await.fails(403, "insufficient_scope");
    }
    let upload = server.send("POST", "/upload/upload_text?tenant_id=new").with_key(Some(&key));
    let upload = upload.json(json!({"content": "x"})).answer().await;
    upload.fails(404, "tenant_not_found");
}

#[tokio::test]
async fn a_key_for_a_sub_tenant_reaches_only_that() {
    let server = Server::start();
    server.text("tenant_id=acme&sub_tenant_id=s", "a", "apples").await;
    let key = server.scoped_key("write", "acme", Some("s")).await;
    let get = |path: &str| server.send("GET", path).with_key(Some(&key)).answer();
    get("/list/sources?tenant_id=acme&sub_tenant_id=s").await.ok();
    get("/list/sources?tenant_id=acme").await.fails(404, "sub_tenant_not_found");
    let names = get("/tenant/sub_tenant_ids?tenant_id=acme").await.ok();
    assert_eq!(names["sub_tenant_ids"], json!(["s"]));
}

#[tokio::test]
async fn stats_grow_and_fall() {
    let server = Server::start();
    server.send("POST", "/user/create_tenant?tenant_id=acme").answer().await.ok();
    let stats = |scope: &str| server.get(format!("/tenant/stats?tenant_id=acme{scope}"));
    assert_eq!(stats("").await.ok()["object_count"], 0);
    server.text("tenant_id=acme", "a", "apples").await;
    server.text("tenant_id=acme&sub_tenant_id=s", "a", "apples").await;
    let counted = stats("").await.ok();
    assert_eq!((&counted["object_count"], &counted["source_count"]), (&json!(1), &json!(1)));
    assert_eq!(counted["tenant_object_count"], 2);
    assert_eq!((&counted["mode"], &counted["vector_dimension"]), (&json!("standard"), &json!(64)));
    assert_eq!(stats("&sub_tenant_id=none").await.ok()["object_count"], 0);
    let body = json!({"tenant_id": "acme", "source_ids": ["a"]});
    server.send("DELETE", "/delete_source").json(body).answer().await.ok();
    assert_eq!(stats("").await.ok()["object_count"], 0);
    server.get("/tenant/stats?tenant_id=none").await.fails(404, "tenant_not_found");
    server.send("POST", "/embeddings/create_tenant?tenant_id=v").answer().await.ok();
    let empty = server.get("/tenant/stats?tenant_id=v").await.ok();
    assert_eq!((&empty["mode"], &empty["vector_dimension"]), (&json!("embeddings"), &Value::Null));
}

#[tokio::test]
async fn sub_tenants_are_deleted_but_the_default_one() {
    let server = Server::start();
    server.text("tenant_id=acme&sub_tenant_id=s", "a", "apples").await;
    let names = || server.get("/tenant/sub_tenant_ids?tenant_id=acme");
    assert_eq!(names().await.ok()["sub_tenant_ids"], json!(["default", "s"]));
    let delete = |scope: &str| {
        let path = format!("/tenant/delete_sub_tenant?tenant_id=acme{scope}");
        server.send("DELETE", path).answer()
    };
    for scope in ["", "&sub_tenant_id=", "&sub_tenant_id=default"] {
        delete(scope).await.fails(400, "default_sub_tenant_protected");
    }
    delete("&sub_tenant_id=x").await.fails(404, "sub_tenant_not_found");
    assert_eq!(delete("&sub_tenant_id=s").await.ok()["sub_tenant_id"], "s");
    assert_eq!(names().await.ok()["sub_tenant_ids"], json!(["default"]));
}

#[tokio::test]
async fn a_tenant_goes_only_when_it_is_named_twice() {
    let server = Server::start();
    server.text("tenant_id=acme", "a", "apples").await;
    let delete = |confirm: &str| {
        let path = format!("/tenant/delete?tenant_id=acme{confirm}");
        server.send("DELETE", path).answer()
    };
    delete("").await.fails(400, "missing_field");
    delete("&confirm=acm").await.fails(400, "invalid_value");
    delete("&confirm=acme").await.ok();
    server.get("/list/sources?tenant_id=acme").await.fails(404, "tenant_not_found");
    delete("&confirm=acme").await.fails(404, "tenant_not_found");
    server.send("POST", "/user/create_tenant?tenant_id=acme").answer().await.ok();
    assert_eq!(server.get("/list/sources?tenant_id=acme").await.ok()["total"], 0);
}

#[tokio::test]
async fn keys_are_shown_once_and_end() {
    let server = Server::start();
    let list = || server.get("/admin/api_keys");
    let soon = server.clock_seconds() + 60;
    let body = json!({"name": "reader", "role": "read", "expires_at": soon});
    let made = server.post("/admin/api_keys", body).await.ok();
    let (key, id) = (made["api_key"].as_str().unwrap(), made["key_id"].as_str().unwrap());
    let shown = list().await;
    assert!(shown.ok()["api_keys"].as_array().unwrap().iter().any(|key| key["key_id"] == id));
    assert!(!String::from_utf8_lossy(&shown.body).contains(key));
    let jobs = || server.send("GET", "/jobs").with_key(Some(key)).answer();
    jobs().await.ok();
    let upload = server.send("POST", "/upload/upload_text?tenant_id=a").with_key(Some(key));
    upload.json(json!({"content": "x"})).answer().await.fails(403, "insufficient_role");
    server.clock.advance_millis(60_000);
    jobs().await.fails(401, "expired_api_key");
    let revoke = || server.send("DELETE", format!("/admin/api_keys/{id}")).answer();
    revoke().await.ok();
    jobs().await.fails(401, "invalid_api_key");
    assert_eq!(revoke().await.fails(404, "api_key_not_found")["error"], "API key not found");
    let past = json!({"name": "n", "role": "read", "expires_at": 1});
    server.post("/admin/api_keys", past).await.fails(400, "invalid_value");
}

#[tokio::test]
async fn a_scoped_admin_makes_no_wider_key() {
    let server = Server::start();
    let admin = server.scoped_key("admin", "acme", None).await;
    let body = json!({"name": "n", "role": "read"});
    let sent = server.send("POST", "/admin/api_keys").with_key(Some(&admin)).json(body);
    sent.answer().await.fails(403, "insufficient_scope");
    let mine = server.send("GET", "/admin/api_keys").with_key(Some(&admin)).answer().await.ok();
    assert_eq!(mine["api_keys"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn health_needs_no_key() {
    let server = Server::start();
    let get = |path: &str| server.send("GET", path).with_key(None).answer();
    assert_eq!(get("/healthz").await.ok(), json!({"status": "ok"}));
    let ready = get("/readyz").await.ok();
    assert_eq!(ready["status"], "ok");
    for part in ["storage", "index", "embedder"] {
        assert_eq!(ready["components"][part], "ok");
    }
    let page = get("/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let paths = get("/openapi.json").await.ok()["paths"].clone();
    let paths: BTreeSet<&String> = paths.as_object().unwrap().keys().collect();
    for path in ["/upload/upload_text", "/delete_source", "/fetch/download/{token}", "/jobs"] {
        assert!(paths.iter().any(|known| *known == path), "{path}");
    }
    get("/jobs").await.fails(401, "missing_api_key");
}

#[tokio::test]
async fn every_operation_with_a_key_refuses_without() {
    let server = Server::start();
    for route in super::super::table() {
        if route.spec.role.is_some() {
            let method: &'static str = match route.spec.method.as_str() {
                "GET" => "GET",
                "POST" => "POST",
                "PATCH" => "PATCH",
                _ => "DELETE",
            };
            let sent = server.send(method, route.spec.path).with_key(None);
            let answer = sent.answer().await;
            if route.spec.path.starts_with("/v1/") {
                assert_eq!(answer.status, 401, "{route:?}");
                assert_eq!(answer.json()["error"]["code"], "missing_api_key", "{route:?}");
                continue;
            }
            let body = answer.fails(401, "missing_api_key");
            assert_eq!(body["error"], "Unauthorized", "{route:?}");
        }
    }
}
