//! Query nodes: which process serves which operation, and a node beside the writer.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use lodestone_fetch::{Authorities, Forwarder};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Answer, Server};
use crate::HttpSettings;
use crate::listen::{ListenSettings, never_stops, serve};
use crate::routes::{Effect, RouteSpec, ServingNode, table};

fn listed(is_wanted: impl Fn(&RouteSpec) -> bool) -> Vec<String> {
    let table = table();
    let wanted = table.iter().map(|route| &route.spec).filter(|spec| is_wanted(spec));
    let mut listed: Vec<_> = wanted.map(|spec| format!("{} {}", spec.method, spec.path)).collect();
    listed.sort_unstable();
    listed
}

/// The list of operations that a query node answers; a new operation must be added or left out here
/// deliberately.
#[test]
fn operations_that_a_query_node_answers() {
    let expected = [
        "GET /docs",
        "GET /healthz",
        "GET /list/sources",
        "GET /readyz",
        "GET /tenant/stats",
        "GET /tenant/sub_tenant_ids",
        "GET /tenant/usage",
        "GET /user_memory/list_user_memories",
        "GET /v1/files",
        "GET /v1/files/{file_id}",
        "GET /v1/files/{file_id}/content",
        "GET /v1/models",
        "GET /v1/models/{model}",
        "GET /v1/vector_stores/{vector_store_id}/files/{file_id}/content",
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
        "POST /user_memory/retrieve_user_memory",
        "POST /v1/chat/completions",
        "POST /v1/embeddings",
        "POST /v1/rerank",
        "POST /v1/vector_stores/{vector_store_id}/search",
    ];
    assert_eq!(listed(|spec| spec.served_by == ServingNode::Any), expected);
    let of_itself = listed(|spec| spec.served_by == ServingNode::Asked);
    assert_eq!(of_itself, ["GET /metrics", "GET /metrics/hour"], "what is told of one process");
}

/// The list of changes completed after their response; the responses of all others wait until query
/// nodes show the change.
#[test]
fn changes_that_are_made_after_their_answer() {
    let expected = [
        "PATCH /upload/batch_update",
        "PATCH /upload/update_document",
        "PATCH /upload/update_text",
        "PATCH /upload/update_webpage",
        "POST /admin/backups",
        "POST /admin/reembed",
        "POST /jobs/{job_id}/retry",
        "POST /upload/batch_scrape_webpage",
        "POST /upload/batch_upload",
        "POST /upload/batch_upload_text",
        "POST /upload/scrape_webpage",
        "POST /upload/upload_app_sources",
        "POST /upload/upload_document",
        "POST /upload/upload_text",
        "POST /v1/vector_stores/{vector_store_id}/file_batches",
        "POST /v1/vector_stores/{vector_store_id}/files",
    ];
    assert_eq!(listed(|spec| spec.effect == Effect::Queued), expected);
}

/// A node and the writer over one engine, so the node is never behind.
struct Pair {
    node: Server,
    /// The requests that the node forwarded to the writer.
    passed: Arc<Mutex<Vec<String>>>,
}

impl Pair {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let forwarder = Arc::new(Forwarder::new(&base, &Authorities::default()).unwrap());
        let node = Server::made(Some(forwarder), HttpSettings::default());
        let passed = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&passed);
        let watch = move |request: Request, next: Next| {
            let by_node = request.headers().contains_key("x-lodestone-forwarded");
            assert!(by_node, "the node marks what it passes on");
            seen.lock().push(request.uri().path().to_owned());
            next.run(request)
        };
        let router = node.writer.clone().layer(from_fn(watch));
        tokio::spawn(serve(listener, None, router, ListenSettings::default(), never_stops()));
        Self { node, passed }
    }

    /// Returns the requests forwarded since the last call.
    fn passed(&self) -> Vec<String> {
        std::mem::take(&mut *self.passed.lock())
    }

    async fn tool(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let sent = self.node.send("POST", "/mcp?tenant_id=acme").json(message);
        let sent = sent.with_header("accept", "application/json, text/event-stream");
        sent.with_header("host", "node.example").answer().await.ok()
    }
}

#[tokio::test]
async fn a_client_may_ask_a_node_for_everything() {
    let pair = Pair::start().await;
    pair.node.text("tenant_id=acme", "lamps", "Forty lamps hang in the northern hall.").await;
    let passed = pair.passed();
    assert_eq!(passed[..2], ["/upload/upload_text", "/upload/verify_processing"]);
    let query = json!({"tenant_id": "acme", "query": "lamps"});
    let found = pair.node.post("/search/retrieve", query.clone()).await.ok();
    assert!(found.to_string().contains("northern hall"), "{found}");
    assert!(pair.passed().is_empty(), "searches are answered by the node");
    let in_session = json!({"tenant_id": "acme", "query": "lamps", "session_id": "s"});
    pair.node.post("/search/retrieve", in_session).await.ok();
    assert_eq!(pair.passed(), ["/search/retrieve"], "only the writer has every turn");
    let form = pair.node.send("POST", "/upload/upload_document?tenant_id=acme&file_id=doc");
    form.form(&[], &[("file", "a.txt", b"Seven keys lie on the table.")]).answer().await.ok();
    assert_eq!(pair.node.settled("tenant_id=acme", "doc").await["status"], "success");
    let deleted = json!({"tenant_id": "acme", "source_ids": ["lamps"]});
    pair.node.send("DELETE", "/delete_source").json(deleted).answer().await.ok();
    let found = pair.node.post("/search/retrieve", query).await.ok();
    assert!(!found.to_string().contains("northern hall"), "{found}");
    assert_eq!(pair.passed().last().unwrap(), "/delete_source");
    // Refusals of the writer are relayed unchanged.
    let missing = json!({"tenant_id": "acme", "source_ids": "x"});
    let refused = pair.node.send("DELETE", "/delete_source").json(missing).answer().await;
    refused.fails(400, "invalid_value");
    let made = pair.node.scoped_key("read", "acme", None).await;
    let denied =
        pair.node.send("POST", "/upload/upload_text").with_key(Some(&made)).json(json!({}));
    denied.answer().await.fails(403, "insufficient_role");
    assert_eq!(pair.passed(), ["/delete_source", "/admin/api_keys"]);
}

#[tokio::test]
async fn the_url_of_an_original_leads_through_any_node() {
    let pair = Pair::start().await;
    pair.node.text("tenant_id=acme", "lamps", "Forty lamps.").await;
    pair.passed();
    let ask = json!({"tenant_id": "acme", "file_id": "lamps", "return_content": false});
    let content = json!({"tenant_id": "acme", "file_id": "lamps", "return_content": true});
    let held = pair.node.post("/fetch/fetch_content", content).await.ok();
    assert_eq!((held["file_content"].as_str(), pair.passed().len()), (Some("Forty lamps."), 0));
    let sent = pair.node.send("POST", "/fetch/fetch_content").json(ask);
    let sent = sent.with_header("host", "node.example").with_header("x-forwarded-proto", "https");
    let url = sent.answer().await.ok()["download_url"].as_str().unwrap().to_owned();
    let path = url.strip_prefix("https://node.example").expect("the address of the client");
    let file = pair.node.send("GET", path).with_key(None).answer().await;
    assert_eq!((file.status, &file.body[..]), (200, &b"Forty lamps."[..]));
    assert_eq!(pair.passed(), ["/fetch/fetch_content", path]);
}

#[tokio::test]
async fn a_question_of_a_session_is_asked_where_the_session_is_kept() {
    let pair = Pair::start().await;
    pair.node.text("tenant_id=acme", "lamps", "Forty lamps hang in the northern hall.").await;
    pair.passed();
    for is_stream in [false, true] {
        let mut question =
            json!({"tenant_id": "acme", "question": "How many lamps?", "stream": is_stream});
        assert_eq!(pair.node.post("/search/qna", question.clone()).await.status, 200);
        assert!(pair.passed().is_empty());
        question["session_id"] = json!("s-1");
        let answer = pair.node.post("/search/qna", question).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(answer.status == 200 && text.contains("s-1"), "{text}");
        assert_eq!(text.contains("event: done\n"), is_stream, "{text}");
        assert_eq!(pair.passed(), ["/search/qna"]);
    }
}

#[tokio::test]
async fn tools_work_at_a_node() {
    let pair = Pair::start().await;
    let text = "Nine boats wait at the pier.";
    let added = pair.tool("add_text", json!({"text": text, "title": "Boats"})).await;
    assert_ne!(added["result"]["isError"], true, "{added}");
    assert_eq!(pair.passed()[0], "/upload/upload_text");
    let id = added["result"]["structuredContent"]["file_id"].as_str().unwrap().to_owned();
    assert_eq!(pair.node.settled("tenant_id=acme", &id).await["status"], "success");
    pair.passed();
    let found = pair.tool("search", json!({"query": "boats"})).await;
    assert!(found.to_string().contains(text), "{found}");
    assert!(pair.passed().is_empty());
}

#[tokio::test]
async fn events_of_a_job_pass() {
    let pair = Pair::start().await;
    pair.node.text("tenant_id=acme", "lamps", "Forty lamps.").await;
    let jobs = pair.node.get("/jobs?tenant_id=acme").await.ok();
    let id = jobs["jobs"][0]["job_id"].as_str().unwrap_or_else(|| panic!("{jobs}"));
    let path = format!("/jobs/{id}/events");
    let answer: Answer = pair.node.get(path.as_str()).await;
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.starts_with("id: 1\nevent: done\ndata: {"), "{text}");
    assert_eq!(pair.passed().last().unwrap(), &path);
}
