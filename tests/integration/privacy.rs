//! The contents of log lines and error bodies.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::contract::guarded;
use crate::corpus::with;
use crate::support::{KEY, Part, TestServer};

/// Captures everything that the process logs.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Starts capturing at every level of every crate.
    fn start() -> Self {
        let log = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_writer(log.clone());
        subscriber.try_init().expect("no other test of this process logs");
        log
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Words in tenant and source names, people and content; each occurs in one place only.
const SECRETS: &[&str] = &[
    "tenantsecret", "subsecret", "sourcesecret", "filesecret", "contentsecret", "querysecret",
    "questionsecret", "filtersecret", "metasecret", "sessionsecret", "keynamesecret",
    "badkeysecret", "idempotencysecret", "usersecret", "batchsecret", "querystringsecret",
];

/// Performs successful writes, reads and questions that contain the secrets.
fn live(server: &TestServer) {
    server.index("tenantsecret", "subsecret", "sourcesecret", "The contentsecret of a text.");
    let place = json!({"tenant_id": "tenantsecret", "sub_tenant_id": "subsecret"});
    let ask = |path: &str, changes: Value| server.post(path, with(place.clone(), &changes));
    let filter = json!({"$or": [{"metasecret": "filtersecret"}, {"metasecret": null}]});
    for path in ["/search/retrieve", "/search/full-text-search"] {
        ask(path, json!({"query": "contentsecret querysecret", "document_metadata": filter})).ok();
    }
    for stream in [false, true] {
        let question = json!({"question": "contentsecret questionsecret?", "stream": stream,
            "session_id": "sessionsecret", "user_name": "usersecret"});
        assert_eq!(ask("/search/qna", question).status, 200);
    }
    ask("/list/sources_by_id", json!({"source_ids": ["sourcesecret"]})).ok();
    ask("/fetch/fetch_content", json!({"file_id": "sourcesecret"})).ok();
    let path = "/upload/upload_text?tenant_id=tenantsecret&sub_tenant_id=subsecret";
    let body = json!({"file_id": "sourcesecret", "content": "contentsecret again",
        "document_metadata": {"metasecret": "filtersecret"}});
    server.post(path, body).ok();
    server.settled("tenantsecret", "subsecret", "sourcesecret");
    server.get("/jobs?tenant_id=tenantsecret&querystringsecret=1").ok();
    server.post("/embeddings/create_tenant?tenant_id=tenantsecret-v", Value::Null);
    let rows = json!({"file_id": "batchsecret", "embeddings": [[1, 2]]});
    server.post("/upload/upload_embeddings?tenant_id=tenantsecret-v", rows).ok();
}

/// Causes errors of every kind, each containing secrets.
fn err(server: &TestServer) {
    let broken: [Part<'_>; 3] = [
        ("tenant_id", None, b"tenantsecret"),
        ("file_id", None, b"sourcesecret-broken"),
        ("file", Some("filesecret.html"), b"<html><body><!-- contentsecret --></body></html>"),
    ];
    server.form("POST", "/upload/upload_document", &broken).ok();
    let status = server.settled("tenantsecret", "default", "sourcesecret-broken");
    assert_eq!(status["status"], "errored");
    let binary: [Part<'_>; 2] = [
        ("tenant_id", None, b"tenantsecret"),
        ("file", Some("filesecret.png"), b"\x89PNG\r\n\x1a\ncontentsecret"),
    ];
    server.form("POST", "/upload/upload_document", &binary).error(400, "unsupported_file_format");
    let wrong = json!({"tenant_id": "tenantsecret", "query": "querysecret",
        "metadata": {"metasecret": {"$filtersecret": 1}}});
    server.post("/search/retrieve", wrong).error(400, "invalid_filter");
    server.call_as("badkeysecret-badkeysecret-badkeysecret", "GET", "/jobs", &Value::Null);
    server.post("/search/retrieve", json!({"tenant_id": "tenantsecret-2", "query": "querysecret"}));
    server
        .post("/user/create_tenant?tenant_id=tenantsecret", Value::Null)
        .error(409, "tenant_exists");
    server.get("/querystringsecret?tenant_id=tenantsecret").error(404, "route_not_found");
    for operation in guarded(server) {
        let mut sample = operation.sample("tenantsecret", Some("subsecret"));
        sample.query.push(("tenant_id".to_owned(), "tenantsecret/..".to_owned()));
        operation.send(server, KEY, &sample);
    }
}

/// Goal: at every level the log contains no key, tenant name, source name, person, text or
/// question, through normal operation, errors, a restart and deletions.
#[test]
fn the_log_tells_no_secret_at_any_level() {
    let log = Log::start();
    let server = TestServer::start();
    let made = server.make_key("write", json!([{"tenant_id": "tenantsecret"}]));
    let named = json!({"name": "keynamesecret", "role": "read"});
    let second = server.post("/admin/api_keys", named).ok()["api_key"].clone();
    live(&server);
    server.call_as(&made, "GET", "/list/sources?tenant_id=tenantsecret", &Value::Null).ok();
    err(&server);
    let server = server.restart();
    live(&server);
    let path = "/tenant/delete_sub_tenant?tenant_id=tenantsecret&sub_tenant_id=subsecret";
    server.call("DELETE", path, Value::Null).ok();
    let path = "/tenant/delete?tenant_id=tenantsecret&confirm=tenantsecret";
    server.call("DELETE", path, Value::Null).ok();
    server.engine.shut_down();

    let text = log.text();
    let routes = ["/search/qna", "/upload/upload_text", "/upload/upload_document"];
    assert!(routes.iter().all(|route| text.contains(route)), "the log was captured");
    assert!(text.contains("DEBUG") || text.contains("TRACE"), "at every level");
    let keys = [KEY, &made, second.as_str().expect("a secret")];
    for secret in SECRETS.iter().chain(&keys) {
        let told = text.lines().find(|line| line.contains(*secret));
        assert_eq!(told, None, "{secret} is in the log");
    }
}

/// Goal: errors reveal nothing about another tenant, whatever a scoped key tries.
#[test]
fn errors_tell_nothing_of_another_tenant() {
    let server = TestServer::start();
    live(&server);
    server.index("mine", "north", "s", "apples");
    let scoped = json!([{"tenant_id": "mine", "sub_tenant_ids": ["north"]}]);
    for role in ["read", "write", "admin"] {
        let key = server.make_key(role, scoped.clone());
        for operation in guarded(&server) {
            if operation.path.starts_with("/admin") || operation.path == "/tenant/list" {
                continue;
            }
            for (tenant, sub_tenant) in [
                ("tenantsecret", Some("subsecret")),
                ("mine", Some("north")),
                ("mine", Some("south")),
                ("mine", None),
            ] {
                let mut sample = operation.sample(tenant, sub_tenant);
                // Ids of the other scope, requested in this one.
                if tenant == "mine" && operation.path.contains("sources_by_id") {
                    sample.members.insert("source_ids".to_owned(), json!(["s"]));
                }
                let reply = operation.send(&server, &key, &sample);
                if operation.method == "DELETE" && reply.status == 200 {
                    server.index("mine", "north", "s", "apples");
                }
                let body = String::from_utf8_lossy(&reply.bytes).into_owned();
                let name = format!("{} as {role} in {tenant}", operation.name());
                assert!(!body.contains(KEY) && !body.contains(&key), "{name}: {body}");
                for secret in ["sourcesecret", "contentsecret", "batchsecret", "metasecret"] {
                    assert!(!body.contains(secret), "{name}: {body}");
                }
                let names = ["tenantsecret", "subsecret"];
                let is_told = names.iter().any(|secret| body.contains(secret));
                assert!(tenant == "tenantsecret" || !is_told, "{name}: {body}");
                assert!(!is_told, "not even what was named comes back: {name}: {body}");
            }
        }
    }
    let jobs = server.call_as(&server.make_key("read", scoped), "GET", "/jobs", &Value::Null);
    assert!(!String::from_utf8_lossy(&jobs.bytes).contains("secret"));
}
