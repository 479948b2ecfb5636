//! Bugs that the walks have found, reduced to a few lines each.

use serde_json::{Value, json};

use crate::server::{Ask, OPERATOR, TestServer};

fn ask(server: &TestServer, key: &str, ask: &Ask) -> Value {
    server.advance_millis(1000);
    let reply = server.send(Some(key), ask);
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.bytes));
    reply.json()
}

fn make_key(server: &TestServer, name: &str, tenant: &str) -> Value {
    let tenants = json!([{"tenant_id": tenant}]);
    let body = json!({"name": name, "role": "admin", "tenants": tenants});
    ask(server, OPERATOR, &Ask::new("POST", "/admin/api_keys").json(body))
}

/// Goal: a key whose tenants have all been deleted is visible to the operator only. Its empty scope
/// used to lie within every scope, so that any scoped admin saw its name and could revoke it.
#[test]
fn a_key_that_has_lost_its_tenants_belongs_to_the_operator_alone() {
    let server = TestServer::start();
    for tenant in ["mine", "theirs"] {
        let create = Ask::new("POST", "/user/create_tenant").with("tenant_id", tenant);
        ask(&server, OPERATOR, &create);
    }
    let theirs = make_key(&server, "backup of Theirs Ltd", "theirs");
    let mine = make_key(&server, "own", "mine");
    let secret = mine["api_key"].as_str().expect("a secret");
    let delete = Ask::new("DELETE", "/tenant/delete");
    ask(&server, OPERATOR, &delete.with("tenant_id", "theirs").with("confirm", "theirs"));
    let list = Ask::new("GET", "/admin/api_keys");
    let listed = ask(&server, secret, &list)["api_keys"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed[0]["key_id"], mine["key_id"]);
    let path = format!("/admin/api_keys/{}", theirs["key_id"].as_str().expect("an id"));
    let reply = server.send(Some(secret), &Ask::new("DELETE", &path));
    assert_eq!(reply.status, 404, "{}", reply.json());
    assert_eq!(ask(&server, OPERATOR, &list)["api_keys"].as_array().map(Vec::len), Some(2));
}

/// Goal: a look-up without a scope finds the latest upload in all scopes of the key. Batches of
/// vectors have no job, and used not to be found if any scope had a job with that id.
#[test]
fn a_look_up_without_a_scope_finds_vectors_beside_documents() {
    let server = TestServer::start();
    let upload = Ask::new("POST", "/upload/upload_text").of("texts", "default");
    let body = json!({"content": "apples", "file_id": "same"});
    ask(&server, OPERATOR, &upload.json(body));
    let create = Ask::new("POST", "/embeddings/create_tenant").with("tenant_id", "vectors");
    ask(&server, OPERATOR, &create);
    let upload = Ask::new("POST", "/upload/upload_embeddings").of("vectors", "default");
    let body = json!({"embeddings": [[1.0, 0.0]], "file_id": "same"});
    ask(&server, OPERATOR, &upload.json(body));
    let verify = Ask::new("POST", "/upload/verify_processing").with("file_id", "same");
    let found = ask(&server, OPERATOR, &verify);
    assert_eq!(found["tenant_id"], "vectors", "{found}");
}
