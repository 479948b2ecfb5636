//! Webhooks and job events over the router: scopes, errors, and an in-process HTTP client.

use std::sync::{Arc, Condvar, Mutex};

use lodestone_types::{BlockedReason, PostFailure, WebHost, WebPost, WebUrl, WebhookClient};
use serde_json::{Value, json};

use crate::patience::{Patience, STILL};
use crate::support::TestServer;

/// A client that accepts every message and, like the real one, rejects private addresses.
#[derive(Debug, Default)]
struct Taken {
    bodies: Mutex<Vec<Value>>,
    came: Condvar,
}

impl WebhookClient for Taken {
    fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason> {
        match url.host() {
            WebHost::Address(_) => Err(BlockedReason::Address),
            WebHost::Name(_) => Ok(()),
        }
    }

    fn post(&self, post: &WebPost<'_>) -> Result<u16, PostFailure> {
        self.bodies.lock().unwrap().push(serde_json::from_str(post.body).unwrap());
        self.came.notify_all();
        Ok(200)
    }
}

impl Taken {
    /// Waits for `count` messages; returns the kind and source of each.
    fn events(&self, count: usize) -> Vec<(String, String)> {
        let bodies = self.bodies.lock().unwrap();
        let (bodies, waited) =
            self.came.wait_timeout_while(bodies, STILL, |bodies| bodies.len() < count).unwrap();
        assert!(!waited.timed_out(), "{bodies:?}");
        let text = |body: &Value, name: &str| body[name].as_str().unwrap_or_default().to_owned();
        bodies.iter().map(|body| (text(body, "type"), text(body, "file_id"))).collect()
    }
}

fn server() -> (TestServer, Arc<Taken>) {
    let taken = Arc::<Taken>::default();
    let client = Arc::clone(&taken);
    let server = TestServer::start_with_parts(
        |_| {},
        |parts| parts.webhook_client = Some(client as Arc<dyn WebhookClient>),
    );
    (server, taken)
}

fn add(server: &TestServer, body: Value) -> Value {
    server.post("/admin/webhooks", body).ok()
}

#[test]
fn events_reach_those_whose_tenant_they_are_of() {
    let (server, taken) = server();
    server.post("/user/create_tenant", json!({"tenant_id": "acme"})).ok();
    let made = add(
        &server,
        json!({
            "url": "https://hooks.example/", "tenants": [{"tenant_id": "acme"}],
            "events": ["source.success", "source.deleted"],
        }),
    );
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    assert_eq!(made["events"], json!(["source.success", "source.deleted"]));
    server.index("other", "default", "theirs", "pears");
    server.index("acme", "default", "ours", "pears");
    let body = json!({"tenant_id": "acme", "source_ids": ["ours", "none"]});
    server.call("DELETE", "/delete_source", body).ok();
    let event = |kind: &str| (kind.to_owned(), "ours".to_owned());
    assert_eq!(taken.events(2), [event("source.success"), event("source.deleted")]);
    let id = made["webhook_id"].as_str().unwrap();
    let tested = server.post(&format!("/admin/webhooks/{id}/test"), Value::Null).ok();
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(true), &json!(200)));
    assert_eq!(taken.events(3)[2].0, "webhook.test");
    let page = server.get(&format!("/admin/webhooks/{id}/deliveries?limit=1")).ok();
    assert_eq!(page["deliveries"][0]["type"], "source.deleted");
    let next = page["next_cursor"].as_str().unwrap();
    let page = server.get(&format!("/admin/webhooks/{id}/deliveries?cursor={next}")).ok();
    assert_eq!(page["deliveries"][0]["type"], "source.success");
    assert_eq!((&page["deliveries"][1], &page["next_cursor"]), (&Value::Null, &Value::Null));
    server.call("DELETE", "/tenant/delete?tenant_id=acme&confirm=acme", Value::Null).ok();
    let listed = || server.get("/admin/webhooks").ok()["webhooks"].clone();
    let mut patience = Patience::new();
    while listed() != json!([]) {
        assert!(!patience.is_over(listed()), "it reached no other tenant");
    }
}

#[test]
fn wrong_webhooks_are_refused_by_name() {
    let (server, _) = server();
    let refused = |body: Value, reason: &str, field: &str| {
        let error = server.post("/admin/webhooks", body).error(400, reason);
        assert_eq!(error["detail"]["errors"][0]["field"], field, "{error}");
    };
    refused(json!({}), "missing_field", "url");
    refused(json!({"url": "ftp://a/"}), "invalid_value", "url");
    refused(json!({"url": "https://user:password@a/"}), "invalid_value", "url");
    refused(json!({"url": "http://127.0.0.1/"}), "url_blocked", "url");
    let url = "https://hooks.example/";
    refused(json!({"url": url, "events": []}), "invalid_value", "events");
    refused(json!({"url": url, "events": ["source.lost"]}), "invalid_value", "events");
    refused(json!({"url": url, "tenants": []}), "invalid_value", "tenants");
    let unknown = json!([{"tenant_id": "nobody"}]);
    refused(json!({"url": url, "tenants": unknown}), "invalid_value", "tenants");
    refused(json!({"url": url, "description": "x".repeat(257)}), "invalid_value", "description");
    assert_eq!(server.get("/admin/webhooks").ok()["webhooks"], json!([]), "nothing was made");
    let id = add(&server, json!({"url": url}))["webhook_id"].as_str().unwrap().to_owned();
    let path = format!("/admin/webhooks/{id}");
    server.call("PATCH", &path, json!({"state": "disabled"})).error(400, "invalid_value");
    assert_eq!(server.call("PATCH", &path, json!({"state": "paused"})).ok()["state"], "paused");
    let cursor = format!("{path}/deliveries?cursor=x");
    server.get(&cursor).error(400, "invalid_value");
    for _ in 1..8 {
        add(&server, json!({"url": url}));
    }
    server.post("/admin/webhooks", json!({"url": url})).error(409, "webhook_limit");
    server.call("DELETE", &path, Value::Null).ok();
    for (method, path) in [
        ("DELETE", path.clone()),
        ("POST", format!("{path}/test")),
        ("GET", format!("{path}/deliveries")),
    ] {
        server.call(method, &path, Value::Null).error(404, "webhook_not_found");
    }
}

#[test]
fn a_key_for_a_tenant_manages_its_own_webhooks() {
    let (server, _) = server();
    server.post("/user/create_tenant", json!({"tenant_id": "acme"})).ok();
    let wide = add(&server, json!({"url": "https://hooks.example/"}));
    let key = server.make_key("admin", json!([{"tenant_id": "acme"}]));
    let body = json!({"url": "https://hooks.example/"});
    server.call_as(&key, "POST", "/admin/webhooks", &body).error(403, "insufficient_scope");
    let body = json!({"url": "https://hooks.example/", "tenants": [{"tenant_id": "acme"}]});
    let mine = server.call_as(&key, "POST", "/admin/webhooks", &body).ok();
    let listed = server.call_as(&key, "GET", "/admin/webhooks", &Value::Null).ok();
    assert_eq!(listed["webhooks"].as_array().unwrap().len(), 1);
    assert_eq!(listed["webhooks"][0]["webhook_id"], mine["webhook_id"]);
    assert!(listed["webhooks"][0].get("secret").is_none());
    let path = format!("/admin/webhooks/{}", wide["webhook_id"].as_str().unwrap());
    server.call_as(&key, "DELETE", &path, &Value::Null).error(404, "webhook_not_found");
}

#[test]
fn a_stream_of_a_job_that_has_ended_tells_its_end_within_its_scope() {
    let (server, _) = server();
    server.index("acme", "default", "a", "pears");
    let id = server.get("/jobs").ok()["jobs"][0]["job_id"].as_str().unwrap().to_owned();
    let path = format!("/jobs/{id}/events");
    let reply = server.get(&path);
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let text = String::from_utf8(reply.bytes).unwrap();
    assert!(text.starts_with("id: 1\nevent: done\ndata: {"), "{text}");
    assert!(text.ends_with("\n\n") && text.contains("\"status\":\"success\""), "{text}");
    let key = |tenant: &Value| server.make_key("read", json!([tenant]));
    for tenant in [
        json!({"tenant_id": "other"}),
        json!({"tenant_id": "acme", "sub_tenant_ids": ["elsewhere"]}),
    ] {
        let reply = server.call_as(&key(&tenant), "GET", &path, &Value::Null);
        reply.error(404, "job_not_found");
    }
    let reply = server.call_as(&key(&json!({"tenant_id": "acme"})), "GET", &path, &Value::Null);
    assert_eq!(reply.status, 200);
    server.get("/jobs/reembed_x/events").error(404, "job_not_found");
}
